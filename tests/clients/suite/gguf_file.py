"""A small reader of gguf files: keys as raw bytes, tensors by name."""
import struct

import numpy as np

SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, F32 = 8, 9, 0
ALIGNMENT = 32


class Gguf:
    """tensors: name -> (type, shape with the fastest dimension first, bytes up to the next tensor)."""

    def __init__(self, path):
        self.data = np.fromfile(path, np.uint8)
        self.at = 0
        magic, version, tensors, keys = self.take('<4sIQQ')
        if magic != b'GGUF' or version != 3:
            raise ValueError(f'{path}: not a gguf file of version 3')
        self.keys = {}
        for _ in range(keys):
            name = self.string()
            start = self.at
            self.skip_value(self.take('<I')[0])
            self.keys[name] = self.data[start:self.at].tobytes()
        infos = []
        for _ in range(tensors):
            name = self.string()
            shape = self.take(f'<{self.take("<I")[0]}Q')
            kind, offset = self.take('<IQ')
            infos.append((offset, name, kind, shape))
        base = -(-self.at // ALIGNMENT) * ALIGNMENT
        infos.sort()
        ends = [i[0] for i in infos[1:]] + [self.data.size - base]
        self.tensors = {
            name: (kind, shape, self.data[base + offset:base + end])
            for (offset, name, kind, shape), end in zip(infos, ends)
        }

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def string(self):
        (n,) = self.take('<Q')
        self.at += n
        return self.data[self.at - n:self.at].tobytes()

    def skip_value(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            inner, count = self.take('<IQ')
            for _ in range(count):
                self.skip_value(inner)
        else:
            self.at += SCALAR_BYTES[kind]

    def f32(self, name):
        kind, shape, data = self.tensors[name]
        if kind != F32:
            raise ValueError(f'{name} is not f32')
        return data[:4 * int(np.prod(shape))].view('<f4')
