//! Makes every access one-dimensional.
//!
//! ```ir
//! alloc t: f32[8, 4]                    alloc t: f32[32]
//! t[i, j] = x[j, i]              =>     t[i*4 + j] = x[j*8 + i]
//! ```
//!
//! Elements lie in row-major order, so the offset of an element is the sum of its indices, each times the
//! number of elements behind it. Buffers that the program makes become one-dimensional. Parameters keep
//! the types that callers know; one index into them counts their elements.
//!
//! `tir.LowerBlocks` comes first: a block's regions speak of the axes of buffers. `tir.Simplify`
//! afterwards brings the offsets into normal form.

use tenon_plugin_api::prelude::*;

/// Makes every access one-dimensional.
#[pass(
    name = "tir.FlattenBuffer",
    aliases = ["tir.transform.FlattenBuffer", "tir.transform.StorageFlatten"],
    phase = "target",
    establishes = ["flat_buffers"],
    requires = ["tir.LowerBlocks"],
    idempotent = true
)]
fn flatten_buffer(func: PrimFunc, _: &Module, _: &PassContext) -> Result<PrimFunc> {
    let mut rw = func.edit();
    for expr in rw.post_order() {
        match rw.view(expr) {
            View::Load { buffer, indices } => {
                let indices = indices.to_vec();
                if let Some(offset) = offset(&mut rw, buffer, &indices).map_err(|e| e.at(expr))? {
                    let load = rw.rebuild(expr, &[buffer, offset]);
                    rw.replace(expr, load);
                }
            }
            View::Store { buffer, value, indices } => {
                let indices = indices.to_vec();
                if let Some(offset) = offset(&mut rw, buffer, &indices).map_err(|e| e.at(expr))? {
                    let store = rw.rebuild(expr, &[buffer, value, offset]);
                    rw.replace(expr, store);
                }
            }
            _ => {}
        }
    }
    for expr in rw.post_order() {
        if let View::Alloc { buffer } = rw.view(expr) {
            flatten_type(&mut rw, buffer);
        }
    }
    Ok(rw.finish()?.into())
}

/// The number of the element at `indices`; `None` when it stands there already.
fn offset(rw: &mut Rewriter, buffer: Expr, indices: &[Expr]) -> Result<Option<Expr>> {
    if indices.len() == 1 {
        return Ok(None);
    }
    let shape = rw.body().ty(buffer).and_then(|ty| rw.terms().tensor(ty));
    let Some(dims) = shape.map(|(_, dims)| dims.to_vec()) else {
        return Err(PassError::new("an access to a buffer of unknown rank cannot be flattened"));
    };
    if dims.len() != indices.len() {
        let message = format!("{} indices into a buffer of {} axes", indices.len(), dims.len());
        return Err(PassError::new(message));
    }
    let mut offset = rw.index(0);
    let mut stride = rw.index(1);
    for (&index, &dim) in indices.iter().zip(&dims).rev() {
        let part = rw.mul(index, stride);
        offset = rw.add(part, offset);
        let extent = extent(rw, dim);
        stride = rw.mul(stride, extent);
    }
    Ok(Some(offset))
}

/// A dimension as a scalar.
fn extent(rw: &mut Rewriter, dim: Dim) -> Expr {
    match rw.terms().dim_value(dim) {
        Some(value) => rw.index(value),
        None => rw.prim(dim),
    }
}

/// Gives a buffer that the program makes its one-dimensional type.
fn flatten_type(rw: &mut Rewriter, buffer: Expr) {
    let Some(ty) = rw.body().ty(buffer) else { return };
    let Some((dtype, dims)) = rw.terms().tensor(ty) else { return };
    if dims.len() == 1 {
        return;
    }
    let cx = rw.cx();
    let count = cx.dim_product(dims);
    rw.set_type(buffer, Some(cx.tensor_type(dtype, &[count])));
}
