#!/usr/bin/env python3
"""Times what a call of a model costs besides its work, from C, with ONNX Runtime beside it.

usage: .cache/venv/bin/python benches/calls.py [-r ROUNDS]

The models do next to nothing: chains of a few nodes over 16 floats, with all sizes known and with an open batch. Tenon's libraries are
called by a program in C, which is given them as any program is; ONNX Runtime by `run_with_iobinding` on one thread, of which some tenths
of a microsecond are Python's. `Transpose` stands between the nodes' sums so that neither of both makes one node of them. Each row is
the least of some rounds, in which all take turns.
"""

import argparse
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

TENON = pathlib.Path(__file__).parent.parent / "target/release/tenon"
CALLS = 20_000
DRIVER = r"""
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include "calls.h"

int main(void) {
  static _Alignas(64) float x[16], y[16];
  static _Alignas(64) unsigned char workspace[1 << 16];
  int64_t shape[2] = {4, 4};
  DLTensor in = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, out = in;
  out.data = y;
  uint64_t bytes = 0;
  if (calls_sizes(&in, NULL, &bytes) || bytes > sizeof workspace) return 1;
  double least = 1e30;
  for (int round = 0; round < 10; round++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int call = 0; call < CALLS; call++)
      if (calls_run(&in, &out, workspace, NULL)) return 1;
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / CALLS;
    if (ns < least) least = ns;
  }
  printf("%f\n", least / 1e3);
  return 0;
}
"""


def model(nodes, batch):
    """`nodes` sums with transpositions between them, over 4 by 4 elements."""
    made, value = [], "x"
    for at in range(nodes):
        made.append(helper.make_node("Add", [value, "one"], [f"sum{at}"]))
        made.append(helper.make_node("Transpose", [f"sum{at}"], [f"t{at}"], perm=[1, 0]))
        value = f"t{at}"
    shape = [batch, batch] if isinstance(batch, str) else [4, 4]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", value)]
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    graph = helper.make_graph(made, "calls", [info[0]], [info[1]], [one])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Tenon:
    def __init__(self, path, folder):
        library = folder / "calls.so"
        subprocess.run([TENON, "compile", path, "-o", library], check=True, capture_output=True)
        (folder / "main.c").write_text(DRIVER)
        command = ["cc", "-O2", f"-DCALLS={CALLS}", "main.c", "calls.so", "-Wl,-rpath,$ORIGIN", "-o", "main"]
        subprocess.run(command, cwd=folder, check=True)
        self.program = folder / "main"

    def microseconds(self):
        return float(subprocess.run([self.program], check=True, capture_output=True, text=True).stdout)


class OnnxRuntime:
    def __init__(self, path):
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.x, self.y = [ort.OrtValue.ortvalue_from_numpy(np.zeros((4, 4), np.float32)) for _ in range(2)]
        self.binding.bind_ortvalue_input("x", self.x)
        self.binding.bind_ortvalue_output(self.session.get_outputs()[0].name, self.y)

    def microseconds(self):
        least = float("inf")
        for _ in range(10):
            start = time.perf_counter()
            for _ in range(CALLS // 10):
                self.session.run_with_iobinding(self.binding)
            least = min(least, (time.perf_counter() - start) / (CALLS // 10) * 1e6)
        return least


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("-r", "--rounds", type=int, default=3)
    rounds = arguments.parse_args().rounds
    print(f"{'model':24}{'Tenon':>10}{'ONNX Runtime':>16}   microseconds a call")
    for sizes, batch in [("known", 4), ("open", "n")]:
        for nodes in [1, 4, 16]:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                onnx.save(model(nodes, batch), folder / "calls.onnx")
                both = [Tenon(folder / "calls.onnx", folder), OnnxRuntime(folder / "calls.onnx")]
                least = [min(times) for times in zip(*([it.microseconds() for it in both] for _ in range(rounds)))]
            print(f"{2 * nodes:3} nodes, sizes {sizes:7}{least[0]:10.3f}{least[1]:16.3f}")


if __name__ == "__main__":
    main()
