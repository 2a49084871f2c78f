//! What the tensor programs of several operators share. The evaluation of operators shares nothing with it.
//!
//! Programs say what is computed, for any extents; how they run is the business of schedules.

pub(crate) mod elementwise;
pub(crate) mod guarded;
pub(crate) mod index;
pub(crate) mod layout_index;
pub(crate) mod moves;
