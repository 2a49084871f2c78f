//! A plugin's own side of the border, of its operators: what `#[op]` expands to.

use std::ffi::c_void;
use std::sync::OnceLock;

use abi_stable::std_types::{RSlice, RStr};

use super::guard::guard;
use super::host::{Host, HostOperators, Kept};
use super::plugin::told;
use super::read;
use super::records::RawTensor;
use super::tables::{Failure, HostRef, OpTable};
use crate::ir::{Attrs, Bytes, Context, DType, Type};
use crate::op::{EvalCx, InferCx, OpAttrs, OpError, OpSchema, Operator, Tensor, UNKNOWN_EXTENT};
use crate::pass::{PassError, Result};

/// An operator as `#[op]` registers it.
pub struct OpItem {
    /// What it says of itself.
    pub schema: &'static OpSchema,
    /// Its manifest record.
    pub manifest: &'static str,
    /// Its type inference.
    pub infer: fn(&InferCx<'_>) -> crate::op::Result<Type>,
    /// Its evaluation.
    pub evaluate: fn(&EvalCx<'_>) -> crate::op::Result<Vec<Tensor>>,
}

impl OpItem {
    /// The item of an operator.
    pub const fn of<T: Operator>(schema: &'static OpSchema, manifest: &'static str) -> Self {
        Self {
            schema,
            manifest,
            infer: |cx| T::from_attrs(cx.attrs)?.infer(cx),
            evaluate: |cx| T::from_attrs(cx.attrs)?.evaluate(cx),
        }
    }
}

/// The operators of this library. The linker collects them; no code runs at load.
#[linkme::distributed_slice]
pub static OPERATORS: [OpItem];

/// The operators in the order of their names: the linker's order differs between builds.
pub fn operators() -> &'static [&'static OpItem] {
    static SORTED: OnceLock<Vec<&'static OpItem>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut items: Vec<_> = OPERATORS.iter().collect();
        items.sort_by_key(|item| item.schema.name);
        items
    })
}

fn item(index: u32) -> Result<&'static OpItem> {
    let item = operators().get(index as usize).copied();
    item.ok_or_else(|| PassError::new(format!("this library has no operator {index}")))
}

/// Shapes that do not fit each other, attributes of values that they cannot have and arguments of another form are told apart:
/// who imports a model says that it is wrong, and not that something is missing.
fn failed(error: OpError) -> PassError {
    match error {
        OpError::ShapeMismatch { .. } | OpError::BadAttr { .. } | OpError::WrongArg { .. } => {
            PassError::failed(Failure::INVALID, error.to_string())
        }
        _ => PassError::new(error.to_string()),
    }
}

unsafe extern "C" fn count() -> u32 {
    operators().len() as u32
}

unsafe extern "C" fn name(index: u32) -> RStr<'static> {
    RStr::from_str(operators().get(index as usize).map_or("", |item| item.schema.name))
}

unsafe extern "C" fn infer(index: u32, host: HostRef, attrs: u32, args: RSlice<'_, u32>) -> u32 {
    // SAFETY: the caller is a host that upholds the contract of `OpTable::infer`: `host` is valid during the call.
    let Ok(host) = (unsafe { Host::new(host) }) else { return 0 };
    let ran = guard(|| {
        let item = item(index)?;
        let args = read::type_ids(read::slice(args));
        let given = host.terms().attrs(Attrs(attrs));
        let attrs = OpAttrs::checked(item.schema, given, host.terms());
        let cx = InferCx { cx: &host, op: item.schema, args, attrs };
        (item.infer)(&cx).map_err(failed)
    });
    told(&host, ran).map_or(0, |ty| ty.0)
}

unsafe extern "C" fn evaluate(
    index: u32,
    host: HostRef,
    attrs: u32,
    args: RSlice<'_, RawTensor>,
    results: RSlice<'_, RawTensor>,
) -> bool {
    // SAFETY: the caller is a host that upholds the contract of `OpTable::evaluate`: `host` is valid during the call.
    let Ok(host) = (unsafe { Host::new(host) }) else { return false };
    let (args, results) = (read::slice(args), read::slice(results));
    // SAFETY: as above: `args` and `results` are tensors of this host, alive during the call.
    let ran = guard(|| unsafe { run(index, &host, attrs, args, results) });
    told(&host, ran).is_some()
}

/// # Safety
/// `args` and `results` are tensors of this host that are alive during the call.
unsafe fn run(
    index: u32,
    host: &Host,
    attrs: u32,
    args: &[RawTensor],
    results: &[RawTensor],
) -> Result<()> {
    let item = item(index)?;
    let ops = host.ops().map_err(PassError::new)?;
    let given = host.terms().attrs(Attrs(attrs));
    let attrs = OpAttrs::checked(item.schema, given, host.terms());
    // SAFETY: by this function's contract.
    let tensors = args.iter().map(|raw| unsafe { tensor(&ops, raw) });
    let tensors: Vec<Tensor> = tensors.collect::<Result<_>>()?;
    // SAFETY: by this function's contract.
    let outs = results.iter().map(|raw| unsafe { (DType(raw.dtype as u16), extents(raw)) });
    let outs: Vec<(DType, Vec<usize>)> = outs.collect();
    let cx = EvalCx { op: item.schema, args: &tensors, attrs, outs: &outs };
    let made = (item.evaluate)(&cx).map_err(failed)?;
    let fits = |(made, (dtype, shape)): (&Tensor, &(DType, Vec<usize>))| {
        let is_right = |(&made, &told): (&usize, &usize)| told == UNKNOWN_EXTENT || made == told;
        let is_ranked = made.shape().len() == shape.len();
        made.dtype() == *dtype && is_ranked && made.shape().iter().zip(shape).all(is_right)
    };
    if made.len() != outs.len() || !made.iter().zip(&outs).all(fits) {
        let made: Vec<String> =
            made.iter().map(|made| format!("{}{:?}", made.dtype(), made.shape())).collect();
        let outs: Vec<String> =
            outs.iter().map(|(dtype, shape)| format!("{dtype}{shape:?}")).collect();
        let [made, outs] = [made, outs].map(|all| all.join(", "));
        return Err(PassError::new(format!("it evaluates to {made}, and its type is {outs}")));
    }
    for (index, made) in made.into_iter().enumerate() {
        hand_over(&ops, index as u32, &made, &tensors).map_err(PassError::new)?;
    }
    Ok(())
}

fn hand_over(
    ops: &HostOperators<'_>,
    index: u32,
    made: &Tensor,
    args: &[Tensor],
) -> std::result::Result<(), String> {
    let bytes = made.bytes();
    let is_same = |arg: &Tensor| std::ptr::eq::<[u8]>(&**arg.bytes(), &**bytes);
    if let Some(arg) = args.iter().position(is_same) {
        return ops.share(index, arg as u32);
    }
    let owner = Box::new(bytes.clone());
    let bytes: *const [u8] = &**owner;
    let owner = Box::into_raw(owner);
    // SAFETY: the bytes are immutable and live as long as their owner, which `release` drops.
    unsafe { ops.give(index, &*bytes, owner.cast()) }
}

unsafe extern "C" fn release(owner: *mut c_void) {
    if !owner.is_null() {
        // SAFETY: `give` handed it over, and the host tells of it once.
        let _ = guard(|| drop(unsafe { Box::from_raw(owner.cast::<Bytes>()) }));
    }
}

/// Bytes of the host's, kept alive by an owner of theirs.
struct HostBytes {
    data: *const u8,
    len: usize,
    kept: Kept,
}

// SAFETY: the bytes are never written while they have an owner.
unsafe impl Send for HostBytes {}
// SAFETY: as above.
unsafe impl Sync for HostBytes {}

impl AsRef<[u8]> for HostBytes {
    fn as_ref(&self) -> &[u8] {
        let _owner = &self.kept;
        match self.len {
            0 => &[],
            // SAFETY: there are so many bytes at `data`, and `kept` owns them.
            len => unsafe { std::slice::from_raw_parts(self.data, len) },
        }
    }
}

/// # Safety
/// `raw` is a tensor of this host that is alive.
pub(super) unsafe fn tensor(ops: &HostOperators<'_>, raw: &RawTensor) -> Result<Tensor> {
    // SAFETY: by this function's contract.
    let kept = unsafe { ops.keep(raw.owner) };
    let bytes = HostBytes { data: raw.data, len: raw.len as usize, kept };
    // SAFETY: by this function's contract.
    let shape = unsafe { extents(raw) };
    let tensor = Tensor::new(DType(raw.dtype as u16), shape, Bytes::new(bytes));
    tensor.ok_or_else(|| PassError::new("the host told a tensor whose bytes do not fit its shape"))
}

/// # Safety
/// `raw` is a tensor of this host that is alive.
unsafe fn extents(raw: &RawTensor) -> Vec<usize> {
    let shape = match raw.rank {
        0 => &[],
        // SAFETY: by this function's contract there are `rank` extents.
        rank => unsafe { std::slice::from_raw_parts(raw.shape, rank as usize) },
    };
    shape.iter().map(|&extent| extent as usize).collect()
}

/// The operators of this library, as a host is handed them.
pub static TABLE: OpTable =
    OpTable { size: size_of::<OpTable>(), count, name, infer, evaluate, release };
