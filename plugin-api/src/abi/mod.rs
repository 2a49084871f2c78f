//! The border: what crosses between a host and a plugin, and the only unsafe code of this crate.
//!
//! Data crosses as plain records with an element stride ([`records`]), so a newer host may append
//! fields to a record and an older plugin still walks the array. Nothing here allocates, and nothing
//! here owns memory: every pointer belongs to the host and lives as long as the handle it was read from.

pub mod read;
pub mod records;
