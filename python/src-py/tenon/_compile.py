"""From models to code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _core
from ._context import PassContext
from ._executable import Executable, Folder
from ._module import Module, from_onnx, parse, read
from ._passes import Pass
from ._session import Session, StrPath


def compile(
    model: Any,
    *,
    inputs: Any = None,
    target: str = "native",
    dims: Mapping[str, int | tuple[int, int | None]] | None = None,
    pipeline: str | Pass | None = "auto",
    function: str | None = None,
    opt_level: int = 3,
    threads: int = 0,
    tune_db: StrPath | None = None,
    validate: bool = False,
    precision: str | None = None,
    weights: str | None = None,
    profile: bool = False,
    cache: StrPath | None = None,
    link: Sequence[StrPath] = (),
    session: Session | None = None,
) -> Executable:
    """Compiles a model.

    Args:
        model: The path of an ONNX file or of a module's text; an ``onnx.ModelProto``; a :class:`Module`; the text of a
            module; a ``torch.nn.Module`` with ``inputs``; or a ``torch.export.ExportedProgram``.
        inputs: Example inputs of a torch module, which it is exported with.
        target: What it is for: ``native`` is this machine, ``tenon targets list`` shows others. With a ``/`` between, several
            processors, of which the best runs that this machine can run.
        dims: What is known of open dimensions, by their names: the number that one of an ONNX model is, or the range of one that
            stays open, both ends included: ``{"n": (1, 512)}``, or ``(1, None)`` without an end. Each call says by the shapes of its
            inputs what they are; one outside of its range is an error.
        pipeline: ``auto``, the name or the text of a pipeline, a pass, or None for a module that is lowered already.
        function: The function that is compiled; by default ``main``, or the only public one.
        opt_level: Passes of a higher level do not run. A :class:`PassContext` that is entered says it instead, with its lists,
            options and instruments.
        threads: How many threads a run uses; 0 for as many as the process may use at once.
        tune_db: What :func:`tune` has found: a file.
        validate: Whether what the code computes is compared with the reference evaluator.
        precision: ``f16`` or ``bf16``: what gains by it is computed in that, and the rest in f32, as
            ``transform.ToMixedPrecision`` decides. Inputs and outputs stay what they are.
        weights: How constant weights of products are stored: ``int8``, ``int4``, or with so many elements that share a scale,
            ``int4:32``.
        profile: Whether :meth:`Executable.profile` can tell how long each kernel takes.
        cache: A folder in which libraries are kept, as by ``tenon compile --cache``: the same model, plugins, options and target
            are compiled once. Not with ``profile``, a pass as the pipeline, or instruments, and not to be exported.
        link: Objects, archives and shared libraries that define external functions which the model calls.

    Raises:
        ModelError: The model cannot be read.
        PassError: A pass fails.
        CompileError: No code can be made.
    """
    is_file = cache is not None and inputs is None and _is_path(model)
    numbers, ranges = _numbers_and_ranges(dims)
    module = None if is_file else _module(model, inputs, numbers, session)
    home = module._session if module is not None else session or Session.default()
    chosen = pipeline._in_session(home) if isinstance(pipeline, Pass) else pipeline
    context = _entered() or PassContext(opt_level=opt_level)
    options = context._options(chosen)
    options["validate"] = validate
    options["profile"] = profile
    options |= {key: value for key, value in (("precision", precision), ("weights", weights)) if value is not None}
    if tune_db is not None:
        options["tune_db"] = Path(os.fspath(tune_db))
    if link:
        options["link"] = [Path(os.fspath(path)) for path in link]
    if function is not None:
        options["function"] = function
    if ranges:
        options["ranges"] = ranges
    instruments = context._told(home)
    if module is not None and cache is None:
        compiled = Executable(home._core.compile(module._core, target, options, instruments, threads))
        if inputs is not None and target == "native":
            from .torch import check

            check(compiled, model, inputs, is_narrow=precision is not None or weights is not None)
        return compiled
    if profile or instruments or isinstance(pipeline, Pass):
        raise TypeError("a cache keeps nothing that is compiled with profile, instruments, or a pass as the pipeline")
    folder = Folder()
    path, bound = folder.path / "model.ir", {}
    if module is not None:
        module.save(path)
    else:
        path, bound = Path(os.fspath(model)), numbers
    options["cache"] = None if cache is None else Path(os.fspath(cache))
    library = folder.path / "model.so"
    made = home._core.compile_file(path, bound, target, options, library, threads)
    return Executable(made, folder=folder)


def load(
    path: StrPath,
    *,
    threads: int = 0,
    processor: str | None = None,
    weights_file: StrPath | None = None,
    session: Session | None = None,
) -> Executable:
    """Opens a library that ``tenon compile`` or :meth:`Executable.export_library` has written, or an executable of
    :meth:`Executable.save`.

    Its code runs in this process: open those that you trust. Other files are refused before anything of them runs. An executable
    that was saved is not opened where somebody else can write the file, or a folder above it; it can be exported, as one that was
    compiled here.

    Args:
        threads: How many threads a run uses; 0 for as many as the process may use at once.
        processor: Of a library for several processors the one whose code runs, ``x86-64-v2``; by default the best that this machine
            can run.
        weights_file: The weights of a library that does not hold them, where they do not lie beside it.
        session: What an executable that was saved is exported with.

    Raises:
        RunError: It is no library of Tenon's, has no code that this machine can run, or needs weights that are not there.
        CompileError: It is no executable that was saved, or is not loaded.
    """
    path = Path(os.fspath(path))
    if _core.Executable.is_saved(path):
        if processor is not None or weights_file is not None:
            raise TypeError("processor and weights_file are of libraries, and this is an executable that was saved")
        return Executable((session or Session.default())._core.load(path, threads))
    weights = None if weights_file is None else Path(os.fspath(weights_file))
    return Executable(_core.Executable.open(path, threads, processor, weights))


def _numbers_and_ranges(
    dims: Mapping[str, int | tuple[int, int | None]] | None,
) -> tuple[dict[str, int], dict[str, tuple[int, int | None]]]:
    numbers: dict[str, int] = {}
    ranges: dict[str, tuple[int, int | None]] = {}
    for name, value in (dims or {}).items():
        if not isinstance(value, tuple):
            numbers[name] = value
            continue
        if len(value) != 2 or value[0] < 0 or (value[1] is not None and value[1] < value[0]):
            raise ValueError(f"dims[{name!r}] is {value}: a range is (least, most) or (least, None), both ends included")
        ranges[name] = value
    return numbers, ranges


def _entered() -> PassContext | None:
    from ._context import _CURRENT

    return _CURRENT.get()


def _module(
    model: Any, inputs: Any, dims: Mapping[str, int] | None, session: Session | None
) -> Module:
    if hasattr(model, "graph_signature") and hasattr(model, "range_constraints"):
        from .torch import export_program

        return from_onnx(export_program(model), dims, name="program.onnx", session=session)
    if inputs is not None:
        from .torch import export

        return from_onnx(export(model, inputs), dims, name=f"{type(model).__name__}.onnx", session=session)
    if isinstance(model, Module):
        return _without_dims(model, dims)
    if _is_path(model):
        return read(model, dims, session=session)
    if isinstance(model, str):
        return _without_dims(parse(model, session=session), dims)
    if isinstance(model, bytes) or hasattr(model, "SerializeToString"):
        return from_onnx(model, dims, session=session)
    if type(model).__module__.split(".")[0] == "torch" or hasattr(model, "named_parameters"):
        raise TypeError("a torch module is exported with example inputs: compile(model, inputs=(x,))")
    raise TypeError(
        f"a model is a path, an onnx.ModelProto, a tenon.Module, the text of one, or a torch module; not {type(model).__name__}"
    )


def _is_path(model: Any) -> bool:
    """Whether it is a path, and not the text of a module."""
    is_text = isinstance(model, str) and ("\n" in model or "{" in model)
    return isinstance(model, (str, os.PathLike)) and not is_text


def _without_dims(module: Module, dims: Mapping[str, int] | None) -> Module:
    if dims:
        raise TypeError("dims are for ONNX models: their open dimensions are bound while they are read")
    return module
