//! Operators that make memory, closures and shapes. The evaluator is their executor.

use tenon_plugin_api::op::{OpAttrs, OpError};

use tenon_ir::op_names::vm;
use tenon_ir::op_names::{
    ALLOC_TENSOR, EXPECT, EXPECT_FIT, MAKE_CLOSURE, MEMORY_ALLOC_STORAGE, MEMORY_ALLOC_TENSOR,
    MEMORY_COPY, MEMORY_KILL, MEMORY_PART, MEMORY_VIEW,
};
use tenon_ir::{Bytes, Context, Cx, DType, OpDef, Term, TermView, Terms, Type, TypeView};

use super::budget::Budget;
use super::value::{FunctionValue, Place, Storage};
use super::{EvalProblem, Tensor, Value};

type Step<T = Value> = Result<T, EvalProblem>;

/// The result of an operator of the compiler's or of the executor's.
pub(super) fn call_runtime(
    cx: &Cx,
    budget: &Budget,
    op: &OpDef,
    attrs: OpAttrs<'_>,
    args: Vec<Value>,
) -> Step {
    let problem = |error: OpError| EvalProblem::Op { op: op.name.to_owned(), error };
    let ty = || attrs.ty("ty").map_err(problem);
    let int = |name| attrs.int(name).map_err(problem);
    let dtype = || attrs.dtype("dtype").map_err(problem);
    let mut args = Operands(args.into_iter());
    match op.name {
        ALLOC_TENSOR => Place::alloc(cx, ty()?, budget).map(Value::Place),
        MEMORY_ALLOC_STORAGE if args.0.len() == 0 => storage(int("size")?, budget),
        MEMORY_ALLOC_STORAGE | vm::ALLOC_STORAGE => storage(args.scalar()?, budget),
        MEMORY_ALLOC_TENSOR => place(cx, args.storage()?, int("offset")?, ty()?),
        vm::ALLOC_TENSOR => {
            let (storage, offset) = (args.storage()?, args.scalar()?);
            place(cx, storage, offset, cx.static_tensor_type(dtype()?, &args.shape()?))
        }
        MEMORY_VIEW if args.0.len() == 1 => view(cx, args.next()?, ty()?),
        MEMORY_VIEW => match cx.terms().ty(ty()?) {
            TypeView::Tensor { dtype, .. } => {
                view(cx, args.next()?, cx.static_tensor_type(dtype, &args.shape()?))
            }
            _ => Err(EvalProblem::Alloc(cx.terms().type_text(ty()?))),
        },
        MEMORY_PART => part(cx, args.next()?, int("offset")?, ty()?),
        vm::VIEW => view(cx, args.next()?, cx.static_tensor_type(dtype()?, &args.shape()?)),
        EXPECT => match args.next()?.to_tensor() {
            Some(truth) if truth.bytes().first() == Some(&0) => Err(EvalProblem::NotExpected),
            Some(_) => Ok(Value::unit()),
            None => Err(EvalProblem::WrongValue("a truth value", "something else")),
        },
        EXPECT_FIT => {
            let (extents, wanted) = (args.shape()?, args.shape()?);
            let may_be_one = attrs.bool("may_be_one").map_err(problem)?;
            let fits =
                |(&extent, &wanted): (&i64, &i64)| extent == wanted || may_be_one && extent == 1;
            match extents.iter().zip(&wanted).find(|&pair| !fits(pair)) {
                Some((&extent, &wanted)) => Err(EvalProblem::NoFit { extent, wanted }),
                None => Ok(Value::unit()),
            }
        }
        MEMORY_COPY => copy(&args.next()?, &args.next()?),
        MEMORY_KILL | vm::KILL_OBJECT => {
            match args.next()? {
                Value::Place(place) => place.storage.spoil(place.offset, place.len().unwrap_or(0)),
                Value::Storage(storage) => storage.spoil(0, usize::MAX),
                _ => {}
            }
            Ok(Value::unit())
        }
        MAKE_CLOSURE | vm::MAKE_CLOSURE => match args.next()? {
            Value::Function(FunctionValue(callee)) => {
                Ok(Value::Function(FunctionValue(callee.with_captured(args.0.collect()))))
            }
            other => Err(EvalProblem::WrongValue("a function", other.kind())),
        },
        vm::ALLOC_SHAPE_HEAP => {
            let ty = cx.static_tensor_type(DType::I64, &[int("slots")?]);
            Place::alloc(cx, ty, budget).map(Value::Place)
        }
        vm::MATCH_SHAPE => {
            match_shape(cx, attrs, args.next()?, args.0.next())?;
            Ok(Value::unit())
        }
        vm::MAKE_SHAPE => {
            let heap = Heap::of(Some(args.next()?))?;
            let mut shape = Vec::new();
            for (code, operand) in steps(cx, attrs)? {
                shape.push(if code == "load" { heap.load(operand)? } else { operand });
            }
            Ok(Value::Shape(shape))
        }
        vm::LOAD_DIM => Heap::of(Some(args.next()?))?.load(int("slot")?).map(Value::Scalar),
        vm::SHAPE_OF => shape_of(&args.next()?),
        vm::SHAPE_TO_TENSOR => {
            let shape = args.shape()?;
            Ok(Value::Tensor(Tensor::from_vec(vec![shape.len()], shape)))
        }
        vm::TENSOR_TO_SHAPE => match args.next()?.to_tensor() {
            Some(tensor) => Ok(Value::Shape(tensor.elements::<i64>().to_vec())),
            None => Err(EvalProblem::WrongValue("a tensor", "something else")),
        },
        _ => Err(EvalProblem::NoEvaluation(op.name.to_owned())),
    }
}

fn copy(from: &Value, to: &Value) -> Step {
    let (Some(tensor), Value::Place(place)) = (from.to_tensor(), to) else {
        return Err(EvalProblem::WrongValue("a tensor in memory that can be written", to.kind()));
    };
    let Some(rows) = front_rows(&tensor, place) else {
        return Err(EvalProblem::WrongValue(
            "a tensor of the same type or a longer one",
            to.kind(),
        ));
    };
    let mut bytes = place.storage.lock();
    for (row, elements) in tensor.bytes().chunks_exact(rows.from.max(1)).enumerate() {
        bytes[place.offset + row * rows.to..][..rows.from].copy_from_slice(elements);
    }
    Ok(Value::unit())
}

/// The bytes from one row to the next where a tensor is copied to the front of another along one axis.
struct FrontRows {
    from: usize,
    to: usize,
}

/// What is a row of both, where the second differs in nothing or is longer along one axis.
fn front_rows(tensor: &Tensor, place: &Place) -> Option<FrontRows> {
    let (from, to) = (tensor.shape(), &place.shape[..]);
    if tensor.dtype() != place.dtype || from.len() != to.len() {
        return None;
    }
    let Some(axis) = (0..to.len()).find(|&axis| from[axis] != to[axis]) else {
        let all = tensor.bytes().len();
        return Some(FrontRows { from: all, to: all });
    };
    let bits = tensor.dtype().bits() as usize;
    let is_front =
        from[axis] <= to[axis] && from[axis + 1..] == to[axis + 1..] && bits.is_multiple_of(8);
    let of = |shape: &[usize]| shape[axis..].iter().product::<usize>() * bits / 8;
    is_front.then(|| FrontRows { from: of(from), to: of(to) })
}

fn shape_of(value: &Value) -> Step {
    match value.to_tensor() {
        Some(tensor) => Ok(Value::Shape(tensor.shape().iter().map(|&dim| dim as i64).collect())),
        None => Err(EvalProblem::WrongValue("a tensor", value.kind())),
    }
}

/// The strings of a list.
fn codes_of(terms: Terms<'_>, list: Term) -> Option<Vec<&str>> {
    let TermView::List(items) = terms.view(list) else { return None };
    let code = |&item: &Term| match terms.view(item) {
        TermView::Str(code) => Some(code),
        _ => None,
    };
    items.iter().map(code).collect()
}

/// Arguments, taken one after the other.
struct Operands(std::vec::IntoIter<Value>);

impl Operands {
    fn next(&mut self) -> Step {
        self.0.next().ok_or(EvalProblem::WrongValue("a value", "nothing"))
    }

    fn scalar(&mut self) -> Step<i64> {
        match self.next()? {
            Value::Scalar(value) => Ok(value),
            other => Err(EvalProblem::WrongValue("a dimension", other.kind())),
        }
    }

    fn shape(&mut self) -> Step<Vec<i64>> {
        match self.next()? {
            Value::Shape(shape) => Ok(shape),
            other => Err(EvalProblem::WrongValue("a shape", other.kind())),
        }
    }

    fn storage(&mut self) -> Step<Storage> {
        match self.next()? {
            Value::Storage(storage) => Ok(storage),
            other => Err(EvalProblem::WrongValue("a storage", other.kind())),
        }
    }
}

fn storage(size: i64, budget: &Budget) -> Step {
    match usize::try_from(size).ok().filter(|&size| size <= isize::MAX as usize) {
        Some(size) => Storage::new(size, budget).map(Value::Storage),
        None => Err(EvalProblem::BadStorage(size)),
    }
}

fn place(cx: &Cx, storage: Storage, offset: i64, ty: Type) -> Step {
    let outside = || EvalProblem::OutsideStorage { ty: cx.terms().type_text(ty), offset };
    let start = usize::try_from(offset).map_err(|_| outside())?;
    Place::new(cx, storage, start, ty).map(Value::Place).ok_or_else(outside)
}

/// A tensor under another type of the same size.
fn view(cx: &Cx, tensor: Value, ty: Type) -> Step {
    let view = match tensor {
        Value::Place(place) => {
            let len = place.len();
            let view = Place::new(cx, place.storage, place.offset, ty);
            view.filter(|view| view.len() == len).map(Value::Place)
        }
        Value::Tensor(tensor) => static_shape(cx.terms(), ty).and_then(|(dtype, shape)| {
            Tensor::new(dtype, shape, tensor.bytes().clone()).map(Value::Tensor)
        }),
        _ => None,
    };
    view.ok_or_else(|| EvalProblem::WrongView(cx.terms().type_text(ty)))
}

/// A part of a tensor's memory.
fn part(cx: &Cx, whole: Value, offset: i64, ty: Type) -> Step {
    let outside = || EvalProblem::OutsideStorage { ty: cx.terms().type_text(ty), offset };
    let start = usize::try_from(offset).map_err(|_| outside())?;
    let part = match whole {
        Value::Place(place) => {
            let all = place.len();
            let part = Place::new(cx, place.storage, place.offset + start, ty);
            let fits = |part: &Place| part.len().is_some_and(|len| Some(start + len) <= all);
            part.filter(fits).map(Value::Place)
        }
        Value::Tensor(whole) => static_shape(cx.terms(), ty).and_then(|(dtype, shape)| {
            let bytes =
                usize::try_from(dtype.bytes(shape.iter().product::<usize>() as u64)?).ok()?;
            let bytes = whole.bytes().get(start..start.checked_add(bytes)?)?.to_vec();
            Tensor::new(dtype, shape, Bytes::new(bytes)).map(Value::Tensor)
        }),
        _ => None,
    };
    part.ok_or_else(outside)
}

pub(super) fn static_shape(terms: Terms<'_>, ty: Type) -> Option<(DType, Vec<usize>)> {
    let (dtype, shape) = terms.static_tensor(ty)?;
    let shape: Option<Vec<usize>> = shape.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let shape = shape?;
    let count = shape.iter().try_fold(1u64, |count, &dim| count.checked_mul(dim as u64))?;
    dtype.bytes(count).filter(|&bytes| bytes <= isize::MAX as u64)?;
    Some((dtype, shape))
}

/// The dimensions of a function, in a tensor of i64.
struct Heap(Place);

impl Heap {
    fn of(value: Option<Value>) -> Step<Self> {
        match value {
            Some(Value::Place(place)) => Ok(Self(place)),
            Some(other) => Err(EvalProblem::WrongValue("a heap of dimensions", other.kind())),
            None => Err(EvalProblem::WrongValue("a heap of dimensions", "nothing")),
        }
    }

    /// What `act` does with the bytes of a slot.
    fn at<T>(&self, slot: i64, act: impl FnOnce(&mut [u8; 8]) -> T) -> Step<T> {
        let mut bytes = self.0.storage.lock();
        let place = bytes.get_mut(self.0.offset..).unwrap_or_default();
        let (slots, _) = place.as_chunks_mut::<8>();
        let slot_bytes = usize::try_from(slot).ok().and_then(|slot| slots.get_mut(slot));
        slot_bytes.map(act).ok_or(EvalProblem::OutsideHeap(slot))
    }

    fn load(&self, slot: i64) -> Step<i64> {
        self.at(slot, |bytes| i64::from_le_bytes(*bytes))
    }

    fn store(&self, slot: i64, value: i64) -> Step<()> {
        self.at(slot, |bytes| *bytes = value.to_le_bytes())
    }
}

/// The codes of an operator with their operands.
fn steps<'a>(cx: &'a Cx, attrs: OpAttrs<'_>) -> Step<Vec<(&'a str, i64)>> {
    let codes = attrs.given().term("codes").and_then(|list| codes_of(cx.terms(), list));
    match (codes, attrs.given().ints("operands")) {
        (Some(codes), Some(operands)) => Ok(codes.into_iter().zip(operands).collect()),
        _ => Err(EvalProblem::UnknownNode("a list that holds no codes")),
    }
}

/// Compares a value with what was declared, and puts dimensions on the heap.
fn match_shape(cx: &Cx, attrs: OpAttrs<'_>, value: Value, heap: Option<Value>) -> Step<()> {
    let terms = cx.terms();
    let declared = attrs.given().term("ty").map_or(Type(0), |ty| Type(ty.0));
    let wrong = |reason: String| EvalProblem::WrongShape {
        what: attrs.given().str("what").unwrap_or_default().to_owned(),
        found: value.ty(cx).map_or_else(|| value.kind().to_owned(), |ty| terms.type_text(ty)),
        declared: terms.type_text(declared),
        reason,
    };
    let (rank, found) = match (terms.ty(declared), value.ty(cx).map(|ty| terms.ty(ty))) {
        (
            TypeView::Tensor { dtype, dims: rank },
            Some(TypeView::Tensor { dtype: found, dims: Some(dims) }),
        ) if dtype == found => (rank, dims),
        (TypeView::Shape(rank), Some(TypeView::Shape(Some(dims)))) => (rank, dims),
        _ => return Err(wrong(String::new())),
    };
    if rank.is_some_and(|rank| rank.len() != found.len()) {
        return Err(wrong(String::new()));
    }
    let heap = if heap.is_some() { Some(Heap::of(heap)?) } else { None };
    for (axis, ((code, operand), &dim)) in steps(cx, attrs)?.into_iter().zip(found).enumerate() {
        let dim = terms.dim_value(dim).unwrap_or_default();
        let expected = match (code, &heap) {
            ("no_op", _) => continue,
            ("assert_imm", _) => operand,
            (_, None) => return Err(EvalProblem::WrongValue("a heap of dimensions", "nothing")),
            ("store", Some(heap)) => {
                heap.store(operand, dim)?;
                continue;
            }
            (_, Some(heap)) => heap.load(operand)?,
        };
        if dim != expected {
            return Err(wrong(format!(": dimension {axis} is {dim}, not {expected}")));
        }
    }
    Ok(())
}
