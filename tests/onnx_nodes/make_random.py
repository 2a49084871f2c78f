"""Writes models of one operator at random, with what ONNX Runtime makes of them, in the form of make_suite.py.

Usage: make_random.py FOLDER [SEED]

Every operator of the standard that is imported is drawn some times: its version, element types, ranks, extents,
attributes and which inputs are constants. Where ONNX Runtime has no kernel for a draw, the reference in the onnx wheel
says what is right; where that refuses as well, or the model is not valid, another one is drawn. Which of the two it was
stands in the file `judge` of a case. A case depends on the seed, its operator and its number alone.

Most data are multiples of 1/8, so that sums of products are exact in any order.
"""

import os
import sys
import warnings
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, checker, defs, helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

warnings.filterwarnings("ignore")
np.seterr(all="ignore")
onnxruntime.set_default_logger_severity(4)

F16, F32, F64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
FLOATS = [F32, F32, F32, F64, F16]
INTS = [np.dtype(name) for name in ("int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64")]
NUMBERS = [F32, F32, F32, F64, F16, *INTS[:4], *INTS[:2]]
ALL_NUMBERS = [*FLOATS, *INTS]
BOOL = np.dtype("bool")
EXTENTS = [1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33]
# Operators are known in these versions of the set; ONNX Runtime takes no newer ones, so those that are newer themselves
# are judged by the reference.
OLDEST, NEWEST = 7, 26


class Again(Exception):
    """This draw makes no sense; another one is made."""


class Draw:
    """A model of one node that is being drawn."""

    # Outputs that are left out, and who is to judge.
    unnamed, judge = (), None

    def __init__(self, rng, op):
        self.rng, self.op = rng, op
        self.attrs, self.inputs, self.outputs = {}, [], 1
        since = sorted(s.since_version for s in HISTORY[op])
        newest = max(NEWEST, since[0])
        chosen = self.pick([v for v in since if v <= newest and self.last(since, v) >= OLDEST])
        self.version = int(rng.integers(max(chosen, OLDEST), self.last(since, chosen) + 1))
        # Numbers at the edges now and then.
        self.is_special = self.chance(0.2)

    @staticmethod
    def last(since, version):
        later = [other for other in since if other > version]
        return min([other - 1 for other in later] + [max(NEWEST, version)])

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, part):
        return self.rng.random() < part

    def int(self, low, high):
        """A number from low to high, both of them included."""
        return int(self.rng.integers(low, high + 1))

    def real(self, low, high):
        return float(np.float32(self.rng.uniform(low, high)))

    def extent(self, zero=0.04):
        return 0 if self.chance(zero) else self.pick(EXTENTS)

    def shape(self, low=0, high=5, most=700, zero=0.04):
        while True:
            shape = tuple(self.extent(zero) for _ in range(self.int(low, high)))
            if np.prod(shape, dtype=np.int64) <= most:
                return shape

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, low=0):
        count = self.int(min(low, rank), rank)
        axes = self.rng.permutation(rank)[:count]
        return [int(axis) - (rank if self.chance(0.3) else 0) for axis in axes]

    def attr(self, name, make, part=0.7):
        """An attribute that may be left out; `make` is what makes its value."""
        if self.chance(part):
            value = make() if callable(make) else make
            self.attrs[name] = value

    def data(self, shape, dtype, low=-4.0, high=4.0, special=True):
        """Elements within bounds; some of them at the edges of the type when the draw has such."""
        dtype, size = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        if dtype == BOOL:
            return self.rng.integers(0, 2, shape).astype(BOOL)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            bounds = max(int(np.ceil(low)), info.min), min(int(high), info.max)
            values = self.rng.integers(bounds[0], bounds[1] + 1, shape).astype(dtype)
            edges = [info.min, info.max, info.max // 2]
        else:
            values = (self.rng.integers(int(low * 8), int(high * 8) + 1, shape) / 8).astype(dtype)
            info = np.finfo(dtype)
            edges = [np.inf, -np.inf, np.nan, -0.0, info.max, info.tiny, info.eps, 0.5, -2.5]
        values = np.asarray(values, dtype)
        if special and self.is_special and size:
            flat = values.reshape(-1)
            for place in self.rng.integers(0, size, max(1, size // 5)):
                flat[place] = self.pick(edges)
        return values

    def give(self, value, constant=0.15):
        """An input; it is a constant with that probability. None leaves it out."""
        self.inputs.append((value, value is not None and self.chance(constant)))

    def constant(self, value, dtype=np.int64):
        self.give(None if value is None else np.asarray(value, dtype), 1.0)


def broadcast(draw, count, most=700):
    """Shapes that are broadcast to one, from each side."""
    whole = draw.shape(most=most)
    shapes = []
    for number in range(count):
        own = tuple(1 if extent and draw.chance(0.25) else extent for extent in whole)
        shapes.append(own[draw.int(0, len(own)) if draw.chance(0.4) and number else 0:])
    order = draw.rng.permutation(count)
    return [shapes[place] for place in order]


DRAWS = {}


def draws(*ops, times=5):
    def add(function):
        for op in ops:
            DRAWS[op] = (function, times)
        return function
    return add


@draws("Abs", "Neg", "Sign", "Relu", times=4)
def unary_number(d):
    signed = [t for t in NUMBERS if t.kind != "u"]
    dtype = d.pick(NUMBERS if d.op in ("Abs", "Sign") else signed)
    special = not (dtype.kind == "i" and d.op in ("Abs", "Neg"))
    d.give(d.data(d.shape(), dtype, special=special))


@draws("Ceil", "Floor", "Round", "Erf", "Exp", "Sigmoid", "Tanh", "Softplus", "Softsign", "Mish", "HardSwish",
       "Reciprocal", "Cos", "Sin", "Sqrt", "Log", "IsNaN", "Tan", "Atan", "Sinh", "Cosh", "Asinh", times=3)
def unary_float(d):
    low = 0 if d.op in ("Sqrt", "Log") and not d.is_special else -4
    if d.op in ("Cos", "Sin", "Tan"):
        d.is_special = False
    d.give(d.data(d.shape(), d.pick(FLOATS), low))


@draws("Acos", "Acosh", "Asin", "Atanh", times=3)
def bounded_float(d):
    low, high = (1, 8) if d.op == "Acosh" else (-1, 1)
    d.give(d.data(d.shape(), d.pick(FLOATS), low, high, special=False))


@draws("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", times=4)
def of_bits(d):
    unsigned = [t for t in INTS if t.kind == "u"]
    dtype = d.pick(unsigned if d.op == "BitShift" else INTS)
    left, right = broadcast(d, 2)
    d.give(d.data(left, dtype, -100, 100))
    if d.op == "BitShift":
        d.attrs["direction"] = d.pick(["LEFT", "RIGHT"])
        d.give(d.data(right, dtype, 0, dtype.itemsize * 8 - 1, special=False))
    else:
        d.give(d.data(right, dtype, -100, 100))


@draws("BitwiseNot", times=4)
def bitwise_not(d):
    d.give(d.data(d.shape(), d.pick(INTS), -100, 100))


@draws("IsInf", times=5)
def is_inf(d):
    d.is_special = True
    d.attr("detect_positive", lambda: d.int(0, 1))
    d.attr("detect_negative", lambda: d.int(0, 1))
    d.give(d.data(d.shape(), d.pick(FLOATS)))


@draws("Not", "And", "Or", "Xor", times=3)
def logical(d):
    for shape in broadcast(d, 1 if d.op == "Not" else 2):
        d.give(d.data(shape, BOOL))


@draws("Identity", times=4)
def identity(d):
    d.give(d.data(d.shape(), d.pick([*ALL_NUMBERS, BOOL])))


@draws("Celu", "Elu", "Selu", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Swish", "Shrink", "Gelu", times=4)
def activation(d):
    attrs = {
        "Celu": {"alpha": (0.2, 3)}, "Elu": {"alpha": (0.2, 3)}, "Selu": {"alpha": (0.5, 3), "gamma": (0.5, 3)},
        "LeakyRelu": {"alpha": (-0.5, 1.5)}, "ThresholdedRelu": {"alpha": (-1, 2)}, "Swish": {"alpha": (-1, 2)},
        "HardSigmoid": {"alpha": (0.1, 1), "beta": (0, 1)}, "Shrink": {"bias": (-1, 2), "lambd": (0, 2)}, "Gelu": {},
    }
    for name, (low, high) in attrs[d.op].items():
        d.attr(name, lambda: d.real(low, high))
    if d.op == "Gelu":
        d.attr("approximate", lambda: d.pick(["none", "tanh"]))
    d.give(d.data(d.shape(), d.pick(FLOATS)))


@draws("PRelu", times=5)
def prelu(d):
    shape = d.shape()
    slope = tuple(1 if extent and d.chance(0.5) else extent for extent in shape)[d.int(0, len(shape)):]
    dtype = d.pick([*FLOATS, INTS[0]])
    d.give(d.data(shape, dtype))
    d.give(d.data(slope, dtype, -2, 2), 0.5)


@draws("Add", "Sub", "Mul", times=5)
def arithmetic(d):
    dtype = d.pick(NUMBERS)
    for shape in broadcast(d, 2):
        d.give(d.data(shape, dtype))


@draws("Div", "Mod", times=8)
def division(d):
    dtype = d.pick(NUMBERS)
    left, right = broadcast(d, 2)
    if d.op == "Mod":
        # Remainders of floats with the sign of the divisor are newer.
        is_fixed = dtype.kind == "f" and d.version < 28
        d.attr("fmod", 1 if is_fixed else lambda: d.int(0, 1), 1.0 if is_fixed else 0.5)
    divisor = d.data(right, dtype, special=dtype.kind == "f" and d.op == "Div")
    if dtype.kind != "f":
        divisor[...] = np.where(divisor == 0, 3, divisor)
        if dtype.kind == "i":
            # The least number has no quotient by -1.
            divisor[...] = np.where(divisor == -1, -2, divisor)
    elif d.op == "Mod":
        divisor[...] = np.where(divisor == 0, dtype.type(1.5), divisor)
    d.give(d.data(left, dtype, -40, 40, special=dtype.kind != "f" or d.op == "Div"))
    d.give(divisor)


@draws("Pow", times=8)
def power(d):
    left, right = broadcast(d, 2)
    base = d.pick([*FLOATS, *INTS[:2]])
    other = d.pick([*FLOATS, *INTS[:2]]) if d.version >= 12 and d.chance(0.6) else base
    whole = base.kind == "i" or other.kind == "i"
    d.is_special = d.is_special and base.kind == other.kind == "f"
    d.give(d.data(left, base, -4 if whole else 0, 4))
    exponent = d.data(right, other, 0 if base.kind == "i" else -3, 4)
    d.give(np.round(exponent) if whole else exponent, 0.4)


@draws("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", times=4)
def comparison(d):
    dtype = d.pick([*NUMBERS, BOOL] if d.op == "Equal" else NUMBERS)
    for shape in broadcast(d, 2):
        d.give(d.data(shape, dtype, -1, 1))


@draws("Max", "Min", "Sum", "Mean", times=5)
def variadic(d):
    dtype = d.pick(NUMBERS if d.op in ("Max", "Min") else FLOATS)
    for shape in broadcast(d, d.int(1, 4)):
        d.give(d.data(shape, dtype))


@draws("Where", times=6)
def where(d):
    condition, left, right = broadcast(d, 3)
    dtype = d.pick([*ALL_NUMBERS, BOOL])
    d.give(d.data(condition, BOOL))
    d.give(d.data(left, dtype))
    d.give(d.data(right, dtype))


@draws("Clip", times=10)
def clip(d):
    dtype = d.pick(NUMBERS)
    low, high = sorted([d.int(-3, 3), d.int(-3, 3)])
    if dtype.kind == "u":
        low, high = low + 3, high + 3
    if d.version < 11:
        d.attr("min", float(low))
        d.attr("max", float(high))
        d.give(d.data(d.shape(), dtype))
        return
    edges = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    low, high = d.pick([low, low, low, edges.min]), d.pick([high, high, high, edges.max])
    if d.chance(0.1):
        low, high = high, low
    d.give(d.data(d.shape(), dtype))
    constant = 0.0 if d.chance(0.4) else 1.0
    d.give(np.array(low, dtype) if d.chance(0.8) else None, constant)
    if d.chance(0.8):
        d.give(np.array(high, dtype), constant)


def castable(d, source, target):
    """Numbers of one type that have a place in another."""
    low, high = -4, 4
    if target.kind == "u" and source.kind == "f":
        low = 0
    special = target == BOOL or target.kind == "f" or source.kind != "f"
    return d.data(d.shape(), source, low, high, special=special)


@draws("Cast", "CastLike", times=10)
def cast(d):
    types = [*ALL_NUMBERS, BOOL]
    source, target = d.pick(types), d.pick(types)
    d.give(castable(d, source, target))
    if d.op == "Cast":
        d.attrs["to"] = helper.np_dtype_to_tensor_dtype(target)
    else:
        d.give(d.data(d.shape(), target))


@draws("Concat", times=6)
def concat(d):
    shape = list(d.shape(1, 5, 300))
    axis, dtype = d.axis(len(shape)), d.pick([*ALL_NUMBERS, BOOL])
    d.attrs["axis"] = axis
    for _ in range(d.int(1, 4)):
        shape[axis] = d.extent()
        d.give(d.data(shape, dtype))


@draws("Constant", times=5)
def constant(d):
    kind = d.pick(["value", "value", "value_float", "value_int", "value_floats", "value_ints"])
    d.attrs[kind] = {
        "value": lambda: numpy_helper.from_array(d.data(d.shape(), d.pick([*ALL_NUMBERS, BOOL]))),
        "value_float": lambda: d.real(-9, 9),
        "value_int": lambda: d.int(-(2**63), 2**63 - 1),
        "value_floats": lambda: [d.real(-9, 9) for _ in range(d.int(1, 9))],
        "value_ints": lambda: [d.int(-9, 9) for _ in range(d.int(1, 9))],
    }[kind]()


@draws("ConstantOfShape", times=6)
def constant_of_shape(d):
    dtype = d.pick([*ALL_NUMBERS, BOOL])
    d.attr("value", lambda: numpy_helper.from_array(d.data((1,), dtype)))
    d.constant(d.shape())


def window(d, spatial, kernel, average=False):
    """Attributes of a window over these extents."""
    dilations = [d.pick([1, 1, 2, 3]) for _ in kernel] if d.chance(0.4) else None
    reach = [(k - 1) * (dilations[i] if dilations else 1) + 1 for i, k in enumerate(kernel)]
    d.attr("strides", lambda: [d.pick([1, 2, 3]) for _ in kernel])
    pads = [0] * (2 * len(kernel))
    style = d.pick(["none", "pads", "pads", "auto"])
    if style == "pads":
        # A window may not lie in the padding altogether.
        pads = [d.int(0, extent - 1) for extent in kernel * 2]
        d.attrs["pads"] = pads
        d.attr("auto_pad", "NOTSET", 0.2)
    elif style == "auto":
        d.attrs["auto_pad"] = d.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if dilations:
        d.attrs["dilations"] = dilations
    is_same = d.attrs.get("auto_pad", "").startswith("SAME")
    for i, extent in enumerate(spatial):
        if not is_same and extent + pads[i] + pads[i + len(kernel)] < reach[i]:
            raise Again


@draws("Conv", times=16)
def conv(d):
    count, group = d.int(1, 2), d.pick([1, 1, 1, 2, 3])
    inner, outer = d.pick([1, 2, 3]), d.pick([1, 2, 4, 5])
    if d.chance(0.2):
        group, inner = d.pick([2, 3, 8]), 1
    spatial = [d.pick([1, 3, 4, 5, 7, 8, 11]) for _ in range(count)]
    kernel = [d.pick([1, 2, 3, 4]) for _ in range(count)]
    window(d, spatial, kernel)
    d.attr("group", group, 1.0 if group > 1 else 0.5)
    d.attr("kernel_shape", kernel, 0.5)
    dtype, weights = d.pick(FLOATS), 0.6
    d.give(d.data([d.pick([1, 2, 0 if d.chance(0.1) else 3]), group * inner, *spatial], dtype, -2, 2, special=False), 0)
    d.give(d.data([group * outer, inner, *kernel], dtype, -2, 2, special=False), weights)
    if d.chance(0.5):
        d.give(d.data([group * outer], dtype, -2, 2, special=False), weights)


@draws("MaxPool", "AveragePool", times=12)
def pool(d):
    count = d.int(1, 2)
    spatial = [d.pick([1, 3, 4, 5, 7, 8, 11, 13]) for _ in range(count)]
    kernel = [d.pick([1, 2, 3, 4, 5]) for _ in range(count)]
    window(d, spatial, kernel)
    d.attrs["kernel_shape"] = kernel
    d.attr("ceil_mode", lambda: d.int(0, 1))
    if d.op == "AveragePool":
        d.attr("count_include_pad", lambda: d.int(0, 1))
    else:
        d.attr("storage_order", lambda: d.int(0, 1), 0.2)
    types = [*FLOATS, *INTS[2:4]] if d.op == "MaxPool" else FLOATS
    d.give(d.data([d.pick([1, 2]), d.pick([1, 3]), *spatial], d.pick(types), special=d.op == "MaxPool"), 0)


@draws("GlobalAveragePool", "GlobalMaxPool", times=5)
def global_pool(d):
    spatial = [d.pick([1, 2, 5, 7]) for _ in range(d.int(1, 3))]
    d.give(d.data([d.pick([1, 2]), d.pick([1, 3, 4]), *spatial], d.pick(FLOATS)))


@draws("DepthToSpace", "SpaceToDepth", times=5)
def blocks(d):
    size = d.int(1, 3)
    batch, depth, rows, columns = d.pick([0, 1, 2, 3]), d.int(1, 3), d.int(1, 4), d.int(1, 4)
    shape = (batch, depth * size**2, rows, columns)
    if d.op == "SpaceToDepth":
        shape = (batch, depth, rows * size, columns * size)
    d.attrs["blocksize"] = size
    d.attr("mode", lambda: d.pick(["DCR", "CRD"]))
    d.give(d.data(shape, d.pick([*FLOATS, *INTS[:4]])))


def scales(d, shape, axis, dtype, zero_dtype):
    """A scale and a zero point for the data, or for each index along an axis."""
    own = () if d.chance(0.4) else (shape[axis],) if d.chance(0.9) else (1,)
    size = 0
    if d.version >= 21 and len(shape) and d.chance(0.3):
        size = d.int(1, 4)
        own = list(shape)
        own[axis] = -(-own[axis] // size)
    if len(own) == 1 or size:
        d.attr("axis", axis, 1.0 if axis != 1 else 0.5)
    if size:
        d.attrs["block_size"] = size
    constant = d.pick([0.0, 1.0])
    d.give((2.0 ** d.rng.integers(-3, 2, own)).astype(dtype), constant)
    if d.chance(0.7):
        d.give(d.data(own, zero_dtype, 0 if zero_dtype.kind == "u" else -9, 9, special=False), constant)
        return True
    return False


@draws("QuantizeLinear", times=10)
def quantize(d):
    d.is_special = False
    shape = d.shape(1, 4, zero=0)
    dtype = d.pick([F32, F32, F16]) if d.version >= 19 else F32
    target = d.pick(INTS[2:6] if d.version >= 21 else INTS[2:4])
    d.give(d.data(shape, dtype, -40, 40), 0)
    has_zero = scales(d, shape, d.axis(len(shape)), dtype, target)
    if not has_zero and d.version >= 21:
        d.attrs["output_dtype"] = helper.np_dtype_to_tensor_dtype(target)


@draws("DequantizeLinear", times=10)
def dequantize(d):
    shape = d.shape(1, 4, zero=0)
    source = d.pick([*INTS[2:6], INTS[0]] if d.version >= 21 else [*INTS[2:4], INTS[0]])
    d.give(d.data(shape, source, -128, 255), 0)
    scales(d, shape, d.axis(len(shape)), d.pick([F32, F32, F16]) if d.version >= 19 else F32, source)
    if source == INTS[0] and len(d.inputs) > 2:
        d.inputs[2] = (np.zeros_like(d.inputs[2][0]), d.inputs[2][1])


@draws("Dropout", times=4)
def dropout(d):
    dtype = d.pick(FLOATS)
    d.give(d.data(d.shape(), dtype))
    if d.version < 12:
        d.attr("ratio", lambda: d.real(0, 0.9))
    elif d.chance(0.7):
        d.constant(d.real(0, 0.9), F32)
        if d.chance(0.5):
            d.constant(False, BOOL)
    if d.version >= 12:
        d.outputs = d.int(1, 2)


@draws("Expand", times=6)
def expand(d):
    left, right = broadcast(d, 2)
    d.give(d.data(left, d.pick([*ALL_NUMBERS, BOOL])))
    d.constant(right)


@draws("Flatten", times=5)
def flatten(d):
    shape = d.shape()
    d.attr("axis", lambda: d.int(-len(shape) if d.version >= 11 else 0, len(shape)))
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL] if d.version >= 9 else FLOATS)))


@draws("Gather", times=8)
def gather(d):
    shape = d.shape(1, 4, 200, zero=0.02)
    axis = d.axis(len(shape))
    d.attr("axis", axis, 1.0 if axis else 0.5)
    extent = shape[axis]
    places = d.shape(0, 2, 12) if extent else (0,)
    low = -extent if d.version >= 11 else 0
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    d.give(d.rng.integers(low, max(extent, 1), places).astype(d.pick(["int32", "int64"])), 0.4)


def within(d, shape, axis):
    """Extents that are not larger, but along an axis."""
    return tuple(d.pick([1, 2, 3, 7, 9]) if at == axis else d.int(1, extent) for at, extent in enumerate(shape))


@draws("GatherElements", times=6)
def gather_elements(d):
    shape = d.shape(1, 4, 200, zero=0)
    axis = d.int(0, len(shape) - 1)
    d.attr("axis", axis - (len(shape) if d.chance(0.3) else 0), 1.0 if axis else 0.5)
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    places = within(d, shape, axis)
    d.give(d.rng.integers(-shape[axis], shape[axis], places).astype(d.pick(["int32", "int64"])), 0.3)


@draws("GatherND", times=6)
def gather_nd(d):
    shape = d.shape(1, 4, 200, zero=0)
    batch = d.int(0, len(shape) - 1) if d.version >= 12 and d.chance(0.5) else 0
    d.attr("batch_dims", batch, 1.0 if batch else 0.3)
    count = d.int(1, len(shape) - batch)
    outer = shape[:batch] + d.shape(0, 2, 9, zero=0.02)
    if not outer:
        raise Again
    places = [d.rng.integers(-extent, extent, outer) for extent in shape[batch:batch + count]]
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    d.give(np.stack(places, -1).astype(np.int64), 0.3)


def reduction(d):
    """What becomes of an element that is there, as far as the version knows."""
    known = ["none"] if d.version < 16 else ["none", "add", "mul"] if d.version < 18 else ["none", "add", "mul", "max", "min"]
    if d.version >= 16:
        d.attr("reduction", lambda: d.pick(known), 0.8)
    return d.attrs.get("reduction", "none")


@draws("ScatterElements", times=10)
def scatter_elements(d):
    shape = d.shape(1, 4, 200, zero=0)
    axis = d.int(0, len(shape) - 1)
    d.attr("axis", axis - (len(shape) if d.chance(0.3) else 0), 1.0 if axis else 0.5)
    is_free = reduction(d) != "none"
    dtype = d.pick([F32, F32, F64, *INTS[:2]])
    # No place is written twice, but where the order makes no difference.
    places = list(within(d, shape, axis))
    places[axis] = places[axis] if is_free else d.int(1, shape[axis])
    at = d.rng.integers(-shape[axis], shape[axis], places)
    if not is_free:
        order = np.argsort(d.rng.random([extent if other != axis else shape[axis] for other, extent in enumerate(places)]), axis)
        at = np.take(order, range(places[axis]), axis) - np.where(d.rng.random(places) < 0.3, shape[axis], 0)
    d.give(d.data(shape, dtype, -2, 2, special=False))
    d.give(at.astype(d.pick(["int32", "int64"])), 0.3)
    d.give(d.data(tuple(places), dtype, -2, 2, special=False))


@draws("ScatterND", times=10)
def scatter_nd(d):
    shape = d.shape(1, 4, 200, zero=0)
    count = d.int(1, len(shape))
    is_free = reduction(d) != "none"
    dtype = d.pick([F32, F32, F64, *INTS[:2]])
    whole = int(np.prod(shape[:count]))
    number = d.pick([0, 1, 2, 5, 9]) if is_free else d.int(0, min(whole, 9))
    at = d.rng.integers(0, whole, number) if is_free else d.rng.permutation(whole)[:number]
    at = np.stack(np.unravel_index(at.astype(np.int64), shape[:count]), -1) - np.where(d.chance(0.3), shape[:count], 0)
    d.give(d.data(shape, dtype, -2, 2, special=False))
    d.give(at.astype(np.int64), 0.3)
    d.give(d.data((number, *shape[count:]), dtype, -2, 2, special=False))


@draws("CumSum", "CumProd", times=6)
def running(d):
    shape = d.shape(1, 4)
    d.attr("exclusive", lambda: d.int(0, 1))
    d.attr("reverse", lambda: d.int(0, 1))
    dtype = d.pick([F32, F32, F64, *INTS[:2]])
    bounds = (-4, 4) if d.op == "CumSum" else (-1, 1)
    d.give(d.data(shape, dtype, *bounds, special=False))
    d.constant(d.axis(len(shape)), d.pick([np.int32, np.int64]))


@draws("TopK", times=10)
def top_k(d):
    d.outputs = 2
    shape = d.shape(1, 4, 400, zero=0)
    axis = d.axis(len(shape))
    d.attr("axis", axis, 1.0 if axis != -1 else 0.5)
    count = d.int(0 if d.version >= 11 else 1, shape[axis])
    if d.version < 10:
        d.attrs["k"] = count
    if d.version >= 11:
        d.attr("largest", lambda: d.int(0, 1))
        d.attr("sorted", 1, 0.3)
    # Of equal ones the first comes first, which is not said of those that are no numbers.
    d.give(d.data(shape, d.pick([F32, F32, F64, *INTS[:2]]), special=False))
    if d.version >= 10:
        d.constant([count])


@draws("Hardmax", times=6)
def hardmax(d):
    shape = d.shape(1, 4, zero=0)
    d.attr("axis", lambda: d.axis(len(shape)) if d.version >= 11 else d.int(0, len(shape) - 1))
    d.give(d.data(shape, d.pick(FLOATS[:4]), special=False))


@draws("EyeLike", times=5)
def eye_like(d):
    d.attr("k", lambda: d.int(-4, 4))
    d.attr("dtype", lambda: helper.np_dtype_to_tensor_dtype(d.pick([F32, F64, *INTS[:2]])))
    d.give(d.data((d.extent(zero=0), d.extent(zero=0)), d.pick([F32, F64, *INTS[:2]])), 0)


@draws("ReverseSequence", times=5)
def reverse_sequence(d):
    time, batch, rest = d.pick([1, 3, 8]), d.pick([1, 2, 5]), d.shape(0, 2, 9, zero=0)
    axis = d.int(0, 1)
    d.attr("time_axis", axis, 1.0 if axis else 0.5)
    d.attr("batch_axis", 1 - axis, 1.0 if axis else 0.5)
    shape = (batch, time, *rest) if axis else (time, batch, *rest)
    d.give(d.data(shape, d.pick([*FLOATS, *INTS[:4]])))
    d.give(d.rng.integers(1, time + 1, batch).astype(np.int64), 0.4)


@draws("MatMulInteger", times=5)
def matmul_integer(d):
    rows, inner, columns, batch = d.extent(), d.extent(), d.extent(), d.shape(0, 1, 5)
    left, right = d.pick(INTS[2:4]), d.pick(INTS[2:4])
    d.give(d.data((*batch, rows, inner), left, 0 if left.kind == "u" else -100, 100, special=False), 0)
    d.give(d.data((inner, columns), right, 0 if right.kind == "u" else -100, 100, special=False), 0.6)
    if d.chance(0.6):
        d.give(d.data((), left, 0, 20, special=False), 0.8)
        if d.chance(0.6):
            d.give(d.data(d.pick([(), (columns,)]), right, 0, 20, special=False), 0.8)


@draws("Gemm", times=10)
def gemm(d):
    rows, inner, columns = d.extent(), d.extent(), d.extent()
    flips = d.int(0, 1), d.int(0, 1)
    d.attr("transA", flips[0], 1.0 if flips[0] else 0.3)
    d.attr("transB", flips[1], 1.0 if flips[1] else 0.3)
    d.attr("alpha", lambda: d.pick([0.0, 0.5, 1.0, -2.0]))
    d.attr("beta", lambda: d.pick([0.0, 0.5, 1.0, -2.0]))
    dtype = d.pick([F32, F32, F32, F64, F16, *INTS[:2]])
    d.give(d.data((inner, rows) if flips[0] else (rows, inner), dtype, -2, 2, special=False), 0.1)
    d.give(d.data((columns, inner) if flips[1] else (inner, columns), dtype, -2, 2, special=False), 0.5)
    if d.version < 11 or d.chance(0.7):
        shape = d.pick([(), (1,), (columns,), (rows, 1), (1, columns), (rows, columns), (1, 1)])
        d.give(d.data(shape, dtype, -2, 2, special=False), 0.5)


@draws("MatMul", times=10)
def matmul(d):
    rows, inner, columns = d.extent(), d.extent(), d.extent()
    left, right = broadcast(d, 2, most=6)
    left, right = (*left, rows, inner), (*right, inner, columns)
    if d.chance(0.15):
        left = (inner,)
    if d.chance(0.15):
        right = (inner,)
    dtype = d.pick([F32, F32, F32, F64, F16, *INTS[:2]])
    d.give(d.data(left, dtype, -2, 2, special=False), 0.1)
    d.give(d.data(right, dtype, -2, 2, special=False), 0.4)


def epsilon(d):
    d.attr("epsilon", lambda: d.pick([1e-3, 1e-5, 0.1]))


@draws("BatchNormalization", times=6)
def batch_norm(d):
    d.is_special = False
    shape = d.shape(2, 5)
    dtype = d.pick(FLOATS)
    epsilon(d)
    d.attr("momentum", 0.7, 0.3)
    d.give(d.data(shape, dtype), 0)
    constant = d.pick([0.0, 1.0])
    for low in -2, -2, -2, 1:
        d.give(d.data((shape[1],), dtype, low, 3), constant)


@draws("InstanceNormalization", times=6)
def instance_norm(d):
    d.is_special = False
    shape = d.shape(3, 5, zero=0)
    dtype = d.pick(FLOATS)
    epsilon(d)
    d.give(d.data(shape, dtype), 0)
    d.give(d.data((shape[1],), dtype), 0.5)
    d.give(d.data((shape[1],), dtype), 0.5)


@draws("GroupNormalization", times=6)
def group_norm(d):
    d.is_special = False
    groups, each = d.int(1, 4), d.int(1, 3)
    d.version = max(d.version, 21)
    shape = (d.int(1, 3), groups * each, *d.shape(0, 3, 60, zero=0))
    dtype = d.pick(FLOATS)
    epsilon(d)
    d.attrs["num_groups"] = groups
    d.give(d.data(shape, dtype), 0)
    d.give(d.data((shape[1],), dtype), 0.5)
    d.give(d.data((shape[1],), dtype), 0.5)


@draws("LayerNormalization", "RMSNormalization", times=9)
def layer_norm(d):
    d.is_special = False
    shape = d.shape(1, 4, zero=0)
    axis = d.axis(len(shape))
    d.attr("axis", axis, 1.0 if axis not in (-1, len(shape) - 1) else 0.5)
    dtype = d.pick(FLOATS)
    epsilon(d)
    d.give(d.data(shape, dtype), 0)
    normal = shape[axis:]
    if d.chance(0.2):
        normal = tuple(1 if d.chance(0.5) else extent for extent in normal)
    d.give(d.data(normal, dtype), 0.5)
    if d.op == "LayerNormalization":
        if d.chance(0.6):
            d.give(d.data(normal, dtype), 0.5)
        d.outputs = d.pick([1, 1, 2, 3])


@draws("LRN", times=5)
def lrn(d):
    d.is_special = False
    d.attrs["size"] = d.pick([1, 2, 3, 4, 5])
    d.attr("alpha", lambda: d.real(0.001, 0.5))
    d.attr("beta", lambda: d.real(0.3, 1))
    d.attr("bias", lambda: d.real(1, 2))
    spatial = [d.int(1, 5) for _ in range(d.pick([2, 2, 2, 1, 3]))]
    d.give(d.data([d.int(1, 2), d.int(1, 7), *spatial], d.pick(FLOATS)), 0)


@draws("LpNormalization", times=5)
def lp_norm(d):
    d.is_special = False
    shape = d.shape(1, 4, zero=0)
    d.attr("axis", lambda: d.axis(len(shape)))
    d.attr("p", lambda: d.int(1, 2))
    d.give(d.data(shape, d.pick(FLOATS)))


@draws("MeanVarianceNormalization", times=4)
def mean_variance(d):
    d.is_special = False
    shape = d.shape(4, 4, zero=0)
    d.attr("axes", lambda: d.axes(4, 1))
    d.give(d.data(shape, d.pick(FLOATS)), 0)


@draws("Softmax", "LogSoftmax", times=8)
def softmax(d):
    shape = d.shape(1, 5)
    d.attr("axis", lambda: d.axis(len(shape)) if d.version >= 11 else d.int(0, len(shape) - 1))
    d.is_special = False
    d.give(d.data(shape, d.pick(FLOATS)))


@draws("OneHot", times=6)
def one_hot(d):
    shape = d.shape(0, 3, 60)
    depth = d.int(1, 7)
    d.attr("axis", lambda: d.int(-len(shape) - 1, len(shape)))
    d.is_special = False
    indices, values = d.pick([*INTS[:2], F32]), d.pick([*FLOATS, *INTS[:2], BOOL])
    d.give(d.data(shape, indices, -depth - 1, depth + 1).round())
    d.constant([depth] if d.chance(0.5) else depth, d.pick([np.int64, np.int32, np.float32]))
    d.give(d.data((2,), values))


@draws("Pad", times=10)
def pad(d):
    shape = d.shape(1, 4, 200, zero=0.02)
    mode = d.pick(["constant", "constant", "edge", "reflect"])
    d.attr("mode", mode, 1.0 if mode != "constant" else 0.5)
    axes = list(range(len(shape)))
    if d.version >= 18 and d.chance(0.4):
        axes = d.axes(len(shape), 1)
    def width(axis):
        most = {"constant": 3, "edge": 3 if shape[axis] else 0, "reflect": max(shape[axis] - 1, 0)}[mode]
        return -1 if d.chance(0.1) and shape[axis] > 2 and mode != "reflect" else d.int(0, min(3, most))
    pads = [width(axis) for axis in axes * 2]
    dtype = d.pick([*FLOATS, *INTS[:4], BOOL] if d.version >= 13 else FLOATS)
    d.give(d.data(shape, dtype))
    if d.version < 11:
        d.attrs["pads"] = pads
        d.attr("value", lambda: d.real(-3, 3))
        return
    d.constant(pads)
    has_value, has_axes = d.chance(0.6), len(axes) != len(shape) or axes != list(range(len(shape)))
    if has_value or has_axes:
        d.constant(d.data((), dtype, -3, 3) if has_value and mode == "constant" else None, dtype)
    if has_axes:
        d.constant(axes, d.pick([np.int64, np.int32]))


@draws("Range", times=6)
def range_(d):
    dtype = d.pick([F32, F64, INTS[0], INTS[1], INTS[4]])
    step = d.pick([-3, -1, 1, 2, 5]) * (0.25 if dtype.kind == "f" else 1)
    start = d.int(-9, 9)
    for value in start, start + d.int(-3, 25) * step, step:
        d.constant(value, dtype)


REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
              "ReduceProd", "ReduceSum", "ReduceSumSquare"]


@draws(*REDUCTIONS, times=6)
def reduce(d):
    shape = d.shape(0, 5, zero=0.06 if d.version >= 18 else 0)
    types = [F32, F32, F32, F64, F16, *INTS[:2]]
    if d.op in ("ReduceMax", "ReduceMin"):
        types += [*INTS[2:4], *([BOOL] if d.version >= 20 else [])]
    if d.op in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2", "ReduceMean"):
        types = FLOATS
    if d.op == "ReduceMean":
        # The mean of nothing is not defined.
        shape = tuple(max(extent, 1) for extent in shape)
    dtype = d.pick(types)
    d.is_special = d.is_special and d.op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp") and dtype.kind == "f"
    d.attr("keepdims", lambda: d.int(0, 1))
    low, high = {"ReduceProd": (-1, 1), "ReduceLogSum": (1, 4)}.get(d.op, (-4, 4))
    d.give(d.data(shape, dtype, low, high))
    is_input = d.version >= (13 if d.op == "ReduceSum" else 18)
    axes = d.axes(len(shape), 0 if is_input else 1) if d.chance(0.8) else None
    if is_input:
        d.attr("noop_with_empty_axes", lambda: d.int(0, 1), 0.4)
        if axes is not None:
            d.constant(axes)
    elif axes:
        if d.version < 11:
            axes = [axis % len(shape) for axis in axes]
        d.attrs["axes"] = axes


@draws("ArgMax", "ArgMin", times=7)
def arg(d):
    shape = d.shape(1, 5, zero=0.0)
    d.attr("axis", lambda: d.axis(len(shape)) if d.version >= 11 else d.int(0, len(shape) - 1))
    d.attr("keepdims", lambda: d.int(0, 1))
    d.attr("select_last_index", lambda: d.int(0, 1), 0.7 if d.version >= 12 else 0)
    d.is_special = False
    # Equal ones are many.
    d.give(d.data(shape, d.pick([F32, F32, F64, F16, *INTS[:4]]), 0, 1))


@draws("Reshape", times=7)
def reshape(d):
    shape = d.shape()
    size, wanted = int(np.prod(shape)), []
    rest = size
    while rest > 1 and len(wanted) < 4:
        part = d.pick([part for part in range(1, rest + 1) if rest % part == 0])
        wanted.append(part)
        rest //= part
    wanted.append(rest)
    if d.chance(0.3) and size != 1:
        wanted.append(1)
    if size and d.chance(0.5):
        wanted[d.int(0, len(wanted) - 1)] = -1
    for axis, extent in enumerate(wanted):
        if axis < len(shape) and shape[axis] == extent and d.chance(0.5):
            wanted[axis] = 0
    if d.version >= 14 and 0 not in wanted or not size:
        d.attr("allowzero", lambda: d.int(0, 1))
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    d.constant(wanted)


@draws("Shape", times=5)
def shape_of(d):
    shape = d.shape()
    if d.version >= 15:
        d.attr("start", lambda: d.int(-7, 7))
        d.attr("end", lambda: d.int(-7, 7))
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))


@draws("Size", times=3)
def size_of(d):
    d.give(d.data(d.shape(), d.pick([*ALL_NUMBERS, BOOL])))


@draws("Slice", times=16)
def slice_(d):
    shape = d.shape(1, 5)
    axes = d.axes(len(shape), 1)
    if d.version < 11 and d.version < 10:
        axes = [axis % len(shape) for axis in axes]
    if d.chance(0.3):
        axes = list(range(len(axes)))
    far = [-(2**63), -(2**31), 2**31 - 1, 2**63 - 1]
    def bound(axis):
        return d.pick(far) if d.chance(0.2) else d.int(-shape[axis] - 2, shape[axis] + 2)
    starts, ends = [bound(axis) for axis in axes], [bound(axis) for axis in axes]
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    if d.version < 10:
        d.attrs.update(starts=starts, ends=ends)
        if axes != list(range(len(axes))) or d.chance(0.5):
            d.attrs["axes"] = axes
        return
    d.constant(starts)
    d.constant(ends)
    steps = [d.pick([1, 1, 2, 3, -1, -1, -2, -3, -7, 9]) for _ in axes] if d.chance(0.7) else None
    leave_out = axes == list(range(len(axes))) and d.chance(0.5)
    d.constant(None if leave_out else axes)
    if steps:
        d.constant(steps)


@draws("Split", times=8)
def split(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape)) if d.version >= 11 else d.int(0, len(shape) - 1)
    d.attr("axis", axis, 1.0 if axis else 0.5)
    extent = shape[axis]
    d.outputs = d.int(1, 4)
    cuts = sorted(d.int(0, extent) for _ in range(d.outputs - 1))
    lengths = [b - a for a, b in zip([0, *cuts], [*cuts, extent])]
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    if d.chance(0.6):
        if d.version < 13:
            d.attrs["split"] = lengths
        else:
            d.constant(lengths)
    elif d.version >= 18:
        d.attrs["num_outputs"] = d.outputs
        each = -(-extent // d.outputs)
        if extent - each * (d.outputs - 1) < 0:
            raise Again
    elif extent % d.outputs:
        raise Again


@draws("Squeeze", times=5)
def squeeze(d):
    shape = tuple(1 if d.chance(0.5) else extent for extent in d.shape())
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    axes = [axis - (len(shape) if d.version >= 11 and d.chance(0.4) else 0) for axis in ones if d.chance(0.7)]
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    if axes and d.version < 13:
        d.attrs["axes"] = axes
    elif axes or d.version >= 13 and d.chance(0.3):
        d.constant(axes)


@draws("Unsqueeze", times=5)
def unsqueeze(d):
    shape = d.shape(0, 3)
    more = d.int(1, 3)
    rank = len(shape) + more
    axes = [int(axis) - (rank if d.version >= 11 and d.chance(0.4) else 0) for axis in d.rng.permutation(rank)[:more]]
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    if d.version < 13:
        d.attrs["axes"] = axes
    else:
        d.constant(axes)


@draws("Tile", times=5)
def tile(d):
    shape = d.shape(0, 4, 100)
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))
    d.constant([d.pick([0 if d.chance(0.2) else 1, 1, 2, 3]) for _ in shape])


@draws("Transpose", times=6)
def transpose(d):
    shape = d.shape()
    d.attr("perm", lambda: [int(axis) for axis in d.rng.permutation(len(shape))], 0.7 if shape else 0)
    d.give(d.data(shape, d.pick([*ALL_NUMBERS, BOOL])))


@draws("Trilu", times=7)
def trilu(d):
    d.attr("upper", lambda: d.int(0, 1))
    d.give(d.data(d.shape(2, 4), d.pick([*ALL_NUMBERS, BOOL])))
    if d.chance(0.7):
        d.constant(d.int(-6, 6))


@draws("Attention", times=28)
def attention(d):
    batch, heads, group = d.pick([1, 2]), d.pick([1, 2, 3]), d.pick([1, 1, 2, 3])
    queries, new = d.pick([1, 2, 3, 5]), d.pick([1, 3, 5, 6])
    size, of_values, dtype = d.pick([1, 2, 4, 8]), d.pick([1, 2, 4, 5]), d.pick([F32, F32, F32, F64, F16])
    past = d.int(1, 4) if d.chance(0.35) else 0
    is_packed = d.chance(0.4)
    d.is_special = False

    def part(heads, length, size, is_packed=is_packed):
        shape = (batch, length, heads * size) if is_packed else (batch, heads, length, size)
        d.give(d.data(shape, dtype, -2, 2), 0.05)
    part(heads * group, queries, size)
    part(heads, new, size)
    part(heads, new, of_values)
    if is_packed:
        d.attrs.update(q_num_heads=heads * group, kv_num_heads=heads)
    keys = past + new
    width = d.int(2, keys) if d.version >= 24 and keys > 1 and d.chance(0.2) else keys
    whole = [d.pick([1, batch]), d.pick([1, heads * group]), queries, width]
    has_mask, kept = d.chance(0.5), whole[d.pick([0, 1, 2, 2]):]
    if has_mask and d.chance(0.5):
        d.give(d.data(kept, BOOL))
    elif has_mask:
        mask = d.data(kept, dtype, -1, 1)
        d.give(np.where(d.rng.random(kept) < 0.2, dtype.type(-np.inf), mask).astype(dtype))
    else:
        d.give(None)
    if past:
        part(heads, past, size, False)
        part(heads, past, of_values, False)
    elif d.version >= 24 and d.chance(0.4):
        d.give(None)
        d.give(None)
        d.give(d.rng.integers(0, new + 1, (batch,)))
    d.attr("is_causal", lambda: d.int(0, 1))
    d.attr("scale", lambda: d.real(0.1, 2), 0.3)
    d.attr("softcap", lambda: d.pick([0.0, 0.5, 3.0]), 0.4)
    d.attr("softmax_precision", lambda: d.pick([TensorProto.FLOAT, TensorProto.DOUBLE]), 0.2)
    if d.version >= 25:
        # ONNX Runtime does not know windows.
        d.judge = "reference"
        d.attr("left_window_size", lambda: d.int(-1, 3), 0.5)
        d.attr("right_window_size", lambda: d.int(-1, 3), 0.5)
    d.outputs = d.pick([1, 3, 4] if past else [1, 4])
    if d.outputs == 4:
        d.attr("qk_matmul_output_mode", lambda: d.int(0, 3))
        d.unnamed = () if past else (1, 2)


@draws("LinearAttention", times=12)
def linear_attention(d):
    batch, heads, group, length = d.pick([1, 2]), d.pick([1, 2, 3]), d.pick([1, 1, 2]), d.pick([1, 2, 3, 6])
    size, of_values, dtype = d.pick([1, 2, 4]), d.pick([1, 2, 3]), d.pick([F32, F32, F16])
    rule = d.pick(["linear", "gated", "delta", "gated_delta"])
    d.is_special = False
    for width in heads * group * size, heads * size, heads * of_values:
        d.give(d.data((batch, length, width), dtype, -1, 1))
    d.give(d.data((batch, heads, size, of_values), d.pick([dtype, F32])) if d.chance(0.5) else None)
    is_gated, is_delta = "gated" in rule, "delta" in rule
    d.give(d.data((batch, length, heads * d.pick([1, size])), dtype, -2, 0) if is_gated else None)
    d.give(d.data((batch, length, d.pick([1, heads])), dtype, 0, 1) if is_delta else None)
    d.attrs.update(q_num_heads=heads * group, kv_num_heads=heads)
    d.attr("update_rule", rule, 1.0 if rule != "gated_delta" else 0.5)
    d.attr("scale", lambda: d.real(0.1, 2), 0.4)
    d.attr("chunk_size", 16, 0.3)
    d.outputs = 2


@draws("CausalConvWithState", times=10)
def causal_conv(d):
    batch, channels, length, taps = d.pick([1, 2]), d.pick([1, 2, 5]), d.pick([1, 2, 4, 9]), d.pick([1, 2, 3, 4])
    dtype, d.is_special, d.outputs = d.pick([F32, F32, F16]), False, 2
    d.give(d.data((batch, channels, length), dtype, -2, 2))
    d.give(d.data((channels, 1, taps), dtype, -2, 2), 0.6)
    d.give(d.data((channels,), dtype) if d.chance(0.5) else None, 0.6)
    if d.chance(0.6):
        d.give(d.data((batch, channels, taps - 1), dtype, -2, 2))
    d.attr("activation", lambda: d.pick(["none", "silu", "swish"]))


@draws("RotaryEmbedding", times=12)
def rotary_embedding(d):
    batch, heads, length, half = d.pick([1, 2]), d.pick([1, 2, 3]), d.pick([1, 3, 5]), d.pick([1, 2, 4])
    size, dtype, d.is_special = 2 * half, d.pick([F32, F32, F16]), False
    if d.chance(0.4):
        d.attrs["num_heads"] = heads
        d.give(d.data((batch, length, heads * size), dtype))
    else:
        d.give(d.data((batch, heads, length, size), dtype))
    turned = d.int(1, half) if d.chance(0.4) else half
    if turned != half:
        # ONNX Runtime wants to know how many heads there are of which a part is turned.
        d.attrs.update(rotary_embedding_dim=2 * turned, num_heads=heads)
    d.attr("interleaved", lambda: d.int(0, 1))
    has_positions = d.chance(0.6)
    for _ in range(2):
        d.give(d.data((8, turned) if has_positions else (batch, length, turned), dtype, -1, 1), 0.5)
    if has_positions:
        d.give(d.rng.integers(0, 8, (batch, length)))


@draws("SwiGLU", times=4)
def swiglu(d):
    shape, dtype = d.shape(), d.pick(FLOATS)
    d.attr("alpha", lambda: d.real(-1, 2))
    d.give(d.data(shape, dtype))
    d.give(d.data(shape, dtype))


@draws("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", times=12)
def likelihood_loss(d):
    spatial = tuple(d.pick([1, 2, 3, 5]) for _ in range(d.int(0, 3)))
    batch, classes, dtype, d.is_special = d.pick([1, 2, 5]), d.pick([1, 2, 4, 9]), d.pick(FLOATS), False
    target = d.rng.integers(0, classes, (batch, *spatial)).astype(d.pick(INTS[:2]))
    if d.chance(0.5):
        ignored = d.pick([-100, -1, 0, classes - 1, 77])
        d.attrs["ignore_index"] = ignored
        target[d.rng.random(target.shape) < 0.3] = ignored
        if (target == ignored).all():
            raise Again
    d.give(d.data((batch, classes, *spatial), dtype, -4, 0))
    d.give(target)
    if d.chance(0.5):
        d.give(d.data((classes,), dtype, 0.125, 2), 0.6)
    d.attr("reduction", lambda: d.pick(["none", "sum", "mean"]))
    if d.op == "SoftmaxCrossEntropyLoss":
        d.outputs = d.int(1, 2)


@draws("AffineGrid", times=8)
def affine_grid(d):
    spatial, batch, dtype = [d.pick([2, 3, 5]) for _ in range(d.int(2, 3))], d.pick([1, 2]), d.pick(FLOATS)
    d.is_special = False
    d.attr("align_corners", lambda: d.int(0, 1))
    d.give(d.data((batch, len(spatial), len(spatial) + 1), dtype, -2, 2))
    d.constant([batch, d.pick([1, 3]), *spatial])


@draws("CenterCropPad", times=8)
def center_crop_pad(d):
    shape = d.shape(1, 4, 300, 0)
    axes = d.axes(len(shape), 1)
    if d.chance(0.3):
        axes = list(range(len(shape)))
    else:
        d.attrs["axes"] = axes
    d.give(d.data(shape, d.pick([*FLOATS, *INTS[:4], BOOL])))
    d.constant([d.pick([shape[axis], d.int(1, 8)]) for axis in axes], d.pick([np.int64, np.int32]))


@draws("DynamicQuantizeLinear", times=8)
def dynamic_quantize(d):
    low, high = d.pick([(-4, 4), (0, 4), (-4, 0), (1, 4), (0, 0)])
    d.is_special, d.outputs = False, 3
    d.give(d.data(d.shape(0, 4, zero=0), F32, low, high), 0)


@draws("HannWindow", "HammingWindow", "BlackmanWindow", times=4)
def window_function(d):
    d.attr("periodic", lambda: d.int(0, 1))
    d.attr("output_datatype", lambda: d.pick([TensorProto.FLOAT, TensorProto.DOUBLE]))
    d.constant(d.pick([2, 3, 8, 33]), d.pick([np.int64, np.int32]))


@draws("LSTM", "GRU", "RNN", times=14)
def recurrent(d):
    gates, states = {"LSTM": (4, 2), "GRU": (3, 1), "RNN": (1, 1)}[d.op]
    steps, batch, size, hidden = d.pick([1, 2, 5]), d.pick([1, 2, 3]), d.pick([1, 3, 4]), d.pick([1, 2, 5])
    dtype, weights, d.is_special = d.pick([F32, F32, F32, F64]), 0.7, False
    d.attr("direction", lambda: d.pick(["forward", "reverse", "bidirectional"]))
    ways = 2 if d.attrs.get("direction") == "bidirectional" else 1
    d.attrs["hidden_size"] = hidden
    # ONNX Runtime has no kernel for the other layout.
    if d.chance(0.3):
        count = ways * {"LSTM": 3, "GRU": 2, "RNN": 1}[d.op]
        names = ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu", "Softsign", "Elu"]
        d.attrs["activations"] = [d.pick(names) for _ in range(count)]
        needs = {"HardSigmoid": 2, "LeakyRelu": 1, "ScaledTanh": 2, "ThresholdedRelu": 1, "Elu": 1}
        all_needs = [needs.get(name, 0) for name in d.attrs["activations"]]
        if any(all_needs):
            d.attrs["activation_alpha"] = [d.real(0.2, 1) for need in all_needs if need]
        if 2 in all_needs:
            d.attrs["activation_beta"] = [d.real(0.2, 1) for need in all_needs if need == 2]
    d.attr("clip", lambda: d.real(0.5, 3), 0.2)
    if d.op == "GRU":
        d.attr("linear_before_reset", lambda: d.int(0, 1))
    if d.op == "LSTM":
        d.attr("input_forget", lambda: d.int(0, 1), 0.3)
    d.give(d.data((steps, batch, size), dtype, -1, 1))
    d.give(d.data((ways, gates * hidden, size), dtype, -1, 1), weights)
    d.give(d.data((ways, gates * hidden, hidden), dtype, -1, 1), weights)
    d.give(d.data((ways, 2 * gates * hidden), dtype, -1, 1) if d.chance(0.7) else None, weights)
    lengths = d.rng.integers(1, steps + 1, batch).astype(np.int32)
    d.give(lengths if d.chance(0.4) else None)
    for _ in range(states):
        d.give(d.data((ways, batch, hidden), dtype, -1, 1) if d.chance(0.5) else None)
    if d.op == "LSTM" and d.chance(0.4):
        d.give(d.data((ways, 3 * hidden), dtype, -1, 1), weights)
    d.outputs = 1 + states


@draws("Resize", times=40)
def resize(d):
    rank, d.is_special = d.pick([3, 4, 4, 5]), False
    shape = [1, 2, *(d.pick([2, 3, 4, 5, 8]) for _ in range(rank - 2))]
    mode = d.pick(["nearest", "nearest", "linear", "linear", "cubic"])
    if mode == "cubic":
        shape = shape[:4] if rank > 3 else [*shape, 4]
    if d.version == 10 and mode == "cubic":
        raise Again
    d.attr("mode", mode, 1.0)
    d.give(d.data(shape, d.pick([F32, F32, F64]) if mode == "nearest" else F32))
    # Scales and extents whose quotients are exact, so that the place of the nearest is.
    scales = [1, 1, *(d.pick([0.5, 1, 2, 2, 4, 0.25, 3]) for _ in shape[2:])]
    if d.version == 10:
        d.constant(scales, F32)
        return
    d.attr("coordinate_transformation_mode",
           lambda: d.pick(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
                          if d.version >= 19 else ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]))
    if mode == "nearest":
        d.attr("nearest_mode", lambda: d.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
        if d.attrs.get("coordinate_transformation_mode") == "align_corners":
            raise Again
    if mode == "cubic":
        d.attr("cubic_coeff_a", lambda: d.pick([-0.5, -0.75]))
        d.attr("exclude_outside", lambda: d.int(0, 1), 0.4)
    sizes = [int(extent * scale) for extent, scale in zip(shape, scales)]
    if 0 in sizes:
        raise Again
    d.give(None if d.version >= 13 else np.zeros(0, F32), 1.0)
    if d.chance(0.5):
        if any(int(size / scale) * scale != size for size, scale in zip(sizes, scales)):
            raise Again
        d.constant(scales, F32)
    else:
        d.give(None if d.version >= 13 else np.zeros(0, F32), 1.0)
        d.constant(sizes)


@draws("Upsample", times=5)
def upsample(d):
    shape = [1, 2, d.int(1, 4), d.int(1, 4)]
    d.attr("mode", lambda: d.pick(["nearest", "linear"]))
    scales = [1.0, 1.0, float(d.int(1, 3)), float(d.int(1, 3))]
    d.give(d.data(shape, F32, special=False))
    if d.version < 9:
        d.attrs["scales"] = scales
    else:
        d.constant(scales, F32)


@draws("ConvTranspose", times=24)
def conv_transpose(d):
    count, group = d.pick([1, 2, 2, 3]), d.pick([1, 1, 2, 3])
    inner, outer = d.pick([1, 2, 4]), d.pick([1, 2, 3])
    spatial = [d.pick([1, 2, 3, 5]) for _ in range(count)]
    kernel = [d.pick([1, 2, 3, 4]) for _ in range(count)]
    d.attr("strides", lambda: [d.int(1, 3) for _ in kernel])
    d.attr("dilations", lambda: [d.int(1, 2) for _ in kernel], 0.4)
    strides, dilations = (d.attrs.get(name, [1] * count) for name in ("strides", "dilations"))
    if d.chance(0.4):
        d.attrs["output_padding"] = [d.int(0, max(s, t) - 1) for s, t in zip(strides, dilations)]
    kind = d.pick(["pads", "pads", "auto", "shape", "none"])
    if kind == "pads":
        d.attrs["pads"] = [d.int(0, k // 2) for k in kernel * 2]
    if kind == "auto":
        d.attrs["auto_pad"] = d.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if kind == "shape":
        d.attrs["output_shape"] = [(n - 1) * s + (k - 1) * t + 1 - d.int(0, 1)
                                   for n, s, k, t in zip(spatial, strides, kernel, dilations)]
        d.attrs.pop("output_padding", None)
    d.attr("group", group, 1.0 if group > 1 else 0.5)
    d.attr("kernel_shape", kernel, 0.5)
    d.is_special = False
    d.give(d.data([d.pick([1, 2]), group * inner, *spatial], F32, -2, 2), 0)
    d.give(d.data([group * inner, outer, *kernel], F32, -2, 2), 0.6)
    if d.chance(0.5):
        d.give(d.data([group * outer], F32, -2, 2), 0.6)


@draws("LpPool", "GlobalLpPool", times=8)
def lp_pool(d):
    count = d.int(1, 3)
    spatial = [d.pick([3, 4, 5, 7]) for _ in range(count)]
    d.attr("p", lambda: d.pick([1, 2, 3]))
    d.is_special = False
    if d.op == "LpPool":
        kernel = [d.pick([1, 2, 3]) for _ in range(count)]
        d.attrs["kernel_shape"] = kernel
        d.attr("strides", lambda: [d.int(1, 2) for _ in kernel])
        d.attr("pads", lambda: [d.int(0, k - 1) for k in kernel * 2], 0.4)
    d.give(d.data([d.pick([1, 2]), d.pick([1, 3]), *spatial], F32), 0)


@draws("Einsum", times=30)
def einsum(d):
    extents = {label: d.pick([1, 2, 3, 4]) for label in "abcdeXY"}
    dtype, d.is_special = d.pick([F32, F32, F64, np.dtype("int32")]), False
    terms, rest = [], tuple(d.pick([1, 2, 3]) for _ in range(d.int(1, 2)))
    has_rest = d.chance(0.3)
    for _ in range(d.pick([1, 2, 2, 3])):
        letters = list(d.rng.permutation(list(extents))[:d.int(1, 3)])
        if d.chance(0.15):
            letters.append(letters[0])
        term = "".join(letters)
        shape = [extents[label] for label in letters]
        if has_rest and d.chance(0.7):
            own = rest[d.int(0, len(rest)):]
            own = tuple(1 if d.chance(0.3) else extent for extent in own)
            place = d.int(0, len(letters))
            term = term[:place] + "..." + term[place:]
            shape[place:place] = own
        terms.append(term)
        d.give(d.data(shape, dtype))
    text = ",".join(terms)
    if d.chance(0.7):
        used = sorted(set(text) - set(",."))
        result = "".join(d.rng.permutation(used)[:d.int(0, min(3, len(used)))])
        text += "->" + ("..." if "..." in text else "") + result
    d.attrs["equation"] = text


@draws("Det", times=4)
def det(d):
    size = d.pick([1, 2, 3, 5])
    d.is_special = False
    d.give(d.data([*d.pick([(), (2,), (2, 3)]), size, size], F32, -2, 2))


@draws("Col2Im", times=8)
def col2im(d):
    count = d.int(1, 3)
    block = [d.int(1, 3) for _ in range(count)]
    image = [d.int(4, 7) for _ in range(count)]
    d.attr("strides", lambda: [d.int(1, 3) for _ in block])
    d.attr("dilations", lambda: [d.int(1, 2) for _ in block], 0.4)
    d.attr("pads", lambda: [d.int(0, 1) for _ in block * 2], 0.4)
    strides, dilations = (d.attrs.get(name, [1] * count) for name in ("strides", "dilations"))
    pads = d.attrs.get("pads", [0] * 2 * count)
    places = [(image[a] + pads[a] + pads[a + count] - dilations[a] * (block[a] - 1) - 1) // strides[a] + 1
              for a in range(count)]
    d.is_special = False
    d.give(d.data((d.int(1, 2), d.int(1, 2) * int(np.prod(block)), int(np.prod(places))), F32), 0)
    d.constant(image)
    d.constant(block)


@draws("GridSample", times=16)
def grid_sample(d):
    count = 3 if d.version >= 20 and d.chance(0.3) else 2
    modes = ["nearest", "linear", "cubic"] if d.version >= 20 else ["nearest", "bilinear", "bicubic"]
    d.attr("mode", lambda: d.pick(modes[:2] if count == 3 else modes))
    d.attr("padding_mode", lambda: d.pick(["zeros", "border", "reflection"]))
    d.attr("align_corners", lambda: d.int(0, 1))
    batch, d.is_special = d.pick([1, 2]), False
    d.give(d.data((batch, d.pick([1, 3]), *(d.pick([2, 3, 5]) for _ in range(count))), F32), 0)
    places = d.rng.uniform(-1.3, 1.3, (batch, *(d.pick([1, 3, 4]) for _ in range(count)), count))
    d.give(places.astype(F32), 0.3)


@draws("RoiAlign", times=12)
def roi_align(d):
    batch, channels, count, d.is_special = d.pick([1, 2]), d.pick([1, 3]), d.pick([1, 4]), False
    d.attr("output_height", lambda: d.int(1, 4))
    d.attr("output_width", lambda: d.int(1, 4))
    d.attr("sampling_ratio", lambda: d.int(0, 3))
    d.attr("spatial_scale", lambda: d.pick([0.5, 1.0, 0.25]))
    if d.version >= 16:
        d.attr("coordinate_transformation_mode", lambda: d.pick(["half_pixel", "output_half_pixel"]))
    d.attr("mode", lambda: d.pick(["avg", "max"]), 0.3)
    d.give(d.data((batch, channels, 8, 9), F32), 0)
    ends = d.rng.uniform(-2, 12, (count, 2, 2)).astype(F32)
    d.give(np.sort(ends, axis=1).reshape(count, 4), 0.3)
    d.give(d.rng.integers(0, batch, count).astype(np.int64), 0.3)


@draws("MaxRoiPool", times=6)
def max_roi_pool(d):
    batch, count, d.is_special = d.pick([1, 2]), d.pick([1, 4]), False
    d.attrs["pooled_shape"] = [d.int(1, 4), d.int(1, 4)]
    d.attr("spatial_scale", lambda: d.pick([0.5, 1.0]))
    d.give(d.data((batch, d.pick([1, 3]), 8, 9), F32), 0)
    ends = np.sort(d.rng.integers(0, 10, (count, 2, 2)), axis=1).reshape(count, 4)
    d.give(np.concatenate([d.rng.integers(0, batch, (count, 1)), ends], 1).astype(F32), 0.3)


@draws("MaxUnpool", times=4)
def max_unpool(d):
    rows, columns = d.int(1, 3), d.int(1, 3)
    d.attrs.update(kernel_shape=[2, 2], strides=[2, 2])
    d.is_special = False
    d.give(d.data((1, 1, rows, columns), F32), 0)
    places = [4 * columns * row + 2 * column + d.pick([0, 1]) for row in range(rows) for column in range(columns)]
    d.give(np.array(places, np.int64).reshape(1, 1, rows, columns), 0)


@draws("DFT", times=10)
def dft(d):
    d.is_special = False
    shape = [d.pick([1, 2]), d.pick([3, 4, 8]), d.pick([2, 5, 6])]
    axis = d.pick([1, 2])
    d.attr("onesided", lambda: d.int(0, 1))
    is_half = d.attrs.get("onesided", 0)
    d.attr("inverse", 0 if is_half else lambda: d.int(0, 1))
    length = None if d.chance(0.5) else np.array(d.pick([2, 4, 5, 9]), np.int64)
    d.give(d.data((*shape, 1 if is_half else d.pick([1, 2])), F32), 0)
    d.give(length, 1.0)
    if d.version < 20:
        d.attrs["axis"] = axis
    else:
        d.constant(axis)


@draws("STFT", times=6)
def stft(d):
    d.is_special = False
    length, samples = d.pick([4, 5, 8]), d.pick([8, 16, 19])
    d.attr("onesided", lambda: d.int(0, 1))
    d.give(d.data((d.pick([1, 2]), samples, 1), F32), 0)
    d.constant(d.int(1, 4))
    has_window = d.chance(0.6)
    d.give(d.data((length,), F32) if has_window else None, 0.7)
    if not has_window or d.chance(0.5):
        d.constant(length)


def found(name, op, version, inputs, judge=None, outputs=1, **attrs):
    """A model in which other seeds found a difference; inputs in lists are constants."""
    draw = Draw.__new__(Draw)
    draw.op, draw.version, draw.attrs, draw.outputs = op, version, attrs, outputs
    draw.inputs = [(np.asarray(value[0]), True) if isinstance(value, list) else (value, False) for value in inputs]
    return f"{op.lower()}_{name}", draw, judge


def floats(*values, dtype=F32):
    return np.array(values, dtype)


def unsigned(*shape):
    """Bytes of all sizes."""
    return (np.arange(np.prod(shape)) * 37 % 256).astype(np.uint8).reshape(shape)


def few_bits(*shape):
    """Integers of four bits, of all sizes."""
    return (np.arange(np.prod(shape)) * 7 % 16).reshape(shape).astype("uint4")


INF, NAN = np.inf, np.nan
EDGES = floats(INF, -INF, NAN, -0.0, 0.5, -2.0)
FOUND = [
    # Mistakes of ours that are mended.
    found("infinite", "Clip", 7, [EDGES], max=1.0),
    found("wide_difference", "DequantizeLinear", 21,
          [np.array([131000, -70000, 3], np.int32), [np.float16(0.125)]]),
    # Zero points of few bits that stand for blocks.
    found("few_bits", "DequantizeLinear", 21,
          [[few_bits(3, 16)], [floats(0.5, 0.25, 2, 1, 3, 4).reshape(3, 2)], [few_bits(3, 2)]], axis=1, block_size=8),
    found("few_bits", "QuantizeLinear", 21,
          [floats(*range(-12, 12)).reshape(2, 12), [floats(0.5, 0.25, 2, 1).reshape(2, 2)], [few_bits(2, 2)]], "reference",
          axis=1, block_size=6),
    found("whole_factor", "Gemm", 13, [np.ones((2, 3), np.int32), np.ones((3, 2), np.int32)], alpha=2.0),
    found("part_factor", "Gemm", 13, [np.ones((2, 3), np.int32), np.ones((3, 2), np.int32)], alpha=0.5),
    found("neither", "IsInf", 10, [EDGES], detect_negative=0, detect_positive=0),
    found("short", "LayerNormalization", 17, [floats(1, 2, 4, 200, dtype=F16), floats(1, 2, 3, 4, dtype=F16)],
          outputs=3),
    found("none_met", "MaxPool", 22, [np.full((1, 1, 1), 2, np.int8)], kernel_shape=[2], dilations=[2], pads=[1, 1]),
    # ONNX Runtime leaves the epsilon out.
    found("near", "MeanVarianceNormalization", 13, [floats(1e-8, -1e-8, 1e-8, -1e-8)], "reference", axes=[0]),
    found("wide_exponent", "Pow", 13, [floats(0, 2, 3, dtype=F16), floats(1e-300, 2.0001, -1, dtype=F64)]),
    found("edges", "Sign", 13, [EDGES]),
    found("before_the_first", "Slice", 13, [floats(1, 2, 3), [[-99]], [[-99]], [[0]], [[-1]]]),
    # Weights that are no signed bytes once their zeros are subtracted.
    found("unsigned_columns", "MatMulInteger", 10, [unsigned(2, 7, 9), [unsigned(9, 20)], [np.uint8(3)], [unsigned(20)]]),
    found("unsigned_kernels", "ConvInteger", 10,
          [unsigned(1, 5, 6, 6), [unsigned(18, 5, 3, 3)], [np.uint8(100)], [np.uint8(130)]], pads=[1, 1, 1, 1]),
    found("unsigned_kernels_in_steps", "ConvInteger", 10,
          [unsigned(2, 32, 7, 7), [unsigned(16, 32, 2, 2)], [np.uint8(0)], [np.uint8(1)]], strides=[2, 2]),
    # Those of the judge, and what the standard leaves open.
    found("of_nothing", "Gemm", 13, [np.ones((2, 0), F32), np.ones((0, 3), F32), floats(1, 2, 3)], beta=0.5),
    found("minus_infinity", "GlobalMaxPool", 7, [np.full((1, 1, 2), -INF, F32)]),
    found("nan", "MaxPool", 12, [floats(1, NAN, 3).reshape(1, 1, 3)], kernel_shape=[1]),
    found("large", "Mod", 13, [np.array([2**62 - 1]), np.array([3])], fmod=1),
    found("nan", "ReduceMax", 13, [floats(1, INF, NAN, 2, 3, 4, 5, 6, 7, 8)]),
    found("beside_nothing", "ReduceProd", 18, [np.ones((0, 3), F32), [[-1]]]),
    found("far_end", "Slice", 13, [floats(1, 2, 3), [[2]], [[2**63 - 1]], [[0]], [[-1]]]),
    found("no_axes", "Squeeze", 13, [np.ones((2, 1), F32), [np.array([], np.int64)]]),
]

HISTORY = {op: [] for op in [*DRAWS, *(draw.op for _, draw, _ in FOUND)]}
for schema in defs.get_all_schemas_with_history():
    if schema.domain == "" and schema.name in HISTORY:
        HISTORY[schema.name].append(schema)


def write_out_defaults(node, version):
    """Writes the attributes that are not given with their defaults, as exporters do."""
    written = {attribute.name for attribute in node.attribute}
    for name, attribute in defs.get_schema(node.op_type, version, node.domain).attributes.items():
        if name not in written and attribute.default_value.type:
            node.attribute.append(attribute.default_value)


def model_of(draw, is_written_out=False):
    """The model, and its inputs by name."""
    names, given, weights = [], {}, []
    for number, (value, is_constant) in enumerate(draw.inputs):
        names.append("" if value is None else f"x{number}")
        if value is None:
            continue
        if is_constant:
            weights.append(numpy_helper.from_array(value, names[-1]))
        else:
            given[names[-1]] = value
    while names and not names[-1]:
        names.pop()
    outputs = ["" if number in draw.unnamed else f"y{number}" for number in range(draw.outputs)]
    info = helper.make_tensor_value_info
    inputs = [info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in given.items()]
    node = helper.make_node(draw.op, names, outputs, **draw.attrs)
    if is_written_out:
        write_out_defaults(node, draw.version)
    untyped = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], draw.op, inputs, untyped, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", draw.version)], ir_version=10)
    model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    for output in model.graph.output:
        # Where nothing is inferred, the outputs are of the type of the first input.
        if not output.type.tensor_type.elem_type:
            output.type.CopyFrom(helper.make_tensor_type_proto(inputs[0].type.tensor_type.elem_type, None))
    return model, given


def judged(model, given, judge=None):
    """What the outputs are, and who says so."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    is_newer = model.opset_import[0].version > NEWEST
    try:
        if judge != "reference" and not is_newer:
            text, providers = model.SerializeToString(), ["CPUExecutionProvider"]
            return onnxruntime.InferenceSession(text, options, providers).run(None, given), "onnxruntime"
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise Again from error
    return ReferenceEvaluator(model).run(None, given), "reference"


def finished(draw, judge=None, is_written_out=False):
    """A model that says what its outputs are, its inputs and outputs, and who judged it."""
    model, given = model_of(draw, is_written_out)
    outputs, judge = judged(model, given, judge)
    outputs = [np.asarray(value) for value in outputs]
    for info, value in zip(model.graph.output, outputs):
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        if info.type.tensor_type.elem_type != dtype:
            raise Again
        info.type.CopyFrom(helper.make_tensor_type_proto(dtype, value.shape))
    checker.check_model(model)
    return model, given, outputs, judge


def case(seed, op, number):
    """The first draw that is judged, and how many were dropped before it."""
    function, _ = DRAWS[op]
    for attempt in range(200):
        draw = Draw(np.random.default_rng([seed, zlib.crc32(op.encode()), number, attempt]), op)
        try:
            function(draw)
            # Every second one has its defaults written out.
            return finished(draw, draw.judge, number % 2 == 1), attempt
        except Exception:  # noqa: BLE001: whatever refuses a draw, the next one is made
            pass
    raise SystemExit(f"{op}: no draw is judged")


def tolerance(op, outputs):
    """How far a result may be off: relative to itself, and what a sum loses relative to the largest."""
    relative, absolute = {"e": (2e-3, 2e-3), "f": (1e-4, 1e-6), "d": (1e-6, 1e-10)}, [0.0]
    if "stash_type" in HISTORY[op][-1].attributes or op.endswith("Window"):
        # These compute in f32, whatever they are given.
        relative["d"] = relative["f"]
    outputs = [value for value in outputs if value.dtype.kind == "f"]
    for value in outputs:
        finite = np.abs(value[np.isfinite(value)].astype(F64))
        # Numbers at the edge of the type are beside the others, not what they come from.
        absolute.append(relative[value.dtype.char][1] * max([1e-3, *finite[finite < 1e4]]))
    return f"{max([1e-6, *(relative[value.dtype.char][0] for value in outputs)])} {max(absolute)}\n"


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def save(place, op, model, given, outputs, judge):
    os.makedirs(place)
    write(os.path.join(place, "model.onnx"), model)
    for index, (name, value) in enumerate(given.items()):
        write(os.path.join(place, f"input_{index}.pb"), numpy_helper.from_array(value, name))
    for index, value in enumerate(outputs):
        write(os.path.join(place, f"output_{index}.pb"), numpy_helper.from_array(value, f"y{index}"))
    for name, text in ("tolerance", tolerance(op, outputs)), ("judge", f"{judge}\n"):
        with open(os.path.join(place, name), "w") as file:
            file.write(text)


def main():
    folder = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    judges, dropped = [], 0
    for name, draw, judge in FOUND:
        one = finished(draw, judge)
        save(os.path.join(folder, f"test_{name}"), draw.op, *one)
        judges.append(one[-1])
    for op, (_, times) in DRAWS.items():
        for number in range(times):
            one, attempts = case(seed, op, number)
            save(os.path.join(folder, f"test_{op.lower()}_{number:02}"), op, *one)
            judges.append(one[-1])
            dropped += attempts
    by = {judge: judges.count(judge) for judge in set(judges)}
    print(f"{len(judges)} models: {by}; {dropped} draws dropped")


if __name__ == "__main__":
    main()
