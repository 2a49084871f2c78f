"""Draws models of many operators at random, with what is right for each value in them.

Usage: make_graphs.py FOLDER [COUNT [SEED]]

A model grows node by node. Operators and their attributes are drawn as make_random.py draws them, of one version of the
operator set for the whole model; where a draw asks for data, a value of the model that is there takes the place of them,
reshaped, cut, repeated or cast now and then. Each node is judged by itself, as in make_random.py, so a model may mix
operators that ONNX Runtime has kernels for with others.

A result need not be exact, and what is discontinuous must not hang on its last bits. So each value has two twins, which are
computed of the twins of what it was computed of, and moved by some roundings in opposite directions. A node whose
discrete results differ between them, or whose floats differ by much, is dropped. How far the twins of an output are
apart says how far a result may be off.

Some nodes hold graphs, which graph_control.py draws. Some models have an input dimension that is open, with data of several
sizes, for each of which the nodes are judged again. Some compute in bf16, for which there are no kernels: the judges compute in f32
what is rounded to bf16 behind each node.
"""

import os
import sys
import warnings
import zlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

import graph_control
import make_random
from make_random import BOOL, DRAWS, F32, HISTORY, Again, Draw

warnings.filterwarnings("ignore")

# Nodes of a model, at least and at most, those that adapt shapes not counted.
FEWEST, MOST = 2, 14
# Elements of a value, at most, and how large one may be.
SIZE, LARGEST = 3000, 1e4
OLDEST, NEWEST = 7, make_random.NEWEST
# Roundings of a result that is not exact, relative to itself and to the largest.
ROUNDINGS = {"e": 2.0**-9, "f": 2.0**-19, "d": 2.0**-40}
# How far the twins of a value may be apart, relative to the largest.
APART = {"e": 0.05, "f": 2e-3, "d": 2e-3}
# The same of bf16, which stands in f32 while it is judged.
NARROW_ROUNDING, NARROW_APART = 2.0**-7, 0.06
# How many models compute in bf16, and of how many a dimension is open if that is possible.
NARROW, OPEN = 0.1, 0.4
SIZES = [1, 2, 3, 5, 6, 7, 9, 12, 16]
# What moves and compares numbers makes no others.
EXACT = {"Abs", "Neg", "Sign", "Relu", "Ceil", "Floor", "Round", "Not", "And", "Or", "Xor", "Identity", "Max", "Min", "Where",
         "Clip", "Concat", "Constant", "ConstantOfShape", "MaxPool", "GlobalMaxPool", "DepthToSpace", "SpaceToDepth",
         "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "TopK", "Hardmax", "EyeLike", "ReverseSequence",
         "OneHot", "Pad", "Range", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "Reshape", "Shape", "Size", "Slice", "Split",
         "Squeeze", "Unsqueeze", "Tile", "Transpose", "Trilu", "Dropout"}
# Operators whose integers are places, sizes or codes: values of the model that happen to fit would mean something else.
OF_PLACES = {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "OneHot", "Reshape", "Expand", "Tile", "Slice",
             "Pad", "Range", "TopK", "Split", "Unsqueeze", "Squeeze", "ReverseSequence", "Col2Im", "MaxUnpool", "Trilu",
             "CumSum", "CumProd", "Div", "Mod", "BitShift", "Pow", "RotaryEmbedding", "Attention", "MaxRoiPool",
             "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "LSTM", "GRU", "RNN", "Resize", "Upsample",
             "ConstantOfShape", "CenterCropPad", "AffineGrid", "DFT", "STFT", "EyeLike", "RoiAlign", "LinearAttention"}
# What is drawn, and how often: operators that carry data on, more than those with a bit of data of their own.
OFTEN = {"Add", "Mul", "Sub", "MatMul", "Gemm", "Conv", "Relu", "Sigmoid", "Softmax", "Transpose", "Reshape", "Concat", "Slice",
         "ReduceMean", "ReduceSum", "LayerNormalization", "Where", "Cast", "Split", "Gather", "Unsqueeze", "Squeeze", "Expand", "Pad"}
OPS = sorted([*DRAWS, *(op for op in DRAWS if op in OFTEN), *(op for op in DRAWS if op in OFTEN)])

# What takes numbers of that size from each other, so that little may be left of them but roundings.
CANCELLING = {"BlackmanWindow": 1.0, "HannWindow": 1.0, "HammingWindow": 1.0, "Selu": 4.0, "Elu": 4.0, "Celu": 4.0, "Gelu": 4.0,
              "Mish": 4.0, "GRU": 4.0}
SPECTRA = {"DFT", "STFT"}
# Of these ONNX Runtime takes more weights than there are classes.
LOSSES = {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}

# Where the reference is wrong, which differences.txt says as well, or takes minutes, of wide boxes.
NOT_BY_REFERENCE = {"GlobalMaxPool", "LRN", "Gelu", "Attention", "RNN", "LSTM", "GRU", "Hardmax", "RoiAlign"}


class Known:
    """A value of the model, its twins, and whether it is a constant."""

    def __init__(self, name, value, twins=None, is_constant=False, is_narrow=False):
        self.name, self.value, self.is_constant, self.is_narrow = name, value, is_constant, is_narrow
        self.twins = twins or [value, value]

    def rounded(self):
        """The same in bf16, where it is in f32."""
        return Known(self.name, narrow(self.value), [narrow(twin) for twin in self.twins], self.is_constant, True)

    def is_tame(self):
        if self.value.dtype.kind not in "fiub" or not 0 < self.value.size <= SIZE:
            return False
        if self.value.dtype == BOOL:
            return True
        return bool(np.isfinite(self.value).all() and (np.abs(self.value.astype("float64")) <= LARGEST).all())


class Graph:
    """A model that grows, or the body of a node that holds one."""

    def __init__(self, rng, version=None, narrow=None, prefix=""):
        self.rng, self.prefix = rng, prefix
        self.narrow = bool(rng.random() < NARROW) if narrow is None else narrow
        self.version = version or int(rng.integers(13 if self.narrow else OLDEST, NEWEST + 1))
        self.values, self.given, self.weights, self.nodes, self.read = [], [], [], [], set()
        # What is around a body, how many of its values come from there, how many bodies it stands in, and the numbers of their iterations.
        self.around, self.before, self.depth, self.numbers = [], 0, 0, []
        # What computes a node anew by values of its inputs, and the types of names in bodies.
        self.redo, self.inside = {}, {}
        # The axes of inputs that are open, and what is given and found for other sizes.
        self.open, self.sets = {}, []

    def since(self, op):
        """The operator as this version has it; none where it is not there, or deprecated."""
        fitting = [schema for schema in HISTORY[op] if schema.since_version <= self.version]
        newest = max(fitting, key=lambda schema: schema.since_version, default=None)
        return None if newest is None or newest.deprecated else newest

    def attempt(self):
        """Grows, or stays as it is where a draw makes no sense."""
        state = self.state()
        try:
            often = graph_control.OFTEN
            if self.values and self.depth < len(often) and self.rng.random() < often[self.depth]:
                graph_control.grow(self)
            else:
                self.grow()
        except Exception:  # noqa: BLE001: whatever refuses a draw, the next one is made
            self.restore(state)

    def state(self):
        return {key: type(part)(part) for key, part in vars(self).items() if isinstance(part, (list, set, dict))}

    def restore(self, state):
        vars(self).update(state)

    def grow(self):
        """Adds a node; Again where this draw makes no sense."""
        op = OPS[int(self.rng.integers(len(OPS)))]
        if self.since(op) is None:
            raise Again
        draw = GraphDraw(self, op)
        DRAWS[op][0](draw)
        if draw.unnamed or draw.judge == "reference" or is_judged_wrongly(draw):
            raise Again
        names = ["" if known is None else known.name for known in draw.known]
        while names and not names[-1]:
            names.pop()
        count = len(self.values)
        outputs = [f"{self.prefix}{op.lower()}{count + number}" for number in range(draw.outputs)]
        node = helper.make_node(op, names, outputs, name=f"{self.prefix}{op}_{len(self.nodes)}", **draw.attrs)
        fresh = [known for known in draw.known if known is not None]
        self.take(node, fresh)

    def take(self, node, inputs):
        """Judges a node and keeps what it gives; Again where it is not fit for a model."""
        def redo(known):
            return evaluated(node, [known[it.name] for it in inputs], self.version, self.rng, self.narrow)

        if self.narrow:
            inputs = [known.rounded() for known in inputs]
        self.keep(node, redo, inputs)

    def hold(self, node, redo, inputs, bodies):
        """Keeps a node that holds graphs."""
        for body in bodies:
            self.inside.update({known.name: known.value.dtype for known in (*body.values[body.before:], *body.params)})
            self.inside.update(body.inside)
        inputs = [*inputs, *(known for body in bodies for known in (*body.given, *body.weights))]
        results = self.keep(node, redo, inputs)
        read = graph_control.read_by(node)
        self.read |= read
        known = list({known.name: known for known in self.everything() if known.name in read}.values())
        if not self.narrow:
            weights = [numpy_helper.from_array(it.value, it.name) for it in known if it.is_constant]
            known = [it for it in known if not it.is_constant]
            made = helper.make_graph([node], "one", [typed(it) for it in known], [typed(it) for it in results], weights)
            model = helper.make_model(made, opset_imports=[helper.make_opsetid("", self.version)], ir_version=10)
            graph_control.confirm(model, known, results)

    def keep(self, node, redo, inputs):
        known = {known.name: known for known in (*self.everything(), *inputs)}
        results = fit(node, redo(known))
        self.nodes.append(node)
        self.redo[node.name] = redo
        there = {other.name for other in self.everything()}
        for known in {known.name: known for known in inputs}.values():
            self.read.add(known.name)
            if known.name not in there:
                (self.weights if known.is_constant else self.given).append(known)
        self.values.extend(results)
        if self.narrow:
            check_narrow(self, node)
        return results

    def replayed(self, known):
        """All values, computed anew of what is given and around."""
        known = dict(known)
        for node in self.nodes:
            results = fit(node, self.redo[node.name](known))
            known.update((result.name, result) for result in results)
        return known

    def body(self, prefix, params, number=None):
        """What a node of this model may hold."""
        body = Graph(self.rng, self.version, self.narrow, prefix)
        body.around, body.params = [*self.everything(), *params], params
        body.depth, body.numbers = self.depth + 1, [*self.numbers, *([number] if number else [])]
        # The newest values, and one of those before them, which may be of a body around this one.
        older = self.values[:-4]
        chosen = [older[int(self.rng.integers(len(older)))]] if older else []
        body.values = [*chosen, *self.values[-4:], *params]
        body.before = len(body.values)
        return body

    def own(self):
        return self.values[self.before:]

    def known(self, *args, **kwargs):
        return Known(*args, **kwargs)

    def everything(self):
        return [*self.around, *self.given, *self.weights, *self.values]


def fit(node, results):
    """The results of a node under their names; Again where they are not fit for a model."""
    found = []
    for name, result in zip([name for name in node.output if name], results):
        known = Known(name, result.value, result.twins, is_narrow=result.is_narrow)
        if known.value.dtype.kind not in "fiub" or known.value.size == 0 or not known.is_tame() or not is_steady(known):
            raise Again
        found.append(known)
    return found


class GraphDraw(Draw):
    """A node that is being drawn, of values of the model where some fit."""

    def __init__(self, graph, op):
        self.graph, self.rng, self.op = graph, graph.rng, op
        self.attrs, self.inputs, self.outputs = {}, [], 1
        self.known, self.is_special = [], False
        self.version = graph.version

    def pick(self, options):
        types = [known.value.dtype for known in self.graph.values[-6:]]
        if len(options) and isinstance(options[0], np.dtype):
            fitting = [option for option in options if option in types]
            if fitting and self.chance(0.85):
                return fitting[int(self.rng.integers(len(fitting)))]
            floats = [option for option in options if option == F32]
            if floats and self.chance(0.5):
                return F32
        return super().pick(options)

    def extent(self, zero=0.04):
        return super().extent(0)

    def shape(self, low=0, high=5, most=700, zero=0.04):
        shapes = [known.value.shape for known in self.graph.values[-6:]]
        shapes = [shape for shape in shapes if low <= len(shape) <= high and np.prod(shape) <= max(most, 700)]
        if shapes and self.chance(0.85):
            return tuple(int(extent) for extent in shapes[int(self.rng.integers(len(shapes)))])
        return super().shape(low, high, most, 0)

    def give(self, value, constant=0.15):
        super().give(value, constant)
        value, is_constant = self.inputs[-1]
        self.known.append(None if value is None else self.found(np.asarray(value), is_constant))

    def found(self, value, is_constant):
        """A value of the model in the place of data, or the data."""
        graph = self.graph
        is_free = self.op not in OF_PLACES or value.dtype.kind == "f" and not is_constant and self.op != "OneHot"
        is_number = value.dtype.kind == "f" and self.chance(0.3) or not is_constant
        if is_free and is_number and value.size and self.chance(0.9):
            same = [known for known in graph.values if known.value.dtype == value.dtype and known.value.shape == value.shape]
            if same:
                # The newest more often than others.
                return same[-1] if self.chance(0.6) else same[int(self.rng.integers(len(same)))]
            adapted = self.adapted(value)
            if adapted is not None:
                return adapted
        inputs = [known for known in graph.given if known.value.dtype == value.dtype and known.value.shape == value.shape]
        if is_free and inputs and not is_constant and self.chance(0.2):
            return inputs[int(self.rng.integers(len(inputs)))]
        kind = "w" if is_constant else "x"
        name = f"{graph.prefix}{kind}{len(graph.nodes)}_{len(self.known)}"
        return Known(name, value, is_constant=is_constant)

    def adapted(self, value):
        """A value of the model in another shape or type; none where none is near."""
        graph, wanted = self.graph, tuple(value.shape)
        recent = [known for known in graph.values[-8:] if known.value.dtype.kind in "fiub"]
        if not recent or not self.chance(0.7):
            return None
        known = recent[int(self.rng.integers(len(recent)))]
        pieces, base = [], f"{graph.prefix}adapt{len(graph.nodes)}_{len(self.known)}"

        def node(op, source, *constants, **attrs):
            weights = [Known(f"{base}_{len(pieces)}_{place}", np.asarray(weight), is_constant=True)
                       for place, weight in enumerate(constants)]
            name = f"{base}_v{len(pieces)}"
            made = helper.make_node(op, [source.name, *(weight.name for weight in weights)], [name], name=name, **attrs)
            results = evaluated(made, [source, *weights], graph.version, self.rng, graph.narrow)
            pieces.append((made, [source, *weights]))
            return results[0]

        if known.value.dtype != value.dtype:
            if value.dtype == BOOL or known.value.dtype == BOOL and self.chance(0.5) or not has_place(known, value.dtype):
                return None
            known = node("Cast", known, to=helper.np_dtype_to_tensor_dtype(value.dtype))
        have, want = known.value.size, value.size
        if known.value.shape != wanted:
            if have == want:
                known = node("Reshape", known, np.array(wanted, np.int64))
            elif have > want and graph.version >= 10:
                known = node("Reshape", known, np.array([-1], np.int64))
                step = self.int(1, have // want)
                known = node("Slice", known, *(np.array([x], np.int64) for x in (0, min(have, want * step), 0, step)))
                if known.value.size != want:
                    return None
                known = node("Reshape", known, np.array(wanted, np.int64))
            elif graph.version >= 8 and all(a in (1, b) for a, b in zip(known.value.shape[::-1], wanted[::-1])) \
                    and len(known.value.shape) <= len(wanted):
                known = node("Expand", known, np.array(wanted, np.int64))
            else:
                return None
        for made, inputs in pieces:
            graph.take(made, inputs)
        return next(found for found in graph.values if found.name == known.name) if pieces else known


def is_judged_wrongly(draw):
    """Whether ONNX Runtime is known to be wrong, or we to refuse: differences.txt and random_unsupported.txt say why."""
    attrs = draw.attrs
    is_same = attrs.get("auto_pad", "").startswith("SAME")
    if draw.op in ("MaxPool", "AveragePool"):
        # Of VALID it counts the places of a window that is not dilated.
        return "dilations" in attrs and (is_same or draw.op == "AveragePool" and attrs.get("auto_pad") == "VALID")
    if draw.op == "ConvTranspose":
        return is_same
    if draw.op == "Col2Im":
        return len(draw.inputs[1][0]) != 2
    if draw.op == "Squeeze":
        return len(draw.inputs) > 1 and draw.inputs[1][0] is not None and draw.inputs[1][0].size == 0
    if draw.op == "Gemm":
        return draw.inputs[0][0].dtype.kind in "iu" and not all(float(attrs.get(name, 1)).is_integer() for name in ("alpha", "beta"))
    if draw.op == "Slice":
        ends = draw.inputs[2][0] if len(draw.inputs) > 2 else attrs.get("ends", 0)
        return ends is not None and np.abs(np.asarray(ends, "float64")).max(initial=0) > 2**30
    if draw.op == "Attention":
        # Queries behind a cache look at what is before them in it to it; the standard's function counts them from the first key.
        return bool(attrs.get("is_causal")) and len(draw.known) > 4 and draw.known[4] is not None
    if draw.op == "Resize":
        # Of an extent that is no whole number it takes the part before the point; the standard's cases do not.
        is_between = attrs.get("coordinate_transformation_mode") in ("align_corners", "pytorch_half_pixel")
        scales = draw.known[2].value if len(draw.known) > 2 and draw.known[2] is not None else np.ones(1)
        return is_between and not all(float(x).is_integer() for x in scales)
    return has_no_answer(draw)


def has_no_answer(draw):
    """Whether the standard leaves a result open, or it is nothing but roundings."""
    values = [None if known is None else known.value for known in draw.known]
    if draw.op == "QuantizeLinear":
        return bool((np.abs(values[1]) < 1e-5).any())
    if draw.op in ("Cast", "CastLike"):
        target = helper.tensor_dtype_to_np_dtype(draw.attrs["to"]) if draw.op == "Cast" else values[1].dtype
        if values[0].dtype.kind == "f" and target == BOOL:
            return apart(draw.known[0]) > 0
        is_cut = values[0].dtype.kind == "f" and target.kind in "iu"
        return is_cut and not has_place(draw.known[0], target)
    if draw.op == "InstanceNormalization":
        return values[0][0, 0].size == 1
    if "Window" in draw.op:
        # The ends, which are zero, and nothing else.
        return int(values[0]) < 3
    if draw.op in ("Equal", "Mod"):
        # Moved by roundings, neither twin is what a result that happens to be exact is equal to, or has a multiple of.
        return values[0].dtype.kind == "f" and any(apart(known) > 0 for known in draw.known)
    if draw.op == "GroupNormalization":
        # ONNX Runtime computes it in f32.
        return values[0].dtype.char == "d"
    return False


def has_place(known, dtype):
    """Whether all elements are numbers of a type, but for what is cut or rounded; moved by roundings too."""
    bounds = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    values = [value.astype("float64") for value in (known.value, *known.twins)]
    return all(((value >= float(bounds.min)) & (value <= float(bounds.max))).all() for value in values)


def narrow(value):
    """What bf16 has of numbers in f32."""
    return value.astype(ml_dtypes.bfloat16).astype(F32) if value.dtype == F32 else value


def is_steady(known):
    """Whether a value does not hang on roundings."""
    value = known.value
    if value.dtype.kind != "f":
        return all(np.array_equal(value, twin) for twin in known.twins)
    if not all(twin.shape == value.shape and np.isfinite(twin).all() for twin in known.twins):
        return False
    largest = max([1e-3, *np.abs(value.astype("float64")).reshape(-1)])
    allowed = NARROW_APART if known.is_narrow else APART[value.dtype.char]
    return apart(known) <= allowed * largest


def apart(known):
    value = known.value.astype("float64")
    return max([0.0, *(float(np.abs(value - twin.astype("float64")).max(initial=0)) for twin in known.twins)])


def evaluated(node, inputs, version, rng, is_narrow=False):
    """The results of a node, each with its twins."""
    info = helper.make_tensor_value_info
    inputs = list({known.name: known for known in inputs}.values())
    given = [info(known.name, helper.np_dtype_to_tensor_dtype(known.value.dtype), known.value.shape) for known in inputs]
    # Sizes and axes that are constants stay such, since a kernel may ask for them.
    weights = [numpy_helper.from_array(known.value, known.name) for known in inputs if known.is_constant]
    names = [name for name in node.output if name]
    graph = helper.make_graph([node], "one", [it for it, known in zip(given, inputs) if not known.is_constant],
                              [onnx.ValueInfoProto(name=name) for name in names], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)
    model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    # The reference broadcasts more than the standard lets it.
    shapes = [output.type.tensor_type.shape.dim if output.type.tensor_type.HasField("shape") else None for output in model.graph.output]
    shapes = [dims and [dim.dim_value if dim.HasField("dim_value") else None for dim in dims] for dims in shapes]
    for output in model.graph.output:
        if not output.type.tensor_type.elem_type:
            output.type.CopyFrom(helper.make_tensor_type_proto(given[0].type.tensor_type.elem_type, None))
        output.type.tensor_type.ClearField("shape")
    run = runner(model)
    # What divides by a deviation is moved by its own roundings too, where elements are alike.
    shaken = lambda value, sign: value if "Normalization" not in node.op_type else moved(value, sign, rng, 2.0**-3)
    feeds = [{known.name: value(known) for known in inputs if not known.is_constant}
             for value in (lambda it: it.value, lambda it: shaken(it.twins[0], 1), lambda it: shaken(it.twins[1], -1))]
    plain, up, down = ([np.asarray(value) for value in run(feed)] for feed in feeds)
    if any(dims and not fits(dims, value.shape) for dims, value in zip(shapes, plain)):
        raise Again
    if is_narrow:
        plain, up, down = ([narrow(value) for value in values] for values in (plain, up, down))
    results, least = [], CANCELLING.get(node.op_type, 0.0)
    if "Window" in node.op_type and plain[0].dtype.char == "d":
        # ONNX Runtime has the factors in f32.
        least = ROUNDINGS["f"] / ROUNDINGS["d"]
    if node.op_type in SPECTRA:
        least = sum(float(np.abs(known.value.astype("float64")).sum()) for known in inputs[:1])
    for name, value, *twins in zip(names, plain, up, down):
        if value.dtype.kind == "f" and node.op_type not in EXACT:
            state = rng.bit_generator.state
            for place, sign in enumerate((1, -1)):
                rng.bit_generator.state = state
                part = NARROW_ROUNDING / ROUNDINGS["f"] if is_narrow and value.dtype == F32 else 1.0
                twins[place] = moved(twins[place], sign, rng, part, least)
        results.append(Known(name, value, twins, is_narrow=is_narrow and value.dtype == F32))
    return results


def fits(dims, shape):
    """Whether a shape is what inference says, as far as it says it."""
    return len(dims) == len(shape) and all(dim in (None, extent) for dim, extent in zip(dims, shape))


def moved(value, sign, rng, part=1.0, least=0.0):
    """A value that is off by some roundings, or a part of them; of numbers of that size at least."""
    if value.dtype.kind != "f":
        return value
    scale = np.abs(value.astype("float64"))
    step = part * ROUNDINGS[value.dtype.char] * (scale + scale.max(initial=least)) * rng.choice([-1.0, 1.0], value.shape)
    return np.asarray(value.astype("float64") + sign * step, value.dtype)


def runner(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return lambda feed: session.run(None, feed)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise Again from error
    if model.graph.node[0].op_type in NOT_BY_REFERENCE:
        raise Again
    reference = ReferenceEvaluator(model)
    return lambda feed: reference.run(None, feed)


def drawn(seed, number):
    """The model of that number."""
    rng = np.random.default_rng([seed, number])
    graph = Graph(rng)
    wanted, tries = int(rng.integers(FEWEST, MOST + 1)), 0
    while len(graph.nodes) < wanted and tries < 400:
        tries += 1
        graph.attempt()
    if rng.random() < OPEN:
        open_up(graph)
    return graph


def open_up(graph):
    """Opens a dimension, where the nodes make sense for other sizes."""
    rng = graph.rng
    nodes = list(graph_control.every(graph.nodes))
    if any(node.op_type in LOSSES and len(node.input) > 2 for node in nodes):
        return
    has_windows = any("Pool" in node.op_type or "Conv" in node.op_type for node in nodes)
    extents = sorted({extent for known in graph.given for extent in known.value.shape if extent > 1})
    for extent in rng.permutation(extents)[:3]:
        axes = {known.name: [axis for axis, have in enumerate(known.value.shape) if have == extent] for known in graph.given}
        sets = []
        try:
            # ONNX Runtime takes windows that are wider than what they go over.
            sizes = rng.permutation([size for size in SIZES if size != extent])
            for size in [size for size in sizes if size > extent or not has_windows][:2]:
                known = {known.name: known for known in graph.weights}
                known.update((it.name, resized(it, axes[it.name], int(size))) for it in graph.given)
                sets.append(graph.replayed(known))
        except Exception:  # noqa: BLE001: whatever refuses a size, another dimension may be open
            continue
        # Which axes `Squeeze` leaves out is asked for when the model is compiled.
        is_same = all(found[it.name].value.ndim == it.value.ndim for found in sets for it in graph.values)
        if sets and is_same:
            graph.open, graph.sets = axes, sets
            return


def resized(known, axes, size):
    """An input with another extent at some axes: what is there is repeated, or cut."""
    value = known.value
    for axis in axes:
        value = np.take(value, np.arange(size) % value.shape[axis], axis)
    return Known(known.name, value, is_narrow=known.is_narrow)


def outputs_of(graph):
    """Values that nothing reads, and others now and then."""
    return [known for known in graph.values if known.name not in graph.read or graph.rng.random() < 0.1]


def typed(known, shape=None):
    shape = known.value.shape if shape is None else shape
    return helper.make_tensor_value_info(known.name, helper.np_dtype_to_tensor_dtype(known.value.dtype), shape)


def model_of(graph, outputs):
    def given(known):
        return typed(known, ["n" if axis in graph.open.get(known.name, []) else extent for axis, extent in enumerate(known.value.shape)])

    def result(known):
        others = [found[known.name].value.shape for found in graph.sets]
        return typed(known, [extent if all(other[axis] == extent for other in others) else None
                             for axis, extent in enumerate(known.value.shape)])

    inputs, results = [given(known) for known in graph.given], [result(known) for known in outputs]
    if graph.narrow:
        nodes, weights = narrowed(graph, graph.nodes, graph.weights, graph.given, outputs)
    else:
        nodes, weights = graph.nodes, [numpy_helper.from_array(known.value, known.name) for known in graph.weights]
    made = helper.make_graph(nodes, "random", inputs, results, weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", graph.version)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def narrowed(graph, nodes, weights, given, outputs):
    """Nodes and weights in bf16, and casts of what is given and of what is asked for."""
    types = {**graph.inside, **{known.name: known.value.dtype for known in graph.everything()}}
    inner = lambda name: f"{name}_n" if types.get(name) == F32 else name
    wide, bf16 = onnx.TensorProto.FLOAT, onnx.TensorProto.BFLOAT16

    def cast(source, target, to):
        return helper.make_node("Cast", [source], [target], name=target, to=to)

    def tensor(value, name):
        if value.dtype != F32:
            return numpy_helper.from_array(value, name)
        return numpy_helper.from_array(value.astype(ml_dtypes.bfloat16), name)

    def of(node):
        made = onnx.NodeProto()
        made.CopyFrom(node)
        for names in made.input, made.output:
            names[:] = [inner(name) for name in names]
        for attr in made.attribute:
            if attr.name in ("to", "dtype") and attr.i == wide:
                attr.i = bf16
            if attr.type == onnx.AttributeProto.TENSOR and attr.t.data_type == wide:
                attr.t.CopyFrom(tensor(narrow(numpy_helper.to_array(attr.t)), attr.t.name))
            if attr.type == onnx.AttributeProto.GRAPH:
                attr.g.node.MergeFrom([])
                inside = [of(node) for node in attr.g.node]
                del attr.g.node[:]
                attr.g.node.extend(inside)
                for value in (*attr.g.input, *attr.g.output):
                    value.name = inner(value.name)
                    if value.type.tensor_type.elem_type == wide:
                        value.type.tensor_type.elem_type = bf16
        return made

    before = [cast(known.name, inner(known.name), bf16) for known in given if known.value.dtype == F32]
    behind = [cast(inner(known.name), known.name, wide) for known in outputs if known.value.dtype == F32]
    return [*before, *(of(node) for node in nodes), *behind], [tensor(known.value, inner(known.name)) for known in weights]


def check_narrow(graph, node):
    """Again where the standard has no such node in bf16."""
    known = {known.name: known for known in graph.everything()}
    read = [known[name] for name in graph_control.read_by(node) if name in known]
    weights, given = [it for it in read if it.is_constant], [it for it in read if not it.is_constant]
    results = [known[name] for name in node.output if name]
    nodes, weights = narrowed(graph, [node], weights, given, results)
    made = helper.make_graph(nodes, "one", [typed(it) for it in given], [typed(it) for it in results], weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", graph.version)], ir_version=10)
    model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    onnx.checker.check_model(model)
    # Means and deviations, among others, stay in f32.
    found = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    if any(found.get(f"{it.name}_n", onnx.TensorProto.BFLOAT16) != onnx.TensorProto.BFLOAT16 for it in results):
        raise Again


def tolerance(outputs):
    """How far results may be off: relative to themselves, and besides."""
    floats = [known for known in outputs if known.value.dtype.kind == "f"]
    return max([1e-4, *map(relative, floats)]), max([1e-6, *(4 * apart(known) for known in floats)])


def relative(known):
    """How far a result may be off, as a part of itself."""
    return 1.6e-2 if known.is_narrow else {"e": 4e-3}.get(known.value.dtype.char, 1e-4)


def save(place, graph, model, outputs):
    """Writes a model and its data, those of other sizes in folders of their own."""
    os.makedirs(place)
    make_random.write(os.path.join(place, "model.onnx"), model)
    write_data(place, graph.given, outputs)
    for number, known in enumerate(graph.sets):
        folder = os.path.join(place, f"size_{number}")
        os.makedirs(folder)
        write_data(folder, [known[it.name] for it in graph.given], [known[it.name] for it in outputs])


def write_data(place, given, outputs):
    for kind, values in ("input", given), ("output", outputs):
        for index, known in enumerate(values):
            path = os.path.join(place, f"{kind}_{index}.pb")
            make_random.write(path, numpy_helper.from_array(known.value, known.name))
    with open(os.path.join(place, "tolerance"), "w") as file:
        file.write("{} {}\n".format(*tolerance(outputs)))


def main():
    folder = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    nodes = 0
    for number in range(count):
        graph = drawn(seed, number)
        outputs = outputs_of(graph)
        save(os.path.join(folder, f"test_{number // 20:02}_{number:03}"), graph, model_of(graph, outputs), outputs)
        nodes += len(graph.nodes)
    print(f"{count} models of {nodes} nodes")


if __name__ == "__main__":
    main()
