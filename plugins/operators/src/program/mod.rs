//! What the tensor programs of several operators share. The evaluation of operators shares nothing with it.
//!
//! Programs say what is computed, for any extents ([`elementwise`], [`moves`], [`index`]). Those in [`fixed`] also decide how they run,
//! for extents that are known: they are rules of a greater benefit, for families whose plain program no schedule makes as fast yet.
//! `docs/programs.md` lists them.

pub(crate) mod elementwise;
pub(crate) mod fixed;
pub(crate) mod index;
pub(crate) mod layout_index;
pub(crate) mod moves;
