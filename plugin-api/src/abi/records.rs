//! The records of the IR as they cross the border.
//!
//! A record only ever grows, at its end. A reader steps through an array by the stride that came with it
//! and reads the fields it knows; what a shorter record lacks reads as zero. Zero means "none" in every id
//! field.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32};

use super::layout::{c_types, record};

record! {
    /// One node of a function body. Its children are `operands[start .. start + len]`, whatever its kind.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    RawNode = "tenon_node" {
        /// What the node is, see `tenon_kind`. A reader treats a kind it does not know as opaque.
        kind: u16,
        /// Bits whose meaning belongs to the kind.
        flags: u16,
        /// The term of the node's type; 0 while it is not inferred.
        ty: u32,
        /// First operand in the body's operand pool.
        start: u32,
        /// Number of operands.
        len: u32,
        /// Payload whose meaning belongs to the kind: a name, an index, a term, a constant's number.
        data: u32,
        /// Second payload.
        aux: u32,
        /// The term of the attribute dictionary; 0 when empty.
        attrs: u32,
        /// What the node came from; 0 when unknown. With the highest bit the rest is a term: a name, or several.
        /// Without it, it is a byte offset, plus one, in the texts that were read. A copy of the node keeps it.
        span: u32,
    }
}

record! {
    /// One hash-consed term: a type, a dimension, an attribute or a string.
    #[derive(Clone, Copy, Debug)]
    RawTerm = "tenon_term" {
        /// What the term is, see `tenon_term_kind`.
        kind: u16,
        /// Bits whose meaning belongs to the kind.
        flags: u16,
        /// Number of children, or of bytes for a string.
        len: u32,
        /// The scalar payload: an integer, the bits of a float, a dtype with lanes.
        bits: u64,
        /// `len` child terms (`uint32_t`), or `len` bytes of UTF-8 for a string. Owned by the host for as
        /// long as the term table lives.
        children: *const c_void,
    }
}

// SAFETY: the memory behind `children` is written before the record is published and never again.
unsafe impl Send for RawTerm {}
// SAFETY: as above; shared readers only read.
unsafe impl Sync for RawTerm {}

/// Number of entries in a term table's chunk directory.
pub const TERM_CHUNKS: usize = 32;
/// log2 of the size of the first chunk; chunk `k` holds `1 << (TERM_CHUNK_LOG2 + k)` terms.
pub const TERM_CHUNK_LOG2: u32 = 10;

/// The term table of a context. Chunks never move, so a reader may keep the table's address. Frozen: it is
/// read in place, and holds every number that a term can have.
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

record! {
    /// One constant tensor of a body.
    #[derive(Clone, Copy, Debug)]
    RawConstant = "tenon_constant" {
        /// The term of its tensor type; all dimensions are integers.
        ty: u32,
        /// The term of its name; 0 when it has none.
        name: u32,
        /// Its bytes, little-endian, row-major, without padding; not necessarily aligned.
        data: *const u8,
        /// Number of bytes.
        len: u64,
    }
}

// SAFETY: a constant's bytes are immutable for as long as the record lives.
unsafe impl Send for RawConstant {}
// SAFETY: as above.
unsafe impl Sync for RawConstant {}

record! {
    /// A borrowed view of one function body, published or inside a transaction.
    #[derive(Clone, Copy, Debug)]
    RawBody = "tenon_body" {
        /// Bytes of this record that its writer has filled in.
        size: u32,
        /// The root node: a function or a tensor program.
        root: u32,
        /// Array of `tenon_node`.
        nodes: *const c_void,
        /// Bytes from one node to the next.
        node_stride: u32,
        /// Number of nodes.
        node_count: u32,
        /// The operand pool.
        operands: *const u32,
        /// Array of `tenon_constant`.
        constants: *const c_void,
        /// Number of operands in the pool.
        operand_count: u32,
        /// Bytes from one constant to the next.
        constant_stride: u32,
        /// Number of constants.
        constant_count: u32,
        /// Nodes below this number follow replacements; 0 for a published body.
        base_len: u32,
        /// The terms that the body's types, names and attributes refer to.
        terms: *const RawTermTable,
        /// For each node, what it is replaced by, itself when it is not; may be shorter than the body.
        replaced: *const u32,
        /// Entries of `replaced`.
        replaced_len: u32,
        /// Zero.
        reserved: u32,
    }
}

// SAFETY: a published body is immutable; a transaction's body is only ever read by the thread that
// holds the transaction.
unsafe impl Send for RawBody {}
// SAFETY: as above.
unsafe impl Sync for RawBody {}

impl RawBody {
    /// A body of which nothing is known.
    pub const EMPTY: Self = Self {
        size: 0,
        root: 0,
        nodes: std::ptr::null(),
        node_stride: 0,
        node_count: 0,
        operands: std::ptr::null(),
        constants: std::ptr::null(),
        operand_count: 0,
        constant_stride: 0,
        constant_count: 0,
        base_len: 0,
        terms: std::ptr::null(),
        replaced: std::ptr::null(),
        replaced_len: 0,
        reserved: 0,
    };
}

record! {
    /// A tensor as a value: row-major, without padding, its elements little-endian. Frozen.
    #[derive(Clone, Copy, Debug)]
    RawTensor = "tenon_tensor" {
        /// The type of each element, see `tenon_dtype`.
        dtype: u32,
        /// Number of dimensions.
        rank: u32,
        /// The extents, outermost first.
        shape: *const u64,
        /// The bytes, not necessarily aligned; null where only type and shape are told.
        data: *const u8,
        /// Number of bytes.
        len: u64,
        /// What `retain` of tenon.host.op/1 takes to keep the bytes longer than the call; null where only type and
        /// shape are told.
        owner: *const c_void,
    }
}

record! {
    /// An attribute of a node of a model. Frozen.
    #[derive(Clone, Copy, Debug)]
    RawAttribute = "tenon_attribute" {
        /// What it is, by ONNX's numbers: 1 a float, 2 an integer, 3 a string, 4 a tensor, 6 floats, 7 integers, 8 strings; 0 when
        /// there is none.
        kind: u32,
        /// Zero.
        reserved: u32,
        /// An integer, or the bits of a float.
        bits: u64,
        /// The bytes of a string, the floats (`float`) or the integers (`int64_t`); of strings their bytes, with a zero behind each.
        data: *const c_void,
        /// How many they are.
        len: u64,
    }
}

impl RawAttribute {
    /// No attribute.
    pub const NONE: Self = Self { kind: 0, reserved: 0, bits: 0, data: std::ptr::null(), len: 0 };
}

c_types! {
    *const u64 => "const uint64_t *",
    *mut u8 => "uint8_t *",
    () => "void",
    bool => "bool",
    u16 => "uint16_t",
    u32 => "uint32_t",
    u64 => "uint64_t",
    usize => "size_t",
    *const u8 => "const uint8_t *",
    *const u32 => "const uint32_t *",
    *mut u32 => "uint32_t *",
    *const c_void => "const void *",
    *mut c_void => "void *",
    *const RawNode => "const tenon_node *",
    *const RawBody => "const tenon_body *",
    *mut RawBody => "tenon_body *",
    *const RawTermTable => "const tenon_term_table *",
}
