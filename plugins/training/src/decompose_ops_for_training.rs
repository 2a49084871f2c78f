//! Normalizes batches by their own mean and variance, as training does.
//!
//! ```ir
//! %y = nn.batch_norm(%x, %gamma, %beta, %mean, %var) { epsilon = e }
//! =>
//! %m = mean(%x) { axis = [0, 2, 3], keepdims = true }
//! %d = subtract(%x, %m)
//! %v = mean(multiply(%d, %d)) { axis = [0, 2, 3], keepdims = true }
//! %n = multiply(%d, rsqrt(add(%v, e)))
//! %y = add(multiply(%n, expand_dims(%gamma)), expand_dims(%beta))
//! ```
//!
//! The moving statistics are not read: in training they follow those of the batches, which whoever runs the
//! training step keeps. For inference there is `relax.SimplifyInference`. Data of unknown rank stays as it is.
//! After S. Ioffe and C. Szegedy, "Batch Normalization", 2015, algorithm 1.

use tenon_plugin_api::prelude::*;

/// Normalizes batches by their own mean and variance, as training does.
#[pass(
    name = "relax.DecomposeOpsForTraining",
    aliases = ["relax.transform.DecomposeOpsForTraining"],
    opt_level = 0,
    phase = "optimize",
    idempotent = true
)]
fn decompose_ops_for_training(
    mut module: Module,
    cx: &PassContext,
    options: Options,
) -> Result<Module> {
    let only = options.func_name.as_str();
    module.map_functions(cx, |_, name, func| {
        match only.is_empty() || cx.terms().str(name) == only {
            true => decompose(&func),
            false => Ok(func),
        }
    })?;
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// the function; all of them when empty
    #[option(default = "")]
    func_name: String,
}

fn decompose(func: &Function) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, attrs, .. } = body.view(expr) else { continue };
        if body.op_name(callee) != Some("nn.batch_norm") {
            continue;
        }
        let args = rw.body().operands(expr).skip(1).to_vec();
        if let Some(result) = batch_norm(&mut rw, &args, attrs) {
            rw.replace(expr, result);
        }
    }
    rw.finish()
}

fn batch_norm(rw: &mut Rewriter, args: &[Expr], attrs: Attrs) -> Option<Expr> {
    let &[x, gamma, beta, ..] = args else { return None };
    let (dtype, dims) = rw.tensor(x)?;
    let rank = dims.len() as i64;
    let read = rw.terms().attrs(attrs);
    let axis = read.int("axis").unwrap_or(1).rem_euclid(rank);
    let epsilon = read.float("epsilon").unwrap_or(1e-5);
    let others: Vec<i64> = (0..rank).filter(|&other| other != axis).collect();
    let behind: Vec<i64> = (1..rank - axis).collect();
    let mean_of = |rw: &mut Rewriter, x: Expr| {
        let attrs = [("axis", others.clone().into()), ("keepdims", true.into())];
        rw.apply_with("mean", &[x], &attrs)
    };
    let mean = mean_of(rw, x);
    let centered = rw.apply("subtract", &[x, mean]);
    let square = rw.apply("multiply", &[centered, centered]);
    let variance = mean_of(rw, square);
    let epsilon = rw.number(dtype, epsilon)?;
    let spread = rw.apply("add", &[variance, epsilon]);
    let inverse = rw.apply("rsqrt", &[spread]);
    let normal = rw.apply("multiply", &[centered, inverse]);
    let per_channel = |rw: &mut Rewriter, param: Expr| match behind.is_empty() {
        true => param,
        false => rw.apply_with("expand_dims", &[param], &[("axis", behind.clone().into())]),
    };
    let gamma = per_channel(rw, gamma);
    let beta = per_channel(rw, beta);
    let scaled = rw.apply("multiply", &[normal, gamma]);
    Some(rw.apply("add", &[scaled, beta]))
}
