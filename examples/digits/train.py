#!/usr/bin/env python3
"""Trains the network of the digits demo and writes digits.onnx and test_images.npz beside this file.

    image [batch,1,8,8] -> Conv 3x3, 16 -> Relu -> MaxPool 2 -> Conv 3x3, 32 -> Relu -> Flatten -> Gemm, 10 -> Softmax

The images are the 1,797 handwritten digits that scikit-learn carries. 360 are held out: the network never sees
them while it learns, and the demo runs on them. Training is plain numpy, takes seconds, and is seeded.

usage: scripts/setup-python.sh --train && .cache/venv/bin/python examples/digits/train.py
"""

import os
import pathlib

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # sums in one order: the same file on every run on one kind of processor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).parent
HELD_OUT = 360
EPOCHS = 40
BATCH = 32
RATE = 2e-3


class Conv:
    """A 3x3 convolution that keeps the size, as a matrix product over patches."""

    def __init__(self, rng, inputs, outputs):
        self.w = (rng.standard_normal((outputs, inputs, 3, 3)) * np.sqrt(2 / (9 * inputs))).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)
        self.params = [self.w, self.b]

    def forward(self, x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        # [n, h, w, c, 3, 3]
        patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)
        n, h, w = patches.shape[:3]
        self.patches = patches.reshape(n * h * w, -1)
        self.shape = x.shape
        y = self.patches @ self.w.reshape(len(self.w), -1).T + self.b
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, dy):
        n, c, h, w = self.shape
        dy = dy.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        dw = (dy.T @ self.patches).reshape(self.w.shape)
        dp = (dy @ self.w.reshape(len(self.w), -1)).reshape(n, h, w, c, 3, 3)
        dx = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                dx[:, :, i:i + h, j:j + w] += dp[..., i, j].transpose(0, 3, 1, 2)
        return dx[:, :, 1:-1, 1:-1], [dw, dy.sum(0)]


class Dense:
    def __init__(self, rng, inputs, outputs):
        self.w = (rng.standard_normal((outputs, inputs)) * np.sqrt(1 / inputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)
        self.params = [self.w, self.b]

    def forward(self, x):
        self.x = x
        return x @ self.w.T + self.b

    def backward(self, dy):
        return dy @ self.w, [dy.T @ self.x, dy.sum(0)]


class Relu:
    params = []

    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask, []


class MaxPool:
    """The largest of each 2x2 square."""

    params = []

    def forward(self, x):
        n, c, h, w = x.shape
        self.x = x.reshape(n, c, h // 2, 2, w // 2, 2)
        self.y = self.x.max((3, 5), keepdims=True)
        return self.y.reshape(n, c, h // 2, w // 2)

    def backward(self, dy):
        hit = self.x == self.y
        dx = hit * dy.reshape(self.y.shape) / hit.sum((3, 5), keepdims=True)
        n, c, h, _, w, _ = self.x.shape
        return dx.reshape(n, c, h * 2, w * 2).astype(np.float32), []


class Flatten:
    params = []

    def forward(self, x):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, dy):
        return dy.reshape(self.shape), []


def forward(layers, x):
    for layer in layers:
        x = layer.forward(x)
    return x


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def shifted(rng, x):
    """Each image moved by up to one pixel: a digit is the same digit next door."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty_like(x)
    for i, (dy, dx) in enumerate(rng.integers(0, 3, (len(x), 2))):
        out[i] = padded[i, :, dy:dy + 8, dx:dx + 8]
    return out


def train(rng, x, y):
    layers = [Conv(rng, 1, 16), Relu(), MaxPool(), Conv(rng, 16, 32), Relu(), Flatten(), Dense(rng, 512, 10)]
    params = [p for layer in layers for p in layer.params]
    mean, var = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    step = 0
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = rng.permutation(len(x))
        loss = 0.0
        for start in range(0, len(x), BATCH):
            pick = order[start:start + BATCH]
            p = softmax(forward(layers, shifted(rng, x[pick])))
            loss -= np.log(p[np.arange(len(pick)), y[pick]] + 1e-9).sum()
            p[np.arange(len(pick)), y[pick]] -= 1
            dy, grads = p / len(pick), []
            for layer in reversed(layers):
                dy, g = layer.backward(dy)
                grads = g + grads
            step += 1
            for q, g, m, v in zip(params, grads, mean, var, strict=True):  # Adam
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                q -= rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss / len(x):.4f}")
    return layers


def to_onnx(layers):
    names = ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc.weight", "fc.bias"]
    params = [p for layer in layers for p in layer.params]
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], name="conv1", **conv),
        helper.make_node("Relu", ["conv1"], ["relu1"], name="relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], name="pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["pool1", "conv2.weight", "conv2.bias"], ["conv2"], name="conv2", **conv),
        helper.make_node("Relu", ["conv2"], ["relu2"], name="relu2"),
        helper.make_node("Flatten", ["relu2"], ["flat"], name="flat", axis=1),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["scores"], name="fc", transB=1),
        helper.make_node("Softmax", ["scores"], ["probability"], name="softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(p, n) for n, p in zip(names, params, strict=True)],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="examples/digits/train.py"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    rng = np.random.default_rng(2024)
    digits = load_digits()
    x = (digits.images[:, None] / 16).astype(np.float32)
    y = digits.target.astype(np.int64)
    order = rng.permutation(len(x))
    test, rest = order[:HELD_OUT], order[HELD_OUT:]
    layers = train(rng, x[rest], y[rest])
    right = (forward(layers, x[test]).argmax(1) == y[test]).sum()
    print(f"{right} of {len(test)} held-out images right: {right / len(test):.1%}")
    onnx.save(to_onnx(layers), HERE / "digits.onnx")
    np.savez(HERE / "test_images.npz", image=x[test], label=y[test])


if __name__ == "__main__":
    main()
