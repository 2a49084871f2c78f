"""Writes edges.txt: functions of f32 and f64 at the edges of their ranges, rounded correctly.

    python make_edges.py > edges.txt            needs mpmath

Each line is a function, a dtype, its arguments and its result, all of them as bits. Results come from mpmath with as
many digits as the largest angle needs; what is no number, zero or infinite is as C has it.
"""

import math
import random
import struct

from mpmath import mp, mpf

mp.prec = 2400

FORMATS = {"f32": ("<f", "<I", 24, -149, 8), "f64": ("<d", "<Q", 53, -1074, 16)}


def rounded(value, dtype):
    """The nearest float, of two the even one, as a Python float."""
    _, _, digits, least, _ = FORMATS[dtype]
    if value == 0:
        return 0.0
    exponent = max(int(mp.floor(mp.log(abs(value), 2))) - digits + 1, least)
    count = int(mp.nint(mp.ldexp(value, -exponent)))
    try:
        return math.ldexp(count, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def bits(value, dtype):
    pack, unpack, *_, width = FORMATS[dtype]
    try:
        raw = struct.pack(pack, value)
    except OverflowError:
        raw = struct.pack(pack, math.copysign(math.inf, value))
    return f"{struct.unpack(unpack, raw)[0]:0{width}x}"


def at_ends(below, above, zero=lambda x: x):
    """What a function is at infinities, and at zeros with a sign."""
    return lambda x: zero(x) if x == 0 else (above if x > 0 else below)


NAN, INF = math.nan, math.inf
# By function: on finite numbers that are not zero, and elsewhere.
UNARY = {
    "exp": (mp.exp, at_ends(0.0, INF, lambda _: 1.0)),
    "log": (lambda x: mp.log(x) if x > 0 else None, at_ends(NAN, INF, lambda _: -INF)),
    "sqrt": (lambda x: mp.sqrt(x) if x > 0 else None, at_ends(NAN, INF)),
    "rsqrt": (
        lambda x: 1 / mp.sqrt(x) if x > 0 else None,
        at_ends(NAN, 0.0, lambda x: math.copysign(INF, x)),
    ),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), at_ends(0.0, 1.0, lambda _: 0.5)),
    "tanh": (mp.tanh, at_ends(-1.0, 1.0)),
    "erf": (mp.erf, at_ends(-1.0, 1.0)),
    "sin": (mp.sin, at_ends(NAN, NAN)),
    "cos": (mp.cos, at_ends(NAN, NAN, lambda _: 1.0)),
    "tan": (mp.tan, at_ends(NAN, NAN)),
    "asin": (lambda x: mp.asin(x) if abs(x) <= 1 else None, at_ends(NAN, NAN)),
    "acos": (lambda x: mp.acos(x) if abs(x) <= 1 else None, at_ends(NAN, NAN, lambda _: math.pi / 2)),
    "atan": (mp.atan, at_ends(-math.pi / 2, math.pi / 2)),
    "sinh": (mp.sinh, at_ends(-INF, INF)),
    "cosh": (mp.cosh, at_ends(INF, INF, lambda _: 1.0)),
    "asinh": (mp.asinh, at_ends(-INF, INF)),
    "acosh": (lambda x: mp.acosh(x) if x >= 1 else None, at_ends(NAN, INF, lambda _: NAN)),
    "atanh": (lambda x: mp.atanh(x) if abs(x) < 1 else None, at_ends(NAN, NAN)),
}


def unary(name, x, dtype):
    finite, elsewhere = UNARY[name]
    if math.isnan(x):
        return NAN
    if x == 0 or math.isinf(x):
        return elsewhere(x)
    # Beyond these all is decided, and the numbers would have more digits than there is memory.
    if name in ("exp", "sigmoid", "tanh", "erf", "sinh", "cosh") and abs(x) > 1e4:
        return elsewhere(math.copysign(INF, x))
    if name == "atanh" and abs(x) == 1:
        return math.copysign(INF, x)
    value = finite(mpf(x))
    return NAN if value is None else rounded(value, dtype)


def power(x, y, dtype):
    if x == 0 and y < 0:
        is_odd = math.isfinite(y) and y == math.floor(y) and math.fmod(y, 2) != 0
        return math.copysign(INF, x) if is_odd else INF
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return math.pow(x, y)
    if x < 0 and y != math.floor(y):
        return NAN
    sign = -1.0 if x < 0 and math.fmod(y, 2) != 0 else 1.0
    size = mpf(y) * mp.log(mpf(abs(x)))
    if abs(size) > 1e4:
        return sign * (INF if size > 0 else 0.0)
    return sign * rounded(mp.exp(size), dtype)


def arguments(dtype):
    """Where something happens, and numbers of all sizes."""
    is_f32 = dtype == "f32"
    digits, greatest = (24, 128) if is_f32 else (53, 1024)
    one = math.ldexp(1.0, 1 - digits)
    normal = math.ldexp(1.0, 2 - greatest)
    values = [0.0, math.ldexp(1.0, FORMATS[dtype][3]), normal - math.ldexp(1.0, FORMATS[dtype][3]), normal]
    values += [one, one / 2, 1.0, 1 + one, 1 - one / 2, 2.0, (2 - one) * math.ldexp(1.0, greatest - 1), INF]
    # Borders between the parts of the functions.
    values += [0.25, 0.4999999, 0.5, 0.625, 0.6249999, 0.92, 0.9199999, 0.70710678, 1.41421356, 3.9999998, 4.0, 6.0, 9.1]
    values += [0.4142135, 0.4142137, 2.4142134, 2.4142137, 1.4999999, 1.5, 0.9999, 1.0001, 1.34217728e8, 1.3421774e8]
    # Overflow, underflow, and the last result that is not zero.
    values += [87.33, 88.72, 88.73, 103.2, 103.97, 104.1, 708.39, 709.78, 709.79, 744.44, 745.13, 745.14]
    values += [89.41, 89.42, 699.9, 700.1, 710.47, 710.48]
    # Near multiples of a quarter turn, the nearest that there are, and large angles.
    values += [k * math.pi / 2 for k in range(1, 9)] + [22.0, 355.0, 103993.0, 710.0, 8192.0, 1e5, 1.7e7, 2e7, 1e10, 1e22]
    values += [math.ldexp(16367173.0, 72)] if is_f32 else [math.ldexp(6381956970095103.0, 797), math.ldexp(1.0, 1000)]
    numbers = random.Random(dtype)
    values += [math.ldexp(numbers.uniform(1, 2), numbers.randrange(-12, 8)) for _ in range(60)]
    values += [math.ldexp(numbers.uniform(1, 2), numbers.randrange(-greatest + 2, greatest)) for _ in range(24)]
    values = [struct.unpack("<f", struct.pack("<f", x))[0] if is_f32 and x < 3.4e38 else x for x in values]
    return [sign * x for x in values for sign in (1.0, -1.0)] + [NAN]


def powers(dtype):
    numbers = random.Random("power " + dtype)
    greatest = 128 if dtype == "f32" else 1024
    edges = [0.0, 1.0, 0.5, 2.0, 3.0, 0.75, math.ldexp(1.0, 2 - greatest), math.ldexp(1.0, greatest - 1), INF]
    bases = [sign * x for x in edges for sign in (1.0, -1.0)] + [NAN]
    exponents = [sign * x for x in [0.0, 0.5, 1.0, 2.0, 3.0, 1.5, 7.0, 64.0, 1e9, 2.0**53 - 1, INF] for sign in (1.0, -1.0)]
    pairs = [(x, y) for x in bases for y in exponents + [NAN]]
    for _ in range(150):
        x = math.ldexp(numbers.uniform(1, 2), numbers.randrange(-20, 20))
        pairs.append((x, numbers.uniform(-1, 1) * 0.69 * greatest / abs(math.log(x))))
        pairs.append((1 + numbers.uniform(-1, 1) * 2.0**-10, numbers.uniform(-1, 1) * 2.0**16))
    if dtype == "f32":
        pairs = [tuple(struct.unpack("<f", struct.pack("<f", v))[0] for v in pair) for pair in pairs]
    return pairs


for dtype in FORMATS:
    for name in UNARY:
        for x in arguments(dtype):
            print(name, dtype, bits(x, dtype), bits(unary(name, x, dtype), dtype))
    for x, y in powers(dtype):
        print("power", dtype, bits(x, dtype), bits(y, dtype), bits(power(x, y, dtype), dtype))
