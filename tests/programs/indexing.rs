use tenon_compiler::ir::{AttrValue, DType};

use super::problem::{Arg, Attrs, Problem, ints};

fn check(op: &'static str, args: Vec<Arg>, attrs: Attrs) {
    Problem::new(op, args, attrs).check();
}

fn f32s(shape: &[i64]) -> Arg {
    Arg::Any(DType::F32, shape.to_vec())
}

#[test]
fn transpositions() {
    check("transpose", vec![f32s(&[2, 3, 4])], vec![("axes", ints(&[1, 2, 0]))]);
    check("transpose", vec![Arg::Any(DType::I8, vec![2, 3, 4])], vec![]);
}

#[test]
fn reshapes_join_and_divide_axes() {
    let cases: [(&[i64], &[i64]); 9] = [
        (&[2, 12], &[2, 3, 4]),
        (&[4, 6], &[6, 4]),
        (&[1, 4, 1, 6], &[24]),
        (&[24], &[2, 1, 3, 4, 1]),
        (&[2, 3, 4, 5], &[6, 20]),
        (&[1], &[]),
        (&[], &[1, 1]),
        (&[2, 3, 35], &[6, 5, 7]),
        (&[0, 3], &[3, 0]),
    ];
    for (from, to) in cases {
        check("reshape", vec![f32s(from), Arg::Shape(to.to_vec())], vec![]);
    }
    check("expand_dims", vec![f32s(&[2, 3])], vec![("axis", ints(&[0, -1]))]);
    check("squeeze", vec![f32s(&[1, 2, 1, 3])], vec![]);
    check("squeeze", vec![f32s(&[1, 2, 1, 3])], vec![("axis", ints(&[2]))]);
}

#[test]
fn one_value_or_many_copies() {
    check("broadcast_to", vec![f32s(&[3, 1]), Arg::Shape(vec![2, 3, 4])], vec![]);
    let values: [(&str, AttrValue); 7] = [
        ("f32", 1.5.into()),
        ("f16", 3i64.into()),
        ("i8", (-7i64).into()),
        ("u8", 300.0.into()),
        ("i8", (-300.0).into()),
        ("bool", true.into()),
        ("bool", 0.5.into()),
    ];
    for (dtype, value) in values {
        check(
            "full",
            vec![Arg::Shape(vec![2, 3])],
            vec![("dtype", dtype.into()), ("value", value)],
        );
    }
}

#[test]
fn slices() {
    let slice = |begin: &[i64], end: &[i64], more: Attrs| {
        let attrs = [vec![("begin", ints(begin)), ("end", ints(end))], more].concat();
        check("strided_slice", vec![f32s(&[10, 7])], attrs);
    };
    slice(&[1, -1], &[9, i64::MIN], vec![("strides", ints(&[3, -2]))]);
    slice(&[2], &[5], vec![("axes", ints(&[-1]))]);
    slice(&[5], &[5], vec![]);
}

#[test]
fn layouts() {
    let cases: [(&str, &str, &[i64]); 7] = [
        ("NCHW", "NCHW4c", &[2, 8, 3, 5]),
        ("NCHW4c", "NCHW", &[2, 2, 3, 5, 4]),
        ("NCHW", "NHWC", &[2, 3, 4, 5]),
        ("NCHW4c", "NCHW8c", &[1, 4, 2, 2, 4]),
        ("NHWC", "NCHW2c", &[1, 3, 3, 6]),
        ("OIHW", "OIHW4i8o", &[16, 8, 3, 3]),
        ("NK", "NK8n", &[16, 5]),
    ];
    for (from, to, shape) in cases {
        let attrs = vec![("src_layout", from.into()), ("dst_layout", to.into())];
        check("layout_transform", vec![f32s(shape)], attrs);
    }
}

#[test]
fn padding() {
    for mode in ["constant", "edge", "reflect"] {
        for dtype in [DType::F32, DType::I8] {
            let width = ("pad_width", ints(&[1, 2, 0, 0, 4, 3]));
            let attrs = vec![width, ("mode", mode.into()), ("value", 1.5.into())];
            check("nn.pad", vec![Arg::Any(dtype, vec![3, 4, 5])], attrs);
        }
    }
    let attrs = vec![("pad_width", ints(&[1, 2, 0, 0])), ("value", 1.5.into())];
    check("nn.pad", vec![f32s(&[0, 4])], attrs);
}

#[test]
fn indices_count_from_either_end() {
    let indices = Arg::Indices(DType::I64, vec![2, 5], 4);
    check("take", vec![f32s(&[3, 4, 5]), indices], vec![("axis", 1i64.into())]);
    check("take", vec![f32s(&[3, 4]), Arg::Indices(DType::I32, vec![], 3)], vec![]);
}

#[test]
fn joining_and_splitting() {
    let parts = [&[2, 3, 4], &[2, 1, 4], &[2, 0, 4], &[2, 5, 4]];
    let tuple = Arg::Tuple(parts.iter().map(|shape| f32s(*shape)).collect());
    check("concatenate", vec![tuple], vec![("axis", (-2i64).into())]);
    let axis = ("axis", AttrValue::Int(1));
    check("split", vec![f32s(&[2, 9, 4])], vec![axis.clone(), ("sections", 3i64.into())]);
    check("split", vec![f32s(&[2, 9, 4])], vec![axis, ("indices", ints(&[0, 2, 7, 9]))]);
}
