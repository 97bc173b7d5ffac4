"""Runs both builds of llama.cpp or whisper.cpp in turn, for the commands llama and whisper, and holds their times together.

A client on its own ggml runs under two settings of OpenMP: waiting threads sleep (OMP_WAIT_POLICY=passive, GOMP_SPINCOUNT=0), which is
fair on a machine that is busy, and nothing set. The verdict is over the first; the second is shown.
"""
import argparse
import json
import os
import sys
from dataclasses import dataclass, field

from . import measure

SIDES = {'ours': ('ours', None), 'own': ('own', 'passive'), 'own-unset': ('own', None)}
LEAST_SPEED = 1.0


@dataclass
class Turns:
    """The runs of one case on each side."""
    name: str
    timed: list                                  # the stages that the verdict is over
    runs: dict = field(default_factory=lambda: {side: [] for side in SIDES})
    near: str = ''
    short: list = field(default_factory=list)    # what falls short, in words

    @property
    def ok(self):
        return all(r.ok for runs in self.runs.values() for r in runs)

    def seconds(self, side, stage):
        return min(r.stages[stage] for r in self.runs[side])

    def ratio(self, stage, against='own'):
        return self.seconds(against, stage) / self.seconds('ours', stage)

    def out(self, side):
        return self.runs[side][-1].out


class Bench:
    def __init__(self, drivers, folder, rounds):
        self.drivers, self.folder, self.rounds = drivers, folder, rounds

    def take(self, name, args, timed, unset=True):
        """Rounds of ours and its own, until one fails. unset: also its own with OpenMP's settings left alone."""
        turns = Turns(name, timed)
        if not unset:
            del turns.runs['own-unset']
        for _ in range(self.rounds):
            for side in turns.runs:
                which, openmp = SIDES[side]
                run = measure.run(self.drivers[which], args, os.path.join(self.folder, f'{name}-{side}'), openmp)
                turns.runs[side].append(run)
                if not run.ok:
                    turns.short.append(f'{"" if side == "ours" else "on its own ggml: "}{run.errors[0]}')
                    return turns
        for stage in timed:
            if not turns.ratio(stage) >= LEAST_SPEED:
                turns.short.append(f'{stage}: speed {turns.ratio(stage):.2f}, at least {LEAST_SPEED:.1f} wanted')
        return turns


def arguments(client, cases, quick):
    p = argparse.ArgumentParser(prog=f'tests/clients/run {client}')
    p.add_argument('case', nargs='*')
    p.add_argument('--cache')
    p.add_argument('--runs', help='folder for results and logs')
    p.add_argument('--ours')
    p.add_argument('--own')
    p.add_argument('--quick', action='store_true')
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('--list', action='store_true')
    p.add_argument('--report')
    args = p.parse_args()
    known = [c.name for c in cases]
    unknown = [c for c in args.case if c not in known]
    if unknown:
        p.error(f'no such case: {" ".join(unknown)}; there are {" ".join(known)}')
    if args.rounds < 1:
        p.error('--rounds must be at least 1')
    if args.list:
        for case in cases:
            print(f'{case.name:<12} {case.about}')
        sys.exit(0)
    chosen = args.case or (quick if args.quick else known)
    os.makedirs(args.runs, exist_ok=True)
    return args, [c for c in cases if c.name in chosen]


def head():
    print('best times; ratio: own/ours, over its own ggml with OMP_WAIT_POLICY=passive and with nothing set')
    print(f'{"case":<12} {"stage":<9} {"ours ms":>9} {"own ms":>9} {"ratio":>6} {"unset ms":>9} {"ratio":>6}', flush=True)


def show(turns):
    print(f'{turns.name:<12} {turns.near}')
    if turns.ok:
        for stage in turns.timed:
            unset = ''
            if 'own-unset' in turns.runs:
                unset = f'{1e3 * turns.seconds("own-unset", stage):>9.2f} {turns.ratio(stage, "own-unset"):>6.2f}'
            print(f'{"":<12} {stage:<9} {1e3 * turns.seconds("ours", stage):>9.2f} {1e3 * turns.seconds("own", stage):>9.2f} '
                  f'{turns.ratio(stage):>6.2f} {unset}')
    for line in turns.short:
        print(f'   SHORT  {line}')
    sys.stdout.flush()


def finish(all_turns, report):
    """Writes the report; the exit status."""
    if report:
        with open(report, 'w', encoding='utf-8') as f:
            json.dump([{
                'case': t.name, 'near': t.near, 'short': t.short,
                'stages': {side: [r.stages for r in runs] for side, runs in t.runs.items()},
                'peak_kib': {side: [r.peak_kib for r in runs] for side, runs in t.runs.items()},
            } for t in all_turns], f, indent=1)
    bad = [t.name for t in all_turns if t.short]
    print(f'{len(all_turns) - len(bad)} of {len(all_turns)} cases pass' + (f'; short: {" ".join(bad)}' if bad else ''))
    return 1 if bad else 0
