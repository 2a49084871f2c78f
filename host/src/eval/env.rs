//! Environments: what is known while a function runs.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::ir::{Context, Cx, Dim, DimBindings, DimView, Expr, Type, TypeView, substitute};

use super::Value;

/// The values of the nodes of one function while it runs.
#[derive(Debug, Default)]
pub(super) struct Env {
    pub(super) values: HashMap<Expr, Value, FxBuildHasher>,
    /// What symbolic dimensions stand for.
    pub(super) dims: DimBindings,
    /// The environment of the function around, for a closure.
    pub(super) parent: Option<usize>,
    /// Whether a closure refers to it, so that it must outlive its function.
    pub(super) is_captured: bool,
}

/// Environments by number. A number is used again when its environment is gone.
#[derive(Debug, Default)]
pub(super) struct Envs {
    all: Vec<Env>,
    free: Vec<usize>,
}

impl Envs {
    pub(super) fn add(&mut self, env: Env) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.all[number] = env;
                number
            }
            None => {
                self.all.push(env);
                self.all.len() - 1
            }
        }
    }

    /// Ends the life of an environment, unless a closure refers to it.
    pub(super) fn end(&mut self, number: usize) {
        if !self.all[number].is_captured {
            self.all[number] = Env::default();
            self.free.push(number);
        }
    }

    pub(super) fn get(&self, number: usize) -> &Env {
        &self.all[number]
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Env {
        &mut self.all[number]
    }

    /// The value of a variable, which may belong to a function around.
    pub(super) fn variable(&mut self, number: usize, var: Expr) -> Option<Value> {
        let mut at = Some(number);
        while let Some(env) = at {
            if let Some(value) = self.all[env].values.get(&var) {
                let value = value.clone();
                if env != number {
                    self.all[number].values.insert(var, value.clone());
                }
                return Some(value);
            }
            at = self.all[env].parent;
        }
        None
    }
}

/// Whether `value` is one of the declared type; symbols by themselves are bound to the extents they meet.
pub(super) fn matches(cx: &Cx, declared: Type, value: &Value, dims: &mut DimBindings) -> bool {
    let terms = cx.terms();
    let mut pending = vec![(declared, value)];
    // Extents of expressions are compared when all symbols are bound.
    let mut later: Vec<(Dim, i64)> = Vec::new();
    let mut meet = |expected: &[Dim], found: &mut dyn ExactSizeIterator<Item = i64>| {
        if expected.len() != found.len() {
            return false;
        }
        expected.iter().zip(found).for_each(|(&dim, extent)| {
            if let DimView::Symbol(name) = terms.dim(dim) {
                dims.entry(name).or_insert(cx.dim(extent));
            }
            later.push((dim, extent));
        });
        true
    };
    while let Some((declared, value)) = pending.pop() {
        let is_right = match (terms.ty(declared), value) {
            (TypeView::Tensor { dtype, dims }, Value::Tensor(tensor)) => {
                let mut shape = tensor.shape().iter().map(|&extent| extent as i64);
                dtype == tensor.dtype() && dims.is_none_or(|dims| meet(dims, &mut shape))
            }
            (TypeView::Tensor { dtype, dims }, Value::Place(place)) => {
                let mut shape = place.shape.iter().map(|&extent| extent as i64);
                dtype == place.dtype && dims.is_none_or(|dims| meet(dims, &mut shape))
            }
            (TypeView::Shape(dims), Value::Shape(shape)) => {
                dims.is_none_or(|dims| meet(dims, &mut shape.iter().copied()))
            }
            (TypeView::Tuple(fields), Value::Tuple(tuple)) => {
                pending.extend(fields.iter().copied().zip(tuple.fields()));
                fields.len() == tuple.fields().len()
            }
            (TypeView::Scalar { dtype, lanes }, Value::Scalar(_)) => dtype.is_int() && lanes == 1,
            (TypeView::Func { .. }, Value::Function(_)) => true,
            (TypeView::Object(_), Value::Storage(_)) => true,
            _ => false,
        };
        if !is_right {
            return false;
        }
    }
    later.iter().all(|&(dim, extent)| {
        let dim = Dim(substitute(cx, dim.into(), dims).0);
        terms.dim_value(dim).is_none_or(|value| value == extent)
    })
}
