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
//! `nn.layer_norm`, `nn.group_norm`, `nn.instance_norm` and `nn.l2_normalize` become means, squares and products. They
//! have tensor programs of their own, which read the data from the nearest cache: option `skip` leaves them, or others, to
//! these.
//!
//! What takes the place of a call is a rule of the facet `decompose.inference`, of the plugin that brings the operator or of
//! any other.

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::DecomposeForInference;

/// Replaces normalizations and dropout by what is left of them at inference.
#[pass(
    name = "relax.SimplifyInference",
    aliases = ["relay._transform.SimplifyInference", "relax.transform.DecomposeOpsForInference"],
    opt_level = 0,
    phase = "optimize",
    before = ["relax.FoldConstant"],
    idempotent = true,
    asks = ["decompose.inference"]
)]
fn simplify_inference(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let body = func.view();
    let mut rules = cx.rules::<DecomposeForInference>();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let View::Op { name } = body.view(callee) else { continue };
        if options.skip.contains(&name) {
            continue;
        }
        let Some(result) = rules.rewritten(&mut rw, name, expr)? else { continue };
        // Memory may be another value where the call was read.
        if !rw.effects().is_memory(result) {
            rw.replace(expr, result);
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
