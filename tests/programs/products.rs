use proptest::prelude::*;
use tenon_compiler::ir::{AttrValue, DType};
use tenon_compiler::testing::Random;

use super::problem::{Arg, Attrs, Problem, VECTOR_UNITS, between};

const DTYPES: [DType; 4] = [DType::F32, DType::F32, DType::F16, DType::I32];

fn random_dense(seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    let max_rows = random.pick(&[4, 30]);
    let (rows, depth) = (between(random, 1, max_rows), between(random, 1, 40));
    let columns = between(random, 1, 70);
    let leading = random.pick(&[vec![rows], vec![rows], vec![2, rows], vec![]]);
    let data = [leading, vec![depth]].concat();
    let size = random.pick(&[4, 8, 16]);
    let mut attrs: Attrs = Vec::new();
    let weight = match random.below(4) {
        0 => vec![columns, depth],
        1 => {
            attrs.push(("weight_layout", "NK2k".into()));
            vec![columns, (depth + 1) / 2, 2]
        }
        kind => {
            attrs.push(("weight_layout", AttrValue::Str(format!("NK{size}n"))));
            if kind == 2 {
                attrs.push(("units", columns.into()));
            }
            vec![(columns + size - 1) / size, depth, size]
        }
    };
    let dtype = random.pick(&DTYPES);
    let vectors = random.pick(&VECTOR_UNITS);
    let args = vec![Arg::Any(dtype, data), Arg::Any(dtype, weight)];
    Problem { vectors, ..Problem::new("nn.dense", args, attrs) }
}

fn random_matmul(seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    let (rows, depth) = (between(random, 1, 30), between(random, 1, 40));
    let columns = between(random, 1, 70);
    let flips = [random.chance(50), random.chance(50)];
    let flip = |a: i64, b: i64, is_flipped| if is_flipped { vec![b, a] } else { vec![a, b] };
    let batches = [(vec![], vec![]), (vec![2, 1], vec![3]), (vec![2], vec![]), (vec![], vec![2])];
    let (left, right) = random.pick(&batches);
    let dtype = random.pick(&DTYPES);
    let vectors = random.pick(&VECTOR_UNITS);
    let args = vec![
        Arg::Any(dtype, [left, flip(rows, depth, flips[0])].concat()),
        Arg::Any(dtype, [right, flip(depth, columns, flips[1])].concat()),
    ];
    let attrs: Attrs = vec![("transpose_a", flips[0].into()), ("transpose_b", flips[1].into())];
    Problem { vectors, ..Problem::new("matmul", args, attrs) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dense_with_any_weights(seed: u64) {
        let problem = random_dense(seed);
        prop_assume!(problem.is_well_typed());
        problem.check();
    }

    #[test]
    fn matmul_of_any_form(seed: u64) {
        random_matmul(seed).check();
    }
}
