#!/usr/bin/env python3
"""Runs every model under ONNX Runtime and stores what it answers: goldens/<name>.npz and models.toml.

Inputs are not stored: input "x" of the model whose stored outputs are "name" is `fill("name/x", shape)`, see fill.py.
For each model it prints how far ONNX Runtime with all its rewrites is from itself with none: tolerances of the
tests must be larger. Models lie in .cache/models (scripts/setup-python.sh puts them there) and in the tree.

usage: .cache/venv/bin/python tests/models/make_goldens.py [NAME...]
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from fill import fill
from make_detector import make_detector
from make_random import NETWORKS, NEWER

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
HEADER = """\
# Written by make_goldens.py. One entry for each model that the tests run:
#   file     the network, from the root of the repository; what starts with .cache is made by scripts/setup-python.sh
#   golden   its outputs under ONNX Runtime: goldens/<golden>.npz, one array for each output
#   dims     values for its symbolic dimensions (-D)
#   inputs   names and shapes; their numbers are fill("<golden>/<input>", shape), see fill.rs
"""


def make_mlp() -> onnx.ModelProto:
    """64 -> 96 -> 48 -> 10 over a symbolic batch; each Gemm in another spelling."""
    def param(name, shape, bound):
        return numpy_helper.from_array(fill(f"mlp/{name}", shape) * np.float32(bound), name)

    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h1"], name="fc1", transB=1),
        helper.make_node("Relu", ["h1"], ["a1"], name="relu1"),
        helper.make_node("Gemm", ["a1", "w2", "b2"], ["h2"], name="fc2", alpha=0.5, beta=2.0),
        helper.make_node("Relu", ["h2"], ["a2"], name="relu2"),
        helper.make_node("Gemm", ["a2", "w3"], ["scores"], name="fc3"),
        helper.make_node("Softmax", ["scores"], ["probability"], name="softmax"),
    ]
    graph = helper.make_graph(
        nodes, "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
        [
            helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["batch", 10]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10]),
        ],
        [
            param("w1", (96, 64), 0.5), param("b1", (96,), 0.5),
            param("w2", (96, 48), 0.5), param("b2", (1, 48), 0.25),
            param("w3", (48, 10), 0.5),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="tests/models/make_goldens.py")
    onnx.checker.check_model(model, full_check=True)
    return model


def models():
    """(name, golden, file, dims, what a call gives to dimensions that are left open)"""
    for network in NETWORKS:
        yield f"light_{network}", f"light_{network}", f".cache/models/light_{network}.onnx", {}, {}
    for network in NETWORKS:
        name = f"random_{network}"
        yield name, name, f".cache/models/{name}.onnx", {}, {}
        if network in NEWER:
            newer = f"{name}_opset{NEWER[network]}"
            yield newer, name, f".cache/models/{newer}.onnx", {}, {}
    for batch in (1, 7):
        yield f"mlp_batch{batch}", f"mlp_batch{batch}", "tests/models/mlp.onnx", {"batch": batch}, {}
    for n, h, w in [(1, 64, 64), (2, 96, 64), (1, 8, 8), (3, 40, 72), (1, 160, 96)]:
        name = f"detector_{n}_{h}_{w}"
        yield name, name, "tests/models/detector.onnx", {}, {"n": n, "h": h, "w": w}
    yield "digits_batch3", "digits_batch3", "examples/digits/digits.onnx", {"batch": 3}, {}


def session(file, level):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = level
    return ort.InferenceSession(str(ROOT / file), options, providers=["CPUExecutionProvider"])


def main():
    only = sys.argv[1:]
    (HERE / "goldens").mkdir(exist_ok=True)
    onnx.save(make_mlp(), HERE / "mlp.onnx")
    onnx.save(make_detector(), HERE / "detector.onnx")
    entries = [HEADER]
    for name, golden, file, dims, open_dims in models():
        if not (ROOT / file).exists():
            sys.exit(f"{file} is missing: run scripts/setup-python.sh --models")
        runs = []
        for level in (ort.GraphOptimizationLevel.ORT_ENABLE_ALL, ort.GraphOptimizationLevel.ORT_DISABLE_ALL):
            s = session(file, level)
            given = {**dims, **open_dims}
            shapes = {i.name: [given.get(d, d) for d in i.shape] for i in s.get_inputs()}
            names = [o.name for o in s.get_outputs()]
            if not only or name in only:
                runs.append(s.run(None, {n: fill(f"{golden}/{n}", shape) for n, shape in shapes.items()}))
        if runs:
            far = max(np.abs(a - b).max(initial=0) for a, b in zip(*runs))
            spread = " ".join(f"{n} {o.shape} sd {o.std():.3g}" for n, o in zip(names, runs[0]))
            note = ""
            path = HERE / "goldens" / f"{golden}.npz"
            if name == golden:
                np.savez(path, **dict(zip(names, runs[0])))
            else:  # another spelling of a model whose outputs are stored
                stored = np.load(path)
                off = max(np.abs(stored[n] - o).max() for n, o in zip(names, runs[0]))
                note = f", {off:.1e} from {golden}"
                assert all(np.allclose(o, stored[n], 1e-3, 1e-4) for n, o in zip(names, runs[0])), (name, off)
            print(f"{name}: {spread}, {far:.1e} from itself unoptimized{note}", flush=True)
        lines = ["[[model]]", f'name = "{name}"', f'file = "{file}"', f'golden = "{golden}"']
        if dims:
            lines.append("dims = { " + ", ".join(f"{k} = {v}" for k, v in dims.items()) + " }")
        listed = ", ".join(f'{{ name = "{n}", shape = {shape} }}' for n, shape in shapes.items())
        lines.append(f"inputs = [{listed}]")
        entries.append("\n".join(lines) + "\n")
    (HERE / "models.toml").write_text("\n".join(entries))


if __name__ == "__main__":
    main()
