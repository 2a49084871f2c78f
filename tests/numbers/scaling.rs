//! `scaleb`, the product with a power of two, whose result is rounded once.

use libtest_mimic::Failed;
use tenon_compiler::eval::Tensor;

use crate::run::{Machine, run};

/// Numbers of f32 and of f64, down to the least of each.
const NUMBERS: [f64; 12] = [
    0.0,
    -0.0,
    1.0,
    -1.999_999_880_790_710_4,
    1.000_000_119_209_289_6,
    -3.402_823_466e38,
    1.175_494_350_8e-38,
    -1.4e-45,
    1.1e-45,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Powers, of which those with a fraction are rounded down.
const POWERS: [f64; 21] = [
    0.0, -0.0, 1.0, -1.0, 0.75, -0.25, 23.0, -24.0, -103.0, 127.0, -126.0, -127.0, -149.0, -150.0,
    128.0, 276.0, 1023.0, -1022.0, -1074.0, -1075.0, 5000.0,
];

/// A loop of whole vectors, and numbers behind them.
pub(crate) fn check(machine: Machine) -> Result<(), Failed> {
    let pairs = || NUMBERS.iter().flat_map(|&x| POWERS.map(|n| (x, n)));
    let single: Vec<[f32; 2]> = pairs().map(|(x, n)| [x as f32, n as f32]).collect();
    let double: Vec<[f64; 2]> = pairs().map(|(x, n)| [x * (1.0 + f64::EPSILON), n]).collect();
    let count = single.len();
    let column =
        |at: usize| Tensor::from_vec(vec![count], single.iter().map(|it| it[at]).collect());
    let wide = |at: usize| Tensor::from_vec(vec![count], double.iter().map(|it| it[at]).collect());
    let inputs = [column(0), column(1), wide(0), wide(1)];
    let found = run(&text(count), &inputs, machine)?;
    let expected = single.iter().map(|&[x, n]| scaled(x.into(), n.into()) as f32);
    let is = |found: f64, expected: f64| {
        found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan()
    };
    for ((&found, expected), [x, n]) in found[0].elements::<f32>().iter().zip(expected).zip(&single)
    {
        if !is(found.into(), expected.into()) {
            return Err(format!("{x:e} * 2^{n} is {found:e} instead of {expected:e}").into());
        }
    }
    for (&found, &[x, n]) in found[1].elements::<f64>().iter().zip(&double) {
        let expected = scaled(x, n);
        if !is(found, expected) {
            return Err(format!("{x:e} * 2^{n} is {found:e} instead of {expected:e}").into());
        }
    }
    Ok(())
}

fn scaled(x: f64, n: f64) -> f64 {
    libm::ldexp(x, n.floor() as i32)
}

fn text(count: usize) -> String {
    let program = |name: &str, dtype: &str| {
        format!(
            "prim @{name}(%x: {dtype}[{count}], %n: {dtype}[{count}], out %y: {dtype}[{count}]) {{
  for %i in 0..{count} {{ block \"y\" (%v: spatial = %i) {{ %y[%v] = scaleb(%x[%v], %n[%v]) }} }}
}}

"
        )
    };
    format!(
        "{}{}fn @main(%a: f32[{count}], %b: f32[{count}], %c: f64[{count}], %d: f64[{count}]) {{
  %y: f32[{count}] = call_tir(@single, %a, %b) {{ out = f32[{count}] }}
  %z: f64[{count}] = call_tir(@double, %c, %d) {{ out = f64[{count}] }}
  ret (%y, %z)
}}
",
        program("single", "f32"),
        program("double", "f64")
    )
}
