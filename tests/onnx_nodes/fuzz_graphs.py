"""A campaign of models of many operators, as make_graphs.py draws them, that `tenon run` compiles and runs.

Usage: fuzz_graphs.py TENON FOLDER [COUNT]

Goes on where the last campaign in FOLDER ended, for COUNT models more, or until it is stopped; it may be killed at any
time. A model that cannot be compiled, ends the program, or gives other results than its judge is kept in FOLDER/failed:
what is said, the model as it was drawn, and a smaller one that fails in the same way, in which what is known of values
takes the place of the nodes that gave them.
"""

import os
import shutil
import subprocess
import sys

import numpy as np
import onnx

from make_graphs import apart, drawn, model_of, outputs_of, save

SEED = 1
OPTIONS = [[], [], ["--opt-level", "0"], ["--opt-level", "1"], ["--threads", "2"]]


def problem(tenon, place, graph, outputs, options):
    """What is wrong with a model; none where it is right."""
    os.makedirs(place, exist_ok=True)
    path, given, found = (os.path.join(place, name) for name in ("model.onnx", "inputs.npz", "outputs.npz"))
    with open(path, "wb") as file:
        file.write(model_of(graph, outputs).SerializeToString())
    np.savez(given, **{known.name: known.value for known in graph.given})
    if os.path.exists(found):
        os.remove(found)
    command = [tenon, "run", path, "--inputs", given, "--output", found, *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "it takes longer than two minutes"
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr}"
    with np.load(found) as results:
        for known in outputs:
            wrong = difference(known, results[known.name])
            if wrong:
                return f"{known.name} {wrong}"
    return None


def difference(known, found):
    want = known.value
    if (found.dtype, found.shape) != (want.dtype, want.shape):
        return f"is {found.dtype}{found.shape}, expected {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return None if np.array_equal(found, want) else "differs"
    relative = 4e-3 if want.dtype == np.float16 else 1e-4
    off = np.abs(found.astype("float64") - want.astype("float64"))
    allowed = 4 * apart(known) + relative * np.abs(want.astype("float64")) + 1e-6
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
    read = {name for node in smaller.nodes for name in node.input if name}
    everything = {known.name: known for known in graph.everything()}
    constants = {known.name for known in graph.weights}
    smaller.values = [everything[name] for name in everything if name in made]
    smaller.weights = [everything[name] for name in everything if name in read and name in constants]
    smaller.given = [everything[name] for name in everything if name in read - made - constants]
    smaller.read = read
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
    number, nodes, failures = (int(it) for it in open(state).read().split()) if os.path.exists(state) else (0, 0, 0)
    for number in range(number, number + count):
        graph = drawn(SEED, number)
        if not graph.nodes:
            continue
        outputs, options = outputs_of(graph), OPTIONS[number % len(OPTIONS)]
        work = os.path.join(folder, "work")
        found = problem(tenon, work, graph, outputs, options)
        if found:
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
            file.write(f"{number + 1} {nodes} {failures}")
        os.replace(state + ".new", state)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} models of {nodes} nodes; {failures} fail", flush=True)
    print(f"{number + 1} models of {nodes} nodes; {failures} fail")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
