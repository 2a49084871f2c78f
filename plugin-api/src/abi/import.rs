//! The host's services for a rule that imports a node of a model, as safe calls.

use std::ffi::c_void;

use abi_stable::std_types::{RSlice, RStr};

use super::host::Host;
use super::layout::Table;
use super::op::tensor;
use super::read;
use super::records::{RawAttribute, RawTensor};
use super::tables::{Failure, HostImport, NONE, RawRun};
use crate::ir::{Attrs, DType, Dim, Type};
use crate::op::Tensor;
use crate::pass::PassError;
use crate::rule::import::{Problem, Value};

/// The services for one node. They are for the thread that the rule is asked on.
pub(crate) struct Importing {
    host: Host,
    table: Table<HostImport>,
    run: *const RawRun,
}

/// An attribute of the node. What is borrowed lives until the rule has answered.
pub(crate) enum Attribute<'a> {
    Float(f32),
    Int(i64),
    Text(&'a [u8]),
    Tensor,
    Floats(&'a [f32]),
    Ints(&'a [i64]),
    /// Texts, with a zero behind each.
    Texts(&'a [u8]),
    /// Of another kind, by its number.
    Other(u32),
}

/// A list of values or of dimensions, as it crosses.
fn ids<T: Copy>(list: &[T], id: impl Fn(T) -> u32) -> Vec<u32> {
    list.iter().map(|&item| id(item)).collect()
}

impl Importing {
    pub(crate) fn new(host: &Host) -> Result<Self, PassError> {
        let (table, run) = host.import().map_err(PassError::new)?;
        Ok(Self { host: host.clone(), table, run })
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn version(&self) -> u64 {
        // SAFETY: `run` is alive.
        unsafe { (self.table.version())(self.run) }
    }

    pub(crate) fn output_count(&self) -> usize {
        // SAFETY: `run` is alive.
        unsafe { (self.table.output_count())(self.run) as usize }
    }

    /// How many axes the model says that output `index` has.
    pub(crate) fn output_rank(&self, index: usize) -> Option<usize> {
        let entry = self.table.output_rank()?;
        // SAFETY: `run` is alive.
        match unsafe { entry(self.run, u32::try_from(index).ok()?) } {
            NONE => None,
            rank => Some(rank as usize),
        }
    }

    /// Attribute `name`, if the node has it.
    pub(crate) fn attribute(&self, name: &str) -> Option<Attribute<'_>> {
        let mut raw = RawAttribute::NONE;
        // SAFETY: `run` is alive, and there is room for a record.
        unsafe { (self.table.attribute())(self.run, RStr::from_str(name), &mut raw) };
        // SAFETY: the host leads to so many of what the kind says, until the rule has answered; the node does not outlive
        // that.
        unsafe {
            Some(match raw.kind {
                0 => return None,
                1 => Attribute::Float(f32::from_bits(raw.bits as u32)),
                2 => Attribute::Int(raw.bits.cast_signed()),
                3 => Attribute::Text(array(raw.data, raw.len)),
                4 => Attribute::Tensor,
                6 => Attribute::Floats(array(raw.data, raw.len)),
                7 => Attribute::Ints(array(raw.data, raw.len)),
                8 => Attribute::Texts(array(raw.data, raw.len)),
                other => Attribute::Other(other),
            })
        }
    }

    pub(crate) fn attribute_tensor(&self, name: &str) -> Result<Value, Problem> {
        // SAFETY: `run` is alive.
        self.made(unsafe { (self.table.attribute_tensor())(self.run, RStr::from_str(name)) })
    }

    pub(crate) fn element_type(&self, code: u32) -> Result<DType, Problem> {
        // SAFETY: `run` is alive.
        match unsafe { (self.table.element_type())(self.run, code) } {
            NONE => Err(self.problem()),
            dtype => Ok(DType(dtype as u16)),
        }
    }

    pub(crate) fn value_type(&self, value: Value) -> Type {
        // SAFETY: `run` is alive.
        Type(unsafe { (self.table.value_type())(self.run, value.0) })
    }

    /// The elements of a value, where they are known as dimensions.
    pub(crate) fn elements(&self, value: Value) -> Option<Vec<Dim>> {
        const FEW: usize = 32;
        let mut few = [0u32; FEW];
        let write = |room: &mut [u32]| {
            // SAFETY: `run` is alive, and there is room for so many.
            unsafe {
                let count = room.len() as u32;
                (self.table.elements())(self.run, value.0, room.as_mut_ptr(), count)
            }
        };
        match write(&mut few) {
            NONE => None,
            count => {
                let dims = |ids: &[u32]| ids.iter().map(|&id| Dim(id)).collect();
                if let Some(ids) = few.get(..count as usize) {
                    return Some(dims(ids));
                }
                let mut many = vec![0u32; count as usize];
                (write(&mut many) == count).then(|| dims(&many))
            }
        }
    }

    /// The tensor that a value is, if it is a constant.
    pub(crate) fn tensor(&self, value: Value) -> Option<Tensor> {
        const NOTHING: RawTensor = RawTensor {
            dtype: 0,
            rank: 0,
            shape: std::ptr::null(),
            data: std::ptr::null(),
            len: 0,
            owner: std::ptr::null(),
        };
        let mut raw = NOTHING;
        let ops = self.host.ops().ok()?;
        // SAFETY: `run` is alive, and there is room for a record.
        let is_constant = unsafe { (self.table.tensor())(self.run, value.0, &mut raw) };
        // SAFETY: the host says that it is a tensor of its own, which is there until it is asked for another.
        is_constant.then(|| unsafe { tensor(&ops, &raw) }.ok()).flatten()
    }

    pub(crate) fn is_constant(&self, value: Value) -> bool {
        // SAFETY: `run` is alive; null asks for no record.
        unsafe { (self.table.tensor())(self.run, value.0, std::ptr::null_mut()) }
    }

    pub(crate) fn call(&self, op: &str, args: &[Value], attrs: Attrs) -> Result<Value, Problem> {
        let args = ids(args, |value| value.0);
        let (op, args) = (RStr::from_str(op), RSlice::from_slice(&args));
        // SAFETY: `run` is alive.
        self.made(unsafe { (self.table.call())(self.run, op, args, attrs.0) })
    }

    pub(crate) fn constant(&self, ty: Type, bytes: &[u8]) -> Result<Value, Problem> {
        // SAFETY: `run` is alive; the bytes are copied.
        self.made(unsafe { (self.table.constant())(self.run, ty.0, RSlice::from_slice(bytes)) })
    }

    pub(crate) fn retyped(&self, value: Value, ty: Type) -> Result<Value, Problem> {
        // SAFETY: `run` is alive.
        self.made(unsafe { (self.table.retyped())(self.run, value.0, ty.0) })
    }

    pub(crate) fn dimensions(&self, ty: Type, elements: &[Dim]) -> Result<Value, Problem> {
        let elements = ids(elements, |dim| dim.0);
        // SAFETY: `run` is alive.
        self.made(unsafe {
            (self.table.dimensions())(self.run, ty.0, RSlice::from_slice(&elements))
        })
    }

    pub(crate) fn shape(&self, dims: &[Dim]) -> Result<Value, Problem> {
        let dims = ids(dims, |dim| dim.0);
        // SAFETY: `run` is alive.
        self.made(unsafe { (self.table.shape())(self.run, RSlice::from_slice(&dims)) })
    }

    pub(crate) fn tuple(&self, fields: &[Value]) -> Result<Value, Problem> {
        let fields = ids(fields, |value| value.0);
        // SAFETY: `run` is alive.
        self.made(unsafe { (self.table.tuple())(self.run, RSlice::from_slice(&fields)) })
    }

    /// The fields of a tuple that has so many.
    pub(crate) fn items(&self, tuple: Value, count: usize) -> Result<Vec<Value>, Problem> {
        let mut items = vec![0u32; count];
        // SAFETY: `run` is alive, and there is room for so many.
        match unsafe { (self.table.items())(self.run, tuple.0, items.as_mut_ptr(), count as u32) } {
            true => Ok(items.into_iter().map(Value).collect()),
            false => Err(self.problem()),
        }
    }

    pub(crate) fn spend(&self, bytes: usize) -> bool {
        // SAFETY: `run` is alive.
        unsafe { (self.table.spend())(self.run, bytes as u64) }
    }

    fn made(&self, value: u32) -> Result<Value, Problem> {
        match value {
            NONE => Err(self.problem()),
            value => Ok(Value(value)),
        }
    }

    /// Why the last service failed.
    pub(crate) fn problem(&self) -> Problem {
        // SAFETY: `run` is alive.
        let kind = Failure(unsafe { (self.table.problem())(self.run) });
        Problem::told(kind, self.host.last_error())
    }
}

/// # Safety
/// There are `len` valid elements at `data`, which live for `'a`, unless it is null.
unsafe fn array<'a, T>(data: *const c_void, len: u64) -> &'a [T] {
    match data.is_null() || len == 0 {
        true => &[],
        // SAFETY: by this function's contract.
        false => read::slice(unsafe { RSlice::from_raw_parts(data.cast::<T>(), len as usize) }),
    }
}
