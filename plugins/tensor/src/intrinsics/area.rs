//! `asinh`, `acosh` and `atanh`.
//!
//! All of them are computed in f64, and rounded once where less is asked for. Far out they are logarithms: `asinh(x) = log(x +
//! sqrt(x^2 + 1))`, `acosh(x) = log(x + sqrt(x^2 - 1))`, `atanh(x) = log((1 + x)/(1 - x))/2`. What rounding takes from the argument
//! of the first two is added behind, since the logarithm of what is near one would show it. Near zero, and `acosh` near one, there
//! are polynomials, fits of our own at Chebyshev's points with errors below a hundredth of the last place:
//! `asinh(x) = x + x^3*P(x^2)`, `acosh(1 + t) = sqrt(2*t)*(1 + t*P(t))`. Outside of their ranges they are nan, and `atanh` of one is
//! infinite.

use tenon_plugin_api::prelude::*;

use super::{Steps, logarithm};

/// Up to one half.
const ASINH: [f64; 14] = [
    1.201_303_271_679_571_1e-3,
    -3.454_741_483_295_518_5e-3,
    5.547_136_554_853_364e-3,
    -7.065_506_478_379_36e-3,
    8.342_249_736_045_443e-3,
    -9.754_919_054_752_259e-3,
    1.155_113_762_253_544e-2,
    -1.396_479_757_899_964_1e-2,
    1.735_276_222_988_207e-2,
    -2.237_215_902_314_764_3e-2,
    3.038_194_444_318_640_5e-2,
    -4.464_285_714_284_492_4e-2,
    7.499_999_999_999_996e-2,
    -1.666_666_666_666_666_6e-1,
];

/// Up to one half.
const ATANH: [f64; 15] = [
    2.265_379_910_725_396_4e-1,
    -1.845_062_778_348_166_6e-1,
    1.636_684_124_104_194_6e-1,
    -5.783_645_920_519_892e-3,
    5.468_265_249_637_926e-2,
    4.569_354_071_800_27e-2,
    5.286_736_995_315_698e-2,
    5.880_296_593_962_229e-2,
    6.666_792_624_255_16e-2,
    7.692_302_426_298_539e-2,
    9.090_909_234_076_455e-2,
    1.111_111_110_877_424_5e-1,
    1.428_571_428_573_420_8e-1,
    1.999_999_999_999_993_4e-1,
    3.333_333_333_333_333e-1,
];

/// Up to one half beyond one.
const ACOSH: [f64; 13] = [
    -1.829_633_605_951_84e-7,
    1.010_341_340_674_443_3e-6,
    -3.161_426_194_646_436_8e-6,
    7.990_593_404_665_81e-6,
    -1.899_553_934_404_626_5e-5,
    4.510_732_783_694_299e-5,
    -1.090_975_259_636_822_4e-4,
    2.711_366_274_326_625e-4,
    -6.991_299_486_167_582e-4,
    1.898_871_526_782_105_2e-3,
    -5.580_357_142_834_653e-3,
    1.874_999_999_999_98e-2,
    -8.333_333_333_333_333e-2,
];

/// Above this the square of a number does not show what is added to it.
const LARGE: f64 = 134_217_728.0;

/// The hyperbolic sine's inverse of an f64, to about two units in the last place.
pub(super) fn asinh(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let far = log_of_both(steps, size, 1.0);
    let near = odd(steps, x, &ASINH);
    let is_near = steps.compare(BinaryOp::Lt, size, 0.5);
    let result = steps.select(is_near, near, far);
    let result = steps.with_sign_of(result, x);
    steps.name("asinh", result)
}

/// The hyperbolic cosine's inverse of an f64, to about two units in the last place.
pub(super) fn acosh(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let far = log_of_both(steps, x, -1.0);
    let one = steps.number(x, 1.0);
    let beyond = steps.sub(x, one);
    let beyond = steps.name("beyond", beyond);
    let twice = steps.add(beyond, beyond);
    let root = steps.rw.intrinsic("sqrt", &[twice]);
    let root = steps.name("root", root);
    let tail = steps.polynomial(beyond, &ACOSH);
    let tail = steps.mul(tail, beyond);
    let near = steps.fma(tail, root, root);
    let is_near = steps.compare(BinaryOp::Lt, beyond, 0.5);
    let result = steps.select(is_near, near, far);
    steps.name("acosh", result)
}

/// The hyperbolic tangent's inverse of an f64, to about two units in the last place.
pub(super) fn atanh(steps: &mut Steps<'_>, x: Expr) -> Expr {
    let size = steps.abs(x);
    let size = steps.name("size", size);
    let one = steps.number(x, 1.0);
    let (above, below) = (steps.add(one, size), steps.sub(one, size));
    let ratio = steps.div(above, below);
    let ratio = steps.name("ratio", ratio);
    let far = logarithm::log(steps, ratio);
    let half = steps.number(x, 0.5);
    let far = steps.mul(far, half);
    let far = steps.name("far", far);
    let near = odd(steps, x, &ATANH);
    let is_near = steps.compare(BinaryOp::Lt, size, 0.5);
    let result = steps.select(is_near, near, far);
    let result = steps.with_sign_of(result, x);
    steps.name("atanh", result)
}

/// `x + x^3*P(x^2)`.
fn odd(steps: &mut Steps<'_>, x: Expr, coefficients: &[f64]) -> Expr {
    let square = steps.mul(x, x);
    let square = steps.name("square", square);
    let tail = steps.polynomial(square, coefficients);
    let tail = steps.mul(tail, square);
    steps.fma(tail, x, x)
}

/// `log(x + sqrt(x^2 + unit))` of a number of at least one half, `unit` being 1 or -1.
fn log_of_both(steps: &mut Steps<'_>, x: Expr, unit: f64) -> Expr {
    let is_large = steps.compare(BinaryOp::Gt, x, LARGE);
    let is_large = steps.name("is_large", is_large);
    // Of a large number the sum is twice the number, whose square might be infinite.
    let two = steps.number(x, 2.0);
    let bounded = steps.select(is_large, two, x);
    let bounded = steps.name("bounded", bounded);
    let (square, square_low) = steps.exact_product(bounded, bounded);
    let unit = steps.number(x, unit);
    let inner = steps.add(square, unit);
    let inner = steps.name("inner", inner);
    // Which of the two is larger is not known, so the sum is taken apart twice.
    let without = steps.sub(inner, unit);
    let without = steps.name("without", without);
    let of_square = steps.sub(square, without);
    let added = steps.sub(inner, without);
    let of_unit = steps.sub(unit, added);
    let inner_low = steps.add(of_square, of_unit);
    let inner_low = steps.add(inner_low, square_low);
    let inner_low = steps.name("inner_low", inner_low);

    let root = steps.rw.intrinsic("sqrt", &[inner]);
    let root = steps.name("root", root);
    let (product, missing) = steps.exact_product(root, root);
    let rest = steps.sub(inner, product);
    let rest = steps.sub(rest, missing);
    let rest = steps.add(rest, inner_low);
    let twice = steps.add(root, root);
    let root_low = steps.div(rest, twice);

    let sum = steps.add(bounded, root);
    let sum = steps.name("sum", sum);
    let without = steps.sub(sum, root);
    let without = steps.name("without", without);
    let of_number = steps.sub(bounded, without);
    let added = steps.sub(sum, without);
    let of_root = steps.sub(root, added);
    let low = steps.add(of_number, of_root);
    let low = steps.add(low, root_low);
    let slope = steps.div(low, sum);

    let argument = steps.select(is_large, x, sum);
    let argument = steps.name("argument", argument);
    let logarithm = logarithm::log(steps, argument);
    let ln_2 = steps.number(x, std::f64::consts::LN_2);
    let more = steps.select(is_large, ln_2, slope);
    let result = steps.add(logarithm, more);
    steps.name("log_of_both", result)
}
