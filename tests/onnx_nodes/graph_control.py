"""Nodes of random models that hold graphs: choices, loops, and scans, whose bodies grow as make_graphs.py has models grow.

A body takes values of the models around it, may hold such nodes itself, and what it is given is given to the model. What is chosen, how
often a loop runs, and when it ends may follow from the number of an iteration. Each node of a body is judged by itself, in
every iteration; a node that is drawn is compared with what ONNX Runtime makes of it as a whole.
"""

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from make_random import BOOL, Again

# Nodes of a body, at most; iterations; how often a node is one that holds graphs, by how many graphs are around it.
MOST, TRIPS, OFTEN = 3, 3, [0.08, 0.4, 0.2]
# Draws of a node, by how many graphs are around it.
TRIES = [8, 2, 1]


class Wrong(BaseException):
    """A mistake here: a body that was judged is other than the whole."""


def grow(graph):
    """Adds a node that holds graphs; Again where this draw makes no sense."""
    kinds = [choice, loop, loop, loop, scan, scan] if graph.version >= 9 else [choice, loop, loop]
    draw = kinds[int(graph.rng.integers(len(kinds)))]
    for _ in range(TRIES[graph.depth]):
        state = graph.state()
        try:
            return draw(graph)
        except Exception:  # noqa: BLE001: whatever refuses a draw, the next one is made
            graph.restore(state)
    raise Again


def choice(graph):
    cond = truth(graph)
    bodies = [grown(graph, prefix, []) for prefix in ("then", "else")]
    taken, other = bodies if cond.value else bodies[::-1]
    results = some(graph, taken.own(), 2)
    others = [like(other, result) for result in results]
    outputs = [results, others] if cond.value else [others, results]
    attrs = {f"{name}_branch": graph_of(body, f"{name}", [], values)
             for name, body, values in zip(("then", "else"), bodies, outputs)}
    node = helper.make_node("If", [cond.name], names(graph, "if", len(results)), name=f"{graph.prefix}If_{len(graph.nodes)}", **attrs)

    def redo(known):
        inner, outer = taken.replayed(known), other.replayed(known)
        if any(inner[a.name].value.shape != outer[b.name].value.shape for a, b in zip(results, others)):
            raise Again
        is_same = bool(known[cond.name].value) == bool(cond.value)
        return [inner[result.name] for result in results] if is_same else [outer[result.name] for result in others]

    graph.hold(node, redo, [cond], bodies)


def loop(graph):
    count, most = trips_of(graph)
    first = truth(graph) if graph.rng.random() < 0.15 else None
    states = some(graph, [known for known in graph.values if known.value.dtype.kind in "fiu"], 2)
    if not states:
        raise Again
    base = f"{graph.prefix}loop{len(graph.nodes)}"
    number = graph.known(f"{base}_i", np.array(0, np.int64))
    going = graph.known(f"{base}_go", np.array(True))
    inner = [renamed(known, f"{base}_s{place}") for place, known in enumerate(states)]
    body = grown(graph, "body", [number, *inner], number)
    nexts = [next_of(body, state) for state in inner]
    on = truth(body, number) if graph.rng.random() < 0.3 else None
    # How many rows there are may be found by a call, and is then a size of its own.
    is_fixed = on is None and first is None and count.is_constant
    scanned = some(graph, body.own(), 1) if graph.rng.random() < (0.5 if is_fixed else 0.3) else []
    distinct(nexts, scanned)
    if on is None or on.name not in {known.name for known in body.own()}:
        source, on = on or going, graph.known(f"{base}_on", going.value)
        body.nodes.append(helper.make_node("Identity", [source.name], [on.name], name=on.name))
        ends = source if source is not going else None
    else:
        ends = on
    attr = graph_of(body, "body", [number, going, *inner], [on, *nexts, *scanned], [number, going])
    node = helper.make_node("Loop", [count.name, first.name if first else "", *(known.name for known in states)],
                            names(graph, "loop", len(states) + len(scanned)), name=f"{graph.prefix}Loop_{len(graph.nodes)}", body=attr)
    if ends is not on:
        body.nodes.pop()

    def redo(known):
        now, rows = [known[state.name] for state in states], []
        goes = first is None or bool(known[first.name].value)
        for trip in range(min(most, int(known[count.name].value)) if goes else 0):
            around = dict(known)
            around[number.name] = graph.known(number.name, np.array(trip, np.int64))
            around.update((slot.name, renamed(value, slot.name)) for slot, value in zip(inner, now))
            found = body.replayed(around)
            now = [found[value.name] for value in nexts]
            if any(value.value.shape != slot.value.shape for value, slot in zip(now, [known[it.name] for it in states])):
                raise Again
            rows.append([found[value.name] for value in scanned])
            if ends is not None and not bool(found[ends.name].value):
                break
        return now + [stacked(graph, [row[place] for row in rows], 0) for place in range(len(scanned))]

    graph.hold(node, redo, [count, *([first] if first else []), *states], [body])


def scan(graph):
    fitting = [known for known in graph.values if known.value.ndim and known.value.dtype.kind in "fiub"]
    source = some(graph, fitting, 1)
    if not source:
        raise Again
    source = source[0]
    axis = int(graph.rng.integers(source.value.ndim))
    if source.value.shape[axis] > 5:
        raise Again
    base, backward, last = f"{graph.prefix}scan{len(graph.nodes)}", int(graph.rng.random() < 0.3), int(graph.rng.random() < 0.3)
    states = some(graph, [known for known in graph.values if known.value.dtype.kind in "fiu"], 1)
    inner = [renamed(known, f"{base}_s{place}") for place, known in enumerate(states)]
    row = graph.known(f"{base}_row", *taken_of(source, axis, -1 if backward else 0))
    body = grown(graph, "body", [*inner, row])
    nexts = [next_of(body, state) for state in inner]
    scanned = some(graph, body.own(), 1)
    distinct(nexts, scanned)
    attr = graph_of(body, "body", [*inner, row], [*nexts, *scanned])
    place = int(graph.rng.integers(scanned[0].value.ndim + 1))
    node = helper.make_node("Scan", [*(known.name for known in states), source.name], names(graph, "scan", len(states) + 1),
                            name=f"{graph.prefix}Scan_{len(graph.nodes)}", body=attr, num_scan_inputs=1, scan_input_axes=[axis],
                            scan_input_directions=[backward], scan_output_axes=[place], scan_output_directions=[last])

    def redo(known):
        now, rows, whole = [known[state.name] for state in states], [], known[source.name]
        steps = range(whole.value.shape[axis])
        for step in reversed(steps) if backward else steps:
            around = dict(known)
            around[row.name] = graph.known(row.name, *taken_of(whole, axis, step))
            around.update((slot.name, renamed(value, slot.name)) for slot, value in zip(inner, now))
            found = body.replayed(around)
            now = [found[value.name] for value in nexts]
            if any(value.value.shape != known[it.name].value.shape for value, it in zip(now, states)):
                raise Again
            rows.append(found[scanned[0].name])
        return [*now, stacked(graph, rows[::-1] if last else rows, place)]

    graph.hold(node, redo, [*states, source], [body])


def given(graph, kind, value, constant=0.0):
    """A number that says what runs, which the model is given or has."""
    is_constant = graph.rng.random() < constant
    return graph.known(f"{graph.prefix}{kind}{len(graph.nodes)}", value, is_constant=is_constant)


def truth(graph, number=None):
    """Whether something runs: a value of the model, what an iteration's number says, or what the model is given. Behind the
    iteration of a number what is given is of no use, so it may be None."""
    numbers = graph.numbers if number is None else [number]
    if numbers and graph.rng.random() < 0.7:
        name = f"{graph.prefix}is{len(graph.nodes)}"
        op = ("Equal", "Less", "Greater")[int(graph.rng.integers(3 if graph.version >= 9 else 1))]
        other = graph.known(f"{name}_w", np.array(graph.rng.integers(TRIPS), np.int64), is_constant=True)
        number = numbers[int(graph.rng.integers(len(numbers)))]
        graph.take(helper.make_node(op, [number.name, other.name], [name], name=name), [number, other])
        return graph.values[-1]
    fitting = [known for known in graph.values if known.value.dtype == BOOL and not known.value.shape]
    if fitting and graph.rng.random() < 0.7:
        return fitting[-1]
    return given(graph, "cond", np.array(bool(graph.rng.random() < 0.5))) if number is None else None


def trips_of(graph):
    """How often a loop runs, and what that is at most: a number, or that of an iteration around it."""
    if graph.numbers and graph.rng.random() < 0.4:
        number = graph.numbers[int(graph.rng.integers(len(graph.numbers)))]
        if graph.rng.random() < 0.4:
            return number, TRIPS
        name = f"{graph.prefix}more{len(graph.nodes)}"
        one = graph.known(f"{name}_w", np.array(1, np.int64), is_constant=True)
        graph.take(helper.make_node("Add", [number.name, one.name], [name], name=name), [number, one])
        return graph.values[-1], TRIPS
    return given(graph, "trips", np.array(int(graph.rng.integers(1, TRIPS + 1)), np.int64), constant=0.7), TRIPS


def grown(graph, kind, params, number=None):
    """A body of some nodes, in an iteration of that number."""
    body = graph.body(f"{graph.prefix}{kind}{len(graph.nodes)}_", params, number)
    wanted = int(graph.rng.integers(1, MOST + 1))
    for _ in range(60):
        if len(body.nodes) >= wanted:
            break
        body.attempt()
    if not body.own():
        raise Again
    return body


def names(graph, kind, count):
    return [f"{graph.prefix}{kind}{len(graph.values) + number}" for number in range(count)]


def some(graph, values, most):
    """Up to so many of these, each of them once."""
    count = min(len(values), int(graph.rng.integers(1, most + 1)))
    return [values[int(place)] for place in sorted(graph.rng.choice(len(values), count, replace=False))] if count else []


def alike(body, wanted):
    """A value of the body of the type of another one; Again where there is none."""
    fitting = [known for known in body.own() if (known.value.dtype, known.value.shape) == (wanted.value.dtype, wanted.value.shape)]
    if not fitting:
        raise Again
    return fitting[-1]


def next_of(body, state):
    """A value of the body of the type of a state, or one that is made of the state and another one."""
    try:
        if body.rng.random() < 0.7:
            return alike(body, state)
    except Again:
        pass
    value = state.value
    fitting = [known for known in body.own() if known.value.dtype == value.dtype and fits(known.value.shape, value.shape)]
    count = len(body.nodes)
    ones = body.known(f"{body.prefix}w{count}", np.ones(value.shape, value.dtype), is_constant=True)
    other = fitting[-1] if fitting else ones
    name = f"{body.prefix}next{count}"
    op = ("Add", "Mul", "Sub", "Max")[int(body.rng.integers(4))]
    body.take(helper.make_node(op, [state.name, other.name], [name], name=name), [state, other])
    return body.values[-1]


def fits(shape, whole):
    """Whether a shape is broadcast to another one."""
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in zip(shape[::-1], whole[::-1]))


def distinct(*values):
    """Again where a body would give a value twice, with which ONNX Runtime gives what is nowhere computed."""
    given = [known.name for part in values for known in part]
    if len(set(given)) < len(given):
        raise Again


def like(body, wanted):
    """A value of the body of the type of one of another, or one from around it, or zeros."""
    try:
        return alike(body, wanted)
    except Again:
        pass
    is_like = lambda known: not known.is_constant and (known.value.dtype, known.value.shape) == (wanted.value.dtype, wanted.value.shape)
    fitting = [known for known in body.values[:body.before] if is_like(known)]
    name = f"{body.prefix}other{len(body.nodes)}"
    zeros = body.known(f"{name}_of", np.zeros_like(wanted.value), is_constant=True)
    source = fitting[-1] if fitting else zeros
    body.take(helper.make_node("Identity", [source.name], [name], name=name), [source])
    return body.values[-1]


def graph_of(body, name, inputs, outputs, numbers=()):
    """A body as a graph, whose inputs may be of any shape, but for those that are numbers, which ONNX Runtime wants to see."""
    def typed(known):
        return helper.make_tensor_value_info(known.name, helper.np_dtype_to_tensor_dtype(known.value.dtype), () if known in numbers else None)

    return helper.make_graph(body.nodes, name, [typed(known) for known in inputs], [typed(known) for known in outputs])


def taken_of(known, axis, place):
    value, *twins = (np.asarray(np.take(value, place, axis)) for value in (known.value, *known.twins))
    return value, twins, False, known.is_narrow


def stacked(graph, rows, axis):
    if len({row.value.shape for row in rows}) > 1:
        raise Again
    value, *twins = (np.stack(values, axis) for values in ([row.value for row in rows], *([row.twins[place] for row in rows] for place in (0, 1))))
    return graph.known("rows", value, twins, is_narrow=rows[0].is_narrow)


def renamed(known, name):
    return type(known)(name, known.value, known.twins, known.is_constant, known.is_narrow)


def read_by(node):
    """The names that a node reads of what is around it, in its graphs too."""
    found = {name for name in node.input if name}
    for attr in node.attribute:
        if attr.type == onnx.AttributeProto.GRAPH:
            made = {value.name for value in attr.g.input} | {name for inner in attr.g.node for name in inner.output}
            read = {name for inner in attr.g.node for name in read_by(inner)} | {value.name for value in attr.g.output}
            found |= read - made
    return found


def every(nodes):
    """Nodes, and those of the graphs that they hold."""
    for node in nodes:
        yield node
        for attr in node.attribute:
            if attr.type == onnx.AttributeProto.GRAPH:
                yield from every(attr.g.node)


def confirm(model, inputs, results):
    """Compares what was found node by node with what ONNX Runtime makes of the whole, where it has all kernels."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        found = session.run(None, {known.name: known.value for known in inputs})
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise Again from error
        return
    for known, value in zip(results, found):
        if (value.dtype, value.shape) != (known.value.dtype, known.value.shape):
            raise Wrong(f"{known.name} is {value.dtype}{value.shape}, and not {known.value.dtype}{known.value.shape}")
        off = np.abs(value.astype("float64") - known.value.astype("float64")).max(initial=0)
        if value.dtype == BOOL and off or off > 1e-2 * max(1.0, np.abs(known.value.astype("float64")).max(initial=0)):
            raise Wrong(f"{known.name} is off by {off}:\n{onnx.printer.to_text(model)}")
