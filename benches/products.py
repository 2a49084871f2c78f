#!/usr/bin/env python3
"""Writes products of matrices of several shapes as ONNX models, with the right matrix constant and given, for benches/models.py.

usage: .cache/venv/bin/python benches/products.py FOLDER
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPES = [(128, 768, 3072), (1024, 1024, 1024), (512, 512, 512), (197, 768, 768), (197, 3072, 768), (49, 384, 1536)]


def product(m, k, n, is_constant):
    """A model of one product, `[m, k]` by `[k, n]`."""
    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs, constants = [info("x", [m, k])], []
    if is_constant:
        weights = np.random.default_rng(0).normal(scale=0.05, size=(k, n)).astype(np.float32)
        constants.append(numpy_helper.from_array(weights, "w"))
    else:
        inputs.append(info("w", [k, n]))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", inputs, [info("y", [m, n])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    return model


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: benches/products.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for shape in SHAPES:
        for is_constant in (True, False):
            name = "x".join(map(str, shape)) + ("_constant" if is_constant else "_given")
            onnx.save(product(*shape, is_constant), folder / f"product_{name}.onnx")


if __name__ == "__main__":
    main()
