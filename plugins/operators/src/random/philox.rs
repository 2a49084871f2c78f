//! Philox-4x32-10: four words of 32 bits that are a function of a counter and a key.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "As Easy as 1, 2, 3" (SC'11). An element of a tensor reads the words of its own
//! counter, so that elements may be computed in any order: the counter is the element's number in row-major order, in its first two
//! words with the lower one first; the key is the seed, its lower half first.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Block, Buffer, Extent, Program, Scalar};

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const LOW: i64 = 0xFFFF_FFFF;

/// The words of a counter and a key.
pub(super) fn words(counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let mut x = counter;
    for _ in 0..ROUNDS {
        let wide = |word: u32, by: u32| u64::from(word) * u64::from(by);
        let (a, b) = (wide(x[0], MULTIPLIERS[0]), wide(x[2], MULTIPLIERS[1]));
        let high = |product: u64| (product >> 32) as u32;
        x = [high(b) ^ x[1] ^ key[0], b as u32, high(a) ^ x[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])];
    }
    x
}

/// The words of each of `count` elements.
pub(super) fn of_elements(seed: u64, count: usize) -> impl Iterator<Item = [u32; 4]> {
    let halves = |number: u64| [number as u32, (number >> 32) as u32];
    (0..count as u64).map(move |number| {
        let [low, high] = halves(number);
        words([low, high, 0, 0], halves(seed))
    })
}

/// The seed, which an operator takes behind the shape.
pub(super) fn seed(cx: &EvalCx<'_>) -> Result<u64> {
    match *cx.arg(1)?.elements::<u64>() {
        [seed] => Ok(seed),
        _ => Err(OpError::Value("a seed is one number".into())),
    }
}

/// The type of such an operator: floats of the shape.
pub(super) fn infer(cx: &InferCx<'_>, dtype: DType) -> Result<Type> {
    if !dtype.is_float() || dtype.bits() < 16 {
        return cx.bad_attr("dtype", dtype, "only f16, bf16, f32 and f64 are drawn");
    }
    let seed = cx.tensor(1)?;
    match (seed.dtype, seed.dims) {
        (DType::U64, Some([])) => Ok(cx.tensor_type(dtype, cx.shape(0)?)),
        _ => Err(cx.wrong_arg(1, "a seed, u64[]")),
    }
}

/// A program that computes each element from the words of its counter, which are held as u64.
pub(super) fn each_element(
    program: &Program,
    value: impl for<'p> FnOnce(&mut Block<'p>, [Scalar<'p>; 4]) -> Scalar<'p>,
) {
    let (seed, out) = (program.input(program.inputs().len() - 1), program.output(0));
    program.each(out.shape(), |place| {
        let mut body = program.block();
        let words = words_at(&mut body, &seed, flat(program, &out, place));
        let value = value(&mut body, words);
        body.push(out.set(place, value));
        body.finish()
    });
}

/// The number of an element in row-major order.
fn flat<'p>(program: &'p Program, out: &Buffer<'p>, place: &[Scalar<'p>]) -> Scalar<'p> {
    let number = out
        .shape()
        .iter()
        .zip(place)
        .fold(program.index(0), |number, (extent, &at)| number * extent.index(program) + at);
    number.cast(DType::U64)
}

/// A word without its lowest bits.
pub(super) fn without<'p>(word: Scalar<'p>, bits: u32) -> Scalar<'p> {
    word.call_with("shr", word.program().int(DType::U64, i64::from(bits)))
}

/// The upper 27 bits of a word above the upper 26 of another, as f64.
pub(super) fn wide<'p>(upper: Scalar<'p>, lower: Scalar<'p>) -> Scalar<'p> {
    (without(upper, 5) * (1 << 26) + without(lower, 6)).cast(DType::F64)
}

fn words_at<'p>(body: &mut Block<'p>, seed: &Buffer<'p>, number: Scalar<'p>) -> [Scalar<'p>; 4] {
    let program = body.program();
    let word = |value: i64| program.int(DType::U64, value);
    let low = |value: Scalar<'p>| value.call_with("bitand", word(LOW));
    let high = |value: Scalar<'p>| without(value, 32);
    let (number, seed) = (body.bind("number", number), body.bind("seed", seed.at(&[])));
    let mut key = [low(seed), high(seed)].map(|half| body.bind("key", half));
    let mut x = [low(number), high(number), word(0), word(0)];
    for _ in 0..ROUNDS {
        let a = body.bind("a", x[0] * i64::from(MULTIPLIERS[0]));
        let b = body.bind("b", x[2] * i64::from(MULTIPLIERS[1]));
        let mixed = |product: Scalar<'p>, word: Scalar<'p>, key: Scalar<'p>| {
            high(product).call_with("bitxor", word).call_with("bitxor", key)
        };
        x = [mixed(b, x[1], key[0]), low(b), mixed(a, x[3], key[1]), low(a)]
            .map(|word| body.bind("x", word));
        key = [0, 1].map(|half| body.bind("key", low(key[half] + i64::from(STEPS[half]))));
    }
    x
}

/// Kolmogorov's distance of numbers in ascending order from a distribution.
#[cfg(test)]
pub(super) fn distance(sorted: &[f64], below: impl Fn(f64) -> f64) -> f64 {
    let count = sorted.len() as f64;
    let apart = |(place, &x): (usize, &f64)| {
        let below = below(x);
        (below - place as f64 / count).max((place + 1) as f64 / count - below)
    };
    sorted.iter().enumerate().map(apart).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{distance, of_elements, words};

    /// Each of the words, within what one of a thousand seeds exceeds.
    #[test]
    fn words_are_uniform() {
        for word in 0..4 {
            let unit = |words: [u32; 4]| f64::from(words[word]) / f64::from(u32::MAX);
            let mut drawn: Vec<f64> = of_elements(7, 100_000).map(unit).collect();
            drawn.sort_by(f64::total_cmp);
            let distance = distance(&drawn, |x| x);
            assert!(distance < 1.95 / 100_000f64.sqrt(), "{distance}");
        }
    }

    /// The vectors of `kat_vectors` of Random123.
    #[test]
    fn gives_the_known_answers() {
        let ones = u32::MAX;
        let known = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in known {
            assert_eq!(words(counter, key), expected);
        }
    }
}
