"""Operators and rules that are written in Python, for trying out.

A session is given those that it is to know, ``tenon.Session(extensions=[Swish, plain])``; no other session sees them. What is to be
fast, or to be shipped, is a plugin in Rust or C.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _core
from ._ir import Node, _Builder

#: What a default may be, and what the manifest calls it.
_KINDS: dict[type, str] = {bool: "bool", int: "int", float: "float", str: "str", list: "ints"}

#: The facets whose rules write a call in another way.
_REWRITING = ("simplify", "approximate", "canonicalize", "decompose.inference", "decompose.training", "view")


class Operator:
    """An operator that is written in Python; :func:`op` makes it."""

    def __init__(
        self, name: str, args: int, attrs: Mapping[str, Any], pattern: str, body: Any, doc: str
    ) -> None:
        self.name = name
        self.attrs = dict(attrs)
        self._body = body
        self.__doc__ = doc
        records = [{"name": key, "kind": _kind(key, value), "default": value} for key, value in attrs.items()]
        self._record = json.dumps({
            "op": name, "min_args": args, "max_args": args, "effect": "none", "pattern": pattern, "attrs": records, "doc": doc,
        })  # fmt: skip

    def _infer(self, types: list[str], attrs: str) -> str:
        made = self._body.infer(*types, **self._given(attrs))
        if not isinstance(made, str):
            raise TypeError(f"infer of `{self.name}` gives {type(made).__name__}, and the text of a type is expected")
        return made

    def _evaluate(
        self, arrays: list[_core.Array], attrs: str, outs: list[tuple[str, list[int]]]
    ) -> list[bytes]:
        import numpy as np

        from ._executable import _to_numpy

        made = self._body.evaluate(*_to_numpy(arrays), **self._given(attrs))
        results = made if isinstance(made, tuple) else (made,)
        if len(results) != len(outs):
            raise ValueError(f"evaluate of `{self.name}` gives {len(results)} arrays, and its type says {len(outs)}")
        bytes_of = []
        for result, (dtype, shape) in zip(results, outs):
            array = np.asarray(result)
            if list(array.shape) != shape:
                raise ValueError(f"evaluate of `{self.name}` gives the shape {list(array.shape)}, and its type says {shape}")
            bytes_of.append(np.ascontiguousarray(array.astype(_numpy(dtype))).tobytes())
        return bytes_of

    def _given(self, attrs: str) -> dict[str, Any]:
        return {**self.attrs, **json.loads(attrs)}

    def __repr__(self) -> str:
        return f"<tenon operator {self.name}>"


class Rule:
    """A rule that is written in Python; :func:`rule` makes it."""

    def __init__(self, facet: str, key: str, benefit: int, body: Callable[..., Any]) -> None:
        self.facet = facet
        self.key = key
        self.benefit = benefit
        self._body = body
        self.__doc__ = body.__doc__

    def _asked(self, defaults: Mapping[str, Any]) -> Callable[..., Any]:
        """What the host calls."""
        if self.facet == "compute":

            def program(inputs: list[str], outputs: list[str], attrs: str, target: str) -> str | None:
                given = {**defaults, **json.loads(attrs)}
                made = self._body(ProgramOf(inputs, outputs, json.loads(target)), **given)
                return None if made is None else str(made)

            return program

        def rewritten(edit: _core.Edit, call: int, values: list[tuple[int, int]]) -> int | None:
            site = Site(edit, call, dict(values))
            made = self._body(site, **{**defaults, **site.call_node.attrs})
            return None if made is None else site._ids([made])[0]

        return rewritten

    def __repr__(self) -> str:
        return f"<tenon rule {self.facet}:{self.key}>"


class Site(_Builder):
    """Where a rule is asked about a call: it reads the function, makes nodes, and answers with one of the type of the call."""

    def __init__(self, edit: _core.Edit, call: int, values: dict[int, int]) -> None:
        self._edit = edit
        self._values = values
        #: The call.
        self.call_node = Node(edit, call)

    @property
    def args(self) -> list[Node]:
        """The arguments of the call."""
        return self.call_node.args

    def definition(self, node: Node) -> Node:
        """What a variable stands for, where that is near the call; else the node itself."""
        return Node(self._edit, self._values.get(node.id, node.id))


class ProgramOf:
    """What a rule of ``compute`` is asked: the types of the buffers that the program reads and writes, and the target."""

    def __init__(self, inputs: list[str], outputs: list[str], target: dict[str, Any]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.target = target


def op(
    name: str, *, args: int = 1, attrs: Mapping[str, Any] | None = None, pattern: str = "opaque"
) -> Callable[[type], Operator]:
    """Makes an operator of a class with ``infer`` and ``evaluate``.

    >>> @tenon.op("acme.swish", attrs={"beta": 1.0}, pattern="elementwise")
    ... class Swish:
    ...     def infer(self, x, *, beta):
    ...         return x
    ...     def evaluate(self, x, *, beta):
    ...         return x / (1 + np.exp(-beta * x))

    ``infer`` is given the types of the arguments as texts, and gives that of the result; ``evaluate`` is given arrays of NumPy's, and
    gives one, or a tuple of them. Attributes are keyword arguments.

    Args:
        name: Its name in the IR, with a prefix of its own.
        args: How many arguments it takes.
        attrs: Its attributes with their defaults: truth values, integers, floats, texts, or lists of integers.
        pattern: How it may be fused: ``elementwise``, ``broadcast``, ``injective``, ``reduction``, ``out_fusable`` or ``opaque``.
    """

    def made(body: type) -> Operator:
        for method in ("infer", "evaluate"):
            if not callable(getattr(body, method, None)):
                raise TypeError(f"class {body.__name__} has no method `{method}`")
        return Operator(name, args, attrs or {}, pattern, body(), inspect.getdoc(body) or "")

    return made


def rule(facet: str, key: str | Operator, *, benefit: int = 1) -> Callable[[Callable[..., Any]], Rule]:
    """Makes a rule of a function.

    >>> @tenon.rule("canonicalize", Swish)
    ... def plain(site, *, beta):
    ...     [x] = site.args
    ...     return x * site.call("sigmoid", x * site.constant(beta))

    A rule of ``simplify``, ``approximate``, ``canonicalize``, ``decompose.inference``, ``decompose.training`` or ``view`` is given a
    :class:`Site`, and answers with a node, or with None to decline. One of ``compute`` is given a :class:`ProgramOf`, and answers with the
    text of a tensor program. Attributes are keyword arguments; those of operators of plugins are the ones that the call states.

    Args:
        facet: What kind of knowledge it is.
        key: The operator that it is about.
        benefit: Of several rules the one with the greatest benefit is asked first; those of plugins come behind all of these.
    """
    if facet != "compute" and facet not in _REWRITING:
        raise ValueError(f"rules in Python are of compute, {', '.join(_REWRITING)}; not of {facet!r}")
    name = key.name if isinstance(key, Operator) else key
    return lambda body: Rule(facet, name, benefit, body)


def records(
    extensions: Iterable[Operator | Rule],
) -> tuple[list[tuple[str, Any, Any]], list[tuple[str, str, int, Any, str]]]:
    """Operators and rules as the host takes them."""
    given = list(extensions)
    for each in given:
        if not isinstance(each, (Operator, Rule)):
            raise TypeError(f"an extension is made by tenon.op or tenon.rule, and {type(each).__name__} is given")
    ops = [each for each in given if isinstance(each, Operator)]
    defaults = {each.name: each.attrs for each in ops}
    rules = [
        (it.facet, it.key, it.benefit, it._asked(defaults.get(it.key, {})), it._body.__qualname__)
        for it in given
        if isinstance(it, Rule)
    ]
    return [(each._record, each._infer, each._evaluate) for each in ops], rules


def _kind(name: str, value: Any) -> str:
    kind = _KINDS.get(type(value))
    if kind is None or (kind == "ints" and not all(type(each) is int for each in value)):
        raise TypeError(f"attribute `{name}` is a truth value, an integer, a float, a text or a list of integers by default")
    return kind


def _numpy(dtype: str) -> Any:
    from ._ir import _NUMPY

    if dtype == "bf16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return _NUMPY[dtype]
