use proptest::prelude::*;
use tenon_compiler::ir::{AttrValue, DType};
use tenon_compiler::testing::Random;

use super::problem::{Arg, Attrs, Problem, VECTOR_UNITS, between, ints};

/// What all convolutions have: window, dtype and vectors. `plain_rows` keeps the stride along rows at 1.
struct Common {
    attrs: Attrs,
    dtype: DType,
    image: [i64; 2],
    taps: [i64; 2],
    batch: i64,
}

fn common(random: &mut Random, has_plain_rows: bool) -> Common {
    let column_stride = if has_plain_rows { 1 } else { between(random, 1, 2) };
    let strides = ints(&[between(random, 1, 3), column_stride]);
    let padding: Vec<i64> = (0..4).map(|_| between(random, 0, 2)).collect();
    let dilation = ints(&[between(random, 1, 2), between(random, 1, 2)]);
    let width = if random.chance(20) { 40 } else { 17 };
    Common {
        attrs: vec![("strides", strides), ("padding", ints(&padding)), ("dilation", dilation)],
        dtype: random.pick(&[DType::F32, DType::F32, DType::F16, DType::I32]),
        image: [between(random, 1, 7), between(random, 1, width)],
        taps: [between(random, 1, 3), between(random, 1, 3)],
        batch: between(random, 1, 2),
    }
}

fn problem(random: &mut Random, common: Common, data: Vec<i64>, kernel: Vec<i64>) -> Problem {
    let args = vec![Arg::Any(common.dtype, data), Arg::Any(common.dtype, kernel)];
    let vectors = random.pick(&VECTOR_UNITS);
    Problem { vectors, ..Problem::new("nn.conv2d", args, common.attrs) }
}

fn random_blocked(seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mut common = common(random, false);
    let (input, output) = (random.pick(&[3, 4, 8, 16]), random.pick(&[4, 8, 16, 32]));
    let (input_blocks, output_blocks) = (between(random, 1, 2), between(random, 1, 4));
    let groups = random.pick(&[1, 1, 2, 3]);
    let same = format!("NCHW{output}c");
    let out_layout =
        random.pick(&[same.clone(), same, "NCHW".into(), "NHWC".into(), "NCHW2c".into()]);
    let [height, width] = common.image;
    let [kernel_height, kernel_width] = common.taps;
    common.attrs.extend([
        ("data_layout", AttrValue::Str(format!("NCHW{input}c"))),
        ("kernel_layout", format!("OIHW{input}i{output}o").into()),
        ("out_layout", out_layout.into()),
        ("groups", groups.into()),
    ]);
    let data = vec![common.batch, input_blocks * groups, height, width, input];
    let kernel =
        vec![output_blocks * groups, input_blocks, kernel_height, kernel_width, input, output];
    problem(random, common, data, kernel)
}

fn random_depthwise(seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mut common = common(random, false);
    let (size, blocks) = (random.pick(&[4, 8, 16, 32]), between(random, 1, 3));
    let [height, width] = common.image;
    let [kernel_height, kernel_width] = common.taps;
    common.attrs.extend([
        ("data_layout", AttrValue::Str(format!("NCHW{size}c"))),
        ("kernel_layout", format!("OIHW1i{size}o").into()),
        ("groups", (blocks * size).into()),
    ]);
    let data = vec![common.batch, blocks, height, width, size];
    problem(random, common, data, vec![blocks, 1, kernel_height, kernel_width, 1, size])
}

fn random_rows(seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mut common = common(random, true);
    let (inputs, outputs) = (between(random, 1, 5), between(random, 1, 7));
    let groups = random.pick(&[1, 1, 2, 3]);
    let [height, width] = common.image;
    let [kernel_height, kernel_width] = common.taps;
    common.attrs.push(("groups", groups.into()));
    let data = vec![common.batch, inputs * groups, height, width];
    problem(random, common, data, vec![outputs * groups, inputs, kernel_height, kernel_width])
}

fn random_direct(seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mut common = common(random, false);
    let (inputs, outputs) = (2 * between(random, 1, 3), 2 * between(random, 1, 3));
    let groups = random.pick(&[1, 1, 2, 3]);
    let [height, width] = common.image;
    let [kernel_height, kernel_width] = common.taps;
    let data_layout = random.pick(&["NHWC", "NCHW", "NCHW2c"]);
    let kernel_layout = random.pick(&["HWIO", "OIHW", "OIHW2i"]);
    common.attrs.extend([
        ("data_layout", data_layout.into()),
        ("kernel_layout", kernel_layout.into()),
        ("groups", groups.into()),
    ]);
    let channels = inputs * groups;
    let data = match data_layout {
        "NHWC" => vec![common.batch, height, width, channels],
        "NCHW" => vec![common.batch, channels, height, width],
        _ => vec![common.batch, channels / 2, height, width, 2],
    };
    let kernel = match kernel_layout {
        "HWIO" => vec![kernel_height, kernel_width, inputs, outputs * groups],
        "OIHW" => vec![outputs * groups, inputs, kernel_height, kernel_width],
        _ => vec![outputs * groups, inputs / 2, kernel_height, kernel_width, 2],
    };
    problem(random, common, data, kernel)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn channels_in_blocks(seed: u64) {
        let problem = random_blocked(seed);
        prop_assume!(problem.is_well_typed());
        problem.check();
    }

    #[test]
    fn one_filter_for_each_channel(seed: u64) {
        let problem = random_depthwise(seed);
        prop_assume!(problem.is_well_typed());
        problem.check();
    }

    #[test]
    fn plain_rows(seed: u64) {
        let problem = random_rows(seed);
        prop_assume!(problem.is_well_typed());
        problem.check();
    }

    #[test]
    fn other_layouts(seed: u64) {
        let problem = random_direct(seed);
        prop_assume!(problem.is_well_typed());
        problem.check();
    }
}
