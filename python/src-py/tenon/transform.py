"""The passes of all plugins, by their names: ``tenon.transform.FoldConstant()``.

They are made from what the plugins say of their passes; options are keyword arguments. A name that several prefixes share is
written with its own: ``tenon.transform.pass_("relax.FoldConstant")``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._context import PassContext
from ._passes import (
    Pass,
    PassInfo,
    PluginPass,
    Sequential,
    _infos,
    function_pass,
    module_pass,
    prim_func_pass,
)
from ._session import Session

__all__ = [
    "Pass",
    "PassContext",
    "PassInfo",
    "Sequential",
    "function_pass",
    "module_pass",
    "pass_",
    "prim_func_pass",
]


def pass_(name: str, **options: Any) -> Pass:
    """The pass of this name or alias, with options.

    Raises:
        PipelineError: There is no such pass, or it has no such option.
    """
    made = PluginPass(name, options)
    made._in_session(Session.default())
    return made


def __getattr__(name: str) -> Callable[..., Pass]:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    info = _infos(Session.default()).get(name)
    if info is None:
        raise AttributeError(f"no plugin has a pass `{name}`; `tenon passes list` shows them all")

    def create(**options: Any) -> Pass:
        return pass_(info.name, **options)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = info.summary
    return create


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in _infos(Session.default()) if "." not in name)})
