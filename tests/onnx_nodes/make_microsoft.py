"""Writes models of one operator of `com.microsoft`, with what ONNX Runtime makes of them, in the form of make_suite.py.

Usage: make_microsoft.py FOLDER
"""

import os
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
RNG = np.random.default_rng(0)


def real(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def whole(low, high, *shape, dtype=np.int64):
    return RNG.integers(low, high, shape).astype(dtype)


def bytes_of(*shape):
    return whole(0, 256, *shape, dtype=np.uint8)


def signed(*shape):
    return whole(-128, 128, *shape, dtype=np.int8)


def small(*shape):
    # Weights that bytes are multiplied with: of 7 bits, since ONNX Runtime's sums of two products saturate in 16 bits where a
    # processor has AVX2 and no instruction for dot products.
    return signed(*shape) // 2


class Const:
    """An input that is a weight of the model."""

    def __init__(self, value):
        self.value = np.asarray(value)


def f32(value):
    return Const(np.float32(value))


def u8(value):
    return Const(np.uint8(value))


def i8(value):
    return Const(np.int8(value))


def tables(length, half):
    angles = np.outer(np.arange(length), 1.0 / 10.0 ** np.arange(half)).astype(np.float32)
    return Const(np.cos(angles)), Const(np.sin(angles))


def cases():
    """Name, operator, inputs, attributes, and how many outputs."""
    x = real(2, 3, 8)
    yield "gelu", "Gelu", [x], {}, 1
    yield "bias_gelu", "BiasGelu", [x, Const(real(8))], {}, 1
    yield "fast_gelu", "FastGelu", [x], {}, 1
    yield "fast_gelu_bias", "FastGelu", [x, real(8)], {}, 1
    yield "quick_gelu", "QuickGelu", [x], {}, 1
    yield "quick_gelu_alpha", "QuickGelu", [x], {"alpha": 1.0}, 1

    # As quantizers write it that say no version of the domain.
    yield "gelu_untold", "Gelu", [x], {"untold": True}, 1

    a, b = real(2, 3, 5), real(2, 5, 4)
    yield "fused_matmul", "FusedMatMul", [a, b], {"alpha": 0.5}, 1
    yield "fused_matmul_b", "FusedMatMul", [a, real(2, 4, 5)], {"transB": 1}, 1
    yield "fused_matmul_both", "FusedMatMul", [real(5, 3), real(4, 5)], {"transA": 1, "transB": 1, "alpha": 2.0}, 1
    for activation in "Relu", "Tanh", "Sigmoid", "LeakyRelu":
        attrs = {"activation": activation, "alpha": 0.5, "beta": 2.0, "transB": 1}
        if activation == "LeakyRelu":
            attrs["activation_alpha"] = 0.1
        yield f"fused_gemm_{activation.lower()}", "FusedGemm", [real(3, 5), Const(real(4, 5)), real(4)], attrs, 1

    gamma, beta = Const(real(8, low=0.5)), Const(real(8))
    yield "skip_layer_norm", "SkipLayerNormalization", [x, real(2, 3, 8), gamma, beta], {"epsilon": 1e-5}, 1
    yield "skip_layer_norm_bias", "SkipLayerNormalization", [x, real(2, 3, 8), gamma, beta, Const(real(8))], {}, 1
    yield "skip_layer_norm_sum", "SkipLayerNormalization", [x, real(2, 3, 8), gamma, beta], {}, 4
    yield "skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, real(2, 3, 8), gamma], {"epsilon": 1e-6}, 1
    yield "skip_rms_norm_sum", "SkipSimplifiedLayerNormalization", [x, real(2, 3, 8), gamma, Const(real(8))], {}, 4

    ids = whole(0, 10, 2, 5, dtype=np.int32)
    words, places, parts = Const(real(10, 8)), Const(real(6, 8)), Const(real(2, 8))
    segments = whole(0, 2, 2, 5, dtype=np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    # As its optimizer writes it into models of older opsets of the standard.
    yield "layer_norm_12", "LayerNormalization", [x, gamma, beta], {"axis": -1, "epsilon": 1e-6, "standard": 12}, 1
    embed = "EmbedLayerNormalization"
    yield "embed", embed, [ids, segments, words, places, parts, gamma, beta], {}, 2
    yield "embed_no_segments", embed, [ids, None, words, places, None, gamma, beta], {}, 2
    yield "embed_mask", embed, [ids, segments, words, places, parts, gamma, beta, mask], {"mask_index_type": 1}, 2

    hidden = real(2, 5, 8)
    weights, bias = Const(real(8, 24)), Const(real(24))
    yield "attention", "Attention", [hidden, weights, bias], {"num_heads": 2}, 1
    yield "attention_causal", "Attention", [hidden, weights, bias], {"num_heads": 2, "unidirectional": 1}, 1
    yield "attention_lengths", "Attention", [hidden, weights, bias, np.array([3, 5], np.int32)], {"num_heads": 2}, 1
    yield "attention_mask", "Attention", [hidden, weights, bias, mask], {"num_heads": 2}, 1
    both = np.array([3, 5, 1, 0], np.int32)
    yield "attention_ends_begins", "Attention", [hidden, weights, bias, both], {"num_heads": 2}, 1
    yield "attention_filter", "Attention", [hidden, weights, bias, mask], {"num_heads": 2, "mask_filter_value": -1.5}, 1
    yield "attention_filter_unused", "Attention", [hidden, weights, bias], {"num_heads": 2, "mask_filter_value": -1.5}, 1
    yield "attention_scale", "Attention", [hidden, weights, bias], {"num_heads": 4, "scale": 0.3}, 1
    past = real(2, 2, 2, 3, 4)
    yield "attention_past", "Attention", [hidden, weights, bias, None, past], {"num_heads": 2, "unidirectional": 1}, 2
    yield "attention_added", "Attention", [hidden, weights, bias, None, None, real(2, 2, 5, 5)], {"num_heads": 2}, 1

    query, key, value = real(2, 4, 8), real(2, 6, 8), real(2, 6, 8)
    mha = "MultiHeadAttention"
    yield "mha", mha, [query, key, value], {"num_heads": 2}, 1
    yield "mha_bias", mha, [query, key, value, Const(real(24))], {"num_heads": 2}, 1
    padding = np.array([[1, 1, 1, 1, 0, 0], [1] * 6], np.int32)
    yield "mha_padding", mha, [query, key, value, None, padding], {"num_heads": 2}, 1
    yield "mha_added", mha, [query, key, value, None, None, real(1, 2, 4, 6)], {"num_heads": 2, "scale": 0.2}, 1
    own = real(2, 4, 8)
    yield "mha_causal", mha, [own, real(2, 4, 8), real(2, 4, 8)], {"num_heads": 2, "unidirectional": 1}, 1
    yield "mha_past", mha, [own, real(2, 4, 8), real(2, 4, 8), None, None, None, real(2, 2, 3, 4), real(2, 2, 3, 4)], {
        "num_heads": 2
    }, 3

    cos, sin = tables(16, 4)
    rotary = "RotaryEmbedding"
    yield "rotary", rotary, [real(2, 3, 16), whole(0, 16, 2, 3), cos, sin], {}, 1
    yield "rotary_offset", rotary, [real(2, 3, 16), np.array([4]), cos, sin], {}, 1
    yield "rotary_interleaved", rotary, [real(2, 2, 3, 8), whole(0, 16, 2, 3), cos, sin], {"interleaved": 1}, 1
    yield "rotary_part", rotary, [real(1, 3, 24), whole(0, 16, 1, 3), cos, sin], {
        "num_heads": 2,
        "rotary_embedding_dim": 8,
    }, 1

    def grouped(sequence, past, **attrs):
        last = np.full(1, past + sequence - 1, np.int32)
        total = Const(np.array(past + sequence, np.int32))
        kept = [real(1, 2, past, 16), real(1, 2, past, 16)] if past else [None, None]
        inputs = [real(1, sequence, 64), real(1, sequence, 32), real(1, sequence, 32), *kept, last, total]
        return inputs, {"num_heads": 4, "kv_num_heads": 2, **attrs}

    gqa = "GroupQueryAttention"
    inputs, attrs = grouped(5, 0)
    yield "grouped_prompt", gqa, inputs, attrs, 3
    inputs, attrs = grouped(5, 0, do_rotary=1)
    yield "grouped_rotary", gqa, [*inputs, *tables(16, 8)], attrs, 3
    inputs, attrs = grouped(1, 4, do_rotary=1)
    yield "grouped_token", gqa, [*inputs, *tables(16, 8)], attrs, 3
    inputs, attrs = grouped(1, 4, scale=0.4, softcap=3.0)
    yield "grouped_softcap", gqa, inputs, attrs, 3
    inputs, attrs = grouped(6, 0, local_window_size=3)
    yield "grouped_window", gqa, inputs, attrs, 3
    inputs, attrs = grouped(4, 0)
    packed = np.concatenate(inputs[:3], axis=2)
    yield "grouped_packed", gqa, [packed, None, None, *inputs[3:]], attrs, 3

    for bits, block in (4, 16), (4, 32), (8, 16), (2, 16):
        rows, columns = 6, 40
        blocks = -(-columns // block)
        packed = Const(bytes_of(rows, blocks, block * bits // 8))
        scales = Const(real(rows, blocks, low=0.01, high=0.1))
        attrs = {"K": columns, "N": rows, "bits": bits, "block_size": block}
        name = f"n_bits_{bits}_{block}"
        yield name, "MatMulNBits", [real(2, 3, columns), packed, scales], attrs, 1
        zero = Const(bytes_of(rows, -(-blocks * bits // 8)))
        yield f"{name}_zero", "MatMulNBits", [real(3, columns), packed, scales, zero], attrs, 1
    yield "n_bits_bias", "MatMulNBits", [
        real(3, 32),
        Const(bytes_of(6, 2, 8)),
        Const(real(6, 2, low=0.01, high=0.1)),
        None,
        None,
        Const(real(6)),
    ], {"K": 32, "N": 6, "bits": 4, "block_size": 16}, 1

    a, b = bytes_of(3, 4), bytes_of(3, 4)
    scales = [f32(0.05), u8(120), b, f32(0.03), u8(130), f32(0.06), u8(100)]
    yield "qlinear_add", "QLinearAdd", [a, *scales], {}, 1
    yield "qlinear_mul", "QLinearMul", [a, *scales], {}, 1
    yield "qlinear_add_signed", "QLinearAdd", [
        signed(3, 4), f32(0.05), i8(3), signed(4), f32(0.03), i8(-5), f32(0.061), i8(7)
    ], {}, 1
    to = [f32(0.02), u8(20)]
    yield "qlinear_sigmoid", "QLinearSigmoid", [a, f32(0.05), u8(120), f32(1 / 256), u8(0)], {}, 1
    yield "qlinear_leaky_relu", "QLinearLeakyRelu", [a, f32(0.05), u8(120), f32(0.05), u8(60)], {"alpha": 0.1}, 1
    yield "qlinear_softmax", "QLinearSoftmax", [a, f32(0.05), u8(120), f32(1 / 256), u8(0)], {"axis": -1, "opset": 13}, 1
    yield "qlinear_concat", "QLinearConcat", [
        f32(0.05), u8(100), a, f32(0.05), u8(120), bytes_of(2, 4), f32(0.03), u8(130)
    ], {"axis": 0}, 1
    image = bytes_of(1, 3, 4, 4)
    yield "qlinear_global_average", "QLinearGlobalAveragePool", [image, f32(0.05), u8(120), *to], {}, 1
    yield "qgemm", "QGemm", [
        bytes_of(3, 5), f32(0.02), u8(110), Const(small(5, 4)), f32(0.03), i8(0),
        Const(whole(-500, 500, 4, dtype=np.int32)), f32(0.1), u8(128),
    ], {}, 1
    yield "qgemm_columns", "QGemm", [
        bytes_of(3, 5), f32(0.02), u8(110), Const(small(4, 5)), Const(real(4, low=0.01, high=0.05)),
        Const(np.zeros(4, np.int8)), Const(whole(-500, 500, 4, dtype=np.int32)), f32(0.1), u8(128),
    ], {"transB": 1}, 1
    yield "qgemm_floats", "QGemm", [
        bytes_of(3, 5), f32(0.02), u8(110), Const(small(5, 4)), f32(0.03), i8(0)
    ], {"alpha": 0.5}, 1
    scaled = [bytes_of(2, 5, 8), Const(small(8, 24)), Const(real(24)), f32(0.02)]
    yield "qattention", "QAttention", [*scaled, f32(0.03), None, u8(110), i8(0)], {"num_heads": 2}, 1
    yield "qattention_columns", "QAttention", [
        *scaled, Const(real(24, low=0.01, high=0.05)), mask, u8(110), Const(np.zeros(24, np.int8))
    ], {"num_heads": 2}, 1
    yield "qattention_past", "QAttention", [*scaled, f32(0.03), None, u8(110), i8(0), past], {
        "num_heads": 2, "unidirectional": 1
    }, 2
    quantized = [Const(bytes_of(*shape)) for shape in ((10, 8), (6, 8), (2, 8), (8,), (8,))]
    scales, zeros = [f32(0.01 * at) for at in range(1, 6)], [u8(120 + at) for at in range(5)]
    yield "qembed", "QEmbedLayerNormalization", [ids, segments, *quantized, mask, *scales, *zeros], {}, 2
    yield "dynamic_matmul", "DynamicQuantizeMatMul", [
        real(3, 5), Const(bytes_of(5, 4)), f32(0.03), u8(120), Const(real(4))
    ], {}, 1
    yield "matmul_to_float", "MatMulIntegerToFloat", [
        bytes_of(3, 5), Const(bytes_of(5, 4)), f32(0.02), f32(0.03), u8(110), u8(120), Const(real(4))
    ], {}, 1

    # Large enough that products keep them as they are.
    for bits, block in (4, 32), (8, 128):
        packed = Const(bytes_of(100, 256 // block, block * bits // 8))
        scales = Const(real(100, 256 // block, low=0.01, high=0.1))
        attrs = {"K": 256, "N": 100, "bits": bits, "block_size": block}
        yield f"n_bits_{bits}_kept", "MatMulNBits", [real(3, 256), packed, scales], attrs, 1
        zero = Const(bytes_of(100, 256 // block * bits // 8))
        yield f"n_bits_{bits}_kept_zero", "MatMulNBits", [real(1, 256), packed, scales, zero], attrs, 1


    rows = whole(-9, 9, 2, 3)
    for bits, length in (4, 32), (8, 40):
        table, count = Const(bytes_of(9, length * bits // 8)), -(-length // 16)
        scales, attrs = Const(real(9, count, low=0.01, high=0.1)), {"bits": bits, "block_size": 16}
        yield f"gather_blocks_{bits}", "GatherBlockQuantized", [table, rows, scales], attrs, 1
        zero = Const(bytes_of(9, -(-count * bits // 8)))
        yield f"gather_blocks_{bits}_zero", "GatherBlockQuantized", [table, rows, scales, zero], attrs, 1
    for dtype in "int4", "uint4":
        low = -8 if dtype == "int4" else 0
        table, zero = (Const(whole(low, low + 16, *shape).astype(dtype)) for shape in ((9, 32), (9, 2)))
        scales = Const(real(9, 2, low=0.01, high=0.1).astype(np.float16 if low else np.float32))
        name, attrs = f"gather_blocks_{dtype}", {"block_size": 16}
        yield name, "GatherBlockQuantized", [table, rows, scales], attrs, 1
        yield f"{name}_zero", "GatherBlockQuantized", [table, rows, scales, zero], attrs, 1
        across = {"block_size": 16, "gather_axis": 1, "quantize_axis": 0}
        turned = [Const(np.ascontiguousarray(part.value.T)) for part in (table, scales, zero)]
        turned.insert(1, whole(0, 9, 2, 3))
        yield f"{name}_across", "GatherBlockQuantized", turned, across, 1

    image = [bytes_of(1, 3, 6, 7), f32(0.05), u8(120), f32(0.0213), u8(20)]
    attrs = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    yield "qlinear_average", "QLinearAveragePool", image, attrs, 1
    yield "qlinear_average_padded", "QLinearAveragePool", image, {**attrs, "count_include_pad": 1}, 1
    yield "qlinear_average_ceil", "QLinearAveragePool", image, {**attrs, "ceil_mode": 1}, 1
    image[0] = bytes_of(1, 6, 7, 3)
    yield "qlinear_average_last", "QLinearAveragePool", image, {**attrs, "channels_last": 1}, 1

    yield "quantize_u16", "QuantizeLinear", [real(3, 4), f32(0.0001), Const(np.uint16(30000))], {}, 1
    scales, zeros = Const(real(4, low=0.01, high=0.1)), Const(whole(-9, 9, 4, dtype=np.int16))
    yield "quantize_i16_columns", "QuantizeLinear", [real(3, 4), scales, zeros], {"axis": 1}, 1
    yield "dequantize_i16_columns", "DequantizeLinear", [whole(-999, 999, 3, 4, dtype=np.int16), scales, zeros], {"axis": 1}, 1
    table = Const(whole(-8, 8, 3, 4).astype("int4"))
    yield "dequantize_int4", "DequantizeLinear", [table, Const(real(3, low=0.01, high=0.1))], {"axis": 0}, 1

    for ways, direction in (1, "reverse"), (2, "bidirectional"):
        weights = [Const(signed(ways, size, 32) // 4) for size in (5, 8)]
        bias, attrs = Const(real(ways, 64)), {"hidden_size": 8, "direction": direction}
        by_way = [f32([0.01] * ways), i8([3] * ways)] * 2
        by_column = [Const(real(ways, 32, low=0.005, high=0.02)), Const(np.zeros((ways, 32), np.int8))] * 2
        for batch, kind in (1, ""), (2, "_batch"):
            states = [real(ways, batch, 8), real(ways, batch, 8)]
            inputs = [real(4, batch, 5), *weights, bias, Const(np.int32([3, 4][:batch])), *states, None]
            yield f"quantized_lstm_{direction}{kind}", "DynamicQuantizeLSTM", [*inputs, *by_way], attrs, 3
            inputs[4:7] = [None] * 3
            yield f"quantized_lstm_{direction}_columns{kind}", "DynamicQuantizeLSTM", [*inputs, *by_column], attrs, 3


def tolerance(name):
    """ONNX Runtime takes one scale for the states of all sequences that a thread has, Tenon one for each."""
    return "0.01 0.01" if name.startswith("quantized_lstm") and name.endswith("_batch") else "0.001 0.00001"


def model_of(op, inputs, attrs, outputs):
    names, given, weights = [], {}, []
    for number, value in enumerate(inputs):
        names.append("" if value is None else f"x{number}")
        if isinstance(value, Const):
            weights.append(numpy_helper.from_array(value.value, names[-1]))
        elif value is not None:
            given[names[-1]] = value
    wanted = range(outputs) if isinstance(outputs, int) else outputs
    results = [f"y{number}" if number in wanted else "" for number in range(max(wanted) + 1)]
    info = helper.make_tensor_value_info
    typed = [info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in given.items()]
    untyped = [info(name, TensorProto.FLOAT, None) for name in results if name]
    attrs = dict(attrs)
    standard, is_untold = attrs.pop("standard", None), attrs.pop("untold", False)
    domain = "com.microsoft" if standard is None else ""
    node = helper.make_node(op, names, results, domain=domain, **attrs)
    graph = helper.make_graph([node], op, typed, untyped, weights)
    sets = [helper.make_opsetid("", standard or 17)]
    if not is_untold:
        sets.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=sets, ir_version=10), given


def run(model, given):
    """What ONNX Runtime makes of it, once each output has the type that it says."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    integers = (TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16)
    for dtype in (TensorProto.FLOAT, TensorProto.FLOAT16, *integers, None):
        for output in model.graph.output:
            if dtype is not None:
                output.type.tensor_type.elem_type = dtype
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
            return session.run(None, given)
        except Exception as error:  # noqa: BLE001: an output of another type is tried
            problem = error
            if "Type Error" in str(error) and len(model.graph.output) > 1:
                model.graph.output[1].type.tensor_type.elem_type = TensorProto.INT32
                session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
                return session.run(None, given)
    raise problem


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def main():
    folder, count = sys.argv[1], 0
    for name, op, inputs, attrs, outputs in cases():
        model, given = model_of(op, inputs, attrs, outputs)
        results = [np.asarray(value) for value in run(model, given)]
        for info, value in zip(model.graph.output, results):
            info.type.CopyFrom(helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        place = os.path.join(folder, f"test_{name}")
        os.makedirs(place)
        write(os.path.join(place, "model.onnx"), model)
        for number, (own, value) in enumerate(given.items()):
            write(os.path.join(place, f"input_{number}.pb"), numpy_helper.from_array(value, own))
        for number, value in enumerate(results):
            write(os.path.join(place, f"output_{number}.pb"), numpy_helper.from_array(value, f"y{number}"))
        with open(os.path.join(place, "tolerance"), "w") as file:
            file.write(tolerance(name) + "\n")
        count += 1
    print(f"{count} models")


if __name__ == "__main__":
    main()
