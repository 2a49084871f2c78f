"""Writes the node tests of the onnx wheel as files: NAME/model.onnx, NAME/input_0.pb, NAME/output_0.pb, ...

Usage: make_suite.py FOLDER

The wheel has them as Python code. Tests with sequences, maps or optional values are written without their data,
because there is nothing that could be done with it.
"""

import os
import random
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

warnings.filterwarnings("ignore")
random.seed(0)
np.random.seed(0)

from onnx.backend.test.case.node import collect_testcases  # noqa: E402


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def tensor(value, name):
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value), name)


folder = sys.argv[1]
cases = collect_testcases(None)
for case in cases:
    place = os.path.join(folder, case.name)
    os.makedirs(place)
    write(os.path.join(place, "model.onnx"), case.model)
    graph = case.model.graph
    if not all(value.type.HasField("tensor_type") for value in [*graph.input, *graph.output]):
        continue
    inputs, outputs = case.data_sets[0]
    for kind, values, infos in ("input", inputs, graph.input), ("output", outputs, graph.output):
        for number, (value, info) in enumerate(zip(values, infos)):
            write(os.path.join(place, f"{kind}_{number}.pb"), tensor(value, info.name))
    with open(os.path.join(place, "tolerance"), "w") as file:
        file.write(f"{case.rtol} {case.atol}\n")
print(f"{len(cases)} node tests of onnx {onnx.__version__}")
