#!/usr/bin/env python3
"""A small detector whose axes are all open: features at a stride of 8, three anchors at each place, boxes that are computed from
them, non-maximum suppression, and of each box that is left its corners, its score, its class and its image.

The weights are numbers from `fill.py`, so that scores are spread and boxes overlap.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fill import fill

ANCHORS = np.array([[12, 12], [24, 16], [16, 32]], np.float32)
CLASSES = 4


def make_detector() -> onnx.ModelProto:
    nodes, weights = [], []

    def const(name, value):
        weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(op, inputs, outputs, **attributes):
        outputs = [outputs] if isinstance(outputs, str) else outputs
        nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0]

    def conv(x, name, channels, kernel, stride=1):
        inputs, outputs = channels
        scale = np.float32(np.sqrt(6 / (inputs * kernel * kernel)))
        weight = const(f"{name}.weight", fill(f"detector/{name}", (outputs, inputs, kernel, kernel)) * scale)
        bias = const(f"{name}.bias", fill(f"detector/{name}.bias", (outputs,)) * np.float32(0.5))
        pads = [kernel // 2] * 4
        return node("Conv", [x, weight, bias], name, kernel_shape=[kernel] * 2, pads=pads, strides=[stride] * 2)

    ints = {i: const(f"int.{i}", np.array([i], np.int64)) for i in range(-1, 3)}
    x = "image"
    for at, (inputs, outputs) in enumerate([(3, 8), (8, 16), (16, 24)]):
        x = node("Relu", [conv(x, f"down{at}", (inputs, outputs), 3, 2)], f"relu{at}")
    shape = node("Shape", [x], "shape")
    batch, rows, columns = (node("Gather", [shape, const(f"axis.{a}", np.int64(a))], n)
                            for a, n in [(0, "batch"), (2, "rows"), (3, "columns")])

    def per_anchor(x, name, width):
        """[n, anchors*width, h, w] as [n, h*w*anchors, width]."""
        split = const(f"{name}.split", np.array([len(ANCHORS), width], np.int64))
        sizes = [node("Unsqueeze", [v, ints[0]], f"{name}.{v}") for v in (batch, rows, columns)]
        to = node("Concat", [sizes[0], split, sizes[1], sizes[2]], f"{name}.to", axis=0)
        x = node("Reshape", [x, to], f"{name}.split_heads")
        x = node("Transpose", [x], f"{name}.last", perm=[0, 3, 4, 1, 2])
        pair = node("Concat", [sizes[0], ints[-1], const(f"{name}.width", np.array([width], np.int64))], f"{name}.pair", axis=0)
        return node("Reshape", [x, pair], name)

    deltas = per_anchor(conv(x, "box_head", (24, 4 * len(ANCHORS)), 1), "deltas", 4)
    logits = per_anchor(conv(x, "class_head", (24, CLASSES * len(ANCHORS)), 1), "logits", CLASSES)
    scores = node("Sigmoid", [logits], "probabilities")
    scores = node("Transpose", [scores], "by_class", perm=[0, 2, 1])

    zero, one = const("zero", np.int64(0)), const("one", np.int64(1))
    y = node("Cast", [node("Range", [zero, rows, one], "row_numbers")], "ys", to=TensorProto.FLOAT)
    x = node("Cast", [node("Range", [zero, columns, one], "column_numbers")], "xs", to=TensorProto.FLOAT)
    stride, half = const("stride", np.float32(8)), const("half", np.float32(0.5))
    y, x = (node("Mul", [node("Add", [v, half], f"{n}.middle"), stride], f"{n}.pixels") for v, n in [(y, "y"), (x, "x")])
    grid = node("Concat", [node("Unsqueeze", [rows, ints[0]], "rows1"), node("Unsqueeze", [columns, ints[0]], "columns1"), ints[1]],
                "grid", axis=0)
    y = node("Expand", [node("Unsqueeze", [y, const("last_two", np.array([1, 2], np.int64))], "y3"), grid], "y_grid")
    x = node("Expand", [node("Unsqueeze", [x, const("outer", np.array([0, 2], np.int64))], "x3"), grid], "x_grid")
    middles = node("Concat", [y, x], "middles", axis=2)
    middles = node("Unsqueeze", [middles, ints[2]], "middles4")
    anchors = const("anchors", ANCHORS)
    each = node("Concat", ["rows1", "columns1", const("anchor_count", np.array([len(ANCHORS), 2], np.int64))], "each", axis=0)
    pair = const("pairs", np.array([-1, 2], np.int64))
    middles = node("Reshape", [node("Expand", [middles, each], "middles_each"), pair], "middles_flat")
    sizes = node("Reshape", [node("Expand", [anchors, each], "sizes_each"), pair], "sizes_flat")
    node("Split", [deltas], ["moves", "growth"], axis=2, num_outputs=2)
    middles = node("Add", [middles, node("Mul", ["moves", sizes], "moved")], "box_middles")
    sizes = node("Mul", [node("Exp", ["growth"], "factors"), sizes], "box_sizes")
    reach = node("Mul", [sizes, half], "reach")
    boxes = node("Concat", [node("Sub", [middles, reach], "low"), node("Add", [middles, reach], "high")], "boxes", axis=2)

    limits = [const("most", np.array([12], np.int64)), const("overlap", np.array([0.45], np.float32)),
              const("least", np.array([0.85], np.float32))]
    kept = node("NonMaxSuppression", [boxes, scores, *limits], "kept")
    image_and_box = node("Gather", [kept, const("columns.02", np.array([0, 2], np.int64))], "image_and_box", axis=1)
    node("GatherND", [boxes, image_and_box], "corners")
    node("GatherND", [scores, kept], "scores")
    node("Cast", [node("Gather", [kept, const("column.1", np.int64(1))], "class_numbers", axis=1)], "classes", to=TensorProto.FLOAT)
    node("Cast", [node("Gather", [kept, const("column.0", np.int64(0))], "image_numbers", axis=1)], "images", to=TensorProto.FLOAT)

    def info(name, dims):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

    graph = helper.make_graph(
        nodes, "detector", [info("image", ["n", 3, "h", "w"])],
        [info("corners", ["found", 4]), info("scores", ["found"]), info("classes", ["found"]), info("images", ["found"])],
        weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8,
                              producer_name="tests/models/make_detector.py")
    onnx.checker.check_model(model, full_check=True)
    return model
