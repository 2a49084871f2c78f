//! Calls of operators.

use crate::ir::{Attrs, Context, DType, Expr, Symbol, Terms, Type, TypeView};
use crate::ops::core::compiler::{
    ALLOC_TENSOR, CALL_TIR, MAKE_CLOSURE, MEMORY_ALLOC_STORAGE, MEMORY_ALLOC_TENSOR, MEMORY_KILL,
    MEMORY_VIEW,
};
use crate::ops::{self, EvalCx, OpAttrs, OpDef, OpError, flatten};

use super::machine::Machine;
use super::value::{Callee, FunctionValue, Place, Storage};
use super::{EvalProblem, Tensor, Tuple, Value};

impl Machine<'_, '_> {
    pub(super) fn call_op(
        &mut self,
        expr: Expr,
        name: Symbol,
        args: Vec<Value>,
    ) -> Result<Value, EvalProblem> {
        let cx = self.cx;
        let name = cx.terms().str(name);
        let problem = |error: OpError| EvalProblem::Op { op: name.to_owned(), error };
        let op = ops::get(name).map_err(problem)?;
        let attrs = self.attrs(expr);
        let view = OpAttrs::new(op, cx.terms().attrs(attrs), cx.terms()).map_err(problem)?;
        match name {
            CALL_TIR => self.call_tir(view.ty("out").map_err(problem)?, args),
            MAKE_CLOSURE => {
                let mut args = args.into_iter();
                match args.next() {
                    Some(Value::Function(FunctionValue(callee))) => {
                        Ok(Value::Function(FunctionValue(callee.with_captured(args.collect()))))
                    }
                    _ => Err(EvalProblem::WrongValue("a function", "something else")),
                }
            }
            ALLOC_TENSOR => alloc(cx, view.ty("ty").map_err(problem)?).map(Value::Place),
            MEMORY_ALLOC_STORAGE => {
                let size = view.int("size").map_err(problem)?;
                match usize::try_from(size).ok().filter(|&size| size <= isize::MAX as usize) {
                    Some(size) => Ok(Value::Storage(Storage::new(size))),
                    None => Err(EvalProblem::Alloc(format!("storage of {size} bytes"))),
                }
            }
            MEMORY_ALLOC_TENSOR => {
                let offset = view.int("offset").map_err(problem)? as usize;
                let ty = view.ty("ty").map_err(problem)?;
                let Some(Value::Storage(storage)) = args.into_iter().next() else {
                    return Err(EvalProblem::WrongValue("a storage", "something else"));
                };
                Place::new(cx, storage, offset, ty).map(Value::Place).ok_or_else(|| {
                    EvalProblem::OutsideStorage { ty: cx.terms().type_text(ty), offset }
                })
            }
            MEMORY_VIEW => {
                let ty = view.ty("ty").map_err(problem)?;
                view_of(cx, args, ty).ok_or_else(|| EvalProblem::Alloc(cx.terms().type_text(ty)))
            }
            MEMORY_KILL => {
                match args.first() {
                    Some(Value::Place(place)) => {
                        place.storage.spoil(place.offset, place.len().unwrap_or(0));
                    }
                    Some(Value::Storage(storage)) => storage.spoil(0, usize::MAX),
                    _ => {}
                }
                Ok(Value::unit())
            }
            _ => self.call_kernel(op, attrs, view, args),
        }
    }

    fn call_tir(&mut self, out: Type, args: Vec<Value>) -> Result<Value, EvalProblem> {
        let mut args = args.into_iter();
        let name = match args.next() {
            Some(Value::Function(function)) => match function.0 {
                Callee::Global(name) => name,
                Callee::Closure { .. } | Callee::Partial { .. } => {
                    return Err(EvalProblem::WrongValue("a tensor program", "a closure"));
                }
            },
            _ => return Err(EvalProblem::WrongValue("a tensor program", "something else")),
        };
        let func = self.program(name)?;
        let mut operands = spread(args.collect());
        let places = flatten(self.cx.terms(), &[out])
            .into_iter()
            .map(|ty| alloc(self.cx, ty))
            .collect::<Result<Vec<Place>, _>>()?;
        operands.extend(places.iter().cloned().map(Value::Place));
        self.run_program(name, func, &operands)?;
        drop(operands);
        let tensors = places
            .into_iter()
            .map(|place| place.into_tensor().ok_or(EvalProblem::UnknownNode("a lost tensor")))
            .collect::<Result<Vec<Tensor>, _>>()?;
        gather(self.cx.terms(), out, tensors).ok_or(EvalProblem::UnknownNode("a lost tensor"))
    }

    fn call_kernel(
        &self,
        op: &'static OpDef,
        attrs: Attrs,
        view: OpAttrs<'_>,
        args: Vec<Value>,
    ) -> Result<Value, EvalProblem> {
        let cx = self.cx;
        let problem = |error: OpError| EvalProblem::Op { op: op.name.to_owned(), error };
        let Some(evaluate) = op.evaluate else {
            return Err(EvalProblem::NoEvaluation(op.name.to_owned()));
        };
        let types: Option<Vec<Type>> = args.iter().map(|arg| arg.ty(cx)).collect();
        let types = types.ok_or(EvalProblem::WrongValue("a tensor", "a function"))?;
        let out = ops::infer_call(cx, op, &types, attrs).map_err(problem)?;
        let args = spread(args)
            .iter()
            .map(as_tensor)
            .collect::<Option<Vec<Tensor>>>()
            .ok_or(EvalProblem::WrongValue("a tensor", "a storage"))?;
        let outs = flatten(cx.terms(), &[out])
            .into_iter()
            .map(|ty| static_shape(cx.terms(), ty))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| EvalProblem::Alloc(cx.terms().type_text(out)))?;
        let tensors =
            evaluate(&EvalCx { op, args: &args, attrs: view, outs: &outs }).map_err(problem)?;
        debug_assert!(
            outs.is_empty()
                || tensors
                    .iter()
                    .map(|t| (t.dtype(), t.shape()))
                    .eq(outs.iter().map(|o| (o.0, &*o.1))),
            "`{}` evaluates to what it is inferred to be",
            op.name
        );
        gather(cx.terms(), out, tensors).ok_or(EvalProblem::UnknownNode("a lost tensor"))
    }
}

fn alloc(cx: &crate::ir::Cx, ty: Type) -> Result<Place, EvalProblem> {
    Place::alloc(cx, ty).ok_or_else(|| EvalProblem::Alloc(cx.terms().type_text(ty)))
}

/// The tensor among `args` under another type.
fn view_of(cx: &crate::ir::Cx, args: Vec<Value>, ty: Type) -> Option<Value> {
    match args.into_iter().next()? {
        Value::Place(place) => Place::new(cx, place.storage, place.offset, ty).map(Value::Place),
        Value::Tensor(tensor) => {
            let (dtype, shape) = static_shape(cx.terms(), ty)?;
            Tensor::new(dtype, shape, tensor.bytes().clone()).map(Value::Tensor)
        }
        _ => None,
    }
}

fn static_shape(terms: Terms<'_>, ty: Type) -> Option<(DType, Vec<usize>)> {
    let (dtype, shape) = terms.static_tensor(ty)?;
    let shape: Option<Vec<usize>> = shape.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let shape = shape?;
    let count = shape.iter().try_fold(1u64, |count, &dim| count.checked_mul(dim as u64))?;
    dtype.bytes(count).filter(|&bytes| bytes <= isize::MAX as u64)?;
    Some((dtype, shape))
}

/// The values with tuples in their place, in order.
fn spread(values: Vec<Value>) -> Vec<Value> {
    let mut spread = Vec::with_capacity(values.len());
    let mut pending: Vec<Value> = values.into_iter().rev().collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::Tuple(tuple) => pending.extend(tuple.fields().iter().rev().cloned()),
            value => spread.push(value),
        }
    }
    spread
}

/// What a kernel sees of a value: shapes and dimensions are tensors to it.
fn as_tensor(value: &Value) -> Option<Tensor> {
    match value {
        Value::Shape(dims) => Some(Tensor::from_vec(vec![dims.len()], dims.clone())),
        Value::Scalar(value) => Some(Tensor::scalar(*value)),
        value => value.to_tensor(),
    }
}

/// The value of type `ty` that is made of these tensors.
fn gather(terms: Terms<'_>, ty: Type, tensors: Vec<Tensor>) -> Option<Value> {
    enum Step {
        Type(Type),
        Tuple(usize),
    }
    let mut tensors = tensors.into_iter();
    let mut steps = vec![Step::Type(ty)];
    let mut done: Vec<Value> = Vec::new();
    while let Some(step) = steps.pop() {
        let ty = match step {
            Step::Tuple(count) => {
                let fields = done.split_off(done.len() - count);
                done.push(Value::Tuple(Tuple::new(fields)));
                continue;
            }
            Step::Type(ty) => ty,
        };
        match terms.ty(ty) {
            TypeView::Tuple(fields) => {
                steps.push(Step::Tuple(fields.len()));
                steps.extend(fields.iter().rev().map(|&field| Step::Type(field)));
            }
            TypeView::Shape(_) => {
                done.push(Value::Shape(tensors.next()?.elements::<i64>().to_vec()))
            }
            _ => done.push(Value::Tensor(tensors.next()?)),
        }
    }
    done.pop()
}
