"""Writes what all nodes of a model give in ONNX Runtime: MODEL GIVEN.npz MADE.npz."""

import sys

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    sys.exit(f"{error}: pip install numpy onnx onnxruntime")

path, given, made = sys.argv[1:]
model = onnx.load(path)
outputs = [output.name for output in model.graph.output]
of_node = {
    name: f"{number}:{node.name or next(filter(None, node.output), '')}"
    for number, node in enumerate(model.graph.node)
    for name in node.output
    if name
}
model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in of_node if name not in outputs)
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.log_severity_level = 3
if model.ByteSize() < 1 << 30:
    source = model.SerializeToString()
else:
    sys.exit("a model of more than a gigabyte")
session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
inputs = {input.name for input in session.get_inputs()}
feeds = {name: array for name, array in np.load(given).items() if name in inputs}
results = dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds)))
arrays = {f"out:{name}": results[name] for name in outputs}
for place, name in enumerate(of_node):
    if isinstance(results[name], np.ndarray) and results[name].dtype != object:
        number, node = of_node[name].split(":", 1)
        arrays[f"{int(number) * 1000 + place % 1000}:{node}"] = results[name]
np.savez(made, **arrays)
