//! The same tensor in another layout.
//!
//! ```ir
//! %y = layout_transform(%x) { src_layout = "NCHW", dst_layout = "NCHW4c" }    f32[n, 8, 32, 32]  =>  f32[n, 2, 32, 32, 4]
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::moves::relayout;
use crate::precision::follows_precision;
use crate::program::layout_index::{Coordinate, coordinate, place};

/// The same tensor in another layout; an extent that is split must be a multiple of its block
#[op(name = "layout_transform", pattern = "injective")]
pub struct LayoutTransform {
    /// the layout it has
    src_layout: Layout,
    /// the layout of the result
    dst_layout: Layout,
}

impl Operator for LayoutTransform {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let source = &self.src_layout;
        let axes = String::from_utf8_lossy(source.axes()).into_owned();
        let target = cx.layout("dst_layout", &axes)?;
        let tensor = cx.tensor(0)?;
        let Some(dims) = tensor.dims else { return cx.arg(0) };
        let extents: Vec<Dim> =
            source.extents(cx, dims).map_err(|error| cx.wrong_arg(0, &error.to_string()))?;
        let extent = |axis| extents[source.position(axis).expect("both have the same axes")];
        match target.dims(cx, extent) {
            Ok(dims) => Ok(cx.tensor_type(tensor.dtype, Some(&dims))),
            Err(error) => cx.bad_attr("dst_layout", target.text(), error.to_string()),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![relayout(cx.arg(0)?, &self.src_layout, &self.dst_layout)?])
    }
}

/// Each element from where it is.
#[rule(compute)]
fn program(op: &LayoutTransform, program: &mut Program) {
    let input = program.input(0);
    let zero = Coordinate::whole(program.index(0));
    program.set(&program.output(0), |indices| {
        let at = |axis| coordinate(&op.dst_layout, indices, axis).unwrap_or(zero);
        input.at(&place(&op.src_layout, at))
    });
}

/// To the same layout, or there and back, `=> x`.
#[rule(simplify)]
fn simplify(op: &LayoutTransform, at: &mut Site<'_>) -> Option<Expr> {
    let x = at.arg(0);
    if op.src_layout == op.dst_layout {
        return at.same_type(x);
    }
    let inner = at.call_of(x, "layout_transform")?;
    let there: LayoutTransform = at.op_of_call(&inner)?;
    let is_back = there.src_layout == op.dst_layout && there.dst_layout == op.src_layout;
    is_back.then(|| at.same_type(inner.args[0])).flatten()
}

follows_precision!(LayoutTransform);

/// `g` in the first layout.
#[rule(gradient)]
fn gradient(op: &LayoutTransform, at: &mut Adjoint<'_>) -> Grads {
    let (from, to) = (op.src_layout.text().into(), op.dst_layout.text().into());
    let attrs = [("src_layout", to), ("dst_layout", from)];
    Grads::of([at.apply_with("layout_transform", &[at.grad()], &attrs)])
}
