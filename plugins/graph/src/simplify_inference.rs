//! Replaces normalizations, and operators that only training needs, by the arithmetic that is left of them at
//! inference.
//!
//! ```ir
//! %y = nn.batch_norm(%x, %gamma, %beta, %mean, %var) { epsilon = e }
//! =>
//! %scale = multiply(%gamma, rsqrt(add(%var, e)))
//! %shift = subtract(%beta, multiply(%mean, %scale))
//! %y = add(multiply(%x, expand_dims(%scale)), expand_dims(%shift))
//!
//! nn.dropout(%x)  =>  %x
//! ```
//!
//! With statistics that are constants, scale and shift fold into constants, and `relax.FoldScaleAxis`
//! moves them into the weights of the convolution in front. The definition of batch normalization is that
//! of Ioffe and Szegedy (2015), with the moving statistics.
//!
//! `nn.layer_norm`, `nn.group_norm`, `nn.instance_norm` and `nn.l2_normalize` become means, squares and products
//! ([`statistics`]). They have tensor programs of their own, which read the data from the nearest cache: option
//! `skip` leaves them, or others, to these.

mod statistics;

use tenon_plugin_api::prelude::*;

/// Replaces normalizations and dropout by what is left of them at inference.
#[pass(
    name = "relax.SimplifyInference",
    aliases = ["relay._transform.SimplifyInference", "relax.transform.DecomposeOpsForInference"],
    opt_level = 0,
    phase = "optimize",
    before = ["relax.FoldConstant"],
    idempotent = true
)]
fn simplify_inference(
    func: Function,
    _: &Module,
    _: &PassContext,
    options: Options,
) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, attrs, .. } = body.view(expr) else { continue };
        let View::Op { name } = body.view(callee) else { continue };
        if options.skip.contains(&name) {
            continue;
        }
        let op = body.terms().str(name);
        let args = rw.body().operands(expr).skip(1).to_vec();
        match (op, args.as_slice()) {
            ("nn.dropout", &[x]) if !rw.effects().is_memory(x) => rw.replace(expr, x),
            ("nn.batch_norm", &[x, gamma, beta, mean, variance]) => {
                let attrs = body.terms().attrs(attrs);
                let epsilon = attrs.float("epsilon").unwrap_or(1e-5);
                let axis = attrs.int("axis").unwrap_or(1);
                let stats = Statistics { gamma, beta, mean, variance, epsilon };
                if let Some(result) = batch_norm(&mut rw, body, x, stats, axis) {
                    rw.replace(expr, result);
                }
            }
            ("nn.layer_norm" | "nn.group_norm" | "nn.instance_norm" | "nn.l2_normalize", args) => {
                if let Some(result) = statistics::written_out(&mut rw, op, args, attrs) {
                    rw.replace(expr, result);
                }
            }
            _ => {}
        }
    }
    rw.finish()
}

#[derive(Options)]
struct Options {
    /// operators that are left alone
    #[option(default = [])]
    skip: Vec<Symbol>,
}

struct Statistics {
    gamma: Expr,
    beta: Expr,
    mean: Expr,
    variance: Expr,
    epsilon: f64,
}

/// `x * scale + shift`; `None` when the rank of `x` is unknown.
fn batch_norm(
    rw: &mut Rewriter,
    body: BodyView<'_>,
    x: Expr,
    stats: Statistics,
    axis: i64,
) -> Option<Expr> {
    let (dtype, dims) = body.terms().tensor(rw.body().ty(x)?)?;
    let rank = dims.len() as i64;
    let axis = if axis < 0 { axis + rank } else { axis };
    let none = Attrs::NONE;
    let epsilon = rw.number(dtype, stats.epsilon)?;
    let spread = rw.call_op("add", &[stats.variance, epsilon], none);
    let inverse = rw.call_op("rsqrt", &[spread], none);
    let scale = rw.call_op("multiply", &[stats.gamma, inverse], none);
    let offset = rw.call_op("multiply", &[stats.mean, scale], none);
    let shift = rw.call_op("subtract", &[stats.beta, offset], none);
    let trailing: Vec<i64> = (1..rank - axis).collect();
    let (scale, shift) = match trailing.is_empty() {
        true => (scale, shift),
        false => {
            let attrs = rw.cx().attrs(&[("axis", trailing.into())]);
            (rw.call_op("expand_dims", &[scale], attrs), rw.call_op("expand_dims", &[shift], attrs))
        }
    };
    let scaled = rw.call_op("multiply", &[x, scale], none);
    Some(rw.call_op("add", &[scaled, shift], none))
}
