"""Which plugins there are."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    from ._extend import Operator, Rule

StrPath = str | os.PathLike[str]


class Session:
    """The plugins of some registries.

    Whoever needs none of their own never makes one: everything takes the package's, :meth:`default`.

    Args:
        registries: ``registry.toml`` files, each above those before it, and all above those of the package, the system and
            the user.
        extensions: Operators and rules that are written in Python: :func:`tenon.op`, :func:`tenon.rule`.
        program: The command ``tenon`` of another installation, whose plugins are taken instead of the package's.

    Raises:
        Error: A file cannot be read, or does not say what it should.
    """

    def __init__(
        self,
        registries: Iterable[StrPath] = (),
        *,
        extensions: Iterable[Operator | Rule] = (),
        program: StrPath | None = None,
    ) -> None:
        from ._extend import records

        command = Path(os.fspath(program)) if program else Path(__file__).parent / "bin" / "tenon"
        files = [Path(os.fspath(each)) for each in registries]
        ops, rules = records(extensions)
        self._core = _core.Session(command, files, sys.executable or None, ops, rules)

    @staticmethod
    @functools.cache
    def default() -> Session:
        """The one with the package's plugins."""
        return Session()

    def passes(self) -> list[dict[str, Any]]:
        """What the plugins say of their passes; none of their code runs."""
        return list(json.loads(self._core.passes()))

    def configs(self) -> dict[str, dict[str, Any]]:
        """The options that a context may set, by their keys."""
        return {each["key"]: each for each in json.loads(self._core.configs())}

    def plan(self, pipeline: str = "auto", opt_level: int = 3) -> list[str]:
        """The names of the passes that a pipeline runs, in order.

        Raises:
            PipelineError: It names what there is not.
        """
        return self._core.plan({"pipeline": pipeline, "opt_level": opt_level})
