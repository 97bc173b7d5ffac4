"""Reads pictures and measures how near two are."""
import math

import numpy as np


def read_ppm(path):
    with open(path, 'rb') as f:
        magic, size, depth, data = f.read().split(b'\n', 3)
    if magic != b'P6' or depth != b'255':
        raise ValueError(f'{path}: not a binary 8-bit PPM')
    width, height = map(int, size.split())
    return np.frombuffer(data, np.uint8).reshape(height, width, 3)


def psnr(a, b):
    """dB, infinite for equal pictures, minus infinite for pictures of different sizes."""
    if a.shape != b.shape:
        return -math.inf
    error = np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)
    return math.inf if error == 0 else 10 * math.log10(255 ** 2 / error)


def has_content(a):
    """Whether the picture could show a fault at all: neither flat nor clipped nearly everywhere."""
    clipped = np.mean((a == 0) | (a == 255))
    return a.astype(np.float64).std() > 8 and clipped < 0.5
