#!/usr/bin/env bash
# Looks for undefined behaviour and races with every tool that is at hand, and says which are not: docs/testing.md says
# what each looks at.
# Usage: scripts/sanitize.sh [TOOL...]      interleavings address thread memcheck miri; all of them when none is named
set -uo pipefail
cd "$(dirname "$0")/.."

TOOLS=(interleavings address thread memcheck miri)
target=$(rustc -vV | sed -n 's/^host: //p')
failed=() missing=()
# A newer compiler warns of what it alone knows.
export CARGO_BUILD_WARNINGS=allow
# A test asks for more memory than there is, and is refused.
export ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1

# What works with raw memory or between threads: the border, terms and functions, tensors, the pool, compiled libraries.
tests=(border:: compact:: flatten:: module:: structural:: substitute:: texts:: executable:: backend:: object:: plan:: external:: dlpack:: parallel:: signature:: status:: library:: mapping::)
# The same as far as it needs neither LLVM nor files.
pure_tests=(border::)
pure_runtime_tests=(dlpack:: parallel:: signature:: status::)

absent() { missing+=("$1") && echo "not done: $1"; }

# Runs one part of a tool's work, and keeps its name when it finds something.
part() { # NAME COMMAND...
  "${@:2}" || failed+=("$1")
}

has_nightly() { # COMPONENT-DIRECTORY
  cargo +nightly --version >/dev/null 2>&1 && [ -e "$(rustc +nightly --print sysroot)/$1" ]
}

interleavings() {
  part interleavings cargo run --quiet --manifest-path tests/interleavings/Cargo.toml --target-dir target/interleavings
}

# The switch of rustc's sanitizers is not stable, so the compiler is told to take it all the same. Its own runtime comes
# with it. Line tables are enough for reports.
sanitized() { # NAME CARGO-ARGUMENTS...
  RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only RUSTFLAGS="-Zsanitizer=$1" \
    cargo "${@:2}" --target "$target" --target-dir "target/sanitize-$1" -p tenon-ir -p tenon-codegen -p tenon-compiler -p tenon-runtime --lib -- "${tests[@]}"
}

address() {
  if ! compgen -G "$(rustc --print sysroot)/lib/rustlib/$target/lib/librustc-*_rt.asan.a" >/dev/null; then
    absent "address: this compiler comes without the runtime of its address sanitizer for $target"
    return
  fi
  # Contexts, terms and libraries stay until the process ends, so leaks are not looked for.
  ASAN_OPTIONS+=:detect_leaks=0 part address sanitized address test
}

thread() {
  # A standard library that is not instrumented hides what it orders, so it is built as well.
  if ! has_nightly lib/rustlib/src/rust/library; then
    absent 'thread: it needs a nightly compiler with its sources (rustup toolchain install nightly -c rust-src)'
    return
  fi
  part thread sanitized thread +nightly test -Zbuild-std
}

# No sanitizer instruments compiled code: valgrind looks at each access of it, on two threads.
memcheck() {
  command -v valgrind >/dev/null || { absent 'memcheck: valgrind is not installed'; return; }
  # The widest vectors that valgrind knows.
  local cpu=() library=target/sanitize/digits.so
  [ "$(uname -m)" != x86_64 ] || cpu=(--target x86_64-linux-gnu,cpu=haswell)
  mkdir -p "${library%/*}"
  cargo build --release --workspace --quiet &&
    target/release/tenon compile examples/digits/digits.onnx -D batch=360 "${cpu[@]}" -o "$library" ||
    { failed+=(memcheck); return; }
  part memcheck valgrind --quiet --error-exitcode=1 target/release/tenon run "$library" --threads 2 \
    --inputs examples/digits/test_images.npz --output target/sanitize/outputs.npz
}

miri() {
  if ! has_nightly bin/cargo-miri || ! has_nightly lib/rustlib/src/rust/library; then
    absent 'miri: it comes with a nightly compiler (rustup toolchain install nightly -c miri -c rust-src)'
    return
  fi
  local arguments=(+nightly miri test --quiet --target-dir target/miri --lib)
  # The clock may be read.
  local -x MIRIFLAGS=-Zmiri-disable-isolation
  part 'miri of the API' cargo "${arguments[@]}" -p tenon-plugin-api
  part 'miri of the IR' cargo "${arguments[@]}" -p tenon-ir
  part 'miri of the host' cargo "${arguments[@]}" -p tenon-compiler --no-default-features -- "${pure_tests[@]}"
  part 'miri of the runtime' cargo "${arguments[@]}" -p tenon-runtime -- "${pure_runtime_tests[@]}"
}

[ $# -gt 0 ] || set -- "${TOOLS[@]}"
for tool in "$@"; do
  case " ${TOOLS[*]} " in
    *" $tool "*) printf '\n== %s\n' "$tool" && "$tool" ;;
    *) echo "there is no tool $tool: ${TOOLS[*]}" && exit 2 ;;
  esac
done
printf '\n== in all\n'
[ ${#missing[@]} = 0 ] || printf 'not done: %s\n' "${missing[@]}"
[ ${#failed[@]} = 0 ] || printf 'something was found: %s\n' "${failed[@]}"
[ ${#failed[@]} = 0 ] && echo 'what was done found nothing'
