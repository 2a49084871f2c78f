//! What the reference evaluation of an operator sees.

use crate::ir::DType;

use super::{OpAttrs, OpError, OpSchema, Tensor};

/// The extent, in a result's shape, that only its value says: the rank of a shape.
pub const UNKNOWN_EXTENT: usize = usize::MAX;

/// A call whose value is asked for. Its types were inferred from the values, so the arguments fit.
#[derive(Clone, Copy, Debug)]
pub struct EvalCx<'a> {
    /// The operator.
    pub op: &'static OpSchema,
    /// The arguments. A tuple is flattened; a shape or a dimension reads as a tensor of i64.
    pub args: &'a [Tensor],
    /// The attributes.
    pub attrs: OpAttrs<'a>,
    /// Element type and shape of each tensor of the result; a shape is a tensor of i64, with [`UNKNOWN_EXTENT`] where its
    /// rank is not known before.
    pub outs: &'a [(DType, Vec<usize>)],
}

impl<'a> EvalCx<'a> {
    /// Argument `index`.
    pub fn arg(&self, index: usize) -> Result<&'a Tensor, OpError> {
        self.args
            .get(index)
            .ok_or(OpError::WrongArity { expected: self.op.args, found: self.args.len() })
    }

    /// Element type and shape of the result.
    pub fn out(&self) -> Result<(DType, &'a [usize]), OpError> {
        match self.outs.first() {
            Some((dtype, shape)) => Ok((*dtype, shape)),
            None => Err(OpError::Unsupported("it has no tensor as its result".into())),
        }
    }
}
