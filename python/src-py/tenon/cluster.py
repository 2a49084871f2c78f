"""Measuring and compiling on the workers of a Ray cluster.

Each worker measures one program at a time, in slices of some seconds, with its own ``tenon`` program; what it finds comes back
line by line and is appended to the database when it is there. A worker that dies or hangs costs the slice it was at: what it has
told is kept, and another worker goes on from there. Any number of drivers may append to one database.

``docs/clusters.md`` says what this needs, and what breaks first.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time as clock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._errors import Error
from ._module import Module, read
from ._session import StrPath
from ._tune import Tuned, tuned

__all__ = ["compile_all", "tune"]

_PROGRAM = Path(__file__).parent / "bin" / "tenon"
# How often a worker looks for new lines: a message each time, if there are any.
_GLANCE = 0.25


def tune(
    model: Module | StrPath,
    db: StrPath,
    *,
    address: str = "auto",
    target: str = "native",
    trials: int | None = None,
    time: float | None = None,
    threads: int = 1,
    only: Sequence[str] = (),
    slice: float = 10.0,
    patience: float = 120.0,
    resources: Mapping[str, float] | None = None,
    workers: int | None = None,
) -> Tuned:
    """Tunes the programs of a model on the workers of a cluster.

    Args:
        model: A module, or the path of an ONNX file or of a module's text.
        db: The database, on this machine.
        address: Of the cluster; ``auto`` is the one that is at hand, ``local`` starts one on this machine.
        target: ``native`` is what each worker is; what is found is kept for that.
        trials: End when so many schedules were measured.
        time: End after so many seconds.
        threads: Threads of a run, and CPUs of Ray's that a measurement takes. Where a node has more CPUs, several are measured at
            a time; ``resources`` that nodes have one of prevents that.
        only: The keys of programs, to tune these alone.
        slice: Seconds that a worker measures one program before it is given another.
        patience: Seconds without a word after which a worker is given up.
        resources: Custom resources of Ray's that a measurement takes, such as ``{"znver4": 1}``.
        workers: How many slices run at a time; by default as many as the cluster has CPUs for.

    Raises:
        Error: The model has no program that could be tuned, or Ray is not there.
    """
    ray = _connected(address)
    with tempfile.TemporaryDirectory() as folder:
        path = _saved(model, Path(folder))
        tasks = {task["key"]: _Task(**task) for task in _listed(path, target, only)}
        files = ray.put({each.name: each.read_bytes() for each in Path(folder).iterdir()})
    book = _Database(Path(os.fspath(db)))
    for task in tasks.values():
        task.known = book.lines_of(task.key)
    limits = _Limits(trials, None if time is None else clock.monotonic() + time, slice, patience)
    wanted = {"num_cpus": threads, "max_retries": 0, "resources": dict(resources or {})}
    measure = ray.remote(_measure).options(
        num_returns="streaming", scheduling_strategy="SPREAD", **wanted
    )
    width = workers or max(1, int(ray.cluster_resources().get("CPU", 1) // threads))
    driver = _Driver(ray, measure, files, path.name, target, threads, tasks, book, limits, width)
    driver.run()
    return tuned({"tasks": [task.report() for task in tasks.values()], "skipped": []})


def compile_all(
    models: Mapping[str, Module | StrPath],
    folder: StrPath,
    *,
    address: str = "auto",
    target: str = "native",
    tune_db: StrPath | None = None,
    retries: int = 3,
) -> dict[str, Path | Error]:
    """Compiles models on the workers of a cluster, each into a library `NAME.so` in a folder of this machine.

    Args:
        models: Modules or paths, by the names of their libraries.
        folder: Where the libraries go; each is written whole or not at all.
        target: What they are for; ``native`` is the worker that compiles.
        tune_db: A database of this machine, whose lines all workers are given.
        retries: How often a model is compiled again when its worker dies.

    Returns:
        For each model the path of its library, or why there is none.
    """
    ray = _connected(address)
    compile = ray.remote(_compile).options(num_cpus=1, max_retries=retries)
    lines = ray.put(Path(os.fspath(tune_db)).read_bytes() if tune_db is not None else None)
    waiting: dict[Any, str] = {}
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as scratch:
            path = _saved(model, Path(scratch))
            files = {each.name: each.read_bytes() for each in Path(scratch).iterdir()}
            waiting[compile.remote(files, path.name, target, lines)] = name
    made: dict[str, Path | Error] = {}
    while waiting:
        (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
        name = waiting.pop(ready)
        try:
            made[name] = _written(Path(os.fspath(folder)) / f"{name}.so", ray.get(ready))
        except ray.exceptions.RayError as error:
            made[name] = Error(str(getattr(error, "cause", None) or error))
    return made


@dataclass
class _Task:
    """A program, and what is known of it."""

    program: str
    key: str
    op: str
    calls: int
    default_ms: float | None = None
    best_ms: float | None = None
    tried: int = 0
    failed: int = 0
    refused: int = 0
    exhausted: bool = False
    why_not: str | None = None
    known: list[str] = field(default_factory=list)
    in_vain: int = 0

    def hope(self) -> float:
        """What a slice may bring: what was not measured yet comes first."""
        if self.exhausted or self.why_not is not None:
            return 0.0
        if self.best_ms is None:
            return float("inf")
        return float(self.calls * self.best_ms / (1 + self.in_vain) ** 1.5)

    def is_told(self, report: Mapping[str, Any]) -> None:
        """What a worker says at the end of a slice."""
        before = self.best_ms
        self.refused += report["refused"]
        self.exhausted = report["exhausted"]
        self.why_not = report["why_not"]
        # Workers differ; what was gained does not depend on which of them it was.
        if report["default_ms"]:
            gain = report["best_ms"] / report["default_ms"]
            self.default_ms = self.default_ms or report["default_ms"]
            self.best_ms = min(self.best_ms or self.default_ms, self.default_ms * gain)
        self.in_vain = 0 if before is not None and (self.best_ms or before) < before else self.in_vain + 1

    def report(self) -> dict[str, Any]:
        from ._tune import TunedTask

        return {name: getattr(self, name) for name in TunedTask.__dataclass_fields__}


@dataclass(frozen=True)
class _Limits:
    trials: int | None
    until: float | None
    slice: float
    patience: float

    def is_spent(self, measured: int) -> bool:
        is_late = self.until is not None and clock.monotonic() >= self.until
        return is_late or (self.trials is not None and measured >= self.trials)


@dataclass
class _Slice:
    """A worker at a program."""

    task: _Task
    heard: float


@dataclass
class _Driver:
    """Gives programs to workers, and takes what they find."""

    ray: Any
    measure: Any
    files: Any
    model: str
    target: str
    threads: int
    tasks: dict[str, _Task]
    book: _Database
    limits: _Limits
    width: int
    measured: int = 0
    running: dict[Any, _Slice] = field(default_factory=dict)

    def run(self) -> None:
        """Goes on until a limit is met, or nothing is hoped for."""
        try:
            while not self.limits.is_spent(self.measured):
                self.start()
                if not self.running:
                    return
                ready, _ = self.ray.wait(list(self.running), num_returns=1, timeout=1.0)
                for generator in ready:
                    self.hear(generator)
                self.give_up()
        finally:
            for generator in self.running:
                self.ray.cancel(generator, force=False)

    def start(self) -> None:
        """Gives the programs of which most is hoped to workers that have none."""
        busy = {slice.task.key for slice in self.running.values()}
        idle = [task for task in self.tasks.values() if task.key not in busy and task.hope() > 0]
        idle.sort(key=_Task.hope, reverse=True)
        for task in idle[: max(0, self.width - len(self.running))]:
            generator = self.measure.remote(
                self.files, self.model, task.key, task.known, self.limits.slice, self.target, self.threads
            )
            self.running[generator] = _Slice(task, clock.monotonic())

    def hear(self, generator: Any) -> None:
        """Takes what a worker says next, or that it ends."""
        slice = self.running[generator]
        try:
            message = self.ray.get(next(generator))
        except StopIteration:
            del self.running[generator]
            return
        except self.ray.exceptions.RayError as error:
            # What it has told is known; the program is given to another.
            self.lost(generator, error)
            return
        slice.heard = clock.monotonic()
        if "report" in message:
            slice.task.is_told(message["report"])
        for line in self.book.append(message.get("lines", ())):
            slice.task.known.append(line)
            slice.task.tried += 1
            slice.task.failed += '"found":"failed"' in line
            self.measured += 1

    def give_up(self) -> None:
        """Ends workers of which nothing is heard."""
        for generator, slice in list(self.running.items()):
            if clock.monotonic() - slice.heard > self.limits.patience:
                self.ray.cancel(generator, force=True)
                self.lost(generator, "it said nothing any more")

    def lost(self, generator: Any, why: object) -> None:
        slice = self.running.pop(generator)
        text = str(why).strip().splitlines()[0]
        print(f"tenon: a worker at {slice.task.program} was lost: {text}", file=sys.stderr)


class _Database:
    """The file, and which lines are in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: dict[str, list[str]] = {}
        self.keys: set[tuple[str, str, str, str]] = set()
        for line in path.read_text().splitlines() if path.exists() else ():
            self._is_new(line)

    def lines_of(self, program: str) -> list[str]:
        """Those of a program."""
        return list(self.seen.get(program, ()))

    def append(self, lines: Iterable[str]) -> list[str]:
        """Appends those that are not there yet, all in one write, and gives them."""
        new = [line for line in lines if self._is_new(line)]
        if new:
            with open(self.path, "ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                text = "".join(line + "\n" for line in new)
                if file.tell() and _last_byte(file) != b"\n":
                    # Another writer was ended in the middle of a line.
                    text = "\n" + text
                file.write(text.encode())
        return new

    def _is_new(self, line: str) -> bool:
        try:
            told = json.loads(line)
            key = (told["program"], told["target"], told["schedule"], told["found"])
        except (ValueError, KeyError, TypeError):
            return False
        if key in self.keys:
            return False
        self.keys.add(key)
        self.seen.setdefault(key[0], []).append(line)
        return True


def _last_byte(file: Any) -> bytes:
    file.seek(-1, os.SEEK_END)
    return bytes(file.read(1))


def _measure(
    files: Mapping[str, bytes],
    model: str,
    key: str,
    known: Sequence[str],
    seconds: float,
    target: str,
    threads: int,
) -> Iterator[dict[str, Any]]:
    """On a worker: measures a program for some seconds; says new lines as they come, and at last what became of it."""
    folder = Path(tempfile.mkdtemp(prefix="tenon-slice-"))
    db = folder / "slice.jsonl"
    try:
        _unpack(files, folder)
        db.write_text("".join(line + "\n" for line in known))
        command: list[StrPath] = [_PROGRAM, "tune", folder / model, "--db", db, "--only", key, "--time", f"{seconds}s"]
        command += ["--target", target, "--threads", str(threads), "--json"]
        with open(folder / "said", "wb") as said, open(folder / "errors", "wb") as errors:
            process = subprocess.Popen(command, stdout=said, stderr=errors)
        try:
            with open(db, "rb") as file:
                file.seek(0, os.SEEK_END)
                rest = b""
                while True:
                    has_ended = process.poll() is not None
                    *lines, rest = (rest + file.read()).split(b"\n")
                    # A word now and then, so that who waits knows that there is somebody.
                    yield {"lines": [line.decode() for line in lines]}
                    if has_ended:
                        break
                    clock.sleep(_GLANCE)
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            raise RuntimeError((folder / "errors").read_text())
        yield {"report": json.loads((folder / "said").read_text())["tasks"][0]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compile(files: Mapping[str, bytes], model: str, target: str, lines: bytes | None) -> bytes:
    """On a worker: the library of a model."""
    with tempfile.TemporaryDirectory(prefix="tenon-compile-") as scratch:
        folder = Path(scratch)
        _unpack(files, folder)
        command: list[StrPath] = [_PROGRAM, "compile", folder / model, "-o", folder / "model.so", "--target", target]
        if lines is not None:
            (folder / "tuned.jsonl").write_bytes(lines)
            command += ["--tune-db", folder / "tuned.jsonl"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(ran.stderr)
        return (folder / "model.so").read_bytes()


def _unpack(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _saved(model: Module | StrPath, folder: Path) -> Path:
    """A model as a text, with its weights beside it."""
    module = model if isinstance(model, Module) else read(model)
    module.save(folder / "model.ir")
    return folder / "model.ir"


def _listed(model: Path, target: str, only: Sequence[str]) -> list[dict[str, Any]]:
    """The programs of a model that would be tuned."""
    command: list[StrPath] = [_PROGRAM, "tune", model, "--db", model.with_suffix(".jsonl")]
    command += ["--list", "--json", "--target", target, *(["--only", ",".join(only)] if only else [])]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        raise Error(json.loads(ran.stderr)["errors"][0]["message"])
    names = ("program", "key", "op", "calls")
    return [{name: task[name] for name in names} for task in json.loads(ran.stdout)["tasks"]]


def _written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(path)
    return path


def _connected(address: str) -> Any:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise Error("there is no Ray here: pip install ray") from error
    if not ray.is_initialized():
        ray.init(address=None if address == "local" else address, log_to_driver=False)
    return ray


def _main() -> None:
    """What ``tenon tune --ray ADDRESS`` runs."""
    parser = argparse.ArgumentParser(prog="tenon tune --ray")
    parser.add_argument("model")
    parser.add_argument("--db", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--target", default="native")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--time", type=float)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    given = vars(parser.parse_args())
    try:
        print(tune(given.pop("model"), given.pop("db"), **given))
    except (Error, ConnectionError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    _main()
