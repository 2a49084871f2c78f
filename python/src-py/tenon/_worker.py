"""Runs the passes of a file for a host that starts an interpreter for it; not for people.

The host says which file, and with which digest; it reads the manifest in the file's first comment, and asks for passes by the names
that stand there. What a pass raises is its error, with the traceback.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _core
from ._context import PassContext
from ._module import Function, Module
from ._passes import PythonPass
from ._session import Session

#: Under this name the file is a module, so that its classes can be pickled.
_MODULE = "__tenon_plugin__"

_METHODS = {"module": "transform_module", "function": "transform_function", "prim": "transform_function"}


def main() -> None:
    """What the interpreter does: its last two arguments are the file and its digest."""
    file, sha256 = sys.argv[-2:]
    _core.serve(Path(file), sha256, functools.partial(_load, file))


def _load(file: str, text: str, manifest: str) -> list[Callable[..., Any]]:
    """Runs the text, and gives what each pass of the manifest does."""
    module = types.ModuleType(_MODULE)
    module.__file__ = file
    sys.modules[_MODULE] = module
    exec(compile(text, file, "exec"), module.__dict__)
    return [_body(record, vars(module)) for record in json.loads(manifest)["passes"]]


def _body(record: dict[str, Any], names: dict[str, Any]) -> Callable[..., Any]:
    made = functools.partial(_made, _found(record, names), record)
    if record["kind"] == "module":
        return functools.partial(_on_module, made)
    return functools.partial(_on_function, made)


def _on_module(made: Callable[[str], Any], core: _core.Module, options: str) -> Any:
    result = made(options)(Module(core, Session.default()), PassContext.current())
    return result._core if isinstance(result, Module) else result


def _on_function(
    made: Callable[[str], Any], core: _core.Function, within: _core.Module, options: str
) -> Any:
    module = Module(within, Session.default())
    result = made(options)(Function("function", core), module, PassContext.current())
    return result._core if isinstance(result, Function) else result


def _found(record: dict[str, Any], names: dict[str, Any]) -> Any:
    """What the file calls a pass: a pass of that name, or a function or a class named after the last part of it."""
    full = record["pass"]
    for each in names.values():
        if isinstance(each, PythonPass) and each.info.name == full:
            return each
    last = re.sub(r"\W", "_", full.rsplit(".", 1)[-1])
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()
    for name in (last, snake):
        if callable(names.get(name)):
            return names[name]
    raise LookupError(f"the file lists the pass `{full}`, and defines no function or class `{snake}` or `{last}`")


def _made(found: Any, record: dict[str, Any], options: str) -> Callable[..., Any]:
    """The function of a pass that runs with these options: they are its keyword arguments, or those of its class."""
    given = json.loads(options)
    kind = record["kind"]
    if inspect.isclass(found):
        return _method(found(**given), kind)
    if inspect.isfunction(found) and inspect.isclass(getattr(found, "__wrapped__", None)):
        found, given = found(**given), {}
    if isinstance(found, PythonPass):
        if found._kind != kind:
            raise TypeError(f"the file says that `{record['pass']}` is of the kind {kind}, and it is one of {found._kind}")
        found = found._body
    return functools.partial(found, **given)


def _method(made: Any, kind: str) -> Callable[..., Any]:
    method: Callable[..., Any] | None = getattr(made, _METHODS[kind], None)
    if method is None:
        raise TypeError(f"class {type(made).__name__} has no method `{_METHODS[kind]}`")
    return method
