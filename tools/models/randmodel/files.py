"""Writers of safetensors and gguf files, a reader of safetensors, and the q8_0 encoding."""
import json
import math
import struct

import numpy as np

SAFETENSORS_TYPES = {'float16': 'F16', 'float32': 'F32', 'int64': 'I64'}
GGUF_F32, GGUF_F16, GGUF_Q8_0 = 0, 1, 8
GGUF_ALIGNMENT = 32
GGUF_U32, GGUF_I32, GGUF_F32_VALUE, GGUF_BOOL, GGUF_STRING, GGUF_ARRAY = 4, 5, 6, 7, 8, 9


def write_safetensors(path, tensors):
    """tensors: (name, array) pairs. Two passes: the header needs every size before the first byte of data."""
    tensors = list(tensors)
    header, at = {}, 0
    for name, array in tensors:
        header[name] = {
            'dtype': SAFETENSORS_TYPES[array.dtype.name],
            'shape': list(array.shape),
            'data_offsets': [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)))
        f.write(text)
        for _, array in tensors:
            f.write(np.ascontiguousarray(array).tobytes())


def read_safetensors(path):
    """name -> array; f16, f32 and i64 only."""
    with open(path, 'rb') as f:
        data = f.read()
    (length,) = struct.unpack_from('<Q', data)
    header = json.loads(data[8:8 + length])
    header.pop('__metadata__', None)
    types = {v: np.dtype(k).newbyteorder('<') for k, v in SAFETENSORS_TYPES.items()}
    found = {}
    for name, entry in header.items():
        if entry['dtype'] not in types:
            raise ValueError(f'{path}: {name} is of type {entry["dtype"]}')
        start, end = (8 + length + at for at in entry['data_offsets'])
        kind = types[entry['dtype']]
        found[name] = np.frombuffer(data, kind, (end - start) // kind.itemsize, start).reshape(entry['shape'])
    return found


def encode_q8_0(array):
    """Rows of f32 in blocks of 32: an f16 step, then 32 signed bytes."""
    blocks = array.astype(np.float32).reshape(-1, 32)
    step = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    with np.errstate(divide='ignore'):
        inverse = np.where(step == 0, np.float32(0), np.float32(1) / step)
    scaled = blocks * inverse
    # Halves go away from zero.
    quants = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    return np.hstack([step.astype('<f2').view(np.uint8).reshape(-1, 2), quants.view(np.uint8)])


def _gguf_string(text):
    data = text.encode()
    return struct.pack('<Q', len(data)) + data


def _gguf_value(value):
    """A key's type and value: text, bool, int as u32, float as f32, list of texts or of ints (i32)."""
    if isinstance(value, str):
        return struct.pack('<I', GGUF_STRING) + _gguf_string(value)
    if isinstance(value, bool):
        return struct.pack('<IB', GGUF_BOOL, value)
    if isinstance(value, int):
        return struct.pack('<II', GGUF_U32, value)
    if isinstance(value, float):
        return struct.pack('<If', GGUF_F32_VALUE, value)
    if isinstance(value[0], str):
        return struct.pack('<IIQ', GGUF_ARRAY, GGUF_STRING, len(value)) + b''.join(map(_gguf_string, value))
    return struct.pack(f'<IIQ{len(value)}i', GGUF_ARRAY, GGUF_I32, len(value), *value)


def write_gguf(path, tensors, architecture, q8_0=False, keys=()):
    """With q8_0, f16 matrices whose rows are whole blocks are encoded; everything else is written as it is.

    tensors: (name, array) pairs, or (name, array, type) with type GGUF_Q8_0 or None.
    keys: (name, value) pairs besides the architecture.
    """
    entries = []
    for name, array, *wanted in tensors:
        kind = GGUF_F16 if array.dtype == np.float16 else GGUF_F32
        data = np.ascontiguousarray(array)
        if q8_0 and kind == GGUF_F16 and array.ndim == 2 and array.shape[1] % 32 == 0:
            wanted = [GGUF_Q8_0]
        if wanted == [GGUF_Q8_0]:
            kind, data = GGUF_Q8_0, encode_q8_0(array)
        entries.append((name, array.shape, kind, data.tobytes()))
    with open(path, 'wb') as f:
        keys = [('general.architecture', architecture), *keys]
        f.write(b'GGUF' + struct.pack('<IQQ', 3, len(entries), len(keys)))
        for name, value in keys:
            f.write(_gguf_string(name) + _gguf_value(value))
        at = 0
        for name, shape, kind, data in entries:
            f.write(_gguf_string(name) + struct.pack('<I', len(shape)))
            f.write(b''.join(struct.pack('<Q', n) for n in reversed(shape)))
            f.write(struct.pack('<IQ', kind, at))
            at += math.ceil(len(data) / GGUF_ALIGNMENT) * GGUF_ALIGNMENT
        f.write(bytes(-f.tell() % GGUF_ALIGNMENT))
        for *_, data in entries:
            f.write(data)
            f.write(bytes(-len(data) % GGUF_ALIGNMENT))
