"""Starts the driver and reads what it says."""
import os
import re
import subprocess
import time
from dataclasses import dataclass

BUFFER = re.compile(r'(\S+) compute buffer size: *([0-9.]+) MB')
LIMIT_SECONDS = 900


@dataclass
class Run:
    ok: bool
    seconds: float       # from start to end of the process
    peak_kib: int
    stages: dict         # name -> seconds
    buffers: dict        # graph -> MB of its compute buffer
    errors: list         # lines of the log at level ERROR, or how the process ended
    out: str


def run(driver, args, out, openmp=None):
    """openmp: value of OMP_WAIT_POLICY, None to leave it unset."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('OMP_', 'GOMP_'))}
    if openmp:
        env['OMP_WAIT_POLICY'] = openmp
    if openmp == 'passive':
        env['GOMP_SPINCOUNT'] = '0'
    if os.path.exists(out):
        os.remove(out)
    start = time.monotonic()
    try:
        done = subprocess.run([driver, *args, '--out', out], env=env, capture_output=True, text=True, errors='replace',
                              timeout=LIMIT_SECONDS)
        code, stdout, stderr = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as e:
        code, stdout, stderr = f'timeout of {LIMIT_SECONDS} s', '', (e.stderr or b'').decode(errors='replace')
    seconds = time.monotonic() - start
    with open(out + '.log', 'w', encoding='utf-8') as f:
        f.write(stderr + stdout)

    errors = [line for line in stderr.splitlines() if line.startswith('ERROR') or '[ERROR]' in line]
    if code != 0:
        last = stderr.strip().splitlines()[-1:] or ['']
        errors.append(f'the program ended with {code}: {last[0]}')
    elif not os.path.exists(out):
        errors.append('the program wrote nothing')
    stages, peak, buffers = {}, 0, {}
    for line in stdout.splitlines():
        words = line.split()
        if words[:1] == ['seconds']:
            stages[words[1]] = float(words[2])
        elif words[:1] == ['peak_kib']:
            peak = int(words[1])
    for name, size in BUFFER.findall(stderr):
        buffers[name] = max(buffers.get(name, 0.0), float(size))
    return Run(not errors, seconds, peak, stages, buffers, errors, out)


def best_openmp(driver, args, out):
    """The wait policy under which the client on its own ggml is fastest on this machine, now."""
    times = {}
    for _ in range(2):
        for policy in (None, 'passive', 'active'):
            result = run(driver, args, out, policy)
            if result.ok:
                times[policy] = min(result.seconds, times.get(policy, result.seconds))
    if not times:
        raise RuntimeError(f'{driver} {" ".join(args)} does not run; see {out}.log')
    return min(times, key=times.get), times
