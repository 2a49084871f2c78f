#!/usr/bin/env bash
# Makes the wheel of the package for Python in target/python, with LLVM and a linker inside, and tries it in an environment
# that has neither, nor any program on its PATH, nor a package beside it but NumPy.
# Usage: scripts/wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -rf target/python
python3 -m venv "$scratch/build"
"$scratch/build/bin/pip" wheel --quiet --disable-pip-version-check --no-deps -w target/python ./python
wheel=$(ls target/python/tenon-*.whl)

python3 -m venv "$scratch/bare"
"$scratch/bare/bin/pip" install --quiet --disable-pip-version-check "$wheel"
cp python/tests/bare.py "$scratch"
cd "$scratch"
bare() { env -i HOME="$scratch" PATH=/nonexistent "$@"; }
bare "$scratch/bare/bin/python" -X dev bare.py
bare "$scratch/bare/bin/tenon" passes show FoldConstant >/dev/null
"$scratch/bare/bin/pip" install --quiet --disable-pip-version-check numpy
bare "$scratch/bare/bin/python" -X dev bare.py
echo "$(basename "$wheel"): $(du -m "$OLDPWD/$wheel" | cut -f1) MB"
