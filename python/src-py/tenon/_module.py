"""Modules and functions of the IR."""

from __future__ import annotations

import html
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from . import _core
from ._session import Session, StrPath

#: Constants with more elements are left out of what is printed.
_PRINTED_ELEMENTS = 16

#: What a notebook shows at most, in characters.
_SHOWN_CHARACTERS = 50_000


class _Proto(Protocol):
    def SerializeToString(self) -> bytes: ...


class Module:
    """Functions by their names. A module never changes: passes and :meth:`update` make others.

    Two modules are equal if they are structurally: names of values aside, they compute the same in the same way.
    """

    __slots__ = ("_core", "_session")

    def __init__(self, core: _core.Module, session: Session) -> None:
        self._core = core
        self._session = session

    @staticmethod
    def empty(session: Session | None = None) -> Module:
        """A module without functions."""
        session = session or Session.default()
        return Module(_core.Module.empty(session._core), session)

    def names(self) -> list[str]:
        """The names of its functions, in their order."""
        return self._core.names()

    @property
    def functions(self) -> dict[str, Function]:
        """Its functions by their names, in their order."""
        return dict(self.items())

    def items(self) -> Iterator[tuple[str, Function]]:
        return ((name, self[name]) for name in self.names())

    def __getitem__(self, name: str) -> Function:
        return Function(name, self._core.function(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __len__(self) -> int:
        return len(self._core)

    def update(self, other: Module | Mapping[str, Function]) -> Module:
        """A module in which functions of ``other`` stand in the place of those of their names, or beside the others.

        They must be of this module's context: from it, from what passes made of it, or from :meth:`parse`.
        """
        functions = dict(other.items())
        return Module(
            self._core.with_functions({name: it._core for name, it in functions.items()}),
            self._session,
        )

    def without(self, *names: str) -> Module:
        """The module without some functions."""
        return Module(self._core.without_functions(list(names)), self._session)

    def parse(self, text: str, name: str = "<text>") -> Module:
        """Reads a text into this module's context, so that a pass may give it or functions of it."""
        return Module(self._core.parse(text, name), self._session)

    def text(self, inline_limit: int | None = None) -> str:
        """Its text, which :func:`parse` reads. Constants of more than ``inline_limit`` elements are left out."""
        return self._core.text(inline_limit)

    def save(self, path: StrPath) -> None:
        """Writes its text, with larger constants in a ``.safetensors`` file beside it; :func:`read` reads both."""
        self._core.write(Path(os.fspath(path)))

    def show(self, *, color: bool | None = None) -> None:
        """Prints its text, in colours on a terminal."""
        wants = sys.stdout.isatty() if color is None else color
        print(_colored(str(self)) if wants else str(self))

    def __str__(self) -> str:
        return self.text(_PRINTED_ELEMENTS)

    def __repr__(self) -> str:
        names = self.names()
        more = f", … {len(names) - 8} more" if len(names) > 8 else ""
        return f"<tenon.Module of {', '.join('@' + name for name in names[:8])}{more}>"

    def _repr_html_(self) -> str:
        text = str(self)
        left = len(text) - _SHOWN_CHARACTERS
        more = f"\n… {left:,} characters more" if left > 0 else ""
        return f"<pre>{_html(text[:_SHOWN_CHARACTERS])}{more}</pre>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Module):
            return NotImplemented
        return self._core.is_structurally_equal(other._core)

    def __hash__(self) -> int:
        return self._core.structural_hash()

    def __reduce__(self) -> tuple[Any, ...]:
        return parse, (self.text(), "<pickle>")


class Function:
    """A function of a module: a graph function, or a tensor program."""

    __slots__ = ("_core", "name")

    def __init__(self, name: str, core: _core.Function) -> None:
        self.name = name
        self._core = core

    @property
    def is_program(self) -> bool:
        """Whether it is a tensor program (``prim``)."""
        return self._core.is_program

    @property
    def is_private(self) -> bool:
        """Whether only functions of its module may call it."""
        return self._core.is_private

    def text(self, inline_limit: int | None = None) -> str:
        """Its text. Constants of more than ``inline_limit`` elements are left out."""
        return self._core.text(self.name, inline_limit)

    def __str__(self) -> str:
        return self.text(_PRINTED_ELEMENTS)

    def __repr__(self) -> str:
        return f"<tenon.Function @{self.name}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        return self._core.is_structurally_equal(other._core)

    def __hash__(self) -> int:
        return self._core.structural_hash()


def parse(text: str, name: str = "<text>", *, session: Session | None = None) -> Module:
    """The module of a text.

    Args:
        text: As ``docs/ir.md`` describes it, with all constants inline.
        name: What it is called in messages.

    Raises:
        ModelError: The text does not read well, or the module is not well formed; with the lines underlined.
    """
    session = session or Session.default()
    return Module(session._core.parse(text, name), session)


def read(
    path: StrPath, dims: Mapping[str, int] | None = None, *, session: Session | None = None
) -> Module:
    """The module of a file: ONNX if it ends in ``.onnx``, else a text with its weights beside it.

    Args:
        dims: Open dimensions of an ONNX model that are to be numbers, by their names.
    """
    session = session or Session.default()
    return Module(session._core.read(Path(os.fspath(path)), dict(dims or {})), session)


def from_onnx(
    model: _Proto | bytes,
    dims: Mapping[str, int] | None = None,
    *,
    name: str = "<model>.onnx",
    session: Session | None = None,
) -> Module:
    """The module of an ONNX model in memory: an ``onnx.ModelProto``, or its bytes."""
    session = session or Session.default()
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return Module(session._core.read_onnx(Path(name), data, dict(dims or {})), session)


_TOKENS = re.compile(
    r"(?P<string>\"[^\"\n]*\")|(?P<name>[%@][\w.$-]+)|(?P<comment>//[^\n]*)"
    r"|(?P<word>\b(?:fn|prim|ret|if|else|for|block|module|private|const|out|inout)\b)"
    r"|(?P<type>\b(?:[iuf]\d+|bf16|bool|object)\b)"
)

_ANSI = {"string": "32", "name": "36", "comment": "90", "word": "1;35", "type": "33"}
_CSS = {
    "string": "#0a7d33",
    "name": "#05668d",
    "comment": "#888",
    "word": "#8e24aa;font-weight:bold",
    "type": "#b26a00",
}


def _colored(text: str) -> str:
    def paint(found: re.Match[str]) -> str:
        return f"\x1b[{_ANSI[found.lastgroup or 'name']}m{found.group()}\x1b[0m"

    return _TOKENS.sub(paint, text)


def _html(text: str) -> str:
    parts = []
    at = 0
    for found in _TOKENS.finditer(text):
        style = _CSS[found.lastgroup or "name"]
        parts.append(html.escape(text[at : found.start()]))
        parts.append(f'<span style="color:{style}">{html.escape(found.group())}</span>')
        at = found.end()
    parts.append(html.escape(text[at:]))
    return "".join(parts)
