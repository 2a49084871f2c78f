//! Widening: statements that do for several values of a variable at once what they did for one.
//!
//! The variable becomes the vector `first, first + 1, …`. What depends on it becomes a vector, and what
//! meets a vector is broadcast; all else stays as it is, once for all lanes. Sums of vectors that count
//! stay vectors that count, so that an access to neighbours is seen as one. Names of vectors are vectors,
//! and a buffer that is made inside has room for all lanes, those of one element side by side.
//!
//! A condition that differs from lane to lane becomes one of several lanes, which leaves out those for which it is false; what runs
//! in these is guarded by its opposite.
//!
//! Four things have no vector code: a number of steps that differs from lane to lane; a store to one and the same place from all
//! lanes; a call with an effect; a division of integers under a condition of several lanes, since a lane that is left out may
//! divide by zero.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

use crate::loops::bound_variable;

/// Why there is no vector code.
pub(crate) type Refusal = &'static str;

/// A copy of `body` that does at once what it does for `first, …, first + lanes - 1` in the place of
/// `var`, or the reason why there is none.
pub(crate) fn widen(
    rw: &mut Rewriter,
    body: &Template,
    var: Expr,
    first: Expr,
    lanes: u16,
) -> Result<Expr, Refusal> {
    let one = rw.index(1);
    let counter = rw.ramp(first, one, lanes);
    let copies = HashMap::from([(var, counter)]);
    let mut widening =
        Widening { rw, lanes, copies, wide: HashSet::new(), divides: HashSet::new() };
    widening.bind(body)?;
    for &expr in body.nodes() {
        if !widening.copies.contains_key(&expr) {
            let copy = widening.copy(expr)?;
            widening.copies.insert(expr, copy);
            widening.note_division(expr, copy);
        }
    }
    Ok(widening.get(*body.nodes().last().expect("a part holds its root")))
}

struct Widening<'a> {
    rw: &'a mut Rewriter,
    lanes: u16,
    copies: HashMap<Expr, Expr>,
    /// Buffers, as they were, that have room for all lanes.
    wide: HashSet<Expr>,
    /// What holds a division of vectors of integers, by what may be zero.
    divides: HashSet<Expr>,
}

type Result<T, E> = std::result::Result<T, E>;

impl Widening<'_> {
    /// Fresh variables and buffers for those that the body binds.
    fn bind(&mut self, body: &Template) -> Result<(), Refusal> {
        for &expr in body.nodes() {
            match self.rw.view(expr) {
                View::For { .. } | View::LetStmt { .. } => {
                    let var = bound_variable(self.rw.body(), expr);
                    let fresh = self.rw.rebuild(var, &[]);
                    self.copies.insert(var, fresh);
                }
                View::Alloc { .. } => {
                    let buffer = bound_variable(self.rw.body(), expr);
                    let shape = self.rw.body().ty(buffer);
                    let shape = shape.and_then(|ty| self.rw.terms().static_tensor(ty));
                    let Some((dtype, shape)) = shape.filter(|(_, shape)| shape.len() == 1) else {
                        return Err("it makes a buffer that is not flat and of constant size");
                    };
                    let count = shape[0].checked_mul(self.lanes as i64);
                    let count = count.ok_or("it makes a buffer that is too large")?;
                    let fresh = self.rw.rebuild(buffer, &[]);
                    let ty = self.rw.cx().static_tensor_type(dtype, &[count]);
                    self.rw.set_type(fresh, Some(ty));
                    self.copies.insert(buffer, fresh);
                    self.wide.insert(buffer);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn get(&self, expr: Expr) -> Expr {
        self.copies.get(&expr).copied().unwrap_or(expr)
    }

    fn is_vector(&self, expr: Expr) -> bool {
        self.rw.body().scalar_ty(expr).is_some_and(|(_, lanes)| lanes > 1)
    }

    /// The value in every lane.
    fn spread(&mut self, expr: Expr) -> Expr {
        if self.is_vector(expr) { expr } else { self.rw.broadcast(expr, self.lanes) }
    }

    /// The copy of a node whose operands are copied.
    fn copy(&mut self, expr: Expr) -> Result<Expr, Refusal> {
        let body = self.rw.body();
        let old: Vec<Expr> = body.operands_keeping_binders(expr).collect();
        let new: Vec<Expr> = old.iter().map(|&operand| self.get(operand)).collect();
        let has_vector = new.iter().any(|&operand| self.is_vector(operand));
        match body.view(expr) {
            View::Load { buffer, .. } if has_vector || self.wide.contains(&buffer) => {
                let indices = self.indices(buffer, &new[1..])?;
                Ok(self.rw.load(new[0], &indices))
            }
            View::Store { buffer, .. } => {
                let indices = self.indices(buffer, &new[2..])?;
                if !indices.iter().any(|&index| self.is_vector(index)) {
                    return Err("all steps store to one place");
                }
                let value = self.spread(new[1]);
                Ok(self.rw.store(new[0], value, &indices))
            }
            View::LetStmt { .. } if has_vector => {
                let ty = self.rw.body().ty(new[1]);
                self.rw.set_type(new[0], ty);
                Ok(self.rw.let_stmt(new[0], new[1]))
            }
            View::For { kind: LoopKind::Parallel | LoopKind::ThreadBound, .. } => {
                Err("there is a parallel loop in it")
            }
            View::For { .. } if has_vector => {
                Err("the steps have inner loops of different lengths")
            }
            View::IfStmt { .. } if has_vector => {
                if old[1..].iter().any(|branch| self.divides.contains(branch)) {
                    return Err("an integer is divided under a condition that differs");
                }
                Ok(self.choice(new[0], new[1], new.get(2).copied()))
            }
            View::Evaluate { .. } => Err("there is a call with an effect in it"),
            View::Ramp { .. } | View::Broadcast { .. } => Err("there is vector code in it"),
            View::Block(_) | View::Region { .. } => Err("there are blocks in it"),
            View::Unknown { .. } => Err("there is something unknown in it"),
            View::Binary { op, .. } if has_vector => Ok(self.binary(op, new[0], new[1])),
            View::Select { .. } if has_vector => {
                let new: Vec<Expr> = new.into_iter().map(|operand| self.spread(operand)).collect();
                Ok(self.rw.select(new[0], new[1], new[2]))
            }
            View::Cast { .. } | View::Intrinsic { .. } if has_vector => {
                let new: Vec<Expr> = new.into_iter().map(|operand| self.spread(operand)).collect();
                Ok(self.rebuild_vector(expr, &new))
            }
            _ if old == new => Ok(expr),
            View::Binary { op, .. } => Ok(self.rw.binary(op, new[0], new[1])),
            _ => Ok(self.rw.rebuild(expr, &new)),
        }
    }

    /// One statement where a condition of several lanes is true, and another where it is false.
    fn choice(&mut self, cond: Expr, then: Expr, otherwise: Option<Expr>) -> Expr {
        let Some(otherwise) = otherwise else { return self.rw.if_stmt(cond, then, None) };
        // What the first writes may be what the condition reads.
        let mask = self.rw.scalar_var("mask", DType::BOOL);
        let ty = self.rw.body().ty(cond);
        self.rw.set_type(mask, ty);
        let named = self.rw.let_stmt(mask, cond);
        let [no, yes] = [0, 1].map(|truth| {
            let truth = self.rw.int_of(DType::BOOL, truth);
            self.spread(truth)
        });
        let is_false = self.rw.select(mask, no, yes);
        let then = self.rw.if_stmt(mask, then, None);
        let otherwise = self.rw.if_stmt(is_false, otherwise, None);
        self.rw.seq(&[named, then, otherwise])
    }

    /// Notes whether a node divides vectors of integers by what may be zero, or holds one that does.
    fn note_division(&mut self, expr: Expr, copy: Expr) {
        let body = self.rw.body();
        let divides = match body.view(expr) {
            View::Binary { op: BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod, a, b } => {
                let is_float = body.scalar_ty(a).is_some_and(|(dtype, _)| dtype.is_float());
                let is_safe = matches!(body.view(b), View::Int(value) if value != 0);
                !is_float && !is_safe && self.is_vector(copy)
            }
            _ => false,
        };
        if divides || body.operands(expr).iter().any(|operand| self.divides.contains(&operand)) {
            self.divides.insert(expr);
        }
    }

    /// A copy of a scalar node as a vector.
    fn rebuild_vector(&mut self, expr: Expr, operands: &[Expr]) -> Expr {
        let dtype = self.rw.body().scalar_ty(expr).map_or(DType::F32, |(dtype, _)| dtype);
        let ty = Some(self.rw.cx().vector_type(dtype, self.lanes));
        let spec = NodeSpec { ty, ..self.rw.body().spec(expr) };
        self.rw.push(spec, operands)
    }

    /// Where the elements stand that lie at `indices`: in a buffer with room for all lanes, each lane has
    /// its own.
    fn indices(&mut self, buffer: Expr, indices: &[Expr]) -> Result<Vec<Expr>, Refusal> {
        let Some((&last, others)) = indices.split_last() else { return Ok(Vec::new()) };
        if others.iter().any(|&index| self.is_vector(index)) {
            return Err("an access moves along an axis that is not the last");
        }
        if !self.wide.contains(&buffer) {
            return Ok(indices.to_vec());
        }
        let lanes = self.rw.index(self.lanes as i64);
        let (zero, one) = (self.rw.index(0), self.rw.index(1));
        let lane = self.rw.ramp(zero, one, self.lanes);
        let element = self.binary(BinaryOp::Mul, last, lanes);
        Ok(vec![self.binary(BinaryOp::Add, element, lane)])
    }

    /// `a op b` on vectors; sums and multiples of vectors that count still count.
    fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let (left, right) = (self.counting(a), self.counting(b));
        if !self.is_vector(a) && !self.is_vector(b) {
            return self.rw.binary(op, a, b);
        }
        match (op, left, right) {
            (BinaryOp::Add | BinaryOp::Sub, Some((base, stride)), Some((other, by))) => {
                let base = self.rw.binary(op, base, other);
                let stride = self.rw.binary(op, stride, by);
                self.rw.ramp(base, stride, self.lanes)
            }
            (BinaryOp::Mul, Some((base, stride)), Some(_)) if !self.is_vector(b) => {
                let base = self.rw.mul(base, b);
                let stride = self.rw.mul(stride, b);
                self.rw.ramp(base, stride, self.lanes)
            }
            (BinaryOp::Mul, Some(_), Some(_)) if !self.is_vector(a) => {
                self.binary(BinaryOp::Mul, b, a)
            }
            _ => {
                let (a, b) = (self.spread(a), self.spread(b));
                self.rw.binary(op, a, b)
            }
        }
    }

    /// Base and stride of an index that counts; a scalar counts in steps of zero.
    fn counting(&mut self, expr: Expr) -> Option<(Expr, Expr)> {
        if let View::Ramp { base, stride } = self.rw.view(expr) {
            return Some((base, stride));
        }
        let is_index = self.rw.body().scalar_ty(expr) == Some((DType::I64, 1));
        is_index.then(|| (expr, self.rw.index(0)))
    }
}
