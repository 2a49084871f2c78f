//! The border: what crosses between a host and a plugin, and the only unsafe code of this crate.
//!
//! Data crosses as plain records with an element stride ([`records`]), so a newer host may append
//! fields to a record and an older plugin still walks the array. Calls cross through tables that only
//! grow ([`tables`]); [`layout`] describes both as data, for the check and for C. [`host`] is the host as a plugin sees it; [`plugin`] is a plugin as a host sees it,
//! [`instrument`] its instruments, [`op`] its operators, [`rule`] its rules;
//! [`note`] is the manifest; [`guard`] turns a panic into an error before it reaches the border.

mod codegen;
pub mod guard;
pub mod host;
pub(crate) mod import;
pub mod instrument;
pub mod layout;
pub mod note;
pub mod op;
mod pins;
pub mod plugin;
pub mod publication;
pub mod read;
pub mod records;
pub mod rule;
pub mod tables;

// What `publication` stands on; a model of its interleavings puts other atomics there.
use std::sync::atomic;
