"""Writes models whose dimensions are open, with what ONNX Runtime makes of them for several sizes, in the form of make_graphs.py.

Usage: make_open.py FOLDER
"""

import os
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper, parser

from make_random import write

onnxruntime.set_default_logger_severity(4)



def forest(seed, targets, modes, before="Identity", **attrs):
    """A TreeEnsembleRegressor of trees at random, over rows of what an operator makes of three numbers."""
    rng, nodes, votes = np.random.default_rng(seed), [], []

    def grow(tree, depth):
        own = len([node for node in nodes if node[0] == tree])
        node = [tree, own, int(rng.integers(3)), float(rng.integers(-16, 17) / 8), "LEAF", 0, 0, int(rng.integers(2))]
        nodes.append(node)
        if depth and rng.random() < 0.8:
            node[4] = modes[int(rng.integers(len(modes)))]
            node[5], node[6] = grow(tree, depth - 1), grow(tree, depth - 1)
        else:
            # ONNX Runtime takes the number of a leaf to which no weight belongs for one.
            node[3], node[7] = 0.0, 0
            votes.extend((tree, own, target, float(rng.integers(-16, 17) / 8)) for target in range(targets) if rng.random() < 0.8)
        return own

    for tree, depth in enumerate([4, 1, 0, 6, 2]):
        grow(tree, depth)
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true"]
    lists = {f"nodes_{name}": column for name, column in zip(names, zip(*nodes))}
    lists.update({f"target_{name}": column for name, column in zip(["treeids", "nodeids", "ids", "weights"], zip(*votes))})
    given = [f"n_targets = {targets}", *(f"{name} = {value}" for name, value in attrs.items())]
    given += [f"{name} = {list(column)}".replace("'", '"') for name, column in lists.items()]
    return f"(float[n, 3] x) => (float[?, ?] y) {{ t = {before}(x) y = ai.onnx.ml.TreeEnsembleRegressor <{', '.join(given)}> (t) }}"


# Models: a name, the version of the operator set, the text of a graph, and values of the symbols in the order in which they come.
# An extent of `?` is whatever comes out.
CASES = [
    ("split_equal", 13, "(float[n, m] x) => (float[?, ?] a, float[?, ?] b) { a, b = Split <axis = 1> (x) }",
     [[3, 4], [1, 2], [2, 10]]),
    ("split_last_is_shorter", 18, "(float[n] x) => (float[?] a, float[?] b) { a, b = Split <num_outputs = 2> (x) }", [[6], [7], [2], [13]]),
    ("split_three", 18, """(float[2, n] x) => (float[?, ?] a, float[?, ?] d, float[?, ?] e)
        { a, b, c = Split <num_outputs = 3, axis = -1> (x) d = Neg(b) e = Neg(c) }""", [[9], [8], [5], [11]]),
    ("split_even", 18, """(float[n, 2] x) => (float[?, ?] a, float[?, ?] c)
        { t = Concat <axis = 0> (x, x) a, b = Split <num_outputs = 2> (t) c = Add(b, x) }""", [[3], [1], [4]]),

    ("crop_pad_to_number", 18, "(float[n, 3] x) => (float[?, ?] y) <int64[2] to = {5, 4}> { y = CenterCropPad(x, to) }",
     [[5], [8], [2], [9], [1]]),
    ("crop_pad_axes", 18, "(float[2, n, m] x) => (float[?, ?, ?] y) <int64[2] to = {6, 4}> { y = CenterCropPad <axes = [-1, 1]> (x, to) }",
     [[4, 6], [9, 3], [1, 13], [5, 7]]),
    ("crop_pad_as_asked", 18, "(float[n, 4] x, int64[2] to) => (float[?, ?] y) { y = CenterCropPad(x, to) }",
     [[5, 5, 4], [5, 2, 7], [3, 8, 1], [4, 7, 5]]),
    ("crop_pad_truth_values", 18, """(float[n, 3] x) => (bool[?, ?] y) <int64[2] to = {4, 2}, float zero = {0}>
        { t = Greater(x, zero) y = CenterCropPad(t, to) }""", [[3], [7], [4]]),
    ("crop_pad_whole_numbers", 18, """(int64[3] x, float[n] like) => (int64[?] y) { to = Shape(like) y = CenterCropPad(x, to) }""",
     [[3, 5, -6, 7], [6, 1, 2, 3], [1, 4, 5, 6]]),
    ("crop_pad_to_product", 18, """(float[n, m] x, float[n] like) => (float[?, ?] y)
        <int64[1] two = {2}> { k = Shape(like) to = Mul(k, two) y = CenterCropPad <axes = [0]> (x, to) }""", [[3, 2], [1, 4], [4, 1]]),

    ("convtranspose_shape", 11, """(float[1, 2, n] x) => (float[?, ?, ?] y)
        <float[2, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, -7, -8, -9}>
        { y = ConvTranspose <strides = [2], output_shape = [11]> (x, w) }""", [[5], [6], [7]]),
    ("convtranspose_shape_upper", 11, """(float[b, 1, n, 4] x, float[1, 2, 3, 2] w) => (float[?, ?, ?, ?] y)
        { y = ConvTranspose <strides = [2, 3], output_shape = [8, 10], auto_pad = "SAME_UPPER", dilations = [2, 1]> (x, w) }""",
     [[1, 3], [2, 4], [1, 5], [2, 2]]),
    ("convtranspose_channels", 11, """(float[b, c, n] x, float[c, o, 3] w, float[o] bias) => (float[?, ?, ?] y)
        { y = ConvTranspose <pads = [1, 0], strides = [2]> (x, w, bias) }""", [[2, 3, 5, 4], [1, 1, 2, 1], [1, 4, 7, 2]]),
    ("convtranspose_groups", 11, """(float[1, c, 4, 3] x, float[c, 2, 2, 2] w) => (float[?, ?, ?, ?] y)
        { y = ConvTranspose <group = 2> (x, w) }""", [[4], [2], [6]]),
    ("convtranspose_kernel", 11, """(float[1, 2, n, 3] x, float[2, 3, k, 2] w) => (float[?, ?, ?, ?] y)
        { y = ConvTranspose <strides = [2, 1], pads = [1, 0, 0, 1]> (x, w) }""", [[4, 3], [1, 4], [3, 2]]),
    ("convtranspose_kernel_same", 11, """(float[1, 2, n] x, float[2, 3, k] w) => (float[?, ?, ?] y)
        { y = ConvTranspose <strides = [2], auto_pad = "SAME_LOWER"> (x, w) }""", [[4, 3], [5, 4], [3, 2], [6, 5]]),

    ("conv_kernel", 11, """(float[1, 2, h, w] x, float[3, 2, k, l] weight, float[3] bias) => (float[?, ?, ?, ?] y)
        { y = Conv <pads = [1, 0, 2, 1], strides = [1, 2]> (x, weight, bias) }""", [[5, 6, 3, 2], [4, 4, 1, 1], [7, 5, 4, 5]]),
    ("conv_kernel_same", 11, """(float[1, 2, n] x, float[3, 2, k] weight) => (float[?, ?, ?] y)
        { y = Conv <auto_pad = "SAME_UPPER", strides = [2]> (x, weight) }""", [[6, 3], [7, 2], [5, 4], [8, 5]]),
    ("conv_same_of_long_steps", 11, """(float[1, 1, n] x, float[1, 1, 2] weight) => (float[?, ?, ?] y)
        { y = Conv <auto_pad = "SAME_LOWER", strides = [3]> (x, weight) }""", [[6], [7], [5], [8]]),
    ("pools_same_of_long_steps", 12, """(float[1, 1, n, m] x) => (float[?, ?, ?, ?] y, float[?, ?, ?, ?] z) {
            y = MaxPool <auto_pad = "SAME_UPPER", strides = [3, 2], kernel_shape = [2, 2]> (x)
            z = AveragePool <auto_pad = "SAME_LOWER", strides = [3, 3], kernel_shape = [2, 3]> (x)
        }""", [[5, 5], [7, 8], [4, 9], [8, 6]]),
    ("pools_padded", 12, """(float[1, 2, n, m] x) => (float[?, ?, ?, ?] y, float[?, ?, ?, ?] z, float[?, ?, ?, ?] w) {
            y = MaxPool <pads = [1, 2, 1, 0], kernel_shape = [3, 4], dilations = [2, 1], ceil_mode = 1, strides = [2, 3]> (x)
            z = AveragePool <pads = [2, 1, 1, 2], kernel_shape = [5, 3], count_include_pad = 1> (x)
            w = AveragePool <pads = [1, 1, 1, 1], kernel_shape = [3, 2], ceil_mode = 1, strides = [1, 2]> (x)
        }""", [[6, 5], [7, 40], [11, 23], [5, 16]]),
    ("parts_of_open_rows", 13, """(float[n, m, k] x, float[n, 3, k] z) => (float[?, ?, ?] y, float[?, ?, ?] w, float[?] s)
        <int64[1] one = {1}, int64[1] last = {1000}, int64[2] both = {0, 1}> {
            y = Slice (x, one, last, one)
            w = Concat <axis = 1> (x, z)
            s = ReduceSum <keepdims = 0> (x, both)
        }""", [[2, 3, 5], [3, 7, 40], [1, 2, 17]]),
    ("lppool_same", 11, """(float[1, 2, n, m] x) => (float[?, ?, ?, ?] y)
        { y = LpPool <auto_pad = "SAME_UPPER", strides = [2, 3], kernel_shape = [3, 4]> (x) }""", [[6, 5], [7, 9], [5, 4], [8, 7]]),
    ("conv_of_volumes_same", 11, """(float[1, 1, n, 4, m] x, float[2, 1, 3, 2, 2] weight) => (float[?, ?, ?, ?, ?] y)
        { y = Conv <auto_pad = "SAME_UPPER", strides = [2, 1, 2]> (x, weight) }""", [[6, 4], [5, 3], [4, 5]]),
    ("trees_sum", 13, forest(1, 1, ["BRANCH_LEQ"], base_values="[0.5]"), [[40], [1], [7]]),
    ("trees_of_many_modes", 13, forest(2, 3, ["BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_LEQ", "BRANCH_EQ", "BRANCH_NEQ"],
                                       post_transform='"SOFTMAX"'), [[40], [2]]),
    # Roots of numbers below zero are missing.
    ("trees_of_what_is_missing", 13, forest(6, 2, ["BRANCH_LT", "BRANCH_GT", "BRANCH_NEQ"], "Sqrt"), [[40], [2]]),
    ("trees_average", 13, forest(3, 2, ["BRANCH_LT"], aggregate_function='"AVERAGE"', post_transform='"LOGISTIC"'), [[40], [5]]),
    ("trees_least", 13, forest(4, 2, ["BRANCH_LEQ"], aggregate_function='"MIN"', base_values="[1.0, -2.0]"), [[40], [3]]),
    ("trees_most", 13, forest(5, 4, ["BRANCH_GTE"], aggregate_function='"MAX"'), [[40], [9]]),
    ("conv_kernel_in_loop", 13, """(float[1, 1, n] x, float[1, 1, k] weight, int64 trips) => (float[?, ?, ?] y) {
            y = Loop (trips, , x) <body = body (int64 i, bool go, float[1, 1, n] s) => (bool on, float[?, ?, ?] next) {
                on = Identity(go)
                made = Conv <auto_pad = "SAME_UPPER"> (s, weight)
                next = Tanh(made)
            }>
        }""", [[6, 3, 2], [5, 2, 3], [4, 5, 1]]),
    ("conv_of_kernel_that_grows", 13, """(float[1, 1, n] x, float[1, 1, k] weight, int64 trips) => (float[?, ?, ?] y, float[?, ?, ?] z) {
            z, y = Loop (trips, , weight, x) <body = body (int64 i, bool go, float[1, 1, l] w, float[1, 1, m] s)
                => (bool on, float[?, ?, ?] longer, float[?, ?, ?] next) {
                on = Identity(go)
                next = Conv (s, w)
                longer = Concat <axis = 2> (w, w)
            }>
        }""", [[20, 2, 2], [9, 3, 1], [30, 1, 3]]),
    ("nested_loop_that_grows", 17, """(float[n] x, int64 trips) => (float[?] y) <int64[1] a = {-1}, int64 one = {1}> {
          y = Loop (trips, , x) <body = b (int64 i, bool g, float[k] s) => (bool o, float[?] t) {
            o = Identity(g)
            c = Add(i, one)
            t = Loop (c, , s) <body = b2 (int64 j, bool g2, float[l] u) => (bool o2, float[?] v) {
              o2 = Identity(g2)
              v = Concat <axis = 0> (u, x)
            }>
          }>
        }""", [[2, 3], [3, 1], [1, 4]]),
    ("nested_rows_are_summed", 17, """(float[n] x, int64 trips) => (float[?] y, float[?, ?] r) <int64 one = {1}, int64[1] zero = {0}> {
          y, r = Loop (trips, , x) <body = b (int64 i, bool g, float[n] s) => (bool o, float[n] t, float[n] row) {
            o = Identity(g)
            c = Add(i, one)
            q, rows = Loop (c, , s) <body = b2 (int64 j, bool g2, float[n] u) => (bool o2, float[n] v, float[n] w) {
              f = Cast <to = 1> (j)
              o2 = Less(j, one)
              v = Add(u, f)
              w = Mul(u, v)
            }>
            t = ReduceSum <keepdims = 0> (rows, zero)
            row = Sub(t, q)
          }>
        }""", [[2, 3], [3, 1], [1, 4]]),
    ("nested_choice_of_shapes", 17, """(float[n] x, int64 trips) => (float[?] y, float z) <int64 one = {1}, int64[1] zero = {0}, int64[1] first = {1}, int64[1] end = {100}> {
          y = Loop (trips, , x) <body = b (int64 i, bool g, float[k] s) => (bool o, float[?] t) {
            o = Identity(g)
            c = Equal(i, one)
            t = If (c) <then_branch = th () => (float[?] a) { a = Concat <axis = 0> (s, x) }, else_branch = el () => (float[?] b) { b = Slice(s, first, end, zero) }>
          }>
          z = ReduceSum <keepdims = 0> (y)
        }""", [[5, 3], [3, 1], [4, 2]]),
    ("nested_scan", 17, """(float[n, m] x, float[m] s0, int64 trips) => (float[m] y, float[?, ?, ?] r) {
          y, r = Loop (trips, , s0) <body = b (int64 i, bool g, float[m] s) => (bool o, float[m] t, float[n, m] row) {
            o = Identity(g)
            t, row = Scan <num_scan_inputs = 1, body = sb (float[m] u, float[m] p) => (float[m] v, float[m] q) { w = Add(u, p) v = Tanh(w) q = Mul(v, s) }> (s, x)
          }>
        }""", [[2, 3, 3], [3, 1, 2], [1, 4, 1]]),
    ("nested_conditions", 17, """(float[n] x) => (float[n] y, int64 k) <int64 zero = {0}, int64 two = {2}, float lim = {30}, float c = {1.5}, bool yes = {1}> {
          y, k = Loop ( , yes, x, zero) <body = b (int64 i, bool g, float[n] s, int64 k0) => (bool o, float[n] t, int64 k2) {
            t, k2 = Loop (two, g, s, k0) <body = b2 (int64 j, bool g2, float[n] u, int64 k1) => (bool o2, float[n] v, int64 k3) {
               v = Mul(u, c)
               k3 = Add(k1, i)
               m = ReduceMax <keepdims = 0> (v)
               o2 = Less(m, lim)
            }>
            top = ReduceMax <keepdims = 0> (t)
            near = Less(top, lim)
            few = Less(i, two)
            o = And(near, few)
          }>
        }""", [[2], [5], [1]]),
]


def model_of(version, text):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": {version}, "ai.onnx.ml": 3]> graph {text}')
    onnx.checker.check_model(model)
    return model


def inputs_of(model, values, rng):
    """Data for each input, where the symbols have these values."""
    symbols, data = {}, {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        names = [dim.dim_param for dim in dims if dim.dim_param]
        for name in names:
            if name not in symbols:
                symbols[name] = values[len(symbols)]
        shape = [symbols.get(dim.dim_param, dim.dim_value) for dim in dims]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if dtype.kind == "f":
            data[value.name] = (rng.integers(-16, 17, shape) / 8).astype(dtype)
        else:
            # A number or sizes: what comes behind the symbols.
            count = int(np.prod(shape))
            data[value.name] = np.array(values[-count:], dtype).reshape(shape)
    return data


def main():
    folder = sys.argv[1]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    for name, version, text, sizes in CASES:
        model, rng = model_of(version, text), np.random.default_rng(zlib.crc32(name.encode()))
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        place = os.path.join(folder, f"test_{name}")
        for number, values in enumerate(sizes):
            inner = place if number == 0 else os.path.join(place, f"size_{number - 1}")
            os.makedirs(inner)
            given = inputs_of(model, values, rng)
            for kind, tensors in ("input", list(given.items())), ("output", [(it.name, value) for it, value in
                                                                 zip(model.graph.output, session.run(None, given))]):
                for index, (own, value) in enumerate(tensors):
                    write(os.path.join(inner, f"{kind}_{index}.pb"), numpy_helper.from_array(np.asarray(value), own))
            with open(os.path.join(inner, "tolerance"), "w") as file:
                file.write("0.0001 0.00001\n")
        write(os.path.join(place, "model.onnx"), model)
    print(f"{len(CASES)} models")


if __name__ == "__main__":
    main()
