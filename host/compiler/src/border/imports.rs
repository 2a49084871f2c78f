//! Nodes of models across the border: asking a rule about one, and what the importer does for it meanwhile.
//!
//! The importer's state is lent to the call of the rule. It is found by the thread that asks, and only while it does: a
//! plugin that keeps its host finds nothing there.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, ThreadId};

use abi_stable::std_types::{RSlice, RStr};
use tenon_plugin_api::abi::guard::guard;
use tenon_plugin_api::abi::read;
use tenon_plugin_api::abi::records::{RawAttribute, RawTensor};
use tenon_plugin_api::abi::tables::{Failure, HostImport, NONE, RawRun};

use super::edit::has_term;
use super::operators::{is_type, raw};
use super::rules::{Site, first_answer};
use super::run::{Call, Run};
use super::tables::call_of;
use crate::ir::{
    Attrs, Bytes, Context, Cx, DType, Dim, DimView, Rule, RuleQuestion, Term, TermKind, Type,
};
use crate::services::{ServiceError, fits};

/// Why a node, or a part of it, cannot be imported.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// One of the problems of `HostImport`.
    pub(crate) kind: Failure,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(kind: Failure, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// What a service of the importer's answers.
pub(crate) type Served<T> = Result<T, Refusal>;

/// A constant: its type and its bytes.
pub(crate) struct ConstantParts {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Bytes,
}

/// An attribute of a node.
pub(crate) enum AttributeParts<'a> {
    Float(f32),
    Int(i64),
    Text(&'a [u8]),
    Floats(&'a [f32]),
    Ints(&'a [i64]),
    /// Texts, with a zero behind each.
    Texts(&'a [u8]),
    /// Of another kind, by its number.
    Other(u32),
}

/// What the importer does for a rule. Terms that it is given are there, and types are types; values are any numbers.
pub(crate) trait ImportSession {
    fn version(&self) -> u64;
    fn output_count(&self) -> usize;
    /// How many axes the model says that an output has.
    fn output_rank(&self, output: usize) -> Option<usize>;
    /// What it borrows stays where it is for as long as the session.
    fn attribute(&mut self, name: &str) -> Option<AttributeParts<'_>>;
    fn attribute_tensor(&mut self, name: &str) -> Served<u32>;
    fn element_type(&self, code: u32) -> Served<DType>;
    fn value_type(&self, value: u32) -> Served<Type>;
    /// Gives `read` the elements of a value that are known.
    fn elements(&self, value: u32, read: &mut dyn FnMut(&[Dim]));
    fn is_constant(&self, value: u32) -> bool;
    fn tensor(&self, value: u32) -> Option<ConstantParts>;
    fn call(&mut self, op: &str, args: &[u32], attrs: Attrs) -> Served<u32>;
    /// A constant of these bytes, which fit the type.
    fn constant(&mut self, ty: Type, bytes: Vec<u8>) -> u32;
    fn retyped(&mut self, value: u32, ty: Type) -> Served<u32>;
    fn dimensions(&mut self, ty: Type, elements: &[Dim]) -> Served<u32>;
    fn shape(&mut self, dims: &[Dim]) -> u32;
    fn tuple(&mut self, fields: &[u32]) -> Served<u32>;
    fn items(&mut self, tuple: u32) -> Served<Vec<u32>>;
    fn spend(&mut self, bytes: usize) -> bool;
    /// The rule tells what is wrong with the node.
    fn refused(&mut self, refusal: Refusal);
}

/// The importer's state while a rule is asked, as its call holds it.
pub(super) struct Lent {
    session: NonNull<dyn ImportSession>,
    /// The thread that asks.
    thread: ThreadId,
    /// Which problem the last service that failed told.
    last: Failure,
    /// The tensor that was told last.
    told: Option<(Vec<u64>, Arc<Bytes>)>,
}

// SAFETY: the pointer is followed on the thread that asks alone, which `Call::take_lent` sees to.
unsafe impl Send for Lent {}

impl Lent {
    pub(super) fn new(session: NonNull<dyn ImportSession>) -> Self {
        Self { session, thread: thread::current().id(), last: Failure::ERROR, told: None }
    }

    /// Tells the importer what the rule says of the node.
    pub(super) fn tell(mut self, refusal: Refusal) {
        // SAFETY: the rule has just returned on the thread that asks, so the session is there, and nobody uses it.
        unsafe { self.session.as_mut() }.refused(refusal);
    }

    /// Whether this thread is the one that asks.
    pub(super) fn is_here(&self) -> bool {
        self.thread == thread::current().id()
    }
}

/// What rules are asked from: by whoever imports a model.
pub(crate) fn asker(cx: &Cx) -> Arc<Call> {
    let never = Arc::new(AtomicBool::new(false));
    Arc::new(Call::new(Arc::new(Run::new(cx.clone(), Attrs::NONE, Attrs::NONE, never))))
}

/// Asks rules about a node that reads these values, in turn, until one answers with the values that the node makes.
pub(crate) fn ask_about_node(
    asker: &Arc<Call>,
    rules: &[Rule],
    name: &str,
    inputs: &[u32],
    session: &mut dyn ImportSession,
) -> Result<Option<Vec<u32>>, ServiceError> {
    let session: NonNull<dyn ImportSession + '_> = NonNull::from(session);
    // SAFETY: the pointer is the same, and is followed only by the calls that `first_answer` makes, which end before
    // `session` does: what a call is lent it gives back when it returns.
    let session: NonNull<dyn ImportSession> = unsafe { std::mem::transmute(session) };
    let site = Site::of_node(asker.clone(), session);
    let question = RuleQuestion { cx: &asker.run.cx, nodes: inputs, data: 0, site: &site };
    Ok(first_answer(rules, name, &question)?.map(|reply| reply.nodes))
}

/// Has the session of a call do something. `None` when it cannot, which the call remembers.
///
/// # Safety
/// See the contract in this folder's `mod.rs`.
unsafe fn served<T>(
    run: *const RawRun,
    f: impl FnOnce(&Call, &mut dyn ImportSession, &mut Option<(Vec<u64>, Arc<Bytes>)>) -> Served<T>,
) -> Option<T> {
    // SAFETY: by this function's contract.
    let call = unsafe { call_of(run) }?;
    // While it is taken nobody else finds it: not another thread, and not a rule that is asked meanwhile.
    let Some(mut lent) = call.take_lent() else {
        call.set_error("no node is imported here");
        return None;
    };
    // SAFETY: the session lives until the rule has answered, and `ask_about_node` has borrowed it for that long; this is
    // the thread that asks, which has not.
    let session = unsafe { lent.session.as_mut() };
    let outcome = guard(|| f(call, session, &mut lent.told));
    let outcome = outcome.unwrap_or_else(|panic| Err(Refusal::new(Failure::ERROR, panic)));
    let outcome = outcome.map_err(|refusal| {
        call.set_error(&refusal.text);
        lent.last = refusal.kind;
    });
    call.lend(lent);
    outcome.ok()
}

fn mistake<T>(text: impl Into<String>) -> Served<T> {
    Err(Refusal::new(Failure::ERROR, text))
}

fn text(text: RStr<'_>) -> Served<&str> {
    read::text(text).or_else(|readable| mistake(format!("the name {readable:?} is not UTF-8")))
}

fn type_at(cx: &Cx, ty: u32) -> Served<Type> {
    match has_term(cx, ty) && is_type(cx, ty) {
        true => Ok(Type(ty)),
        false => mistake(format!("there is no type {ty}")),
    }
}

/// The dimensions that have these numbers.
fn dims_at(cx: &Cx, ids: RSlice<'_, u32>) -> Served<Vec<Dim>> {
    let is_dim =
        |id: u32| has_term(cx, id) && !matches!(cx.terms().dim(Dim(id)), DimView::Unknown(_));
    let dim = |&id: &u32| match is_dim(id) {
        true => Ok(Dim(id)),
        false => mistake(format!("there is no dimension {id}")),
    };
    read::slice(ids).iter().map(dim).collect()
}

unsafe extern "C" fn version(run: *const RawRun) -> u64 {
    // SAFETY: see `mod.rs`.
    unsafe { served(run, |_, session, _| Ok(session.version())) }.unwrap_or(0)
}

unsafe extern "C" fn output_count(run: *const RawRun) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { served(run, |_, session, _| Ok(session.output_count() as u32)) }.unwrap_or(0)
}

unsafe extern "C" fn output_rank(run: *const RawRun, output: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    let rank = unsafe { served(run, |_, session, _| Ok(session.output_rank(output as usize))) };
    rank.flatten().and_then(|rank| u32::try_from(rank).ok()).unwrap_or(NONE)
}

unsafe extern "C" fn attribute(
    run: *const RawRun,
    name: RStr<'_>,
    attribute: *mut RawAttribute,
) -> bool {
    if attribute.is_null() || !attribute.is_aligned() {
        return false;
    }
    let find = |_: &Call, session: &mut dyn ImportSession, _: &mut _| {
        let found = session.attribute(text(name)?);
        Ok(found.map_or(RawAttribute::NONE, |found| raw_attribute(&found)))
    };
    // SAFETY: see `mod.rs`.
    let found = unsafe { served(run, find) };
    // SAFETY: there is room for a record.
    unsafe { attribute.write(found.unwrap_or(RawAttribute::NONE)) };
    found.is_some()
}

fn raw_attribute(attribute: &AttributeParts<'_>) -> RawAttribute {
    let none = RawAttribute::NONE;
    let array = |kind: u32, data: *const c_void, len: usize| RawAttribute {
        kind,
        data,
        len: len as u64,
        ..none
    };
    match *attribute {
        AttributeParts::Float(value) => {
            RawAttribute { kind: 1, bits: u64::from(value.to_bits()), ..none }
        }
        AttributeParts::Int(value) => RawAttribute { kind: 2, bits: value.cast_unsigned(), ..none },
        AttributeParts::Text(bytes) => array(3, bytes.as_ptr().cast(), bytes.len()),
        AttributeParts::Floats(values) => array(6, values.as_ptr().cast(), values.len()),
        AttributeParts::Ints(values) => array(7, values.as_ptr().cast(), values.len()),
        AttributeParts::Texts(bytes) => array(8, bytes.as_ptr().cast(), bytes.len()),
        AttributeParts::Other(kind) => RawAttribute { kind, ..none },
    }
}

unsafe extern "C" fn attribute_tensor(run: *const RawRun, name: RStr<'_>) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { served(run, |_, session, _| session.attribute_tensor(text(name)?)) }.unwrap_or(NONE)
}

unsafe extern "C" fn element_type(run: *const RawRun, code: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    let dtype = unsafe { served(run, |_, session, _| session.element_type(code)) };
    dtype.map_or(NONE, |dtype| u32::from(dtype.0))
}

unsafe extern "C" fn value_type(run: *const RawRun, value: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { served(run, |_, session, _| session.value_type(value)) }.map_or(0, |ty| ty.0)
}

unsafe extern "C" fn elements(
    run: *const RawRun,
    value: u32,
    elements: *mut u32,
    room: u32,
) -> u32 {
    let write = |_: &Call, session: &mut dyn ImportSession, _: &mut _| {
        let mut count = NONE;
        session.elements(value, &mut |dims| {
            count = dims.len() as u32;
            if elements.is_null() || !elements.is_aligned() {
                return;
            }
            for (at, dim) in dims.iter().enumerate().take(room as usize) {
                // SAFETY: there is room for so many.
                unsafe { elements.add(at).write(dim.0) };
            }
        });
        Ok(count)
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, write) }.unwrap_or(NONE)
}

unsafe extern "C" fn tensor(run: *const RawRun, value: u32, tensor: *mut RawTensor) -> bool {
    let find = |_: &Call, session: &mut dyn ImportSession, told: &mut Option<_>| {
        if tensor.is_null() || !tensor.is_aligned() {
            return Ok(session.is_constant(value));
        }
        let Some(found) = session.tensor(value) else { return Ok(false) };
        let (shape, bytes) = told.insert((found.shape, Arc::new(found.bytes)));
        // SAFETY: there is room for a record.
        unsafe { tensor.write(raw(found.dtype, shape, Some(bytes))) };
        Ok(true)
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, find) }.unwrap_or(false)
}

unsafe extern "C" fn call(
    run: *const RawRun,
    op: RStr<'_>,
    args: RSlice<'_, u32>,
    attrs: u32,
) -> u32 {
    let make = |call: &Call, session: &mut dyn ImportSession, _: &mut _| {
        let cx = &call.run.cx;
        let is_dict = |term| cx.terms().kind(Term(term)) == TermKind::DICT;
        if attrs != 0 && !(has_term(cx, attrs) && is_dict(attrs)) {
            return mistake(format!("there are no attributes {attrs}"));
        }
        session.call(text(op)?, read::slice(args), Attrs(attrs))
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, make) }.unwrap_or(NONE)
}

unsafe extern "C" fn constant(run: *const RawRun, ty: u32, bytes: RSlice<'_, u8>) -> u32 {
    let make = |call: &Call, session: &mut dyn ImportSession, _: &mut _| {
        let (cx, bytes) = (&call.run.cx, read::slice(bytes));
        let ty = type_at(cx, ty)?;
        match fits(cx, ty, bytes.len() as u64) {
            true => Ok(session.constant(ty, bytes.to_vec())),
            false => {
                let (len, ty) = (bytes.len(), cx.terms().type_text(ty));
                mistake(format!("{len} bytes are no constant of type {ty}"))
            }
        }
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, make) }.unwrap_or(NONE)
}

unsafe extern "C" fn retyped(run: *const RawRun, value: u32, ty: u32) -> u32 {
    let make = |call: &Call, session: &mut dyn ImportSession, _: &mut _| {
        session.retyped(value, type_at(&call.run.cx, ty)?)
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, make) }.unwrap_or(NONE)
}

unsafe extern "C" fn dimensions(run: *const RawRun, ty: u32, elements: RSlice<'_, u32>) -> u32 {
    let make = |call: &Call, session: &mut dyn ImportSession, _: &mut _| {
        let cx = &call.run.cx;
        session.dimensions(type_at(cx, ty)?, &dims_at(cx, elements)?)
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, make) }.unwrap_or(NONE)
}

unsafe extern "C" fn shape(run: *const RawRun, dims: RSlice<'_, u32>) -> u32 {
    let make = |call: &Call, session: &mut dyn ImportSession, _: &mut _| {
        Ok(session.shape(&dims_at(&call.run.cx, dims)?))
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, make) }.unwrap_or(NONE)
}

unsafe extern "C" fn tuple(run: *const RawRun, fields: RSlice<'_, u32>) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { served(run, |_, session, _| session.tuple(read::slice(fields))) }.unwrap_or(NONE)
}

unsafe extern "C" fn items(run: *const RawRun, tuple: u32, items: *mut u32, room: u32) -> bool {
    let write = |_: &Call, session: &mut dyn ImportSession, _: &mut _| {
        let found = session.items(tuple)?;
        if found.len() != room as usize || items.is_null() || !items.is_aligned() {
            return mistake(format!("there is room for {room} of {} fields", found.len()));
        }
        for (at, &item) in found.iter().enumerate() {
            // SAFETY: there is room for so many.
            unsafe { items.add(at).write(item) };
        }
        Ok(())
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, write) }.is_some()
}

unsafe extern "C" fn spend(run: *const RawRun, bytes: u64) -> bool {
    let take = |_: &Call, session: &mut dyn ImportSession, _: &mut _| {
        Ok(session.spend(usize::try_from(bytes).unwrap_or(usize::MAX)))
    };
    // SAFETY: see `mod.rs`.
    unsafe { served(run, take) }.unwrap_or(false)
}

unsafe extern "C" fn problem(run: *const RawRun) -> u32 {
    // SAFETY: see `mod.rs`.
    let last = unsafe { call_of(run) }.and_then(|call| call.with_lent(|lent| lent.last));
    last.unwrap_or(Failure::ERROR).0
}

pub(super) static IMPORT: HostImport = HostImport {
    size: size_of::<HostImport>(),
    version,
    output_count,
    attribute,
    attribute_tensor,
    element_type,
    value_type,
    elements,
    tensor,
    call,
    constant,
    retyped,
    dimensions,
    shape,
    tuple,
    items,
    spend,
    problem,
    output_rank,
};
