//! The host's side of the border: the tables that plugins call.
//!
//! Each function of [`tables`] turns raw pointers back into the host's own values and does one thing.
//! Its unsafe blocks rest on one contract, that of `tenon_plugin_api::abi::tables`: a pointer that a
//! plugin passes is one that the host gave it, of the kind the parameter says, and still owned.

mod run;
mod tables;
pub(crate) mod text;

pub use run::{Report, ReportLevel, Run};
pub use tables::host_ref;
