"""Writes the node tests of the onnx wheel as files: NAME/model.onnx, NAME/input_0.pb, NAME/output_0.pb, ...

Usage: make_suite.py FOLDER

The wheel has them as Python code. A sequence of tensors of one shape is written as one tensor with an element in each
row, and the file `sequences` names such outputs by their numbers. An optional tensor is written as one, and beside it
as input_N_is_there.pb whether it is there; an optional sequence likewise, and one as an output is two. The tensors of a
sequence whose shapes differ, and which is the only output, are outputs. Tests with other sequences, with maps and with other
optional values are written without their data, because there is nothing that could be done with it.
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


def as_tensor(value, declared):
    """What a value of this type is for a compiled model; None where it is nothing."""
    kind = declared.WhichOneof("value")
    if kind == "tensor_type" and not isinstance(value, list):
        return value
    if kind == "sequence_type" and isinstance(value, list) and value:
        arrays = [np.asarray(item) for item in value]
        if all(array.shape == arrays[0].shape and array.dtype == arrays[0].dtype for array in arrays):
            return np.stack(arrays)
    if kind == "optional_type":
        held = declared.optional_type.elem_type
        return nothing(held) if value is None else as_tensor(value, held)
    return None


def nothing(declared):
    """What stands for a value of this type that is not there; None where no shape is declared."""
    rows = declared.HasField("sequence_type")
    tensor = declared.sequence_type.elem_type.tensor_type if rows else declared.tensor_type
    if not tensor.HasField("shape"):
        return None
    shape = [dim.dim_value for dim in tensor.shape.dim]
    return np.zeros([0] * rows + shape, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def parts(kind, info, value):
    """The tensors that a value is."""
    made = as_tensor(value, info.type)
    if made is None and kind == "output" and info.type.HasField("sequence_type") and isinstance(value, list):
        return [np.asarray(item) for item in value]
    if kind == "output" and info.type.HasField("optional_type"):
        return [made, np.array(value is not None)]
    return [made]


folder = sys.argv[1]
cases = collect_testcases(None)
for case in cases:
    place = os.path.join(folder, case.name)
    os.makedirs(place)
    write(os.path.join(place, "model.onnx"), case.model)
    graph = case.model.graph
    inputs, outputs = case.data_sets[0]
    data = [("input", graph.input, inputs), ("output", graph.output, outputs)]
    data = [
        (kind, info, value, parts(kind, info, value))
        for kind, infos, values in data
        for info, value in zip(infos, values)
    ]
    # What is expected of several elements is told by their number, so nothing else may stand beside them.
    several = len(outputs) > 1 and any(len(made) > 1 for kind, *_, made in data if kind == "output")
    if several or any(part is None for *_, made in data for part in made):
        continue
    sequences, numbers = [], {"input": 0, "output": 0}
    for kind, info, value, made in data:
        for part in made:
            number = numbers[kind]
            numbers[kind] += 1
            write(os.path.join(place, f"{kind}_{number}.pb"), tensor(part, info.name))
        if kind == "input" and info.type.HasField("optional_type"):
            is_there = tensor(np.array(value is not None), f"{info.name}_is_there")
            write(os.path.join(place, f"input_{number}_is_there.pb"), is_there)
        if kind == "output" and info.type.HasField("sequence_type") and len(made) == 1:
            sequences.append(number)
    if sequences:
        with open(os.path.join(place, "sequences"), "w") as file:
            file.write("".join(f"{number}\n" for number in sequences))
    with open(os.path.join(place, "tolerance"), "w") as file:
        file.write(f"{case.rtol} {case.atol}\n")
print(f"{len(cases)} node tests of onnx {onnx.__version__}")
