//! The programs of poolings, for any extents.

mod movement;
mod whole;
mod windows;

pub(crate) use movement::{Method, Windows, channel_block};
pub(super) use whole::whole;
pub(super) use windows::windows;
