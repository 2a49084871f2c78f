#!/usr/bin/env bash
# Has libFuzzer look for files that end a reader: by a panic, in more than five seconds, or with more than 4 GB. What it learned
# and how much it did stays in .cache/fuzz, and it goes on from there; what ends a reader lies there in FUZZER.found.
# Usage: scripts/fuzz.sh SECONDSs|RUNS [FUZZER...]      60s or 1000000 of each; all of them when none is named
set -uo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || { sed -n 's/^# Usage: //p' "$0"; exit 2; }
amount=-runs=$1
[[ $1 != *s ]] || amount=-max_total_time=${1%s}
shift
[ $# -gt 0 ] || set -- $(basename -s .rs fuzz/src/bin/*.rs | grep -v seeds)

# What cargo-fuzz gives; a target is named so that build scripts have no counters.
target=$(rustc -vV | sed -n 's/^host: //p')
counters='-sanitizer-coverage-level=4 -sanitizer-coverage-inline-8bit-counters -sanitizer-coverage-pc-table -sanitizer-coverage-trace-compares'
flags='--cfg fuzzing -Cpasses=sancov-module'
for argument in $counters; do flags+=" -Cllvm-args=$argument"; done
RUSTFLAGS=$flags nice cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target-dir fuzz/target --target "$target" || exit 1
programs=fuzz/target/$target/release found=0
# One worker, and files in memory where there is such a place.
export RAYON_NUM_THREADS=1
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm

for name in "$@"; do
  here=.cache/fuzz/$name
  mkdir -p "$here" "$here.found"
  [ -e "$here.runs" ] || { "$programs/seeds" "$name" "$here" && echo 0 >"$here.runs"; } || exit 1
  case $name in library | plugin | onnx | text) longest=16384 ;; *) longest=4096 ;; esac
  nice "$programs/$name" "$here" -max_len=$longest -timeout=10 -rss_limit_mb=4096 -report_slow_units=5 -print_final_stats=1 \
    -artifact_prefix="$here.found/" "$amount" >"$here.log" 2>&1
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$here.log")
  echo $(($(cat "$here.runs") + ${runs:-0})) >"$here.runs"
  printf '%-10s %12s runs, %12s in all, %6s edges, %s files found\n' "$name" "${runs:-?}" "$(cat "$here.runs")" \
    "$(grep -o ' cov: [0-9]*' "$here.log" | tail -1 | cut -c7-)" "$(ls "$here.found" | wc -l)"
  for file in "$here.found"/*; do
    [ ! -e "$file" ] || { found=1 && echo "  $file"; }
  done
done
exit $found
