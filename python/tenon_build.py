"""Builds the package: what Cargo makes of the house goes beside the Python files, then maturin makes a wheel.

    pip install ./python
    python python/tenon_build.py FOLDER     the package in FOLDER, of links to what is built: for tests and for work on it
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOUSE = HERE.parent
PACKAGE = HERE / "src-py" / "tenon"

#: Plugins that are examples, or that answer for tests.
LEFT_OUT = ("libtenon_byoc_example", "libtenon_python")


def built() -> Path:
    """Where Cargo puts what is optimized."""
    target = os.environ.get("CARGO_TARGET_DIR")
    return (Path(target) if target else HOUSE / "target") / "release"


def plugins(folder: Path) -> list[Path]:
    """The libraries of our own plugins, which lie among all that is built."""
    names = [f"libtenon_{each.name.replace('-', '_')}" for each in (HOUSE / "plugins").iterdir()]
    made = [folder / f"{name}.so" for name in sorted(names) if name not in LEFT_OUT]
    return [path for path in made if path.exists()]


def assemble(package: Path, put) -> None:
    """Puts the program, the plugins and the registry where the package has them."""
    for folder in ("bin", "lib"):
        shutil.rmtree(package / folder, ignore_errors=True)
    (package / "bin").mkdir(parents=True)
    (package / "lib" / "tenon").mkdir(parents=True)
    put(built() / "tenon", package / "bin" / "tenon")
    for library in plugins(built()):
        put(library, package / "lib" / "tenon" / library.name)
    text = (HOUSE / "registry.toml").read_text()
    (package / "registry.toml").write_text(text.replace('"target/release"', '"lib/tenon"'))


def link(folder: Path) -> None:
    """The package as `folder/tenon`, of links."""
    package = folder / "tenon"
    package.mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.suffix in (".py", ".pyi", ".typed"):
            (package / path.name).symlink_to(path)
    (package / "_core.abi3.so").symlink_to(built() / "libtenon_python.so")
    # A program finds its registry beside the file that a link leads to, so that is copied. The libraries are not: even
    # another name of a file would be a change to who opens it meanwhile.
    assemble(package, lambda made, to: to.symlink_to(made) if to.suffix else shutil.copy2(made, to))


def _copy_stripped(made: Path, to: Path) -> None:
    shutil.copy2(made, to)
    if shutil.which("strip") and to.suffix != ".so":
        subprocess.run(["strip", str(to)], check=True)


def _build() -> None:
    subprocess.run(["scripts/setup.sh"], cwd=HOUSE, check=True)
    command = ["cargo", "build", "--release", "--workspace", "--lib", "--bins"]
    subprocess.run(command, cwd=HOUSE, check=True)
    assemble(PACKAGE, _copy_stripped)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    _build()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    _build()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def __getattr__(name):
    # The other hooks are maturin's as they are.
    import maturin

    return getattr(maturin, name)


if __name__ == "__main__":
    link(Path(sys.argv[1]))
