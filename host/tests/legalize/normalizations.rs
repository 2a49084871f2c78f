use tenon_host::ir::{AttrValue, DType};

use super::problem::{Arg, Problem, VECTOR_UNITS};

#[test]
fn softmax_along_any_axis() {
    let cases: [(&[i64], i64); 7] = [
        (&[3, 40], -1),
        (&[3, 7], 1),
        (&[2, 10, 1, 1], 1),
        (&[2, 5, 3], 1),
        (&[7], 0),
        (&[1, 4100], 1),
        (&[1, 4], 0),
    ];
    for vectors in VECTOR_UNITS {
        for op in ["nn.softmax", "nn.log_softmax"] {
            for (shape, axis) in cases {
                let args = vec![Arg::Any(DType::F32, shape.to_vec())];
                let attrs = vec![("axis", axis.into())];
                Problem { vectors, ..Problem::new(op, args, attrs) }.check();
            }
        }
    }
    for op in ["nn.softmax", "nn.log_softmax"] {
        Problem::new(op, vec![Arg::Any(DType::F16, vec![3, 40])], vec![]).check();
    }
}

#[test]
fn lrn_in_any_layout() {
    let cases: [(&str, &[i64], i64); 6] = [
        ("NCHW", &[2, 6, 3, 8], 1),
        ("NCHW", &[1, 3, 2, 5], 1),
        ("NCHW4c", &[2, 3, 3, 5, 4], 1),
        ("NCHW16c", &[1, 2, 3, 5, 16], 1),
        ("NHWC", &[1, 3, 5, 24], 3),
        ("NHWC", &[1, 3, 5, 7], 3),
    ];
    for (layout, shape, axis) in cases {
        for size in [1, 4, 5, 11] {
            for beta in [0.75, 0.5, 1.0, 0.6] {
                let attrs = vec![
                    ("size", AttrValue::Int(size)),
                    ("alpha", 0.3.into()),
                    ("beta", beta.into()),
                    ("bias", 2.0.into()),
                    ("axis", axis.into()),
                    ("layout", layout.into()),
                ];
                Problem::new("nn.lrn", vec![Arg::Any(DType::F32, shape.to_vec())], attrs).check();
            }
        }
    }
}
