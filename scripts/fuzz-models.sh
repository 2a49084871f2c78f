#!/usr/bin/env bash
# A campaign of random models, in .cache/fuzz-models: graphs of all operators against the evaluator, and ONNX models against
# ONNX Runtime. It goes on where the last one ended, and may be killed at any time.
# Usage: scripts/fuzz-models.sh [COUNT]   of each kind; without it, until it is stopped
set -uo pipefail
cd "$(dirname "$0")/.."

folder=.cache/fuzz-models failed=0
mkdir -p "$folder"
cargo test --release --workspace --test random_graphs --no-run || exit 1
# Kinds take turns, some thousand models each, so that both come along. A model that ends the process is kept by the next one.
left=${1:-} turn=2000
while [ -z "$left" ] || [ "$left" -gt 0 ]; do
  count=$turn
  [ -z "$left" ] || [ "$left" -ge "$turn" ] || count=$left
  TENON_CAMPAIGN=$folder/graphs TENON_GRAPHS=$count nice cargo test --quiet --release --workspace --test random_graphs || failed=1
  if [ -e .cache/models-unavailable ]; then
    echo "ONNX models are left out: $(cat .cache/models-unavailable)"
  else
    nice .cache/venv/bin/python tests/onnx_nodes/fuzz_graphs.py target/release/tenon "$folder/onnx" "$count" || failed=1
  fi
  [ -z "$left" ] || left=$((left - count))
done
exit $failed
