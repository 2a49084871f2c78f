#!/usr/bin/env python3
"""Gives the nine light_* networks of the onnx wheel weights with which a wrong number shows.

As they come, all weights are 0.02, all classes get the same score, and so would a broken convolution.
Here every float parameter is replaced by numbers from `fill.py`, named "random_<network>/<parameter>":

    convolution, matrix   uniform, standard deviation sqrt(2 / fan_in) (He), times GAIN
    their biases          uniform in [-1/2, 1/2)
    batch norm            scale and variance in [1/2, 3/2), shift and mean in [-1/2, 1/2)
    a scale after it      in [1/2, 3/2); a shift after it in [-1/2, 1/2)

Where a network normalizes by local response, its first layer's parameters are multiplied by 128 (pixels
were -128 to 128 when it was made), or the normalization would divide by 1. The weights become
initializers, and the scores before the last softmax a second output: softmax would hide their errors.

usage: make_random.py OUT_DIR [NETWORK...]        e.g. make_random.py .cache/models resnet50
"""

import math
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fill import fill

LIGHT = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
NETWORKS = [
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50",
    "shufflenet", "squeezenet", "vgg19", "zfnet512",
]
# Factor on the weights of the last layer, so that scores are a few units apart.
GAIN = {
    "bvlc_alexnet": 1 / 32, "densenet121": 1 / 4, "inception_v1": 1 / 32, "inception_v2": 1 / 16,
    "resnet50": 4, "shufflenet": 1 / 16, "zfnet512": 1 / 16,
}
# Written with its weights in a file of their own, as exporters do with large networks.
EXTERNAL = {"vgg19"}
# Also written for a newer operator set: other forms of Softmax, Unsqueeze, BatchNormalization, Dropout.
NEWER = {"densenet121": 21, "shufflenet": 13, "squeezenet": 17}


def randomize(network: str) -> onnx.ModelProto:
    model = onnx.load(os.path.join(LIGHT, f"light_{network}.onnx"))
    graph = model.graph
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    consts = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    shapes = {n.output[0]: tuple(consts[n.input[0]]) for n in graph.node if n.op_type == "ConstantOfShape"}
    shapes |= {name: c.shape for name, c in consts.items() if c.dtype == np.float32}

    reader = {}  # name -> the first node that reads it, and at which place
    for n in nodes:
        for place, name in enumerate(n.input):
            reader.setdefault(name, (n, place))
    layers = [n for n in nodes if n.op_type in ("Conv", "Gemm")]
    big_input = any(n.op_type == "LRN" for n in nodes)

    def values(name: str) -> np.ndarray:
        node, place = reader[name]
        shape = shapes[name]
        while node.op_type in ("Reshape", "Unsqueeze"):  # a parameter that is reshaped on its way
            if node.op_type == "Reshape":
                shape = tuple(consts[node.input[1]])
            node, place = reader[node.output[0]]
        x = fill(f"random_{network}/{name}", shapes[name])
        match node.op_type, place:
            case ("Conv" | "Gemm"), 1:
                fan_in = math.prod(shape[1:])
                x *= np.float32(math.sqrt(6 / fan_in))
                if node is layers[-1]:
                    x *= np.float32(GAIN.get(network, 1))
            case ("BatchNormalization", 1 | 4) | ("Mul", 1):
                x = x / 2 + 1
            case ("Conv" | "Gemm", 2) | ("BatchNormalization", 2 | 3) | ("Add", 1):
                x /= 2
            case other:
                raise SystemExit(f"{network}: no rule for parameter {name} of {other}")
        if place in (1, 2) and node.op_type == "BatchNormalization":
            after = reader.get(node.output[0])
            if after and after[0].op_type == "Sum":  # or every residual block would double the signal
                x /= 4
        if big_input:
            if node is layers[0]:
                x *= 128
            elif place == 2 and node is not layers[-1]:
                x *= 32
        return x

    kept = [i for i in graph.initializer if numpy_helper.to_array(i).dtype == np.int64 and i.name in reader]
    made = [numpy_helper.from_array(values(name), name) for name in shapes if name in reader]
    inputs = [i for i in graph.input if i.name not in consts]
    outputs = list(graph.output)
    if nodes[-1].op_type == "Softmax":
        shape = [d.dim_value for d in outputs[0].type.tensor_type.shape.dim]
        outputs.append(helper.make_tensor_value_info(nodes[-1].input[0], TensorProto.FLOAT, shape))
    new = helper.make_model(
        helper.make_graph(nodes, f"random_{network}", inputs, outputs, kept + made),
        opset_imports=model.opset_import, ir_version=8, producer_name="tenon-tests",
    )
    return new


def save(model: onnx.ModelProto, path: str, external: bool = False):
    data = os.path.basename(path).removesuffix(".onnx") + ".bin"
    if external:
        if os.path.exists(os.path.join(os.path.dirname(path), data)):
            os.remove(os.path.join(os.path.dirname(path), data))
        onnx.save(model, path, save_as_external_data=True, location=data, size_threshold=1024)
    else:
        onnx.save(model, path)
    print(path)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for network in sys.argv[2:] or NETWORKS:
        path = os.path.join(out, f"random_{network}.onnx")
        model = randomize(network)
        if network in NEWER:
            newer = onnx.version_converter.convert_version(model, NEWER[network])
            save(newer, os.path.join(out, f"random_{network}_opset{NEWER[network]}.onnx"))
        save(model, path, network in EXTERNAL)


if __name__ == "__main__":
    main()
