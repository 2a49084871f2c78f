//! The text form: the language of tests, bug reports and diffs. Its grammar stands in `docs/ir.md`.
//!
//! Printing and then parsing is the identity. Weights stay outside, in a file beside the text, unless
//! they are small.

mod element;
mod implied;
mod lexer;
mod names;
mod operators;
mod parse;
mod point;
mod print;

pub use parse::{LONGEST_TEXT, LoadWeight, NoWeights, Places, WeightsFile, parse_as, parse_module};
pub use point::point_at;
pub use print::{
    ModuleText, WeightsPolicy, print_function, print_function_marking, print_module, print_type,
};
