#!/usr/bin/env bash
# Freezes today's plugin-api as a version that plugins of later hosts' tests are built with:
# scripts/freeze-api.sh 1.0
set -euo pipefail
cd "$(dirname "$0")/.."

folder="tests/compat/$1"
[ ! -e "$folder" ] || { echo "$folder is frozen" >&2; exit 1; }
mkdir -p "$folder/plugin-api"
cp -r plugin-api/src "$folder/plugin-api/src"
cp -r plugin-api/macros "$folder/plugin-api/macros"
# Without the examples and what only tests need, which are not the API.
sed '/^# A plugin whose/,/^crate-type/d; /^\[dev-dependencies\]/,/^$/d' plugin-api/Cargo.toml |
  cat -s >"$folder/plugin-api/Cargo.toml"
{
  printf '[workspace]\nresolver = "3"\nmembers = ["plugin-api", "plugin-api/macros"]\n\n'
  sed -n '/^\[workspace.package\]/,/^\[profile/p' Cargo.toml | sed '/^tenon-\(ir\|eval\|runtime\|codegen\|compiler\)/d; /^\[profile/d'
} >"$folder/Cargo.toml"
