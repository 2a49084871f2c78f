//! Objects and libraries as files: large constants, linking, and what may be undefined in them.

pub mod constants;
pub mod link;
pub mod linker;
pub mod symbols;
