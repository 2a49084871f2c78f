"""Schedules: how a tensor program runs, written primitive by primitive."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ._passes import PluginPass

#: The primitives of docs/schedules.md, and how many loops, blocks or numbers each gives: none, one, one for each factor or length, as
#: many as an argument says, or as many as there are (`*`), which whoever asks says.
_PRIMITIVES = """
block(name) 1
blocks() *
anchor() 1
loops(block) *
loop(block, iterator) 1
producers(block) *
consumers(block) *
children(of) *
sample_categorical(candidates, weights = [], decision = _) 1
sample_perfect_tile(loop, count, max_innermost = _, decision = []) count
sample_tile(loop, count, most = 64, decision = []) count
sample_compute_location(block, decision = _) 1
fuse(loops) 1
split(loop, factors, tail = guard) factors
reorder(loops) 0
partition(loop, lengths) lengths
merge(loops) 1
add_unit_loop(around) 1
reorder_iterators(block, order) 0
parallel(loop) 0
vectorize(loop) 0
unroll(loop) 0
bind(loop, axis) 0
inline(block) 0
reverse_inline(block) 0
compute_at(block, loop, place = last) 0
reverse_compute_at(block, loop, place = last) 0
epilogue_at(block, loop) *
cache_read(block, buffer, scope, consumers = []) 1
cache_write(block, buffer, scope) 1
reindex_cache_read(block, buffer, scope, map) 1
reindex_cache_write(block, buffer, scope, map) 1
reindex(block, buffer) 1
rolling_buffer(block, buffer) 0
decompose_reduction(block, loop) 1
decompose_padding(block, loop) 1
rfactor(loop, axis = 0) 1
skip_zeros(block) 0
blockize(of) 1
transform_layout(block, buffer, map, holes = refuse, pad = "") 0
transform_block_layout(block, map) *
join_iterators(block, first) *
join_axes(block, buffer, first) 0
pad_einsum(block, multiples) *
pipeline(loop, stages, order = []) 1
set_scope(block, buffer, scope) 0
storage_align(block, buffer, axis, factor, offset) 0
annotate(loop, key, value = true) 0
unannotate(loop, key) 0
tensorize(loop, intrinsic) 0
"""

#: Parameters that are words; other texts are in quotes.
_WORDS = ("scope", "tail", "place", "holes", "axis")


def _read(line: str) -> tuple[str, list[str], str]:
    found = re.fullmatch(r"(\w+)\((.*)\) (\S+)", line)
    if found is None:
        raise ValueError(f"{line!r} states no primitive")
    parameters = [each.split(" = ")[0] for each in found[2].split(", ") if each]
    return found[1], parameters, found[3]


PRIMITIVES = {name: (parameters, gives) for name, parameters, gives in map(_read, _PRIMITIVES.strip().splitlines())}


class Handle:
    """A loop, a block, or something drawn at random that a primitive of a schedule gave."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<tenon.Handle {self.name}>"


class Schedule(PluginPass):
    """A schedule of a tensor program, which is a pass: it applies its primitives to the program of that name, or to all.

    Each primitive of ``docs/schedules.md`` is a method. What gives loops or blocks gives handles on them; where their number is the
    program's business, ``into`` says it.

    >>> s = tenon.Schedule("dense")
    >>> block = s.anchor()
    >>> i, j, k = s.loops(block, into=3)
    >>> outer, inner = s.split(j, [None, 16])
    >>> s.parallel(i)
    >>> s.vectorize(inner)
    >>> module = s(module)

    What the primitives ``sample_…`` draw stands in the attribute ``trace`` of the program; equal seeds draw the same.

    Nothing is applied before the schedule is called; a primitive that does not hold is a :class:`PassError` then, which shows the program as it
    stood. :attr:`trace` is the text, and :attr:`text` is the pass for the text of a pipeline.
    """

    def __init__(self, program: str = "", seed: int = 0) -> None:
        self._steps: list[str] = []
        self._program = program
        self._seed = seed
        self._count = 0
        super().__init__("tir.Schedule")

    @property
    def trace(self) -> str:
        """The primitives so far, as text."""
        return "; ".join(self._steps)

    @property
    def text(self) -> str:
        """The pass as the text of a pipeline has it."""
        seed = f", seed={self._seed}" if self._seed else ""
        return f"tir.Schedule{{program={json.dumps(self._program)}, trace={json.dumps(self.trace)}{seed}}}"

    def _in_session(self, session: Any) -> Any:
        return session._core.named_pass(self.text)

    def __getattr__(self, name: str) -> Any:
        known = PRIMITIVES.get(name)
        if known is None:
            raise AttributeError(f"there is no primitive `{name}`; there are {', '.join(PRIMITIVES)}")
        parameters, gives = known

        def primitive(*args: Any, into: int | None = None, **named: Any) -> Any:
            return self._add(name, parameters, gives, args, named, into)

        primitive.__name__ = primitive.__qualname__ = name
        return primitive

    def _add(
        self, name: str, parameters: Sequence[str], gives: str, args: Sequence[Any], named: dict[str, Any], into: int | None
    ) -> Any:
        given = dict(zip(parameters, args))
        for key, value in named.items():
            if key not in parameters or key in given:
                raise TypeError(f"{name} takes {', '.join(parameters) or 'nothing'}, each once; `{key}` is given")
            given[key] = value
        if len(args) > len(parameters):
            raise TypeError(f"{name} takes {', '.join(parameters) or 'nothing'}, and {len(args)} are given")
        written = [_written(key, value) for key, value in list(given.items())[: len(args)]]
        written += [f"{key} = {_written(key, given[key])}" for key in named]
        call = f"{name}({', '.join(written)})"
        count = self._number(name, gives, given, into)
        made = [self._handle() for _ in range(count)]
        names = ", ".join(each.name for each in made)
        is_one = gives == "1" and into is None
        self._steps.append(f"{names} = {call}" if is_one else f"[{names}] = {call}" if made else call)
        return made[0] if is_one else made or None

    def _number(self, name: str, gives: str, given: dict[str, Any], into: int | None) -> int:
        if into is not None:
            return into
        if gives in ("0", "1"):
            return int(gives)
        if gives == "*":
            raise TypeError(f"how many does {name} give? say into=, such as into=3")
        of = given[gives]
        if isinstance(of, int):
            return of
        # What factors leave has a nest of its own where it is cut off.
        return len(of) + (given.get("tail") == "cut")

    def _handle(self) -> Handle:
        self._count += 1
        return Handle(f"v{self._count}")

    def __repr__(self) -> str:
        return f"<tenon.Schedule of {self._program or 'all programs'}: {self.trace}>"


def _written(parameter: str, value: Any) -> str:
    """A value as a trace has it."""
    if value is None:
        return "_"
    if isinstance(value, Handle):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_written(parameter, each) for each in value)}]"
    if isinstance(value, str):
        return value if parameter in _WORDS else json.dumps(value)
    if isinstance(value, int):
        return str(value)
    raise TypeError(f"a schedule has handles, numbers, texts and lists of these; not {type(value).__name__}")
