//! The text form in files, with the weights beside it.

mod file;

pub use file::{
    TextForm, parse_checked_module, read_checked_module, read_module, weights_path, write_module,
    write_module_below,
};
pub use tenon_ir::text::*;
