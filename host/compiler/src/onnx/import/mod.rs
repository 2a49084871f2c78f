//! From a model to a module.
//!
//! ```text
//! graph (ai.onnx 17)                   fn @main(%x: f32[batch, 64]) {
//!   x: float32[batch, 64]      =>        %h_by = acme.by(%x, @w)
//!   h = Gemm(x, w, b)                    %h = acme.plus(%h_by, @b)
//!   y = Relu(h)                          %y = acme.ramp(%h)
//!                                        ret %y
//!                                      }
//! ```
//!
//! The module has one function, `main`, in block form. Its parameters are the inputs that are not weights, its
//! result is the output, or the tuple of the outputs; the names that these have in the model are the
//! module's attributes `onnx.inputs` and `onnx.outputs`. Weights are constants that share the bytes of
//! the mapped file.
//!
//! What a node becomes say rules of plugins, which are found by its type, its domain and its version ([`rules`]). A rule
//! builds with services of the host's ([`node`]), on values that it knows by number ([`builder`]).
//!
//! Graphs inside of a node are control flow, which no rule knows about: branches of a choice ([`control`]), and bodies of
//! loops ([`loops`], [`scans`]), which may make
//! sequences longer ([`sequences`]) or go over them ([`maps`]).
//!
//! One sweep over the nodes translates and collects at once: a node without a rule makes values of the
//! types that the model declares ([`stand_ins`]), or *missing* ones; of nodes that read the latter is told what is wrong
//! whatever they read ([`own_faults`]),
//! and at the end one error lists everything that has no rule, behind what is wrong with the model itself: what the standard
//! forbids ([`conformity`]), and what a rule finds.
//!
//! An input of few integers whose elements a rule has to know, for a shape, an axis to be as long as it says, a number of
//! trips, becomes a parameter that is a shape: its elements are dimensions, and never below zero ([`sizes`]).
//!
//! One that rules read as axes or truth values chooses what the model computes ([`cases`]).
//!
//! Integers that are computed from shapes are followed as dimensions (`Known`), so that a
//! `Reshape` to a shape computed from a symbolic batch is known in full. They become part of the program
//! only where something else reads them. Dimensions that would become too long get names ([`long_dims`]).

mod attributes;
mod builder;
mod cases;
mod conformity;
mod control;
mod declared;
mod dims;
mod driver;
mod dropped_axes;
mod error;
mod evaluate;
mod graphs;
mod interface;
mod kept;
mod long_dims;
mod loops;
mod maps;
mod names;
mod node;
mod order;
mod own_faults;
mod problems;
mod ranks;
mod rules;
mod scans;
mod scope;
mod sequences;
mod shapes;
mod sizes;

mod stand_ins;
mod survey;
mod sweep;
mod tensor;

pub use driver::{ImportOptions, Imported, import, import_mapping};
pub use error::{
    GraphProblem, ImportError, OptionProblem, Unsupported, UnsupportedList, WrongList,
};

/// The facet whose rules say what nodes become.
const FACET: &str = "import.onnx";

#[cfg(test)]
mod tests;
