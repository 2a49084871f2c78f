"""The installed package where there is nothing else: scripts/wheel.sh runs this. NumPy is used where it is there."""

import ctypes
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import tenon

assert "site-packages" in tenon.__file__, tenon.__file__
assert os.environ["PATH"] == "/nonexistent"

DOUBLE = "fn @main(%x: f32[]) -> f32[] {\n  %y = add(%x, %x)\n  ret %y\n}\n"


def number(result: tenon.Array) -> float:
    place, _ = result.__array_interface__["data"]
    return ctypes.c_float.from_address(place).value


double = tenon.compile(DOUBLE)
assert number(double(3.5)) == 7
assert number(pickle.loads(pickle.dumps(double))(1.5)) == 3
assert "const(f32[], 3)" in str(
    tenon.transform.FoldConstant()(
        tenon.parse("fn @main() {\n  %a = add(const(f32[], 1), const(f32[], 2))\n  ret %a\n}\n")
    )
)
with tempfile.TemporaryDirectory() as folder:
    double.export_library(Path(folder) / "double.so")
    double.export_library(Path(folder) / "double.o", form="object")
    assert number(tenon.load(Path(folder) / "double.so")(2)) == 4

TIDY = """# /// tenon
# [[passes]]
# pass = "acme.KeepMain"
# kind = "module"
# phase = "optimize"
# ///
def keep_main(module, context):
    return module.without(*[name for name in module if name != "main"])
"""
REGISTRY = """schema = 1
[[plugins.dir]]
path = "."
[passes."acme.KeepMain"]
enabled = true
"""
with tempfile.TemporaryDirectory() as folder:
    place = Path(folder)
    (place / "tidy.py").write_text(TIDY)
    (place / "registry.toml").write_text(REGISTRY)
    (place / "double.ir").write_text(DOUBLE + DOUBLE.replace("@main", "@left"))
    command = [sys.executable, "-m", "tenon", "--registry", "registry.toml"]
    lowered = subprocess.run(
        [*command, "opt", "double.ir", "--pipeline", "phase(optimize)"], cwd=place, check=True, capture_output=True, text=True
    )
    assert "acme.KeepMain" not in lowered.stderr and "@left" not in lowered.stdout, lowered
    subprocess.run([*command, "compile", "double.ir", "-o", "double.so"], cwd=place, check=True)
    assert number(tenon.load(place / "double.so")(2)) == 4

try:
    import numpy
except ImportError:
    print("without NumPy: right")
else:
    x = numpy.arange(6, dtype=numpy.float32)
    many = tenon.compile(DOUBLE.replace("[]", "[n]"))
    assert (many(x) == x + x).all()
    print("with NumPy: right")
