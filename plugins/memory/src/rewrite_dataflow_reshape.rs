//! Makes reshapes of tensor programs that only copy elements in their order.
//!
//! ```ir
//! %b: f32[2, 12] = call_tir(@layout, %a) { out = f32[2, 12] }     %b: f32[2, 12] = reshape(%a, shape(2, 12))
//!
//! private prim @layout(%A: f32[2, 3, 4], out %B: f32[2, 12]) {
//!   for %i in 0..2 {                                          =>
//!     for %j in 0..12 {
//!       %B[%i, %j] = %A[%i, %j floordiv 4, %j % 4]
//!     }
//!   }
//! }
//! ```
//!
//! A reshape moves no data: it becomes a view when memory is planned. A program is one when it has one tensor to
//! read, of the dtype and number of elements of the one that it writes, and one store, whose place counted in
//! row-major order is that of what it loads ([`mod@crate::index`] proves it). A program that copies a tensor into one of the
//! same shape leaves only another name. `call_tir` has no effects wherever it stands, so it is rewritten in any
//! block, and a result as well: code generation copies what it must. A copy of memory that somebody may write stays
//! one.
//!
//! It comes behind fusion, which would not look through a reshape.

use std::collections::HashMap;

use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

use crate::index::{Indices, is_plain, strides};

/// Makes reshapes of tensor programs that only copy elements in their order.
#[pass(
    name = "relax.RewriteDataflowReshape",
    aliases = ["relax.transform.RewriteDataflowReshape"],
    opt_level = 1,
    phase = "plan",
    before = ["relax.ToNonDataflow"],
    requires = ["relax.Normalize"],
    idempotent = true
)]
fn rewrite_dataflow_reshape(func: Function, module: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let mut programs: HashMap<Symbol, Option<usize>> = HashMap::new();
    let mut rw = func.edit();
    for block in body.post_order().filter(|&expr| body.kind(expr) == Kind::LET) {
        rw.rewrite_bindings(block, |rw, list, is_dataflow, var, value| {
            let reshaped = match copied(rw, value, module, &mut programs, cx) {
                Some(tensor) => reshape(rw, tensor, value),
                None => None,
            };
            list.bind(is_dataflow, var, reshaped.unwrap_or(value));
            Ok(())
        })?;
    }
    rw.finish()
}

/// The tensor whose elements a call gives in their order.
fn copied(
    rw: &mut Rewriter,
    value: Expr,
    module: &Module,
    programs: &mut HashMap<Symbol, Option<usize>>,
    cx: &PassContext,
) -> Option<Expr> {
    let View::Call { callee, args, .. } = rw.view(value) else { return None };
    if rw.body().op_name(callee) != Some("call_tir") {
        return None;
    }
    let View::Global { name } = rw.view(args.at(0)) else { return None };
    let tensor = programs.entry(name).or_insert_with(|| {
        let program = module.get(name).filter(Function::is_prim)?;
        tensor_of_reshape(program.view(), cx)
    });
    let tensor =
        args.get(1 + (*tensor)?).filter(|&tensor| rw.body().kind(tensor) != Kind::TUPLE)?;
    (!rw.effects().is_memory(tensor)).then_some(tensor)
}

/// `tensor` with the type of `value`.
fn reshape(rw: &mut Rewriter, tensor: Expr, value: Expr) -> Option<Expr> {
    let (from, to) = (rw.body().ty(tensor)?, rw.body().ty(value)?);
    if from == to {
        return Some(tensor);
    }
    let (_, dims) = rw.terms().tensor(to)?;
    let dims = dims.to_vec();
    let shape = rw.shape(&dims);
    Some(rw.call_op("reshape", &[tensor, shape], Attrs::NONE))
}

/// The number of the parameter whose elements a program copies in their order.
fn tensor_of_reshape(body: BodyView<'_>, cx: &PassContext) -> Option<usize> {
    let View::PrimFunc { params, outputs: 1, .. } = body.view(body.root()) else { return None };
    let is_buffer = |param: &Expr| body.kind(*param) == Kind::BUFFER;
    if params.iter().filter(is_buffer).count() != 2 {
        return None;
    }
    let output = params.at(params.len() - 1);
    let mut stores = body.post_order().filter(|&expr| body.kind(expr) == Kind::STORE);
    let (store, None) = (stores.next()?, stores.next()) else { return None };
    let View::Store { buffer: written, value, indices: to } = body.view(store) else { return None };
    let View::Load { buffer: read, indices: from } = body.view(value) else { return None };
    let input = params.iter().position(|param| param == read)?;
    let terms = body.terms();
    let (read_dtype, read_dims) = terms.tensor(body.ty(read)?)?;
    let (dtype, dims) = terms.tensor(body.ty(written)?)?;
    let is_same_size = read_dtype == dtype && count(cx, read_dims) == count(cx, dims);
    if written != output || read == output || !is_plain(body) || !is_same_size {
        return None;
    }
    let mut places = Indices::of(body)?;
    let mut place = |indices: Args<'_>, dims: &[Dim]| places.place(indices, &strides(terms, dims)?);
    let (to, from) = (place(to, dims)?, place(from, read_dims)?);
    (to == from).then_some(input)
}

/// The number of elements.
fn count(cx: &PassContext, dims: &[Dim]) -> Dim {
    cx.dim_product(dims)
}
