#!/usr/bin/env python3
"""Times decoders that make one token, and what a plain read of as many bytes as their weights takes in the same run.

usage: .cache/venv/bin/python benches/decode.py [-t THREADS,…] [-r ROUNDS] [-w WIDTH,…] MODEL...

Each MODEL.onnx runs with the inputs of the MODEL.npz beside it (`in_NAME`, or `NAME`), compiled with its weights in each width. What a
token reads are the constant matrices of products, with their scales: `mb` says how much. The plain read is a loop in C that combines all
words of memory, on as many threads, each of which has a part of it. Both take turns for ROUNDS rounds, and the least time counts. `share` is
how near the whole token comes to the read: all else that a model does, such as attention over what came before, is in it. Models that
are made for this: `benches/decode_models.py`.
"""

import argparse
import math
import pathlib
import subprocess
import tempfile

import numpy as np
import onnx

from models import call

# Options of the compiler, and bits of a weight of a column of so many.
WIDTHS = {
    "fp32": ([], lambda depth: 32),
    "bf16": (["--precision", "bf16"], lambda depth: 16),
    "int8": (["--weights", "int8"], lambda depth: 8 + 32 / depth),
    "int4:32": (["--weights", "int4:32"], lambda depth: 4 + 32 / 32),
}
READ = r"""
#define _POSIX_C_SOURCE 199309L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDE = 8, BLOCK = 32 * WIDE };
typedef uint64_t Words __attribute__((vector_size(32)));
static size_t blocks;
static volatile uintptr_t seen;

static void *read_part(void *from) {
  const Words *words = from;
  Words all[WIDE] = {0};
  for (size_t block = 0; block < blocks; block++, words += WIDE)
    for (int i = 0; i < WIDE; i++) all[i] ^= words[i];
  for (int i = 1; i < WIDE; i++) all[0] ^= all[i];
  return (void *)(uintptr_t)(all[0][0] ^ all[0][1] ^ all[0][2] ^ all[0][3]);
}

int main(int count, char **words) {
  if (count != 4) return 1;
  size_t bytes = strtoull(words[1], NULL, 10);
  int threads = atoi(words[2]), runs = atoi(words[3]);
  blocks = bytes / threads / BLOCK;
  unsigned char *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  pthread_t others[64];
  if (!memory || threads < 1 || threads > 64) return 1;
  memset(memory, 1, bytes);
  double least = 1e30;
  for (int run = 0; run < runs; run++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int at = 1; at < threads; at++) pthread_create(&others[at], NULL, read_part, memory + at * blocks * BLOCK);
    seen = (uintptr_t)read_part(memory);
    for (int at = 1; at < threads; at++) pthread_join(others[at], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ms = (to.tv_sec - from.tv_sec) * 1e3 + (to.tv_nsec - from.tv_nsec) / 1e6;
    if (ms < least) least = ms;
  }
  printf("%f\n", least);
  return 0;
}
"""


def bytes_of_weights(model, bits):
    """What products read of constant matrices, at so many bits of a weight of a column of some depth."""
    shapes = {each.name: list(each.dims) for each in model.graph.initializer}
    total = 0
    for node in model.graph.node:
        if node.op_type in ("Transpose", "Identity") and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]][::-1 if node.op_type == "Transpose" else 1]
        elif node.op_type in ("MatMul", "Gemm"):
            shape = shapes.get(node.input[1], [])
            turned = any(each.name == "transB" and each.i for each in node.attribute)
            if len(shape) == 2:
                total += math.prod(shape) * bits(shape[1 if turned else 0]) / 8
    return int(total)


def inputs_of(path, folder):
    """The inputs beside a model, under their own names."""
    known = np.load(path.with_suffix(".npz"))
    np.savez(folder / "inputs.npz", **{name.removeprefix("in_"): known[name] for name in known})
    return folder / "inputs.npz"


def measure(path, width, threads, rounds, folder):
    options, bits = WIDTHS[width]
    library, inputs = folder / f"{width.replace(':', '_')}.so", inputs_of(path, folder)
    if not library.exists():
        call("compile", path, "-o", library, *options)
    size = bytes_of_weights(onnx.load(path), bits)
    own, read = [], []
    for _ in range(rounds):
        own.append(call("run", library, "--inputs", inputs, "--threads", threads, "--repeat", 10)["min_ms"])
        words = [folder / "read", str(size), str(threads), "10"]
        read.append(float(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    own, read = min(own), min(read)
    speeds = f"{size / own / 1e6:10.1f}{size / read / 1e6:10.1f}{read / own:8.2f}"
    print(f"{path.stem:20}{width:>9}{threads:>8}{size / 1e6:8.0f}{own:9.2f}{speeds}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("models", nargs="+", metavar="MODEL", type=pathlib.Path)
    arguments.add_argument("-t", "--threads", default="1,2")
    arguments.add_argument("-r", "--rounds", type=int, default=5)
    arguments.add_argument("-w", "--widths", default=",".join(WIDTHS))
    given = arguments.parse_args()
    print(f"{'model':20}{'weights':>9}{'threads':>8}{'mb':>8}{'ms':>9}{'gb_s':>10}{'read_gb_s':>10}{'share':>8}")
    for path in given.models:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "read.c").write_text(READ)
            subprocess.run(["cc", "-O3", "-march=native", "-pthread", "read.c", "-o", "read"], cwd=folder, check=True)
            for width in given.widths.split(","):
                for threads in map(int, given.threads.split(",")):
                    measure(path, width, threads, given.rounds, folder)


if __name__ == "__main__":
    main()
