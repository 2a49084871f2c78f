"""Writes models in Acme's own domain, in both of its versions: moments_1.onnx, moments_2.onnx. Needs onnx.

In version 1 of `acme.ops` the axis of `Moments` is an attribute, since version 2 it is an input.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent


def model(version, nodes, initializer=()):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "moments",
        [info("x", TensorProto.FLOAT, ["n", 3])],
        [info("mean", TensorProto.FLOAT, None), info("variance", TensorProto.FLOAT, None)],
        list(initializer),
    )
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("acme.ops", version)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10, producer_name="acme")


def main():
    node = helper.make_node("Moments", ["x"], ["mean", "variance"], domain="acme.ops", axis=1)
    onnx.save(model(1, [node]), HERE / "moments_1.onnx")
    node = helper.make_node("Moments", ["x", "axis"], ["mean", "variance"], domain="acme.ops", unbiased=1)
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    onnx.save(model(2, [node], [axis]), HERE / "moments_2.onnx")


if __name__ == "__main__":
    main()
