//! Functions of one or two floats as arithmetic that every vector unit has.
//!
//! A function is written against [`Steps`], which names what is used more than once by a `let`, so that
//! the program computes it once. What a function does at infinity, at zero and at nan stands with it.

mod area;
mod circular;
mod error_function;
mod exponential;
mod hyperbolic;
mod logarithm;
mod power;
mod steps;
mod trigonometric;

pub(crate) use steps::Steps;

use tenon_plugin_api::prelude::*;

/// `name` of `args` as arithmetic; `None` for a function that needs none, or has none for this dtype.
pub(crate) fn lower(steps: &mut Steps<'_>, name: &str, args: &[Expr]) -> Option<Expr> {
    let (dtype, _) = steps.rw.body().scalar_ty(*args.first()?)?;
    let function = match (name, args) {
        ("acos" | "acosh" | "asin" | "asinh" | "atan" | "atanh" | "cosh" | "sinh", &[x]) => {
            return in_f64(steps, name, x, dtype);
        }
        ("exp", _) => exponential::exp,
        ("log", _) => logarithm::log,
        ("sigmoid", _) => hyperbolic::sigmoid,
        ("tanh", _) => hyperbolic::tanh,
        ("erf", _) => error_function::erf,
        ("sin", _) => trigonometric::sin,
        ("cos", _) => trigonometric::cos,
        ("tan", _) => trigonometric::tan,
        ("pow", &[x, y]) => return power::pow(steps, x, y),
        ("scaleb", &[x, n]) => return scaled(steps, x, n, dtype),
        _ => return None,
    };
    match (dtype, args) {
        (DType::F32 | DType::F64, &[x]) => {
            let x = steps.name("x", x);
            Some(function(steps, x))
        }
        (DType::F16 | DType::BF16, &[x]) => {
            let x = steps.rw.cast(x, DType::F32);
            let x = steps.name("x", x);
            let result = function(steps, x);
            Some(steps.rw.cast(result, dtype))
        }
        _ => None,
    }
}

fn scaled(steps: &mut Steps<'_>, x: Expr, n: Expr, dtype: DType) -> Option<Expr> {
    let is_short = dtype.is_float() && dtype.bits() < 32;
    let [x, n] = [x, n].map(|it| if is_short { steps.rw.cast(it, DType::F32) } else { it });
    let [x, n] = [steps.name("x", x), steps.name("n", n)];
    let result = exponential::scaleb(steps, x, n);
    Some(if is_short { steps.rw.cast(result, dtype) } else { result })
}

/// One of the functions that are computed in f64 whatever is asked for.
fn in_f64(steps: &mut Steps<'_>, name: &str, x: Expr, dtype: DType) -> Option<Expr> {
    if !dtype.is_float() {
        return None;
    }
    let function = match name {
        "acos" => circular::acos,
        "acosh" => area::acosh,
        "asin" => circular::asin,
        "asinh" => area::asinh,
        "atan" => circular::atan,
        "atanh" => area::atanh,
        "cosh" => hyperbolic::cosh,
        "sinh" => hyperbolic::sinh,
        _ => return None,
    };
    // Short floats by way of f32, which processors convert.
    let x = if dtype.bits() < 32 { steps.rw.cast(x, DType::F32) } else { x };
    let x = steps.rw.cast(x, DType::F64);
    let x = steps.name("x", x);
    let result = function(steps, x);
    let result = if dtype.bits() < 32 { steps.rw.cast(result, DType::F32) } else { result };
    Some(steps.rw.cast(result, dtype))
}
