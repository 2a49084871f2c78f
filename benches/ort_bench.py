#!/usr/bin/env python3
"""Times ONNX Runtime on a model, one JSON line for each, so that other numbers can stand beside it.

usage: .cache/venv/bin/python benches/ort_bench.py [-t THREADS] [-n RUNS] [-s SECONDS] [-D NAME=VALUE] MODEL...

Inputs are uniform in [-1, 1). Runs go on until there are RUNS of them or SECONDS have passed, after a warm-up of
three runs. Times are milliseconds of wall clock for one run; "load_ms" is the time to read and prepare the model.
"""

import argparse
import json
import os
import sys
import time

import numpy as np
import onnxruntime as ort

DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32}


def bench(path, args):
    options = ort.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    start = time.perf_counter()
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    load = time.perf_counter() - start

    dims = dict(d.split("=", 1) for d in args.dim)
    rng = np.random.default_rng(0)
    feed = {}
    for i in session.get_inputs():
        try:
            shape = [int(dims[d] if isinstance(d, str) else d) for d in i.shape]
        except KeyError as e:
            sys.exit(f"{path}: input {i.name} has the symbolic dimension {e}: give -D {e.args[0]}=VALUE")
        feed[i.name] = rng.uniform(-1, 1, shape).astype(DTYPES[i.type])

    for _ in range(3):
        session.run(None, feed)
    times, begin = [], time.perf_counter()
    while len(times) < args.runs and time.perf_counter() - begin < args.seconds:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return {
        "model": os.path.basename(path).removesuffix(".onnx"), "runtime": f"onnxruntime {ort.__version__}",
        "threads": args.threads, "runs": len(times), "min_ms": round(min(times) * 1e3, 4),
        "median_ms": round(float(np.median(times)) * 1e3, 4), "load_ms": round(load * 1e3, 1),
    }


def main():
    parser = argparse.ArgumentParser(description="Time ONNX Runtime on models.")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("-t", "--threads", type=int, default=1, help="threads within an operator (default 1)")
    parser.add_argument("-n", "--runs", type=int, default=50, help="at most this many timed runs (default 50)")
    parser.add_argument("-s", "--seconds", type=float, default=5.0, help="start no run after this time (default 5)")
    parser.add_argument("-D", "--dim", action="append", default=[], metavar="NAME=VALUE", help="a symbolic dimension")
    args = parser.parse_args()
    for path in args.models:
        print(json.dumps(bench(path, args)), flush=True)


if __name__ == "__main__":
    main()
