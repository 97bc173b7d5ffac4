"""Runs cases with the probe, fused and not, and compares. The command behind tests/clients/run fusion."""
import argparse
import contextlib
import os
import re
import sys
from dataclasses import dataclass, field, replace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from suite import cases, measure, models  # noqa: E402

CASES = ['zimage-f16', 'sd1-taesd']
# How storages pack depends on their sizes, so one size shows little: more of them, in one step.
SIZES = {'zimage-f16': [64, 128, 192, 256, 320, 448, 512], 'sd1-taesd': [128, 192]}
BUFFER = re.compile(r'probe: buffer (\d+) nodes (\d+) gallocr (\d+) unfused (\d+) fused (\d+)')
ALONE = re.compile(r'probe: alone (\d+) (\S+) (\d+)')
RUN = re.compile(r'probe: run (\d+) buffer (\d+) launches (\d+) gone (\d+) gone_bytes (\d+) views (\d+)')
NAME = re.compile(r'(\S+) compute buffer size:')
ROW = '{:<10} {:>6} {:>13} {:>13} {:>11} {:>9} {:>6} {:>13} {:>6}'
HEAD = ROW.format('graph', 'nodes', 'unfused B', 'fused B', 'change B', 'launches', 'gone', 'their B', 'views')


# title, name of runs, environment
BUILDERS = [('the graphs as the client builds them', '', {}),
            ('the same with ggml_mul and ggml_add in the place of the builders that work in place', '-plain', {'PROBE_PLAIN': '1'})]


@dataclass
class Graph:
    """A graph, by the name that the client gives it; sizes in bytes."""
    name: str
    nodes: int
    gallocr: int
    unfused: int
    fused: int
    alone: dict = field(default_factory=dict)   # rule -> compute buffer with this rule only
    buffer: int = 0
    launches: int = 0
    gone: int = 0
    gone_bytes: int = 0
    views: int = 0


def read(log):
    """The graphs by name, of each name the one with the most nodes, and what the probe complains of."""
    by_number, errors, fresh = {}, [], None
    with open(log, encoding='utf-8', errors='replace') as f:
        for line in f:
            if m := BUFFER.search(line):
                number, *figures = map(int, m.groups())
                fresh = by_number[number] = Graph(f'graph {number}', *figures)
            elif m := ALONE.search(line):
                by_number[int(m[1])].alone[m[2]] = int(m[3])
            elif (m := NAME.search(line)) and fresh:
                # the client's own words on the buffer that the probe has just measured
                fresh.name, fresh = m[1], None
            elif (m := RUN.search(line)) and int(m[1]) in by_number:
                g = by_number[int(m[1])]
                _, g.buffer, g.launches, g.gone, g.gone_bytes, g.views = map(int, m.groups())
            elif line.startswith('probe: error'):
                errors.append(line.strip())
    named = {}
    for g in by_number.values():
        if g.name not in named or named[g.name].nodes < g.nodes:
            named[g.name] = g
    return named, errors


@contextlib.contextmanager
def environment(changes):
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@dataclass
class Outcome:
    picture: bytes
    graphs: dict
    errors: list


class Bench:
    def __init__(self, driver, probe, files, folder):
        self.driver, self.probe, self.files, self.folder = driver, probe, files, folder

    def run(self, case, which, probe=True, **env):
        args = [case.kind, '--threads', '2', *case.options]
        for option, file in case.files.items():
            args += ['--' + option, self.files.path(file)]
        out = os.path.join(self.folder, f'fusion-{case.name}-{which}')
        with environment({**env, 'LD_PRELOAD': self.probe} if probe else env):
            result = measure.run(self.driver, args, out)
        graphs, errors = read(out + '.log')
        picture = b''
        if result.ok:
            with open(out, 'rb') as f:
                picture = f.read()
        return Outcome(picture, graphs, [f'{which}: {e}' for e in result.errors + errors])

    def judge(self, case, builders=BUILDERS):
        """Prints the figures of a case; gives what falls short."""
        client = self.run(case, 'client', probe=False)
        short = client.errors
        for title, which, env in builders:
            print(f'\n{case.name}: {title}')
            apart = self.run(case, 'apart' + which, GGML_EXT_FORBID='*', **env)
            fused = self.run(case, 'fused' + which, **env)
            for words, one in (('forbidden', apart), ('fused', fused)):
                short += one.errors
                if one.picture != client.picture:
                    short.append(f'{title}, {words}: the picture differs from the one without the probe')
            short += [f'{title}: {line}' for line in compare(apart.graphs, fused.graphs)]
        return short


def compare(apart, fused):
    print(HEAD)
    for g in fused.values():
        print(ROW.format(g.name, g.nodes, g.unfused, g.fused, f'{g.fused - g.unfused:+}' if g.fused != g.unfused else '0', g.launches,
                         g.gone, g.gone_bytes, g.views))
        for rule, size in g.alone.items():
            if size != g.unfused:
                print(f'{"":>12}{rule} alone: {size} B, {size - g.unfused:+}')
        if g.fused > g.unfused:
            yield f'{g.name}: the compute buffer is larger where it is fused'
        if g.buffer > g.fused:
            yield f'{g.name}: measured {g.fused} bytes, allocated {g.buffer}'
    sys.stdout.flush()
    if not any(g.launches for g in fused.values()):
        yield 'nothing was fused'
    if not any(g.gone + g.views for g in fused.values()):
        yield 'every node has memory'
    if set(apart) != set(fused):
        yield f'not the same graphs: {" ".join(apart)}; {" ".join(fused)}'
    for g in apart.values():
        if g.launches or g.gone or g.views:
            yield f'{g.name}: something was fused although it was forbidden'


def main():
    p = argparse.ArgumentParser(prog='tests/clients/run fusion')
    p.add_argument('case', nargs='*')
    p.add_argument('--plan')
    p.add_argument('--cache')
    p.add_argument('--runs')
    p.add_argument('--driver')
    p.add_argument('--probe')
    args = p.parse_args()
    unknown = [c for c in args.case if c not in CASES]
    if unknown or args.plan and len(args.case) > 1:
        p.error(f'the cases are {" ".join(CASES)}; --plan takes one')
    os.makedirs(args.runs, exist_ok=True)
    bench = Bench(args.driver, args.probe, models.Models(args.cache, None), args.runs)
    chosen = [c for c in cases.CASES if c.name in (args.case or CASES[:1 if args.plan else None])]
    short = []
    if args.plan:
        if os.path.exists(args.plan):
            os.remove(args.plan)
        short = bench.run(chosen[0], 'plan', PROBE_PLAN=os.path.abspath(args.plan)).errors
        if not os.path.exists(args.plan):
            short.append(f'{args.plan} was not written')
    else:
        print('compute buffers in bytes; gone: nodes without memory, and the bytes of all of them; views: nodes without memory that own none')
        for case in chosen:
            found = bench.judge(case)
            for size in SIZES[case.name]:
                other = replace(case, name=f'{case.name}-{size}', options=['--size', str(size), '--steps', '1'])
                found += [f'{size} x {size}, {line}' for line in bench.judge(other, BUILDERS[:1])]
            print(f'{case.name}: ' + ('falls short' if found else 'passes; all pictures are equal byte for byte'), flush=True)
            short += [f'{case.name}, {line}' for line in found]
    for line in short:
        print(f'   SHORT  {line}')
    return 1 if short else 0


if __name__ == '__main__':
    sys.exit(main())
