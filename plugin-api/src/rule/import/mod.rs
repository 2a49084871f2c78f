//! The facet `import.onnx`: what the nodes of a model become.
//!
//! A rule makes the outputs of one node out of the values that it reads. Its key is the type of the node, with the domain in
//! front where that is not ONNX's own, and it holds for the versions of the domain's operators that it says:
//!
//! ```ignore
//! /// `Scaled`: each element times a number.
//! #[rule(import.onnx, domain = "acme.ops", key = "Scaled", since = 1, until = 2)]
//! fn scaled(node: &mut Node<'_>) -> Outputs {
//!     let x = node.input(0)?;
//!     let by = node.float_or("by", 1.0)?;
//!     let by = node.scalar_like(x, by)?;
//!     Ok(vec![node.apply("multiply", &[x, by])?])
//! }
//! ```
//!
//! What a rule builds with [`Node`] is typed at once, and a call on a few constants is evaluated at once. Integers that are
//! computed from shapes are known as [dimensions](Known) for as long as rules follow them.
//!
//! The importer itself asks for one key: `tenon::Dimensions`, where something reads a tensor that is only [`Known`]. The node
//! has this value as its one input and no attributes; the rule computes it from a shape, which it finds by
//! [`Node::elements`], and must not call anything on the input itself.

mod attributes;
mod facet;
mod known;
mod node;
mod problem;
mod scalar;
mod values;

pub use facet::ImportOnnx;
pub use known::{Known, LARGEST_KNOWN};
pub use node::{LARGEST_RANK, Node, Value};
pub use problem::{Few, Outputs, Problem, invalid, unsupported};
pub use scalar::Scalar;
