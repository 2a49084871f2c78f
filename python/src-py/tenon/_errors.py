"""What is raised: each error holds the diagnostics that the command line would print."""

from __future__ import annotations

import json
from typing import Any


class Error(Exception):
    """Something that Tenon refuses. ``str()`` is the whole text, with the lines underlined.

    ``diagnostics`` are the same for programs: a list of dictionaries with ``severity``, ``message``, ``labels``, ``notes``,
    ``help`` and, where there is a text, ``file``.
    """

    diagnostics: list[dict[str, Any]]

    def __init__(self, rendered: str, diagnostics: str = "[]") -> None:
        super().__init__(rendered)
        self.diagnostics = json.loads(diagnostics)

    @property
    def message(self) -> str:
        """The first message, without its place."""
        return str(self.diagnostics[0]["message"]) if self.diagnostics else str(self)


class ModelError(Error):
    """A text or an ONNX model that cannot be read, or a module that is not well formed."""


class PipelineError(Error):
    """A pass, an option or a pipeline that there is not."""


class PassError(Error):
    """A pass failed. ``__cause__`` is the exception of a pass in Python."""


class CompileError(Error):
    """No code can be made, or written."""


class RunError(Error):
    """Inputs that the model does not take, or a library that cannot be opened."""


class TenonWarning(UserWarning):
    """What a user should know of the plugins that were opened."""
