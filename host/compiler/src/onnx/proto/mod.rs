//! An ONNX model as its file has it, borrowed.
//!
//! Only what a compiler needs is kept. Text, bytes and numbers stay in the file; what is allocated
//! are the lists, and as a message that may stand in a list must not be empty, a list costs a
//! small multiple of the bytes that it was read from.
//!
//! Where a file states something twice, protobuf's rules hold: lists are appended to, of single
//! values the last one counts, and the parts of the model's graph are merged. The graphs inside
//! attributes are not decoded until asked for ([`GraphAttribute::decode`]), so nothing recurses
//! however deep they are nested.

mod attribute;
mod graph;
mod model;
mod node;
mod pair;
mod tensor;
mod types;

pub use attribute::{AttributeKind, AttributeProto, AttributeValue, GraphAttribute};
pub use graph::GraphProto;
pub use model::{FunctionProto, ModelProto, OperatorSet};
pub use node::{NodeProto, Scopes};
pub use tensor::{Storage, TensorProto, TypedRun};
pub use types::{Dimension, TypeProto, ValueInfoProto};

use pair::string_pair;

#[cfg(test)]
mod tests;
