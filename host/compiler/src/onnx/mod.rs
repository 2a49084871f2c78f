//! ONNX models.
//!
//! A model comes in by three steps, each of which trusts the one before and nothing else:
//!
//! ```text
//! Mapping       the file, mapped                                  io::Mapping
//!   ↓           wire: fields, lengths, depth                      Reader
//! ModelProto    names, nodes, attributes, borrowed from the file  ModelProto::decode
//!   ↓           tensor: element types, sizes, external files      TensorReader
//! Module        values, operators, shapes                         import::import
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
//! **Importer.** [`import`] translates in one sweep over the nodes; a call of a local function is swept where
//! it stands, on a stack of its own. Dimensions without a number become symbols, unless the caller binds them.
//! What a node becomes say the rules of the facet `import.onnx` for its type, its domain and its version; the importer names
//! no operator. All that has no rule ends up in one error, and beside it, first, what is wrong with the model itself: what the
//! standard forbids, whose word of each operator is a table (`standard`).

pub mod import;
pub mod proto;
pub mod wire;

mod element_type;
mod external;
mod model;
mod standard;
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
