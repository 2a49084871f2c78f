//! Bodies within the function: branches of choices, and what loops repeat.

use std::collections::{HashMap, HashSet};

use crate::ir::op_names::{EXPECT, LOOP};
use crate::ir::{Attrs, Build, Context, Dim, Expr, Symbol, Term, Terms, Type, TypeView};

use super::{Builder, Form, Problem, Value};

/// A body under construction.
#[derive(Debug, Default)]
pub(super) struct OpenBody {
    /// Bindings in blocks; a block of the first kind has no control flow.
    pub(super) blocks: Vec<(bool, Vec<(Expr, Expr)>)>,
    /// How many values there were when it began.
    pub(super) first: usize,
    /// Values of those that were known as dimensions and are computed in it.
    pub(super) materialized: Vec<Value>,
    /// The symbols of sizes that are found in it.
    pub(super) found: Vec<Dim>,
    /// Those that stand for dimensions that would be too long.
    names: HashMap<Dim, Dim>,
}

/// How many trips a loop makes at most.
#[derive(Clone, Copy)]
pub(in crate::onnx::import) enum Limit {
    Dim(Dim),
    Value(Value),
}

/// A body with its results.
pub(in crate::onnx::import) struct Body {
    expr: Expr,
    pub(in crate::onnx::import) types: Vec<Type>,
    /// The symbols of sizes that are found in it, which nobody knows outside.
    found: Vec<Dim>,
}

impl Body {
    /// Whether a type names a size that is found in it.
    pub(in crate::onnx::import) fn finds_of(&self, terms: Terms<'_>, ty: Type) -> bool {
        are_in(&self.found, terms, ty.into())
    }
}

/// Whether one of these symbols stands in a type or a dimension.
fn are_in(found: &[Dim], terms: Terms<'_>, term: Term) -> bool {
    let (mut waiting, mut seen) = (vec![term], HashSet::new());
    while let Some(term) = waiting.pop() {
        if found.is_empty() || !seen.insert(term) {
            continue;
        }
        if found.iter().any(|&dim| Term::from(dim) == term) {
            return true;
        }
        waiting.extend(terms.children(term));
    }
    false
}

impl Builder {
    /// Begins a body within the one in work: what is bound from here on is bound there.
    pub(in crate::onnx::import) fn open_body(&mut self) {
        let first = self.values.len();
        let body = OpenBody { first, ..OpenBody::default() };
        self.around.push(std::mem::replace(&mut self.body, body));
    }

    /// Whether a dimension is found in it, and not known around it.
    pub(in crate::onnx::import) fn is_found_here(&self, dim: Dim) -> bool {
        are_in(&self.body.found, self.terms(), dim.into())
    }

    /// Ends it, with its results: a tuple of them, or the only one.
    pub(in crate::onnx::import) fn close_body(
        &mut self,
        results: &[Value],
        is_tuple: bool,
    ) -> Result<Body, Problem> {
        let types = results.iter().map(|&result| self.ty(result)).collect();
        let result = match results {
            [result] if !is_tuple => self.operand(*result),
            results => self.tuple(results).and_then(|tuple| self.operand(tuple)),
        };
        let body = std::mem::replace(&mut self.body, self.around.pop().unwrap_or_default());
        // What was computed in there of a value from around it is not seen outside.
        for value in body.materialized {
            self.values[value.0 as usize].form = Form::Known;
        }
        let result = result?;
        let expr = match body.blocks.is_empty() {
            true => result,
            false => self.tx.let_blocks(&body.blocks, result),
        };
        Ok(Body { expr, types, found: body.found })
    }

    /// The type of a tensor of which nothing but the elements' type is said.
    pub(in crate::onnx::import) fn unsized_type(&self, ty: Type) -> Type {
        match self.cx.terms().ty(ty) {
            TypeView::Tensor { dtype, .. } => self.cx.unranked_tensor_type(dtype),
            _ => ty,
        }
    }

    /// The result of a choice whose branches give other types: of unknown rank where these are tensors of different shapes.
    fn joined_types(&self, a: &[Type], b: &[Type]) -> Vec<Type> {
        let joined = |(&a, &b): (&Type, &Type)| if a == b { a } else { self.unsized_type(a) };
        a.iter().zip(b).map(joined).collect()
    }

    /// A parameter of a body that becomes a function.
    pub(in crate::onnx::import) fn body_param(&mut self, name: &str, ty: Type) -> Value {
        let name = self.names.fresh(name);
        let var = self.tx.var(&name, Some(ty));
        self.add(ty, Form::Ready(var), None)
    }

    /// What a loop over a body of these parameters gives: what it carries, then the rows of all trips, as `out` says.
    pub(in crate::onnx::import) fn repeat(
        &mut self,
        params: &[Value],
        body: &Body,
        (limit, go): (Limit, Value),
        carried: &[Value],
        out: &[Type],
    ) -> Result<Vec<Value>, Problem> {
        let of_params: Vec<Type> = params.iter().map(|&param| self.ty(param)).collect();
        let params =
            params.iter().map(|&param| self.operand(param)).collect::<Result<Vec<_>, _>>()?;
        let result = self.cx.tuple_type(&body.types);
        let function = self.tx.function(&params, body.expr, Some(result), Attrs::NONE);
        let ty = self.cx.func_type(&of_params, result);
        self.tx.set_type(function, Some(ty));
        let name = format!("{}_body", self.node_name);
        let function = self.add(ty, Form::Unbound(function, Symbol(0)), None);
        self.define(function, &name);
        let function = self.operand(function)?;
        let limit = match limit {
            Limit::Dim(dim) => self.tx.prim(dim),
            Limit::Value(value) => self.operand(value)?,
        };
        let go = self.operand(go)?;
        let carried = self.tuple(carried)?;
        let carried = self.operand(carried)?;
        let out = self.cx.tuple_type(out);
        let attrs = self.cx.attrs(&[("out", out.into())]);
        let op = self.tx.op(LOOP);
        let call = self.tx.call(op, &[function, limit, go, carried], attrs, Some(out));
        let hint = self.cx.symbol("loop");
        let tuple = self.add(out, Form::Unbound(call, hint), None);
        self.items(tuple)
    }

    /// The values of the one of two bodies that is chosen by a boolean; both give as many, of the same types but for shapes.
    pub(in crate::onnx::import) fn choice(
        &mut self,
        cond: Value,
        then: &Body,
        otherwise: &Body,
    ) -> Result<Vec<Value>, Problem> {
        let cond = self.operand(cond)?;
        let expr = self.tx.if_else(cond, then.expr, otherwise.expr);
        let hint = self.cx.symbol("choice");
        let types = self.joined_types(&then.types, &otherwise.types);
        match types[..] {
            [ty] => {
                self.tx.set_type(expr, Some(ty));
                Ok(vec![self.add(ty, Form::Unbound(expr, hint), None)])
            }
            ref types => {
                let ty = self.cx.tuple_type(types);
                self.tx.set_type(expr, Some(ty));
                let tuple = self.add(ty, Form::Unbound(expr, hint), None);
                self.items(tuple)
            }
        }
    }

    /// Ends a call here where a boolean is false.
    pub(in crate::onnx::import) fn expect(&mut self, truth: Value) -> Result<(), Problem> {
        let truth = self.operand(truth)?;
        let (op, ty) = (self.tx.op(EXPECT), self.cx.tuple_type(&[]));
        let call = self.tx.call(op, &[truth], Attrs::NONE, Some(ty));
        let name = self.names.fresh("expected");
        let var = self.tx.var(&name, Some(ty));
        self.body.blocks.push((false, vec![(var, call)]));
        Ok(())
    }

    /// The symbol that stands for a dimension, in this body or around it.
    pub(in crate::onnx::import) fn name_of(&self, dim: Dim) -> Option<Dim> {
        let mut bodies = self.around.iter().chain([&self.body]);
        bodies.find_map(|body| body.names.get(&dim).copied())
    }

    /// Takes note of it.
    pub(in crate::onnx::import) fn set_name(&mut self, dim: Dim, name: Dim) {
        self.body.names.insert(dim, name);
    }
}
