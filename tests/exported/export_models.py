"""Exports small models of torch, torchvision and transformers, and compares what Tenon makes of them with ONNX Runtime.

Usage: export_models.py TENON FOLDER [NAME...]

Each model is exported with its shapes as they are and with a batch of any size, and runs in f32, with products of bf16
(`--precision bf16`) and with weights of int8 (`--weights int8`). Models are made of a seed, so there are no files to keep.
What a missing package would bring is said and left out.
"""

import os
import subprocess
import sys
import warnings

import numpy as np

try:
    import onnxruntime
    import torch
    from torch import nn
except ImportError as error:
    sys.exit(f"{error.name} is missing, and nothing can be exported without it: pip install torch onnx onnxruntime")

warnings.filterwarnings("ignore")
# How far results may be off, as a part of the largest: of sums in another order, of 8 bits of mantissa, of 7 of a weight.
MODES = [("f32", [], 1e-3), ("bf16", ["--precision", "bf16"], 0.08), ("int8", ["--weights", "int8"], 0.08)]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cells, self.head = kind(8, 16, num_layers=2, batch_first=True, bidirectional=True), nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.inner = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
        self.up, self.head = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(11, 4, 1)

    def forward(self, x):
        y = torch.relu(self.inner(torch.relu(self.down(x))))
        return self.head(torch.cat([self.up(y), x], 1)).softmax(1)


class Upscale(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 8, 5, padding=2), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        fine = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return nn.functional.pixel_shuffle(self.last(torch.tanh(self.first(x))), 2) + fine


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Conv2d(3, 16, 8, 8), nn.LayerNorm(16)
        self.tokens, self.head = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)), nn.Linear(16, 10)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return self.head(x.mean(1))


class FromTokens(nn.Module):
    """A model of transformers, of tokens alone, and its first result."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(input_ids=tokens)[0]


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items, self.head = nn.Embedding(50, 8), nn.Embedding(70, 8), nn.Linear(24, 1)

    def forward(self, user, item):
        a, b = self.users(user), self.items(item)
        return torch.sigmoid(self.head(torch.cat([a, b, a * b], -1)))


def floats(*shape):
    return lambda: torch.randn(*shape)


def tokens(*shape, most=100):
    return lambda: torch.randint(0, most, shape)


def of_torch():
    convolutions = lambda conv, norm, pool: nn.Sequential(
        conv(3, 8, 3, padding=1), norm(8), nn.SiLU(), pool(2), conv(8, 8, 3, groups=8, dilation=2), nn.Hardswish(), nn.Flatten())
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    yield "mlp", nn.Sequential(nn.Linear(20, 32), nn.ELU(), nn.Linear(32, 32), nn.Mish(), nn.Linear(32, 4)), floats(2, 20)
    yield "conv1d", convolutions(nn.Conv1d, nn.BatchNorm1d, nn.MaxPool1d), floats(2, 3, 32)
    yield "conv2d", convolutions(nn.Conv2d, nn.BatchNorm2d, nn.AvgPool2d), floats(2, 3, 16, 20)
    yield "conv3d", convolutions(nn.Conv3d, nn.InstanceNorm3d, nn.MaxPool3d), floats(2, 3, 12, 12, 12)
    yield "lstm", Recurrent(nn.LSTM), floats(2, 7, 8)
    yield "gru", Recurrent(nn.GRU), floats(2, 7, 8)
    yield "encoder", nn.TransformerEncoder(layer, 2), floats(2, 9, 16)
    yield "unet", UNet(), floats(2, 3, 16, 16)
    yield "upscale", Upscale(), floats(2, 1, 9, 11)
    yield "mixer", Mixer(), floats(2, 3, 32, 32)
    yield "recommender", Recommender(), tokens(2, most=50), tokens(2, most=70)


def of_torchvision():
    from torchvision import models
    image = floats(2, 3, 64, 64)
    for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5",
                 "efficientnet_b0", "regnet_y_400mf"):
        yield name, getattr(models, name)(num_classes=10), image
    vit = models.VisionTransformer(64, 16, 2, 2, 32, 64, num_classes=10)
    # It begins as zeros, and so would all results be.
    nn.init.normal_(vit.heads.head.weight)
    yield "vit", vit, image
    yield "swin", models.SwinTransformer([4, 4], 16, [1, 1], [2, 2], [4, 4], num_classes=10), image


def of_transformers():
    import transformers as t
    small = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    own = {"use_cache": False, "return_dict": False, "attn_implementation": "eager"}
    of = lambda kind, **more: kind(**more, **own)
    texts = lambda name, model: (name, FromTokens(model), tokens(2, 12))
    yield texts("bert", t.BertModel(of(t.BertConfig, **small)))
    yield texts("distilbert", t.DistilBertModel(of(t.DistilBertConfig, vocab_size=100, dim=32, n_layers=2, n_heads=2, hidden_dim=64)))
    yield texts("albert", t.AlbertModel(of(t.AlbertConfig, embedding_size=16, **small)))
    yield texts("gpt2", t.GPT2Model(of(t.GPT2Config, vocab_size=100, n_embd=32, n_layer=2, n_head=2)))
    yield texts("llama", t.LlamaModel(of(t.LlamaConfig, **small)))


def settled(model, makes):
    """The model with statistics of such inputs in its batch normalization, without which deep ones give their biases alone."""
    norms = [part for part in model.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
        norm.train()
    if norms:
        with torch.no_grad():
            model(*(torch.cat([make() for _ in range(32)]) for make in makes))
    return model.eval()


def exported(path, model, inputs, is_dynamic):
    names = [f"x{number}" for number in range(len(inputs))]
    axes = {name: {0: "batch"} for name in names} if is_dynamic else None
    torch.onnx.export(model, inputs, path, input_names=names, dynamic_axes=axes, opset_version=17, dynamo=False)
    return {name: value.numpy() for name, value in zip(names, inputs)}


def off(tenon, path, given, options, is_plain=False):
    """How far what Tenon gives is from what ONNX Runtime does, without its optimizations where that is asked for, as a part of the
    largest; or what Tenon says."""
    of_session = onnxruntime.SessionOptions()
    if is_plain:
        of_session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, of_session, providers=["CPUExecutionProvider"])
    expected = session.run(None, given)
    inputs, found = path + ".in.npz", path + ".out.npz"
    np.savez(inputs, **given)
    done = subprocess.run([tenon, "run", path, "--inputs", inputs, "--output", found, *options], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return done.stderr.strip()
    with np.load(found) as results:
        results = [results[output.name] for output in session.get_outputs()]
    if [it.shape for it in results] != [it.shape for it in expected]:
        return f"shapes {[it.shape for it in results]} for {[it.shape for it in expected]}"
    return max(float(np.abs(a - b).max() / max(1e-6, np.abs(b).max())) for a, b in zip(results, expected))


def tried(tenon, folder, name, model, inputs):
    """Whether a model is right in all ways; says each way in which it is not."""
    wrong = 0
    for form in ("static", "dynamic"):
        path = os.path.join(folder, f"{name}_{form}.onnx")
        try:
            given = exported(path, model, tuple(inputs), form == "dynamic")
        except Exception as error:  # noqa: BLE001: what an exporter cannot do is said
            print(f"{name} {form}: not exported: {str(error).splitlines()[0][:120]}", flush=True)
            continue
        exact = 0.0
        for mode, options, allowed in MODES:
            result = off(tenon, path, given, options)
            # What a model makes of the roundings of f32, it makes of those that are 2^16 times as large.
            exact = result if mode == "f32" and isinstance(result, float) else exact
            allowed = allowed if mode == "f32" else max(allowed, 2.0**16 * exact)
            wrong += is_wrong(f"{name} {form} {mode}", result, allowed)
    return wrong


def is_wrong(what, result, allowed):
    """Whether a result is too far off, or there is none; says how far it is."""
    is_right = isinstance(result, float) and result <= allowed
    text = f"{result:.1e}" if isinstance(result, float) else result[:600]
    print(f"{what}: {text}{'' if is_right else f'  WRONG, {allowed:.1e} are allowed'}", flush=True)
    return not is_right


def try_each(tried, default=()):
    """Tries the models that the command line names, or these, or all; ends the program with whether any result is wrong."""
    tenon, folder, names = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:] or default
    os.makedirs(folder, exist_ok=True)
    models, wrong = 0, 0
    for source in (of_torch, of_torchvision, of_transformers):
        torch.manual_seed(1)
        try:
            for name, model, *inputs in source():
                if names and name not in names:
                    continue
                models += 1
                wrong += tried(tenon, folder, name, settled(model.eval(), inputs), [make() for make in inputs])
        except ImportError as error:
            print(f"{error.name} is missing; its models are left out: pip install {error.name}")
    print(f"{models} models; {wrong} results are wrong or missing")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    try_each(tried)
