"""Exports models of torch, torchvision and transformers whose shapes are open, compiles each once, and compares five shapes.

Usage: open_shapes.py TENON FOLDER [NAME...]

Each model is written by both exporters of torch where they can, and compiled without `-D`, and its library runs for five shapes
beside ONNX Runtime: an encoder of text with a mask, decoders, a recurrent text model, a speech model whose sizes torch computes, an
image classifier that pads to its windows, and a detector with non-maximum suppression. Weights are made of a seed, so there are no
files to keep.
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
ALLOWED = 1e-3
# The older exporter does not know an operator of theirs, and prints the whole graph.
ONLY_NEWER = ["gpt2", "llama", "gpt2_of_one", "llama_of_one"]
TEXTS = [(2, 12), (1, 1), (3, 7), (1, 31), (4, 16)]
# An example of one text makes a model in which other numbers of texts do not go together, though its file says nothing of that.
ONE_TEXT = [(1, 12), (1, 1), (1, 7), (1, 31), (1, 16)]
SMALL = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


class Named(nn.Module):
    """A model of transformers, called by the names of its inputs, and its first result."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        return self.model(**dict(zip(self.names, values)))[0]


class Texts(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.cells = nn.Embedding(100, 16), nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 5)

    def forward(self, x):
        return self.head(self.cells(self.words(x))[0].max(1).values)


class Detector(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        found = self.model([x[0]])[0]
        return found["boxes"], found["scores"], found["labels"]


def tokens(batch, length):
    return torch.randint(3, 100, (batch, length))


def mask(batch, length):
    return (torch.arange(length) < max(1, length - length // 3)).long().expand(batch, length)


def models():
    """Names, models, the open axes of each input, and five times what each input is."""
    open_text = {0: "batch", 1: "length"}
    import transformers as t
    bert = t.BertModel(t.BertConfig(**SMALL, use_cache=False, attn_implementation="eager"))
    yield "bert", Named(bert, "input_ids", "attention_mask"), [open_text] * 2, [(tokens(*s), mask(*s)) for s in TEXTS]
    gpt2 = lambda layers: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=100, n_embd=32, n_layer=layers, n_head=2, use_cache=False))
    deep = lambda layers: {**SMALL, "num_hidden_layers": layers, "num_key_value_heads": 1, "use_cache": False}
    llama = lambda layers: t.LlamaForCausalLM(t.LlamaConfig(**deep(layers)))
    for name, decoder in ("gpt2", gpt2), ("llama", llama):
        yield name, Named(decoder(2), "input_ids"), [open_text], [(tokens(*s),) for s in TEXTS]
        yield f"{name}_of_one", Named(decoder(12), "input_ids"), [open_text], [(tokens(*s),) for s in ONE_TEXT]
    mobile = t.MobileBertModel(t.MobileBertConfig(**SMALL, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16))
    yield "mobilebert", Named(mobile, "input_ids"), [open_text], [(tokens(*s),) for s in TEXTS]
    yield "lstm", Texts(), [open_text], [(tokens(*s),) for s in TEXTS]
    speech = t.HubertModel(t.HubertConfig(
        conv_dim=(16,) * 7, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4))
    waves = [(1, 1600), (2, 3200), (1, 800), (3, 1601), (1, 5000)]
    yield "hubert", Named(speech, "input_values"), [open_text], [(torch.randn(*s),) for s in waves]
    from torchvision import models as vision
    images = [(1, 64, 64), (2, 64, 96), (3, 96, 64), (1, 70, 90), (1, 224, 160)]
    open_image = {0: "batch", 2: "height", 3: "width"}
    swin = vision.SwinTransformer([4, 4], 16, [1, 1, 1], [2, 2, 2], [7, 7], num_classes=10)
    yield "swin", swin, [open_image], [(torch.randn(b, 3, h, w),) for b, h, w in images]
    sides = [(128, 128), (128, 160), (96, 128), (200, 64), (320, 320)]
    ssd = vision.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=8)
    yield "ssdlite", Detector(ssd), [{2: "height", 3: "width"}], [(torch.rand(1, 3, *s),) for s in sides]


def settled(model, call):
    """The model with statistics of a call in its batch normalization, without which deep ones give their biases alone."""
    norms = [part for part in model.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    model.eval()
    for norm in norms:
        norm.momentum = None
        norm.train()
    if norms:
        with torch.no_grad():
            if isinstance(model, Detector):
                # Its last layers see one pixel of each image.
                model.model(list(torch.rand(4, 3, 320, 320)))
            else:
                model(*call)
    return model.eval()


def off(found, expected):
    """How far results are apart, as a part of the largest. Of detections each must have its like: their order hangs on last bits."""
    if [it.shape for it in found] != [it.shape for it in expected]:
        return f"shapes {[it.shape for it in found]} for {[it.shape for it in expected]}"
    if len(expected) == 3:
        row = lambda results: np.concatenate([results[0], 100 * results[1][:, None], 1000 * results[2][:, None]], 1)
        each = np.abs(row(found)[:, None] - row(expected)[None]).max(2)
        return float(max(each.min(0).max(initial=0), each.min(1).max(initial=0)) / max(1.0, np.abs(expected[0]).max(initial=0)))
    return max(float(np.abs(a - b).max() / max(1e-6, np.abs(b).max())) for a, b in zip(found, expected))


def exported(model, axes, call, names, path, is_newer):
    """Writes a model by the older exporter or the newer one; whether that can."""
    try:
        if not is_newer:
            torch.onnx.export(model, call, path, input_names=names, dynamic_axes=dict(zip(names, axes)), opset_version=17, dynamo=False)
        else:
            shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in each} for each in axes)
            shapes = (shapes,) if isinstance(model, Named) else shapes
            torch.onnx.export(model, call, path, input_names=names, dynamic_shapes=shapes, dynamo=True, verbose=False)
    except Exception as error:  # noqa: BLE001: an exporter fails in many ways
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        print(f"{os.path.basename(path)}: not written by torch: {reason[:160]}", flush=True)
        return False
    return True


def tried(tenon, name, model, axes, calls, path, is_newer):
    """How many results of a model are wrong, or nothing where torch does not write it; says each."""
    names = [f"x{number}" for number in range(len(axes))]
    if not exported(settled(model, calls[-1]), axes, calls[0], names, path, is_newer):
        return None
    library = path.removesuffix("onnx") + "so"
    done = subprocess.run([tenon, "compile", path, "-o", library], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip()[:600]}  WRONG", flush=True)
        return len(calls)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wrong = 0
    for call in calls:
        given = {name: value.numpy() for name, value in zip(names, call)}
        np.savez(path + ".in.npz", **given)
        run = [tenon, "run", library, "--inputs", path + ".in.npz", "--output", path + ".out.npz"]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        result = done.stderr.strip()
        if done.returncode == 0:
            with np.load(path + ".out.npz") as results:
                result = off([results[it.name] for it in session.get_outputs()], session.run(None, given))
        is_right = isinstance(result, float) and result <= ALLOWED
        wrong += not is_right
        text = f"{result:.1e}" if isinstance(result, float) else result[:600]
        print(f"{name} {[tuple(it.shape) for it in call]}: {text}{'' if is_right else '  WRONG'}", flush=True)
    return wrong


def main():
    tenon, folder, names = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    count, wrong = 0, 0
    try:
        for name, *model in models():
            hows = ["_newer"] if name in ONLY_NEWER else ["", "_newer"]
            for how in hows if not names or name in names else []:
                path = os.path.join(folder, f"{name}_open{how}.onnx")
                found = tried(tenon, name + how, *model, path, bool(how))
                count += found is not None
                wrong += found or 0
    except ImportError as error:
        print(f"{error.name} is missing; the models from it on are left out: pip install {error.name}")
    print(f"{count} files, five shapes each; {wrong} results are wrong or missing")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
