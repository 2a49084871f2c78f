use proptest::prelude::*;
use tenon_compiler::ir::{AttrValue, DType};
use tenon_compiler::testing::Random;

use super::problem::{Arg, Attrs, Problem, VECTOR_UNITS, between, ints};

/// A layout, and the shape of data in it.
fn data(random: &mut Random) -> (&'static str, Vec<i64>) {
    let (height, width) = (between(random, 1, 7), between(random, 1, 20));
    let layouts = ["NCHW", "NCHW4c", "NCHW16c", "NHWC", "NCHW24c"];
    let layout = random.pick(&layouts);
    let shape = match layout {
        "NCHW" => vec![2, 3, height, width],
        "NHWC" => vec![1, height, width, between(random, 1, 40)],
        "NCHW4c" => vec![1, 2, height, width, 4],
        "NCHW16c" => vec![2, 1, height, width, 16],
        _ => vec![1, 2, height, width, 24],
    };
    (layout, shape)
}

fn random_pool(seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    let (layout, shape) = data(random);
    let mut pair = |low, high| ints(&[between(random, low, high), between(random, low, high)]);
    let mut attrs: Attrs = vec![
        ("layout", layout.into()),
        ("pool_size", pair(1, 4)),
        ("strides", pair(1, 3)),
        ("dilation", pair(1, 2)),
    ];
    let padding: Vec<i64> = (0..4).map(|_| between(random, 0, 2)).collect();
    attrs.push(("padding", ints(&padding)));
    attrs.push(("ceil_mode", random.chance(50).into()));
    let op = random.pick(&["nn.max_pool2d", "nn.avg_pool2d"]);
    if op == "nn.avg_pool2d" {
        attrs.push(("count_include_pad", random.chance(50).into()));
    }
    let dtype = match op {
        "nn.max_pool2d" => random.pick(&[DType::F32, DType::F16, DType::I8]),
        _ => random.pick(&[DType::F32, DType::F16]),
    };
    let vectors = random.pick(&VECTOR_UNITS);
    Problem { vectors, ..Problem::new(op, vec![Arg::Any(dtype, shape)], attrs) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_of_any_form(seed: u64) {
        let problem = random_pool(seed);
        prop_assume!(problem.is_well_typed());
        problem.check();
    }
}

#[test]
fn a_window_that_sees_padding_alone() {
    let attrs =
        vec![("pool_size", ints(&[2, 2])), ("padding", ints(&[1; 4])), ("dilation", ints(&[2, 2]))];
    Problem::new("nn.max_pool2d", vec![Arg::Any(DType::F32, vec![1; 4])], attrs).check();
}

#[test]
fn whole_images() {
    let mut random = Random::new(1);
    for _ in 0..40 {
        let (layout, shape) = data(&mut random);
        for op in ["nn.global_max_pool2d", "nn.global_avg_pool2d"] {
            let attrs = vec![("layout", AttrValue::Str(layout.into()))];
            let vectors = random.pick(&VECTOR_UNITS);
            let args = vec![Arg::Any(DType::F32, shape.clone())];
            Problem { vectors, ..Problem::new(op, args, attrs) }.check();
        }
    }
}
