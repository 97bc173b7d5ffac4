"""The command behind tests/clients/run whisper: transcripts and times."""
import difflib
import os
import re
import sys
from dataclasses import dataclass, field

from . import conversions, measure, models, turns


@dataclass
class Case:
    name: str
    about: str
    speech: str
    options: list = field(default_factory=list)
    threads: int = 2
    beams: bool = False
    # Words of a hundred that the two may hear differently: beams are drawn by chance, and in long speech two words are now and then
    # as likely as each other to the last bits.
    other_words: int = 0


CASES = [
    Case('short', 'Whisper tiny.en, one sentence', 'speech-short'),
    Case('plain', 'without flash attention', 'speech-short', ['--flash', '0']),
    Case('beams', 'five beams', 'speech-short', ['--beams', '5'], beams=True, other_words=6),
    Case('one-thread', 'one thread', 'speech-short', threads=1),
    Case('long', 'three windows of half a minute', 'speech-long', other_words=2),
]
QUICK = ['short']
# Of the words that were spoken; a synthetic voice is not what the model was trained on.
LEAST_WORDS = 0.6


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def different(ours, own):
    """Words of either that have no like in the other, in order."""
    blocks = difflib.SequenceMatcher(None, ours, own, autojunk=False).get_matching_blocks()
    return max(len(ours), len(own)) - sum(b.size for b in blocks)


def judge(bench, files, case):
    args = ['transcribe', '--model', files.path('whisper'), '--in', files.path(case.speech), *case.options]
    timed = ['all', 'encode', 'beams' if case.beams else 'decode']
    result = bench.take(case.name, [*args, '--threads', str(case.threads)], timed)
    if not result.ok:
        return result
    ours, own = (open(result.out(side), encoding='utf-8').read() for side in ('ours', 'own'))
    spoken = set(words(models.SPEECH[case.speech]))
    heard, own_heard = (len(spoken & set(words(text))) for text in (ours, own))
    share = heard / len(spoken)
    result.near = f'{len(words(ours))} words, {100 * share:.0f} % of those spoken'
    others = different(words(ours), words(own))
    if ours == own:
        result.near += ', the same transcript'
    elif case.other_words and 100 * others <= case.other_words * len(words(own)):
        result.near += f', {others} of {len(words(own))} other than its own ggml hears'
    else:
        result.short.append(f'other transcript:\n{ours}on its own ggml:\n{own}')
    # A word that is heard otherwise may be one that was spoken; where more are lost, ours hears worse.
    if heard < own_heard - 1:
        result.short.append(f'{heard} of the {len(spoken)} spoken words, its own ggml hears {own_heard}')
    if share < LEAST_WORDS:
        result.short.append('too few of the spoken words: it proves nothing')
    other = 1 if case.threads == 2 else 2
    path = os.path.join(bench.folder, f'{case.name}-threads{other}')
    run = measure.run(bench.drivers['ours'], [*args, '--threads', str(other)], path)
    if not run.ok:
        result.short.append(f'with {other} threads: {run.errors[0]}')
    elif not conversions.equal_files(path, result.out('ours')):
        result.short.append('another transcript with another number of threads')
    return result


def main():
    args, chosen = turns.arguments('whisper', CASES, QUICK)
    files = models.Models(args.cache, None)
    bench = turns.Bench({'ours': args.ours, 'own': args.own}, args.runs, args.rounds)
    for case in chosen:
        files.path('whisper')
        files.path(case.speech)
    turns.head()
    done = []
    for case in chosen:
        done.append(judge(bench, files, case))
        turns.show(done[-1])
    return turns.finish(done, args.report)


if __name__ == '__main__':
    sys.exit(main())
