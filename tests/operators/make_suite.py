"""Writes the operator suite: cases/<family>.ir, what is computed, and cases/<family>.npz, what comes out.

    python make_suite.py [FAMILY]   needs numpy, onnx (with ml_dtypes) and onnxruntime, see ../models/requirements.txt

The expected numbers come from NumPy in f64 or from ONNX Runtime, never from Tenon. Inputs are not stored: input
`p` of case `c` is made from `fill("c/p", shape)`, uniform in [-1, 1), see ../models/fill.py:

    float                 4 * fill, or fill + 1.0625 for a name that begins with `pos`, fill / 64 for one with `small`
    signed integer        floor(8 * fill)
    unsigned integer      floor(8 * (fill + 1)); the name `nonzero` adds 1 to integers of either kind that are >= 0
    bool                  fill > 0
"""

import math
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
from fill import fill  # noqa: E402

DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_,
    "bf16": ml_dtypes.bfloat16,
}

erf = np.vectorize(math.erf)


class In:
    """An argument that is an input: `In("f32", 2, 3)`."""

    def __init__(self, dtype, *shape, name=None):
        self.dtype, self.shape, self.name = dtype, shape, name

    def type(self):
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def values(self, case):
        x = fill(f"{case}/{self.name}", self.shape)
        kind = "f" if self.dtype == "bf16" else np.dtype(DTYPES[self.dtype]).kind
        if kind == "b":
            return x > 0
        if kind == "f":
            if self.name.startswith("pos"):
                x = x + np.float32(1.0625)
            else:
                x = np.float32(1 / 64 if self.name.startswith("small") else 4) * x
            return x.astype(DTYPES[self.dtype])
        x = np.floor(np.float32(8) * (x if kind == "i" else x + 1)).astype(np.int64)
        if self.name == "nonzero":
            x = x + (x >= 0)
        return x.astype(DTYPES[self.dtype])


class Const:
    """An argument that is written out."""

    def __init__(self, dtype, values):
        self.dtype, self.array = dtype, np.array(values, DTYPES[dtype])

    def text(self):
        def element(x):
            if self.array.dtype.kind == "b":
                return "true" if x else "false"
            return str(int(x)) if self.array.dtype.kind in "iu" else repr(float(x))

        elements = ", ".join(element(x) for x in self.array.ravel())
        shape = ", ".join(map(str, self.array.shape))
        return f"const({self.dtype}[{shape}], [{elements}])"


class Shape:
    """An argument that is a shape."""

    def __init__(self, *dims):
        self.dims = dims


def attr_text(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(attr_text, value)) + "]"
    return repr(value)


class Family:
    """A file of cases."""

    def __init__(self, name):
        self.name, self.texts, self.expected = name, [], {}

    def case(self, name, op, args, expected, **attrs):
        """One call of an operator. `expected` maps the arguments' values to the result or results."""
        params, values = [], []

        def arg(a):
            if isinstance(a, (tuple, list)):
                return "(" + ", ".join(arg(x) for x in a) + ("," if len(a) == 1 else "") + ")"
            if isinstance(a, Shape):
                values.append(a.dims)
                return f"shape({', '.join(map(str, a.dims))})"
            if isinstance(a, Const):
                values.append(a.array)
                return a.text()
            a.name = a.name or "abcdefgh"[len(params)]
            params.append(f"%{a.name}: {a.type()}")
            values.append(a.values(name))
            return f"%{a.name}"

        call = f"{op}({', '.join(arg(a) for a in args)})"
        if attrs:
            call += " { " + ", ".join(f"{k} = {attr_text(v)}" for k, v in sorted(attrs.items())) + " }"
        self.texts.append(f"fn @{name}({', '.join(params)}) {{\n  %r = {call}\n  ret %r\n}}\n")
        with np.errstate(all="ignore"):
            results = expected(*values)
        if not isinstance(results, (tuple, list)):
            results = [results]
        for index, result in enumerate(results):
            self.expected[f"{name}/{index}"] = np.array(result, order="C")

    def write(self):
        folder = HERE / "cases"
        folder.mkdir(exist_ok=True)
        (folder / f"{self.name}.ir").write_text("\n".join(self.texts))
        np.savez(folder / f"{self.name}.npz", **self.expected)
        print(f"{self.name}: {len(self.texts)} cases")


def ort(op, inputs, outputs=1, opset=21, **attrs):
    """The outputs of one ONNX operator under ONNX Runtime; an input that is None is left out."""
    info = onnx.helper.make_tensor_value_info
    given = [(f"x{i}", x) for i, x in enumerate(inputs) if x is not None]
    types = [onnx.helper.np_dtype_to_tensor_dtype(x.dtype) for _, x in given]
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, names, results, **attrs)], "g",
        [info(n, t, x.shape) for (n, x), t in zip(given, types)],
        [onnx.helper.make_empty_tensor_value_info(r) for r in results])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = session.run(None, dict(given))
    return found[0] if outputs == 1 else found


def wide(f):
    """A function that is computed in f64 and rounded once."""
    return lambda *xs: np.asarray(f(*(x.astype(np.float64) for x in xs))).astype(xs[0].dtype)


def elementwise():
    family = Family("elementwise")
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    functions = {
        "nn.relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "tanh": np.tanh, "exp": np.exp, "log": np.log,
        "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "negative": np.negative, "abs": np.abs, "erf": erf,
        "floor": np.floor, "ceil": np.ceil, "round": np.rint, "sin": np.sin, "cos": np.cos,
        "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
        "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
        "nn.gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), "nn.silu": lambda x: x * sigmoid(x),
        "nn.dropout": lambda x: x,
    }
    specials = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-6, 20.0, -20.0, 88.0, -88.0, math.inf, -math.inf]
    for op, f in functions.items():
        name = op.replace(".", "_")
        positive = op in ("log", "sqrt", "rsqrt")
        # 37 elements: no multiple of any vector.
        x = lambda dtype, *shape: In(dtype, *shape, name="pos" if positive else "x")
        family.case(f"{name}_f32", op, [x("f32", 37)], wide(f))
        family.case(f"{name}_4d", op, [x("f32", 2, 3, 5, 4)], wide(f))
        family.case(f"{name}_f16", op, [x("f16", 3, 7)], wide(f))
        family.case(f"{name}_f64", op, [x("f64", 9)], wide(f))
        if not positive and op not in ("sin", "cos", "tan", "nn.gelu", "nn.silu"):
            family.case(f"{name}_special", op, [Const("f32", specials)], wide(f))
    family.case("relu_i32", "nn.relu", [In("i32", 11)], lambda x: np.maximum(x, 0))
    family.case("negative_i64", "negative", [In("i64", 11)], np.negative)
    family.case("abs_i8", "abs", [In("i8", 11)], np.abs)
    family.case("leaky_relu", "nn.leaky_relu", [In("f32", 3, 9)], wide(lambda x: np.where(x > 0, x, 0.1 * x)), alpha=0.1)
    family.case("leaky_relu_default", "nn.leaky_relu", [In("f32", 9)], wide(lambda x: np.where(x > 0, x, 0.01 * x)))
    family.case("clip", "clip", [In("f32", 3, 9)], lambda x: np.clip(x, np.float32(0), np.float32(6)), min=0.0, max=6.0)
    family.case("clip_i32", "clip", [In("i32", 9)], lambda x: np.clip(x, -2, 3), min=-2.0, max=3.0)
    family.case("clip_below", "clip", [In("f32", 9)], lambda x: np.maximum(x, np.float32(-1)), min=-1.0)
    family.case("clip_nan", "clip", [Const("f32", [math.nan, 1, 9])], lambda x: np.clip(x, 0, 6), min=0.0, max=6.0)
    family.case("logical_not", "logical_not", [In("bool", 9)], np.logical_not)
    for source, target in [("f32", "i32"), ("i64", "f64"), ("i8", "u8"), ("u16", "f16"), ("f16", "i16")]:
        family.case(f"reinterpret_{source}_{target}", "reinterpret", [In(source, 3, 7)],
                    lambda x, target=target: x.view(DTYPES[target]), dtype=target)
    for source, target in [("f32", "f16"), ("f16", "f32"), ("f32", "i32"), ("f32", "i8"), ("i64", "f32"), ("i32", "i64"),
                           ("i64", "i8"), ("u8", "f32"), ("bool", "f32"), ("f32", "bool"), ("i32", "bool"), ("bool", "i64"),
                           ("f64", "f32"), ("f32", "f64"), ("i8", "u8"), ("f32", "f32")]:
        family.case(f"cast_{source}_{target}", "cast", [In(source, 3, 7)],
                    lambda x, target=target: x.astype(DTYPES[target]), dtype=target)
    family.write()


def broadcast():
    family = Family("broadcast")
    trunc = lambda a, b: (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)
    arithmetic = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
                  "maximum": np.maximum, "minimum": np.minimum}
    shapes = {"same": [(3, 5), (3, 5)], "row": [(3, 5), (5,)], "column": [(3, 5), (3, 1)], "outer": [(3, 1), (1, 5)],
              "scalar": [(2, 3), ()], "channel": [(2, 4, 3, 5), (4, 1, 1)], "left": [(5,), (2, 3, 5)],
              "one": [(1, 1), (2, 3)], "blocked": [(1, 2, 3, 3, 4), (1, 2, 1, 1, 4)], "mixed": [(2, 1, 3, 1), (1, 4, 1, 5)]}
    for op, f in arithmetic.items():
        for kind, (a, b) in shapes.items():
            name = "nonzero" if op == "divide" else "b"
            family.case(f"{op}_{kind}", op, [In("f32", *a), In("f32", *b, name=name)], f)
        for dtype in ("f64", "f16", "i32", "i64", "u8"):
            b = In(dtype, 7, name="nonzero" if op == "divide" else "b")
            exact = trunc if op == "divide" and dtype[0] in "iu" else f
            family.case(f"{op}_{dtype}", op, [In(dtype, 7), b], exact)
    family.case("maximum_nan", "maximum", [Const("f32", [math.nan, 1, 2]), Const("f32", [1, math.nan, 3])], np.maximum)
    family.case("minimum_nan", "minimum", [Const("f32", [math.nan, 1, 2]), Const("f32", [1, math.nan, 3])], np.minimum)
    family.case("add_wraps", "add", [Const("i8", [127, -128]), Const("i8", [1, -1])], np.add)
    family.case("power", "power", [In("f32", 3, 5, name="pos"), In("f32", 5)], wide(np.power))
    family.case("power_square", "power", [In("f32", 3, 5), Const("f32", 2.0)], wide(np.power))
    family.case("power_i64", "power", [In("i64", 7), Const("i64", 3)], np.power)
    for dtype in ("f32", "f16", "f64"):
        family.case(f"mod_{dtype}", "mod", [In(dtype, 7, 9), In(dtype, 9)], wide(np.fmod))
    edges = [0.0, -0.0, 1.0, -1.0, 3.0, 1e30, 1e-40, math.inf, -math.inf, math.nan, 0.1, 5.5]
    family.case("mod_edges", "mod", [Const("f32", np.array(edges)[:, None]), Const("f32", edges)], wide(np.fmod))
    edges = [*edges[:5], 1.7976931348623157e308, 5e-324, -1.1e-310, *edges[7:], 3.7e200]
    family.case("mod_edges_f64", "mod", [Const("f64", np.array(edges)[:, None]), Const("f64", edges)], wide(np.fmod))
    comparisons = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
                   "greater": np.greater, "greater_equal": np.greater_equal}
    for op, f in comparisons.items():
        for dtype in ("f32", "i64", "u8"):
            family.case(f"{op}_{dtype}", op, [In(dtype, 4, 6), In(dtype, 6)], f)
        family.case(f"{op}_nan", op, [Const("f32", [math.nan, 1, 2]), Const("f32", [math.nan, 1, 3])], f)
    family.case("equal_bool", "equal", [In("bool", 9), In("bool", 9)], np.equal)
    family.case("logical_and", "logical_and", [In("bool", 3, 5), In("bool", 5)], np.logical_and)
    family.case("logical_or", "logical_or", [In("bool", 3, 1), In("bool", 3, 5)], np.logical_or)
    family.case("where", "where", [In("bool", 3, 5), In("f32", 3, 5), In("f32", 3, 5)], np.where)
    family.case("where_broadcast", "where", [In("bool", 3, 1), In("f32", 5), In("f32", 2, 1, 1)], np.where)
    # A product that is rounded before the sum would leave nothing of it.
    edges = [1 + 2**-12, 3e38, math.inf, -0.0, 1e-30], [1 - 2**-12, 3e38, 2.0, 5.0, 1e-30], [-1, -3e38, 1.0, -0.0, 1.0]
    exact = lambda a, b, c: (np.float64(a) * np.float64(b) + np.float64(c)).astype(np.float32)
    family.case("fma", "fma", [In("f32", 3, 5), In("f32", 5), In("f32")], exact)
    family.case("fma_edges", "fma", [Const("f32", edge) for edge in edges], exact)
    family.case("fma_f64", "fma", [In("f64", 3, 5), In("f64", 3, 1), In("f64", 3, 5)], lambda a, b, c: a * b + c)
    family.case("where_i64", "where", [In("bool", 7), In("i64", 7), In("i64", 1)], np.where)
    family.write()


def to_blocks(x, axis, size):
    """Splits an axis; the block becomes the last axis."""
    shape = x.shape[:axis] + (x.shape[axis] // size, size) + x.shape[axis + 1:]
    return np.moveaxis(x.reshape(shape), axis + 1, -1)


def from_blocks(x, axis):
    """The inverse of `to_blocks`."""
    x = np.moveaxis(x, -1, axis + 1)
    return x.reshape(x.shape[:axis] + (x.shape[axis] * x.shape[axis + 1],) + x.shape[axis + 2:])


def conv():
    family = Family("conv")

    def conv2d(x, w, strides=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1):
        """In f64, tap by tap; ONNX Runtime, which sums in f32, must agree."""
        top, left, bottom, right = padding
        padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
        n, c, height, width = padded.shape
        o, i, kernel_h, kernel_w = w.shape
        out_h = (height - dilation[0] * (kernel_h - 1) - 1) // strides[0] + 1
        out_w = (width - dilation[1] * (kernel_w - 1) - 1) // strides[1] + 1
        out = np.zeros((n, groups, o // groups, out_h, out_w))
        kernel = w.astype(np.float64).reshape(groups, o // groups, i, kernel_h, kernel_w)
        for h in range(kernel_h):
            for v in range(kernel_w):
                rows = slice(h * dilation[0], h * dilation[0] + (out_h - 1) * strides[0] + 1, strides[0])
                columns = slice(v * dilation[1], v * dilation[1] + (out_w - 1) * strides[1] + 1, strides[1])
                part = padded[:, :, rows, columns].reshape(n, groups, i, out_h, out_w)
                out += np.einsum("ngihw,goi->ngohw", part, kernel[..., h, v])
        out = out.reshape(n, o, out_h, out_w)
        single = ort("Conv", [x.astype(np.float32), w.astype(np.float32)], strides=strides, pads=padding,
                     dilations=dilation, group=groups)
        np.testing.assert_allclose(single, out, rtol=1e-3, atol=1e-3)
        return out.astype(x.dtype)

    cases = {
        "plain": ((1, 3, 8, 8), (4, 3, 3, 3), {}),
        "pointwise": ((2, 5, 4, 7), (6, 5, 1, 1), {}),
        "pointwise_strided": ((1, 4, 7, 7), (8, 4, 1, 1), dict(strides=[2, 2])),
        "padded": ((2, 3, 7, 9), (4, 3, 3, 3), dict(padding=[1, 1, 1, 1])),
        "uneven_padding": ((1, 2, 6, 5), (3, 2, 3, 3), dict(padding=[0, 2, 1, 0])),
        "strided": ((1, 3, 11, 10), (5, 3, 3, 3), dict(strides=[2, 2], padding=[1, 1, 1, 1])),
        "uneven_strides": ((1, 2, 9, 9), (3, 2, 3, 2), dict(strides=[3, 1])),
        "stem": ((1, 3, 23, 23), (8, 3, 7, 7), dict(strides=[2, 2], padding=[3, 3, 3, 3])),
        "dilated": ((1, 2, 9, 9), (3, 2, 3, 3), dict(dilation=[2, 2], padding=[2, 2, 2, 2])),
        "dilated_strided": ((1, 2, 12, 9), (3, 2, 3, 3), dict(dilation=[2, 1], strides=[2, 3])),
        "grouped": ((1, 6, 5, 5), (9, 2, 3, 3), dict(groups=3, padding=[1, 1, 1, 1])),
        "depthwise": ((1, 8, 7, 7), (8, 1, 3, 3), dict(groups=8, padding=[1, 1, 1, 1])),
        "depthwise_multiplied": ((1, 4, 6, 6), (8, 1, 3, 3), dict(groups=4, strides=[2, 2], padding=[1, 1, 1, 1])),
        "wide_kernel": ((1, 2, 5, 12), (3, 2, 1, 7), dict(padding=[0, 3, 0, 3])),
        "one_pixel": ((1, 4, 1, 1), (3, 4, 1, 1), {}),
        "kernel_as_large_as_data": ((1, 2, 5, 5), (7, 2, 5, 5), {}),
        "many_channels": ((1, 40, 6, 6), (20, 40, 3, 3), dict(padding=[1, 1, 1, 1])),
    }
    for name, (x, w, attrs) in cases.items():
        family.case(f"conv2d_{name}", "nn.conv2d", [In("f32", *x), In("f32", *w)],
                    lambda x, w, attrs=attrs: conv2d(x, w, **attrs), **attrs)
    family.case("conv2d_f16", "nn.conv2d", [In("f16", 1, 3, 5, 5), In("f16", 2, 3, 3, 3)], conv2d)
    singles = lambda *args: [x.astype(np.float32) for x in args]
    family.case("conv2d_f16_to_f32", "nn.conv2d", [In("f16", 1, 3, 5, 6), In("f16", 2, 3, 3, 3)],
                lambda x, w: conv2d(*singles(x, w)), out_dtype="f32")
    nhwc = lambda x: np.transpose(x, (0, 3, 1, 2))
    family.case("conv2d_nhwc", "nn.conv2d", [In("f32", 1, 7, 6, 3), In("f32", 4, 3, 3, 3)],
                lambda x, w: np.transpose(conv2d(nhwc(x), w, strides=[2, 2]), (0, 2, 3, 1)),
                data_layout="NHWC", strides=[2, 2])
    family.case("conv2d_hwio", "nn.conv2d", [In("f32", 1, 7, 6, 3), In("f32", 3, 3, 3, 4)],
                lambda x, w: np.transpose(conv2d(nhwc(x), np.transpose(w, (3, 2, 0, 1))), (0, 2, 3, 1)),
                data_layout="NHWC", kernel_layout="HWIO")
    # Blocked: the kernel's axes are O, I, H, W, i, o.
    kernel = lambda w: from_blocks(from_blocks(w, 0), 1)
    for size in (4, 8, 16):
        attrs = dict(strides=[2, 2], padding=[1, 1, 1, 1])
        family.case(f"conv2d_blocked_{size}", "nn.conv2d",
                    [In("f32", 1, 2, 7, 7, size), In("f32", 3, 2, 3, 3, size, size)],
                    lambda x, w, size=size, attrs=attrs: to_blocks(conv2d(from_blocks(x, 1), kernel(w), **attrs), 1, size),
                    data_layout=f"NCHW{size}c", kernel_layout=f"OIHW{size}i{size}o", **attrs)
        family.case(f"conv2d_blocked_pointwise_{size}", "nn.conv2d",
                    [In("f32", 1, 2, 9, 9, size), In("f32", 2, 2, 1, 1, size, size)],
                    lambda x, w, size=size: to_blocks(conv2d(from_blocks(x, 1), kernel(w)), 1, size),
                    data_layout=f"NCHW{size}c", kernel_layout=f"OIHW{size}i{size}o")
        attrs = dict(strides=[2, 2], padding=[3, 3, 3, 3])
        family.case(f"conv2d_blocked_stem_{size}", "nn.conv2d",
                    [In("f32", 1, 3, 15, 15), In("f32", 2, 3, 7, 7, size)],
                    lambda x, w, size=size, attrs=attrs: to_blocks(conv2d(x, from_blocks(w, 0), **attrs), 1, size),
                    data_layout="NCHW", kernel_layout=f"OIHW{size}o", out_layout=f"NCHW{size}c", **attrs)
        attrs = dict(groups=2 * size, padding=[1, 1, 1, 1])
        family.case(f"conv2d_blocked_depthwise_{size}", "nn.conv2d",
                    [In("f32", 1, 2, 6, 6, size), In("f32", 2, 1, 3, 3, 1, size)],
                    lambda x, w, size=size, attrs=attrs: to_blocks(conv2d(from_blocks(x, 1), kernel(w), **attrs), 1, size),
                    data_layout=f"NCHW{size}c", kernel_layout=f"OIHW1i{size}o", **attrs)
    # Lines of zeros around the data are left out.
    for name, shape, attrs in [("lines", (2, 2, 3, 3, 8, 8), dict(padding=[1, 1, 1, 1])),
                               ("lines_apart", (2, 2, 5, 3, 8, 8), dict(padding=[4, 1, 3, 1], dilation=[2, 1], strides=[2, 1])),
                               ("lines_far", (2, 2, 3, 3, 8, 8), dict(padding=[7, 9, 7, 9], dilation=[7, 9])),
                               ("lines_far_strided", (2, 2, 1, 4, 8, 8), dict(padding=[0, 13, 0, 3], dilation=[1, 5], strides=[1, 2]))]:
        family.case(f"conv2d_{name}", "nn.conv2d", [In("f32", 1, 2, 7, 6, 8), In("f32", *shape)],
                    lambda x, w, attrs=attrs: to_blocks(conv2d(from_blocks(x, 1), kernel(w), **attrs), 1, 8),
                    data_layout="NCHW8c", kernel_layout="OIHW8i8o", skip_lines=True, **attrs)
    family.case("conv2d_depthwise_lines", "nn.conv2d", [In("f32", 1, 2, 7, 7, 8), In("f32", 2, 1, 5, 5, 1, 8)],
                lambda x, w: to_blocks(conv2d(from_blocks(x, 1), kernel(w), groups=16, padding=[2, 2, 2, 2]), 1, 8),
                data_layout="NCHW8c", kernel_layout="OIHW1i8o", skip_lines=True, groups=16, padding=[2, 2, 2, 2])
    # One block of all channels, and a kernel whose last one holds more.
    for inputs, outputs, size in [(6, 21, 16), (16, 35, 16), (9, 13, 8), (8, 10, 4)]:
        attrs = dict(strides=[1, 2], padding=[1, 1, 1, 1])
        family.case(f"conv2d_filled_{outputs}", "nn.conv2d",
                    [In("f32", 1, 1, 6, 9, inputs), In("f32", -(-outputs // size), 1, 3, 3, inputs, size)],
                    lambda x, w, n=outputs, attrs=attrs: to_blocks(conv2d(from_blocks(x, 1), kernel(w)[:n], **attrs), 1, n),
                    data_layout=f"NCHW{inputs}c", kernel_layout=f"OIHW{inputs}i{size}o", out_layout=f"NCHW{outputs}c",
                    channels=outputs, **attrs)
    family.write()


def winograd():
    family = Family("winograd")
    taps = 3

    def matrices(tile):
        """A, B and G for sums at zero, pairs of points and infinity, from their definitions: values of polynomials."""
        points = np.array([0.0, 1.0, -1.0, 2.0, -2.0][:tile + taps - 2])
        others = [np.delete(points, i) for i in range(len(points))]
        a = np.vstack([points[:, None] ** np.arange(tile), np.eye(tile)[-1]])
        g = np.vstack([[p ** np.arange(taps) / np.prod(p - q) for p, q in zip(points, others)], np.eye(taps)[-1]])
        # The coefficients of polynomials that are zero at all other points, the lowest first.
        coefficients = [np.append(np.poly(q)[::-1], 0.0) for q in others]
        return a, np.vstack([coefficients, np.poly(points)[::-1]]), g

    def weights(w, tile=4):
        g = matrices(tile)[2]
        return np.einsum("pr,oirs,qs->oipq", g, w.astype(np.float64), g).astype(w.dtype)

    def conv2d(x, u, tile=4, padding=(0, 0, 0, 0)):
        a, b, _ = matrices(tile)
        top, left, bottom, right = padding
        out = [x.shape[2] + top + bottom - taps + 1, x.shape[3] + left + right - taps + 1]
        tiles = [-(-extent // tile) for extent in out]
        reach = [count * tile + taps - 1 for count in tiles]
        padded = np.zeros((*x.shape[:2], *reach))
        height, width = min(x.shape[2], reach[0] - top), min(x.shape[3], reach[1] - left)
        padded[:, :, top:top + height, left:left + width] = x[:, :, :height, :width]
        y = np.zeros((x.shape[0], u.shape[0], tiles[0] * tile, tiles[1] * tile))
        extent = tile + taps - 1
        for i in range(tiles[0]):
            for j in range(tiles[1]):
                d = padded[:, :, i * tile:i * tile + extent, j * tile:j * tile + extent]
                product = np.einsum("pr,ncrs,qs,ocpq->nopq", b, d, b, u.astype(np.float64))
                y[:, :, i * tile:(i + 1) * tile, j * tile:(j + 1) * tile] = np.einsum("py,nopq,qx->noyx", a, product, a)
        return y[:, :, :out[0], :out[1]].astype(x.dtype)

    # With weights that were made of a kernel it is a convolution.
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 9, 7)), rng.normal(size=(4, 3, 3, 3))
    for tile in (2, 4):
        single = ort("Conv", [x.astype(np.float32), w.astype(np.float32)], pads=[1, 1, 0, 2])
        np.testing.assert_allclose(conv2d(x, weights(w, tile), tile, (1, 1, 0, 2)), single, rtol=1e-4, atol=1e-4)

    for tile in (2, 4):
        family.case(f"winograd_weights_{tile}", "nn.winograd_weights", [In("f32", 3, 2, 3, 3)],
                    lambda w, tile=tile: weights(w, tile), tile=tile)
        extent = tile + taps - 1
        for name, x, channels, padding in [("plain", (1, 2, 10, 10), 3, [0] * 4), ("padded", (2, 3, 7, 9), 4, [1] * 4),
                                           ("uneven_padding", (1, 2, 6, 5), 3, [0, 2, 1, 0])]:
            attrs = dict(tile=tile, padding=padding)
            family.case(f"conv2d_winograd_{name}_{tile}", "nn.conv2d_winograd",
                        [In("f32", *x), In("f32", channels, x[1], extent, extent, name="small")],
                        lambda x, u, attrs=attrs: conv2d(x, u, **attrs), **attrs)
        for size in (4, 8, 16):
            # Blocked: the kernel's axes are H, W, O, I, i, o.
            kernel = lambda u: from_blocks(from_blocks(np.moveaxis(u, (0, 1), (2, 3)), 0), 1)
            for name, image, padding in [("whole", (8, 12), [1] * 4), ("ragged", (7, 13), [1, 1, 0, 2])]:
                attrs = dict(tile=tile, padding=padding)
                family.case(f"conv2d_winograd_blocked_{name}_{size}_{tile}", "nn.conv2d_winograd",
                            [In("f32", 2, 2, *image, size), In("f32", extent, extent, 2, 2, size, size, name="small")],
                            lambda x, u, size=size, attrs=attrs: to_blocks(conv2d(from_blocks(x, 1), kernel(u), **attrs), 1, size),
                            data_layout=f"NCHW{size}c", kernel_layout=f"HWOI{size}i{size}o", **attrs)
    family.case("conv2d_winograd_f16", "nn.conv2d_winograd", [In("f16", 1, 2, 6, 6), In("f16", 2, 2, 4, 4)],
                lambda x, u: conv2d(x, u, 2), tile=2)
    family.write()


def matmul():
    family = Family("matmul")
    product = wide(np.matmul)
    for m, k, n in [(1, 1, 1), (3, 4, 5), (1, 37, 19), (17, 8, 33), (5, 64, 16)]:
        family.case(f"dense_{m}_{k}_{n}", "nn.dense", [In("f32", m, k), In("f32", n, k)], lambda x, w: product(x, w.T))
        family.case(f"matmul_{m}_{k}_{n}", "matmul", [In("f32", m, k), In("f32", k, n)], product)
    family.case("dense_leading", "nn.dense", [In("f32", 2, 3, 8), In("f32", 5, 8)], lambda x, w: product(x, w.T))
    family.case("dense_f16", "nn.dense", [In("f16", 3, 8), In("f16", 5, 8)], lambda x, w: product(x, w.T))
    singles = lambda *args: [x.astype(np.float32) for x in args]
    family.case("dense_f16_to_f32", "nn.dense", [In("f16", 3, 8), In("f16", 5, 8)],
                lambda x, w: product(*singles(x, w.T)), out_dtype="f32")
    family.case("matmul_f16_to_f32", "matmul", [In("f16", 2, 3, 8), In("f16", 8, 5)],
                lambda x, w: product(*singles(x, w)), out_dtype="f32")
    for size, n in [(16, 32), (16, 20), (8, 13), (4, 4)]:
        blocks = -(-n // size)
        family.case(f"dense_packed_{size}_{n}", "nn.dense", [In("f32", 3, 9), In("f32", blocks, 9, size)],
                    lambda x, w, n=n: product(x, from_blocks(w, 0).T)[:, :n],
                    weight_layout=f"NK{size}n", units=n)
    family.case("matmul_transposed_a", "matmul", [In("f32", 4, 3), In("f32", 4, 5)],
                lambda a, b: product(a.T, b), transpose_a=True)
    family.case("matmul_transposed_b", "matmul", [In("f32", 3, 4), In("f32", 5, 4)],
                lambda a, b: product(a, b.T), transpose_b=True)
    family.case("matmul_transposed_both", "matmul", [In("f32", 2, 4, 3), In("f32", 2, 5, 4)],
                lambda a, b: product(np.swapaxes(a, 1, 2), np.swapaxes(b, 1, 2)), transpose_a=True, transpose_b=True)
    family.case("matmul_batch", "matmul", [In("f32", 2, 3, 4, 5), In("f32", 2, 3, 5, 6)], product)
    family.case("matmul_batch_broadcast", "matmul", [In("f32", 2, 1, 4, 5), In("f32", 3, 5, 2)], product)
    family.case("matmul_shared_matrix", "matmul", [In("f32", 3, 4, 5), In("f32", 5, 2)], product)
    family.case("matmul_i32", "matmul", [In("i32", 3, 4), In("i32", 4, 5)], np.matmul)
    family.case("matmul_f64", "matmul", [In("f64", 3, 4), In("f64", 4, 5)], np.matmul)
    family.write()


def pool():
    family = Family("pool")

    def max_pool(x, pool_size, strides=(1, 1), padding=(0,) * 4, dilation=(1, 1), ceil_mode=False):
        return ort("MaxPool", [x], kernel_shape=pool_size, strides=strides, pads=padding, dilations=dilation,
                   ceil_mode=int(ceil_mode))

    def avg_pool(x, pool_size, strides=(1, 1), padding=(0,) * 4, dilation=(1, 1), ceil_mode=False,
                 count_include_pad=False):
        return ort("AveragePool", [x], kernel_shape=pool_size, strides=strides, pads=padding, dilations=dilation,
                   ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad))

    cases = {
        "plain": ((1, 2, 6, 6), dict(pool_size=[2, 2], strides=[2, 2])),
        "overlapping": ((2, 3, 9, 8), dict(pool_size=[3, 3], strides=[2, 2])),
        "padded": ((1, 2, 8, 7), dict(pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])),
        "uneven_padding": ((1, 2, 6, 7), dict(pool_size=[3, 2], padding=[0, 1, 2, 0])),
        "ceil": ((1, 2, 6, 6), dict(pool_size=[3, 3], strides=[2, 2], ceil_mode=True)),
        "ceil_padded": ((1, 2, 7, 8), dict(pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], ceil_mode=True)),
        "ceil_dropped": ((1, 1, 4, 4), dict(pool_size=[1, 2], strides=[2, 3], padding=[0, 1, 0, 1], ceil_mode=True)),
        "dilated": ((1, 2, 9, 9), dict(pool_size=[3, 3], dilation=[2, 2])),
        "whole": ((1, 3, 5, 4), dict(pool_size=[5, 4])),
        "large": ((1, 2, 11, 12), dict(pool_size=[5, 7], padding=[2, 3, 2, 3])),
        "large_steps": ((1, 2, 14, 15), dict(pool_size=[6, 7], strides=[2, 2], padding=[1, 3, 2, 3], ceil_mode=True)),
        "large_dilated": ((1, 1, 15, 17), dict(pool_size=[4, 5], dilation=[2, 3])),
    }
    for name, (shape, attrs) in cases.items():
        family.case(f"max_pool2d_{name}", "nn.max_pool2d", [In("f32", *shape)],
                    lambda x, attrs=attrs: max_pool(x, **attrs), **attrs)
        family.case(f"avg_pool2d_{name}", "nn.avg_pool2d", [In("f32", *shape)],
                    lambda x, attrs=attrs: avg_pool(x, **attrs), **attrs)
        if "padding" in attrs and not attrs.get("ceil_mode"):
            family.case(f"avg_pool2d_{name}_counted", "nn.avg_pool2d", [In("f32", *shape)],
                        lambda x, attrs=attrs: avg_pool(x, count_include_pad=True, **attrs), count_include_pad=True, **attrs)
    attrs = dict(pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])
    for kind, f in [("max", max_pool), ("avg", avg_pool)]:
        family.case(f"{kind}_pool2d_blocked", f"nn.{kind}_pool2d", [In("f32", 1, 2, 7, 7, 8)],
                    lambda x, f=f: to_blocks(f(from_blocks(x, 1), **attrs), 1, 8), layout="NCHW8c", **attrs)
        family.case(f"{kind}_pool2d_nhwc", f"nn.{kind}_pool2d", [In("f32", 1, 7, 6, 3)],
                    lambda x, f=f: np.transpose(f(np.transpose(x, (0, 3, 1, 2)), **attrs), (0, 2, 3, 1)),
                    layout="NHWC", **attrs)
    for kind, f in [("avg", lambda x, axes: wide(lambda x: np.mean(x, axes, keepdims=True))(x)),
                    ("max", lambda x, axes: np.max(x, axes, keepdims=True))]:
        op = f"nn.global_{kind}_pool2d"
        family.case(f"global_{kind}_pool2d", op, [In("f32", 2, 5, 7, 6)], lambda x, f=f: f(x, (2, 3)))
        family.case(f"global_{kind}_pool2d_blocked", op, [In("f32", 1, 2, 5, 5, 16)], lambda x, f=f: f(x, (2, 3)),
                    layout="NCHW16c")
        family.case(f"global_{kind}_pool2d_nhwc", op, [In("f32", 1, 5, 4, 3)], lambda x, f=f: f(x, (1, 2)), layout="NHWC")
    family.write()


def normalize():
    family = Family("normalize")

    def batch_norm(x, gamma, beta, mean, var, epsilon=1e-5, axis=1):
        x, gamma, beta, mean, var = (a.astype(np.float64) for a in (x, gamma, beta, mean, var))
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        gamma, beta, mean, var = (a.reshape(shape) for a in (gamma, beta, mean, var))
        return ((x - mean) / np.sqrt(var + epsilon) * gamma + beta).astype(np.float32)

    params = lambda c: [In("f32", c), In("f32", c), In("f32", c), In("f32", c, name="pos")]
    family.case("batch_norm", "nn.batch_norm", [In("f32", 2, 5, 3, 4), *params(5)], batch_norm)
    family.case("batch_norm_2d", "nn.batch_norm", [In("f32", 3, 7), *params(7)], batch_norm)
    family.case("batch_norm_last", "nn.batch_norm", [In("f32", 2, 3, 6), *params(6)],
                lambda *a: batch_norm(*a, epsilon=1e-3, axis=2), axis=-1, epsilon=1e-3)
    family.case("bias_add", "nn.bias_add", [In("f32", 2, 5, 3, 4), In("f32", 5)],
                lambda x, b: x + b[:, None, None])
    family.case("bias_add_last", "nn.bias_add", [In("i32", 2, 3, 4), In("i32", 4)], lambda x, b: x + b, axis=-1)
    for size, attrs in [(5, {}), (3, dict(alpha=0.01, beta=0.5, bias=2.0)), (1, dict(alpha=0.3))]:
        lrn = lambda x, size=size, attrs=attrs: ort("LRN", [x], size=size, **attrs)
        family.case(f"lrn_{size}", "nn.lrn", [In("f32", 2, 7, 3, 4)], lrn, size=size, **attrs)
    # ONNX Runtime takes odd sizes only.
    even = lambda x: x / (1 + 0.5 / 4 * sum(np.pad(x * x, ((0, 0), (1, 2), (0, 0), (0, 0)))[:, i:i + 7] for i in range(4))) ** 0.75
    family.case("lrn_even", "nn.lrn", [In("f32", 2, 7, 3, 4)], wide(even), size=4, alpha=0.5)
    family.case("lrn_blocked", "nn.lrn", [In("f32", 1, 2, 3, 3, 8)],
                lambda x: to_blocks(ort("LRN", [from_blocks(x, 1)], size=5, alpha=0.2), 1, 8),
                size=5, alpha=0.2, layout="NCHW8c")
    exp = lambda x, axis: np.exp(x - x.max(axis, keepdims=True))
    softmax = lambda axis: wide(lambda x: exp(x, axis) / exp(x, axis).sum(axis, keepdims=True))
    log_softmax = lambda axis: wide(lambda x: np.log(exp(x, axis) / exp(x, axis).sum(axis, keepdims=True)))
    for axis, shape in [(-1, (3, 10)), (1, (2, 5, 3, 4)), (0, (6,)), (1, (2, 19)), (2, (2, 3, 17))]:
        name = f"{len(shape)}d_{axis}".replace("-", "last")
        family.case(f"softmax_{name}", "nn.softmax", [In("f32", *shape)], softmax(axis), axis=axis)
        family.case(f"log_softmax_{name}", "nn.log_softmax", [In("f32", *shape)], log_softmax(axis), axis=axis)
    family.case("softmax_large", "nn.softmax", [Const("f32", [[1000, 1001, 999], [-1000, -1000, -1e4]])], softmax(-1))
    family.case("softmax_f16", "nn.softmax", [In("f16", 2, 9)], softmax(-1))
    # ONNX Runtime normalizes the last axes, groups of axis 1, and instances of axis 1.
    layer = lambda x, g, b, axis=-1: ort("LayerNormalization", [x, g, b], axis=axis, epsilon=1e-3)
    family.case("layer_norm", "nn.layer_norm", [In("f32", 3, 10), In("f32", 10), In("f32", 10)], layer, epsilon=1e-3)
    family.case("layer_norm_two", "nn.layer_norm", [In("f32", 2, 3, 5, 4), In("f32", 5, 4), In("f32", 5, 4)],
                lambda *a: layer(*a, axis=2), axes=[-2, -1], epsilon=1e-3)
    family.case("layer_norm_middle", "nn.layer_norm", [In("f32", 2, 7, 3), In("f32", 7), In("f32", 7)],
                lambda x, g, b: layer(x.transpose(0, 2, 1), g, b).transpose(0, 2, 1), axes=[1], epsilon=1e-3)
    family.case("layer_norm_f16", "nn.layer_norm", [In("f16", 2, 9), In("f16", 9), In("f16", 9)],
                lambda *a: layer(*(x.astype(np.float32) for x in a)).astype(np.float16), epsilon=1e-3)
    group = lambda x, g, b: ort("GroupNormalization", [x, g, b], num_groups=3, epsilon=1e-3)
    family.case("group_norm", "nn.group_norm", [In("f32", 2, 6, 3, 4), In("f32", 6), In("f32", 6)], group,
                num_groups=3, epsilon=1e-3)
    family.case("group_norm_last", "nn.group_norm", [In("f32", 2, 3, 4, 6), In("f32", 6), In("f32", 6)],
                lambda x, g, b: group(x.transpose(0, 3, 1, 2), g, b).transpose(0, 2, 3, 1),
                channel_axis=-1, num_groups=3, epsilon=1e-3)
    instance = lambda x, g, b: ort("InstanceNormalization", [x, g, b], epsilon=1e-3)
    family.case("instance_norm", "nn.instance_norm", [In("f32", 2, 5, 3, 4), In("f32", 5), In("f32", 5)], instance,
                epsilon=1e-3)
    family.case("instance_norm_last", "nn.instance_norm", [In("f32", 2, 9, 5), In("f32", 5), In("f32", 5)],
                lambda x, g, b: instance(x.transpose(0, 2, 1), g, b).transpose(0, 2, 1), channel_axis=2, epsilon=1e-3)
    for axis, shape in [(-1, (3, 10)), (1, (2, 5, 3))]:
        family.case(f"l2_normalize_{len(shape)}d", "nn.l2_normalize", [In("f32", *shape)],
                    lambda x, axis=axis: ort("LpNormalization", [x], axis=axis, p=2), axis=[axis])
    family.case("l2_normalize_zeros", "nn.l2_normalize", [Const("f32", [[0, 0, 0], [3, 0, 4]])],
                lambda x: np.array([[0, 0, 0], [0.6, 0, 0.8]], np.float32))
    family.write()


def reduce():
    family = Family("reduce")
    functions = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
    for op, f in functions.items():
        for name, axis in [("last", [-1]), ("first", [0]), ("two", [1, 3]), ("outer", [0, 1]), ("spatial", [2, 3])]:
            reduced = lambda x, f=f, axis=axis: wide(lambda x: f(x, tuple(axis)))(x)
            family.case(f"{op}_{name}", op, [In("f32", 2, 3, 4, 5)], reduced, axis=axis)
        family.case(f"{op}_kept", op, [In("f32", 3, 17)], lambda x, f=f: wide(lambda x: f(x, 1, keepdims=True))(x),
                    axis=[1], keepdims=True)
        family.case(f"{op}_all", op, [In("f32", 3, 5)], lambda x, f=f: wide(lambda x: f(x))(x))
        if op != "mean":
            family.case(f"{op}_i64", op, [In("i64", 3, 5)], lambda x, f=f: f(x, 0), axis=[0])
    for op, f in [("argmax", np.argmax), ("argmin", np.argmin)]:
        for axis in (0, 1, -1):
            name = str(axis).replace("-", "last")
            family.case(f"{op}_{name}", op, [In("f32", 4, 3, 7)], lambda x, f=f, axis=axis: f(x, axis), axis=axis)
        family.case(f"{op}_ties", op, [In("i32", 5, 40)], lambda x, f=f: f(x, 1, keepdims=True), axis=1, keepdims=True)
    family.write()


def shape():
    family = Family("shape")
    family.case("reshape", "reshape", [In("f32", 2, 6), Shape(3, 4)], lambda x, s: x.reshape(s))
    family.case("reshape_flat", "reshape", [In("f32", 2, 3, 4), Shape(24)], lambda x, s: x.reshape(s))
    family.case("reshape_scalar", "reshape", [In("f32", 1, 1), Shape()], lambda x, s: x.reshape(s))
    for axes in [(0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 2, 3), (2, 3, 0, 1)]:
        family.case("transpose_" + "".join(map(str, axes)), "transpose", [In("f32", 2, 3, 4, 5)],
                    lambda x, axes=axes: np.transpose(x, axes), axes=axes)
    family.case("transpose_2d", "transpose", [In("f32", 33, 18)], lambda x: x.T)
    family.case("transpose_i8", "transpose", [In("i8", 5, 7)], lambda x: x.T)
    family.case("transpose_f64", "transpose", [In("f64", 5, 7, 2)], lambda x: np.transpose(x, (2, 0, 1)), axes=[2, 0, 1])
    family.case("expand_dims", "expand_dims", [In("f32", 3, 4)], lambda x: x.reshape(1, 3, 1, 4), axis=[0, 2])
    family.case("expand_dims_last", "expand_dims", [In("f32", 3)], lambda x: x.reshape(3, 1), axis=[-1])
    family.case("squeeze", "squeeze", [In("f32", 1, 3, 1, 4)], lambda x: x.reshape(3, 1, 4), axis=[0])
    family.case("squeeze_all", "squeeze", [In("f32", 1, 3, 1, 4)], np.squeeze)
    family.case("broadcast_to", "broadcast_to", [In("f32", 3, 1), Shape(2, 3, 4)], np.broadcast_to)
    family.case("broadcast_to_scalar", "broadcast_to", [In("f32"), Shape(2, 3)], np.broadcast_to)
    family.case("broadcast_to_row", "broadcast_to", [In("f32", 5), Shape(3, 5)], np.broadcast_to)
    family.case("full", "full", [Shape(2, 3)], lambda s: np.full(s, 1.5, np.float32), value=1.5)
    family.case("full_i64", "full", [Shape(4)], lambda s: np.full(s, -7, np.int64), value=-7, dtype="i64")
    family.case("full_bool", "full", [Shape(4)], lambda s: np.full(s, True), value=True, dtype="bool")
    family.case("eye", "eye", [Shape(3, 5)], lambda s: np.eye(*s, dtype=np.float32))
    family.case("eye_above", "eye", [Shape(4, 4)], lambda s: np.eye(*s, k=2, dtype=np.int32), k=2, dtype="i32")
    family.case("eye_below", "eye", [Shape(5, 2)], lambda s: np.eye(*s, k=-3, dtype=bool), k=-3, dtype="bool")
    family.case("to_vdevice", "to_vdevice", [In("f32", 3, 17)], lambda x: x, dst="cpu:0")
    family.case("to_vdevice_bool", "to_vdevice", [In("bool", 5)], lambda x: x, dst="cpu:0")
    family.case("hint_on_device", "hint_on_device", [In("i64", 2, 0, 3)], lambda x: x, dst="cpu:0")
    for source, target, dims, f in [
        ("NCHW", "NHWC", (2, 3, 4, 5), lambda x: np.transpose(x, (0, 2, 3, 1))),
        ("NHWC", "NCHW", (2, 4, 5, 3), lambda x: np.transpose(x, (0, 3, 1, 2))),
        ("NCHW", "NCHW16c", (1, 32, 3, 5), lambda x: to_blocks(x, 1, 16)),
        ("NCHW16c", "NCHW", (1, 2, 3, 5, 16), lambda x: from_blocks(x, 1)),
        ("NCHW8c", "NCHW16c", (1, 4, 3, 3, 8), lambda x: to_blocks(from_blocks(x, 1), 1, 16)),
        ("NCHW16c", "NCHW4c", (1, 2, 3, 3, 16), lambda x: to_blocks(from_blocks(x, 1), 1, 4)),
        ("NHWC", "NCHW4c", (1, 3, 3, 8), lambda x: to_blocks(np.transpose(x, (0, 3, 1, 2)), 1, 4)),
        ("OIHW", "OIHW16i16o", (32, 16, 3, 3), lambda x: to_blocks(to_blocks(x, 1, 16), 0, 16)),
        ("OIHW", "OIHW4i8o", (16, 8, 1, 1), lambda x: to_blocks(to_blocks(x, 1, 4), 0, 8)),
        ("OIHW", "OIHW16o", (16, 3, 7, 7), lambda x: to_blocks(x, 0, 16)),
        ("OIHW", "OIHW1i16o", (32, 1, 3, 3), lambda x: to_blocks(to_blocks(x, 1, 1), 0, 16)),
        ("NK", "NK16n", (32, 9), lambda x: to_blocks(x, 0, 16)),
    ]:
        family.case(f"layout_{source}_{target}", "layout_transform", [In("f32", *dims)], f,
                    src_layout=source, dst_layout=target)
    family.write()


def slices():
    family = Family("slice")
    join = lambda axis: lambda *x: np.concatenate(x, axis)
    family.case("concatenate", "concatenate", [[In("f32", 2, 3), In("f32", 4, 3)]], join(0))
    family.case("concatenate_channels", "concatenate",
                [[In("f32", 2, 3, 4, 4), In("f32", 2, 5, 4, 4), In("f32", 2, 1, 4, 4)]], join(1), axis=1)
    family.case("concatenate_last", "concatenate", [[In("i64", 3, 2), In("i64", 3, 4)]], join(-1), axis=-1)
    family.case("concatenate_one", "concatenate", [[In("f32", 3)]], join(0))
    family.case("split_sections", "split", [In("f32", 2, 6, 3)], lambda x: np.split(x, 3, 1), sections=3, axis=1)
    family.case("split_indices", "split", [In("f32", 7, 2)], lambda x: np.split(x, [2, 5]), indices=[2, 5])
    family.case("split_last", "split", [In("f32", 2, 3, 8)], lambda x: np.split(x, [3], -1), indices=[3], axis=-1)
    for name, begin, end, extra, f in [
        ("plain", [1, 0], [3, 2], {}, lambda x: x[1:3, 0:2]),
        ("steps", [0, 1], [4, 6], dict(strides=[2, 3]), lambda x: x[0:4:2, 1:6:3]),
        ("axes", [2], [5], dict(axes=[1]), lambda x: x[:, 2:5]),
        ("negative", [-3], [-1], dict(axes=[-1]), lambda x: x[:, -3:-1]),
        ("clamped", [-100, 2], [100, 2**62], {}, lambda x: x[-100:100, 2:]),
        ("backwards", [5, 3], [-100, 0], dict(axes=[1, 0], strides=[-2, -1]), lambda x: x[3:0:-1, 5::-2]),
    ]:
        family.case(f"strided_slice_{name}", "strided_slice", [In("f32", 4, 6)], f, begin=begin, end=end, **extra)
    def index_add(x, indices, parts, axis=0):
        """Parts one after the other: equal indices add up."""
        out = np.moveaxis(x.astype(np.float64), axis, 0).copy()
        rank = indices.ndim
        moved = np.moveaxis(parts, range(axis, axis + rank), range(rank)) if rank else parts
        np.add.at(out, indices, moved)
        return np.moveaxis(out, 0, axis).astype(x.dtype)

    family.case("index_add", "index_add", [In("f32", 5, 3), Const("i64", [0, 4, 2, 2]), In("f32", 4, 3)], index_add)
    family.case("index_add_last", "index_add", [In("f32", 2, 5), Const("i32", [[1, 0], [-1, 4]]), In("f32", 2, 2, 2)],
                lambda *a: index_add(*a, axis=1), axis=-1)
    family.case("index_add_scalar", "index_add", [In("i64", 5, 3), Const("i64", 2), In("i64", 3)], index_add)
    family.case("index_add_f16", "index_add", [In("f16", 4), Const("i64", [3, 1, 3]), In("f16", 3)], index_add)
    family.case("take", "take", [In("f32", 5, 3), Const("i64", [0, 4, 2, 2])], lambda x, i: np.take(x, i, 0))
    family.case("take_last", "take", [In("f32", 2, 5), Const("i32", [[1, 0], [-1, 4]])],
                lambda x, i: np.take(x, i, 1), axis=1)
    family.case("take_scalar", "take", [In("f32", 5, 3), Const("i64", 2)], lambda x, i: np.take(x, i, 0))
    family.case("pad", "nn.pad", [In("f32", 2, 3)], lambda x: np.pad(x, ((1, 0), (2, 3))), pad_width=[1, 0, 2, 3])
    family.case("pad_value", "nn.pad", [In("f32", 1, 2, 3, 3)],
                lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 0)), constant_values=-1.5),
                pad_width=[0, 0, 0, 0, 1, 1, 2, 0], value=-1.5)
    family.case("pad_edge", "nn.pad", [In("f32", 3, 4)], lambda x: np.pad(x, ((2, 1), (0, 3)), "edge"),
                pad_width=[2, 1, 0, 3], mode="edge")
    family.case("pad_reflect", "nn.pad", [In("f32", 3, 4)], lambda x: np.pad(x, ((2, 1), (0, 3)), "reflect"),
                pad_width=[2, 1, 0, 3], mode="reflect")
    family.case("pad_i64", "nn.pad", [In("i64", 3)], lambda x: np.pad(x, (1, 2), constant_values=7),
                pad_width=[1, 2], value=7.0)
    family.write()


def positions():
    """What is said by an index or a number of elements."""
    family = Family("positions")
    count = lambda shape: np.arange(shape[0])
    family.case("arange", "arange", [Shape(7)], count)
    family.case("arange_i32", "arange", [Shape(3)], lambda shape: count(shape).astype(np.int32), dtype="i32")
    family.case("arange_f16", "arange", [Shape(2051)], lambda shape: count(shape).astype(np.float16), dtype="f16")
    family.case("arange_none", "arange", [Shape(0)], count)
    for name, first, size, f in [
        ("middle", [1, 2], (3, 2), lambda x: x[1:4, 2:4]),
        ("rows", [2, 0], (2, 6), lambda x: x[2:4]),
        ("columns", [0, 5], (5, 1), lambda x: x[:, 5:]),
        ("too_far", [4, -3], (3, 4), lambda x: x[2:, :4]),
        ("none", [1, 1], (0, 2), lambda x: x[1:1, 1:3]),
    ]:
        family.case(f"dynamic_slice_{name}", "dynamic_slice", [In("f32", 5, 6), Const("i64", first), Shape(*size)],
                    lambda x, first, size, f=f: f(x))
    family.case("dynamic_slice_input", "dynamic_slice", [In("f32", 9), In("i64", 1), Shape(4)],
                lambda x, first, size: x[min(max(first[0], 0), 5):][:4])
    family.write()


def gather():
    family = Family("gather")
    elements = lambda axis: lambda x, i: ort("GatherElements", [x, i], axis=axis)
    # Indices that are inputs are in -8 .. 8.
    family.case("gather_elements", "gather_elements", [In("f32", 8, 3), In("i64", 5, 3)], elements(0))
    family.case("gather_elements_last", "gather_elements", [In("f32", 2, 3, 8), In("i32", 2, 3, 11)], elements(2), axis=-1)
    family.case("gather_elements_part", "gather_elements", [In("i8", 5, 8, 4), In("i64", 2, 6, 3)], elements(1), axis=1)
    family.case("gather_elements_const", "gather_elements", [In("f16", 3, 2), Const("i64", [[0, -1], [2, 1]])], elements(0))
    family.case("gather_elements_empty", "gather_elements", [In("f32", 3, 2), In("i64", 0, 2)], elements(0))
    family.case("gather_elements_bool", "gather_elements", [In("bool", 8), In("i32", 9)], elements(0))
    parts = lambda batch: lambda x, i: ort("GatherND", [x, i.astype(np.int64)], batch_dims=batch)
    family.case("gather_nd", "gather_nd", [In("f32", 8, 8), In("i64", 7, 2)], parts(0))
    family.case("gather_nd_parts", "gather_nd", [In("f32", 8, 3, 2), In("i64", 2, 5, 1)], parts(0))
    family.case("gather_nd_one", "gather_nd", [In("i64", 8, 8, 3), In("i32", 2)], parts(0))
    family.case("gather_nd_batch", "gather_nd", [In("f32", 3, 8, 4), In("i64", 3, 5, 1)], parts(1), batch_dims=1)
    family.case("gather_nd_batches", "gather_nd", [In("f32", 2, 3, 8, 8), In("i64", 2, 3, 2)], parts(2), batch_dims=2)
    family.case("gather_nd_const", "gather_nd", [In("f64", 2, 3, 4), Const("i64", [[0, -1], [1, 1]])], parts(0))

    combine = {"update": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    # ONNX Runtime does not say in which order it takes equal indices; where none are equal it must agree.
    judge = lambda op, args, out, reduction, **attrs: np.testing.assert_array_equal(
        ort(op, args, reduction="none" if reduction == "update" else reduction, **attrs), out)

    def scatter_elements(x, i, u, axis=0, reduction="update"):
        out, places = x.copy(), set()
        for place in np.ndindex(i.shape):
            at = place[:axis] + (int(i[place]) % x.shape[axis],) + place[axis + 1:]
            places.add(at)
            out[at] = combine[reduction](out[at], u[place])
        if len(places) == i.size:
            judge("ScatterElements", [x, i, u], out, reduction, axis=axis)
        return out

    def scatter_nd(x, i, u, batch=0, reduction="update"):
        out, places = x.copy(), set()
        for place in np.ndindex(i.shape[:-1]):
            at = place[:batch] + tuple(int(index) % extent for index, extent in zip(i[place], x.shape[batch:]))
            places.add(at)
            out[at] = combine[reduction](out[at], u[place])
        if len(places) == math.prod(i.shape[:-1]) and batch == 0:
            judge("ScatterND", [x, i.astype(np.int64), u], out, reduction)
        return out

    unique = Const("i64", [[0, -1, 2], [3, 0, -3]])
    for reduction in combine:
        attrs = {} if reduction == "update" else dict(reduction=reduction)
        elements = lambda axis, attrs=attrs: lambda *a: scatter_elements(*a, axis=axis, **attrs)
        family.case(f"scatter_elements_{reduction}", "scatter_elements",
                    [In("f32", 4, 3), unique, In("f32", 2, 3)], elements(0), **attrs)
        family.case(f"scatter_elements_{reduction}_equal", "scatter_elements",
                    [In("f32", 2, 8, 3), In("i64", 2, 13, 2), In("f32", 2, 13, 2)], elements(1), axis=-2, **attrs)
        family.case(f"scatter_elements_{reduction}_i32", "scatter_elements",
                    [In("i32", 8), In("i32", 5), In("i32", 5)], elements(0), **attrs)
        parts = lambda batch, attrs=attrs: lambda *a: scatter_nd(*a, batch=batch, **attrs)
        family.case(f"scatter_nd_{reduction}", "scatter_nd",
                    [In("f32", 4, 3), Const("i64", [[0], [-1]]), In("f32", 2, 3)], parts(0), **attrs)
        family.case(f"scatter_nd_{reduction}_equal", "scatter_nd",
                    [In("f32", 8, 8), In("i64", 9, 2), In("f32", 9)], parts(0), **attrs)
        family.case(f"scatter_nd_{reduction}_batch", "scatter_nd",
                    [In("f32", 2, 8, 3), In("i64", 2, 6, 1), In("f32", 2, 6, 3)], parts(1), batch_dims=1, **attrs)
    family.case("scatter_elements_f16", "scatter_elements", [In("f16", 8), In("i64", 9), In("f16", 9)],
                lambda *a: scatter_elements(*a, reduction="add"), reduction="add")
    family.case("scatter_elements_bool", "scatter_elements", [In("bool", 8), In("i64", 4), In("bool", 4)], scatter_elements)
    family.case("scatter_elements_nan", "scatter_elements",
                [Const("f32", [math.nan, 1, 2]), Const("i64", [0, 1, 2]), Const("f32", [1, math.nan, 3])],
                lambda x, i, u: np.maximum(x, u), reduction="max")
    family.case("scatter_nd_nothing", "scatter_nd", [In("f32", 4, 3), In("i64", 0, 1), In("f32", 0, 3)], scatter_nd)
    family.write()


def scans():
    family = Family("scan")

    def running(f, x, axis=0, exclusive=False, reverse=False):
        order = np.flip if reverse else lambda x, axis: x
        x = order(x, axis)
        y = f(x.astype(np.float64) if x.dtype.kind == "f" else x, axis=axis)
        if exclusive:
            first = np.full_like(np.take(y, [0], axis) if y.shape[axis] else y, f is np.cumprod)
            y = np.concatenate([first, y], axis).take(range(x.shape[axis]), axis)
        return order(y, axis).astype(x.dtype)

    for op, f in [("cumsum", np.cumsum), ("cumprod", np.cumprod)]:
        for name, dtype, shape, attrs in [
            ("first", "f32", (5, 3), {}),
            ("last", "f32", (4, 3, 17), dict(axis=-1)),
            ("middle", "f32", (2, 9, 5), dict(axis=1)),
            ("vector", "f64", (40,), {}),
            ("exclusive", "f32", (3, 7), dict(axis=1, exclusive=True)),
            ("reverse", "f32", (7, 2), dict(reverse=True)),
            ("both", "f32", (2, 6, 3), dict(axis=-2, exclusive=True, reverse=True)),
            ("i64", "i64", (3, 11), dict(axis=1)),
            ("u8", "u8", (9,), dict(exclusive=True)),
            ("f16", "f16", (2, 5), dict(axis=1)),
            ("empty", "f32", (0, 3), {}),
            ("rows", "f32", (3, 7, 40), dict(axis=1)),
            ("rows_f16", "f16", (2, 6, 5), dict(axis=1, exclusive=True)),
            ("rows_reverse", "f32", (6, 2, 20), dict(exclusive=True, reverse=True)),
        ]:
            expected = lambda x, f=f, attrs=attrs: running(f, x, **attrs)
            family.case(f"{op}_{name}", op, [In(dtype, *shape)], expected, **attrs)

    def topk(x, k, axis=-1, largest=True):
        """What is no number is above all numbers; of equal ones the first comes first."""
        keys = x if x.dtype.kind != "f" else np.where(np.isnan(x), np.inf, x)
        keys = keys.astype(np.float64)
        places = np.argsort(-keys if largest else keys, axis, kind="stable").take(range(k), axis)
        values = np.take_along_axis(x, places, axis)
        if x.dtype in (np.float32, np.int64) and not np.isnan(x).any():
            # ONNX Runtime promises no order of equal ones where it need not sort.
            other, _ = ort("TopK", [x, np.array([k])], 2, axis=axis, largest=int(largest))
            np.testing.assert_array_equal(other, values)
        return values, places.astype(np.int64)

    for name, dtype, shape, attrs in [
        ("last", "f32", (3, 19), dict(k=4)),
        ("smallest", "f32", (3, 19), dict(k=5, largest=False)),
        ("first", "f32", (13, 5), dict(k=3, axis=0)),
        ("middle", "f32", (2, 9, 4), dict(k=9, axis=1)),
        ("one", "f32", (2, 40), dict(k=1)),
        ("ties", "i64", (2, 37), dict(k=11)),
        ("ties_smallest", "i32", (37, 2), dict(k=12, axis=0, largest=False)),
        ("u8", "u8", (30,), dict(k=7)),
        ("f16", "f16", (4, 6), dict(k=2)),
        ("f64", "f64", (64,), dict(k=64)),
        ("none", "f32", (3, 4), dict(k=0)),
        # Their order is found digit by digit.
        ("many", "f32", (3, 60), dict(k=60)),
        ("many_smallest", "i32", (50, 2), dict(k=30, axis=0, largest=False)),
        ("many_u8", "u8", (80,), dict(k=40)),
        ("many_i8", "i8", (80,), dict(k=40)),
        ("many_f16", "f16", (2, 70), dict(k=70, largest=False)),
    ]:
        k = Shape(attrs.pop("k"))
        family.case(f"topk_{name}", "topk", [In(dtype, *shape), k], lambda x, k, attrs=attrs: topk(x, *k, **attrs), **attrs)
    specials = Const("f32", [[1, math.nan, math.inf, -0.0, 0.0, -math.inf], [math.inf, 2, -math.inf, 2, math.nan, 1]])
    # NumPy takes infinity for nan here, so the places say which is meant.
    family.case("topk_special", "topk", [specials, Shape(4)], lambda x, k: (
        np.array([[np.nan, np.inf, 1, -0.0], [np.nan, np.inf, 2, 2]], np.float32), np.array([[1, 2, 0, 3], [4, 0, 1, 3]])))
    specials_of_many = Const("f32", [*([1, math.nan, -0.0, 2, 0.0, -math.inf] * 5), -2])
    for largest in [True, False]:
        family.case(f"topk_special_many_{'largest' if largest else 'smallest'}", "topk", [specials_of_many, Shape(31)],
                    lambda x, k, largest=largest: topk(x, *k, largest=largest), largest=largest)
    family.case("topk_special_smallest", "topk", [specials, Shape(6)], lambda x, k: (
        np.array([[-np.inf, -0.0, 0.0, 1, np.inf, np.nan], [-np.inf, 1, 2, 2, np.inf, np.nan]], np.float32),
        np.array([[5, 3, 4, 0, 2, 1], [2, 5, 1, 3, 0, 4]])), largest=False)
    family.case("topk_least", "topk", [Const("i8", [-128, 127, -128, 0]), Shape(4)],
                lambda x, k: (np.array([127, 0, -128, -128], np.int8), np.array([1, 3, 0, 2])))
    family.write()


def bits():
    family = Family("bits")
    for op, f in [("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)]:
        for dtype in ("i8", "u8", "i16", "i32", "u32", "i64"):
            family.case(f"{op}_{dtype}", op, [In(dtype, 5, 7), In(dtype, 7)], f)
    for dtype in ("i8", "u8", "i32", "u64"):
        family.case(f"bitwise_not_{dtype}", "bitwise_not", [In(dtype, 19)], np.bitwise_not)

    def shift(left):
        def of(a, b):
            bits = 8 * a.itemsize
            is_within = (b >= 0) & (b < bits)
            places = np.where(is_within, b, 0).astype(a.dtype)
            none = np.where(a < 0, -1, 0).astype(a.dtype) if not left else np.zeros_like(a)
            return np.where(is_within, np.left_shift(a, places) if left else np.right_shift(a, places), none).astype(a.dtype)
        return of

    for op, left in [("left_shift", True), ("right_shift", False)]:
        for dtype in ("u8", "u16", "u32", "u64", "i8", "i32", "i64"):
            family.case(f"{op}_{dtype}", op, [In(dtype, 6, 9), In(dtype, 9)], shift(left))
        family.case(f"{op}_all", op, [Const("u32", [1, 2**31, 2**32 - 1, 7]), Const("u32", [31, 31, 32, 200])], shift(left))
    family.write()


def recurrence():
    family = Family("recurrence")

    def steps(op, gates, states, directions, peepholes=False, coupled=False, linear=False, has_lengths=False, **attrs):
        """The steps alone: weights that take one part of the data each give them to ONNX Runtime's operator."""

        def expected(x, weight, *rest):
            rest = list(rest)
            count, batch, ways, row = x.shape
            hidden = weight.shape[1]
            data = x.reshape(count, batch, ways * row)
            select = np.eye(ways * row, dtype=x.dtype).reshape(ways, row, ways * row)
            bias = np.zeros((ways, 2 * row), x.dtype)
            state = [rest.pop(0) for _ in range(states)]
            if linear:
                bias[:, -hidden:] = rest.pop(0)
            more = rest.pop(0) if peepholes else None
            lengths = rest.pop(0) if has_lengths else np.full(batch, count, np.int32)
            inputs = [data, select, np.swapaxes(weight, 1, 2).copy(), bias, lengths, *state]
            if peepholes:
                inputs.append(more)
            flags = {}
            if coupled:
                flags["input_forget"] = 1
            if linear:
                flags["linear_before_reset"] = 1
            return ort(op, inputs, 1 + states, hidden_size=hidden, **directions, **flags, **attrs)

        return expected

    def args(gates, states, ways=1, count=5, batch=3, hidden=4):
        return [In("f32", count, batch, ways, gates * hidden), In("f32", ways, hidden, gates * hidden),
                *(In("f32", ways, batch, hidden) for _ in range(states))]

    operators = [("LSTM", "nn.lstm_steps", 4, 2), ("GRU", "nn.gru_steps", 3, 1), ("RNN", "nn.rnn_steps", 1, 1)]
    lengths = Const("i32", [5, 2, 3])
    for name, op, gates, states in operators:
        kind = name.lower()
        for direction, ways in [("forward", 1), ("reverse", 1), ("bidirectional", 2)]:
            said = dict(direction=direction)
            family.case(f"{kind}_{direction}", op, args(gates, states, ways),
                        steps(name, gates, states, said), direction=direction)
            family.case(f"{kind}_{direction}_lengths", op, [*args(gates, states, ways), lengths],
                        steps(name, gates, states, said, has_lengths=True), direction=direction, lengths=True)
        family.case(f"{kind}_wide", op, args(gates, states, 1, 3, 2, 37), steps(name, gates, states, {}))
        # A group of four sequences and one of two, in blocks of columns.
        family.case(f"{kind}_groups", op, args(gates, states, 1, 2, 6, 32), steps(name, gates, states, {}))
        family.case(f"{kind}_clip", op, args(gates, states), steps(name, gates, states, {}, clip=0.5), clip=0.5)
    functions = [("relu", "Relu", None, None), ("leaky_relu(0.125)", "LeakyRelu", 0.125, None),
                 ("thresholded_relu(0.5)", "ThresholdedRelu", 0.5, None), ("scaled_tanh(1.5,0.5)", "ScaledTanh", 1.5, 0.5),
                 ("hard_sigmoid(0.25,0.5)", "HardSigmoid", 0.25, 0.5), ("elu(0.75)", "Elu", 0.75, None),
                 ("softsign", "Softsign", None, None), ("softplus", "Softplus", None, None),
                 ("affine(0.125,0.25)", "Affine", 0.125, 0.25)]
    for text, name, alpha, beta in functions:
        attrs = dict(activations=[name])
        if alpha is not None:
            attrs["activation_alpha"] = [alpha]
        if beta is not None:
            attrs["activation_beta"] = [beta]
        family.case(f"rnn_{name.lower()}", "nn.rnn_steps", args(1, 1, count=2), steps("RNN", 1, 1, {}, **attrs),
                    activations=text)
    family.case("lstm_functions", "nn.lstm_steps", args(4, 2, 2),
                steps("LSTM", 4, 2, dict(direction="bidirectional"), activation_alpha=[0.25, 0.125], activation_beta=[0.5],
                      activations=["HardSigmoid", "Tanh", "Softsign", "Sigmoid", "LeakyRelu", "Tanh"]),
                direction="bidirectional", activations="hard_sigmoid(0.25,0.5) tanh softsign sigmoid leaky_relu(0.125) tanh")
    family.case("lstm_peepholes", "nn.lstm_steps", [*args(4, 2), In("f32", 1, 12)],
                steps("LSTM", 4, 2, {}, peepholes=True), peepholes=True)
    family.case("lstm_peepholes_lengths", "nn.lstm_steps", [*args(4, 2, 2), In("f32", 2, 12), lengths],
                steps("LSTM", 4, 2, dict(direction="bidirectional"), peepholes=True, has_lengths=True),
                direction="bidirectional", peepholes=True, lengths=True)
    family.case("lstm_coupled", "nn.lstm_steps", args(4, 2), steps("LSTM", 4, 2, {}, coupled=True), input_forget=True)
    family.case("gru_linear", "nn.gru_steps", [*args(3, 1), In("f32", 1, 4)],
                steps("GRU", 3, 1, {}, linear=True), linear_before_reset=True)
    family.case("gru_linear_lengths", "nn.gru_steps", [*args(3, 1, 2), In("f32", 2, 4), lengths],
                steps("GRU", 3, 1, dict(direction="bidirectional"), linear=True, has_lengths=True),
                direction="bidirectional", linear_before_reset=True, lengths=True)
    family.write()


def quantized_lstm():
    """Steps whose products are those of bytes: the state is quantized at each of them."""
    family = Family("quantized_lstm")
    f32 = np.float32

    def quantized(state):
        low, high = np.minimum(state.min(), f32(0)), np.maximum(state.max(), f32(0))
        scale = (high - low) / f32(255) if high > low else f32(1)
        zero = np.rint(np.clip(-low / scale, 0, 255))
        return np.clip(np.rint(state / scale) + zero, 0, 255).astype(np.int64), scale, int(zero)

    def expected(directions, lengths=None, coupled=False, clip=np.inf):
        sigmoid = lambda x: 1 / (1 + np.exp(-np.clip(x, -clip, clip)))
        tanh = lambda x: np.tanh(np.clip(x, -clip, clip))

        def steps(x, packed, state, memory, scale, sums, zeros, *_):
            (count, batch, ways, row), hidden = x.shape, state.shape[2]
            y, ends = np.zeros((count, ways, batch, hidden), f32), (state.copy(), memory.copy())
            for way, n in np.ndindex(ways, batch):
                tiles, quads, width, _ = packed[way].shape
                weight = packed[way].transpose(1, 3, 0, 2).reshape(quads * 4, tiles * width)[:hidden, :row]
                weight = weight.astype(np.int64) - zeros[way]
                h, c = state[way, n], memory[way, n].astype(np.float64)
                length = count if lengths is None else lengths[n]
                for t in reversed(range(length)) if directions[way] else range(length):
                    q, by, zero = quantized(h)
                    product = ((q - zero) @ weight).astype(f32) * (by * scale[way])
                    i, o, f, g = np.split((x[t, n, way] + product).astype(np.float64), 4)
                    i = sigmoid(i)
                    c = (1 - i if coupled else sigmoid(f)) * c + i * tanh(g)
                    h = (sigmoid(o) * np.tanh(c)).astype(f32)
                    y[t, way, n] = h
                ends[0][way, n], ends[1][way, n] = h, c
            return (y, *(end.astype(f32) for end in ends))

        return steps

    def args(hidden, ways=1, count=3, batch=1, width=16, zero=0):
        random = np.random.default_rng(hidden)
        row, quads = 4 * hidden, -(-hidden // 4)
        tiles = -(-row // width)
        weight = np.zeros((ways, quads * 4, tiles * width), np.int64)
        weight[:, :hidden, :row] = random.integers(-128, 128, (ways, hidden, row))
        packed = weight.reshape(ways, quads, 4, tiles, width).transpose(0, 3, 1, 4, 2)
        scale = random.uniform(0.004, 0.01, (ways, row)).astype(f32).round(6)
        states = [In("f32", ways, batch, hidden) for _ in range(2)]
        return [In("f32", count, batch, ways, row), Const("i8", packed), *states, Const("f32", scale),
                Const("i32", weight[:, :, :row].sum(1)), Const("i32", np.full((ways, row), zero))]

    op = "nn.quantized_lstm_steps"
    family.case("quantized_lstm_one", op, args(8, width=32), expected([False]))
    family.case("quantized_lstm_odd", op, args(5, width=16, zero=-7), expected([False]))
    family.case("quantized_lstm_tiles", op, args(12, width=16), expected([False]))
    family.case("quantized_lstm_reverse", op, args(4, zero=3), expected([True]), direction="reverse")
    family.case("quantized_lstm_groups", op, args(4, count=2, batch=6), expected([False]))
    family.case("quantized_lstm_lengths", op, [*args(4, 2, batch=3, zero=2), Const("i32", [3, 1, 2])],
                expected([False, True], lengths=[3, 1, 2]), direction="bidirectional", lengths=True)
    family.case("quantized_lstm_coupled", op, args(4), expected([False], coupled=True), input_forget=True)
    family.case("quantized_lstm_clip", op, args(4), expected([False], clip=0.5), clip=0.5)
    family.write()


def image():
    family = Family("image")

    def resize(x, shape, axis, method="linear", opset=19, scale=None, roi=None, **attrs):
        """One axis, by ONNX Runtime."""
        mode = {"nearest_neighbor": "nearest"}.get(method, method)
        names = {"rounding_method": "nearest_mode", "cubic_alpha": "cubic_coeff_a"}
        attrs = {names.get(name, name): int(value) if isinstance(value, bool) else value for name, value in attrs.items()}
        # As the innermost of two spatial axes: not everything takes others.
        moved = np.moveaxis(x, axis, -1)
        flat = moved.reshape(1, 1, -1, moved.shape[-1]).copy()
        scales = np.array([1, 1, 1, scale], np.float32) if scale else None
        sizes = np.array([1, 1, flat.shape[2], shape[0]], np.int64)
        rois = np.array([0, 0, 0, roi[0], 1, 1, 1, roi[1]], np.float32) if roi else None
        y = ort("Resize", [flat, rois, scales, None if scale else sizes], opset=opset, mode=mode, **attrs)
        return np.moveaxis(y.reshape(*moved.shape[:-1], -1), -1, axis)

    def case(name, shape, size, axis=-1, dtype="f32", roi=None, **attrs):
        said = dict(attrs)
        if roi:
            said.update(roi_start=roi[0], roi_end=roi[1])
        family.case(f"resize1d_{name}", "image.resize1d", [In(dtype, *shape), Shape(size)],
                    lambda x, s: resize(x, s, axis, roi=roi, **attrs), axis=axis, **said)

    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    for mode in modes:
        for method in ("nearest_neighbor", "linear", "cubic"):
            if method == "nearest_neighbor" and mode == "align_corners":
                continue  # Places of the result fall in the middle between two.
            case(f"{mode}_{method}_up", (2, 5), 12, method=method, coordinate_transformation_mode=mode)
            case(f"{mode}_{method}_down", (2, 11), 4, method=method, coordinate_transformation_mode=mode)
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        case(rounding, (2, 7), 16, method="nearest_neighbor", rounding_method=rounding)
        case(f"{rounding}_half", (2, 8), 4, method="nearest_neighbor", rounding_method=rounding)
    case("first_axis", (5, 3), 8, axis=0)
    case("middle_axis", (2, 5, 3), 10, axis=1)
    case("wide", (3, 40), 80)
    case("nearest_wide", (3, 40), 80, method="nearest_neighbor")
    case("nearest_i32", (3, 5), 9, method="nearest_neighbor", dtype="i32")
    case("one", (3, 1), 4, method="cubic")
    case("to_one", (3, 6), 1)
    case("same", (3, 6), 6)
    case("cubic_excluded", (2, 6), 11, method="cubic", exclude_outside=True)
    case("cubic_alpha", (2, 6), 11, method="cubic", cubic_alpha=-0.5)
    case("cropped", (2, 9), 6, coordinate_transformation_mode="tf_crop_and_resize", roi=[0.25, 0.75])
    case("cropped_beyond", (2, 9), 6, coordinate_transformation_mode="tf_crop_and_resize", roi=[-0.5, 1.25],
         extrapolation_value=10.0)
    case("cropped_nearest", (2, 9), 7, method="nearest_neighbor", coordinate_transformation_mode="tf_crop_and_resize",
         roi=[0.125, 1.125], extrapolation_value=10.0)
    case("scaled", (2, 5), 12, scale=2.5)
    case("symmetric", (2, 5), 11, scale=2.25, coordinate_transformation_mode="half_pixel_symmetric")
    # ONNX Runtime leaves out what lies outside.
    for method in ("linear", "cubic"):
        case(f"antialias_{method}", (2, 11), 4, method=method, antialias=True, exclude_outside=True)
        case(f"antialias_{method}_up", (2, 4), 7, method=method, antialias=True, exclude_outside=True)
    # By numbers that are inputs.
    by_call = {
        "nearest": (23, dict(method="nearest_neighbor")), "linear": (6, {}), "cubic": (5, dict(method="cubic")),
        "symmetric": (12, dict(coordinate_transformation_mode="half_pixel_symmetric")),
        "antialias": (11, dict(antialias=True, exclude_outside=True)),
        "antialias_cubic": (13, dict(method="cubic", antialias=True, exclude_outside=True)),
    }
    for name, (extent, attrs) in by_call.items():
        name, scale = f"resize1d_by_call_{name}", In("f64", 1, name="pos")
        size = int(np.floor(np.float32(extent) * np.float32(scale.values(name)[0])))
        family.case(name, "image.resize1d", [In("f32", 2, extent), Shape(size), scale],
                    lambda x, s, by, attrs=attrs: resize(x, s, -1, scale=by[0], **attrs), axis=-1, **attrs)
    for method in "nearest_neighbor", "linear":
        attrs = dict(method=method, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=10.0)
        family.case(f"resize1d_cropped_by_call_{method}", "image.resize1d",
                    [In("f32", 2, 9), Shape(6), In("f64", 2, name="pos")],
                    lambda x, s, by, attrs=attrs: resize(x, s, -1, roi=list(by), **attrs), axis=-1, **attrs)
    family.case("resize1d_f64", "image.resize1d", [In("f64", 2, 5), Shape(8)],
                lambda x, s: resize(x.astype(np.float32), s, 1).astype(np.float64), axis=1)
    family.write()


def conv3d():
    family = Family("conv3d")
    cases = {
        "plain": ((1, 3, 4, 5, 6), (4, 3, 3, 3, 3), {}),
        "padded": ((2, 2, 3, 4, 5), (3, 2, 3, 3, 3), dict(padding=[1] * 6)),
        "uneven": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 1), dict(padding=[0, 1, 2, 1, 0, 0], strides=[2, 1, 3])),
        "dilated": ((1, 2, 6, 7, 5), (3, 2, 2, 3, 2), dict(dilation=[2, 3, 1])),
        "grouped": ((1, 6, 3, 4, 4), (9, 2, 2, 2, 2), dict(groups=3)),
        "depthwise": ((1, 4, 4, 4, 4), (4, 1, 3, 3, 3), dict(groups=4, padding=[1] * 6)),
        "pointwise": ((1, 4, 3, 3, 5), (5, 4, 1, 1, 1), {}),
        "many_channels": ((1, 20, 3, 5, 6), (18, 20, 1, 3, 3), dict(padding=[0, 1, 1, 0, 1, 1])),
    }

    def conv(x, w, strides=(1,) * 3, padding=(0,) * 6, dilation=(1,) * 3, groups=1):
        """In f64, tap by tap; ONNX Runtime, which sums in f32, must agree."""
        widths = [(0, 0), (0, 0), *zip(padding[:3], padding[3:])]
        padded = np.pad(x.astype(np.float64), widths)
        o, i, *kernel = w.shape
        extents = [(padded.shape[2 + a] - dilation[a] * (kernel[a] - 1) - 1) // strides[a] + 1 for a in range(3)]
        out = np.zeros((x.shape[0], groups, o // groups, *extents))
        weight = w.astype(np.float64).reshape(groups, o // groups, i, *kernel)
        for tap in np.ndindex(*kernel):
            spans = [slice(t * d, t * d + (extent - 1) * s + 1, s)
                     for t, d, s, extent in zip(tap, dilation, strides, extents)]
            part = padded[(slice(None), slice(None), *spans)].reshape(x.shape[0], groups, i, *extents)
            out += np.einsum("ngidhw,goi->ngodhw", part, weight[(..., *tap)])
        out = out.reshape(x.shape[0], o, *extents)
        single = ort("Conv", [x.astype(np.float32), w.astype(np.float32)], strides=strides, pads=padding,
                     dilations=dilation, group=groups)
        np.testing.assert_allclose(single, out, rtol=1e-3, atol=1e-3)
        return out.astype(x.dtype)

    for name, (x, w, attrs) in cases.items():
        family.case(f"conv3d_{name}", "nn.conv3d", [In("f32", *x), In("f32", *w)],
                    lambda x, w, attrs=attrs: conv(x, w, **attrs), **attrs)
    family.case("conv3d_f16_to_f32", "nn.conv3d", [In("f16", 1, 2, 3, 3, 4), In("f16", 3, 2, 2, 2, 2)],
                lambda x, w: conv(x.astype(np.float32), w.astype(np.float32)), out_dtype="f32")

    def in_blocks(x, w, **attrs):
        return to_blocks(conv(from_blocks(x, 1), from_blocks(from_blocks(w, 0), 1), **attrs), 1, 8)

    for name, attrs in [("blocks", {}), ("blocks_strided", dict(padding=[1] * 6, strides=[1, 2, 2]))]:
        family.case(f"conv3d_{name}", "nn.conv3d", [In("f32", 1, 2, 4, 5, 6, 8), In("f32", 2, 2, 3, 3, 3, 8, 8)],
                    lambda x, w, attrs=attrs: in_blocks(x, w, **attrs),
                    data_layout="NCDHW8c", kernel_layout="OIDHW8i8o", **attrs)
    family.case("conv3d_planes", "nn.conv3d", [In("f32", 1, 2, 3, 4, 5, 8), In("f32", 2, 2, 3, 3, 3, 8, 8)],
                lambda x, w: in_blocks(x, w, padding=[1] * 6), data_layout="NCDHW8c", kernel_layout="OIDHW8i8o",
                skip_lines=True, padding=[1] * 6)
    family.case("conv3d_images", "nn.conv3d", [In("f32", 1, 2, 6, 4, 5, 8), In("f32", 2, 2, 3, 1, 1, 8, 8)],
                lambda x, w: in_blocks(x, w, padding=[2, 0, 0, 1, 0, 0], strides=[2, 1, 1]), data_layout="NCDHW8c",
                kernel_layout="OIDHW8i8o", skip_lines=True, padding=[2, 0, 0, 1, 0, 0], strides=[2, 1, 1])
    family.case("conv3d_filled", "nn.conv3d", [In("f32", 1, 1, 3, 4, 5, 8), In("f32", 2, 1, 3, 3, 3, 8, 8)],
                lambda x, w: to_blocks(conv(from_blocks(x, 1), from_blocks(from_blocks(w, 0), 1)[:11], padding=[1] * 6), 1, 11),
                data_layout="NCDHW8c", kernel_layout="OIDHW8i8o", out_layout="NCDHW11c", channels=11, padding=[1] * 6)

    def col2im(x, image, block_shape, strides=None, padding=None, dilation=None):
        """Block by block, in f64."""
        rank = len(block_shape)
        strides, padding, dilation = strides or [1] * rank, padding or [0] * rank, dilation or [1] * rank
        count = math.prod(block_shape)
        out = np.zeros((x.shape[0], x.shape[1] // count, *image))
        blocks = x.astype(np.float64).reshape(x.shape[0], -1, count, *x.shape[2:])
        for place in np.ndindex(*x.shape[2:]):
            for number, tap in enumerate(np.ndindex(*block_shape)):
                at = [p * s + t * d - b for p, s, t, d, b in zip(place, strides, tap, dilation, padding)]
                if all(0 <= a < extent for a, extent in zip(at, image)):
                    out[(slice(None), slice(None), *at)] += blocks[(slice(None), slice(None), number, *place)]
        return out.astype(x.dtype)

    for name, x, image, attrs in [
        ("plain", (1, 8, 3, 4), (4, 5), dict(block_shape=[2, 2])),
        ("line", (2, 6, 5), (7,), dict(block_shape=[3])),
        ("volume", (1, 16, 2, 3, 4), (3, 4, 5), dict(block_shape=[2, 2, 2])),
        ("strided", (1, 18, 3, 3), (7, 7), dict(block_shape=[3, 3], strides=[2, 2])),
        ("apart", (1, 8, 3, 3), (8, 9), dict(block_shape=[2, 2], strides=[3, 3])),
        ("padded", (2, 9, 4, 5), (4, 5), dict(block_shape=[3, 3], padding=[1, 1])),
        ("dilated", (1, 8, 3, 4), (7, 6), dict(block_shape=[2, 2], strides=[2, 1], dilation=[3, 2])),
        ("uneven", (1, 12, 4, 3), (9, 5), dict(block_shape=[3, 2], strides=[2, 3], padding=[1, 0])),
        # Only every second place is reached along the second axis.
        ("gaps", (1, 40, 3, 4), (15, 18), dict(block_shape=[4, 5], strides=[3, 4], padding=[1, 2], dilation=[2, 2])),
    ]:
        family.case(f"col2im_{name}", "col2im", [In("f32", *x), Shape(*image)],
                    lambda x, s, attrs=attrs: col2im(x, s, **attrs), **attrs)
    family.case("col2im_axes_of_blocks", "col2im", [In("f32", 2, 2, 3, 2, 4, 3), Shape(9, 5)],
                lambda x, s: col2im(x.reshape(2, 12, 4, 3), s, [3, 2], [2, 3], [1, 0]), padding=[1, 0], strides=[2, 3])
    family.case("col2im_i64", "col2im", [In("i64", 1, 4, 3, 3), Shape(4, 4)],
                lambda x, s: col2im(x, s, [2, 2]), block_shape=[2, 2])
    family.write()


def unpool():
    family = Family("unpool")

    def indices(x, pool_size, strides, padding, dilation, ceil_mode=False, column_major=False):
        return ort("MaxPool", [x], 2, kernel_shape=pool_size, strides=strides, pads=padding, dilations=dilation,
                   ceil_mode=int(ceil_mode), storage_order=int(column_major))[1]

    def case(name, shape, pool_size, strides=None, padding=None, dilation=None, **attrs):
        rank = len(pool_size)
        attrs = dict(pool_size=pool_size, strides=strides or [1] * rank, padding=padding or [0] * 2 * rank,
                     dilation=dilation or [1] * rank, **attrs)
        family.case(f"max_pool_indices_{name}", "nn.max_pool_indices", [In("f32", *shape)],
                    lambda x: indices(x, **attrs), **attrs)

    case("plain", (2, 3, 6, 6), [2, 2], [2, 2])
    case("line", (2, 3, 9), [3], [2])
    case("volume", (2, 2, 4, 5, 4), [2, 2, 2])
    case("padded", (1, 2, 5, 6), [3, 3], [2, 2], [1, 1, 1, 1])
    case("dilated", (1, 2, 7, 7), [2, 2], [1, 1], [0] * 4, [2, 3])
    case("ceil", (1, 2, 6, 7), [3, 3], [2, 2], ceil_mode=True)
    case("column_major", (2, 2, 4, 6), [2, 2], [2, 2], column_major=True)
    unpool = lambda x, i, s: np.bincount(i.ravel(), x.ravel(), math.prod(s)).astype(np.float32).reshape(s)
    family.case("max_unpool", "nn.max_unpool",
                [In("f32", 1, 1, 2, 2), Const("i64", [[[[5, 7], [13, 15]]]]), Shape(1, 1, 4, 4)], unpool)
    family.case("max_unpool_line", "nn.max_unpool",
                [In("f32", 2, 1, 2), Const("i64", [[[1, 3]], [[4, 7]]]), Shape(2, 1, 4)], unpool)
    family.write()


def places():
    family = Family("places")

    def sample(x, grid, method="bilinear", padding_mode="zeros", align_corners=True):
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
        return ort("GridSample", [x, np.moveaxis(grid, 1, -1).copy()], opset=20, mode=mode, padding_mode=padding_mode,
                   align_corners=int(align_corners))

    def grid(shape, scale=1.25):
        """Places that are in the middle of nothing."""
        count = math.prod(shape)
        return Const("f32", (scale * np.sin(np.arange(count) * 1.7 + 0.3)).reshape(shape).round(3))

    for method in ("nearest", "bilinear", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (True, False):
                attrs = dict(method=method, padding_mode=padding, align_corners=corners)
                name = f"{method}_{padding}" + ("_corners" if corners else "")
                family.case(f"grid_sample_{name}", "image.grid_sample", [In("f32", 2, 3, 5, 4), grid((2, 2, 3, 4))],
                            lambda x, g, attrs=attrs: sample(x, g, **attrs), **attrs)
    for method in ("nearest", "bilinear"):
        family.case(f"grid_sample_volume_{method}", "image.grid_sample", [In("f32", 1, 2, 3, 4, 5), grid((1, 3, 2, 3, 2))],
                    lambda x, g, method=method: sample(x, g, method), method=method)
    family.case("grid_sample_far", "image.grid_sample", [In("f32", 1, 2, 5, 4), grid((1, 2, 3, 4), 6.0)],
                lambda x, g: sample(x, g, padding_mode="reflection", align_corners=False),
                padding_mode="reflection", align_corners=False)

    def elements(x, grid):
        """Places in elements."""
        scale = np.array([x.shape[3] - 1, x.shape[2] - 1], np.float32).reshape(1, 2, 1, 1)
        return sample(x, grid / scale * 2 - 1)

    inside = Const("f32", (1.5 + 2 * np.sin(np.arange(24) * 1.7 + 0.3)).reshape(1, 2, 3, 4).round(3))
    family.case("grid_sample_elements", "image.grid_sample", [In("f32", 1, 2, 5, 4), inside], elements, in_elements=True)

    rois = Const("f32", [[0.5, 1.25, 6.75, 5.5], [2, 2, 3, 7.5], [-1, -2, 4, 3], [6, 5, 12, 11]])
    images = Const("i64", [0, 1, 1, 0])

    def align(x, rois, images, pooled_size, sample_ratio=0, aligned=False, **more):
        mode = "half_pixel" if aligned else "output_half_pixel"
        return ort("RoiAlign", [x, rois, images], opset=16, output_height=pooled_size[0], output_width=pooled_size[1],
                   sampling_ratio=sample_ratio, coordinate_transformation_mode=mode, **more)

    for name, attrs in [
        ("plain", dict(pooled_size=[3, 2], sample_ratio=2)),
        ("adaptive", dict(pooled_size=[2, 3])),
        ("aligned", dict(pooled_size=[2, 2], sample_ratio=2, aligned=True)),
        ("scaled", dict(pooled_size=[3, 3], spatial_scale=0.5)),
        ("max", dict(pooled_size=[2, 3], sample_ratio=2, mode="max")),
    ]:
        family.case(f"roi_align_{name}", "vision.roi_align", [In("f32", 2, 3, 8, 9), rois, images],
                    lambda *a, attrs=attrs: align(*a, **attrs), **attrs)
    regions = Const("f32", [[0, 0, 1, 6, 5], [1, 2, 2, 3, 7], [1, 7, 6, 12, 11], [0, 3, 3, 3, 3]])
    for name, attrs in [("plain", dict(pooled_size=[3, 2])), ("scaled", dict(pooled_size=[2, 2], spatial_scale=0.5))]:
        family.case(f"roi_pool_{name}", "vision.roi_pool", [In("f32", 2, 3, 8, 9), regions],
                    lambda x, r, attrs=attrs: ort("MaxRoiPool", [x, r], pooled_shape=attrs["pooled_size"],
                                                  spatial_scale=attrs.get("spatial_scale", 1.0)), **attrs)
    det = wide(np.linalg.det)
    for name, shape in [("matrix", (3, 3)), ("one", (1, 1)), ("batch", (2, 5, 5)), ("batches", (2, 3, 4, 4))]:
        family.case(f"det_{name}", "linalg.det", [In("f32", *shape)], det)
    family.case("det_singular", "linalg.det", [Const("f32", [[[0, 1], [0, 2]], [[0, 2], [3, 0]]])], det)
    family.case("det_f64", "linalg.det", [In("f64", 4, 4)], det)
    family.write()


def found():
    """What gives as much as there may be, and how much of it counts: the rest is zero."""
    family = Family("found")

    def nonzero(x):
        places = np.zeros((x.ndim, x.size), np.int64)
        at = np.argwhere(np.atleast_1d(x) if x.ndim == 0 else x).T
        places[:, :at.shape[1]] = at[:x.ndim]
        return places, np.array([at.shape[1]])

    for dtype, shape in [("bool", (3, 7)), ("i8", (40,)), ("i64", (2, 3, 9)), ("f32", (5, 4))]:
        name = "_".join([dtype, *map(str, shape)])
        family.case(f"nonzero_{name}", "nonzero", [In(dtype, *shape)], nonzero)
    family.case("nonzero_zeros", "nonzero", [Const("f32", [[0, -0.0, math.nan], [math.inf, 0, 1e-40]])], nonzero)
    family.case("nonzero_scalar", "nonzero", [Const("i64", 3)], nonzero)

    def row_order(x):
        keys = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
        order = np.lexsort(keys.T[::-1]) if x.shape[1] else np.arange(len(x))
        rows = keys[order]
        return order.astype(np.int64), np.array([i == 0 or (rows[i] != rows[i - 1]).any() for i in range(len(x))])

    for dtype, shape in [("i8", (33, 1)), ("i64", (40, 2)), ("u8", (20, 3)), ("f32", (9, 2)), ("f64", (1, 4)), ("i32", (16, 1))]:
        name = "_".join([dtype, *map(str, shape)])
        family.case(f"row_order_{name}", "row_order", [In(dtype, *shape)], row_order)
    family.case("row_order_nan", "row_order", [Const("f32", [[math.nan], [1], [math.nan], [-math.inf], [1]])], row_order)

    def suppress(boxes, scores, places, overlap, least, most, centered=False):
        plain = np.zeros_like(scores)
        np.put_along_axis(plain, places, scores, 2)
        kept = ort("NonMaxSuppression", [boxes, plain, np.array([most[0]]), overlap, least], opset=11,
                   center_point_box=int(centered))
        rows = np.zeros((scores.shape[0] * scores.shape[1] * min(most[0], scores.shape[2]), 3), np.int64)
        rows[:len(kept)] = kept
        return rows, np.array([len(kept)])

    for name, images, classes, count, most, centered in [
        ("plain", 1, 1, 12, 5, False), ("classes", 2, 3, 9, 4, False), ("all", 1, 2, 20, 30, False), ("centered", 2, 1, 15, 6, True),
        ("none", 1, 1, 4, 0, False),
    ]:
        corners = np.abs(fill(f"suppress_{name}/boxes", (images, count, 4)))
        scores = fill(f"suppress_{name}/scores", (images, classes, count))
        places = np.argsort(-scores, 2, kind="stable")
        args = [Const("f32", corners), Const("f32", np.take_along_axis(scores, places, 2)), Const("i64", places),
                Const("f32", [0.25]), Const("f32", [-0.5]), Shape(most)]
        family.case(f"suppress_{name}", "vision.suppress", args,
                    lambda *a, centered=centered: suppress(*a, centered=centered), centered=centered)
    family.write()


def storage():
    """Types that are stored alone, by the codes that ml_dtypes gives them, packed as ONNX packs them."""
    family = Family("storage")
    floats = {
        "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
        "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "f4e2m1": "float4_e2m1fn",
    }
    ints = {"i4": "int4", "u4": "uint4", "i2": "int2", "u2": "uint2"}
    bits = {"f4e2m1": 4, "i4": 4, "u4": 4, "i2": 2, "u2": 2}

    def packed(codes, size):
        codes = codes.ravel().astype(np.uint8) & ((1 << size) - 1)
        per_byte = 8 // size
        codes = np.pad(codes, (0, -len(codes) % per_byte)).reshape(-1, per_byte)
        return np.bitwise_or.reduce(codes << (np.arange(per_byte, dtype=np.uint8) * size), axis=1).astype(np.uint8)

    def unpacked(values, size, count):
        places = np.arange(8 // size, dtype=np.uint8) * size
        return ((values[:, None] >> places) & ((1 << size) - 1)).ravel()[:count].astype(np.uint8)

    numbers = Const("f32", [0.0, -0.0, 1.0, -1.5, 0.3, 2.5, 3.4, -3.6, 5.0, 7.0, 100.0, 1e6, 1e-7, -240.0, 247.0])
    positive = Const("f32", [0.3, 1.0, 1.1, 1.7, 2.0, 3.1, 6.5, 100.0, 1e6, 1e-7, 240.0])
    codes = Const("u8", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 60, 100, 115, 133, 200, 250, 171])
    for name, other in {**floats, **ints}.items():
        kind, size = np.dtype(getattr(ml_dtypes, other)), bits.get(name, 8)
        count = len(codes.array) * 8 // size - (size < 8)

        def decoded(values, shape, kind=kind, size=size, count=count):
            codes = unpacked(values, size, count)
            return codes.view(kind).astype(np.float32 if name in floats else (np.int8 if name[0] == "i" else np.uint8))

        family.case(f"decode_{name}", "storage.decode", [codes, Shape(count)], decoded, dtype=name)
        if name in floats:
            source = positive if name == "f8e8m0" else numbers
            limit = 0.0 if name == "f8e8m0" else float(ml_dtypes.finfo(kind).max)
            clip = lambda x, limit=limit: x if not limit else np.clip(x, -limit, limit)
            encode = lambda x, kind=kind, size=size: packed(clip(x).astype(kind).view(np.uint8), size)
            family.case(f"encode_{name}", "storage.encode", [source], encode, dtype=name)
        else:
            info = ml_dtypes.iinfo(kind)
            encode = lambda x, size=size, info=info: packed(np.clip(np.trunc(x), info.min, info.max).astype(np.int64), size)
            family.case(f"encode_{name}", "storage.encode", [numbers], encode, dtype=name)
            family.case(f"encode_whole_{name}", "storage.encode", [In("i32", 3, 7)],
                        lambda x, size=size: packed(x.astype(np.int64) & 255, size), dtype=name)
    family.write()


def byte_dots():
    """Products of bytes, of which one lies in quads of 16 columns."""
    family = Family("byte_dots")

    def product(x, w):
        blocks, quads, _, _ = w.shape
        matrix = w.transpose(1, 3, 0, 2).reshape(quads * 4, blocks * 16)
        return x.astype(np.int32) @ matrix.astype(np.int32)

    for name, rows, depth, columns in ("one", 1, 8, 16), ("tile", 12, 16, 64), ("ragged", 7, 12, 20), ("wide", 5, 20, 48):
        blocks = -(-columns // 16)
        family.case(f"byte_dots_{name}", "nn.byte_dots", [In("u8", rows, depth), In("i8", blocks, depth // 4, 16, 4)],
                    lambda x, w, columns=columns: product(x, w)[:, :columns], columns=columns)
    family.case("byte_dots_batch", "nn.byte_dots", [In("u8", 2, 1, 7, 8), In("i8", 1, 2, 16, 4)], product, columns=16)
    family.case("byte_dots_signed", "nn.byte_dots", [In("i8", 13, 12), In("i8", 2, 3, 16, 4)], product, columns=32)
    family.write()


def bf16_dots():
    """Products of bf16, of which one lies in pairs of rows of 16 columns."""
    family = Family("bf16_dots")

    def product(x, w):
        blocks, pairs, _, _ = w.shape
        matrix = w.astype(np.float64).transpose(1, 3, 0, 2).reshape(pairs * 2, blocks * 16)
        return (x.astype(np.float64) @ matrix).astype(np.float32)

    for name, rows, depth, columns in ("one", 1, 8, 16), ("tile", 12, 16, 64), ("ragged", 7, 6, 20), ("wide", 5, 10, 48):
        blocks = -(-columns // 16)
        family.case(f"bf16_dots_{name}", "nn.bf16_dots", [In("bf16", rows, depth), In("bf16", blocks, depth // 2, 16, 2)],
                    lambda x, w, columns=columns: product(x, w)[:, :columns], columns=columns)
    family.case("bf16_dots_batch", "nn.bf16_dots", [In("bf16", 2, 7, 8), In("bf16", 1, 4, 16, 2)], product, columns=16)
    family.write()


def byte_conv():
    """Convolutions of bytes, plain and in blocks of quads of channels; what lies beyond the data is a number of its own."""
    family = Family("byte_conv")

    def plain(x, w, z, strides=(1, 1), padding=(0, 0, 0, 0), groups=1):
        top, left, bottom, right = padding
        x = np.pad(x.astype(np.int32), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=int(z))
        n, c, height, width = x.shape
        o, i, kernel_h, kernel_w = w.shape
        out_h, out_w = (height - kernel_h) // strides[0] + 1, (width - kernel_w) // strides[1] + 1
        w = w.astype(np.int32).reshape(groups, o // groups, i, kernel_h, kernel_w)
        out = np.zeros((n, groups, o // groups, out_h, out_w), np.int32)
        for h, v in np.ndindex(kernel_h, kernel_w):
            part = x[:, :, h:h + (out_h - 1) * strides[0] + 1:strides[0], v:v + (out_w - 1) * strides[1] + 1:strides[1]]
            out += np.einsum("ngihw,goi->ngohw", part.reshape(n, groups, i, out_h, out_w), w[..., h, v])
        return out.reshape(n, o, out_h, out_w)

    def blocked(x, w, z, **attrs):
        n, blocks, height, width, block = x.shape
        x = x.transpose(0, 1, 4, 2, 3).reshape(n, blocks * block, height, width)
        outer, quads, kernel_h, kernel_w, lanes, four = w.shape
        w = w.transpose(0, 4, 1, 5, 2, 3).reshape(outer * lanes, quads * four, kernel_h, kernel_w)
        y = plain(x, w, z, **attrs)
        return y.reshape(n, outer, lanes, *y.shape[2:]).transpose(0, 1, 3, 4, 2)

    cases = {
        "plain": ((1, 3, 5, 6), (4, 3, 3, 3), dict(padding=[1, 1, 1, 1])),
        "plain_strided": ((2, 4, 7, 5), (3, 4, 3, 2), dict(padding=[1, 0, 0, 2], strides=[2, 1])),
        "plain_grouped": ((1, 4, 5, 5), (6, 2, 3, 3), dict(groups=2)),
        "blocks": ((1, 1, 9, 17, 16), (2, 4, 3, 3, 16, 4), dict(padding=[1, 1, 1, 1])),
        "blocks_strided": ((1, 2, 7, 15, 16), (1, 8, 3, 3, 16, 4), dict(padding=[1, 1, 1, 1], strides=[2, 2])),
        "blocks_of_a_tap": ((2, 2, 3, 13, 16), (4, 8, 1, 1, 16, 4), {}),
        "blocks_of_short_rows": ((1, 1, 7, 3, 16), (2, 4, 1, 1, 16, 4), {}),
        "blocks_of_few_channels": ((1, 1, 6, 8, 4), (1, 1, 5, 5, 16, 4), dict(padding=[2, 2, 2, 2])),
        "halves": ((1, 3, 4, 5, 8), (3, 6, 3, 3, 8, 4), dict(padding=[1, 1, 1, 1])),
        "quarters": ((1, 3, 4, 5, 4), (3, 3, 1, 1, 4, 4), {}),
        "blocks_in_groups": ((1, 2, 4, 5, 8), (2, 2, 3, 3, 16, 4), dict(groups=2)),
    }
    signed = "plain", "blocks", "quarters"
    for name, (x, w, attrs) in cases.items():
        layouts, compute = {}, plain
        if len(x) == 5:
            compute = blocked
            layouts = dict(data_layout=f"NCHW{x[4]}c", kernel_layout=f"OIHW{w[4]}o4i", out_layout=f"NCHW{w[4]}c")
        for sign in ("", "_signed") if name in signed else ("",):
            dtype = "i8" if sign else "u8"
            family.case(f"byte_conv2d_{name}{sign}", "nn.byte_conv2d", [In(dtype, *x), In("i8", *w), In(dtype)],
                        lambda x, w, z, attrs=attrs, compute=compute: compute(x, w, z, **attrs), **attrs, **layouts)

    def deep(x, w, z, strides=(1, 1, 1), padding=(0,) * 6, groups=1):
        """A sum over the frames that a kernel sees, each a convolution of images."""
        x = np.pad(x, [(0, 0), (0, 0), *zip(padding[:3], padding[3:])], constant_values=int(z))
        frames = range((x.shape[2] - w.shape[2]) // strides[0] + 1)
        return np.stack([sum(plain(x[:, :, frame * strides[0] + tap], w[:, :, tap], z, strides[1:], groups=groups)
                             for tap in range(w.shape[2])) for frame in frames], 2)

    def deep_blocked(x, w, z, **attrs):
        n, blocks, *extents, block = x.shape
        x = np.moveaxis(x, 5, 2).reshape(n, blocks * block, *extents)
        outer, quads, *taps, lanes, four = w.shape
        w = w.transpose(0, 5, 1, 6, 2, 3, 4).reshape(outer * lanes, quads * four, *taps)
        y = deep(x, w, z, **attrs)
        return np.moveaxis(y.reshape(n, outer, lanes, *y.shape[2:]), 2, 5)

    cases = {
        "plain": ((1, 3, 4, 5, 6), (4, 3, 3, 3, 3), dict(padding=[1] * 6)),
        "plain_uneven": ((2, 4, 5, 6, 7), (6, 2, 2, 3, 1), dict(padding=[0, 1, 2, 1, 0, 0], strides=[2, 1, 3], groups=2)),
        "blocks": ((1, 1, 5, 9, 17, 16), (2, 4, 3, 3, 3, 16, 4), dict(padding=[1] * 6)),
        "blocks_strided": ((2, 2, 4, 7, 15, 16), (4, 8, 1, 3, 3, 16, 4), dict(padding=[0, 1, 1] * 2, strides=[2, 2, 2])),
        "blocks_in_groups": ((1, 2, 3, 4, 5, 8), (2, 2, 3, 1, 1, 16, 4), dict(groups=2)),
        "halves": ((1, 3, 3, 4, 5, 8), (3, 6, 3, 3, 3, 8, 4), dict(padding=[1] * 6)),
    }
    for name, (x, w, attrs) in cases.items():
        layouts, compute = {}, deep
        if len(x) == 6:
            compute = deep_blocked
            layouts = dict(data_layout=f"NCDHW{x[5]}c", kernel_layout=f"OIDHW{w[5]}o4i", out_layout=f"NCDHW{w[5]}c")
        family.case(f"byte_conv3d_{name}", "nn.byte_conv3d", [In("u8", *x), In("i8", *w), In("u8")],
                    lambda x, w, z, attrs=attrs, compute=compute: compute(x, w, z, **attrs), **attrs, **layouts)
    family.write()


def quantized():
    """Matrices of integers on scales, and products with them, packed in blocks of columns."""
    family = Family("quantized")

    def floats(q, s, z, axis, block):
        def spread(x):
            x = np.repeat(x, block, axis).take(range(q.shape[axis]), axis)
            return np.broadcast_to(x, q.shape)
        return ((q.astype(np.int32) - spread(z).astype(np.int32)) * spread(s)).astype(np.float32)

    for name, dtype, rows, columns, axis, block in ("rows", "u8", 5, 24, 1, 8), ("ragged", "i8", 4, 10, 1, 4), ("down", "u8", 12, 3, 0, 12):
        shape = [rows, columns]
        shape[axis] = -(-shape[axis] // block)
        family.case(f"dequantize_{name}", "dequantize", [In(dtype, rows, columns), In("f32", *shape), In(dtype, *shape)],
                    lambda q, s, z, axis=axis, block=block: floats(q, s, z, axis, block), axis=axis, block=block)

    def product(x, w, s, bits):
        blocks, elements, lanes = w.shape
        w = w.astype(np.int32)
        if bits == 4:
            w = np.stack([(w << 28) >> 28, w >> 4], 2).reshape(blocks, elements * 2, lanes)
        matrix = w.transpose(1, 0, 2).reshape(w.shape[1], blocks * lanes)[:, :s.shape[1]]
        scales = np.repeat(s.astype(np.float64), matrix.shape[0] // s.shape[0], 0)
        return (x.astype(np.float64) @ (matrix * scales)).astype(x.dtype)

    for name, dtype, rows, depth, columns, lanes, groups, bits in (
            ("one", "f32", [1], 32, 64, 16, 1, 8), ("blocks", "f32", [3], 64, 32, 16, 4, 8), ("nibbles", "f32", [1], 64, 48, 16, 2, 4),
            ("ragged", "f32", [2, 7], 24, 37, 8, 3, 4), ("column", "f32", [20], 16, 40, 4, 1, 4), ("short", "f16", [4], 32, 16, 16, 2, 8)):
        w = In("i8", -(-columns // lanes), depth * bits // 8, lanes)
        family.case(f"quantized_dense_{name}", "nn.quantized_dense", [In(dtype, *rows, depth), w, In("f32", groups, columns)],
                    lambda x, w, s, bits=bits: product(x, w, s, bits), columns=columns, bits=bits)
    family.write()


def philox(seed, count):
    """Philox-4x32-10: the words of the counters from 0 on, by the paper's definition in numbers of any length."""
    words = np.zeros((count, 4), np.uint64)
    for number in range(count):
        x, key = [number & 0xFFFFFFFF, number >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
            x = [(b >> 32) ^ x[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ key[1], a & 0xFFFFFFFF]
            key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
        words[number] = x
    return words.T


def random():
    family = Family("random")
    double = lambda a, b: ((a >> np.uint64(5)) * 2**26 + (b >> np.uint64(6))).astype(np.float64) / 2**53

    def uniform(shape, seed, dtype, low, high):
        a, b, _, _ = philox(int(seed), int(np.prod(shape)))
        bits = {"f32": 24, "f16": 11}.get(dtype)
        unit = double(a, b) if dtype == "f64" else (a >> np.uint64(32 - bits)).astype(np.float64) / 2**bits
        return (low + unit * (high - low)).astype(DTYPES[dtype]).reshape(shape)

    def normal(shape, seed, dtype, mean, scale):
        a, b, c, d = philox(int(seed), int(np.prod(shape)))
        u, v = double(a, b) + 2.0**-53, double(c, d)
        if dtype != "f64":
            u, v = (((words >> np.uint64(8)).astype(np.float64) + plus) / 2**24 for words, plus in ((a, 1), (b, 0)))
        z = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
        return (mean + scale * z).astype(DTYPES[dtype]).reshape(shape)

    for op, f, names in ("uniform", uniform, ("low", "high")), ("normal", normal, ("mean", "scale")):
        for dtype in "f32", "f64", "f16":
            family.case(f"random_{op}_{dtype}", f"random.{op}", [Shape(3, 4, 7), Const("u64", 2**64 - 7)],
                        lambda s, k, dtype=dtype: f(s, k, dtype, 0.0, 1.0), dtype=dtype)
        bounds = dict(zip(names, (-2.0, 6.0)))
        family.case(f"random_{op}_bounds", f"random.{op}", [Shape(1000), Const("u64", 42)],
                    lambda s, k: f(s, k, "f32", -2.0, 6.0), **bounds)
        family.case(f"random_{op}_seed_of_the_call", f"random.{op}", [Shape(5), In("u64")], lambda s, k: f(s, k, "f32", 0.0, 1.0))
        family.case(f"random_{op}_scalar", f"random.{op}", [Shape(), Const("u64", 1)], lambda s, k: f(s, k, "f32", 0.0, 1.0))
        family.case(f"random_{op}_nothing", f"random.{op}", [Shape(3, 0), Const("u64", 1)], lambda s, k: f(s, k, "f32", 0.0, 1.0))
    family.write()


def trees():
    """Full trees of all depths up to one: a node of a level leads to two of the next, some of which are leaves."""
    family = Family("trees")

    def walk(x, roots, features, splits, trues, falses, missing=None, depth=0):
        missing = falses if missing is None else missing
        at = np.broadcast_to(roots, (len(x), len(roots))).copy()
        for _ in range(depth):
            value = np.take_along_axis(x, features[at].astype(np.int64), 1)
            otherwise = np.where(np.isnan(value), missing[at], falses[at])
            at = np.where(value <= splits[at], trues[at], otherwise)
        return at.astype(np.uint32)

    def forest(count, depth, columns, dtype, has_missing, rng):
        roots, nodes = [], []
        for _ in range(count):
            roots.append(len(nodes))
            nodes.append(None)
            level = [roots[-1]]
            for below in range(depth + 1):
                following = []
                for at in level:
                    nodes[at] = [0, 0.0, at, at, at]
                    if below < depth and (below == 0 or rng.random() < 0.7):
                        children = [len(nodes), len(nodes) + 1]
                        nodes += [None, None]
                        following += children
                        split = float(np.float32(rng.uniform(-3, 3)))
                        nodes[at] = [int(rng.integers(columns)), split, *children, int(rng.choice(children))]
                level = following
        features, splits, trues, falses, missing = zip(*nodes)
        lists = [Const("u32", roots), Const("u32", features), Const(dtype, splits), Const("u32", trues), Const("u32", falses)]
        return lists + [Const("u32", missing)] if has_missing else lists

    rng = np.random.default_rng(7)
    for count, depth, columns, rows, dtype, has_missing in [
        (1, 1, 1, 3, "f32", False), (3, 4, 5, 9, "f32", False), (8, 3, 4, 17, "f64", True), (13, 5, 3, 4, "f32", True),
        (26, 2, 6, 1, "f32", False),
    ]:
        lists = forest(count, depth, columns, dtype, has_missing, rng)
        name = f"leaves_{count}_{depth}_{columns}_{rows}_{dtype}{'_missing' if has_missing else ''}"
        family.case(name, "trees.leaves", [In(dtype, rows, columns), *lists], lambda *a, d=depth: walk(*a, depth=d), depth=depth)
    lists = forest(9, 3, 2, "f32", True, rng)
    gone = Const("f32", [[math.nan, 1.0], [math.nan, math.nan], [0.25, math.inf], [-math.inf, -0.0]])
    family.case("leaves_missing", "trees.leaves", [gone, *lists], lambda *a: walk(*a, depth=3), depth=3)
    for depth in (0, 1, 2):
        family.case(f"leaves_on_the_way_{depth}", "trees.leaves", [In("f32", 5, 2), *lists], lambda *a, d=depth: walk(*a, depth=d), depth=depth)
    family.case("leaves_no_rows", "trees.leaves", [In("f32", 0, 2), *lists], lambda *a: walk(*a, depth=3), depth=3)
    family.write()


if __name__ == "__main__":
    makers = (elementwise, broadcast, conv, winograd, matmul, pool, normalize, reduce, shape, slices, positions, gather, scans, bits,
              recurrence, quantized_lstm, image, conv3d, unpool, places, found, storage, byte_dots, bf16_dots, byte_conv, quantized, random, trees)
    for make in makers:
        if len(sys.argv) < 2 or make.__name__ in sys.argv[1:]:
            make()
