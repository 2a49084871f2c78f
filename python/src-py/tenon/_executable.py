"""Compiled models."""

from __future__ import annotations

import html
import json
import os
import shutil
import statistics
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core
from ._errors import CompileError
from ._session import StrPath


@dataclass(frozen=True)
class TensorSpec:
    """An input or an output: ``shape`` has an integer for each extent that is known, and text for each other."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class Benchmark:
    """Seconds of a run: one number for each measurement, which is the mean of ``number`` runs."""

    seconds: list[float]
    number: int

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)

    @property
    def min(self) -> float:
        return min(self.seconds)

    @property
    def max(self) -> float:
        return max(self.seconds)

    @property
    def stdev(self) -> float:
        return statistics.stdev(self.seconds) if len(self.seconds) > 1 else 0.0

    def __str__(self) -> str:
        low, high = self.min * 1e3, self.max * 1e3
        return f"median {self.median * 1e3:.4g} ms ({low:.4g} to {high:.4g}, {len(self.seconds)} × {self.number} runs)"


@dataclass(frozen=True)
class KernelTime:
    """A call of a kernel: milliseconds of a run, what it came from, and the rule that scheduled it, if one did."""

    kernel: str
    ms: float
    came_from: str
    rule: str | None


@dataclass(frozen=True)
class Profile:
    """How long each call of a kernel took, in the order of the calls. ``str()`` is a table, the longest first."""

    kernels: list[KernelTime]

    @property
    def ms(self) -> float:
        """All of them together."""
        return sum(each.ms for each in self.kernels)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Milliseconds, percents, the kernel, and what it came from; the longest first."""
        whole = self.ms or 1.0
        longest = sorted(self.kernels, key=lambda each: -each.ms)
        return [
            (f"{it.ms:.3f}", f"{100 * it.ms / whole:.1f}", it.kernel, it.came_from) for it in longest
        ]

    def __str__(self) -> str:
        rows = [("ms", "%", "kernel", "from"), *self.rows()]
        width = max(len(row[2]) for row in rows)
        lines = (f"{ms:>8}  {share:>5}  {kernel:{width}}  {of}" for ms, share, kernel, of in rows)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        def cells(row: tuple[str, ...], tag: str) -> str:
            return "".join(f"<{tag}>{html.escape(each)}</{tag}>" for each in row)

        rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in self.rows())
        return f"<table><tr>{cells(('ms', '%', 'kernel', 'from'), 'th')}</tr>{rows}</table>"


class Folder:
    """A temporary folder that is gone with it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tenon-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class State:
    """What a model updates in place from call to call, as the caches of a decoder: :meth:`Executable.state` makes it.

    One call at a time may have it. It is longer after a call that has put something behind what there was; after a call that failed
    it has the shapes that it had.
    """

    def __init__(self, core: _core.State, kind: Any) -> None:
        self._core = core
        self._kind = kind

    def arrays(self) -> list[Any]:
        """Copies of the arrays as they are now, in the order of the inputs."""
        return list(self._kind(self._core.arrays()))

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return repr(self._core)


class Executable:
    """A compiled model.

    It is called with one array for each input, in order or by name: NumPy arrays, tensors of torch, and whatever else has
    ``__dlpack__`` or ``__array_interface__``, in the memory of the CPU; numbers for inputs without axes. They are read where
    they lie, if their elements lie one behind the other; ``copied_inputs`` counts those that had to be copied. Results are
    arrays of the kind that was given: NumPy's, torch's, else :class:`tenon.Array`; each in memory of its own. One result
    stands alone, several are a tuple.

    A model of several functions has each by its name, ``executable["decode"]``, which is an executable as well: it shares
    code, constants and threads with the others. What is called without a name is ``main``, or the only function.

    Threads may call it at once. The interpreter is released while it runs.
    """

    def __init__(self, core: _core.Executable, library: bytes | None = None, folder: Folder | None = None) -> None:
        self._core = core
        self._library = library
        # Where its library lies goes when nobody runs it any more.
        self._folder = folder
        info = json.loads(core.signature())
        self.inputs: list[TensorSpec] = [_spec(each) for each in info["inputs"]]
        self.outputs: list[TensorSpec] = [_spec(each) for each in info["outputs"]]
        #: The target that the code was made for.
        self.target: str = info["target"]
        #: The name of its function.
        self.name: str = info["function"]
        #: The names of all functions of the model.
        self.functions: list[str]
        self.functions, has_default = core.functions()
        self._is_named = has_default or self.name != self.functions[0]
        #: The inputs that :meth:`run_in_place` updates, each with the output that it is given back as.
        self.in_place: list[tuple[str, str]] = [
            (self.inputs[given].name, self.outputs[back].name) for given, back in info.get("in_place", [])
        ]
        updated = {given for given, _ in info.get("in_place", [])}
        self._others = [spec for at, spec in enumerate(self.inputs) if at not in updated]
        self._updated = [self.inputs[given] for given, _ in info.get("in_place", [])]

    def __getitem__(self, name: str) -> Executable:
        """The function of a name."""
        if name not in self.functions:
            have = ", ".join(f"`{each}`" for each in self.functions)
            raise KeyError(f"there is no function `{name}`; the model has {have}")
        function = Executable(self._core.function(name), self._library, self._folder)
        function._is_named = True
        return function

    def _check_named(self) -> None:
        if not self._is_named:
            have = ", ".join(f'["{each}"]' for each in self.functions)
            raise TypeError(f"the model has no `main`: say which function is meant, one of {have}")

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._run(args, named, None)

    def run_until(self, cancelled: _core.Flag, *args: Any, **named: Any) -> Any:
        """Runs it like a call, until another thread sets the flag, ``flag = tenon.Flag(); flag.set()``. It ends before its next
        kernel, or in the next trip of a loop.

        Raises:
            RunError: The call was cancelled.
        """
        return self._run(args, named, cancelled)

    def state(self, *args: Any, room: int | None = None, **named: Any) -> State:
        """Memory for the inputs that are updated in place, from copies of these arrays, in order or by name.

        Args:
            room: How long those may become that become longer.

        Raises:
            RunError: The model updates no input in place, or an array does not fit.
        """
        self._check_named()
        given = self._arranged(args, named, self._updated)
        return State(self._core.state([_readable(each) for each in given], room), _kind(given))

    def run_in_place(
        self, state: State, *args: Any, cancelled: _core.Flag | None = None, **named: Any
    ) -> Any:
        """Runs it on a state, which it updates, and on arrays for the other inputs. The results are the other outputs.

        Args:
            state: What :meth:`state` of this model, or of another function with the same inputs, has made.
            cancelled: What stops the call; what is updated may then be so in part.

        Raises:
            RunError: The call fails, or another one has the state.
        """
        self._check_named()
        given = self._arranged(args, named, self._others)
        readable = [_readable(each) for each in given]
        results = self._core.run_in_place(readable, state._core, cancelled)
        return _one_or_all((_kind(given) if given else state._kind)(results))

    def _run(self, args: tuple[Any, ...], named: dict[str, Any], flag: _core.Flag | None) -> Any:
        self._check_named()
        given = self._arranged(args, named) if named else args
        results = self._core.run([_readable(each) for each in given], flag)
        return _one_or_all(_kind(given)(results))

    def benchmark(
        self, *args: Any, number: int | None = None, repeat: int = 10, **named: Any
    ) -> Benchmark:
        """Measures runs on these inputs.

        Args:
            number: Runs in a measurement; by default so many that one takes a twentieth of a second.
            repeat: Measurements.
        """
        self._check_named()
        given = [_readable(each) for each in self._arranged(args, named)]
        if number is None:
            once = self._core.time(given, 1, 3)
            number = max(1, round(0.05 / max(min(once), 1e-7)))
        return Benchmark(self._core.time(given, number, repeat), number)

    def profile(self, *args: Any, number: int = 10, **named: Any) -> Profile:
        """Times each call of a kernel on these inputs; the model has to be compiled with ``profile=True``.

        Args:
            number: Runs; times are their means.

        Raises:
            RunError: The code takes no times.
        """
        given = [_readable(each) for each in self._arranged(args, named)]
        each = json.loads(self._core.profile(given, max(1, number)))
        return Profile([KernelTime(it["kernel"], it["ms"], it["from"], it["rule"]) for it in each])

    def export_library(
        self,
        path: StrPath,
        *,
        form: str = "library",
        prefix: str | None = None,
        weights_file: StrPath | bool = False,
    ) -> None:
        """Writes a shared library, or an object that a C program is linked with, and its C header beside it.

        Args:
            form: ``library`` or ``object``.
            prefix: What the names of its C functions begin with; by default the file's name.
            weights_file: Whether the constants lie in a file beside it, which it maps: of its name, ending in ``.weights``, or
                of the name that is given.

        Raises:
            CompileError: It cannot be written, or was loaded from a library.
        """
        if form not in ("library", "object"):
            raise ValueError(f"form is 'library' or 'object', not {form!r}")
        if self._folder is not None and self._library is None:
            raise CompileError("what a cache has is a library already: compile the model without `cache` to export it")
        path = Path(os.fspath(path))
        if isinstance(weights_file, bool):
            weights = path.with_suffix(".weights") if weights_file else None
        else:
            weights = Path(os.fspath(weights_file))
        self._core.export(path, form == "object", prefix, weights)

    def save(self, path: StrPath) -> None:
        """Writes all that it is made of to one file: :func:`tenon.load` opens it, with all its functions, and it can be exported
        then, without compiling anything again.

        Raises:
            CompileError: It cannot be written, was loaded from a library, or was compiled with ``profile=True``.
        """
        if self._folder is not None and self._library is None:
            raise CompileError("what a cache has is a library already: compile the model without `cache` to save it")
        self._core.save(Path(os.fspath(path)))

    @property
    def threads(self) -> int:
        """How many threads a run uses."""
        return self._core.threads

    @property
    def copied_inputs(self) -> int:
        """How many inputs were copied so far, because their elements did not lie one behind the other."""
        return self._core.copied_inputs

    def _arranged(
        self, args: tuple[Any, ...], named: dict[str, Any], specs: list[TensorSpec] | None = None
    ) -> list[Any]:
        """The arguments in the order of the inputs, or of some of them."""
        specs = self.inputs if specs is None else specs
        places = {spec.name: place for place, spec in enumerate(specs)}
        names = ", ".join(f"`{spec.name}`" for spec in specs) or "none"
        missing = object()
        given = list(args) + [missing] * (len(specs) - len(args))
        for name, value in named.items():
            place = places.get(name)
            if place is None:
                raise TypeError(f"there is no input `{name}`; the model has {names}")
            if given[place] is not missing:
                raise TypeError(f"input `{name}` is given twice")
            given[place] = value
        for spec, value in zip(specs, given):
            if value is missing:
                raise TypeError(f"input `{spec.name}` is missing; the model has {names}")
        return given

    def __repr__(self) -> str:
        def texts(specs: list[TensorSpec]) -> str:
            return ", ".join(
                f"{spec.name}: {spec.dtype}[{', '.join(map(str, spec.shape))}]" for spec in specs
            )

        return f"<tenon.Executable ({texts(self.inputs)}) -> ({texts(self.outputs)})>"

    def __reduce__(self) -> tuple[Any, ...]:
        name = self.name if self._is_named else None
        weights = self._core.weights_path
        return _of_bytes, (
            self._bytes(),
            self.threads,
            name,
            None if weights is None else Path(weights).read_bytes(),
        )

    def _bytes(self) -> bytes:
        """Its library."""
        if self._library is not None:
            return self._library
        if self._core.path is not None:
            return Path(self._core.path).read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "model.so"
            self.export_library(library)
            return library.read_bytes()


def _of_bytes(
    library: bytes, threads: int, name: str | None = None, weights: bytes | None = None
) -> Executable:
    """The executable of a library in memory, whose file is gone once it is open; that of its weights stays as long as it."""
    if weights is not None:
        kept = Folder()
        path, beside = kept.path / "model.so", kept.path / "model.weights"
        path.write_bytes(library)
        beside.write_bytes(weights)
        executable = Executable(_core.Executable.open(path, threads, None, beside), library, kept)
        return executable if name is None else executable[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.so"
        path.write_bytes(library)
        executable = Executable(_core.Executable.open(path, threads), library)
        return executable if name is None else executable[name]


def _one_or_all(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def _spec(info: dict[str, Any]) -> TensorSpec:
    return TensorSpec(info["name"], info["dtype"], tuple(info["shape"]))


def _module_of(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def _readable(value: Any) -> Any:
    """The array as the host can read it: torch refuses to hand out what it computes gradients of."""
    if _module_of(value) == "torch" and getattr(value, "requires_grad", False):
        return value.detach()
    return value


def _kind(given: Any) -> Any:
    """What results are made: arrays of the kind that was given."""
    kinds = {_module_of(each) for each in given if not isinstance(each, (bool, int, float))}
    if kinds == {"torch"}:
        return _to_torch
    return _to_numpy if kinds == {"numpy"} else list


def _to_numpy(results: list[_core.Array]) -> list[Any]:
    import numpy

    def made(result: _core.Array) -> Any:
        if result.dtype == "bf16":
            import ml_dtypes

            return numpy.asarray(result).view(ml_dtypes.bfloat16)
        return numpy.asarray(result)

    return [made(each) for each in results]


def _to_torch(results: list[_core.Array]) -> list[Any]:
    from torch.utils.dlpack import from_dlpack

    return [from_dlpack(each) for each in results]
