use tenon_compiler::ir::{AttrValue, DType};

use super::problem::{Arg, Attrs, Problem, VECTOR_UNITS, ints};

#[test]
fn any_axes_of_any_shape() {
    let axes: [Option<&[i64]>; 6] =
        [None, Some(&[0]), Some(&[2]), Some(&[0, 2]), Some(&[1]), Some(&[-1, 1])];
    for dtype in [DType::F32, DType::F16, DType::I32] {
        for op in ["sum", "mean", "max", "min", "prod"] {
            for axis in axes {
                for shape in [[3, 4, 16], [2, 5, 7], [6, 1, 1]] {
                    let mut attrs: Attrs = vec![("keepdims", axis.is_none().into())];
                    attrs.extend(axis.map(|axis| ("axis", ints(axis))));
                    let arg = Arg::Positive(dtype, shape.to_vec());
                    let problem = Problem::new(op, vec![arg], attrs);
                    if (op != "prod" || dtype != DType::F16) && problem.is_well_typed() {
                        problem.check();
                    }
                }
            }
        }
    }
}

#[test]
fn scalars_and_nothing() {
    let sum =
        |shape: &[i64]| Problem::new("sum", vec![Arg::Any(DType::F32, shape.to_vec())], vec![]);
    sum(&[]).check();
    sum(&[3, 0]).check();
}

#[test]
fn vectors_of_other_lengths() {
    for vectors in VECTOR_UNITS {
        for axis in 0..2 {
            let args = vec![Arg::Any(DType::F32, vec![24, 40])];
            let attrs = vec![("axis", ints(&[axis]))];
            Problem { vectors, ..Problem::new("sum", args, attrs) }.check();
        }
    }
}

#[test]
fn places_of_extremes() {
    for op in ["argmax", "argmin"] {
        for dtype in [DType::F32, DType::I8] {
            for axis in 0..3 {
                let attrs: Attrs =
                    vec![("axis", AttrValue::Int(axis)), ("keepdims", (axis == 1).into())];
                Problem::new(op, vec![Arg::Any(dtype, vec![3, 40, 5])], attrs).check();
            }
        }
    }
}
