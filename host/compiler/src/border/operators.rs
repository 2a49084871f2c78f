//! Operators across the border: calls of a plugin's, and what the host does for them.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use abi_stable::std_types::RSlice;
use rustc_hash::FxHashSet;
use tenon_plugin_api::abi::layout::Table;
use tenon_plugin_api::abi::records::RawTensor;
use tenon_plugin_api::abi::tables::{Failure, HostOps, NONE, OpTable, RawRun};
use tenon_plugin_api::op::{OpError, Tensor, UNKNOWN_EXTENT};
use thiserror::Error;

use super::edit::has_term;
use super::run::{Call, PassFailure, Run};
use super::tables::{answered, call_of, host_ref, name_of};
use crate::ir::{
    Attrs, Bytes, Context, Cx, DType, Dim, DimView, Evaluation, Fit, OpDef, Term, Type, TypeView,
};
use crate::services::ServiceError;

/// The operators of a library.
pub(crate) struct OpLibrary {
    table: Table<OpTable>,
    /// Runs what calls its code, and notes that it does. Its argument is the number of the operator.
    noted: Noted,
}

/// Runs the second argument while the operator of this number is noted as running.
pub(crate) type Noted = Box<dyn Fn(u32, &mut dyn FnMut()) + Send + Sync>;

/// Bytes of a tensor of which only its value says how many they are.
const ANY_LENGTH: u64 = u64::MAX;

/// An operator of a library.
struct PluginOperator {
    library: Arc<OpLibrary>,
    index: u32,
}

/// What an operator hands over.
pub(super) struct Results {
    table: Table<OpTable>,
    /// For each tensor of the result its bytes, and what it has of them.
    sizes: Vec<u64>,
    args: Vec<Bytes>,
    made: Mutex<Vec<Made>>,
}

/// Why an operator's word of a tensor of its result is not taken.
#[derive(Debug, Error)]
pub(crate) enum ResultError {
    #[error("the result has no tensor {index}, only {count}")]
    NoTensor { index: u32, count: usize },
    #[error("there is no argument {0}")]
    NoArgument(u32),
    #[error("{given} bytes are given, and {wanted} are wanted")]
    Length { given: usize, wanted: u64 },
    #[error("only its value says how long it is: hand it over by `give`")]
    UnknownLength,
    #[error("there is not enough memory for it")]
    Memory,
    #[error("no operator is evaluated here")]
    NoEvaluation,
}

/// A tensor of the result.
enum Made {
    Nothing,
    /// Memory of the host's that the plugin writes to until the call ends.
    Here(Box<[u64]>),
    Given(Bytes),
}

impl OpLibrary {
    /// The operators of a library that is open.
    pub(crate) fn new(table: Table<OpTable>, noted: Noted) -> Self {
        Self { table, noted }
    }

    /// The operators of a table in this program.
    pub(crate) fn linked(table: &'static OpTable) -> Self {
        // SAFETY: it is a table of this build, and lives for ever.
        let table = unsafe { Table::new(table) };
        Self::new(table.expect("a table of this build is whole"), Box::new(|_, run| run()))
    }

    /// Operator `index`, which there is.
    pub(crate) fn operator(self: &Arc<Self>, index: u32) -> Arc<dyn Evaluation> {
        Arc::new(PluginOperator { library: self.clone(), index })
    }
}

impl PluginOperator {
    fn call(&self, cx: &Cx) -> Call {
        static NEVER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
        let run = Run::new(cx.clone(), Attrs::NONE, Attrs::NONE, NEVER.clone());
        Call::new(Arc::new(run))
    }

    /// Runs code of the library's.
    fn run<T>(&self, code: impl FnOnce() -> T) -> T {
        let (mut code, mut result) = (Some(code), None);
        (self.library.noted)(self.index, &mut || result = code.take().map(|code| code()));
        result.expect("what is noted is run")
    }
}

fn failed(failure: &PassFailure) -> OpError {
    match failure.is_panic {
        true => OpError::Broken(failure.message.clone()),
        false => OpError::Told(failure.message.clone()),
    }
}

impl PluginOperator {
    /// The type of a call, asked for by `call`.
    fn infer_by(
        &self,
        call: &Arc<Call>,
        cx: &Cx,
        args: &[Type],
        attrs: Attrs,
    ) -> Result<Type, OpError> {
        let ids: Vec<u32> = args.iter().map(|ty| ty.0).collect();
        let (table, ids) = (self.library.table, RSlice::from_slice(&ids));
        // SAFETY: the table's layout was checked; the call lives until it returns.
        let ty = self.run(|| unsafe { table.infer()(self.index, host_ref(call), attrs.0, ids) });
        if let Some(failure) = call.failure() {
            return Err(match call.failure_kind() {
                // The shapes of what it is given.
                Some(Failure::INVALID) => OpError::Value(failure.message.clone()),
                _ => failed(failure),
            });
        }
        match ty {
            0 => Err(OpError::Broken("it gives no type and does not say why".into())),
            ty if !has_term(cx, ty) || !is_type(cx, ty) => {
                Err(OpError::Broken(format!("its type is {ty}, which is no type")))
            }
            ty => Ok(Type(ty)),
        }
    }
}

impl Evaluation for PluginOperator {
    fn infer(&self, cx: &Cx, args: &[Type], attrs: Attrs) -> Result<Type, OpError> {
        self.infer_by(&Arc::new(self.call(cx)), cx, args, attrs)
    }

    fn fits(&self, cx: &Cx, args: &[Type], attrs: Attrs) -> Result<Vec<Fit>, OpError> {
        let call = Arc::new(self.call(cx).with_fits());
        self.infer_by(&call, cx, args, attrs)?;
        Ok(call.into_fits())
    }

    fn evaluate(
        &self,
        cx: &Cx,
        args: &[Tensor],
        attrs: Attrs,
        outs: &[(DType, Vec<usize>)],
    ) -> Result<Vec<Tensor>, OpError> {
        let told: Vec<(Vec<u64>, Arc<Bytes>)> =
            args.iter().map(|arg| (extents(arg.shape()), Arc::new(arg.bytes().clone()))).collect();
        let raw_args: Vec<RawTensor> = args
            .iter()
            .zip(&told)
            .map(|(arg, (shape, bytes))| raw(arg.dtype(), shape, Some(bytes)))
            .collect();
        let shapes: Vec<Vec<u64>> = outs.iter().map(|(_, shape)| extents(shape)).collect();
        let raw_outs: Vec<RawTensor> =
            outs.iter().zip(&shapes).map(|((dtype, _), shape)| raw(*dtype, shape, None)).collect();
        let results = Results {
            table: self.library.table,
            sizes: raw_outs.iter().map(|out| out.len).collect(),
            args: told.iter().map(|(_, bytes)| (**bytes).clone()).collect(),
            made: Mutex::new(outs.iter().map(|_| Made::Nothing).collect()),
        };
        let call = Arc::new(self.call(cx).with_results(Some(results)));
        let table = self.library.table;
        let (ins, outs_told) = (RSlice::from_slice(&raw_args), RSlice::from_slice(&raw_outs));
        // SAFETY: the table's layout was checked; call and tensors live until it returns.
        let is_done = self.run(|| unsafe {
            table.evaluate()(self.index, host_ref(&call), attrs.0, ins, outs_told)
        });
        if let Some(failure) = call.failure() {
            return Err(failed(failure));
        }
        let made = call.results().filter(|_| is_done).and_then(|results| results.take(outs));
        made.ok_or_else(|| OpError::Broken("it makes no result and does not say why".into()))
    }
}

/// Whether a term is a type, of types, dimensions and element types throughout.
pub(super) fn is_type(cx: &Cx, id: u32) -> bool {
    let terms = cx.terms();
    let is_whole = |dims: Option<&[Dim]>| dims.unwrap_or_default().iter().all(|&it| is_dim(cx, it));
    // Parts that are shared are looked at once.
    let mut seen = FxHashSet::default();
    let mut pending = vec![Type(id)];
    while let Some(ty) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Scalar { dtype, .. } if dtype.bits() > 0 => {}
            TypeView::Tensor { dtype, dims } if dtype.bits() > 0 && is_whole(dims) => {}
            TypeView::Shape(dims) if is_whole(dims) => {}
            TypeView::Object(_) => {}
            TypeView::Tuple(fields) => pending.extend(fields.iter().filter(|it| seen.insert(**it))),
            TypeView::Func { params, result } => {
                pending.extend(params.iter().chain([&result]).filter(|it| seen.insert(**it)));
            }
            _ => return false,
        }
    }
    true
}

fn is_dim(cx: &Cx, dim: Dim) -> bool {
    !matches!(cx.terms().dim(dim), DimView::Unknown(_))
}

fn extents(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|&extent| extent as u64).collect()
}

pub(super) fn raw(dtype: DType, shape: &[u64], bytes: Option<&Arc<Bytes>>) -> RawTensor {
    let count = shape.iter().fold(1u64, |count, &extent| count.saturating_mul(extent));
    RawTensor {
        dtype: dtype.0 as u32,
        rank: shape.len() as u32,
        shape: shape.as_ptr(),
        data: bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr()),
        len: match shape.contains(&(UNKNOWN_EXTENT as u64)) {
            true => ANY_LENGTH,
            false => dtype.bytes(count).unwrap_or(0),
        },
        owner: bytes.map_or(std::ptr::null(), |bytes| Arc::as_ptr(bytes).cast()),
    }
}

impl Results {
    fn made(&self) -> MutexGuard<'_, Vec<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of a tensor of the result; `ANY_LENGTH` where only its value says how many.
    fn size(&self, index: u32) -> Result<u64, ResultError> {
        let size = self.sizes.get(index as usize).copied();
        size.ok_or(ResultError::NoTensor { index, count: self.sizes.len() })
    }

    /// Whether so many bytes are a tensor of the result.
    fn fits(&self, index: u32, len: usize) -> Result<(), ResultError> {
        match self.size(index)? {
            ANY_LENGTH => Ok(()),
            size if size == len as u64 => Ok(()),
            wanted => Err(ResultError::Length { given: len, wanted }),
        }
    }

    /// Memory for a tensor of the result.
    pub(super) fn memory(&self, index: u32) -> Result<*mut u8, ResultError> {
        if self.size(index)? == ANY_LENGTH {
            return Err(ResultError::UnknownLength);
        }
        let words =
            usize::try_from(self.size(index)?.div_ceil(8)).map_err(|_| ResultError::Memory)?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(words).map_err(|_| ResultError::Memory)?;
        memory.resize(words, 0u64);
        let mut memory = memory.into_boxed_slice();
        let start = memory.as_mut_ptr().cast();
        self.made()[index as usize] = Made::Here(memory);
        Ok(start)
    }

    /// A tensor of the result has the bytes of an argument.
    pub(super) fn share(&self, index: u32, arg: u32) -> Result<(), ResultError> {
        let bytes = self.args.get(arg as usize);
        let bytes = bytes.ok_or(ResultError::NoArgument(arg))?;
        self.fits(index, bytes.len())?;
        self.made()[index as usize] = Made::Given(bytes.clone());
        Ok(())
    }

    /// A tensor of the result has these bytes, which are valid until the plugin is told of their owner.
    pub(super) fn give(&self, index: u32, given: Given) -> Result<(), ResultError> {
        self.fits(index, given.len)?;
        self.made()[index as usize] = Made::Given(Bytes::new(given));
        Ok(())
    }

    /// Bytes of a plugin's; the owner is told of when they are not needed any more.
    pub(super) fn given(&self, data: *const u8, len: usize, owner: *mut c_void) -> Given {
        Given { data, len, owner, table: self.table }
    }

    fn take(&self, outs: &[(DType, Vec<usize>)]) -> Option<Vec<Tensor>> {
        let made = std::mem::take(&mut *self.made());
        let bytes = made.into_iter().zip(&self.sizes).map(|(made, &size)| match made {
            Made::Nothing => None,
            Made::Here(memory) => Some(Bytes::new(Words { memory, len: size as usize })),
            Made::Given(bytes) => Some(bytes),
        });
        let whole = bytes.zip(outs).map(|(bytes, (dtype, shape))| {
            let bytes = bytes?;
            // What is not known before is one extent of a tensor of one dimension: the rank of a shape.
            let shape = match shape.contains(&UNKNOWN_EXTENT) {
                true => vec![bytes.len() / 8],
                false => shape.clone(),
            };
            Tensor::new(*dtype, shape, bytes)
        });
        whole.collect()
    }
}

/// Bytes in memory that is aligned for every type of elements.
struct Words {
    memory: Box<[u64]>,
    len: usize,
}

impl AsRef<[u8]> for Words {
    fn as_ref(&self) -> &[u8] {
        &zerocopy::IntoBytes::as_bytes(&*self.memory)[..self.len]
    }
}

/// Bytes of a plugin's.
pub(super) struct Given {
    data: *const u8,
    len: usize,
    owner: *mut c_void,
    table: Table<OpTable>,
}

// SAFETY: the plugin keeps the bytes as they are, and `release` is for any thread.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        match self.data.is_null() || self.len == 0 {
            true => &[],
            // SAFETY: by the contract of `give` so many bytes stay there until `release` is told.
            false => unsafe { std::slice::from_raw_parts(self.data, self.len) },
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        // SAFETY: the owner came with the bytes, and this is told once.
        unsafe { self.table.release()(self.owner) };
    }
}

unsafe extern "C" fn attributes(run: *const RawRun, op: u32, attrs: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return NONE };
    let filled = || {
        let cx = &call.run.cx;
        let name = name_of(cx, op)?;
        let op = cx.operators().get(name)?;
        match has_term(cx, attrs) {
            true => Ok(with_defaults(cx, &op, Attrs(attrs)).0),
            false => Err(ServiceError::NoTerm(attrs)),
        }
    };
    answered(call, filled).unwrap_or(NONE)
}

/// The attributes of a call with the defaults of those that are not given.
fn with_defaults(cx: &Cx, op: &OpDef, attrs: Attrs) -> Attrs {
    let terms = cx.terms();
    let mut entries: BTreeMap<&str, Term> = terms.attrs(attrs).iter().collect();
    for attr in op.attrs {
        let Some(value) = attr.default.value() else { continue };
        let value = cx.value(&value);
        entries.entry(attr.name).or_insert(value);
    }
    cx.dict(&entries)
}

unsafe extern "C" fn retain(owner: *const c_void) {
    if !owner.is_null() {
        // SAFETY: an owner is an `Arc<Bytes>` of the host's that is alive.
        unsafe { Arc::increment_strong_count(owner.cast::<Bytes>()) };
    }
}

unsafe extern "C" fn release(owner: *const c_void) {
    if !owner.is_null() {
        // SAFETY: the caller owns a count.
        unsafe { Arc::decrement_strong_count(owner.cast::<Bytes>()) };
    }
}

unsafe extern "C" fn result(run: *const RawRun, index: u32) -> *mut u8 {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return std::ptr::null_mut() };
    answered(call, || Ok(results(call)?.memory(index)?)).unwrap_or(std::ptr::null_mut())
}

unsafe extern "C" fn share(run: *const RawRun, index: u32, arg: u32) -> bool {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return false };
    answered(call, || Ok(results(call)?.share(index, arg)?)).is_some()
}

unsafe extern "C" fn give(
    run: *const RawRun,
    index: u32,
    data: *const u8,
    len: u64,
    owner: *mut c_void,
) -> bool {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return false };
    let take = || {
        let results = results(call)?;
        Ok(results.give(index, results.given(data, len as usize, owner))?)
    };
    answered(call, take).is_some()
}

fn results(call: &Call) -> Result<&Results, ResultError> {
    call.results().ok_or(ResultError::NoEvaluation)
}

unsafe extern "C" fn take_to_fit(run: *const RawRun, extent: u32, wanted: u32, may_be_one: bool) {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return };
    let cx = &call.run.cx;
    let [extent, wanted] = [extent, wanted].map(Dim);
    if let Some(fits) = &call.fits
        && [extent, wanted].iter().all(|&dim| has_term(cx, dim.0) && is_dim(cx, dim))
    {
        let mut fits = fits.lock().unwrap_or_else(PoisonError::into_inner);
        fits.push(Fit { extent, wanted, may_be_one });
    }
}

pub(super) static OPS: HostOps = HostOps {
    size: size_of::<HostOps>(),
    attributes,
    retain,
    release,
    result,
    share,
    give,
    take_to_fit,
};
