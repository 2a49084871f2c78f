#!/usr/bin/env bash
# Installs what Tenon is built with, where it is missing: C and C++ compilers, LLVM 22 with lld, Python 3.
# Usage: scripts/setup.sh [--models] [--emulators] [--wheel]
#   --models      also what the model tests use (scripts/setup-python.sh --models)
#   --emulators   also what runs code for other processors, for tests; where it cannot be had, that is said and no more
#   --wheel       also the archives of which a package for Python has LLVM inside
#
# On Debian and its relatives it installs packages, with sudo when it is not root. Elsewhere it says what is missing
# and exits with 1. When nothing is missing it does nothing, and takes a few milliseconds.
set -euo pipefail
cd "$(dirname "$0")/.."

models=false emulators=false wheel=false
for arg in "$@"; do
  case $arg in
    --models) models=true ;;
    --emulators) emulators=true ;;
    --wheel) wheel=true ;;
    *) echo "usage: scripts/setup.sh [--models] [--emulators] [--wheel]" >&2; exit 2 ;;
  esac
done

has() { command -v "$1" >/dev/null 2>&1; }
llvm_config() { for c in llvm-config-22 /usr/lib/llvm-22/bin/llvm-config; do has "$c" && echo "$c" && return; done; return 1; }

# One line for each thing that is missing: Debian's package, then the words for people elsewhere.
missing() {
  has cc || echo "gcc|a C compiler (cc), for linking"
  has c++ || echo "g++|a C++ compiler (c++), for what is asked of LLVM in C++"
  [ -e /usr/include/stdio.h ] || has xcrun || echo "libc6-dev|the C library's headers"
  has make || echo "make|make"
  # The config tool comes with llvm-22, headers and the library to link with llvm-22-dev.
  if ! c=$(llvm_config) || [ ! -e "$("$c" --includedir)/llvm-c/Core.h" ]; then
    echo "llvm-22-dev|LLVM 22 with headers and its shared library, llvm-config on the PATH as llvm-config-22"
  fi
  has ld.lld-22 || has ld.lld || [ -x /usr/lib/llvm-22/bin/ld.lld ] || echo "lld-22|lld, LLVM's linker"
  if $wheel; then
    archive() { case $(cc -print-file-name="$1" 2>/dev/null) in /*) ;; *) false ;; esac; }
    [ -e /usr/lib/llvm-22/lib/libPolly.a ] || echo "libpolly-22-dev|LLVM's archives, with Polly's (libPolly.a)"
    [ -e /usr/lib/llvm-22/lib/liblldELF.a ] || echo "liblld-22-dev|LLVM's linker as archives (liblldELF.a)"
    archive libffi.a || echo "libffi-dev|libffi.a"
    archive libzstd.a || echo "libzstd-dev|libzstd.a"
    archive libz.a || echo "zlib1g-dev|libz.a"
  fi
  has python3 || echo "python3|Python 3.11 or newer (only for the model tests and benchmarks)"
  has python3 && python3 -c 'import venv, ensurepip' 2>/dev/null ||
    echo "python3-venv|Python's venv and ensurepip (only for the model tests and benchmarks)"
}

if ! has cargo; then
  echo "setup: cargo is missing. Tenon is written in Rust: install it with rustup (version: rust-toolchain.toml)." >&2
  exit 1
fi

want=$(missing)
if [ -n "$want" ]; then
  packages=$(cut -d'|' -f1 <<<"$want" | tr '\n' ' ')
  if ! has apt-get; then
    echo "setup: missing here:" >&2
    cut -d'|' -f2 <<<"$want" | sed 's/^/  - /' >&2
    echo "Install these with your system's package manager, then run this again." >&2
    exit 1
  fi
  if [ "$(id -u)" = 0 ]; then sudo=(); elif has sudo; then sudo=(sudo); else
    echo "setup: run as root: apt-get install $packages" >&2
    exit 1
  fi
  apt() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"; }
  # What apt would install, or nothing when its lists do not know the package.
  known() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v '^(none)$'; }

  echo "setup: installing $packages"
  for package in $packages; do known "$package" >/dev/null || { apt update; break; }; done
  for package in $packages; do
    if ! known "$package" >/dev/null; then
      echo "setup: the package sources of this machine have no $package." >&2
      case $package in
        *-22*) echo "Debian 12 has LLVM 22 among its security updates; for other releases LLVM's own apt repository" \
                    "has it. Add one of them to the sources, then run this again." >&2 ;;
      esac
      exit 1
    fi
  done
  # A list that is old names versions that are gone: update, then once more.
  # shellcheck disable=SC2086 # one word for each package
  apt install -y --no-install-recommends $packages >/dev/null ||
    { apt update && apt install -y --no-install-recommends $packages >/dev/null; }

  want=$(missing)
  if [ -n "$want" ]; then
    echo "setup: still missing after the installation:" >&2
    cut -d'|' -f2 <<<"$want" | sed 's/^/  - /' >&2
    exit 1
  fi
fi

if $emulators && ! { has qemu-aarch64 && has qemu-riscv64; }; then
  echo "setup: installing qemu-user"
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  get() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >/dev/null 2>&1; }
  get install -y --no-install-recommends qemu-user ||
    { get update && get install -y --no-install-recommends qemu-user; } ||
    echo "setup: qemu-user cannot be had here; what is compiled for other processors is not run" >&2
fi

if $models; then scripts/setup-python.sh --models; fi
