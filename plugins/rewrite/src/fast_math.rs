//! Replaces arithmetic by cheaper arithmetic that rounds differently.
//!
//! ```ir
//! divide(%x, const(f32[], 3))       =>  multiply(%x, const(f32[], 0.33333334))
//! divide(%x, sqrt(%y))              =>  multiply(%x, rsqrt(%y))
//! power(%x, const(f32[], 0.5))      =>  sqrt(%x)
//! nn.gelu(%x)                       =>  by the hyperbolic tangent
//! ```
//!
//! These are the rules that `relax.SimplifyExpr` may not apply: results differ in the last places, by up to
//! 5e-4 for `nn.gelu`, and at infinities and zeros with a sign. The exponential function, the error function and
//! their kin need no rule: `tir.LowerIntrinsics` computes them by polynomials in any case. The tangent form of
//! the Gaussian error linear unit is that of Hendrycks and Gimpel (2016).

use tenon_plugin_api::prelude::*;

/// Replaces arithmetic by cheaper arithmetic that rounds differently.
#[pass(
    name = "relax.FastMath",
    aliases = ["relax.transform.FastMathTransform", "relay._transform.FastMath"],
    opt_level = 4,
    phase = "optimize",
    idempotent = true
)]
fn fast_math(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let Some(op) = body.op_name(callee) else { continue };
        for (_, rule) in RULES.iter().filter(|(name, _)| *name == op) {
            let is_float = rw.tensor(expr).is_some_and(|(dtype, _)| dtype.is_float());
            let args = rw.body().operands(expr).skip(1).to_vec();
            let faster = is_float.then(|| rule(&mut rw, &args)).flatten();
            if let Some(faster) = faster.filter(|&faster| rw.body().ty(faster) == body.ty(expr)) {
                rw.replace(expr, faster);
                break;
            }
        }
    }
    rw.finish()
}

type Rule = fn(&mut Rewriter, &[Expr]) -> Option<Expr>;

/// By operator, the rules in the order they are tried.
const RULES: &[(&str, Rule)] = &[
    ("divide", divide_by_number),
    ("divide", divide_by_root),
    ("power", power_of_number),
    ("nn.gelu", gelu),
];

/// `x / c => x * (1 / c)`.
fn divide_by_number(rw: &mut Rewriter, args: &[Expr]) -> Option<Expr> {
    let divisor = rw.splat(args[1]).filter(|divisor| divisor.is_normal())?;
    let (dtype, _) = rw.tensor(args[1])?;
    let dims = rw.extents(args[1])?;
    let factor = rw.number(dtype, 1.0 / divisor)?;
    let factor = match dims.is_empty() {
        true => factor,
        false => {
            let dims: Vec<Dim> = dims.iter().map(|_| rw.cx().dim(1)).collect();
            rw.reshape(factor, &dims)
        }
    };
    Some(rw.apply("multiply", &[args[0], factor]))
}

/// `x / sqrt(y) => x * rsqrt(y)`.
fn divide_by_root(rw: &mut Rewriter, args: &[Expr]) -> Option<Expr> {
    let root = rw.call_of(args[1], "sqrt")?;
    let inverse = rw.apply("rsqrt", &root.args);
    Some(rw.apply("multiply", &[args[0], inverse]))
}

/// `x ^ c` for `c` of 2, 3, 0.5, -0.5, -1.
fn power_of_number(rw: &mut Rewriter, args: &[Expr]) -> Option<Expr> {
    let x = args[0];
    let exponent = rw.splat(args[1])?;
    Some(match exponent {
        2.0 => rw.apply("multiply", &[x, x]),
        3.0 => {
            let square = rw.apply("multiply", &[x, x]);
            rw.apply("multiply", &[square, x])
        }
        0.5 => rw.apply("sqrt", &[x]),
        -0.5 => rw.apply("rsqrt", &[x]),
        -1.0 => {
            let (dtype, _) = rw.tensor(x)?;
            let one = rw.number(dtype, 1.0)?;
            rw.apply("divide", &[one, x])
        }
        _ => return None,
    })
}

/// `gelu(x) => x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ^ 3)))`.
fn gelu(rw: &mut Rewriter, args: &[Expr]) -> Option<Expr> {
    let x = args[0];
    let (dtype, _) = rw.tensor(x)?;
    let cubic = rw.number(dtype, 0.044715)?;
    let slope = rw.number(dtype, std::f64::consts::FRAC_2_PI.sqrt())?;
    let (one, half) = (rw.number(dtype, 1.0)?, rw.number(dtype, 0.5)?);
    let square = rw.apply("multiply", &[x, x]);
    let scaled = rw.apply("multiply", &[square, cubic]);
    let factor = rw.apply("add", &[scaled, one]);
    let inner = rw.apply("multiply", &[x, factor]);
    let inner = rw.apply("multiply", &[inner, slope]);
    let tangent = rw.apply("tanh", &[inner]);
    let sum = rw.apply("add", &[tangent, one]);
    let halved = rw.apply("multiply", &[x, half]);
    Some(rw.apply("multiply", &[halved, sum]))
}
