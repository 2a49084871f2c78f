//! The text form: the language of tests, bug reports and diffs. Its grammar stands in `docs/ir.md`.
//!
//! Printing and then parsing is the identity. Weights stay outside, in a file beside the text, unless
//! they are small.

mod element;
mod file;
mod implied;
mod lexer;
mod names;
mod operators;
mod parse;
mod point;
mod print;

pub use file::{
    TextForm, parse_checked_module, read_checked_module, read_module, weights_path, write_module,
    write_module_below,
};
pub use parse::{LoadWeight, NoWeights, WeightsFile, parse_module};
pub use point::point_at;
pub use print::{WeightsPolicy, print_function, print_function_marking, print_module, print_type};
