//! Has tensor programs compute the dimensions that are passed on as values.
//!
//! ```ir
//! fn @main(%x: f32[n, m]) {
//!   %a: f32[2*n + m] = call_tir(@fill, dim(2*n + m)) { out = f32[2*n + m] }
//!   ret %a
//! }
//! ```
//! becomes
//! ```ir
//! fn @main(%x: f32[n, m]) {
//!   %dim: i64 = call_scalar(@compute_dim, dim(m), dim(n))
//!   %a: f32[2*n + m] = call_tir(@fill, %dim) { out = f32[2*n + m] }
//!   ret %a
//! }
//!
//! private prim @compute_dim(%m: i64, %n: i64, out %dim: i64[]) {
//!   %dim[0] = %m + 2 * %n
//! }
//! ```
//!
//! A symbol by itself stays, since a shape says it, and so does an integer; nothing changes where all dimensions are
//! integers. All symbols are known when a function begins, so each value is computed once, there. One program serves
//! all functions that need the same, whatever its symbols are called. Conditions are tensors, which programs compute already: dimensions are compared
//! by nothing else. Shapes are left to `relax.VMShapeLower`.

use std::collections::HashMap;

use tenon_plugin_api::ir::DimView;
use tenon_plugin_api::prelude::*;

use crate::dims::{scalar, symbols};
use crate::entry::{enter, outermost, refuse_nested};

/// Has tensor programs compute the dimensions that are passed on as values.
#[pass(
    name = "relax.ComputePrimValue",
    aliases = ["relax.transform.ComputePrimValue"],
    phase = "builtin",
    before = ["relax.VMBuiltinLower"],
    idempotent = true
)]
fn compute_prim_value(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut programs: HashMap<Dim, Symbol> = HashMap::new();
    for (name, func) in module.functions() {
        // A tensor program computes its own dimensions.
        if func.is_prim() {
            continue;
        }
        let body = func.view();
        let mut needed: Vec<(Expr, Dim)> = Vec::new();
        for expr in body.post_order() {
            if let View::Prim { dim } = body.view(expr)
                && !matches!(cx.terms().dim(dim), DimView::Const(_) | DimView::Symbol(_))
            {
                needed.push((expr, dim));
            }
        }
        if needed.is_empty() {
            continue;
        }
        refuse_nested(&func, cx.terms().str(name))?;
        let mut rw = func.edit();
        let mut list = LetList::new();
        let is_dataflow = outermost(&func)
            .and_then(|bindings| bindings.blocks().first().copied())
            .is_some_and(|block| block.is_dataflow);
        let mut values: HashMap<Dim, Expr> = HashMap::new();
        for (expr, dim) in needed {
            let value = match values.get(&dim) {
                Some(&value) => value,
                None => {
                    let program = program_of(dim, &mut programs, &mut module, cx)?;
                    let mut args = vec![rw.named(Kind::GLOBAL, program)];
                    args.extend(symbols(cx.terms(), dim).into_iter().map(|symbol| rw.prim(symbol)));
                    let call = rw.apply("call_scalar", &args);
                    rw.set_type(call, Some(cx.scalar_type(DType::I64)));
                    list.bind_new(&mut rw, is_dataflow, "dim", call)
                }
            };
            values.insert(dim, value);
            rw.replace(expr, value);
        }
        let bind = |_: &mut Rewriter, list: &mut LetList, (is_dataflow, var, value)| {
            list.bind(is_dataflow, var, value);
        };
        let lowered = enter(rw, &func, list, func.attrs(), bind, |_, _, _| {})?;
        module.insert(name, &lowered);
    }
    Ok(module)
}

/// The program that computes a dimension from its symbols. `programs` has those that there are, by the dimension with
/// numbers in the place of its symbols' names.
fn program_of(
    dim: Dim,
    programs: &mut HashMap<Dim, Symbol>,
    module: &mut Module,
    cx: &PassContext,
) -> Result<Symbol> {
    let mut rw = Rewriter::new(cx);
    let mut known: HashMap<Dim, Expr> = HashMap::new();
    let mut params = Vec::new();
    let mut numbered = Substitution::new();
    for symbol in symbols(cx.terms(), dim) {
        let name = cx.terms().dim_text(symbol);
        let param = rw.scalar_var(&name, DType::I64);
        numbered.bind(cx.symbol(&name), cx.dim_symbol(&params.len().to_string()));
        known.insert(symbol, param);
        params.push(param);
    }
    let key = Dim(numbered.apply(cx, dim).0);
    if let Some(&name) = programs.get(&key) {
        return Ok(name);
    }
    let out = rw.buffer("dim", cx.static_tensor_type(DType::I64, &[]), "");
    let value = scalar(&mut rw, dim, &mut known)?;
    let first = rw.index(0);
    let store = rw.store(out, value, &[first]);
    params.push(out);
    let program = rw.prim_func(&params, 1, store, Attrs::NONE);
    let program = rw.private(program);
    rw.set_root(program);
    let name = module.fresh_name("compute_dim");
    module.insert(name, &rw.finish()?);
    programs.insert(key, name);
    Ok(name)
}
