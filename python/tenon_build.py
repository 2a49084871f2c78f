"""Builds the package: what Cargo makes of the house goes beside the Python files, then maturin makes a wheel.

    pip install ./python
    python python/tenon_build.py FOLDER     the package in FOLDER, of links to what is built: for tests and for work on it
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOUSE = HERE.parent
PACKAGE = HERE / "src-py" / "tenon"

#: Plugins that are examples.
LEFT_OUT = ("byoc-example",)

#: With LLVM inside. Those of `pyproject.toml` are the same, so nothing is compiled twice.
FEATURES = (
    "tenon-cli/llvm",
    "tenon-cli/cuda",
    "tenon-cli/static-llvm",
    "tenon-core/static-llvm",
)


def built() -> Path:
    """Where Cargo puts what is optimized."""
    target = os.environ.get("CARGO_TARGET_DIR")
    return (Path(target) if target else HOUSE / "target") / "release"


def plugins(folder: Path) -> list[Path]:
    """The libraries of our own plugins, which lie among all that is built."""
    names = sorted(each.name.replace("-", "_") for each in _folders())
    return [folder / f"libtenon_{name}.so" for name in names]


def _folders() -> list[Path]:
    return [each for each in (HOUSE / "plugins").iterdir() if each.name not in LEFT_OUT]


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
    (package / "_core.abi3.so").symlink_to(built() / "libtenon_core.so")
    # A program finds its registry beside the file that a link leads to, so that is copied. The libraries are not: even
    # another name of a file would be a change to who opens it meanwhile.
    assemble(package, lambda made, to: to.symlink_to(made) if to.suffix else shutil.copy2(made, to))


def _copy_stripped(made: Path, to: Path) -> None:
    shutil.copy2(made, to)
    if shutil.which("strip") and to.suffix != ".so":
        subprocess.run(["strip", str(to)], check=True)


def _build() -> None:
    subprocess.run(["scripts/setup.sh", "--wheel"], cwd=HOUSE, check=True)
    packages = ["tenon-cli", "tenon-core", *(f"tenon-{each.name}" for each in _folders())]
    command = ["cargo", "build", "--release", "--lib", "--bins", "--no-default-features"]
    command += [f"--package={package}" for package in packages]
    command.append(f"--features={','.join(FEATURES)}")
    subprocess.run(command, cwd=HOUSE, check=True)
    assemble(PACKAGE, _copy_stripped)


def refusal(has_no_lock: bool) -> str | None:
    """Why there is no package for an interpreter, as far as its global lock goes."""
    if not has_no_lock:
        return None
    return (
        "tenon has no package for interpreters without a global lock: it is built for the stable interface, which they do not know. "
        "Use a build of Python with the lock (python3.13, not python3.13t)"
    )


def _check_interpreter() -> None:
    why = refusal(bool(sysconfig.get_config_var("Py_GIL_DISABLED")))
    if why is not None:
        raise SystemExit(why)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    _check_interpreter()
    _build()
    made = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    path = Path(wheel_directory) / made
    tag = platform_of(path)
    if not tag:
        return made
    command = [sys.executable, "-m", "wheel", "tags", "--platform-tag", tag, str(path)]
    tagged = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    path.unlink()
    return Path(tagged).name


def platform_of(wheel: Path) -> str | None:
    """The tag of the oldest system that all of a wheel's libraries and programs run on. The usual tools look at the extension
    module alone."""
    newest = (0, 0)
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            data = files.read(name)
            if data.startswith(b"\x7fELF"):
                # The names of versions stand in the table of strings of the dynamic linker.
                found = re.findall(rb"GLIBC_(\d+)\.(\d+)", data)
                newest = max([newest, *((int(major), int(minor)) for major, minor in found)])
    if sys.platform != "linux" or newest == (0, 0):
        return None
    return f"manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    import maturin

    _check_interpreter()
    _build()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def __getattr__(name):
    # The other hooks are maturin's as they are.
    import maturin

    return getattr(maturin, name)


if __name__ == "__main__":
    link(Path(sys.argv[1]))
