"""Tensors by name, and the layers that networks are put together from."""
import hashlib
import math

import numpy as np


class Net:
    """A list of named tensors with seeded values.

    Each tensor has a random stream of its own, keyed by (seed, name), so a tensor's bytes depend on nothing else: not on
    the order, not on the other tensors, not on the machine (integers, one f32 multiply-add, one rounding to f16).
    """

    def __init__(self, seed):
        self.seed = seed
        self.specs = {}

    def tensor(self, name, shape, spread, middle=0.0, f32=False):
        """Uniform values in middle +- spread; shape is slowest dimension first."""
        if name in self.specs:
            raise ValueError(f'{name} twice')
        self.specs[name] = (tuple(shape), spread, middle, f32)

    def linear(self, name, inputs, outputs, bias=True, gain=1.0, offset=0.0):
        """A matrix that keeps the variance of its input, times gain squared."""
        self.tensor(f'{name}.weight', (outputs, inputs), gain * math.sqrt(3.0 / inputs))
        if bias:
            self.tensor(f'{name}.bias', (outputs,), 0.02, offset, True)

    def conv(self, name, inputs, outputs, side=3, bias=True, gain=1.0, offset=0.0):
        self.tensor(f'{name}.weight', (outputs, inputs, side, side), gain * math.sqrt(3.0 / (inputs * side * side)))
        if bias:
            self.tensor(f'{name}.bias', (outputs,), 0.02, offset, True)

    def norm(self, name, channels, bias=True):
        self.tensor(f'{name}.weight', (channels,), 0.1, 1.0, True)
        if bias:
            self.tensor(f'{name}.bias', (channels,), 0.05, 0.0, True)

    def values(self):
        """(name, array) pairs, one array in memory at a time."""
        for name, (shape, spread, middle, f32) in self.specs.items():
            count = math.prod(shape)
            key = hashlib.sha256(f'{self.seed} {name}'.encode()).digest()
            words = np.random.PCG64(int.from_bytes(key[:16], 'little')).random_raw((count + 3) // 4)
            ints = words.astype('<u8', copy=False).view('<u2')[:count]
            x = ints.astype(np.float32)
            x -= np.float32(32767.5)
            x *= np.float32(spread / 32767.5)
            x += np.float32(middle)
            yield name, x.reshape(shape) if f32 else x.astype(np.float16).reshape(shape)
