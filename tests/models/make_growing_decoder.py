"""Makes growing_decoder.onnx, a decoder whose caches become longer by Concat, as exporters write it for `past_key_values`, and the
tokens that ONNX Runtime generates with it.

    pip install onnx onnxruntime numpy
    python tests/models/make_growing_decoder.py

Keys and values of the tokens so far are inputs of as many rows; a call gives them back with its own tokens behind. So the prompt, which
has no past, and each token behind it go through one graph. Weights are random, and small. The tokens are those with the largest logits,
and of no step are two of them close.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
WORDS, WIDTH, HEADS, LAYERS = 61, 32, 2, 2
EACH = WIDTH // HEADS
PROMPT = [7, 42, 3, 19, 55]
TOKENS = 200


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.names = [], [], {}
        self.random = np.random.default_rng(11)

    def call(self, op, *inputs, name=None, **attrs):
        at = self.names[op] = self.names.get(op, 0) + 1
        name = name or f"{op.lower()}_{at}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op}_{at}", **attrs))
        return name

    def constant(self, name, array):
        if all(weight.name != name for weight in self.weights):
            self.weights.append(numpy_helper.from_array(array, name))
        return name

    def number(self, name, *values):
        return self.constant(name, np.array(values, np.int64))

    def weight(self, name, *shape):
        scale = 1 / np.sqrt(shape[0])
        return self.constant(name, (self.random.standard_normal(shape) * scale).astype(np.float32))


def heads(g, x):
    shape = g.number("heads", 1, -1, HEADS, EACH)
    return g.call("Transpose", g.call("Reshape", x, shape), perm=[0, 2, 1, 3])


def norm(g, x, name):
    scale = g.constant(f"{name}.scale", np.ones(WIDTH, np.float32))
    return g.call("LayerNormalization", x, scale, g.weight(f"{name}.bias", WIDTH), axis=-1)


def layer(g, x, at):
    past = {kind: f"past_key_values.{at}.{kind}" for kind in ("key", "value")}
    y = norm(g, x, f"{at}.before")
    q, k, v = (heads(g, g.call("MatMul", y, g.weight(f"{at}.{kind}", WIDTH, WIDTH))) for kind in "qkv")
    present = {
        kind: g.call("Concat", past[kind], new, axis=2, name=f"present.{at}.{kind}")
        for kind, new in (("key", k), ("value", v))
    }
    scores = g.call("MatMul", q, g.call("Transpose", present["key"], perm=[0, 1, 3, 2]))
    scores = g.call("Mul", scores, g.constant("scale", np.float32(EACH**-0.5)))
    length = g.call("Gather", g.call("Shape", present["key"]), g.constant("two", np.int64(2)))
    places = g.call("Range", g.constant("zero", np.int64(0)), length, g.constant("one", np.int64(1)))
    mine = g.call("Unsqueeze", "position_ids", g.number("axes", 1, 3))
    is_later = g.call("Greater", places, mine)
    scores = g.call("Where", is_later, g.constant("least", np.float32(-1e9)), scores)
    y = g.call("MatMul", g.call("Softmax", scores, axis=-1), present["value"])
    y = g.call("Reshape", g.call("Transpose", y, perm=[0, 2, 1, 3]), g.number("rows", 1, -1, WIDTH))
    x = g.call("Add", x, g.call("MatMul", y, g.weight(f"{at}.out", WIDTH, WIDTH)))
    y = g.call("MatMul", norm(g, x, f"{at}.between"), g.weight(f"{at}.up", WIDTH, 2 * WIDTH))
    y = g.call("MatMul", g.call("Tanh", y), g.weight(f"{at}.down", 2 * WIDTH, WIDTH))
    return g.call("Add", x, y)


def model():
    g = Graph()
    words = g.call("Gather", g.weight("words", WORDS, WIDTH), "input_ids")
    x = g.call("Add", words, g.call("Gather", g.weight("places", 256, WIDTH), "position_ids"))
    for at in range(LAYERS):
        x = layer(g, x, at)
    last = g.call("Gather", x, g.constant("last", np.int64(-1)), axis=1)
    g.call("MatMul", norm(g, last, "end"), g.weight("logits.weight", WIDTH, WORDS), name="logits")
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.INT64, [1, "tokens"]) for name in ("input_ids", "position_ids")]
    outputs = [info("logits", TensorProto.FLOAT, [1, WORDS])]
    for at in range(LAYERS):
        for kind in ("key", "value"):
            shape = [1, HEADS, "past", EACH]
            inputs.append(info(f"past_key_values.{at}.{kind}", TensorProto.FLOAT, shape))
            shape = [1, HEADS, "total", EACH]
            outputs.append(info(f"present.{at}.{kind}", TensorProto.FLOAT, shape))
    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, g.weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, HERE / "growing_decoder.onnx")


def generate():
    session = onnxruntime.InferenceSession(HERE / "growing_decoder.onnx")
    names = [it.name for it in session.get_inputs()][2:]
    caches = {name: np.zeros((1, HEADS, 0, EACH), np.float32) for name in names}
    tokens, given, done, least = [], PROMPT, 0, np.inf
    while len(tokens) < TOKENS:
        places = np.arange(done, done + len(given), dtype=np.int64)
        inputs = {"input_ids": np.array([given], np.int64), "position_ids": places[None]}
        logits, *new = session.run(None, inputs | caches)
        caches, done = dict(zip(names, new)), done + len(given)
        second, first = np.sort(logits[0])[-2:]
        least = min(least, first - second)
        given = [int(logits[0].argmax())]
        tokens += given
    assert least > 1e-4, least
    assert len(set(tokens)) > 8, tokens
    return tokens


model()
made = generate()
(HERE / "goldens" / "growing_decoder.json").write_text(
    json.dumps({"prompt": PROMPT, "tokens": made}) + "\n"
)
print(made)
