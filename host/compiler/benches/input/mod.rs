//! Modules to measure with.

mod network;
#[allow(dead_code, reason = "not every benchmark has a use for it")]
pub(crate) mod shapes;

#[allow(unused_imports, reason = "not every benchmark has a use for all of them")]
pub(crate) use network::{growing, layers, loss, module};
