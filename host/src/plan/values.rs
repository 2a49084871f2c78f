//! What nodes stand for: tensors, storages and tuples.

use std::sync::Arc;

use super::memory::Home;
use super::{FOLD, PlanProblem, Planner, Step, Tensor, Value, left, malformed, unsupported};
use crate::ir::{Dim, Expr, Type, Unbound, View, flatten_type};
use crate::runtime::signature::TensorSpec;

/// No function has so many arguments or results; a tuple of itself, doubled often, would.
const MOST_TENSORS: usize = 1 << 20;

impl Planner<'_> {
    /// What a node stands for that nothing has to be done for. Nothing recurses.
    pub(super) fn resolve(&mut self, root: Expr) -> Step<Value> {
        let mut pending = vec![root];
        while let Some(&expr) = pending.last() {
            if self.values[expr.index()].is_some() {
                pending.pop();
                continue;
            }
            let value = match self.body.view(expr) {
                View::Tuple(fields) => {
                    let waiting = pending.len();
                    let missing = |field: &Expr| self.values[field.index()].is_none();
                    pending.extend(fields.iter().filter(missing));
                    if pending.len() > waiting {
                        continue;
                    }
                    let fields = fields.iter().filter_map(|field| self.values[field.index()]);
                    let fields = fields.collect();
                    self.tuple(fields)
                }
                View::TupleGetItem { tuple, index } => match self.values[tuple.index()] {
                    None => {
                        pending.push(tuple);
                        continue;
                    }
                    Some(Value::Tuple(tuple)) if index < self.tuples[tuple].len() => {
                        self.tuples[tuple][index]
                    }
                    Some(_) => return malformed(format!("there is no field {index}")),
                },
                View::Constant(constant) => self.constant(constant.index)?,
                View::Var { name } => {
                    let name = self.body.terms().str(name);
                    return malformed(format!("`{name}` is used before it is bound"));
                }
                View::Call { .. } => {
                    return left("a call within an expression", "block_form");
                }
                _ => {
                    let what = format!("a {} as a value", self.body.kind(expr).name());
                    return unsupported(&what, FOLD);
                }
            };
            self.values[expr.index()] = Some(value);
            pending.pop();
        }
        self.values[root.index()].map_or_else(|| malformed("a value is missing"), Ok)
    }

    fn constant(&mut self, index: u32) -> Step<Value> {
        let Some(constant) = self.function.constants().get(index as usize) else {
            return malformed("a constant is missing");
        };
        let number = *self.constant_numbers.entry(Arc::as_ptr(constant)).or_insert_with(|| {
            self.constants.push(Arc::clone(constant));
            self.constants.len() - 1
        });
        Ok(Value::Tensor(self.tensor(Home::Constant(number), 0, constant.ty)?))
    }

    pub(super) fn tuple(&mut self, fields: Vec<Value>) -> Value {
        self.tuples.push(fields);
        Value::Tuple(self.tuples.len() - 1)
    }

    /// The tensors of a value, in order.
    pub(super) fn flatten(&self, value: Value) -> Step<Vec<usize>> {
        let mut tensors = Vec::new();
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            match value {
                Value::Tensor(tensor) => tensors.push(tensor),
                Value::Tuple(tuple) => pending.extend(self.tuples[tuple].iter().rev()),
                Value::Storage(_) => return malformed("a storage is used as a tensor"),
            }
            if tensors.len() + pending.len() > MOST_TENSORS {
                return malformed("a tuple has more than a million tensors");
            }
        }
        Ok(tensors)
    }

    pub(super) fn fresh_tensor(&mut self, ty: Type) -> Step<usize> {
        let bytes = self.bytes(ty)?;
        let home = self.memory.storage(bytes, 1);
        self.tensor(home, 0, ty)
    }

    pub(super) fn tensor(&mut self, home: Home, offset: u64, ty: Type) -> Step<usize> {
        let bytes = self.bytes(ty)?;
        let dtype = self.body.terms().tensor(ty).map(|(dtype, _)| dtype);
        let unit = dtype.map_or(1, |dtype| u64::from(dtype.bits().div_ceil(8)));
        let memory = self.memory.tensor(home, offset, bytes, unit)?;
        self.tensors.push(Tensor { memory, ty });
        Ok(self.tensors.len() - 1)
    }

    /// That `dim`, of which a number is needed, has symbols; named with it are those of the function's parameters, whose
    /// turn would come next.
    pub(super) fn symbolic(&self, dim: Dim) -> PlanProblem {
        let terms = self.body.terms();
        let types: Vec<Type> =
            self.function.params().iter().filter_map(|&param| self.body.ty(param)).collect();
        let tensors = flatten_type(terms, &types);
        let dims_of = |&ty: &Type| terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
        let dims = tensors.iter().flat_map(dims_of).copied().chain([dim]);
        match Unbound::in_dims(terms, dims) {
            Some(unbound) => {
                PlanProblem::Symbolic { problem: unbound.problem(), remedy: unbound.remedy() }
            }
            None => PlanProblem::Malformed(format!("the dimension {}", terms.dim_text(dim))),
        }
    }

    /// The size of a tensor of static type `ty`.
    pub(super) fn bytes(&self, ty: Type) -> Step<u64> {
        let terms = self.body.terms();
        let Some((dtype, dims)) = terms.tensor(ty) else {
            let (what, ty) = ("a value".to_owned(), terms.type_text(ty));
            return Err(PlanProblem::NotATensor { what, ty });
        };
        let mut count = 1u128;
        for &dim in dims {
            let Some(extent) = terms.dim_value(dim) else {
                return Err(self.symbolic(dim));
            };
            let Ok(extent) = u64::try_from(extent) else {
                return malformed(format!("a tensor has the extent {extent}"));
            };
            count = count.saturating_mul(u128::from(extent));
        }
        let small = u64::try_from(count).ok().filter(|&count| count < 1 << 47);
        small.and_then(|count| dtype.bytes(count)).ok_or(PlanProblem::TooLarge(count))
    }

    pub(super) fn type_of(&self, expr: Expr, what: &str) -> Step<Type> {
        match self.body.ty(expr) {
            Some(ty) if self.body.terms().tensor(ty).is_some() => Ok(ty),
            ty => {
                let ty = ty.map_or("unknown".to_owned(), |ty| self.body.terms().type_text(ty));
                Err(PlanProblem::NotATensor { what: what.to_owned(), ty })
            }
        }
    }

    pub(super) fn spec(&self, name: String, ty: Type) -> Step<TensorSpec> {
        self.bytes(ty)?;
        match self.body.terms().static_tensor(ty) {
            Some((dtype, shape)) => Ok(TensorSpec { name, dtype, shape }),
            None => malformed("a tensor of unknown shape"),
        }
    }

    pub(super) fn name_of(&self, var: Expr) -> String {
        match self.body.view(var) {
            View::Var { name } => self.body.terms().str(name).to_owned(),
            _ => String::new(),
        }
    }

    pub(super) fn describe(&self, var: Expr) -> String {
        match self.name_of(var) {
            name if name.is_empty() => format!("a binding without a name (node {})", var.0),
            name => format!("binding `{name}`"),
        }
    }
}
