//! The operators that the host's own run-time executes: calls of tensor programs, closures, memory, shapes on a heap.

mod compiler;
mod vm;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use tenon_plugin_api::op::{InferCx, OpError, OpSchema};

use crate::ir::{Cx, OpCode, OpDef, Type};

pub(crate) use compiler::longer_axis;

/// An operator of the host's.
struct RuntimeOp {
    schema: OpSchema,
    infer: fn(&Cx, &InferCx<'_>) -> Result<Type, OpError>,
}

/// Those that there are, by name.
pub(super) static OPERATORS: LazyLock<HashMap<&'static str, Arc<OpDef>>> = LazyLock::new(|| {
    let all = compiler::OPERATORS.iter().chain(vm::OPERATORS);
    let def = |op: &'static RuntimeOp| Arc::new(OpDef::new(&op.schema, OpCode::Runtime(op.infer)));
    all.map(|op| (op.schema.name, def(op))).collect()
});
