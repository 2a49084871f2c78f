//! Calls of operators.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tenon_plugin_api::op::OpError;

use tenon_ir::op_names::{BIND_DIMS, CALL_SCALAR, CALL_TIR, MEMORY_ROOM};
use tenon_ir::{
    Attrs, Context, Cx, DType, Dim, DimView, Expr, OpDef, Symbol, TermView, Terms, Type, TypeView,
    UNKNOWN_EXTENT, flatten_type,
};

use super::budget::charged_tensor;
use super::machine::Machine;
use super::runtime::{call_runtime, static_shape};
use super::value::{Callee, Place};
use super::watch::Watched;
use super::{EvalProblem, LimitError, Tensor, Tuple, Value};

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
        let op = cx.operators().get(name).map_err(problem)?;
        let attrs = self.attrs(expr);
        let view = op.attrs(cx, attrs).map_err(problem)?;
        match name {
            BIND_DIMS => {
                let limits = match view.given().get("most") {
                    Some(TermView::Type(limits)) => Some(limits),
                    _ => None,
                };
                self.bind_dims(expr, limits, args)
            }
            MEMORY_ROOM => self.room(expr, args),
            CALL_TIR => self.call_tir(view.ty("out").map_err(problem)?, args),
            CALL_SCALAR => {
                let value = self.call_tir(cx.static_tensor_type(DType::I64, &[]), args)?;
                let tensor = value.to_tensor();
                let element = tensor.and_then(|tensor| tensor.elements::<i64>().first().copied());
                element.map(Value::Scalar).ok_or(EvalProblem::UnknownNode("a lost tensor"))
            }
            _ => match op.evaluation() {
                Some(_) => self.call_evaluation(&op, attrs, args),
                None => call_runtime(cx, &self.budget, &op, view, args),
            },
        }
    }

    /// Binds the symbols of a call to the elements of its argument.
    fn bind_dims(
        &mut self,
        expr: Expr,
        limits: Option<Type>,
        args: Vec<Value>,
    ) -> Result<Value, EvalProblem> {
        let terms = self.cx.terms();
        let tensor = args.first().and_then(Value::to_tensor);
        let Some(tensor) = tensor.filter(|tensor| tensor.dtype() == DType::I64) else {
            return Err(EvalProblem::WrongValue("a tensor of i64", "something else"));
        };
        let elements = tensor.elements::<i64>().to_vec();
        let body = self.code().body;
        let Some(TermView::Type(ty)) = terms.attrs(body.attrs(expr)).get("ty") else {
            return Err(EvalProblem::UnknownNode("a binding of no dimensions"));
        };
        let limits = limits.map_or(&[][..], |limits| terms.children(limits));
        for (at, (&dim, &element)) in terms.children(ty).iter().zip(&elements).enumerate() {
            let limit = limits.get(at).map(|limit| Dim(limit.0));
            let is_above = |limit| terms.dim_value(limit).is_none_or(|limit| element > limit);
            if element < 0 || limit.is_some_and(is_above) {
                let name = terms.dim_text(Dim(dim.0));
                let limit = limit.map(|limit| terms.dim_text(limit));
                return Err(EvalProblem::Bound { name, element, limit });
            }
            if let DimView::Symbol(name) = terms.dim(Dim(dim.0)) {
                self.bind_symbol(name, element);
            }
        }
        Ok(Value::Shape(elements))
    }

    /// There is no more room than the tensor takes: the symbol stands for its extent.
    fn room(&mut self, expr: Expr, args: Vec<Value>) -> Result<Value, EvalProblem> {
        let terms = self.cx.terms();
        let Some(value @ Value::Place(place)) = args.first() else {
            return Err(EvalProblem::WrongValue("memory", "something else"));
        };
        let Some(TermView::Type(ty)) = terms.attrs(self.code().body.attrs(expr)).get("ty") else {
            return Err(EvalProblem::UnknownNode("room of no type"));
        };
        let dims = terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
        let found: Vec<(Symbol, i64)> = dims
            .iter()
            .zip(&place.shape)
            .filter_map(|(&dim, &extent)| match terms.dim(dim) {
                DimView::Symbol(name) => Some((name, extent as i64)),
                _ => None,
            })
            .collect();
        found.into_iter().for_each(|(name, extent)| self.bind_symbol(name, extent));
        Ok(value.clone())
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
        let places = flatten_type(self.cx.terms(), &[out])
            .into_iter()
            .map(|ty| Place::alloc(self.cx, ty, &self.budget))
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

    fn call_evaluation(
        &mut self,
        op: &Arc<OpDef>,
        attrs: Attrs,
        args: Vec<Value>,
    ) -> Result<Value, EvalProblem> {
        let cx = self.cx;
        let problem = |error: OpError| EvalProblem::Op { op: op.name.to_owned(), error };
        let types: Option<Vec<Type>> = args.iter().map(|arg| arg.ty(cx)).collect();
        let types = types.ok_or(EvalProblem::WrongValue("a tensor", "a function"))?;
        let out = op.infer(cx, &types, attrs).map_err(problem)?;
        let args = spread(args)
            .iter()
            .map(as_tensor)
            .collect::<Option<Vec<Tensor>>>()
            .ok_or(EvalProblem::WrongValue("a tensor", "a storage"))?;
        let outs = results_of(cx.terms(), out)
            .ok_or_else(|| EvalProblem::Alloc(cx.terms().type_text(out)))?;
        let known = outs.iter().filter(|(_, shape)| !shape.contains(&UNKNOWN_EXTENT));
        let mut sizes = known.map(|(dtype, shape)| {
            let count = shape.iter().fold(1u64, |count, &dim| count.saturating_mul(dim as u64));
            (count, dtype.bytes(count).unwrap_or(u64::MAX))
        });
        let (count, bytes) = sizes
            .try_fold((0u64, 0u64), |(count, bytes), (more, size)| {
                Some((count.checked_add(more)?, bytes.checked_add(size)?))
            })
            .unwrap_or((u64::MAX, u64::MAX));
        drop(self.budget.charge(bytes)?);
        self.budget.step(count)?;
        let tensors = match self.budget.patience() {
            None => {
                let _watched = Watched::new(op.name);
                evaluate(op, cx, &args, attrs, &outs)
            }
            Some(patience) => {
                let (op, cx, args) = (op.clone(), cx.clone(), args.clone());
                let name = op.name;
                within(patience, move || evaluate(&op, &cx, &args, attrs, &outs)).ok_or_else(
                    || LimitError::Patience { op: name.to_owned(), seconds: patience.as_secs() },
                )?
            }
        };
        let tensors = tensors.map_err(problem)?;
        let tensors = self.charge_new(tensors, &args)?;
        gather(cx.terms(), out, tensors).ok_or(EvalProblem::UnknownNode("a lost tensor"))
    }

    /// Charges the tensors whose bytes are not those of an argument.
    fn charge_new(
        &self,
        tensors: Vec<Tensor>,
        args: &[Tensor],
    ) -> Result<Vec<Tensor>, EvalProblem> {
        let is_shared = |tensor: &Tensor| {
            args.iter().any(|arg| arg.bytes().as_ptr() == tensor.bytes().as_ptr())
        };
        let charge = |tensor: Tensor| match is_shared(&tensor) {
            true => Ok(tensor),
            false => {
                let charge = self.budget.charge(tensor.bytes().len() as u64)?;
                Ok(charged_tensor(&tensor, charge).unwrap_or(tensor))
            }
        };
        tensors.into_iter().map(charge).collect()
    }
}

fn evaluate(
    op: &OpDef,
    cx: &Cx,
    args: &[Tensor],
    attrs: Attrs,
    outs: &[(DType, Vec<usize>)],
) -> Result<Vec<Tensor>, OpError> {
    let evaluation = op.evaluation().expect("who asks has looked");
    evaluation.evaluate(cx, args, attrs, outs)
}

/// What `work` gives, unless it takes longer than `patience`: then its thread is left to itself.
fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || tell.send(work()));
    match told.recv_timeout(patience) {
        Ok(result) => Some(result),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => resume_unwind(panic),
            Ok(_) => unreachable!("it has told nothing"),
        },
    }
}

/// Element type and shape of each tensor of a result, tuples flattened. A shape is a tensor of as many extents as are
/// known to be there.
pub fn results_of(terms: Terms<'_>, ty: Type) -> Option<Vec<(DType, Vec<usize>)>> {
    let mut pending = vec![ty];
    let mut results = Vec::new();
    while let Some(ty) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Tuple(fields) => pending.extend(fields.iter().rev()),
            TypeView::Shape(dims) => {
                let rank = dims.map_or(UNKNOWN_EXTENT, <[_]>::len);
                results.push((DType::I64, vec![rank]));
            }
            _ => results.push(static_shape(terms, ty)?),
        }
    }
    Some(results)
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
