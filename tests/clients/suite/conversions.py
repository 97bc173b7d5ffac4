"""The case `convert`: quantised gguf files from both builds, byte for byte, or as near to the source."""
import os

import numpy as np

from . import measure

# (model, type): where the file format leaves no choice, files must be equal in every byte.
EXACT = [('sd1', 'q8_0'), ('zimage-small', 'q4_0'), ('zimage-small', 'q4_1'), ('zimage-small', 'q5_0'),
         ('zimage-small', 'q5_1'), ('zimage-small', 'f32')]
# A K block's scales may be chosen in several ways: sizes must be equal and the error no larger.
NEAR = [('lora', 'q4_K'), ('lora', 'q6_K')]
MOST_ERROR = 1.02


def pairs(quick):
    return EXACT[:2] if quick else EXACT + NEAR


def equal_files(a, b):
    with open(a, 'rb') as f, open(b, 'rb') as g:
        return f.read() == g.read()


def differing(a, b):
    """Offset of the first byte that differs, and how many do."""
    x, y = (np.fromfile(p, np.uint8) for p in (a, b))
    if x.size != y.size:
        return f'{x.size} and {y.size} bytes'
    at = np.flatnonzero(x != y)
    return f'{at.size} of {x.size} bytes differ, the first at {at[0]}'


def decoded(driver, path):
    """All values of a gguf file, decoded by the client on its own ggml, as one f32 array."""
    out = path + '.f32.gguf'
    result = measure.run(driver, ['convert', '--model', path, '--type', 'f32'], out)
    if not result.ok:
        raise RuntimeError(result.errors[0])
    data = np.fromfile(out, np.uint8)
    os.remove(out)
    return data


def tail_error(reference, other):
    """Squared error over the data part of two f32 gguf files of one layout, which lies at their end."""
    n = min(reference.size, other.size) // 4 * 4
    a, b = (x[x.size - n:].view('<f4').astype(np.float64) for x in (reference, other))
    finite = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < 1e4) & (np.abs(b) < 1e4)
    return float(np.sum((a[finite] - b[finite]) ** 2))


def compare(own_driver, source, kind, ours, own):
    """None where all is well, else what is wrong."""
    if equal_files(ours, own):
        return None
    if kind not in {t for _, t in NEAR}:
        return f'{kind}: {differing(ours, own)}'
    if os.path.getsize(ours) != os.path.getsize(own):
        return f'{kind}: {differing(ours, own)}'
    truth = decoded(own_driver, source)
    mine, theirs = (tail_error(truth, decoded(own_driver, p)) for p in (ours, own))
    if mine > MOST_ERROR * theirs:
        return f'{kind}: squared error {mine:.6g}, on its own ggml {theirs:.6g}'
    return None
