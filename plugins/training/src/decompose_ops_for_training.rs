//! Replaces what training computes in another way than inference by that arithmetic.
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
//! What takes the place of a call is a rule of the facet `decompose.training`, of the plugin that brings the operator or of
//! any other. That of batch normalization does not read the moving statistics: in training they follow those of the batches,
//! which whoever runs the training step keeps. For inference there is `relax.SimplifyInference`. Data of unknown rank
//! stays as it is.

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::DecomposeForTraining;

/// Replaces what training computes in another way than inference, such as statistics of batches.
#[pass(
    name = "relax.DecomposeOpsForTraining",
    aliases = ["relax.transform.DecomposeOpsForTraining"],
    opt_level = 0,
    phase = "optimize",
    idempotent = true,
    asks = ["decompose.training"]
)]
fn decompose_ops_for_training(
    mut module: Module,
    cx: &PassContext,
    options: Options,
) -> Result<Module> {
    let only = options.func_name.as_str();
    module.map_functions(cx, |_, name, func| {
        match only.is_empty() || cx.terms().str(name) == only {
            true => decompose(&func, cx),
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

fn decompose(func: &Function, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut rules = cx.rules::<DecomposeForTraining>();
    let mut rw = func.edit();
    for expr in body.post_order() {
        let View::Call { callee, .. } = body.view(expr) else { continue };
        let View::Op { name } = body.view(callee) else { continue };
        let Some(result) = rules.rewritten(&mut rw, name, expr)? else { continue };
        // Memory may be another value where the call was read.
        if !rw.effects().is_memory(result) {
            rw.replace(expr, result);
        }
    }
    rw.finish()
}
