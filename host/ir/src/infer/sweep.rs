//! The sweep over the nodes.

use std::sync::Arc;

use tenon_plugin_api::ir::SymbolMap;
use tenon_plugin_api::op::OpError;

use crate::op_names::EXTERN_CLASS;
use crate::{
    Args, BodyView, Context, Cx, DType, Expr, Function, Kind, Symbol, Type, TypeView, View,
};

use super::calls::KnownCalls;
use super::join::{fits, join, refines};
use super::{InferError, InferProblem, instantiate};

/// Types that functions of the module have, by name.
pub type Signatures<'a> = &'a dyn Fn(Symbol) -> Option<Type>;

/// The function with a type at every node; the function itself when all of them were right.
pub fn infer(
    func: &Arc<Function>,
    signatures: Signatures<'_>,
) -> Result<Arc<Function>, Vec<InferError>> {
    if func.is_prim() {
        return Ok(func.clone());
    }
    let body = func.view();
    let mut calls = KnownCalls::default();
    let types = vec![UNTYPED; body.len()];
    let mut sweep = Sweep::new(func.cx(), body, signatures, types, &mut calls);
    let mut errors = Vec::new();
    let bindings = Bindings::of(body);
    for expr in body.post_order() {
        match sweep.node_type(expr) {
            Ok(ty) => sweep.types[expr.index()] = ty,
            Err(problem) => {
                sweep.types[expr.index()] = POISON;
                errors.push(InferError::at(func.cx(), body, expr, problem));
            }
        }
        for (var, value) in bindings.complete_at(expr) {
            sweep.bind(var, value);
        }
    }
    match errors.is_empty() {
        // Poison comes with an error.
        true => Ok(func.with_types(&sweep.types)),
        false => Err(errors),
    }
}

/// The type of one node, of a published function or of a transaction, from the types of its operands;
/// `None` when one of them has none.
pub fn infer_expr(
    cx: &Cx,
    body: BodyView<'_>,
    expr: Expr,
    calls: &mut KnownCalls,
) -> Result<Option<Type>, InferProblem> {
    let mut sweep = Sweep::new(cx, body, &|_| None, Vec::new(), calls);
    sweep.node_type(expr).map(|ty| Some(ty).filter(|&ty| ty != POISON && ty != UNTYPED))
}

/// The type of one node, as whoever builds a function finds it: from the types of its operands; `None` when one of them has none.
pub fn infer_node(cx: &Cx, body: BodyView<'_>, expr: Expr) -> Result<Option<Type>, InferProblem> {
    infer_expr(cx, body, expr, &mut KnownCalls::default())
}

/// No type: operators, functions outside of the module, variables before they are bound.
const UNTYPED: Type = Type(0);
/// The type of what depends on something wrong; what is wrong has been reported.
const POISON: Type = Type(u32::MAX);

struct Sweep<'a> {
    cx: &'a Cx,
    body: BodyView<'a>,
    signatures: Signatures<'a>,
    /// The types of the functions that were named so far.
    known: SymbolMap<Option<Type>>,
    /// By node. Empty when the types of the body itself are to be read.
    types: Vec<Type>,
    calls: &'a mut KnownCalls,
    args: Vec<Type>,
}

impl<'a> Sweep<'a> {
    fn new(
        cx: &'a Cx,
        body: BodyView<'a>,
        signatures: Signatures<'a>,
        types: Vec<Type>,
        calls: &'a mut KnownCalls,
    ) -> Self {
        let known = SymbolMap::default();
        Self { cx, body, signatures, known, types, calls, args: Vec::new() }
    }

    fn ty(&self, expr: Expr) -> Type {
        match self.types.is_empty() {
            true => self.body.ty(expr).unwrap_or(UNTYPED),
            false => self.types[expr.index()],
        }
    }

    /// Gives a bound variable the type of its value.
    fn bind(&mut self, var: Expr, value: Expr) {
        let (declared, inferred) = (self.ty(var), self.ty(value));
        let is_known = inferred != UNTYPED && inferred != POISON;
        if !is_known && declared != UNTYPED {
            self.types[value.index()] = declared;
        } else if !(is_known && declared != UNTYPED && refines(self.cx, declared, inferred)) {
            self.types[var.index()] = inferred;
        }
    }

    fn node_type(&mut self, expr: Expr) -> Result<Type, InferProblem> {
        let given = self.body.ty(expr).unwrap_or(UNTYPED);
        match self.body.view(expr) {
            View::Constant(constant) => Ok(constant.ty),
            View::Var { .. } => Ok(given),
            View::Global { name } => {
                let known = *self.known.entry(name).or_insert_with(|| (self.signatures)(name));
                known.ok_or_else(|| {
                    InferProblem::UnknownGlobal(self.body.terms().str(name).to_owned())
                })
            }
            View::Op { .. } | View::Extern { .. } => Ok(UNTYPED),
            View::Tuple(fields) => match self.collect(fields)? {
                true => Ok(self.cx.tuple_type(&self.args)),
                false => Ok(POISON),
            },
            View::TupleGetItem { tuple, index } => self.field(tuple, index),
            View::Call { callee, args, .. } => self.call(expr, callee, args),
            View::If { cond, then, otherwise } => self.choice(cond, then, otherwise),
            View::Let(view) => self.value(view.result()),
            View::Function { params, body, result, .. } => self.function(params, body, result),
            View::Shape { ty } => Ok(ty),
            View::Prim { .. } => Ok(self.cx.scalar_type(DType::I64)),
            // Tensor programs are typed as they are built, and what is not known keeps its type.
            _ => Ok(given),
        }
    }

    /// The type of an operand that is a value.
    fn value(&self, expr: Expr) -> Result<Type, InferProblem> {
        match (self.ty(expr), self.body.view(expr)) {
            (UNTYPED, View::Var { name }) if !self.types.is_empty() => {
                Err(InferProblem::UntypedVar(self.body.terms().str(name).to_owned()))
            }
            (UNTYPED, View::Op { name } | View::Extern { name }) => {
                Err(InferProblem::NotAValue(self.body.terms().str(name).to_owned()))
            }
            (UNTYPED, _) if self.types.is_empty() => Ok(POISON),
            (UNTYPED, _) => Err(InferProblem::Untyped(self.body.kind(expr).name())),
            (ty, _) => Ok(ty),
        }
    }

    /// Puts the types of operands into `args`; false when one of them depends on something wrong.
    fn collect(&mut self, operands: Args<'_>) -> Result<bool, InferProblem> {
        self.args.clear();
        for operand in operands.iter() {
            let ty = self.value(operand)?;
            self.args.push(ty);
        }
        Ok(!self.args.contains(&POISON))
    }

    /// As `collect`, where a function outside of the module may be an argument: operators can call it.
    fn collect_with_externs(&mut self, operands: Args<'_>) -> Result<bool, InferProblem> {
        self.args.clear();
        for operand in operands.iter() {
            let ty = match self.body.view(operand) {
                View::Extern { .. } => self.cx.object_type(EXTERN_CLASS),
                _ => self.value(operand)?,
            };
            self.args.push(ty);
        }
        Ok(!self.args.contains(&POISON))
    }

    fn field(&self, tuple: Expr, index: usize) -> Result<Type, InferProblem> {
        let ty = self.value(tuple)?;
        if ty == POISON {
            return Ok(POISON);
        }
        let terms = self.cx.terms();
        match terms.ty(ty) {
            TypeView::Tuple(fields) if index < fields.len() => Ok(fields[index]),
            _ => Err(InferProblem::NoField { index, found: terms.type_text(ty) }),
        }
    }

    fn call(&mut self, expr: Expr, callee: Expr, args: Args<'_>) -> Result<Type, InferProblem> {
        match self.body.view(callee) {
            View::Op { name } => self.call_op(expr, name, args),
            View::Extern { name } => self
                .body
                .ty(expr)
                .ok_or_else(|| InferProblem::UntypedExtern(self.body.terms().str(name).to_owned())),
            _ => {
                let function = self.value(callee)?;
                match self.collect(args)? && function != POISON {
                    true => instantiate(self.cx, function, &self.args),
                    false => Ok(POISON),
                }
            }
        }
    }

    fn call_op(&mut self, expr: Expr, name: Symbol, args: Args<'_>) -> Result<Type, InferProblem> {
        let text = self.body.terms().str(name);
        let problem = |error: OpError| InferProblem::Op { op: text.to_owned(), error };
        let op = self.calls.op(self.cx, name).map_err(problem)?;
        match self.collect_with_externs(args)? {
            true => {
                let attrs = self.body.attrs(expr);
                self.calls.infer(self.cx, (name, &op), &self.args, attrs).map_err(problem)
            }
            false => Ok(POISON),
        }
    }

    fn choice(&self, cond: Expr, then: Expr, otherwise: Expr) -> Result<Type, InferProblem> {
        let terms = self.cx.terms();
        let cond = self.value(cond)?;
        let is_bool = match terms.ty(if cond == POISON { UNTYPED } else { cond }) {
            TypeView::Tensor { dtype, dims } => dtype.is_bool() && dims.is_none_or(<[_]>::is_empty),
            TypeView::Scalar { dtype, lanes } => dtype.is_bool() && lanes == 1,
            _ => cond == POISON,
        };
        if !is_bool {
            return Err(InferProblem::WrongCondition(terms.type_text(cond)));
        }
        let (then, otherwise) = (self.value(then)?, self.value(otherwise)?);
        if then == POISON || otherwise == POISON {
            return Ok(POISON);
        }
        join(self.cx, then, otherwise).ok_or_else(|| InferProblem::WrongBranches {
            then: terms.type_text(then),
            otherwise: terms.type_text(otherwise),
        })
    }

    fn function(
        &mut self,
        params: Args<'_>,
        value: Expr,
        declared: Option<Type>,
    ) -> Result<Type, InferProblem> {
        let terms = self.cx.terms();
        let untyped = params.iter().find(|&param| self.ty(param) == UNTYPED);
        if let Some(param) = untyped {
            let name = Symbol(self.body.raw_node(param).data);
            return Err(InferProblem::UntypedParam(terms.str(name).to_owned()));
        }
        let found = self.value(value)?;
        let is_known = self.collect(params)?;
        if let Some(declared) = declared
            && found != POISON
            && !fits(self.cx, declared, found, None)
        {
            return Err(InferProblem::WrongResult {
                declared: terms.type_text(declared),
                found: terms.type_text(found),
            });
        }
        match declared.unwrap_or(found) {
            result if is_known && result != POISON => Ok(self.cx.func_type(&self.args, result)),
            _ => Ok(POISON),
        }
    }
}

/// The bindings of a body, by the node at which both the variable and its value are known.
struct Bindings {
    /// The first binding at each node, or `NONE`.
    first: Vec<u32>,
    /// Variable, value, next binding at the same node.
    bindings: Vec<(Expr, Expr, u32)>,
}

const NONE: u32 = u32::MAX;

impl Bindings {
    fn of(body: BodyView<'_>) -> Self {
        let mut found = Self { first: vec![NONE; body.len()], bindings: Vec::new() };
        for expr in body.post_order().filter(|&expr| body.kind(expr) == Kind::LET) {
            let View::Let(view) = body.view(expr) else { continue };
            found.bindings.reserve(view.len());
            for (var, value) in view.bindings() {
                let place = var.max(value).index();
                let next = std::mem::replace(&mut found.first[place], found.bindings.len() as u32);
                found.bindings.push((var, value, next));
            }
        }
        found
    }

    fn complete_at(&self, expr: Expr) -> impl Iterator<Item = (Expr, Expr)> + use<'_> {
        let mut next = self.first[expr.index()];
        std::iter::from_fn(move || {
            let &(var, value, after) = self.bindings.get(next as usize)?;
            next = after;
            Some((var, value))
        })
    }
}
