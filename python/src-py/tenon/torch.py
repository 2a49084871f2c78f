"""Models of torch.

A module is exported to ONNX by torch itself, and compiled from there; weights become constants.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ._compile import compile
from ._errors import Error, TenonWarning
from ._executable import Executable
from ._module import from_onnx

#: Which axes of which inputs stay open: the number of the input, its axis, and what the extent is called.
OpenAxes = dict[int, dict[int, str]]


def export(module: Any, inputs: Any, open_axes: OpenAxes | None = None) -> bytes:
    """The ONNX model of a torch module as it is in evaluation, as bytes.

    The module is traced: what Python decides by the values of the example tensors stays so, which a :class:`tenon.TenonWarning` says.

    Args:
        module: A ``torch.nn.Module``; its mode and its buffers are the same afterwards.
        inputs: A tuple of example tensors, or one.
        open_axes: Which axes stay open: ``{0: {0: "batch"}}``.

    Raises:
        torch.onnx.errors.OnnxExporterError: torch cannot export it.
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    with _in_evaluation(module):
        if why := _effect(module, given, [*module.parameters(), *module.buffers()]):
            warnings.warn(f"{why}, and code does not", TenonWarning, stacklevel=4)
        with _told_of_traces():
            return _exported(module, inputs, open_axes, traces="always")


def check(made: Executable, module: Any, inputs: Any, is_narrow: bool = False) -> None:
    """Warns where results of the example inputs are not those of torch: its exporter to ONNX has errors."""
    import torch
    from torch.utils._pytree import tree_leaves

    given = inputs if isinstance(inputs, tuple) else (inputs,)
    places = [each.name.removeprefix("input") for each in made.inputs]
    is_plain = all(isinstance(each, torch.Tensor) for each in given)
    if not is_plain or not all(place.isdigit() and int(place) < len(given) for place in places):
        return
    with _in_evaluation(module), torch.no_grad():
        if _effect(module, given, [*module.parameters(), *module.buffers()]):
            return
        expected = [each for each in tree_leaves(module(*given)) if each is not None]
    if not all(isinstance(each, torch.Tensor) for each in expected):
        return
    results = _Code([], made, [int(place) for place in places])(list(given))
    if why := _difference(results, expected, is_narrow):
        warnings.warn(f"torch's export of the module computes something else: {why}", TenonWarning, stacklevel=3)


@contextlib.contextmanager
def _in_evaluation(module: Any) -> Iterator[None]:
    """With the module in evaluation; its modes and buffers are the same afterwards."""
    import torch

    modes = [(each, each.training) for each in module.modules()]
    buffers = [(each, each._version, each.clone()) for each in module.buffers()]
    module.eval()
    try:
        yield
    finally:
        for each, mode in modes:
            each.training = mode
        with torch.no_grad():
            for buffer, version, before in buffers:
                if buffer._version != version:
                    buffer.copy_(before)


def export_program(program: Any) -> bytes:
    """The ONNX model of a ``torch.export.ExportedProgram``, as bytes. Its dynamic dimensions stay open, one extent by one name.

    Raises:
        TypeError: It takes keyword arguments, or what is no tensor.
        ValueError: It writes its inputs or buffers, or draws random numbers.
        torch.onnx.errors.OnnxExporterError: torch cannot export it.
    """
    import torch

    if program.example_inputs is None:
        raise TypeError("the exported program was loaded without its example inputs, with which it is exported to ONNX")
    inputs, named = program.example_inputs
    if named or not all(isinstance(each, torch.Tensor) for each in inputs):
        raise TypeError("an exported program is compiled if it takes tensors in order, and nothing else")
    wanted = dict.fromkeys(program.graph_signature.user_inputs)
    nodes = (node for node in program.graph.nodes if node.op == "placeholder" and node.name in wanted)
    shapes = [node.meta["val"].shape for node in nodes]
    open_axes: OpenAxes = {
        place: {axis: str(extent) for axis, extent in enumerate(shape) if isinstance(extent, torch.SymInt)}
        for place, shape in enumerate(shapes)
    }

    class Module(torch.nn.Module):
        """The exporter asks a graph for what only a traced one has."""

        def __init__(self) -> None:
            super().__init__()
            # It is as it was exported, in evaluation or in training, and refuses to be told otherwise.
            self.body = program.module()
            self.training = False

        def forward(self, *tensors: Any) -> Any:
            return self.body(*tensors)

    module = Module()
    if why := _effect(module, tuple(inputs), [*module.parameters(), *module.buffers()]):
        raise ValueError(f"{why}, and code does not")
    return _exported(module, tuple(inputs), {place: axes for place, axes in open_axes.items() if axes})


def _exported(module: Any, inputs: Any, open_axes: OpenAxes | None, traces: Any = "ignore") -> bytes:
    """The same in the mode in which the module is; ``traces`` is what is done with warnings of what Python decides."""
    import torch

    given = inputs if isinstance(inputs, tuple) else (inputs,)
    names = [f"input{place}" for place in range(len(given))]
    axes = {names[place]: dict(each) for place, each in (open_axes or {}).items()}
    with (
        tempfile.TemporaryDirectory() as folder,
        torch.no_grad(),
        warnings.catch_warnings(),
        _whole_attention(),
    ):
        path = Path(folder) / "module.onnx"
        # What cannot be exported is an error.
        warnings.simplefilter("ignore")
        warnings.simplefilter(traces, torch.jit.TracerWarning)
        torch.onnx.export(
            module,
            given,
            path,
            input_names=names,
            dynamic_axes=axes or None,
            training=torch.onnx.TrainingMode.PRESERVE,
            dynamo=False,
        )
        return path.read_bytes()


@contextlib.contextmanager
def _told_of_traces() -> Iterator[None]:
    """Says of what Python has decided by values of tensors, once for all of it."""
    import torch

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", torch.jit.TracerWarning)
        yield
    traced = [each for each in caught if issubclass(each.category, torch.jit.TracerWarning)]
    if traced:
        first = traced[0]
        what = str(first.message).split(". ")[0]
        more = f", and {len(traced) - 1} more" if len(traced) > 1 else ""
        warnings.warn(f"{first.filename}:{first.lineno}: {what}{more}: it stays as it is for these inputs", TenonWarning, stacklevel=6)


@contextlib.contextmanager
def _whole_attention() -> Iterator[None]:
    """Without the kernel that computes a whole layer of a transformer, which has no form in ONNX."""
    import torch

    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was)


def backend(
    graph: Any, inputs: Sequence[Any], *, options: dict[str, Any] | None = None, **more: Any
) -> Callable[..., Any]:
    """For ``torch.compile(model, backend="tenon")``.

    Sizes that torch leaves open stay open in the code. Weights become constants; where they have changed since, the graph is
    compiled again: by operations that torch counts, or by another memory, and not by writes through ``.data`` or NumPy.

    What cannot be exported or compiled runs in torch, and a :class:`tenon.TenonWarning` says why; so does what writes its inputs or
    its buffers, draws random numbers, takes numbers out of tensors, or returns views of its inputs. The first call runs in torch as
    well, and where results differ all calls do. What needs gradients runs in torch, too.

    Args:
        options: Those of :func:`tenon.compile`: ``torch.compile(model, backend="tenon", options={"threads": 1})``.
        more: The same, one by one.
    """
    try:
        return _Compiled(graph, inputs, {**(options or {}), **more})
    except Exception as error:  # The exporter ends in errors of many kinds, also of its own assertions.
        _leave(error)
        return graph.forward  # type: ignore[no-any-return]


def _leave(why: Any) -> None:
    text = str(why).strip().split("\n")[0] or type(why).__name__
    warnings.warn(f"a graph is left to torch: {text}", TenonWarning, stacklevel=3)


class _Compiled:
    """A graph of torch's as code over those of its arguments that are no weights."""

    def __init__(self, graph: Any, inputs: Sequence[Any], options: dict[str, Any]) -> None:
        self.graph = graph
        self.options = options
        self.arguments = _Arguments(graph, inputs)
        self.lock = threading.Lock()
        weights = [inputs[place] for place in self.arguments.weights]
        module = self.arguments.module(weights)
        if why := _effect(module, self.arguments.examples, weights, is_graph=True):
            raise ValueError(why)
        self.code = self._compile(weights)
        #: Whether the first call has shown that results are those of torch; none before.
        self.is_right: bool | None = None

    def _compile(self, weights: list[Any]) -> _Code:
        """Code, with the weights that are in it and their versions."""
        versions = [_Version(each) for each in weights]
        arguments = self.arguments
        module = arguments.module(weights)
        exported = _exported(module, arguments.examples, arguments.open_axes)
        made = compile(from_onnx(exported, name="graph.onnx"), **self.options)
        # The exporter leaves out inputs of which nothing is read but what it knows.
        places = [int(each.name.removeprefix("input")) for each in made.inputs]
        return _Code(versions, made, places)

    def __call__(self, *args: Any) -> Any:
        import torch

        weights = [args[place] for place in self.arguments.weights]
        tensors = [args[place] for place in self.arguments.tensors]
        needs_gradients = torch.is_grad_enabled() and any(each.requires_grad for each in weights + tensors)
        if needs_gradients or self.is_right is False:
            return self.graph(*args)
        if self.is_right is None:
            return self._first(args, weights, tensors)
        return self._code(weights)(tensors)

    def _first(self, args: tuple[Any, ...], weights: list[Any], tensors: list[Any]) -> Any:
        """The first call: torch says what is right."""
        expected = self.graph(*args)
        try:
            is_narrow = any(self.options.get(name) for name in ("precision", "weights"))
            why = _difference(self._code(weights)(tensors), expected, is_narrow)
        except Error as error:
            why = str(error)
        if why is not None:
            _leave(why)
        self.is_right = why is None
        return expected

    def _code(self, weights: list[Any]) -> _Code:
        """The code for these weights."""
        code = self.code
        if code.is_of(weights):
            return code
        with self.lock:
            if not self.code.is_of(weights):
                self.code = self._compile(weights)
            return self.code


class _Version:
    """A weight as it is: torch counts what is written to it."""

    def __init__(self, weight: Any) -> None:
        self.weight = weight
        self.count, self.data = weight._version, weight.data_ptr()

    def is_of(self, weight: Any) -> bool:
        return self.weight is weight and self.count == weight._version and self.data == weight.data_ptr()


class _Code:
    """What is compiled of a graph, for weights as they were."""

    def __init__(self, versions: list[_Version], made: Executable, places: list[int]) -> None:
        self.versions, self.made, self.places = versions, made, places

    def is_of(self, weights: list[Any]) -> bool:
        return all(version.is_of(weight) for version, weight in zip(self.versions, weights))

    def __call__(self, tensors: list[Any]) -> tuple[Any, ...]:
        import torch

        results = self.made(*(tensors[place] for place in self.places))
        results = results if isinstance(results, tuple) else (results,)
        return tuple(each if isinstance(each, torch.Tensor) else torch.from_dlpack(each) for each in results)


def _difference(results: tuple[Any, ...], expected: Any, is_narrow: bool) -> str | None:
    """In what results are other than those of torch: none where they are the same but for roundings."""
    import torch

    wanted = expected if isinstance(expected, (tuple, list)) else (expected,)
    if len(results) != len(wanted):
        return f"it has {len(results)} results, and {len(wanted)} in torch"
    for number, (result, want) in enumerate(zip(results, wanted)):
        if not isinstance(want, torch.Tensor):
            return f"result {number} is no tensor"
        if result.dtype != want.dtype or result.shape != want.shape:
            return f"result {number} is {result.dtype} of {tuple(result.shape)}, and {want.dtype} of {tuple(want.shape)} in torch"
        if not want.dtype.is_floating_point:
            if not torch.equal(result, want):
                return f"result {number} has other elements than in torch"
            continue
        result, want = result.double(), want.detach().double()
        part = 0.2 if is_narrow else 0.02 if _is_short(wanted[number]) else 1e-3
        bound = part * want[want.isfinite()].abs().max().item() if want.isfinite().any() else 0.0
        if not torch.allclose(result, want, rtol=part, atol=bound + 1e-6, equal_nan=True):
            return f"result {number} has other elements than in torch"
    return None


def _is_short(tensor: Any) -> bool:
    """Whether elements have less than 32 bits."""
    return bool(tensor.element_size() < 4)


def _storages(tensors: Iterable[Any]) -> set[int]:
    """The memory of tensors."""
    import torch

    plain = (each for each in tensors if isinstance(each, torch.Tensor) and each.layout == torch.strided)
    return {each.untyped_storage()._cdata for each in plain}


class _Effect(Exception):
    """What an operation does besides its results."""


def _effect(module: Any, examples: tuple[Any, ...], weights: list[Any], *, is_graph: bool = False) -> str | None:
    """What a module does besides computing results of its inputs; none if it does nothing.

    Of a graph of dynamo's, which stands for code that goes on with its results, that is also to take numbers out of tensors, which a
    trace has as constants, and to return views of what it is given.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    inputs, others = _storages(tree_leaves(examples)), _storages(weights)

    class Watch(TorchDispatchMode):
        """Looks at each operation before it runs, so that nothing is written."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if is_graph and func is torch.ops.aten._local_scalar_dense.default:
                raise _Effect("it takes a number out of a tensor, which would be a constant")
            schema = func._schema
            values = dict(zip((each.name for each in schema.arguments), args)) | kwargs
            written = [values.get(each.name) for each in schema.arguments if each.is_write]
            # This one has no word of what it writes.
            if schema.name.endswith("native_batch_norm") and values.get("training"):
                written += [values.get("running_mean"), values.get("running_var")]
            memory = _storages(tree_leaves(written))
            if memory & inputs:
                raise _Effect("it writes an input")
            if memory & others:
                raise _Effect("it writes a weight or a buffer")
            return func(*args, **kwargs)

    state = torch.get_rng_state()
    try:
        with torch.no_grad(), Watch():
            results = _storages(tree_leaves(module(*examples)))
    except _Effect as effect:
        return str(effect)
    finally:
        is_random = not torch.equal(state, torch.get_rng_state())
        torch.set_rng_state(state)
    if is_random:
        return "it draws random numbers"
    return "it returns a view of an input" if is_graph and results & (inputs | others) else None


class _Arguments:
    """What the arguments of a graph of torch's are: weights, tensors, and sizes, which follow from the tensors' shapes."""

    def __init__(self, graph: Any, inputs: Sequence[Any]) -> None:
        import torch

        self.graph = graph
        self.count = len(inputs)
        self.weights = [at for at, it in enumerate(inputs) if _is_weight(it)]
        # Torch hands out tensors of today's sizes, and says beside the graph which of them are open.
        holders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        inputs = [node.meta.get("example_value", it) for node, it in zip(holders, inputs)]
        #: The places of the tensors that are no weights.
        self.tensors = [
            at
            for at, it in enumerate(inputs)
            if isinstance(it, torch.Tensor) and at not in self.weights
        ]
        self.open_axes: OpenAxes = {}
        known: dict[str, tuple[int, int]] = {}
        for number, place in enumerate(self.tensors):
            if inputs[place].device.type != "cpu":
                raise ValueError(f"an input lies on {inputs[place].device}")
            for axis, extent in enumerate(inputs[place].shape):
                if isinstance(extent, torch.SymInt):
                    self.open_axes.setdefault(number, {})[axis] = f"size_{extent}"
                    known.setdefault(str(extent), (number, axis))
        #: For each argument that is a size, the tensor and the axis that say it.
        self.sizes: dict[int, tuple[int, int]] = {}
        for place in sorted({*range(self.count)} - {*self.tensors} - {*self.weights}):
            if str(inputs[place]) not in known:
                raise ValueError(f"no tensor's shape says the input {inputs[place]}")
            self.sizes[place] = known[str(inputs[place])]
        self.examples = tuple(_example(inputs[place]) for place in self.tensors)

    def module(self, weights: list[Any]) -> Any:
        """The graph as a module over its tensors alone."""
        import torch

        of = self

        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.body = of.graph
                self.training = of.graph.training
                for number, weight in enumerate(weights):
                    self.register_buffer(f"weight{number}", weight.detach(), persistent=False)

            def forward(self, *tensors: Any) -> Any:
                given: list[Any] = [None] * of.count
                for number, place in enumerate(of.weights):
                    given[place] = getattr(self, f"weight{number}")
                for number, place in enumerate(of.tensors):
                    given[place] = tensors[number]
                for place, (number, axis) in of.sizes.items():
                    given[place] = tensors[number].shape[axis]
                return self.body(*given)

        return Module()


def _is_weight(given: Any) -> bool:
    """Whether torch says that the tensor is a parameter or a buffer of a module."""
    import torch

    return isinstance(given, torch.nn.Parameter) or hasattr(given, "_dynamo_static_input_type")


def _example(tensor: Any) -> Any:
    """A tensor to trace with: one that torch only imagines holds nothing."""
    import torch

    shape: list[Any] = [
        extent.node.hint if isinstance(extent, torch.SymInt) else extent for extent in tensor.shape
    ]
    return torch.zeros(shape, dtype=tensor.dtype)
