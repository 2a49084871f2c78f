"""Makes decoder.onnx, a decoder with a cache as PyTorch exports it, and the tokens that ONNX Runtime generates with it.

    pip install torch onnx onnxscript onnxruntime numpy
    python tests/models/make_decoder.py

The keys and values of each layer are a tensor for as many tokens as there can be, into which a call puts those of its own tokens; so
the prompt and each token behind it go through one graph. Weights are random, and small. The tokens are those with the largest
logits, and of no step are two of them close.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

HERE = Path(__file__).parent
WORDS, WIDTH, HEADS, LAYERS, MOST = 61, 32, 2, 2, 224
# Keys lie as the product with queries reads them, so none is made of them for it.
SHAPES = {"keys": (1, HEADS, WIDTH // HEADS, MOST), "values": (1, HEADS, MOST, WIDTH // HEADS)}
PROMPT = [7, 42, 3, 19, 55]
TOKENS = 200


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.out = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, places, keys, values):
        def heads(y):
            return y.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2)

        y = self.before(x)
        q, k, v = (heads(each(y)) for each in (self.q, self.k, self.v))
        k = k.transpose(2, 3)
        keys = keys.scatter(3, places.view(1, 1, 1, -1).expand_as(k), k)
        values = values.scatter(2, places.view(1, 1, -1, 1).expand_as(v), v)
        scores = q @ keys / (WIDTH // HEADS) ** 0.5
        is_later = torch.arange(MOST).view(1, 1, 1, -1) > places.view(1, 1, -1, 1)
        y = scores.masked_fill(is_later, -1e9).softmax(-1) @ values
        x = x + self.out(y.transpose(1, 2).reshape(1, -1, WIDTH))
        return x + self.down(torch.nn.functional.gelu(self.up(self.between(x)))), keys, values


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(MOST, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last, self.logits = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens, places, keys0, values0, keys1, values1):
        caches = (keys0, values0, keys1, values1)
        x, new = self.words(tokens) + self.places(places), []
        for layer, keys, values in zip(self.layers, caches[::2], caches[1::2]):
            x, keys, values = layer(x, places, keys, values)
            new += [keys, values]
        return self.logits(self.last(x[:, -1])), *new


def export():
    torch.manual_seed(5)
    model = Decoder().eval()
    shapes = {f"{kind}{layer}": shape for layer in range(LAYERS) for kind, shape in SHAPES.items()}
    caches = [torch.zeros(shape) for shape in shapes.values()]
    names = list(shapes)
    n = torch.export.Dim("n", min=1, max=MOST)
    program = torch.onnx.export(
        model,
        (torch.tensor([PROMPT]), torch.arange(len(PROMPT)), *caches),
        input_names=["tokens", "places", *names],
        output_names=["logits", *(f"new_{name}" for name in names)],
        dynamic_shapes=({1: n}, {0: n}, *(None for _ in caches)),
        dynamo=True,
        verbose=False,
    )
    model = program.model_proto
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.value_info[:]
    del model.metadata_props[:]
    onnx.save(model, HERE / "decoder.onnx")
    return shapes


def generate(shapes):
    session = onnxruntime.InferenceSession(HERE / "decoder.onnx")
    caches = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    tokens, given, done, least = [], PROMPT, 0, np.inf
    while len(tokens) < TOKENS:
        inputs = {
            "tokens": np.array([given], np.int64),
            "places": np.arange(done, done + len(given), dtype=np.int64),
        }
        logits, *new = session.run(None, inputs | caches)
        caches, done = dict(zip(shapes, new)), done + len(given)
        second, first = np.sort(logits[0])[-2:]
        least = min(least, first - second)
        given = [int(logits[0].argmax())]
        tokens += given
    assert least > 1e-4, least
    assert len(set(tokens)) > 8, tokens
    return tokens


made = generate(export())
(HERE / "goldens" / "decoder.json").write_text(json.dumps({"prompt": PROMPT, "tokens": made}) + "\n")
print(made)
