"""Which schedules are fastest, by measuring."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._session import Session, StrPath


@dataclass(frozen=True)
class TunedTask:
    """What became of one program of a model. Times are milliseconds of a run; None where it could not be measured."""

    program: str
    """Its name in the model."""
    key: str
    """What it is known by in the database."""
    op: str
    """What it computes."""
    calls: int
    """How often the model calls it."""
    default_ms: float | None
    """With what the rules choose."""
    best_ms: float | None
    """With the best schedule that is known."""
    tried: int
    """Schedules that were measured."""
    failed: int
    """Those of them that have no code, come to no end, or compute something else."""
    refused: int
    """Candidates that a rule or a primitive refused before."""
    exhausted: bool
    """Whether there is nothing left to be tried."""
    why_not: str | None
    """Why it was not measured, where it was not."""


@dataclass(frozen=True)
class Tuned:
    """What came of tuning a model."""

    tasks: tuple[TunedTask, ...]
    """Its different programs."""
    skipped: tuple[tuple[str, str], ...]
    """Programs that are not tuned, each with the reason."""

    @property
    def default_ms(self) -> float:
        """Milliseconds of all programs, as often as they are called, with what the rules choose."""
        return sum(task.calls * (task.default_ms or 0.0) for task in self.tasks)

    @property
    def best_ms(self) -> float:
        """The same with the best schedules that are known."""
        return sum(task.calls * (task.best_ms or 0.0) for task in self.tasks)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("ms", "tuned", "calls", "trials", "program", "")]
        for task in sorted(self.tasks, key=lambda task: -task.calls * (task.default_ms or 0.0)):
            times = ("-" if ms is None else f"{ms:.4f}" for ms in (task.default_ms, task.best_ms))
            rows.append((*times, str(task.calls), str(task.tried), task.program, task.why_not or task.op))
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, f"all: {self.default_ms:.4f} => {self.best_ms:.4f} ms"])


def tune(
    model: Any,
    *,
    db: StrPath,
    inputs: Any = None,
    target: str = "native",
    dims: Mapping[str, int] | None = None,
    trials: int | None = None,
    time: float | None = None,
    threads: int = 0,
    only: Sequence[str] = (),
    ray: str | None = None,
    session: Session | None = None,
) -> Tuned:
    """Measures which schedules of a model's programs are fastest, and keeps what it finds in a file.

    What is found is in the file whenever it is stopped, by a limit or by Ctrl-C, and another run goes on from there.
    ``compile(model, tune_db=db)`` uses it.

    Args:
        model: As :func:`compile` takes it, and ``inputs`` and ``dims`` likewise.
        db: The database: a file of lines, which is made where there is none. Several runs may append to one.
        target: What it is for. Its code has to run here, or on the workers of the cluster.
        trials: Measure so many schedules at most.
        time: Measure for so many seconds at most; without both, until nothing new is found.
        threads: How many threads a run of a program uses; 0 for as many as the process may use at once.
        only: The keys of programs, to tune these alone.
        ray: The address of a Ray cluster on whose workers is measured, ``auto`` for the one that is at hand;
            :func:`tenon.cluster.tune` says more.

    Raises:
        ModelError: The model cannot be read.
        Error: It has no program that could be tuned, the database cannot be used, or the target's code does not run here.
    """
    from ._compile import _module

    module = _module(model, inputs, dims, session)
    if ray is not None:
        from . import cluster

        return cluster.tune(
            module, db, address=ray, target=target, trials=trials, time=time, threads=threads or 1, only=only
        )
    used = threads or len(os.sched_getaffinity(0))
    said = module._session._core.tune(
        module._core, target, {}, Path(os.fspath(db)), trials, time, used, list(only)
    )
    return tuned(json.loads(said))


def tuned(outcome: dict[str, Any]) -> Tuned:
    """What the program says of it as JSON."""
    names = TunedTask.__dataclass_fields__
    tasks = (TunedTask(**{name: task[name] for name in names}) for task in outcome["tasks"])
    return Tuned(tuple(tasks), tuple((name, why) for name, why in outcome["skipped"]))
