//! The operators that the host's own run-time executes: calls of tensor programs, closures, memory, shapes on a heap.

mod compiler;
mod vm;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use tenon_plugin_api::op::{InferCx, OpError, OpSchema};

use crate::{Cx, OpCode, OpDef, Type};

pub use compiler::longer_axis;

/// An operator of the host's.
struct RuntimeOp {
    schema: OpSchema,
    infer: fn(&Cx, &InferCx<'_>) -> Result<Type, OpError>,
}

/// Those that there are, by name.
static OPERATORS: LazyLock<HashMap<&'static str, Arc<OpDef>>> = LazyLock::new(|| {
    let all = compiler::OPERATORS.iter().chain(vm::OPERATORS);
    let def = |op: &'static RuntimeOp| Arc::new(OpDef::new(&op.schema, OpCode::Runtime(op.infer)));
    all.map(|op| (op.schema.name, def(op))).collect()
});

/// The operator of that name, if it is the host's own.
pub fn own_operator(name: &str) -> Option<&'static Arc<OpDef>> {
    OPERATORS.get(name)
}

/// The names of the host's own operators.
pub fn own_operators<'a>() -> impl Iterator<Item = &'a str> {
    OPERATORS.keys().copied()
}

/// Whether an operator is the host's own.
pub fn is_own(name: &str) -> bool {
    OPERATORS.contains_key(name)
}
