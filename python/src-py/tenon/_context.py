"""How passes are run: levels, lists, options and instruments, as a value and as a scope."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any

from ._session import Session

if TYPE_CHECKING:
    from ._passes import Pass

#: Without a context; a new thread starts with none, and each task of ``asyncio`` has its own.
_CURRENT: contextvars.ContextVar[PassContext | None] = contextvars.ContextVar("tenon", default=None)

OptionValue = bool | int | float | str | list[bool] | list[int] | list[float] | list[str]


class PassContext:
    """How passes are run.

    >>> with tenon.PassContext(opt_level=3, disabled_pass=["FuseOps"], config={"FoldConstant.limit": 64}):
    ...     module = tenon.transform.FoldConstant()(module)

    A scope within a scope inherits nothing.

    Args:
        opt_level: Passes of a higher level do not run.
        required_pass: Passes that run whatever their level: names, aliases or passes.
        disabled_pass: Passes that do not run; this wins over everything.
        config: Values of options by their keys; :meth:`list_configs` has them all.
        instruments: They watch: objects with methods of :mod:`tenon.instrument`, or the names of instruments of plugins.
        target: What passes are told of the target; ``native`` is this machine.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str | Pass] = (),
        disabled_pass: Iterable[str | Pass] = (),
        config: Mapping[str, OptionValue] | None = None,
        instruments: Iterable[Any] = (),
        target: str = "native",
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = [_name(each) for each in required_pass]
        self.disabled_pass = [_name(each) for each in disabled_pass]
        self.config = dict(config or {})
        self.instruments = list(instruments)
        self.target = target
        self._outer: list[contextvars.Token[PassContext | None]] = []

    @staticmethod
    def current() -> PassContext:
        """The innermost that is entered; outside of all, a default one."""
        return _CURRENT.get() or PassContext()

    @staticmethod
    def list_configs(session: Session | None = None) -> dict[str, dict[str, Any]]:
        """The options that ``config`` may set, by their keys: owner, type, default, range, help."""
        return (session or Session.default()).configs()

    def override_instruments(self, instruments: Iterable[Any] | None) -> None:
        """Leaves the instruments, and enters others in their place."""
        if instruments is None:
            raise TypeError("a list of instruments is expected, and None is given")
        old, self.instruments = self.instruments, []
        _leave(old)
        new = list(instruments)
        _enter(new)
        self.instruments = new

    def __enter__(self) -> PassContext:
        try:
            _enter(self.instruments)
        except BaseException:
            self.instruments = []
            raise
        self._outer.append(_CURRENT.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _CURRENT.reset(self._outer.pop())
        try:
            _leave(self.instruments)
        except Exception as left:
            # What went wrong within matters more; the other is told with it.
            if error is None:
                raise
            _add_note(error, f"and an instrument failed to be left: {left!r}")

    def _options(self, pipeline: Any) -> dict[str, Any]:
        return {
            "pipeline": pipeline,
            "opt_level": self.opt_level,
            "config": [f"{key}={option_text(value)}" for key, value in self.config.items()],
            "disabled": self.disabled_pass,
            "required": self.required_pass,
            "instruments": [each for each in self.instruments if isinstance(each, str)],
        }

    def _told(self, session: Session) -> list[Any]:
        """The instruments as the host tells them."""
        objects = [each for each in self.instruments if not isinstance(each, str)]
        return [getattr(each, "_native", None) or _told(each, session) for each in objects]


def _told(instrument: Any, session: Session) -> Any:
    """What the host calls for an instrument of Python's. It has those methods that the instrument has; they are called in
    the caller's context, whatever the thread."""
    from ._module import Module
    from ._passes import PassInfo

    scope = contextvars.copy_context()

    def method(name: str) -> Callable[[Any, tuple[str, int]], Any]:
        called = getattr(instrument, name)
        return lambda core, info: scope.copy().run(
            called, Module(core, session), PassInfo(name=info[0], opt_level=info[1])
        )

    names = ("should_run", "run_before_pass", "run_after_pass")
    return SimpleNamespace(**{name: method(name) for name in names if hasattr(instrument, name)})


def _enter(instruments: list[Any]) -> None:
    entered: list[Any] = []
    for each in instruments:
        try:
            if hasattr(each, "enter_pass_ctx"):
                each.enter_pass_ctx()
        except BaseException as error:
            try:
                _leave(entered[::-1])
            except Exception as left:
                _add_note(error, f"and an instrument failed to be left: {left!r}")
            raise
        entered.append(each)


def _leave(instruments: list[Any]) -> None:
    """All are left, whatever the others do; the first error is raised, with the others as notes."""
    first: Exception | None = None
    for each in instruments:
        try:
            if hasattr(each, "exit_pass_ctx"):
                each.exit_pass_ctx()
        except Exception as error:
            if first is None:
                first = error
            else:
                _add_note(first, f"and another instrument failed to be left: {error!r}")
    if first is not None:
        raise first


def _add_note(error: BaseException, text: str) -> None:
    # Since Python 3.11.
    if hasattr(error, "add_note"):
        error.add_note(text)


def _name(given: str | Pass) -> str:
    return given if isinstance(given, str) else given.info.name


def option_text(value: Any) -> str:
    """A value as pipelines write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(option_text(each) for each in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
