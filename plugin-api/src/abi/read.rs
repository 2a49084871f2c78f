//! Reads the border's records: each function here is one pointer step with its bounds check.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use abi_stable::std_types::{RSlice, RStr};

use super::layout::Record;
use super::publication::find;
use super::records::{RawBody, RawConstant, RawNode, RawTerm, RawTermTable};

/// Reads a record of which `size` bytes are there; what it lacks is zero.
///
/// # Safety
/// `size` bytes at `at` are valid, and `at` is aligned for `T`.
#[inline]
pub unsafe fn record<T: Record>(at: *const c_void, size: usize) -> T {
    if size >= size_of::<T>() {
        // SAFETY: by this function's contract all of the record is there.
        return unsafe { at.cast::<T>().read() };
    }
    // SAFETY: by this function's contract.
    unsafe { short_record(at, size) }
}

/// # Safety
/// As for [`record`], and `size` is less than that of `T`.
#[cold]
unsafe fn short_record<T: Record>(at: *const c_void, size: usize) -> T {
    let mut record = MaybeUninit::<T>::zeroed();
    // SAFETY: `size` bytes are there, and there is room for more.
    unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>(), record.as_mut_ptr().cast(), size) };
    // SAFETY: a `Record` is plain data for which zero is valid.
    unsafe { record.assume_init() }
}

/// The elements of a borrowed array of the other side's. Null is an empty one.
pub fn slice<'a, T>(array: RSlice<'a, T>) -> &'a [T] {
    if array.as_ptr().is_null() { &[] } else { array.as_slice() }
}

/// The text that the other side's bytes are; the error is what can be read of them.
pub fn text(text: RStr<'_>) -> Result<&str, String> {
    let bytes = slice(text.as_rslice());
    std::str::from_utf8(bytes).map_err(|_| String::from_utf8_lossy(bytes).into_owned())
}

/// What can be read of a text of the other side's.
pub fn readable(raw: RStr<'_>) -> String {
    text(raw).map_or_else(|readable| readable, str::to_owned)
}

/// A term table borrowed for `'a`. Copying it is free; it may be sent to threads.
#[derive(Clone, Copy, Debug)]
pub struct TermTable<'a> {
    raw: &'a RawTermTable,
}

impl<'a> TermTable<'a> {
    /// Borrows a table.
    pub fn new(raw: &'a RawTermTable) -> Self {
        Self { raw }
    }

    /// The record of `term`.
    ///
    /// # Panics
    /// When the table holds no such term.
    #[inline]
    pub fn get(self, term: u32) -> RawTerm {
        let Some((chunk, offset)) = find(&self.raw.len, &self.raw.chunks, term) else {
            panic!("no term {term} in this context");
        };
        let stride = self.raw.stride as usize;
        // SAFETY: `term` is below the published length, so the host has written this slot of this
        // chunk, and neither moves nor changes while the table lives, which `'a` witnesses.
        unsafe { record(chunk.cast::<u8>().add(offset * stride).cast(), stride) }
    }

    /// The children of `term`; empty for a string.
    #[inline]
    pub fn children(self, term: RawTerm) -> &'a [u32] {
        if term.kind == crate::ir::TermKind::STR.0 || term.len == 0 {
            return &[];
        }
        // SAFETY: for a kind other than a string the host publishes `len` aligned u32 at `children`.
        unsafe { std::slice::from_raw_parts(term.children.cast::<u32>(), term.len as usize) }
    }

    /// The text of a string term; empty for any other kind.
    #[inline]
    pub fn text(self, term: RawTerm) -> &'a str {
        if term.kind != crate::ir::TermKind::STR.0 || term.len == 0 {
            return "";
        }
        // SAFETY: for a string the host publishes `len` bytes at `children`.
        let bytes =
            unsafe { std::slice::from_raw_parts(term.children.cast::<u8>(), term.len as usize) };
        // SAFETY: they are UTF-8, as the record says: the host makes strings from `str` alone.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

/// A body borrowed for `'a`.
#[derive(Clone, Copy, Debug)]
pub struct BodyRecords<'a> {
    raw: RawBody,
    terms: TermTable<'a>,
    life: PhantomData<&'a RawBody>,
}

impl<'a> BodyRecords<'a> {
    /// Borrows a raw body.
    ///
    /// # Safety
    /// All arrays of `raw` and its term table must stay valid and unchanged for `'a`.
    pub unsafe fn from_raw(raw: RawBody) -> Self {
        // SAFETY: by this function's contract the table lives for `'a`.
        let terms = TermTable::new(unsafe { &*raw.terms });
        Self { raw, terms, life: PhantomData }
    }

    /// Borrows a body from the slices that hold it.
    pub fn from_slices(
        nodes: &'a [RawNode],
        operands: &'a [u32],
        constants: &'a [RawConstant],
        root: u32,
        terms: &'a RawTermTable,
    ) -> Self {
        let raw = raw_body(nodes, operands, constants, root, terms);
        Self { raw, terms: TermTable::new(terms), life: PhantomData }
    }

    /// The raw view, to hand across the border.
    pub fn raw(&self) -> &RawBody {
        &self.raw
    }

    /// The terms the body refers to.
    #[inline]
    pub fn terms(&self) -> TermTable<'a> {
        self.terms
    }

    /// Number of nodes.
    #[inline]
    pub fn len(&self) -> usize {
        self.raw.node_count as usize
    }

    /// Whether the body has no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of constants.
    pub fn constant_count(&self) -> usize {
        self.raw.constant_count as usize
    }

    /// Number of operands in the pool.
    pub fn operand_count(&self) -> usize {
        self.raw.operand_count as usize
    }

    /// The record of node `index`.
    ///
    /// # Panics
    /// When the body has no such node.
    #[inline]
    pub fn node(&self, index: u32) -> RawNode {
        assert!(index < self.raw.node_count, "no node {index} in this body");
        let stride = self.raw.node_stride as usize;
        // SAFETY: `index` is in bounds, the stride is a multiple of the alignment, and the array lives
        // for `'a`.
        unsafe { record(self.raw.nodes.cast::<u8>().add(index as usize * stride).cast(), stride) }
    }

    /// The operands of a node.
    ///
    /// # Panics
    /// When the node's range lies outside the pool.
    #[inline]
    pub fn operands(&self, node: RawNode) -> &'a [u32] {
        let end = node.start as u64 + node.len as u64;
        assert!(end <= self.raw.operand_count as u64, "operands outside the pool");
        if node.len == 0 {
            return &[];
        }
        // SAFETY: the range was just checked against the pool, which lives for `'a`.
        unsafe {
            std::slice::from_raw_parts(
                self.raw.operands.add(node.start as usize),
                node.len as usize,
            )
        }
    }

    /// Constant `index`.
    ///
    /// # Panics
    /// When the body has no such constant.
    pub fn constant(&self, index: u32) -> RawConstant {
        assert!(index < self.raw.constant_count, "no constant {index} in this body");
        let stride = self.raw.constant_stride as usize;
        // SAFETY: as for `node`.
        unsafe {
            record(self.raw.constants.cast::<u8>().add(index as usize * stride).cast(), stride)
        }
    }

    /// The bytes of a constant.
    pub fn constant_bytes(&self, constant: RawConstant) -> &'a [u8] {
        if constant.len == 0 {
            return &[];
        }
        // SAFETY: the host publishes `len` bytes at `data` for as long as the body lives.
        unsafe { std::slice::from_raw_parts(constant.data, constant.len as usize) }
    }
}

/// Describes slices as a raw body. The result is valid as long as they are.
pub fn raw_body(
    nodes: &[RawNode],
    operands: &[u32],
    constants: &[RawConstant],
    root: u32,
    terms: &RawTermTable,
) -> RawBody {
    RawBody {
        size: size_of::<RawBody>() as u32,
        root,
        nodes: nodes.as_ptr().cast(),
        node_stride: size_of::<RawNode>() as u32,
        node_count: nodes.len() as u32,
        operands: operands.as_ptr(),
        operand_count: operands.len() as u32,
        constants: constants.as_ptr().cast(),
        constant_stride: size_of::<RawConstant>() as u32,
        constant_count: constants.len() as u32,
        terms,
        ..RawBody::EMPTY
    }
}

/// Reinterprets `&[u32]` as a slice of a transparent wrapper of u32.
macro_rules! cast_ids {
    ($ids:expr, $name:ty) => {{
        const { assert!(size_of::<$name>() == 4 && align_of::<$name>() == 4) };
        let ids: &[u32] = $ids;
        // SAFETY: `$name` is `repr(transparent)` over u32, and the lifetime is the input's.
        unsafe { std::slice::from_raw_parts(ids.as_ptr().cast::<$name>(), ids.len()) }
    }};
}
pub(crate) use cast_ids;

/// The numbers of nodes.
pub fn expr_ids(exprs: &[crate::ir::Expr]) -> &[u32] {
    const { assert!(size_of::<crate::ir::Expr>() == 4) };
    // SAFETY: `Expr` is `repr(transparent)` over u32, and the lifetime is the input's.
    unsafe { std::slice::from_raw_parts(exprs.as_ptr().cast::<u32>(), exprs.len()) }
}

/// The nodes that have these numbers.
pub fn exprs(ids: &[u32]) -> &[crate::ir::Expr] {
    cast_ids!(ids, crate::ir::Expr)
}

/// The numbers of terms.
pub fn term_ids(terms: &[crate::ir::Term]) -> &[u32] {
    const { assert!(size_of::<crate::ir::Term>() == 4) };
    // SAFETY: `Term` is `repr(transparent)` over u32, and the lifetime is the input's.
    unsafe { std::slice::from_raw_parts(terms.as_ptr().cast::<u32>(), terms.len()) }
}

/// The types that have these numbers.
pub fn type_ids(ids: &[u32]) -> &[crate::ir::Type] {
    cast_ids!(ids, crate::ir::Type)
}

/// The terms that have these numbers.
pub fn terms(ids: &[u32]) -> &[crate::ir::Term] {
    cast_ids!(ids, crate::ir::Term)
}

/// Describes a transaction's body for the border. Valid until the transaction is edited.
pub fn raw_transaction(body: &crate::ir::BodyView<'_>) -> RawBody {
    let (replaced, base_len) = body.replacements();
    RawBody {
        replaced: replaced.as_ptr(),
        replaced_len: replaced.len() as u32,
        base_len: base_len as u32,
        ..*body.records().raw()
    }
}

/// The view of a transaction's body.
///
/// # Safety
/// As for [`BodyRecords::from_raw`].
pub unsafe fn transaction_view<'a>(raw: RawBody) -> crate::ir::BodyView<'a> {
    let replaced = match raw.replaced_len {
        0 => &[],
        // SAFETY: by this function's contract.
        len => unsafe { std::slice::from_raw_parts(raw.replaced, len as usize) },
    };
    // SAFETY: by this function's contract.
    let records = unsafe { BodyRecords::from_raw(raw) };
    crate::ir::BodyView::with_replacements(records, replaced, raw.base_len as usize)
}
