"""Models of torch.

A module is exported to ONNX by torch itself, and compiled from there; weights become constants.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
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

    Args:
        module: A ``torch.nn.Module``; its mode is the same afterwards.
        inputs: A tuple of example tensors, or one.
        open_axes: Which axes stay open: ``{0: {0: "batch"}}``.

    Raises:
        torch.onnx.errors.OnnxExporterError: torch cannot export it.
    """
    modes = [(each, each.training) for each in module.modules()]
    try:
        return _exported(module.eval(), inputs, open_axes)
    finally:
        for each, mode in modes:
            each.training = mode


def export_program(program: Any) -> bytes:
    """The ONNX model of a ``torch.export.ExportedProgram``, as bytes. Its dynamic dimensions stay open, one extent by one name.

    Raises:
        TypeError: It takes keyword arguments, or what is no tensor.
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

    return _exported(Module(), tuple(inputs), {place: axes for place, axes in open_axes.items() if axes})


def _exported(module: Any, inputs: Any, open_axes: OpenAxes | None) -> bytes:
    """The same in the mode in which the module is."""
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
        # The exporter warns of what is traced; what cannot be exported is an error.
        warnings.simplefilter("ignore")
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
    compiled again. What cannot be exported or compiled runs in torch, and a :class:`tenon.TenonWarning` says why. What needs
    gradients runs in torch as well.

    Args:
        options: Those of :func:`tenon.compile`: ``torch.compile(model, backend="tenon", options={"threads": 1})``.
        more: The same, one by one.
    """
    import torch

    try:
        return _Compiled(graph, inputs, {**(options or {}), **more})
    except (Error, RuntimeError, TypeError, ValueError, torch.onnx.errors.OnnxExporterError) as error:
        why = str(error).strip().split("\n")[0]
        warnings.warn(f"a graph is left to torch: {why}", TenonWarning, stacklevel=2)
        return graph.forward  # type: ignore[no-any-return]


class _Compiled:
    """A graph of torch's as code over those of its arguments that are no weights."""

    def __init__(self, graph: Any, inputs: Sequence[Any], options: dict[str, Any]) -> None:
        self.graph = graph
        self.options = options
        self.arguments = _Arguments(graph, inputs)
        self.lock = threading.Lock()
        self.code = self._compile([inputs[place] for place in self.arguments.weights])

    def _compile(self, weights: list[Any]) -> tuple[list[tuple[Any, int]], Executable]:
        """Code, with the weights that are in it and their versions."""
        versions = [(each, each._version) for each in weights]
        arguments = self.arguments
        module = arguments.module(weights)
        exported = _exported(module, arguments.examples, arguments.open_axes)
        return versions, compile(from_onnx(exported, name="graph.onnx"), **self.options)

    def __call__(self, *args: Any) -> Any:
        import torch

        weights = [args[place] for place in self.arguments.weights]
        tensors = [args[place] for place in self.arguments.tensors]
        if torch.is_grad_enabled() and any(each.requires_grad for each in weights + tensors):
            return self.graph(*args)
        results = self._code(weights)(*tensors)
        return results if isinstance(results, tuple) else (results,)

    def _code(self, weights: list[Any]) -> Executable:
        """The code for these weights."""
        known, made = self.code
        if _are_same(known, weights):
            return made
        with self.lock:
            known, made = self.code
            if not _are_same(known, weights):
                self.code = self._compile(weights)
            return self.code[1]


def _are_same(known: list[tuple[Any, int]], weights: list[Any]) -> bool:
    return all(
        weight is given and given._version == version
        for (weight, version), given in zip(known, weights)
    )


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
