"""The case `convert`: quantised gguf files from both builds, byte for byte, or as near to the source."""
import os

import numpy as np

from . import measure
from .gguf_file import ALIGNMENT, F32, Gguf

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


def difference(a, b):
    """What differs between two gguf files, None where nothing does that the client's own threads do not decide.

    The client writes tensors in the order in which its loader threads finish them.
    """
    if equal_files(a, b):
        return None
    x, y = Gguf(a), Gguf(b)
    if x.keys != y.keys:
        return 'the keys differ'
    if x.tensors.keys() != y.tensors.keys():
        return 'the names of the tensors differ'
    for name, (kind, shape, data) in x.tensors.items():
        other_kind, other_shape, other = y.tensors[name]
        if (kind, shape) != (other_kind, other_shape):
            return f'{name.decode()}: type or shape differ'
        # The last tensor of a file may go without padding.
        n = min(data.size, other.size)
        at = np.flatnonzero(data[:n] != other[:n])
        if at.size or abs(data.size - other.size) >= ALIGNMENT:
            return f'{name.decode()}: {at.size} of {n} bytes differ' + (f', the first at {at[0]}' if at.size else '')
    return None


def decoded(driver, path):
    """The gguf or safetensors file with every value as f32, decoded by the client on its own ggml."""
    out = path + '.f32.gguf'
    result = measure.run(driver, ['convert', '--model', path, '--type', 'f32'], out)
    if not result.ok:
        raise RuntimeError(result.errors[0])
    file = Gguf(out)
    os.remove(out)
    os.remove(out + '.log')
    return file


def squared_error(truth, other):
    """Over all tensors that were converted, and so are f32 in both files."""
    total = 0.0
    for name, (kind, _, _) in truth.tensors.items():
        if kind == F32 and other.tensors[name][0] == F32:
            total += float(np.sum((truth.f32(name).astype(np.float64) - other.f32(name)) ** 2))
    return total


def compare(own_driver, source, kind, ours, own):
    """(whether the files are equal, what is wrong or None)"""
    apart = difference(ours, own)
    if apart is None:
        return True, None
    if kind not in {t for _, t in NEAR} or os.path.getsize(ours) != os.path.getsize(own):
        return False, f'{kind}: {apart}'
    truth = decoded(own_driver, source)
    mine, theirs = (squared_error(truth, decoded(own_driver, p)) for p in (ours, own))
    if mine > MOST_ERROR * theirs:
        return False, f'{kind}: squared error {mine:.6g}, on its own ggml {theirs:.6g}'
    return False, None
