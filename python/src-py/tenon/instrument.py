"""What watches passes."""

from __future__ import annotations

import inspect
import sys
from typing import Any, TextIO

from . import _core
from ._module import Module
from ._passes import PassInfo

_METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


class PassInstrument:
    """What watches passes. A subclass has those of the five methods that it wants; the others are not called.

    * ``enter_pass_ctx()`` and ``exit_pass_ctx()``: when a :class:`tenon.PassContext` is entered and left.
    * ``should_run(module, info) -> bool``: whether a pass may run; not asked for passes that the context requires.
    * ``run_before_pass(module, info)`` and ``run_after_pass(module, info)``: around each pass that runs.
    """


def pass_instrument(given: type | None = None) -> Any:
    """Makes a class with some of the five methods an instrument: each object of it is one.

    >>> @tenon.instrument.pass_instrument
    ... class Count:
    ...     def __init__(self):
    ...         self.passes = []
    ...     def run_before_pass(self, module, info):
    ...         self.passes.append(info.name)
    """

    def made(body: type) -> type:
        if not inspect.isclass(body):
            raise TypeError("pass_instrument takes a class")
        if not any(callable(getattr(body, name, None)) for name in _METHODS):
            raise TypeError(f"class {body.__name__} has none of {', '.join(_METHODS)}")
        return type(body.__name__, (body, PassInstrument), {"__doc__": body.__doc__})

    return made(given) if given is not None else made


class _Native(PassInstrument):
    _name = ""

    def __init__(self) -> None:
        self._native = _core.NativeInstrument(self._name)

    def render(self) -> str:
        """What it has seen so far, as a table."""
        return self._native.report() or ""


class PassTimingInstrument(_Native):
    """Times each pass; :meth:`render` is a table by phases."""

    _name = "timing"


class PassStatistics(_Native):
    """Counts what each pass changes."""

    _name = "statistics"


class VerifyEach(_Native):
    """Checks the module before the first pass and after each."""

    _name = "verify"


class PassPrintingInstrument(PassInstrument):
    """Prints the module before passes and after passes of some names.

    Args:
        print_before_pass_names: Names of passes, or the last parts of them.
        print_after_pass_names: As well.
        file: Where to; standard output by default.
    """

    def __init__(
        self,
        print_before_pass_names: list[str] | None = None,
        print_after_pass_names: list[str] | None = None,
        *,
        file: TextIO | None = None,
    ) -> None:
        self.before = print_before_pass_names or []
        self.after = print_after_pass_names or []
        self.file = file

    def run_before_pass(self, module: Module, info: PassInfo) -> None:
        if _is_meant(info, self.before):
            self._print("before", module, info)

    def run_after_pass(self, module: Module, info: PassInfo) -> None:
        if _is_meant(info, self.after):
            self._print("after", module, info)

    def _print(self, when: str, module: Module, info: PassInfo) -> None:
        print(f"// {when} {info.name}\n{module}", file=self.file or sys.stdout)


class PrintBeforeAll(PassPrintingInstrument):
    """Prints the module before each pass."""

    def __init__(self, *, file: TextIO | None = None) -> None:
        super().__init__(["*"], [], file=file)


class PrintAfterAll(PassPrintingInstrument):
    """Prints the module after each pass."""

    def __init__(self, *, file: TextIO | None = None) -> None:
        super().__init__([], ["*"], file=file)


def _is_meant(info: PassInfo, names: list[str]) -> bool:
    return any(name in ("*", info.name, info.name.rsplit(".", 1)[-1]) for name in names)
