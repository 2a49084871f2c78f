#!/usr/bin/env bash
# Runs every test, and prints how many minutes each suite took beside those that docs/testing.md gives it.
# Minutes are those of the whole machine: tests that ran side by side on two cores count half.
set -uo pipefail
cd "$(dirname "$0")/.."

# What is said goes through a pipe.
[ ! -t 1 ] || export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-always}"
# What fails on purpose leaves reproducers among the temporary files.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
minutes=$(mktemp) said=$(mktemp)
failed=0 wrong=""

# Runs a command as a suite, and keeps what it said.
suite() { # NAME COMMAND...
  local name=$1 start=$SECONDS
  shift
  "$@" 2>&1 | tee "$said" || { failed=1 wrong="$wrong $name"; }
  awk -v name="$name" -v seconds=$((SECONDS - start)) 'BEGIN { print name, seconds / 60 }' >>"$minutes"
}

# The minutes of nextest's suites, from what it writes for machines: a line for each test, with its seconds.
of_nextest() {
  awk -v threads="$(nproc)" '
    match($0, /<testcase .*classname="[^"]*"/) && match($0, /classname="[^"]*"/) {
      name = substr($0, RSTART + 11, RLENGTH - 12)
      # Tests within the sources are one suite.
      if (name !~ /::/ || name ~ /::bin\//) name = "unit"
      if (match($0, / time="[^"]*"/)) seconds[name] += substr($0, RSTART + 7, RLENGTH - 8)
    }
    END { for (name in seconds) print name, seconds[name] / threads / 60 }' target/nextest/default/junit.xml
}

# Plugins are shared libraries which the tests load from target/release, so everything is built first. Nothing is
# compiled twice: what is built here is what the tests are linked with.
suite build cargo build --release --workspace --lib --bins --examples --tests
[ $failed = 0 ] || exit 1
suite interleavings cargo run --quiet --manifest-path tests/interleavings/Cargo.toml --target-dir target/interleavings
# nextest does not run doc tests.
suite doc cargo test --release --workspace --doc --quiet
if cargo nextest --version >/dev/null 2>&1; then
  rm -f target/nextest/default/junit.xml
  suite nextest cargo nextest run --release --workspace
  if [ -e target/nextest/default/junit.xml ]; then
    sed -i '/^nextest /d' "$minutes"
    of_nextest >>"$minutes"
  fi
else
  suite all cargo test --release --workspace --tests
fi

echo
echo 'minutes  given  suite'
# The table's rows: | `suite` | minutes | ... |
awk -F'[|` ]+' '
  NR == FNR { if ($0 ~ /^\| `/) given[$2] = $3; next }
  {
    split($0, word, " ")
    sum += word[2]
    much = (word[2] > given[word[1]] + 0) ? "  (more than it is given)" : ""
    printf "%7.2f %6s  %s%s\n", word[2], given[word[1]], word[1], much
  }
  END { printf "%7.2f         in all\n", sum }' docs/testing.md <(sort -k2 -nr "$minutes")
grep -m1 '^# [0-9]* cases' tests/onnx_nodes/unsupported.txt | sed "s/^# /onnx's node tests: /"
grep -m1 '^# [0-9]* random cases' tests/onnx_nodes/differences.txt | sed 's/^# //'
[ $failed = 0 ] || echo "failed:$wrong"
# What the test runner said comes last.
grep -E 'Summary.*\[|^test result' "$said" | tail -n 1
exit $failed
