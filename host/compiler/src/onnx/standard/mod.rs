//! What the standard says a node of each operator may be.
//!
//! It is the word of the format, and says nothing of what can be translated: where a node cannot be, it tells whether the model
//! is wrong or something is missing. The table, `operators.tsv`, is written by `scripts/make-onnx-standard.py`, which says what
//! stands in it.

mod schema;
mod table;

pub(super) use schema::{Attribute, Occurs, Parameter, Schema};
pub(super) use table::{Standing, standing, versions_where};
