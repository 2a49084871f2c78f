//! The list of the primitives.

use super::*;
use crate::trace::Primitive;

static PRIMITIVES: [&Primitive; 50] = [
    &find::BLOCK,
    &find::BLOCKS,
    &find::ANCHOR,
    &find::LOOPS,
    &find::LOOP,
    &find::PRODUCERS,
    &find::CONSUMERS,
    &find::CHILDREN,
    &sample::SAMPLE_CATEGORICAL,
    &sample::SAMPLE_PERFECT_TILE,
    &sample_tile::SAMPLE_TILE,
    &sample::SAMPLE_COMPUTE_LOCATION,
    &fuse::FUSE,
    &split::SPLIT,
    &reorder::REORDER,
    &partition::PARTITION,
    &merge::MERGE,
    &unit::ADD_UNIT_LOOP,
    &unit::REORDER_ITERATORS,
    &kinds::PARALLEL,
    &kinds::VECTORIZE,
    &kinds::UNROLL,
    &kinds::BIND,
    &inline::INLINE,
    &reverse_inline::REVERSE_INLINE,
    &compute_at::COMPUTE_AT,
    &compute_at::REVERSE_COMPUTE_AT,
    &epilogue::EPILOGUE_AT,
    &cache::CACHE_READ,
    &cache::CACHE_WRITE,
    &reindex_cache::REINDEX_CACHE_READ,
    &reindex_cache::REINDEX_CACHE_WRITE,
    &reindex_cache::REINDEX,
    &rolling_buffer::ROLLING_BUFFER,
    &decompose::DECOMPOSE_REDUCTION,
    &decompose_padding::DECOMPOSE_PADDING,
    &rfactor::RFACTOR,
    &skip_zeros::SKIP_ZEROS,
    &blockize::BLOCKIZE,
    &layout::TRANSFORM_LAYOUT,
    &block_layout::TRANSFORM_BLOCK_LAYOUT,
    &join::JOIN_ITERATORS,
    &join::JOIN_AXES,
    &pad_einsum::PAD_EINSUM,
    &pipeline::PIPELINE,
    &set_scope::SET_SCOPE,
    &storage_align::STORAGE_ALIGN,
    &annotate::ANNOTATE,
    &annotate::UNANNOTATE,
    &tensorize::TENSORIZE,
];

/// All primitives, in the order of the documentation.
pub fn all() -> &'static [&'static Primitive] {
    &PRIMITIVES
}

/// Whether a primitive changes nothing, since it finds what is there or draws a decision: the first of the list do.
pub(crate) fn is_finder(primitive: &Primitive) -> bool {
    PRIMITIVES[..12].iter().any(|finder| finder.name == primitive.name)
}

/// The primitive of a name.
pub(crate) fn find(name: &str) -> Option<&'static Primitive> {
    PRIMITIVES.iter().find(|primitive| primitive.name == name).copied()
}
