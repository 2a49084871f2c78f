//! Environments: what is known while a function runs.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use tenon_ir::{Context, Cx, Dim, DimBindings, DimView, Expr, Type, TypeView, substitute};

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

/// The number of the first value that is not of its declared type. All of them are met before expressions of symbols
/// are compared, since a later value may say what a symbol stands for.
pub(super) fn mismatch(
    cx: &Cx,
    declared: &[(Type, &Value)],
    dims: &mut DimBindings,
) -> Option<usize> {
    let first = declared.iter().position(|&(ty, value)| !matches(cx, ty, value, dims));
    if first.is_some() || dims.is_empty() {
        return first;
    }
    declared.iter().position(|&(ty, value)| !matches(cx, ty, value, dims))
}

/// Whether `value` is one of the declared type. A symbol is bound to the extent that it meets: by itself, or as the
/// only one of a sum such as `2*n + 1` that is not known yet.
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
        match terms.dim_value(dim) {
            Some(value) => value == extent,
            None => solve(cx, dim, extent, dims),
        }
    })
}

/// Binds the symbol of `factor*symbol + rest` so that it is `extent`; false when no extent does that. What is of
/// another form is not looked at.
fn solve(cx: &Cx, dim: Dim, extent: i64, dims: &mut DimBindings) -> bool {
    let terms = cx.terms();
    let (mut factor, mut rest, mut symbol) = (0i64, 0i64, None);
    let parts = match terms.dim(dim) {
        DimView::Add(parts) => parts,
        _ => &[dim],
    };
    for &part in parts {
        let (scale, one) = match terms.dim(part) {
            DimView::Const(value) => {
                rest = rest.wrapping_add(value);
                continue;
            }
            DimView::Symbol(name) => (1, name),
            DimView::Mul(&[a, b]) => match (terms.dim(a), terms.dim(b)) {
                (DimView::Const(scale), DimView::Symbol(name))
                | (DimView::Symbol(name), DimView::Const(scale)) => (scale, name),
                _ => return true,
            },
            _ => return true,
        };
        if symbol.is_some_and(|symbol| symbol != one) {
            return true;
        }
        (symbol, factor) = (Some(one), factor.wrapping_add(scale));
    }
    let Some(symbol) = symbol.filter(|_| factor != 0) else { return true };
    let value =
        extent.checked_sub(rest).filter(|left| left % factor == 0).map(|left| left / factor);
    match value {
        Some(value @ 0..) => {
            dims.insert(symbol, cx.dim(value));
            true
        }
        _ => false,
    }
}
