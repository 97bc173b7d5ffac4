"""The command behind tests/clients/run."""
import argparse
import json
import os
import sys

from . import cases, judge, measure, models

ROW = '{:<12} {:>8} {:>8} {:>6}  {:>8} {:>8} {:>6}  {}'


def arguments():
    p = argparse.ArgumentParser(prog='tests/clients/run sd')
    p.add_argument('case', nargs='*')
    p.add_argument('--cache')
    p.add_argument('--runs', help='folder for pictures and logs')
    p.add_argument('--ours')
    p.add_argument('--own')
    p.add_argument('--quick', action='store_true')
    p.add_argument('--rounds', type=int, default=2)
    p.add_argument('--list', action='store_true')
    p.add_argument('--report')
    args = p.parse_args()
    known = {c.name for c in cases.CASES}
    unknown = [c for c in args.case if c not in known]
    if unknown:
        p.error(f'no such case: {" ".join(unknown)}; there are {" ".join(c.name for c in cases.CASES)}')
    if args.rounds < 1:
        p.error('--rounds must be at least 1')
    return args


def summary(verdict):
    return {
        'case': verdict.name, 'speed': verdict.speed, 'memory': verdict.memory, 'near': verdict.near,
        'seconds': {w: [r.seconds for r in getattr(verdict, w)] for w in ('ours', 'own')},
        'stages': {w: [r.stages for r in getattr(verdict, w)] for w in ('ours', 'own')},
        'peak_kib': {w: verdict.peak(w) for w in ('ours', 'own')},
        'buffers_mb': {w: verdict.buffers(w) for w in ('ours', 'own')},
        'short': verdict.short,
    }


def main():
    args = arguments()
    if args.list:
        for case in cases.CASES:
            print(f'{case.name:<12} {case.about}')
        return 0
    chosen = args.case or (cases.QUICK if args.quick else [c.name for c in cases.CASES])
    folder = args.runs
    os.makedirs(folder, exist_ok=True)
    files = models.Models(args.cache, args.own)
    trial = ['upscale', '--model', files.path('esrgan'), '--in', files.path('picture'), '--threads', '2']
    openmp, times = measure.best_openmp(args.own, trial, os.path.join(folder, 'trial'))
    named = ', '.join(f'{k or "unset"} {v:.2f} s' for k, v in times.items())
    print(f'OMP_WAIT_POLICY of the client on its own ggml: {openmp or "unset"} ({named})')

    bench = judge.Bench(args.ours, args.own, files, folder, args.rounds, openmp, args.quick)
    print('two threads; seconds and MiB, best and highest of the runs; ratio: speed own/ours, memory ours/own')
    print(ROW.format('case', 'ours s', 'own s', 'speed', 'ours MiB', 'own MiB', 'memory', 'nearness'), flush=True)
    verdicts = []
    for case in cases.CASES:
        if case.name not in chosen:
            continue
        v = bench.judge(case)
        verdicts.append(v)
        print(ROW.format(v.name, f'{v.best("ours"):.2f}', f'{v.best("own"):.2f}', f'{v.speed:.2f}',
                         f'{v.peak("ours") / 1024:.0f}', f'{v.peak("own") / 1024:.0f}', f'{v.memory:.3f}', v.near))
        for line in v.short:
            print(f'   SHORT  {line}')
        sys.stdout.flush()
    if args.report:
        with open(args.report, 'w', encoding='utf-8') as f:
            json.dump([summary(v) for v in verdicts], f, indent=1)
    bad = [v.name for v in verdicts if v.short]
    print(f'{len(verdicts) - len(bad)} of {len(verdicts)} cases pass' + (f'; short: {" ".join(bad)}' if bad else ''))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
