//! The programs of poolings, for any extents.

mod movement;
mod whole;
mod windows;

pub(super) use movement::{Method, Windows};
pub(super) use whole::whole;
pub(super) use windows::windows;
