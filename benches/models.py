#!/usr/bin/env python3
"""Compiles models with Tenon and times them, with ONNX Runtime beside it: one line for each.

usage: .cache/venv/bin/python benches/models.py [-t THREADS] [-r ROUNDS] [-s SECONDS] [-D NAME=VALUE] [--json] MODEL...

Both run the same inputs, uniform in [-1, 1), on as many threads. They take turns: in each of ROUNDS rounds one
runs for about SECONDS, then the other, so that whatever slows the machine down slows both. Compiling is timed
once: reading the model, all passes, code generation, and linking to a library. The ratio is Tenon's least time
by ONNX Runtime's: below 1, Tenon is faster.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

TENON = pathlib.Path(__file__).parent.parent / "target/release/tenon"
DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32}
COLUMNS = ["compile_s", "tenon_min_ms", "tenon_median_ms", "ort_min_ms", "ort_median_ms", "ratio"]


class OnnxRuntime:
    def __init__(self, path, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def inputs(self, dims):
        """An array for each input."""
        random = np.random.default_rng(0)
        feed = {}
        for given in self.session.get_inputs():
            unknown = [dim for dim in given.shape if isinstance(dim, str) and dim not in dims]
            if unknown:
                sys.exit(f"input {given.name} has the symbolic dimension {unknown[0]}: give -D {unknown[0]}=VALUE")
            shape = [int(dims.get(dim, dim)) for dim in given.shape]
            feed[given.name] = random.uniform(-1, 1, shape).astype(DTYPES[given.type])
        return feed

    def run(self, feed, runs):
        """Milliseconds of each run, after one that does not count."""
        times = []
        for _ in range(runs + 1):
            start = time.perf_counter()
            self.session.run(None, feed)
            times.append((time.perf_counter() - start) * 1e3)
        return min(times[1:]), statistics.median(times[1:])


class Tenon:
    def __init__(self, path, dims, folder):
        self.library = folder / "model.so"
        options = [word for name, value in dims.items() for word in ("-D", f"{name}={value}")]
        self.compile_s = call("compile", path, "-o", self.library, *options)["seconds"]

    def run(self, inputs, threads, runs):
        times = call("run", self.library, "--inputs", inputs, "--threads", threads, "--repeat", runs + 1)
        return times["min_ms"], times["median_ms"]


def call(*words):
    """What a command of the `tenon` program prints as JSON."""
    command = [str(word) for word in (TENON, *words, "--json")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr or done.stdout}")
    return json.loads(done.stdout)


def measure(path, dims, args, folder):
    tenon = Tenon(path, dims, folder)
    other = OnnxRuntime(path, args.threads)
    feed = other.inputs(dims)
    inputs = folder / "inputs.npz"
    np.savez(inputs, **feed)

    longest = max(tenon.run(inputs, args.threads, 1)[0], other.run(feed, 1)[0])
    runs = max(3, math.ceil(args.seconds * 1e3 / longest))
    rounds = [(tenon.run(inputs, args.threads, runs), other.run(feed, runs)) for _ in range(args.rounds)]
    ours, theirs = zip(*rounds)
    row = {"model": path.stem, "threads": args.threads, "runs": args.rounds * runs, "compile_s": tenon.compile_s}
    for name, times in [("tenon", ours), ("ort", theirs)]:
        row[f"{name}_min_ms"] = min(least for least, _ in times)
        row[f"{name}_median_ms"] = statistics.median(median for _, median in times)
    row["ratio"] = row["tenon_min_ms"] / row["ort_min_ms"]
    return row


def line(row):
    return f"{row['model']:<24}" + "".join(f"{row[name]:>17.2f}" for name in COLUMNS)


def main():
    parser = argparse.ArgumentParser(description="Time models compiled by Tenon, and ONNX Runtime on them.")
    parser.add_argument("models", nargs="+", metavar="MODEL", type=pathlib.Path)
    parser.add_argument("-t", "--threads", type=int, default=1, help="threads of both (default 1)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="turns that each takes (default 5)")
    parser.add_argument("-s", "--seconds", type=float, default=0.5, help="about so long is a turn (default 0.5)")
    parser.add_argument("-D", "--dim", action="append", default=[], metavar="NAME=VALUE", help="a symbolic dimension")
    parser.add_argument("--json", action="store_true", help="print one JSON line for each model")
    args = parser.parse_args()
    dims = dict(dim.split("=", 1) for dim in args.dim)

    if not args.json:
        print(f"Tenon and ONNX Runtime {ort.__version__} on {args.threads} thread(s), {args.rounds} turns each")
        print(f"{'model':<24}" + "".join(f"{name:>17}" for name in COLUMNS))
    ratios = []
    for path in args.models:
        with tempfile.TemporaryDirectory() as folder:
            row = measure(path, dims, args, pathlib.Path(folder))
        ratios.append(row["ratio"])
        print(json.dumps(row) if args.json else line(row), flush=True)
    if not args.json:
        print(f"geometric mean of the ratios: {math.exp(statistics.fmean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
