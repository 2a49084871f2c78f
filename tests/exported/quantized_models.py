"""Quantizes the exported models of export_models.py by ONNX Runtime's tools, and compares what Tenon makes of them with it.

Usage: quantized_models.py TENON FOLDER [NAME...]

Each model is exported with a batch of any size, and becomes one of bytes (dynamic, static as QDQ and as operators on bytes), of weights
of four bits, and one of f16 with inputs and outputs of f32. A rounding that differs in one bit may move a number to the next step of
its scale; so results may be as far off as ONNX Runtime's are from its own for inputs that are other in their last bits. Optimizations of
ONNX Runtime would compute on bytes what the model says of numbers between; it runs without them.
"""

import logging
import os

import numpy as np
import onnx
import onnxruntime
from export_models import exported, is_wrong, off, try_each
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16

logging.disable(logging.WARNING)
NAMES = ("mlp", "conv2d", "lstm", "gru", "encoder", "unet", "mixer", "resnet18", "mobilenet_v3_small", "bert", "distilbert")


class Given(CalibrationDataReader):
    """What scales are taken from: the inputs, once."""

    def __init__(self, given):
        self.left = [given]

    def get_next(self):
        return self.left.pop() if self.left else None


def static(form, **options):
    def quantize(source, target, given):
        quantize_static(source, target, Given(given), quant_format=form, activation_type=QuantType.QUInt8, **options)

    return quantize


def dynamic(source, target, _):
    quantize_dynamic(source, target, per_channel=True)


def four_bits(source, target, _):
    quantizer = MatMulNBitsQuantizer(onnx.load(source), bits=4, block_size=16, is_symmetric=False,
                                     op_types_to_quantize=("MatMul", "Gather"))
    quantizer.process()
    quantizer.model.save_model_to_file(target)


def half(source, target, _):
    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True, disable_shape_infer=True), target)


# How far results may be off at least: a step of a scale, of the 15 bits of four, of the mantissa of f16.
WAYS = {"dynamic": (dynamic, 0.02), "qdq": (static(QuantFormat.QDQ, per_channel=True, weight_type=QuantType.QInt8), 0.02),
        "bytes": (static(QuantFormat.QOperator, weight_type=QuantType.QUInt8), 0.02), "4bits": (four_bits, 1e-3), "f16": (half, 0.05)}


def by_chance(path, given):
    """How far ONNX Runtime's results are from those of inputs that are other in their last bits."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    near = {name: value * value.dtype.type(1 + 6e-7) if value.dtype.kind == "f" else value for name, value in given.items()}
    pairs = zip(session.run(None, given), session.run(None, near))
    return max(float(np.abs(a - b).max() / max(1e-6, np.abs(a).max())) for a, b in pairs)


def tried(tenon, folder, name, model, inputs):
    """In how many ways a model is wrong; says each."""
    path, wrong = os.path.join(folder, f"{name}_to_quantize.onnx"), 0
    try:
        given = exported(path, model, tuple(inputs), True)
    except Exception as error:  # noqa: BLE001: what an exporter cannot do is said
        print(f"{name}: not exported: {str(error).splitlines()[0][:120]}", flush=True)
        return 0
    for way, (quantize, allowed) in WAYS.items():
        target = os.path.join(folder, f"{name}_{way}.onnx")
        try:
            quantize(path, target, given)
            allowed = max(allowed, 3 * by_chance(target, given))
        except Exception as error:  # noqa: BLE001: what a tool cannot do is said
            print(f"{name} {way}: not made: {str(error).splitlines()[0][:120]}", flush=True)
            continue
        result = off(tenon, target, given, [], is_plain=True)
        wrong += is_wrong(f"{name} {way}", result, allowed)
    return wrong


if __name__ == "__main__":
    try_each(tried, NAMES)
