#!/usr/bin/env python3
"""Compiles models with Tenon and times them, with ONNX Runtime and OpenVINO beside it: one line for each.

usage: .cache/venv/bin/python benches/models.py [-t THREADS,…] [-r ROUNDS] [-s SECONDS] [-k KERNELS] [-D NAME=VALUE] [--open] [--json] MODEL...

All run the same inputs, those of MODEL.npz beside the model (`in_NAME`, or `NAME`) or uniform in [-1, 1), on as many threads. They
take turns: in each of ROUNDS rounds each runs for about SECONDS, so that whatever slows the machine down slows all. Compiling
is timed once: reading the model, all passes, code generation, and linking to a library. The ratio is Tenon's least time
by the better of the others': below 1, Tenon is faster. The error is the largest difference from ONNX Runtime, as a part of
the largest element. OpenVINO takes part where its wheel is installed (`scripts/setup-python.sh --bench`).
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

try:
    import openvino
except ImportError:
    openvino = None

TENON = pathlib.Path(__file__).parent.parent / "target/release/tenon"
DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
          "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
COLUMNS = [("threads", "d"), ("tenon_ms", ".3f"), ("ort_ms", ".3f"), ("openvino_ms", ".3f"), ("ratio", ".2f"),
           ("error", ".1e"), ("compile_s", ".2f")]


def timed(run, seconds, least=3):
    """Milliseconds of each run for about so long, after one that does not count."""
    run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


class OnnxRuntime:
    name = "ort"

    def __init__(self, path, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def inputs(self, path, dims):
        """An array for each input."""
        beside = path.with_suffix(".npz")
        known = dict(np.load(beside)) if beside.exists() else {}
        random = np.random.default_rng(0)
        feed = {}
        for given in self.session.get_inputs():
            name = next((name for name in (f"in_{given.name}", given.name) if name in known), None)
            if name:
                feed[given.name] = known[name]
                continue
            unknown = [dim for dim in given.shape if isinstance(dim, str) and dim not in dims]
            if unknown:
                sys.exit(f"input {given.name} has the symbolic dimension {unknown[0]}: give -D {unknown[0]}=VALUE")
            shape = [int(dims.get(dim, dim)) for dim in given.shape]
            feed[given.name] = random.uniform(-1, 1, shape).astype(DTYPES[given.type])
        return feed

    def results(self, feed):
        return dict(zip([given.name for given in self.session.get_outputs()], self.session.run(None, feed)))

    def times(self, feed, seconds):
        return timed(lambda: self.session.run(None, feed), seconds)


class OpenVino:
    name = "openvino"

    def __init__(self, path, threads, feed):
        config = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1,
                  "PERFORMANCE_HINT": "LATENCY"}
        compiled = openvino.Core().compile_model(str(path), "CPU", config)
        self.request = compiled.create_infer_request()
        for given in compiled.inputs:
            # A tensor has the names of all that it is in the model.
            name = next(name for name in given.get_names() if name in feed)
            self.request.set_tensor(given, openvino.Tensor(np.ascontiguousarray(feed[name])))
        self.request.infer()

    def times(self, _, seconds):
        return timed(self.request.infer, seconds)


class Tenon:
    name = "tenon"

    def __init__(self, path, dims, folder):
        self.model, self.library, self.dims = path, folder / "model.so", dims
        start = time.perf_counter()
        call("compile", path, "-o", self.library, *self.options())
        self.compile_s = time.perf_counter() - start

    def options(self):
        return [word for name, value in self.dims.items() for word in ("-D", f"{name}={value}")]

    def run(self, inputs, threads, runs, *more):
        return call("run", self.library, "--inputs", inputs, "--threads", threads, "--repeat", runs, *more)

    def kernels(self, inputs, threads, count):
        """The kernels that take longest: milliseconds and share of the peak that is measured beside them."""
        words = ("run", self.model, *self.options(), "--inputs", inputs, "--threads", threads, "--repeat", 20, "--profile")
        return sorted(call(*words)["kernels"], key=lambda row: -row["ms"])[:count]


def call(*words):
    """What a command of the `tenon` program prints as JSON."""
    command = [str(word) for word in (TENON, *words, "--json")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr or done.stdout}")
    return json.loads(done.stdout)


def error(found, expected):
    """The largest difference, as a part of the largest element."""
    worst = 0.0
    for name, theirs in expected.items():
        ours = found[name]
        if theirs.dtype.kind == "f" and theirs.size:
            worst = max(worst, float(np.max(np.abs(ours - theirs)) / (np.max(np.abs(theirs)) + 1e-30)))
        elif theirs.size:
            worst = max(worst, float(np.mean(ours != theirs)))
    return worst


def measure(path, threads, dims, args, folder):
    first = OnnxRuntime(path, threads)
    feed = first.inputs(path, dims)
    inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
    np.savez(inputs, **feed)
    tenon = Tenon(path, {} if args.open else dims, folder)
    once = tenon.run(inputs, threads, 3, "--output", outputs)["min_ms"]
    row = {"model": path.stem, "threads": threads, "compile_s": tenon.compile_s,
           "error": error(np.load(outputs), first.results(feed))}
    others = [first]
    if openvino:
        try:
            others.append(OpenVino(path, threads, feed))
        except (RuntimeError, StopIteration) as why:
            print(f"{path.stem}: OpenVINO does not run it: {str(why)[:200]}", file=sys.stderr)
    runs = max(3, math.ceil(args.seconds * 1e3 / max(once, 1e-3)))
    least = {}
    for _ in range(args.rounds):
        times = {"tenon": [tenon.run(inputs, threads, runs)["min_ms"]]}
        times.update((other.name, other.times(feed, args.seconds)) for other in others)
        for name, taken in times.items():
            least[name] = min(least.get(name, math.inf), min(taken))
    row.update((f"{name}_ms", ms) for name, ms in least.items())
    row["ratio"] = least["tenon"] / min(ms for name, ms in least.items() if name != "tenon")
    if args.kernels:
        row["kernels"] = tenon.kernels(inputs, threads, args.kernels)
    return row


def line(row):
    cells = [f"{row[name]:{form}}" if name in row else "-" for name, form in COLUMNS]
    text = f"{row['model']:<24}" + "".join(f"{cell:>12}" for cell in cells)
    for kernel in row.get("kernels", []):
        share = kernel.get("share_of_peak")
        share = "" if share is None else f"{100 * share:5.0f} % of the peak"
        text += f"\n    {kernel['ms']:9.3f} ms {share:>18}  {kernel['kernel']}"
    return text


def main():
    parser = argparse.ArgumentParser(description="Time models compiled by Tenon, with ONNX Runtime and OpenVINO beside it.")
    parser.add_argument("models", nargs="+", metavar="MODEL", type=pathlib.Path)
    parser.add_argument("-t", "--threads", default="1", help="threads of all, or several numbers: 1,2 (default 1)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="turns that each takes (default 5)")
    parser.add_argument("-s", "--seconds", type=float, default=0.5, help="about so long is a turn (default 0.5)")
    parser.add_argument("-k", "--kernels", type=int, default=0, help="show so many kernels that take longest")
    parser.add_argument("-D", "--dim", action="append", default=[], metavar="NAME=VALUE", help="a symbolic dimension")
    parser.add_argument("--open", action="store_true", help="leave dimensions open to Tenon; -D says what the run's are")
    parser.add_argument("--json", action="store_true", help="print one JSON line for each model")
    args = parser.parse_args()
    dims = dict(dim.split("=", 1) for dim in args.dim)

    if not args.json:
        beside = f"OpenVINO {openvino.__version__}" if openvino else "no OpenVINO"
        print(f"Tenon, ONNX Runtime {ort.__version__}, {beside}; {args.rounds} turns each")
        print(f"{'model':<24}" + "".join(f"{name:>12}" for name, _ in COLUMNS))
    ratios = {}
    for threads in map(int, args.threads.split(",")):
        for path in args.models:
            with tempfile.TemporaryDirectory() as folder:
                row = measure(path, threads, dims, args, pathlib.Path(folder))
            ratios.setdefault(threads, []).append(row["ratio"])
            print(json.dumps(row) if args.json else line(row), flush=True)
    if not args.json:
        for threads, of in ratios.items():
            mean = math.exp(statistics.fmean(map(math.log, of)))
            print(f"geometric mean of the ratios on {threads} thread(s): {mean:.2f}")


if __name__ == "__main__":
    main()
