#!/usr/bin/env python3
"""Compares `torch.compile(model, backend="tenon")` with torch's eager mode: one line for each model.

usage: python benches/torch_models.py [-t THREADS] [-r ROUNDS] [NAME...]

The models come from torchvision and transformers, with random weights, and run in inference mode on THREADS threads. Both take turns for
ROUNDS rounds, and the least time counts. The error is the largest difference, as a part of the largest element. What is left to
torch is told behind the line. Needs the packages tenon, torch, torchvision and transformers.
"""

import argparse
import time
import warnings

import torch
import torchvision
import transformers

import tenon
import tenon.torch

IMAGES = """alexnet convnext_tiny densenet121 efficientnet_b0 googlenet mnasnet1_0 mobilenet_v2 mobilenet_v3_large
    mobilenet_v3_small regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1 swin_t vgg11 vit_b_16""".split()
TEXTS = {
    "bert": ("Bert", "BertModel", {"num_hidden_layers": 4}),
    "distilbert": ("DistilBert", "DistilBertModel", {"n_layers": 3}),
    "gpt2": ("GPT2", "GPT2Model", {"n_layer": 4, "use_cache": False}),
    "llama": ("Llama", "LlamaModel", {
        "num_hidden_layers": 2, "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8,
        "num_key_value_heads": 4, "use_cache": False,
    }),
    "t5": ("T5", "T5EncoderModel", {"num_layers": 3}),
}


def model_of(name):
    """A model and its inputs."""
    if name in TEXTS:
        family, kind, config = TEXTS[name]
        config = getattr(transformers, f"{family}Config")(vocab_size=1000, **config)
        return getattr(transformers, kind)(config), (torch.randint(0, 1000, (1, 64)),)
    model = getattr(torchvision.models, name)(weights=None)
    for parameter in model.parameters():
        # Some heads begin with zeros, which would say nothing.
        if parameter.abs().max() == 0:
            torch.nn.init.normal_(parameter, std=0.02)
    return model, (torch.randn(1, 3, 224, 224),)


def tensor_of(result):
    return result if isinstance(result, torch.Tensor) else result[0]


def seconds(run, args):
    start = time.perf_counter()
    run(*args)
    return time.perf_counter() - start


def compare(name, threads, rounds):
    torch._dynamo.reset()
    model, args = model_of(name)
    model.eval()
    with torch.no_grad(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = torch.compile(model, backend=tenon.torch.backend, options={"threads": threads})
        compile_s = seconds(made, args)
        found, expected = tensor_of(made(*args)), tensor_of(model(*args))
        error = ((found - expected).abs().max() / expected.abs().max()).item()
        turns = [(seconds(model, args), seconds(made, args)) for _ in range(rounds)]
    eager, own = (min(turn[at] for turn in turns) * 1e3 for at in (0, 1))
    left = [str(each.message) for each in told if issubclass(each.category, tenon.TenonWarning)]
    print(f"{name:20} {eager:10.2f} {own:10.2f} {own / eager:8.2f} {error:10.1e} {compile_s:9.1f}  {'; '.join(left)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("names", nargs="*", default=[*IMAGES, *TEXTS])
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    print(f"{'model':20} {'eager_ms':>10} {'tenon_ms':>10} {'ratio':>8} {'error':>10} {'compile_s':>9}")
    for name in given.names:
        compare(name, given.threads, given.rounds)


if __name__ == "__main__":
    main()
