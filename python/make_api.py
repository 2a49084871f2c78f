"""Writes the pages of the API from the sources and the stubs, none of which runs: signatures and docstrings.

    python python/make_api.py FOLDER
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "src-py" / "tenon"

#: The pages: a file, the module, its source, and what the page is about.
PAGES = (
    ("README.md", "tenon", "__init__.py", "Models, modules, passes, operators, tuning."),
    ("instrument.md", "tenon.instrument", "instrument.py", ""),
    ("transform.md", "tenon.transform", "transform.pyi", ""),
    ("torch.md", "tenon.torch", "torch.py", ""),
    ("cluster.md", "tenon.cluster", "cluster.py", ""),
)

NOTE = "Made from the sources by `python/make_api.py`; [python.md](../python.md) is the way in.\n"

#: How docstrings name things: a role with a name.
ROLE = re.compile(r":\w+:`~?([^`]+)`")

Named = ast.ClassDef | ast.FunctionDef


def parsed(path: Path) -> ast.Module:
    """The tree of a source."""
    return ast.parse(path.read_text())


def defined(tree: ast.Module) -> dict[str, Named]:
    """Classes and functions at the top of a source, by their names."""
    return {node.name: node for node in tree.body if isinstance(node, Named)}


def public(tree: ast.Module) -> list[str]:
    """What `__all__` lists; without it all that has no underscore in front."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return [name for name in defined(tree) if not name.startswith("_")]


def prose(text: str | None) -> str:
    """A docstring as Markdown: examples are blocks, and each argument is a point of a list."""
    lines = []
    block: list[str] = []
    section = ""
    for line in [*(text or "").splitlines(), ""]:
        if line.startswith((">>> ", "... ")):
            block.append(line[4:])
            continue
        if block:
            lines += ["```python", *block, "```"]
            block = []
        if line in ("Args:", "Raises:", "Returns:"):
            section = line
            lines += [f"**{line[:-1]}**", ""]
            continue
        item = re.match(r"    (\w[\w. ]*): (.*)", line) if section else None
        if item:
            line = f"- `{item[1]}`: {item[2]}"
        elif section and line.startswith("        "):
            line = f"  {line.strip()}"
        elif line and not line.startswith(" "):
            section = ""
        lines.append(line)
    made = ROLE.sub(r"``\1``", "\n".join(lines)).replace("``", "`")
    # A backquote in three is the edge of a block.
    return re.sub(r"^`(python)?$", r"```\1", made, flags=re.MULTILINE).strip()


def signature(name: str, node: ast.FunctionDef) -> str:
    """How it is called, without `self`."""
    arguments = ast.parse(ast.unparse(node)).body[0].args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments.args.pop(0)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{name}({ast.unparse(arguments)}){result}"


def has(node: ast.FunctionDef, decorator: str) -> bool:
    """Whether it stands under a decorator."""
    return any(ast.unparse(each) == decorator for each in node.decorator_list)


def of_class(name: str, node: ast.ClassDef) -> list[str]:
    """A class: how one is made, its fields, and what is public of its methods."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    made = next((each for each in methods if each.name == "__init__"), None)
    lines = [f"## class {name}", ""]
    # What takes handles of the host's is not for people to make.
    if made is not None and "_core." not in signature(name, made):
        lines += ["```python", signature(name, made), "```", ""]
    lines += [prose(ast.get_docstring(node)), ""]
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_"):
            lines += [f"- `{each.target.id}: {ast.unparse(each.annotation)}`"]
    for each in methods:
        if each.name.startswith("_") and each.name != "__call__":
            continue
        if has(each, "property"):
            lines += ["", f"### `{each.name}: {ast.unparse(each.returns)}`", ""]
        else:
            lines += ["", f"### `{signature(each.name, each)}`", ""]
        lines += [prose(ast.get_docstring(each))]
    return [*lines, ""]


def page(module: str, source: str, about: str) -> str:
    """A page."""
    tree = parsed(PACKAGE / source)
    known = defined(tree)
    if source == "__init__.py":
        for path in [*sorted(PACKAGE.glob("_*.py")), PACKAGE / "_core.pyi"]:
            for name, node in defined(parsed(path)).items():
                known.setdefault(name, node)
    lines = [f"# {module}", "", NOTE, about or prose(ast.get_docstring(tree)), ""]
    for name in sorted(public(tree), key=str.lower):
        node = known.get(name)
        if isinstance(node, ast.ClassDef):
            lines += of_class(name, node)
        elif isinstance(node, ast.FunctionDef):
            lines += [f"## {name}", "", "```python", signature(name, node), "```", ""]
            lines += [prose(ast.get_docstring(node)), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def pages() -> dict[str, str]:
    """All pages by the names of their files."""
    made = {name: page(module, source, about) for name, module, source, about in PAGES}
    others = "".join(f"* [{module}]({name})\n" for name, module, _, _ in PAGES[1:])
    made["README.md"] = made["README.md"].replace(NOTE, f"{NOTE}\n{others}", 1)
    return made


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)
