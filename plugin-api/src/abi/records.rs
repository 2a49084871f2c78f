//! The records of the IR as they cross the border.
//!
//! A record is only ever appended to. A reader steps through an array by the stride that came with it
//! and reads the fields it knows. Zero means "none" in every id field, so a zero-filled tail is valid.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// One node of a function body. Its children are `operands[start .. start + len]`, whatever its kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RawNode {
    /// What the node is, see [`crate::ir::Kind`]. A reader treats a kind it does not know as opaque.
    pub kind: u16,
    /// Bits whose meaning belongs to the kind.
    pub flags: u16,
    /// The term of the node's type; 0 while it is not inferred.
    pub ty: u32,
    /// First operand in the body's operand pool.
    pub start: u32,
    /// Number of operands.
    pub len: u32,
    /// Payload whose meaning belongs to the kind: a name, an index, a term, a constant's number.
    pub data: u32,
    /// Second payload.
    pub aux: u32,
    /// The term of the attribute dictionary; 0 when empty.
    pub attrs: u32,
    /// Byte offset in the text the node was read from, plus one; 0 when unknown.
    pub span: u32,
}

/// One hash-consed term: a type, a dimension, an attribute or a string.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawTerm {
    /// What the term is, see [`crate::ir::TermKind`].
    pub kind: u16,
    /// Bits whose meaning belongs to the kind.
    pub flags: u16,
    /// Number of children, or of bytes for a string.
    pub len: u32,
    /// The scalar payload: an integer, the bits of a float, a dtype with lanes.
    pub bits: u64,
    /// `len` child terms (`u32`), or `len` bytes of UTF-8 for a string. Owned by the host for as long as
    /// the term table lives.
    pub children: *const c_void,
}

// SAFETY: the memory behind `children` is written before the record is published and never again.
unsafe impl Send for RawTerm {}
// SAFETY: as above; shared readers only read.
unsafe impl Sync for RawTerm {}

/// Number of entries in a term table's chunk directory.
pub const TERM_CHUNKS: usize = 32;
/// log2 of the size of the first chunk; chunk `k` holds `1 << (TERM_CHUNK_LOG2 + k)` terms.
pub const TERM_CHUNK_LOG2: u32 = 10;

/// The term table of a context. Chunks never move, so a reader may keep the table's address.
#[repr(C)]
#[derive(Debug)]
pub struct RawTermTable {
    /// Bytes from one term to the next.
    pub stride: u32,
    /// Number of published terms.
    pub len: AtomicU32,
    /// Addresses of the chunks.
    pub chunks: [AtomicPtr<c_void>; TERM_CHUNKS],
}

/// One constant tensor of a body.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawConstant {
    /// The term of its tensor type; all dimensions are integers.
    pub ty: u32,
    /// The term of its name; 0 when it has none.
    pub name: u32,
    /// Its bytes, little-endian, row-major, without padding; not necessarily aligned.
    pub data: *const u8,
    /// Number of bytes.
    pub len: u64,
}

// SAFETY: a constant's bytes are immutable for as long as the record lives.
unsafe impl Send for RawConstant {}
// SAFETY: as above.
unsafe impl Sync for RawConstant {}

/// A borrowed view of one function body.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawBody {
    /// Array of [`RawNode`].
    pub nodes: *const c_void,
    /// Bytes from one node to the next.
    pub node_stride: u32,
    /// Number of nodes.
    pub node_count: u32,
    /// The operand pool.
    pub operands: *const u32,
    /// Number of operands in the pool.
    pub operand_count: u32,
    /// The root node: a function or a tensor program.
    pub root: u32,
    /// Array of [`RawConstant`].
    pub constants: *const c_void,
    /// Bytes from one constant to the next.
    pub constant_stride: u32,
    /// Number of constants.
    pub constant_count: u32,
    /// The terms that the body's types, names and attributes refer to.
    pub terms: *const RawTermTable,
}

// SAFETY: a published body is immutable; a transaction's body is only ever read by the thread that
// holds the transaction.
unsafe impl Send for RawBody {}
// SAFETY: as above.
unsafe impl Sync for RawBody {}

const _: () = {
    assert!(size_of::<RawNode>() == 32);
    assert!(size_of::<RawTerm>() == 24);
    assert!(size_of::<RawConstant>() == 24);
    assert!(size_of::<RawBody>() == 56);
};

/// A transaction's body with its replacements. See [`crate::ir::BodyView::with_replacements`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawTransaction {
    /// The body as it stands.
    pub body: RawBody,
    /// For each node, what it is replaced by; may be shorter than the body.
    pub replaced: *const u32,
    /// Entries of `replaced`.
    pub replaced_len: u32,
    /// Nodes below this number follow replacements.
    pub base_len: u32,
}
