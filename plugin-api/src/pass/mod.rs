//! What a pass is given, and what it gives back.

mod arithmetic;
mod bindings;
mod call_graph;
mod calls;
mod context;
mod effects;
mod error;
mod function;
mod instrument;
mod let_list;
mod options;
mod rewriter;
mod stretches;
mod template;

pub use crate::op::{OpEffect, OpPattern};

pub use arithmetic::Arithmetic;
pub use bindings::Bindings;
pub use call_graph::CallGraph;
pub use calls::{Call, Calls, Uses};
pub use context::{OpInfo, PassContext};
pub use effects::{Effects, ModuleEffects};
pub use error::{PassError, Result};
pub use function::{Function, Module, PrimFunc};
pub use instrument::{Instrument, Outcome};
pub use let_list::LetList;
pub use options::{OptionValue, Options, option_of_run};
pub use rewriter::Rewriter;
pub use template::Template;
