//! ONNX models.
//!
//! A model comes in by three steps, each of which trusts the one before and nothing else:
//!
//! ```text
//! Mapping       the file, mapped                                  io::Mapping
//!   ↓           wire: fields, lengths, depth                      Reader
//! ModelProto    names, nodes, attributes, borrowed from the file  ModelProto::decode
//!   ↓           tensor: element types, sizes, external files      TensorReader
//! Module        values, operators, shapes                         importer
//! ```
//!
//! **Mapping → proto.** [`open_model`] maps the file, [`decode_model`] reads it. The result borrows
//! from the mapping: strings and raw data are not copied. A model of several gigabytes costs what
//! its nodes and names cost.
//!
//! **Tensors.** A [`TensorReader`] turns a [`proto::TensorProto`] into [`TensorData`]: checked
//! element type, checked size, and little-endian bytes, which are a slice of the mapped file (or
//! of the file with external data) wherever the file has them as they are needed. The slices keep
//! their mapping alive, so constants outlive the decoded model. They have *no alignment*.
//!
//! **Importer.** It works on one graph at a time with an explicit worklist for the graphs in
//! attributes, so neither depth nor length of a model uses the stack:
//!
//! 1. *Survey*: pick the operator set of each domain, collect every operator that has no
//!    translation (with node names, versions and counts, over all graphs and local functions) and
//!    refuse the model with one error if there is any; refuse sparse weights, training
//!    information and types other than tensors in the same way.
//! 2. *Names*: map each value name to its definition. Initializers first, then inputs that are
//!    not initializers, then node outputs in order; a name that is defined twice or used before
//!    its definition (which is also how a cycle shows) is an error that names both nodes.
//! 3. *Dimensions*: `-D name=value` replaces named dimensions; others become symbolic.
//! 4. *Translate*: one function per operator and version range, found in a table, emits bindings.
//!    Local functions are inlined with their attributes bound; their calls must not be cyclic.

pub mod import;
pub mod proto;
pub mod wire;

mod element_type;
mod external;
mod model;
mod tensor;
mod typed_data;

pub use element_type::ElementType;
pub use external::ExternalProblem;
pub use model::{ModelError, decode_model, open_model};
pub use tensor::{TensorBytes, TensorData, TensorError, TensorProblem, TensorReader};

#[cfg(test)]
mod robustness;
#[cfg(test)]
mod writer;
