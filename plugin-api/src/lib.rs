//! All that the author of a Tenon plugin sees.
//!
//! [`ir`] reads and builds the IR, [`abi`] is the border beneath it: plain records, frozen tables, and
//! the only unsafe code of this crate. An author needs [`ir`] and the `#[pass]` attribute alone.

pub mod abi;
pub mod ir;
