"""Passes: those of plugins, sequences, and those that are written in Python."""

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._context import PassContext, option_text
from ._module import Function, Module
from ._session import Session



@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass without running it."""

    name: str
    opt_level: int = 0
    required: list[str] = field(default_factory=list)
    summary: str = ""
    phase: str = ""
    kind: str = ""
    plugin: str = ""
    version: str = ""


class Pass:
    """Makes a module of a module: ``module = a_pass(module)``, as the context says that is entered."""

    info: PassInfo

    def __call__(self, module: Module) -> Module:
        if not isinstance(module, Module):
            raise TypeError(f"a pass takes a tenon.Module, not {type(module).__name__}")
        context = PassContext.current()
        session = module._session
        options = context._options(self._in_session(session))
        instruments = context._told(session)
        return Module(
            session._core.lower(module._core, context.target, options, instruments), session
        )

    def _in_session(self, session: Session) -> _core.Pass | str:
        """The pass as the host has it, or the text of a pipeline."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<tenon pass {self.info.name}>"


class PluginPass(Pass):
    """A pass of a plugin, by its name or an alias, with options."""

    def __init__(self, name: str, options: dict[str, Any] | None = None) -> None:
        given = ", ".join(f"{key}={option_text(value)}" for key, value in (options or {}).items())
        self._name = name
        self._text = f"{name}{{{given}}}" if given else name

    @functools.cached_property
    def info(self) -> PassInfo:  # type: ignore[override]
        return find_info(Session.default(), self._name)

    def _in_session(self, session: Session) -> _core.Pass:
        return session._core.named_pass(self._text)

    def __repr__(self) -> str:
        return f"<tenon pass {self._text}>"


class Sequential(Pass):
    """Passes one after the other, as one pass.

    Args:
        passes: Passes, names of passes with their options, or the text of a whole pipeline: ``"a, b{opt=1}"``.
        opt_level: Its own level: 0 runs always.
        name: Its name for instruments and lists.
        required: Passes that it needs, by name.
    """

    def __init__(
        self,
        passes: Iterable[Pass | str] | str = (),
        opt_level: int = 0,
        name: str = "sequential",
        required: Iterable[str] = (),
    ) -> None:
        self.passes: list[Pass | str] | str = passes if isinstance(passes, str) else list(passes)
        self.info = PassInfo(name=name, opt_level=opt_level, required=list(required))

    def _in_session(self, session: Session) -> _core.Pass | str:
        if isinstance(self.passes, str):
            return self.passes
        cores = [_core_of(each, session) for each in self.passes]
        made = _core.Pass.sequential(cores)
        return made.with_info(self.info.name, self.info.opt_level, self.info.required)


def _core_of(given: Pass | str, session: Session) -> _core.Pass:
    if isinstance(given, str):
        return session._core.named_pass(given)
    made = given._in_session(session)
    if isinstance(made, str):
        raise TypeError(
            f"the text {made!r} is a whole pipeline: within a list, each pass stands for itself"
        )
    return made


class PythonPass(Pass):
    """A pass whose work is a function of Python's; made by the decorators below."""

    def __init__(self, kind: str, body: Callable[..., Any], info: PassInfo) -> None:
        self._kind = kind
        self._body = body
        self.info = info
        functools.update_wrapper(self, body, updated=())

    def _in_session(self, session: Session) -> _core.Pass:
        context = PassContext.current()
        scope = contextvars.copy_context()

        def on_module(core: _core.Module) -> Any:
            made = scope.copy().run(self._body, Module(core, session), context)
            return made._core if isinstance(made, Module) else made

        def on_function(core: _core.Function, within: _core.Module) -> Any:
            module = Module(within, session)
            made = scope.copy().run(self._body, Function("function", core), module, context)
            return made._core if isinstance(made, Function) else made

        name = self.info.name
        if self._kind == "module":
            made = _core.Pass.of_module(name, on_module)
        else:
            made = _core.Pass.of_functions(name, self._kind == "prim", on_function)
        return made.with_info(None, self.info.opt_level, self.info.required)


def _decorate(
    kind: str,
    method: str,
    given: Any,
    opt_level: int | None,
    name: str | None,
    required: Iterable[str],
) -> Any:
    if opt_level is None:
        raise ValueError("opt_level is missing: the lowest level at which the pass runs")

    def made(body: Any) -> Any:
        info = PassInfo(
            name=name or body.__name__,
            opt_level=opt_level,
            required=list(required),
            summary=(inspect.getdoc(body) or "").split("\n")[0],
            kind=kind,
        )
        if inspect.isclass(body):
            return _class_of(kind, method, body, info)
        return PythonPass(kind, body, info)

    return made(given) if given is not None else made


def _class_of(kind: str, method: str, body: type, info: PassInfo) -> Callable[..., PythonPass]:
    """A class of passes: each object of it is a pass, whose work is the object's method."""
    if not callable(getattr(body, method, None)):
        raise TypeError(f"class {body.__name__} has no method `{method}`")

    @functools.wraps(body, updated=())
    def create(*args: Any, **options: Any) -> PythonPass:
        return PythonPass(kind, getattr(body(*args, **options), method), info)

    return create


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] = (),
) -> Any:
    """Makes a pass of a function ``(module, context) -> Module``, or of a class with ``transform_module``.

    >>> @tenon.module_pass(opt_level=2)
    ... def without_helpers(module, context):
    ...     return module.without(*[name for name in module if name.startswith("helper")])
    """
    return _decorate("module", "transform_module", pass_func, opt_level, name, required)


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] = (),
) -> Any:
    """Makes a pass over each graph function of ``(function, module, context) -> Function``, or of a class with
    ``transform_function``."""
    return _decorate("function", "transform_function", pass_func, opt_level, name, required)


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] = (),
) -> Any:
    """Makes a pass over each tensor program of ``(function, module, context) -> Function``, or of a class with
    ``transform_function``."""
    return _decorate("prim", "transform_function", pass_func, opt_level, name, required)


@functools.cache
def _infos(session: Session) -> dict[str, PassInfo]:
    infos: dict[str, PassInfo] = {}
    for each in session.passes():
        record = each["pass"]
        info = PassInfo(
            name=record["pass"],
            opt_level=record["opt_level"],
            required=[str(it) for it in record["requires"]],
            summary=record["doc"].split("\n")[0],
            phase=record["phase"],
            kind=record["kind"],
            plugin=each["plugin"],
            version=each["version"],
        )
        for alias in [record["pass"], *record["aliases"]]:
            infos.setdefault(alias, info)
    for name, info in list(infos.items()):
        infos.setdefault(name.rsplit(".", 1)[-1], info)
    return infos


def find_info(session: Session, name: str) -> PassInfo:
    """What a pass says of itself; by its name, an alias, or the last part of one."""
    info = _infos(session).get(name)
    if info is None:
        # The host says what there is instead.
        return PassInfo(name=session._core.named_pass(name).name)
    return info
