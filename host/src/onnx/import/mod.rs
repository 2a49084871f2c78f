//! From a model to a module.
//!
//! ```text
//! graph (ai.onnx 17)                   fn @main(%x: f32[batch, 64]) {
//!   x: float32[batch, 64]      =>        %h_matmul = matmul(%x, @w)
//!   h = Gemm(x, w, b)                    %h = add(%h_matmul, @b)
//!   y = Relu(h)                          %y = nn.relu(%h)
//!                                        ret %y
//!                                      }
//! ```
//!
//! The module has one function, `main`, in block form. Its parameters are the inputs that are not weights, its
//! result is the output, or the tuple of the outputs; the names that these have in the model are the
//! module's attributes `onnx.inputs` and `onnx.outputs`. Weights are constants that share the bytes of
//! the mapped file.
//!
//! One sweep over the nodes translates and collects at once: a node without translation makes values of the
//! types that the model declares ([`stand_ins`]), or *missing* ones; nodes that read the latter are passed over,
//! and at the end one error lists everything that has no translation. What is wrong with the model itself ends the sweep at once.
//!
//! Integers that are computed from shapes are followed as dimensions ([`known`], [`fold`]), so that a
//! `Reshape` to a shape computed from a symbolic batch is known in full. They become part of the program
//! only where something else reads them.

mod attributes;
mod builder;
mod dim_math;
mod dims;
mod driver;
mod error;
mod evaluate;
mod fold;
mod interface;
mod known;
mod names;
mod node;
mod ops;
mod problems;
mod rules;
mod scope;
mod stand_ins;
mod survey;
mod sweep;
mod tensor;

pub use driver::{ImportOptions, import, import_mapping, import_with_files};
pub use error::{GraphProblem, ImportError, OptionProblem, Unsupported, UnsupportedList};

#[cfg(test)]
mod tests;
