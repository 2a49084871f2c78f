//! The primitives, one file each.

mod annotate;
mod blockize;
mod cache;
mod compute_at;
mod decompose;
mod decompose_padding;
mod enclose;
mod epilogue;
mod find;
mod fuse;
mod inline;
mod kinds;
mod layout;
mod merge;
mod order;
mod pad_einsum;
mod partition;
mod pipeline;
mod reindex_cache;
mod reorder;
mod reverse_inline;
mod rfactor;
mod rolling_buffer;
mod sample;
mod set_scope;
mod split;
mod state;
mod storage_align;
mod table;
mod tensorize;
mod unit;

pub use annotate::SETTLED;
pub use table::all;
pub(crate) use table::{find, is_finder};
