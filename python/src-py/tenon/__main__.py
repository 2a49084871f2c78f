"""The command ``tenon`` of the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program."""
    program = Path(__file__).parent / "bin" / "tenon"
    # Passes that are written in Python run in this interpreter, if nobody says otherwise.
    os.environ.setdefault("TENON_PYTHON", sys.executable)
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
