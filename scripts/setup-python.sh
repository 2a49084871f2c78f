#!/usr/bin/env bash
# Makes .cache/venv with the pinned onnx, onnxruntime and numpy of tests/models/requirements.txt, and what checks types.
# Usage: scripts/setup-python.sh [--models] [--train] [--cuda] [--bench]
#   --models   also put the networks that the model tests run into .cache/models (1.5 GB), onnx's node tests into
#              .cache/onnx-nodes (20 MB), random models of one operator into .cache/onnx-random (15 MB), of many into
#              .cache/onnx-graphs (10 MB), models of one operator of com.microsoft into .cache/onnx-microsoft (1 MB), and
#              models with open dimensions into .cache/onnx-open (1 MB)
#   --train    also install scikit-learn, to train the digits network
#   --cuda     also install NVIDIA's assembler, which tests of the target nvptx ask
#   --bench    also install OpenVINO, which benches/models.py runs beside Tenon
#
# Where the wheels cannot be had this says so, writes the reason to .cache/models-unavailable, and exits with 0:
# the model tests then report those networks as skipped. Compiling and running models needs no Python.
set -euo pipefail
cd "$(dirname "$0")/.."

models=false train=false cuda=false bench=false
for arg in "$@"; do
  case $arg in
    --models) models=true ;;
    --train) train=true ;;
    --cuda) cuda=true ;;
    --bench) bench=true ;;
    *) echo "usage: scripts/setup-python.sh [--models] [--train] [--cuda] [--bench]" >&2; exit 2 ;;
  esac
done

venv=.cache/venv
mkdir -p .cache

unavailable() {
  echo "$1" >.cache/models-unavailable
  echo "setup: $1; models that need Python's wheels will be skipped" >&2
  exit 0
}

# Installs a requirements file, unless this very file was installed before and still works.
install() { # FILE MODULE
  local stamp
  stamp=$venv/.$2-$(sha256sum "$1" | cut -c1-16)
  [ -e "$stamp" ] && "$venv/bin/python" -c "import $2" 2>/dev/null && return
  if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv" >/dev/null 2>&1 || { rm -rf "$venv"; unavailable "python3 cannot make a virtual environment"; }
  fi
  echo "setup: installing $(grep -v '^#\|^-\|^$' "$1" | tr '\n' ' ')into $venv"
  if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 2 \
      --only-binary :all: -r "$1" >.cache/pip.log 2>&1; then
    unavailable "pip could not install $1 ($(grep -m1 '^ERROR' .cache/pip.log || echo 'see .cache/pip.log'))"
  fi
  touch "$stamp"
}

# The same for what a few tests alone need.
install_if_there() { # FILE MODULE
  (
    unavailable() { echo "setup: $1; what needs $2 will be skipped" >&2; exit 0; }
    install "$1" "$2"
  )
}

# Writes what a script of tests/onnx_nodes makes into a folder of the cache, unless this very script has done so, with
# the script that it imports.
made() { # FOLDER SCRIPT WHAT [IMPORTED…]
  local folder=.cache/$1 script=tests/onnx_nodes/$2 imported=("${@:4}") stamp
  stamp=$folder/.made-$(cat tests/models/requirements.txt "$script" "${imported[@]/#/tests/onnx_nodes/}" | sha256sum | cut -c1-16)
  [ -e "$stamp" ] && return
  echo "setup: writing $3 to $folder"
  rm -rf "$folder"
  mkdir -p "$folder"
  "$venv/bin/python" "$script" "$folder" >/dev/null
  touch "$stamp"
}

command -v python3 >/dev/null || unavailable "python3 is missing"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  unavailable "python3 is older than 3.11, which the pinned wheels need"
install tests/models/requirements.txt onnxruntime
install python/tests/requirements.txt mypy
install_if_there python/tests/cluster.txt ray
if $train; then install examples/digits/requirements.txt sklearn; fi
if $cuda; then install tests/cuda/requirements.txt nvidia; fi
if $bench; then install benches/requirements.txt openvino; fi

if $models; then
  stamp=.cache/models/.made-$(cat tests/models/{requirements.txt,fill.py,make_random.py} | sha256sum | cut -c1-16)
  if [ ! -e "$stamp" ]; then
    echo "setup: writing the test networks to .cache/models"
    rm -rf .cache/models
    mkdir -p .cache/models
    cp "$("$venv/bin/python" -c 'import os, onnx; print(os.path.dirname(onnx.__file__))')"/backend/test/data/light/light_*.onnx .cache/models/
    "$venv/bin/python" tests/models/make_random.py .cache/models >/dev/null
    touch "$stamp"
  fi
  made onnx-nodes make_suite.py "onnx's node tests"
  made onnx-random make_random.py "random models of one operator"
  made onnx-graphs make_graphs.py "random models of many operators" make_random.py graph_control.py
  made onnx-microsoft make_microsoft.py "models of com.microsoft"
  made onnx-open make_open.py "models with open dimensions" make_random.py
fi
rm -f .cache/models-unavailable
