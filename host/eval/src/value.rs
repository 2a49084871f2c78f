//! What expressions evaluate to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenon_ir::op_names::STORAGE_CLASS;
use tenon_ir::{Bytes, Context, Cx, DType, Expr, Symbol, Type};

use super::budget::{Budget, Charge, charged};
use super::runtime::static_shape;
use super::{EvalProblem, Tensor};

/// A value of a graph function.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// A tuple.
    Tuple(Tuple),
    /// The extents of a tensor.
    Shape(Vec<i64>),
    /// One extent.
    Scalar(i64),
    /// A function.
    Function(FunctionValue),
    /// A tensor in a storage, which tensor programs write to.
    Place(Place),
    /// Memory for tensors.
    Storage(Storage),
}

impl Value {
    /// The empty tuple, which is the result of what has none.
    pub fn unit() -> Self {
        Value::Tuple(Tuple::new(Vec::new()))
    }

    /// The tensor that it is; one in a storage is copied.
    pub fn to_tensor(&self) -> Option<Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor.clone()),
            Value::Place(place) => place.to_tensor(),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Tensor(_) | Value::Place(_) => "a tensor",
            Value::Tuple(_) => "a tuple",
            Value::Shape(_) => "a shape",
            Value::Scalar(_) => "a dimension",
            Value::Function(_) => "a function",
            Value::Storage(_) => "a storage",
        }
    }

    /// Its type; `None` if a function is in it. Does not recurse.
    pub fn ty(&self, cx: &Cx) -> Option<Type> {
        enum Step<'a> {
            Value(&'a Value),
            Tuple(usize),
        }
        let mut steps = vec![Step::Value(self)];
        let mut done: Vec<Type> = Vec::new();
        while let Some(step) = steps.pop() {
            let value = match step {
                Step::Tuple(count) => {
                    let fields = done.split_off(done.len() - count);
                    done.push(cx.tuple_type(&fields));
                    continue;
                }
                Step::Value(value) => value,
            };
            done.push(match value {
                Value::Tensor(tensor) => tensor.ty(cx),
                Value::Place(place) => place.ty,
                Value::Shape(dims) => {
                    let dims: Vec<_> = dims.iter().map(|&dim| cx.dim(dim)).collect();
                    cx.shape_type(Some(&dims))
                }
                Value::Scalar(_) => cx.scalar_type(DType::I64),
                Value::Storage(_) => cx.object_type(STORAGE_CLASS),
                Value::Function(_) => return None,
                Value::Tuple(tuple) => {
                    steps.push(Step::Tuple(tuple.fields().len()));
                    steps.extend(tuple.fields().iter().rev().map(Step::Value));
                    continue;
                }
            });
        }
        done.pop()
    }
}

/// The fields of a tuple, shared. Tuples may be nested to any depth.
#[derive(Clone, Debug)]
pub struct Tuple(Arc<Vec<Value>>);

impl Tuple {
    /// A tuple of these fields.
    pub fn new(fields: Vec<Value>) -> Self {
        Self(Arc::new(fields))
    }

    /// The fields.
    pub fn fields(&self) -> &[Value] {
        &self.0
    }

    /// The fields, if nobody else holds them.
    fn take(&mut self) -> Vec<Value> {
        Arc::get_mut(&mut self.0).map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Tuple {
    /// Takes nested tuples apart one by one rather than one inside the other.
    fn drop(&mut self) {
        let mut pending = self.take();
        while let Some(mut value) = pending.pop() {
            if let Value::Tuple(tuple)
            | Value::Function(FunctionValue(Callee::Partial { captured: tuple, .. })) =
                &mut value
            {
                pending.append(&mut tuple.take());
            }
        }
    }
}

/// A function as a value. It means something only to the evaluation that made it.
#[derive(Clone, Debug)]
pub struct FunctionValue(pub(super) Callee);

#[derive(Clone, Debug)]
pub(super) enum Callee {
    /// A function of the module.
    Global(Symbol),
    /// The function at a node, with the environment it was made in.
    Closure { function: Expr, env: usize },
    /// A function with values for its last parameters.
    Partial { function: Box<Callee>, captured: Tuple },
}

impl Callee {
    /// The same function with values for its last parameters.
    pub(super) fn with_captured(self, mut captured: Vec<Value>) -> Self {
        match self {
            // One that has values already takes more in front of them, so none is ever within another.
            Self::Partial { function, captured: more } => {
                captured.extend_from_slice(more.fields());
                Self::Partial { function, captured: Tuple::new(captured) }
            }
            function => {
                Self::Partial { function: Box::new(function), captured: Tuple::new(captured) }
            }
        }
    }
}

/// Memory that tensors lie in.
#[derive(Clone, Debug)]
pub struct Storage {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// What each byte is before it is written.
    fill: u8,
    charge: Arc<Charge>,
}

impl Storage {
    /// New memory of `size` bytes.
    pub(super) fn new(size: usize, budget: &Budget) -> Result<Self, EvalProblem> {
        let (bytes, charge) = budget.alloc(size)?;
        let (bytes, charge) = (Arc::new(Mutex::new(bytes)), Arc::new(charge));
        Ok(Self { bytes, fill: budget.fill(), charge })
    }

    /// Whether both are the same memory.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }

    /// Takes the contents of `len` bytes away, or of as many as there are: they are again as in new memory.
    pub(super) fn spoil(&self, offset: usize, len: usize) {
        let mut bytes = self.lock();
        let end = offset.saturating_add(len).min(bytes.len());
        bytes[offset.min(end)..end].fill(self.fill);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tensor in a storage.
#[derive(Clone, Debug)]
pub struct Place {
    pub(super) storage: Storage,
    /// Where it begins.
    pub(super) offset: usize,
    /// Its type, a static tensor.
    pub(super) ty: Type,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
}

impl Place {
    /// A tensor of static type `ty` at `offset` of a storage; `None` when it does not fit in.
    pub(super) fn new(cx: &Cx, storage: Storage, offset: usize, ty: Type) -> Option<Self> {
        let (dtype, shape) = cx.terms().static_tensor(ty)?;
        let shape = shape.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
        let place = Self { storage, offset, ty, dtype, shape };
        let end = offset.checked_add(place.len()?)?;
        let size = place.storage.lock().len();
        (end <= size).then_some(place)
    }

    /// A tensor of static type `ty` in new memory of its own.
    pub(super) fn alloc(cx: &Cx, ty: Type, budget: &Budget) -> Result<Self, EvalProblem> {
        let bad = || EvalProblem::Alloc(cx.terms().type_text(ty));
        let (dtype, shape) = static_shape(cx.terms(), ty).ok_or_else(bad)?;
        let len = len_of(dtype, &shape).ok_or_else(bad)?;
        Ok(Self { storage: Storage::new(len, budget)?, offset: 0, ty, dtype, shape })
    }

    /// Number of bytes.
    pub(super) fn len(&self) -> Option<usize> {
        len_of(self.dtype, &self.shape)
    }

    /// A copy. It is not charged: it is of the size of what is.
    pub(super) fn to_tensor(&self) -> Option<Tensor> {
        let bytes = self.storage.lock().get(self.offset..self.offset + self.len()?)?.to_vec();
        Tensor::new(self.dtype, self.shape.clone(), Bytes::new(bytes))
    }

    /// The tensor; its memory is taken over if it is all there is in the storage and nobody else has it.
    pub(super) fn into_tensor(self) -> Option<Tensor> {
        if self.offset != 0 || self.storage.lock().len() != self.len()? {
            return self.to_tensor();
        }
        let Storage { bytes, fill, charge } = self.storage;
        match Arc::try_unwrap(bytes) {
            Ok(bytes) => {
                let bytes = bytes.into_inner().unwrap_or_else(PoisonError::into_inner);
                Tensor::new(self.dtype, self.shape, charged(bytes, charge))
            }
            Err(bytes) => Self { storage: Storage { bytes, fill, charge }, ..self }.to_tensor(),
        }
    }
}

fn len_of(dtype: DType, shape: &[usize]) -> Option<usize> {
    let count = shape.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim as u64))?;
    dtype.bytes(count).and_then(|bytes| usize::try_from(bytes).ok())
}
