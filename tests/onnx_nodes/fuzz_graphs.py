"""A campaign of models of many operators, as make_graphs.py draws them, that `tenon run` compiles and runs.

Usage: fuzz_graphs.py TENON FOLDER [COUNT]

Goes on where the last campaign in FOLDER ended, for COUNT models more, or until it is stopped; it may be killed at any
time. A model that cannot be compiled, ends the program, or gives other results than its judge is kept in FOLDER/failed:
what is said, the model as it was drawn, and a smaller one that fails in the same way, in which what is known of values
takes the place of the nodes that gave them. What is said to be not supported is counted apart, and stands in FOLDER/unsupported.
"""

import os
import shutil
import subprocess
import sys

import numpy as np
import onnx

from graph_control import read_by
from make_graphs import apart, drawn, model_of, outputs_of, relative, save

SEED = 1
# What is said of a model of which something is missing.
LACKING = "uses what is not supported:"
OPTIONS = [[], [], ["--opt-level", "0"], ["--opt-level", "1"], ["--threads", "2"]]


def problem(tenon, place, graph, outputs, options):
    """What is wrong with a model; none where it is right. One with an open dimension is compiled once for all of its sizes."""
    os.makedirs(place, exist_ok=True)
    path, library = (os.path.join(place, name) for name in ("model.onnx", "model.so"))
    with open(path, "wb") as file:
        file.write(model_of(graph, outputs).SerializeToString())
    if graph.sets:
        of_run = options if options[:1] == ["--threads"] else []
        wrong = said([tenon, "compile", path, "-o", library, *(option for option in options if option not in of_run)])
        if wrong:
            return wrong
        path, options = library, of_run
    for known in [{known.name: known for known in graph.everything()}, *graph.sets]:
        wrong = wrong_run(tenon, place, path, options, [known[it.name] for it in graph.given], [known[it.name] for it in outputs])
        if wrong:
            return wrong
    return None


def wrong_run(tenon, place, path, options, inputs, outputs):
    """What is wrong with a run of a model or a library."""
    given, found = (os.path.join(place, name) for name in ("inputs.npz", "outputs.npz"))
    np.savez(given, **{known.name: known.value for known in inputs})
    if os.path.exists(found):
        os.remove(found)
    wrong = said([tenon, "run", path, "--inputs", given, "--output", found, *options])
    if wrong:
        return wrong
    with np.load(found) as results:
        for known in outputs:
            wrong = difference(known, results[known.name])
            if wrong:
                return f"{known.name} {wrong}"
    return None


def said(command):
    """What a program says that fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "it takes longer than two minutes"
    return f"exit code {done.returncode}: {done.stderr}" if done.returncode else None


def difference(known, found):
    want = known.value
    if (found.dtype, found.shape) != (want.dtype, want.shape):
        return f"is {found.dtype}{found.shape}, expected {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return None if np.array_equal(found, want) else "differs"
    off = np.abs(found.astype("float64") - want.astype("float64"))
    allowed = 4 * apart(known) + relative(known) * np.abs(want.astype("float64")) + 1e-6
    return None if (off <= allowed).all() else f"is off by {np.nanmax(off)}"


def kind(text):
    """What a problem has in common with others."""
    return " ".join(text.split(": ", 2)[-1].split()[:3]) if text.startswith("exit code") else text.split(" ")[1:2]


def cut(graph, dropped):
    """The graph without some nodes; what is read of their results is given."""
    smaller = type(graph).__new__(type(graph))
    vars(smaller).update(vars(graph))
    smaller.nodes = [node for node in graph.nodes if node.name not in dropped]
    made = {name for node in smaller.nodes for name in node.output}
    read = {name for node in smaller.nodes for name in read_by(node)}
    everything = {known.name: known for known in graph.everything()}
    constants = {known.name for known in graph.weights}
    smaller.values = [everything[name] for name in everything if name in made]
    smaller.weights = [everything[name] for name in everything if name in read and name in constants]
    smaller.given = [everything[name] for name in everything if name in read - made - constants]
    # Of what was computed and is given now the other sizes are known too, but not which axes are open.
    smaller.read, smaller.open, smaller.sets = read, {}, []
    return smaller, [known for known in smaller.values if known.name not in read]


def reduced(fails, graph, outputs):
    """A smaller graph that fails as well: nodes go one by one, until none can."""
    dropped, is_smaller = set(), True
    while is_smaller:
        is_smaller = False
        for node in graph.nodes[::-1]:
            if node.name in dropped:
                continue
            candidate, results = cut(graph, dropped | {node.name})
            if results and fails(candidate, results):
                dropped.add(node.name)
                is_smaller = True
    return cut(graph, dropped) if dropped else (graph, outputs)


def main():
    tenon, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else sys.maxsize
    os.makedirs(os.path.join(folder, "failed"), exist_ok=True)
    state = os.path.join(folder, "state")
    counts = [int(it) for it in open(state).read().split()] if os.path.exists(state) else []
    number, nodes, failures, lacking = (counts + [0] * 4)[:4]
    for number in range(number, number + count):
        graph = drawn(SEED, number)
        if not graph.nodes:
            continue
        outputs, options = outputs_of(graph), OPTIONS[number % len(OPTIONS)]
        work = os.path.join(folder, "work")
        found = problem(tenon, work, graph, outputs, options)
        if found and LACKING in found:
            lacking += 1
            with open(os.path.join(folder, "unsupported"), "a") as file:
                file.write(f"{number}: {found.split(LACKING)[1].strip()}\n")
        elif found:
            failures += 1
            print(f"model {number}: {found}", flush=True)
            place = os.path.join(folder, "failed", str(number))
            shutil.rmtree(place, ignore_errors=True)
            save(place, graph, model_of(graph, outputs), outputs)

            def fails(candidate, results, wanted=kind(found), options=options):
                again = problem(tenon, work, candidate, results, options)
                return again is not None and kind(again) == wanted

            smaller, results = reduced(fails, graph, outputs)
            save(os.path.join(place, "small"), smaller, model_of(smaller, results), results)
            with open(os.path.join(place, "small.txt"), "w") as file:
                file.write(f"{found}\n{' '.join(options)}\n{onnx.printer.to_text(model_of(smaller, results))}\n")
        nodes += len(graph.nodes)
        with open(state + ".new", "w") as file:
            file.write(f"{number + 1} {nodes} {failures} {lacking}")
        os.replace(state + ".new", state)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} models of {nodes} nodes; {lacking} use what is not supported; {failures} fail", flush=True)
    print(f"{number + 1} models of {nodes} nodes; {lacking} use what is not supported; {failures} fail")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
