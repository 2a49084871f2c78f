"""Numbers that need no file: element i of a tensor is a hash of the tensor's name and i.

    seed = FNV-1a 64 of the name's UTF-8 bytes
    z    = seed + (i + 1) * 0x9E3779B97F4A7C15          (all arithmetic modulo 2^64)
    z    = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z    = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z    =  z ^ (z >> 31)                               (SplitMix64)
    x    = (z >> 40) * 2^-23 - 1                        in [-1, 1), exact in f32

The top 24 bits become the number, so nothing is rounded and every language gives the same bits.
`fill.rs` is the same function for the Rust tests.
"""

import numpy as np

GAMMA = np.uint64(0x9E3779B97F4A7C15)
CHUNK = 1 << 20


def seed_of(name: str) -> int:
    """FNV-1a, 64 bits, of the name's UTF-8 bytes."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def fill(name: str, shape) -> np.ndarray:
    """The float32 tensor of this name and shape, uniform in [-1, 1), in row-major order."""
    out = np.empty(int(np.prod(shape, dtype=np.int64)), np.float32)
    seed = np.uint64(seed_of(name))
    with np.errstate(over="ignore"):
        for start in range(0, out.size, CHUNK):
            stop = min(start + CHUNK, out.size)
            z = seed + np.arange(start + 1, stop + 1, dtype=np.uint64) * GAMMA
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z ^= z >> np.uint64(31)
            out[start:stop] = (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    return out.reshape(shape)
