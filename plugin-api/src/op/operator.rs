//! What an operator's file implements.

use crate::ir::Type;

use super::{EvalCx, InferCx, OpAttrs, OpSchema, Result, Tensor};

/// An operator: a struct of its attributes under [`macro@crate::op`], which implements [`Schema`] for it.
///
/// Both functions depend on nothing but what they are given, and may be called from any thread at any time.
pub trait Operator: Schema {
    /// The type of a call, from the types of the arguments, which may have symbolic dimensions or no known rank. The
    /// number of arguments and the kinds of the attributes are right.
    ///
    /// # Errors
    /// What cannot be, whatever the symbols stand for. What only a run can refute passes.
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type>;

    /// The value of a call, whose type was inferred from the arguments: a tensor for each that [`EvalCx::outs`] says, a
    /// tuple flattened. It is what the operator means: plain, and right before fast.
    ///
    /// # Errors
    /// What the values do not allow, such as an index outside of its axis.
    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>>;
}

/// What `#[op]` derives from the struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no operator",
    label = "it has no attribute `#[op(name = …)]`"
)]
pub trait Schema: Sized {
    /// What the operator says of itself.
    const SCHEMA: OpSchema;

    /// Reads the attributes of a call, which [`OpSchema::check_attrs`] found right.
    fn from_attrs(attrs: OpAttrs<'_>) -> Result<Self>;
}
