//! The programs of poolings: for any extents, and in tiles where the extents are known.

mod movement;
mod tiles;
mod whole;
mod whole_fixed;
mod windows;

pub(crate) use movement::{Method, Windows, channel_block};
pub(super) use tiles::Pool;
pub(super) use whole::whole;
pub(super) use whole_fixed::whole as whole_fixed;
pub(super) use windows::windows;
