//! Has a function return what its calls give, behind its results.
//!
//! ```ir
//! fn @main(%x: f32[4]) {                 fn @main(%x: f32[4]) {
//!   %a = exp(%x)                           %a = exp(%x)
//!   %b = negative(%a)             =>       %b = negative(%a)
//!   ret %b                                 ret (%b, %a, %b)
//! }                                      }
//! ```
//!
//! Whoever looks for the first number that is wrong has them all then (`tenon compare`). Where it runs decides what is seen: operators
//! before `phase(legalize)`, kernels before `phase(plan)`, so that each is made as it would be without it. The calls of the function's own
//! block count, and of several results each; what is within a choice, and tensors of extents that no parameter has, do not.

use std::collections::HashSet;

use tenon_plugin_api::prelude::*;

use crate::results::{result_of, set_result};

/// Has a function return what its calls give, behind its results.
#[pass(
    name = "relax.ReturnIntermediates",
    opt_level = 0,
    phase = "ingest",
    until = "plan",
    requires = ["relax.Normalize"]
)]
fn return_intermediates(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    module.map_functions(cx, |_, name, func| {
        if func.is_prim() || cx.terms().str(name) != options.function {
            return Ok(func);
        }
        let mut rw = func.edit();
        return_more(&mut rw, &func);
        rw.finish()
    })?;
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// the function
    #[option(default = "main")]
    function: String,
}

fn return_more(rw: &mut Rewriter, func: &Function) {
    let body = func.view();
    let Some(value) = func.result() else { return };
    let View::Let(bindings) = body.view(value) else { return };
    let known = dims_of_params(func);
    let mut fields = vec![rw.body().resolve(result_of(body, value))];
    for (var, value) in bindings.bindings() {
        if body.kind(value) != Kind::CALL {
            continue;
        }
        let Some(ty) = body.ty(var) else { continue };
        let parts = match body.terms().ty(ty) {
            TypeView::Tuple(parts) => parts.to_vec(),
            _ => vec![ty],
        };
        if !parts.iter().all(|&part| is_known(body, part, &known)) {
            continue;
        }
        match parts.len() {
            1 => fields.push(var),
            count => fields.extend((0..count).map(|at| rw.tuple_get_item(var, at as u32))),
        }
    }
    let result = rw.tuple(&fields);
    set_result(rw, func, result);
}

/// The dimensions of the parameters.
fn dims_of_params(func: &Function) -> HashSet<Dim> {
    let terms = func.view().terms();
    let params = func.param_types().into_iter().flatten();
    params.filter_map(|ty| terms.tensor(ty)).flat_map(|(_, dims)| dims.iter().copied()).collect()
}

/// Whether it is a tensor whose extents are numbers, or those of a parameter.
fn is_known(body: BodyView<'_>, ty: Type, known: &HashSet<Dim>) -> bool {
    let terms = body.terms();
    let is_known = |dim: &Dim| terms.dim_value(*dim).is_some() || known.contains(dim);
    terms.tensor(ty).is_some_and(|(_, dims)| dims.iter().all(is_known))
}
