use tenon_compiler::ir::{AttrValue, DType};

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
fn layer_norm_over_any_axes() {
    let cases: [(&[i64], &[i64]); 6] = [
        (&[3, 40], &[-1]),
        (&[2, 3, 7], &[2]),
        (&[2, 3, 8], &[1, 2]),
        (&[2, 5, 3], &[1]),
        (&[2, 5, 3], &[0, 2]),
        (&[9], &[0]),
    ];
    for vectors in VECTOR_UNITS {
        for (shape, axes) in cases {
            let rank = shape.len() as i64;
            let normal: Vec<i64> =
                axes.iter().map(|axis| shape[axis.rem_euclid(rank) as usize]).collect();
            let arg = |shape: &[i64]| Arg::Any(DType::F32, shape.to_vec());
            let args = vec![arg(shape), arg(&normal), arg(&normal)];
            let attrs = vec![("axes", axes.into()), ("epsilon", 0.01.into())];
            Problem { vectors, ..Problem::new("nn.layer_norm", args, attrs) }.check();
        }
    }
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        let args = [&[3, 40][..], &[40], &[40]].map(|shape| Arg::Any(dtype, shape.to_vec()));
        Problem::new("nn.layer_norm", args.into(), vec![]).check();
    }
}

#[test]
fn group_norm_of_channels_at_any_place() {
    let cases: [(&[i64], i64, i64); 5] = [
        (&[2, 6, 5, 8], 1, 3),
        (&[2, 6, 5], 1, 1),
        (&[2, 5, 4, 16], -1, 2),
        (&[3, 6], 1, 2),
        (&[1, 4, 3, 2], 2, 3),
    ];
    for (shape, axis, groups) in cases {
        let channels = shape[axis.rem_euclid(shape.len() as i64) as usize];
        let args = || {
            [shape, &[channels], &[channels]]
                .map(|shape| Arg::Any(DType::F32, shape.to_vec()))
                .into()
        };
        let attrs = vec![("num_groups", groups.into()), ("channel_axis", axis.into())];
        Problem::new("nn.group_norm", args(), attrs).check();
        if shape.len() > 2 {
            let attrs = vec![("channel_axis", axis.into())];
            Problem::new("nn.instance_norm", args(), attrs).check();
        }
    }
}

#[test]
fn l2_normalize_along_any_axes() {
    let cases: [(&[i64], &[i64]); 4] =
        [(&[3, 40], &[-1]), (&[2, 5, 3], &[1]), (&[2, 5, 4], &[2, 0]), (&[7], &[0])];
    for (shape, axes) in cases {
        let args = vec![Arg::Any(DType::F32, shape.to_vec())];
        Problem::new("nn.l2_normalize", args, vec![("axis", axes.into())]).check();
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
