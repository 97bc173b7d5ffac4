"""The command behind tests/clients/run llama: logits, greedy tokens, embeddings and times.

Against quantised weights both builds round activations to 8 bits, and a difference in the last bit of one grows from layer to
layer: the client on its own ggml differs from itself by more than the bound when it computes attention in its other way. So
logits further apart pass where ours are no further than its own, in the worse of its two ways, from those of the same weights
widened to f16, where nothing is rounded to 8 bits; embeddings where they are hardly further apart (SCATTER) than its own from itself.
"""
import os
import sys
from dataclasses import dataclass, field

import numpy as np

from . import conversions, measure, models, turns

MOST_NMSE = 1e-4
MOST_COSINE = 1e-3
# Both distances are the largest of a few dozen, of the same spread: one may be above the other by this factor.
SCATTER = 1.5
# Two tokens whose logits lie nearer than this many standard deviations of the two builds' difference count as a tie.
TIE_DEVIATIONS = 1


@dataclass
class Case:
    name: str
    about: str
    kind: str
    model: str
    options: list = field(default_factory=list)
    threads: int = 2


CASES = [
    Case('gemma', 'gemma-3-270m Q4_K_M: 64-token prompt, 32 tokens; flash attention', 'generate', 'gemma'),
    Case('gemma-plain', 'without flash attention', 'generate', 'gemma', ['--flash', '0']),
    Case('gemma-1', 'one thread', 'generate', 'gemma', threads=1),
    Case('gemma-long', '150-token prompt, 100 tokens', 'generate', 'gemma', ['--prompt', '150', '--steps', '100']),
    Case('gemma-wide', 'its weights widened to f16: no rounding of activations', 'generate', 'gemma-wide'),
    Case('gemma-pool', 'threads that the program made (ggml_threadpool_new)', 'generate', 'gemma', ['--pool']),
    Case('minilm-f16', 'all-MiniLM-L6-v2 f16: embeddings of sentences', 'embed', 'minilm-f16'),
    Case('minilm-q8_0', 'the same, q8_0', 'embed', 'minilm-q8_0'),
    Case('minilm-1', 'the same, f16 without flash attention, one thread', 'embed', 'minilm-f16', ['--flash', '0'], 1),
]
QUICK = ['gemma', 'minilm-f16', 'minilm-q8_0']
STAGES = {'generate': ['prompt', 'generate'], 'embed': ['text', 'sentence']}
STEP = np.dtype([('first', '<i4'), ('logit', '<f4'), ('second', '<i4'), ('second_logit', '<f4')])


def read_generation(path):
    data = np.fromfile(path, np.uint8)
    vocabulary, steps = data[:8].view('<i4')
    return data[8:8 + 4 * vocabulary].view('<f4').astype(np.float64), data[8 + 4 * vocabulary:].view(STEP)[:steps]


def nmse(a, b):
    return float(np.sum((a - b) ** 2) / np.sum(b ** 2))


def compare_generations(case, ours_path, own_path, other_path, exact_path):
    (a, ours), (b, own) = read_generation(ours_path), read_generation(own_path)
    apart = nmse(a, b)
    case.near = f'NMSE of the logits {apart:.1e}'
    if not apart <= MOST_NMSE:
        exact = read_generation(exact_path)[0]
        mine, its, other = (nmse(x, exact) for x in (a, b, read_generation(other_path)[0]))
        case.near += f' (to widened weights {mine:.1e}, its own {its:.1e} and {other:.1e})'
        if not mine <= max(its, other):
            case.short.append(f'NMSE of the logits {apart:.2e}, at most {MOST_NMSE:.0e} wanted')
    if len(ours) != len(own):
        case.short.append(f'{len(ours)} steps, on its own ggml {len(own)}')
        return
    apart = np.flatnonzero(ours['first'] != own['first'])
    if not apart.size:
        case.near += f', {len(own)} equal tokens'
        return
    # After the first token that differs the two texts are not the same any more.
    at = apart[0]
    margins = [float(s[at]['logit'] - s[at]['second_logit']) for s in (ours, own)]
    least = TIE_DEVIATIONS * float(np.sqrt(np.mean((a - b) ** 2)))
    case.near += f', {at} equal tokens, then {ours[at]["first"]} (margin {margins[0]:.4f}) for {own[at]["first"]} ({margins[1]:.4f})'
    swapped = ours[at]['first'] == own[at]['second'] and ours[at]['second'] == own[at]['first']
    if swapped and max(margins) <= least:
        case.near += f': a tie, under {least:.4f}'
    else:
        case.short.append(f'token {at} differs and is no tie (margins up to {least:.4f})')


def read_embeddings(path):
    data = np.fromfile(path, np.uint8)
    size, count = data[:8].view('<i4')
    return data[8:].view('<f4').reshape(count, size).astype(np.float64)


def compare_embeddings(case, ours_path, own_path, other_path, _):
    ours, own, other = (read_embeddings(p) for p in (ours_path, own_path, other_path))
    if ours.shape != own.shape:
        case.short.append(f'{ours.shape} values, on its own ggml {own.shape}')
        return
    across = [float((1 - np.sum(e * own, axis=1)).max()) for e in (ours, other)]
    pairs = [float(np.abs(e @ e.T - own @ own.T).max()) for e in (ours, other)]
    bound(case, 'each 1 - cosine with its like', across[0], MOST_COSINE, across[1])
    bound(case, 'cosines of pairs within', pairs[0], MOST_COSINE, pairs[1])


def bound(case, what, distance, most, itself):
    """itself: the distance of the client on its own ggml from itself, which excuses where it is above `most`."""
    case.near += f'{", " if case.near else ""}{what} {distance:.1e}'
    if distance <= most:
        return
    case.near += f' (its own from itself {itself:.1e})'
    if not distance <= SCATTER * itself:
        case.short.append(f'{what} {distance:.2e}, at most {most:.0e} wanted')


def same_for_threads(bench, case, args, result):
    """One and two threads give the same bytes."""
    other = 1 if case.threads == 2 else 2
    path = os.path.join(bench.folder, f'{case.name}-threads{other}')
    run = measure.run(bench.drivers['ours'], [*args, '--threads', str(other), '--repeat', '1'], path)
    if not run.ok:
        result.short.append(f'with {other} threads: {run.errors[0]}')
    elif not conversions.equal_files(path, result.out('ours')):
        result.short.append('other bytes with another number of threads')


def judge(bench, files, case):
    args = [case.kind, '--model', files.path(case.model), *case.options]
    result = bench.take(case.name, [*args, '--threads', str(case.threads)], STAGES[case.kind])
    if result.ok:
        compare = compare_generations if case.kind == 'generate' else compare_embeddings
        other, exact = (os.path.join(bench.folder, f'{case.name}-{what}') for what in ('other', 'exact'))
        # The client's other way of attention, and the same weights without 8-bit activations, on its own ggml.
        flash = '1' if '--flash' in case.options else '0'
        once = ['--threads', str(case.threads), '--repeat', '0']
        runs = [measure.run(bench.drivers['own'], [*args, *once, '--flash', flash], other, 'passive')]
        if case.model == 'gemma':
            wide = [case.kind, '--model', files.path('gemma-wide'), *case.options, *once, '--steps', '1']
            runs.append(measure.run(bench.drivers['own'], wide, exact, 'passive'))
        for run in runs:
            result.short += [f'on its own ggml: {line}' for line in run.errors[:1]]
        if all(run.ok for run in runs):
            compare(result, result.out('ours'), result.out('own'), other, exact if case.model == 'gemma' else other)
        same_for_threads(bench, case, args, result)
    return result


def main():
    args, chosen = turns.arguments('llama', CASES, QUICK)
    files = models.Models(args.cache, args.own)
    bench = turns.Bench({'ours': args.ours, 'own': args.own}, args.runs, args.rounds)
    for case in chosen:
        files.path(case.model)
    turns.head()
    done = []
    for case in chosen:
        done.append(judge(bench, files, case))
        turns.show(done[-1])
    return turns.finish(done, args.report)


if __name__ == '__main__':
    sys.exit(main())
