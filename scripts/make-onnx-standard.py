#!/usr/bin/env python3
"""Writes host/compiler/src/onnx/standard/operators.tsv: what the installed onnx says a node of each operator may be.

    .cache/venv/bin/python scripts/make-onnx-standard.py

First the sets of types, a line each, numbered from 0 on: their names, without spaces. Then the operators, by name and version:
name, version, inputs, outputs and attributes, with a tab between, and a space between the parts of each:

    input or output   NAME[?|*LEAST|+LEAST]=VARIABLE:SET   left out or not; so many and more of one type; of several
    attribute         NAME:KIND[!]                         one that must be given has a mark

An operator that is deprecated has a sixth field, with that word. Operators of graphs alone have no variable that says their types."""

import pathlib

import onnx
from onnx.defs import OpSchema

FILE = pathlib.Path(__file__).parent.parent / "host/compiler/src/onnx/standard/operators.tsv"
ELEMENTS = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "string": "string", "bool": "bool"}
ELEMENTS |= {f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)}
ELEMENTS |= {
    "float8e4m3fn": "f8e4m3",
    "float8e4m3fnuz": "f8e4m3fnuz",
    "float8e5m2": "f8e5m2",
    "float8e5m2fnuz": "f8e5m2fnuz",
    "float8e8m0": "f8e8m0",
    "float4e2m1": "f4e2m1",
}

KINDS = {"TYPE_PROTO": "type", "TYPE_PROTOS": "types"}


def type_name(text):
    """A tensor's type by its elements; others as they are."""
    element = text.removeprefix("tensor(").removesuffix(")")
    if text.startswith("tensor("):
        return ELEMENTS.get(element, element)
    return text.replace(" ", "")


def rank(text):
    order = "bool u2 u4 u8 u16 u32 u64 i2 i4 i8 i16 i32 i64 f4e2m1 f16 bf16 f32 f64".split()
    return (order.index(text) if text in order else len(order), text)


def main():
    sets = {}

    def set_of(names):
        key = " ".join(sorted({type_name(name) for name in names}, key=rank))
        return sets.setdefault(key, len(sets))

    def parameter(constraints, of):
        least = of.min_arity
        repeated = f"*{least}" if of.is_homogeneous else f"+{least}"
        mark = {OpSchema.FormalParameterOption.Single: "", OpSchema.FormalParameterOption.Optional: "?"}
        allowed = constraints.get(of.type_str, [of.type_str])
        variable = of.type_str if of.type_str in constraints else ""
        return f"{of.name}{mark.get(of.option, repeated)}={variable}:{set_of(allowed)}"

    lines = []
    schemas = [it for it in onnx.defs.get_all_schemas_with_history() if it.domain == ""]
    for schema in sorted(schemas, key=lambda it: (it.name, it.since_version)):
        constraints = {it.type_param_str: it.allowed_type_strs for it in schema.type_constraints}
        ends = [" ".join(parameter(constraints, it) for it in ends) for ends in (schema.inputs, schema.outputs)]
        attributes = sorted(schema.attributes.values(), key=lambda it: it.name)
        kinds = " ".join(f"{it.name}:{KINDS.get(it.type.name, it.type.name.lower())}{'!' if it.required else ''}" for it in attributes)
        fields = [schema.name, str(schema.since_version), *ends, kinds]
        lines.append("\t".join(fields + ["deprecated"] * schema.deprecated))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join([*sets, *lines]) + "\n")


main()
