"""One case: runs both builds in turn and says where it falls short."""
import math
import os
from dataclasses import dataclass, field

from . import conversions, measure, pictures

MOST_MEMORY = 1.05
# The client prints sizes rounded to this many MB.
BUFFER_ROUNDING = 0.01


@dataclass
class Verdict:
    name: str
    ours: list = field(default_factory=list)     # runs with two threads
    own: list = field(default_factory=list)
    near: str = ''
    short: list = field(default_factory=list)    # what falls short, in words

    def best(self, which):
        done = [r.seconds for r in getattr(self, which) if r.ok]
        return min(done) if done else math.nan

    def peak(self, which):
        done = [r.peak_kib for r in getattr(self, which) if r.ok]
        return max(done) if done else math.nan

    def buffers(self, which):
        out = {}
        for r in getattr(self, which):
            for name, mb in r.buffers.items():
                out[name] = max(out.get(name, 0.0), mb)
        return out

    @property
    def speed(self):
        return self.best('own') / self.best('ours')

    @property
    def memory(self):
        return self.peak('ours') / self.peak('own')


class Bench:
    def __init__(self, ours, own, models, folder, rounds, openmp, quick):
        self.drivers = {'ours': ours, 'own': own}
        self.models, self.folder, self.rounds, self.openmp, self.quick = models, folder, rounds, openmp, quick

    def start(self, which, args, tag):
        policy = self.openmp if which == 'own' else None
        return measure.run(self.drivers[which], args, os.path.join(self.folder, f'{tag}-{which}'), policy)

    def arguments(self, case, changes=None):
        args = [case.kind]
        for option, name in {**case.files, **(changes or {})}.items():
            args += [f'--{option}', self.models.path(name)]
        return args + case.options

    def judge(self, case):
        verdict = Verdict(case.name)
        if case.kind == 'convert':
            self.conversion(verdict)
        else:
            self.picture(case, verdict)
        for which in ('ours', 'own'):
            for r in getattr(verdict, which):
                for line in r.errors[:1]:
                    verdict.short.append(f'{"" if which == "ours" else "on its own ggml: "}{line}')
        if not any(not r.ok for r in verdict.ours + verdict.own):
            self.figures(case, verdict)
        return verdict

    def picture(self, case, verdict):
        args = self.arguments(case)
        for _ in range(self.rounds):
            verdict.ours.append(self.start('ours', [*args, '--threads', '2'], case.name))
            verdict.own.append(self.start('own', [*args, '--threads', '2'], case.name))
            if not (verdict.ours[-1].ok and verdict.own[-1].ok):
                return
        ours, own = (pictures.read_ppm(r[-1].out) for r in (verdict.ours, verdict.own))
        if not pictures.has_content(own):
            verdict.short.append('the picture is flat or clipped: it proves nothing')
        self.nearness(case, verdict, ours, own)
        single = self.start('ours', [*args, '--threads', '1'], case.name + '-1thread')
        if not single.ok:
            verdict.short.append(f'with one thread: {single.errors[0]}')
        elif not conversions.equal_files(single.out, verdict.ours[-1].out):
            other = pictures.psnr(pictures.read_ppm(single.out), ours)
            verdict.short.append(f'one thread gives other bytes than two ({other:.1f} dB)')

    def nearness(self, case, verdict, ours, own):
        db = pictures.psnr(ours, own)
        verdict.near = f'{db:.1f} dB'
        if db >= case.near_db:
            return
        if case.kind == 'generate':
            changed = self.arguments(case, case.reference)
            if '--type' in changed:
                at = changed.index('--type')
                del changed[at:at + 2]
            reference = self.start('own', [*changed, '--type', 'f32', '--threads', '2'], case.name + '-f32')
            if not reference.ok:
                verdict.short.append(f'f32 run: {reference.errors[0]}')
                return
            exact = pictures.read_ppm(reference.out)
            mine, theirs = pictures.psnr(ours, exact), pictures.psnr(own, exact)
            verdict.near += f' (to f32: {mine:.1f}, own {theirs:.1f})'
            if mine >= theirs:
                return
        verdict.short.append(f'{db:.2f} dB apart, {case.near_db:.0f} wanted')

    def conversion(self, verdict):
        unequal = []
        for model, kind in conversions.pairs(self.quick):
            source = self.models.path(model)
            args = ['convert', '--model', source, '--type', kind]
            runs = {w: self.start(w, args, f'convert-{model}-{kind}.gguf') for w in ('ours', 'own')}
            paths = []
            for which, r in runs.items():
                named = r.out + '.gguf'
                if r.ok:
                    os.replace(r.out, named)
                paths.append(named)
                getattr(verdict, which).append(r)
            if all(r.ok for r in runs.values()):
                equal, wrong = conversions.compare(self.drivers['own'], source, kind, *paths)
                if wrong:
                    verdict.short.append(wrong)
                if not equal:
                    unequal.append(kind)
            for path in paths:
                if os.path.exists(path):
                    os.remove(path)
        verdict.near = 'equal' if not unequal else 'differ: ' + ' '.join(unequal)
        # Summed over the types: as many runs on both sides.
        for which in ('ours', 'own'):
            runs = getattr(verdict, which)
            if runs and all(r.ok for r in runs):
                total = measure.Run(True, sum(r.seconds for r in runs), max(r.peak_kib for r in runs), {}, {}, [], '')
                setattr(verdict, which, [total])

    def figures(self, case, verdict):
        if not verdict.speed >= case.least_speed:
            verdict.short.append(f'speed {verdict.speed:.2f}, at least {case.least_speed:.1f} wanted')
        if not verdict.memory <= MOST_MEMORY:
            verdict.short.append(f'peak memory {verdict.memory:.3f}, at most {MOST_MEMORY} wanted')
        own = verdict.buffers('own')
        for name, mb in verdict.buffers('ours').items():
            if name in own and mb > own[name] + BUFFER_ROUNDING:
                verdict.short.append(f'compute buffer of {name}: {mb} MB, on its own ggml {own[name]} MB')
