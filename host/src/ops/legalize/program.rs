//! From a call to the frame of its tensor program: parameters, attributes, root.

use crate::ir::{AttrValue, Build, Context, Dim, Expr, Transaction};
use crate::ops::{LegalizeCx, OpError, OpPattern};

use super::kernel::{Buffer, Extent, Kernel, Stmt};

/// Attribute of a tensor program: how it may be fused, an [`OpPattern`] as its number.
pub const OP_PATTERN: &str = "op_pattern";
/// Attribute of a tensor program: the operator it computes.
pub const OP_NAME: &str = "op_name";

/// Writes the tensor program of a call on tensors of known size: `body` is given the buffers that are read and
/// those that are written. A program that has no element to write is empty.
pub(super) fn program(
    cx: &mut LegalizeCx<'_>,
    pattern: OpPattern,
    body: impl for<'k> FnOnce(&'k Kernel, &[Buffer<'k>], &[Buffer<'k>]) -> Result<Stmt, OpError>,
) -> Result<(), OpError> {
    program_over::<i64>(cx, pattern, body)
}

/// As [`program`], for tensors whose dimensions may be symbols.
pub(super) fn program_of_any_shape(
    cx: &mut LegalizeCx<'_>,
    pattern: OpPattern,
    body: impl for<'k> FnOnce(
        &'k Kernel,
        &[Buffer<'k, Dim>],
        &[Buffer<'k, Dim>],
    ) -> Result<Stmt, OpError>,
) -> Result<(), OpError> {
    program_over::<Dim>(cx, pattern, body)
}

fn program_over<E: Extent>(
    cx: &mut LegalizeCx<'_>,
    pattern: OpPattern,
    body: impl for<'k> FnOnce(&'k Kernel, &[Buffer<'k, E>], &[Buffer<'k, E>]) -> Result<Stmt, OpError>,
) -> Result<(), OpError> {
    let input_types = cx.inputs();
    let output_types = cx.outputs();
    let context = cx.tx.cx();
    let kernel = Kernel::new(std::mem::replace(&mut cx.tx, Transaction::new(context)));
    let mut params: Vec<Buffer<'_, E>> = Vec::with_capacity(input_types.len() + output_types.len());
    for (index, &ty) in input_types.iter().enumerate() {
        let (dtype, shape) = E::tensor(cx, ty)?;
        params.push(kernel.param(&input_name(index), ty, dtype, shape));
    }
    for (index, &ty) in output_types.iter().enumerate() {
        let (dtype, shape) = E::tensor(cx, ty)?;
        let name = if output_types.len() == 1 { "out".into() } else { format!("out{index}") };
        params.push(kernel.param(&name, ty, dtype, shape));
    }
    let (inputs, outputs) = params.split_at(input_types.len());
    let is_empty = |output: &Buffer<'_, E>| output.shape.iter().any(|extent| extent.is(&kernel, 0));
    let body = match outputs.iter().all(is_empty) {
        true => kernel.seq(&[]),
        false => body(&kernel, inputs, outputs)?,
    };
    let attrs = kernel.cx().attrs(&[
        (OP_PATTERN, AttrValue::Int(pattern as i64)),
        (OP_NAME, AttrValue::Str(cx.op.name.into())),
    ]);
    let exprs: Vec<Expr> = params.iter().map(|param| param.expr).collect();
    kernel.finish(&exprs, outputs.len() as u32, body, attrs);
    drop(params);
    cx.tx = kernel.into_transaction();
    Ok(())
}

/// `a`, `b`, … for the first inputs, then `in4`, `in5`, ….
fn input_name(index: usize) -> String {
    match ["a", "b", "c", "d"].get(index) {
        Some(name) => (*name).to_owned(),
        None => format!("in{index}"),
    }
}

/// An axis, counted from the end when negative.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, OpError> {
    let rank = rank as i64;
    match axis {
        axis if (0..rank).contains(&axis) => Ok(axis as usize),
        axis if (-rank..0).contains(&axis) => Ok((axis + rank) as usize),
        _ => Err(OpError::Unsupported(format!("there is no axis {axis} of {rank}"))),
    }
}

/// Checks how many tensors a call reads and writes.
pub(super) fn check_count(cx: &LegalizeCx<'_>, inputs: usize) -> Result<(), OpError> {
    match cx.inputs().len() == inputs && cx.outputs().len() == 1 {
        true => Ok(()),
        false => Err(OpError::Unsupported(format!("it reads {inputs} tensors and writes one"))),
    }
}
