"""Functions node by node: built, looked at, and rewritten.

A node is a number in the arena of its function, and a :class:`Node` is a handle on one. Operands come before who reads them, so
a loop over all nodes is a traversal, and nothing here calls itself, however deep a model is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from ._module import Function, Module

if TYPE_CHECKING:
    import numpy as np

#: How methods of visitors call the kinds of nodes, where it is not their name with underscores.
_KINDS = {"variable": "var", "operator": "op", "tuple item": "tuple_get_item"}

#: Operators of Python's.
_BINARY = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "@": "matmul"}


class Node:
    """A node of a function: a call, a constant, a variable, …

    Two handles are equal if they are on one node. ``+ - * / @`` and unary ``-`` build calls in whatever edits the function.
    """

    __slots__ = ("_edit", "_parts", "id")

    def __init__(self, edit: _core.Edit, id: int) -> None:
        self._edit = edit
        self.id = id
        self._parts: tuple[str, list[int], str | None, str | None, int, str] | None = None

    def _read(self) -> tuple[str, list[int], str | None, str | None, int, str]:
        if self._parts is None:
            self._parts = self._edit.node(self.id)
        return self._parts

    @property
    def kind(self) -> str:
        """What it is: ``call``, ``constant``, ``var``, ``op``, ``global``, ``tuple``, ``tuple_get_item``, ``if``, ``let``, ``function``;
        in tensor programs ``buffer``, ``for``, ``block``, ``store``, ``load``, …"""
        kind = self._read()[0]
        return _KINDS.get(kind, kind.replace(" ", "_"))

    @property
    def operands(self) -> list[Node]:
        """The nodes that it is made of, whatever its kind; of a call first what is called."""
        return [Node(self._edit, each) for each in self._read()[1]]

    @property
    def args(self) -> list[Node]:
        """The arguments of a call."""
        self._expect("call")
        return self.operands[1:]

    @property
    def op(self) -> str | None:
        """The operator that a call calls, by its name; None of what calls none."""
        if self.kind != "call":
            return None
        callee = self.operands[0]
        return callee.name if callee.kind == "op" else None

    @property
    def type(self) -> str | None:
        """Its type as the text form has it, ``f32[n, 4]``; None where it is not known."""
        return self._read()[2]

    @property
    def name(self) -> str | None:
        """The name of a variable, a function, an operator or a buffer."""
        return self._read()[3]

    @property
    def index(self) -> int:
        """The number of the field of a ``tuple_get_item``."""
        self._expect("tuple_get_item")
        return self._read()[4]

    @property
    def attrs(self) -> dict[str, Any]:
        """Its attributes. Types and dimensions in them are texts."""
        return dict(json.loads(self._read()[5]))

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements of a constant, as an array of their own."""
        import numpy as np

        return np.asarray(self._edit.elements(self.id))

    def _expect(self, kind: str) -> None:
        if self.kind != kind:
            raise TypeError(f"node {self.id} is of the kind {self.kind}, and not {kind}")

    def _call(self, op: str, *args: Node) -> Node:
        return Node(self._edit, self._edit.call(op, [each.id for each in args], "{}"))

    def __add__(self, other: Node) -> Node:
        return self._binary("+", other)

    def __sub__(self, other: Node) -> Node:
        return self._binary("-", other)

    def __mul__(self, other: Node) -> Node:
        return self._binary("*", other)

    def __truediv__(self, other: Node) -> Node:
        return self._binary("/", other)

    def __matmul__(self, other: Node) -> Node:
        return self._binary("@", other)

    def __neg__(self) -> Node:
        return self._call("negative", self)

    def _binary(self, sign: str, other: Node) -> Node:
        if not isinstance(other, Node):
            return NotImplemented
        return self._call(_BINARY[sign], self, other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return self._edit is other._edit and self.id == other.id

    def __hash__(self) -> int:
        return hash((id(self._edit), self.id))

    def __repr__(self) -> str:
        what = self.op or self.name or ""
        return f"<tenon.Node {self.id}: {self.kind}{' ' + what if what else ''}: {self.type}>"


class _Builder:
    """What makes nodes."""

    _edit: _core.Edit

    def call(self, op: str, *args: Node, **attrs: Any) -> Node:
        """A call of an operator, ``builder.call("nn.softmax", x, axis=-1)``.

        Raises:
            ModelError: There is no such operator, or it does not take these arguments.
        """
        return Node(self._edit, self._edit.call(op, self._ids(args), json.dumps(attrs)))

    def call_function(self, name: str, *args: Node) -> Node:
        """A call of a function of the module; its type is found when the function is finished."""
        return Node(self._edit, self._edit.call_function(name, self._ids(args)))

    def constant(self, value: Any, dtype: str | None = None) -> Node:
        """A constant: an array of NumPy's, or what makes one, numbers being f32 without ``dtype``."""
        import numpy as np

        is_array = hasattr(value, "dtype")
        wanted = _NUMPY.get(dtype, dtype) if dtype else None if is_array else "float32"
        array = np.array(value, dtype=wanted, order="C")
        name = _OF_NUMPY.get(array.dtype.name)
        if name is None:
            raise TypeError(f"a constant has no elements of {array.dtype}; there are {', '.join(_NUMPY)}")
        type = f"{name}[{', '.join(map(str, array.shape))}]"
        return Node(self._edit, self._edit.constant(type, array.tobytes()))

    def tuple(self, *fields: Node) -> Node:
        """A tuple."""
        return Node(self._edit, self._edit.make_tuple(self._ids(fields)))

    def item(self, tuple: Node, index: int) -> Node:
        """A field of a tuple."""
        [made] = self._ids([tuple])
        return Node(self._edit, self._edit.item(made, index))

    def choice(self, condition: Node, then: Node, otherwise: Node) -> Node:
        """One of two values, by a condition that is a bool without axes."""
        parts = self._ids([condition, then, otherwise])
        return Node(self._edit, self._edit.choice(parts[0], parts[1], parts[2]))

    def _ids(self, nodes: Sequence[Node]) -> list[int]:
        for each in nodes:
            if not isinstance(each, Node):
                raise TypeError(f"a node is expected, and {type(each).__name__} is given; numbers are constant(…)")
            if each._edit is not self._edit:
                raise ValueError("a node of another function is given")
        return [each.id for each in nodes]


_NUMPY = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
_OF_NUMPY = {name: ours for ours, name in _NUMPY.items()}


class FunctionBuilder(_Builder):
    """Builds a function of a module's context.

    >>> builder = tenon.FunctionBuilder(module)
    >>> x = builder.param("x", "f32[10]")
    >>> module = module.update({"absolute": builder.finish(builder.call("abs", x))})

    Calls get their types when they are made, so what does not fit is told where it stands.
    """

    def __init__(self, module: Module | None = None) -> None:
        self.module = Module.empty() if module is None else module
        self._edit = _core.Edit.within(self.module._core)
        self._params: list[Node] = []

    def param(self, name: str, type: str) -> Node:
        """The next parameter; ``type`` is as in the text form, ``f32[n, 4]``."""
        made = Node(self._edit, self._edit.var(name, type))
        self._params.append(made)
        return made

    def finish(self, result: Node | Sequence[Node], *, private: bool = False) -> Function:
        """The function that gives ``result``; several are a tuple.

        Raises:
            ModelError: Something in it has no type: it calls what the module does not have, or with other arguments.
        """
        made = result if isinstance(result, Node) else self.tuple(*result)
        [body] = self._ids([made])
        self._edit.function(self._ids(self._params), body, private)
        return Function("function", self._edit.finish(self.module._core))


def nodes(function: Function) -> Iterator[Node]:
    """All nodes of a function, operands before who reads them."""
    edit = _core.Edit.of(function._core)
    return (Node(edit, each) for each in range(len(edit)))


class ExprVisitor:
    """Looks at the nodes of a function: for each one the method is called that is named after its kind, ``visit_call(node)``,
    ``visit_constant(node)``, …, or else ``visit_default(node)``; operands come first.

    >>> class CallChecker(tenon.ExprVisitor):
    ...     found = False
    ...     def visit_call(self, call):
    ...         self.found = True
    """

    def visit(self, function: Function) -> None:
        """Goes over all nodes."""
        for node in nodes(function):
            method: Callable[[Node], Any] = getattr(self, f"visit_{node.kind}", self.visit_default)
            method(node)

    def visit_default(self, node: Node) -> None:
        """What has no method of its own."""


class ExprMutator(_Builder):
    """Makes another function of one: for each node the method is called that is named after its kind, ``rewrite_call(node)``, …;
    it gives the node that is to be read instead, or None to leave it. Operands come first, and ``node.operands`` are what they were
    replaced by. New nodes are made by :meth:`call` and its like; they are not looked at again. ``rewrite_binding(variable, value)`` is
    called for each name that a function gives to a value, before anything reads the name.

    >>> class IfCollapser(tenon.ExprMutator):
    ...     def rewrite_if(self, node):
    ...         condition, then, otherwise = node.operands
    ...         return then
    >>> function = IfCollapser().rewrite(function, module)
    """

    def rewrite(self, function: Function, module: Module) -> Function:
        """The function with all that was replaced; itself where nothing was. ``module`` has what it calls.

        Raises:
            ModelError: Something has no type any more.
        """
        self._edit = edit = _core.Edit.of(function._core)
        bound: dict[int, list[int]] = {}
        for var, value in edit.bindings() if hasattr(self, "rewrite_binding") else ():
            bound.setdefault(value, []).append(var)
        is_changed = False
        for each in range(len(edit)):
            node = Node(edit, each)
            method: Callable[[Node], Node | None] | None = getattr(self, f"rewrite_{node.kind}", None)
            now = self._replaced(node, method(node) if method is not None else None)
            is_changed |= now is not node
            for var in bound.get(each, ()):
                variable = Node(edit, var)
                new: Node | None = self.rewrite_binding(variable, now)  # type: ignore[attr-defined]
                is_changed |= self._replaced(variable, new) is not variable
        return Function(function.name, edit.finish(module._core)) if is_changed else function

    def fold(self, node: Node) -> Node:
        """What a node is whose operands are constants, by the reference evaluator: a constant, or a tuple of them.

        Raises:
            ModelError: It reads something else, or has no value.
        """
        [made] = self._ids([node])
        return Node(self._edit, self._edit.fold(made))

    def _replaced(self, old: Node, new: Node | None) -> Node:
        """What is read instead of a node from now on."""
        if new is None or new == old:
            return old
        was, now = self._ids([old, new])
        self._edit.replace(was, now)
        return new
