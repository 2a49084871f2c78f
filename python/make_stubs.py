"""Writes the stubs of `tenon.transform`: a function for each pass of the plugins of the package, with its options.

    PYTHONPATH=FOLDER python python/make_stubs.py [FILE]     the package lies in FOLDER; standard output without FILE
"""

from __future__ import annotations

import keyword
import sys
from pathlib import Path

TYPES = {"int": "int", "float": "float", "bool": "bool", "str": "str"}

TOP = '''"""The passes of all plugins of the package, by their names. Made by python/make_stubs.py."""

from typing import Any

from ._context import PassContext as PassContext
from ._passes import Pass as Pass
from ._passes import PassInfo as PassInfo
from ._passes import Sequential as Sequential
from ._passes import function_pass as function_pass
from ._passes import module_pass as module_pass
from ._passes import prim_func_pass as prim_func_pass

def pass_(name: str, **options: Any) -> Pass:
    """The pass of this name or alias, with options."""

'''

END = '''def __getattr__(name: str) -> Any: ...
'''


def type_of(text: str) -> str:
    """An option's type in Python: `int`, or `[str]` for a list."""
    if text.startswith("["):
        return f"list[{TYPES[text[1:-1]]}]"
    return TYPES[text]


def stub(record: dict) -> str:
    """The function of a pass."""
    name = record["pass"].rsplit(".", 1)[-1]
    options = [each for each in record["options"] if not keyword.iskeyword(each["name"])]
    given = [f"{it['name']}: {type_of(it['type'])} = {it['default']!r}" for it in options]
    head = f"def {name}(" + (f"*, {', '.join(given)}" if given else "") + ") -> Pass:"
    lines = [head, f'    """{record["doc"].splitlines()[0]}']
    if options:
        lines += ["", "    Args:"] + [f"        {it['name']}: {it['help']}" for it in options]
        lines.append('    """')
    else:
        lines[-1] += '"""'
    return "\n".join(lines).replace("\\", "\\\\") + "\n"


def stubs() -> str:
    """The whole file."""
    import tenon

    records = [each["pass"] for each in tenon.Session.default().passes()]
    records.sort(key=lambda record: record["pass"].rsplit(".", 1)[-1])
    return TOP + "\n".join(stub(record) for record in records) + "\n" + END


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(stubs())
    else:
        sys.stdout.write(stubs())
