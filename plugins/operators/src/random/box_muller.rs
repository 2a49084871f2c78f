//! A normal number of four words, by Box and Muller ("A note on the generation of random normal deviates", 1958).

use std::f64::consts::TAU;

use tenon_plugin_api::ir::DType;

/// How far apart numbers of the upper 24 bits of a word are.
pub(super) const STEP: f64 = 1.0 / (1 << 24) as f64;
/// The same of 53 bits of two words.
pub(super) const STEP_F64: f64 = 1.0 / (1u64 << 53) as f64;

/// The number of mean 0 and deviation 1 that the words of an element make.
pub(super) fn normal([a, b, c, d]: [u32; 4], dtype: DType) -> f64 {
    let wide = |a: u32, b: u32| ((u64::from(a >> 5) << 26) | u64::from(b >> 6)) as f64;
    let (u, v) = match dtype {
        DType::F64 => ((wide(a, b) + 1.0) * STEP_F64, wide(c, d) * STEP_F64),
        _ => (f64::from((a >> 8) + 1) * STEP, f64::from(b >> 8) * STEP),
    };
    (u.ln() * -2.0).sqrt() * libm::cos(v * TAU)
}

#[cfg(test)]
mod tests {
    use super::super::philox::{distance, of_elements};
    use super::*;

    /// Mean, variance and Kolmogorov's distance, within what one of a thousand seeds exceeds.
    #[test]
    fn are_normal() {
        const COUNT: usize = 100_000;
        for dtype in [DType::F32, DType::F64] {
            let mut drawn: Vec<f64> =
                of_elements(7, COUNT).map(|words| normal(words, dtype)).collect();
            let count = COUNT as f64;
            let mean = drawn.iter().sum::<f64>() / count;
            let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            assert!(mean.abs() < 3.3 / count.sqrt(), "{mean}");
            assert!((variance - 1.0).abs() < 3.3 * (2.0 / count).sqrt(), "{variance}");
            drawn.sort_by(f64::total_cmp);
            let below = |x: f64| 0.5 * libm::erfc(-x / 2f64.sqrt());
            let distance = distance(&drawn, below);
            assert!(distance < 1.95 / count.sqrt(), "{distance}");
        }
    }
}
