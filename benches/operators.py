#!/usr/bin/env python3
"""Writes models of one operator each, with inputs, for benches/models.py: what networks have between products and convolutions.

usage: .cache/venv/bin/python benches/operators.py FOLDER [--open]

With `--open` extents of more than four are symbols, equal ones the same. Run them with
`.cache/venv/bin/python benches/models.py -t 1 -r 2 -s 0.05 [--open] FOLDER/*.onnx`.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

random = np.random.default_rng(0)
# Extents up to this stay numbers: channels of pictures, corners of boxes.
FEW = 4


def real(*shape):
    return random.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def below(bound, *shape):
    return random.integers(0, bound, shape)


def boxes(count):
    corners = random.uniform(0, 100, (1, count, 4)).astype(np.float32)
    corners[..., 2:] = corners[..., :2] + 0.3 * corners[..., 2:]
    return corners


def pools():
    x = real(1, 64, 56, 56)
    for size, step in [(2, 2), (3, 2), (3, 1), (5, 1), (9, 1), (13, 1)]:
        window = dict(kernel_shape=[size] * 2, strides=[step] * 2, pads=[(size - 1) // 2] * 4)
        yield f"max_pool_{size}_{step}", "MaxPool", [x], window
        yield f"average_pool_{size}_{step}", "AveragePool", [x], window
    yield "max_pool_1d", "MaxPool", [real(1, 64, 4000)], dict(kernel_shape=[4], strides=[4])
    yield "max_pool_3d", "MaxPool", [real(1, 32, 16, 28, 28)], dict(kernel_shape=[3] * 3, strides=[2] * 3, pads=[1] * 6)
    yield "max_unpool", "MaxUnpool", [real(1, 32, 28, 28), np.arange(32 * 28 * 28).reshape(1, 32, 28, 28) * 4], dict(
        kernel_shape=[2, 2], strides=[2, 2])


def along_axes():
    x = real(48, 96, 120)
    for axis in range(3):
        yield f"softmax_{axis}", "Softmax", [x], dict(axis=axis)
        yield f"arg_max_{axis}", "ArgMax", [x], dict(axis=axis)
        yield f"running_sum_{axis}", "CumSum", [x, ("constant", np.int64(axis))], {}
    yield "softmax_rows", "Softmax", [real(3200, 400)], dict(axis=-1)
    for op in "ReduceMean", "ReduceMax":
        for axes in (0,), (1,), (2,), (0, 1), (1, 2), (0, 2):
            yield f"{op}_{'_'.join(map(str, axes))}", op, [x, ("constant", ints(*axes))], dict(keepdims=0)
    scale = ("constant", real(768))
    yield "layer_norm", "LayerNormalization", [real(8, 197, 768), scale, scale], {}
    yield "instance_norm", "InstanceNormalization", [real(2, 64, 56, 56), *[("constant", real(64))] * 2], {}


def orders():
    for count in 1, 100, 8400:
        yield f"top_{count}", "TopK", [real(16, 8400), ("constant", ints(count))], {}
    numbers = [("constant", each) for each in (ints(100), np.float32([0.5]), np.float32([0.1]))]
    scores = random.uniform(0, 1, (1, 4, 2000)).astype(np.float32)
    yield "suppression", "NonMaxSuppression", [boxes(2000), scores, *numbers], {}
    yield "unique", "Unique", [below(500, 20000)], {}
    yield "non_zero", "NonZero", [real(300, 400)], {}


def moves():
    image = real(4, 64, 56, 50)
    for order in (0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (0, 1, 3, 2):
        yield f"transpose_{''.join(map(str, order))}", "Transpose", [image], dict(perm=order)
    yield "join", "Concat", [real(1, 64, 56, 56), real(1, 32, 56, 56), real(1, 16, 56, 56)], dict(axis=1)
    yield "split", "Split", [real(4, 96, 56, 56), ("constant", ints(32, 32, 32))], dict(axis=1)
    yield "part", "Slice", [real(64, 64, 200), *(("constant", ints(each)) for each in (5, 60, 1))], {}
    yield "every_second", "Slice", [real(64, 64, 200), *(("constant", ints(each)) for each in (0, 200, 2, 2))], {}
    for mode in "constant", "reflect", "edge":
        yield f"pad_{mode}", "Pad", [real(1, 64, 56, 56), ("constant", ints(0, 0, 3, 3, 0, 0, 3, 3))], dict(mode=mode)
    yield "gather", "Gather", [("constant", real(30000, 256)), below(30000, 8, 128)], {}
    yield "scatter", "ScatterND", [real(500, 60), below(500, 300, 1), real(300, 60)], {}
    yield "depth_to_space", "DepthToSpace", [real(1, 64, 64, 64)], dict(blocksize=2, mode="CRD")
    for mode in "nearest", "linear", "cubic":
        scales = ("constant", np.float32([1, 1, 2, 2]))
        yield f"resize_{mode}", "Resize", [real(1, 32, 48, 48), ("constant", real(0)), scales], dict(mode=mode)
    places = np.clip(real(1, 64, 64, 2) / 2, -1, 1)
    yield "grid_sample", "GridSample", [real(1, 32, 64, 64), places], dict(mode="linear")


def elements():
    x = real(512, 768)
    for op in "Relu", "Exp", "Tanh", "Sigmoid", "Erf", "Gelu":
        yield op.lower(), op, [x], {}
    yield "add", "Add", [x, real(512, 768)], {}
    yield "add_row", "Add", [x, real(768)], {}
    yield "times_column", "Mul", [x, real(512, 1)], {}
    yield "outer", "Mul", [real(600, 1), real(1, 600)], {}
    yield "where", "Where", [x > 0, x, real(512, 768)], {}
    yield "from_bytes", "Cast", [below(255, 300000).astype(np.uint8)], dict(to=1)
    yield "to_bytes", "QuantizeLinear", [x, *(("constant", each) for each in (np.float32(0.02), np.uint8(128)))], {}


def products():
    for m, k, n in (1, 512, 1000), (17, 33, 65), (100, 300, 500), (1000, 8, 1000):
        yield f"product_{m}_{k}_{n}", "MatMul", [real(m, k), real(k, n)], {}
    yield "products", "MatMul", [real(12, 128, 64), real(12, 64, 128)], {}
    yield "one_by_many", "MatMul", [real(50, 64), real(8, 64, 70)], {}
    yield "many_small", "MatMul", [real(2000, 3, 3), real(2000, 3, 3)], {}
    for op, gates in ("LSTM", 4), ("GRU", 3):
        for batch in 1, 8:
            weights = [("constant", real(1, gates * 256, 256) / 16) for _ in range(2)]
            yield f"{op.lower()}_{batch}", op, [real(50, batch, 256), *weights], dict(hidden_size=256)


def model(op, inputs, attributes, is_open):
    """A model, and its inputs by name."""
    def dims(array):
        return [f"s{extent}" if is_open and extent > FEW else extent for extent in array.shape]

    names, given, constants = [], {}, []
    for place, value in enumerate(inputs):
        names.append(f"x{place}")
        match value:
            case ("constant", array):
                constants.append(numpy_helper.from_array(np.asarray(array), names[-1]))
            case array:
                given[names[-1]] = np.asarray(array)
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims(array))
             for name, array in given.items()]
    outputs = ["y", "z", "w"][: 2 if op in ("TopK",) else 3 if op == "Split" else 1]
    node = helper.make_node(op, names, outputs, **attributes)
    graph = helper.make_graph([node], op, infos, [onnx.ValueInfoProto(name=name) for name in outputs], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 10
    return made, given


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--open", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for family in pools, along_axes, orders, moves, elements, products:
        for name, op, inputs, attributes in family():
            made, given = model(op, inputs, attributes, args.open)
            path = args.folder / f"{name}.onnx"
            onnx.save(made, path)
            np.savez(path.with_suffix(".npz"), **{f"in_{name}": array for name, array in given.items()})


if __name__ == "__main__":
    main()
