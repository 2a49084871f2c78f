//! The programs of poolings: for any extents, and of windows in tiles where the extents are known.

mod movement;
mod tiles;
mod whole;
mod windows;

pub(crate) use movement::{Method, Windows, channel_block};
pub(super) use tiles::Pool;
pub(super) use whole::whole;
pub(super) use windows::windows;
