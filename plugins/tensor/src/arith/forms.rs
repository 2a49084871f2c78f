//! The linear form and the bounds of every index of a program.

use tenon_plugin_api::prelude::*;

use super::{Interval, Linear};

/// For every i64 scalar its linear form and its bounds; for every other node its bounds alone.
///
/// The variable of a loop is bounded by the loop's range; it is its only value in a loop of one step. A
/// variable that is named by a `let` has the form of its value when that is made of variables alone, so
/// that nothing is read later than the program says.
pub(crate) struct Forms {
    /// By node, where what is known of it stands; `NONE` of most, which are no integers.
    places: Vec<u32>,
    known: Vec<(Option<Linear>, Interval)>,
}

const NONE: u32 = u32::MAX;

impl Forms {
    /// Of all nodes.
    pub(crate) fn of(body: BodyView<'_>) -> Self {
        let mut forms = Self::of_variables(body);
        // What a node is made of comes before it, and variables are settled.
        let mut index_type = None;
        for expr in body.post_order() {
            // All of them are of one type, and most nodes of another.
            let ty = body.ty(expr);
            let may_be = ty.is_some() && index_type.is_none_or(|index| ty == Some(index));
            if may_be && forms.known(expr).is_none() && is_index(body, expr) {
                index_type = ty;
                forms.set_expr(body, expr);
            }
        }
        forms
    }

    /// Of the variables, and of what their ranges and values are made of.
    pub(crate) fn of_variables(body: BodyView<'_>) -> Self {
        let mut forms = Self { places: vec![NONE; body.len()], known: Vec::new() };
        for step in body.walk(body.root()) {
            let Walk::Enter(stmt) = step else { continue };
            match body.view(stmt) {
                View::For { var, min, extent, .. } => {
                    forms.compute(body, min);
                    forms.compute(body, extent);
                    forms.set_loop_variable(var, min, extent);
                }
                View::LetStmt { var, value } => {
                    forms.compute(body, value);
                    forms.set_named(body, var, value);
                }
                _ => {}
            }
        }
        forms
    }

    /// The form of an i64 scalar; one that is not known is an atom.
    pub(crate) fn form(&self, expr: Expr) -> Linear {
        self.known(expr).cloned().unwrap_or_else(|| Linear::atom(expr))
    }

    /// The form of a node that has one.
    pub(crate) fn known(&self, expr: Expr) -> Option<&Linear> {
        self.entry(expr)?.0.as_ref()
    }

    fn entry(&self, expr: Expr) -> Option<&(Option<Linear>, Interval)> {
        self.known.get(*self.places.get(expr.index())? as usize)
    }

    /// The bounds of a scalar.
    pub(crate) fn interval(&self, expr: Expr) -> Interval {
        self.entry(expr).map_or(Interval::ALL, |&(_, interval)| interval)
    }

    /// The bounds of a sum.
    pub(crate) fn bounds(&self, form: &Linear) -> Interval {
        form.interval(|atom| self.interval(atom))
    }

    /// Settles what is known of a node.
    pub(crate) fn set(&mut self, expr: Expr, form: Option<Linear>, interval: Interval) {
        if self.places.len() <= expr.index() {
            self.places.resize(expr.index() + 1, NONE);
        }
        let place = &mut self.places[expr.index()];
        match self.known.get_mut(*place as usize) {
            Some(known) => *known = (form, interval),
            None => {
                *place = self.known.len() as u32;
                self.known.push((form, interval));
            }
        }
    }

    /// Settles the form of an i64 scalar; its bounds follow.
    pub(crate) fn set_form(&mut self, expr: Expr, form: Linear) {
        let interval = match form.as_atom() == Some(expr) {
            true => self.interval(expr),
            false => self.bounds(&form),
        };
        self.set(expr, Some(form), interval);
    }

    /// Whether `a op b` holds; `None` when the bounds do not tell.
    pub(crate) fn decide(&self, op: BinaryOp, a: &Linear, b: &Linear) -> Option<bool> {
        let gap = self.bounds(&a.plus(b, -1)?);
        let (below, above) = (gap.max < 0, gap.min > 0);
        let (at_most, at_least) = (gap.max <= 0, gap.min >= 0);
        match op {
            BinaryOp::Lt if below || at_least => Some(below),
            BinaryOp::Le if at_most || above => Some(at_most),
            BinaryOp::Gt if above || at_most => Some(above),
            BinaryOp::Ge if at_least || below => Some(at_least),
            BinaryOp::Eq if below || above || gap.single() == Some(0) => Some(!(below || above)),
            BinaryOp::Ne if below || above || gap.single() == Some(0) => Some(below || above),
            _ => None,
        }
    }

    /// The form of `a op b` where it needs no node that is not there yet.
    pub(crate) fn combine(&self, op: BinaryOp, a: &Linear, b: &Linear) -> Option<Linear> {
        let divisor = || b.value().filter(|&divisor| divisor > 0);
        match op {
            BinaryOp::Add => a.plus(b, 1),
            BinaryOp::Sub => a.plus(b, -1),
            BinaryOp::Mul => match (a.value(), b.value()) {
                (Some(factor), _) => b.times(factor),
                (_, Some(factor)) => a.times(factor),
                (None, None) => None,
            },
            // Truncation rounds down what is not negative.
            BinaryOp::Div if self.bounds(a).min < 0 => match (a.value(), b.value()) {
                (Some(a), Some(b)) => a.checked_div(b).map(Linear::of),
                _ => None,
            },
            BinaryOp::Div | BinaryOp::FloorDiv => {
                let division = a.divide(divisor()?, |atom| self.interval(atom));
                division.rest.is_none().then_some(division.quotient)
            }
            BinaryOp::FloorMod => {
                let division = a.divide(divisor()?, |atom| self.interval(atom));
                division.rest.is_none().then_some(division.remainder)
            }
            BinaryOp::Min => self.decide(BinaryOp::Le, a, b).map(|is_a| pick(is_a, a, b)),
            BinaryOp::Max => self.decide(BinaryOp::Ge, a, b).map(|is_a| pick(is_a, a, b)),
            _ => None,
        }
    }

    /// The bounds of `a op b` from those of both.
    pub(crate) fn bounds_of(&self, op: BinaryOp, a: Interval, b: Interval) -> Interval {
        match (op, b.single()) {
            (BinaryOp::Add, _) => a.add(b),
            (BinaryOp::Sub, _) => a.add(b.scale(-1)),
            (BinaryOp::Mul, _) => a.mul(b),
            (BinaryOp::FloorDiv, Some(divisor)) if divisor > 0 => a.floor_div(divisor),
            (BinaryOp::Div, Some(divisor)) if divisor > 0 && a.min >= 0 => a.floor_div(divisor),
            (BinaryOp::FloorMod, Some(divisor)) if divisor > 0 => Interval {
                min: 0,
                max: if a.min >= 0 { a.max.min(divisor - 1) } else { divisor - 1 },
            },
            (BinaryOp::Min, _) => a.lesser(b),
            (BinaryOp::Max, _) => a.greater(b),
            (BinaryOp::And | BinaryOp::Or, _) => Interval::BIT,
            _ if op.is_comparison() => Interval::BIT,
            _ => Interval::ALL,
        }
    }

    /// Settles a node and all that it is made of, unless that is done.
    fn compute(&mut self, body: BodyView<'_>, root: Expr) {
        if self.known(root).is_some() {
            return;
        }
        let mut stack = vec![(root, false)];
        while let Some((expr, is_ready)) = stack.pop() {
            let is_index = is_index(body, expr);
            if self.known(expr).is_some() || body.kind(expr).is_stmt() {
                continue;
            }
            if !is_ready && is_index {
                stack.push((expr, true));
                stack.extend(body.operands(expr).iter().map(|operand| (operand, false)));
                continue;
            }
            if is_index {
                self.set_expr(body, expr);
            }
        }
    }

    /// Settles an i64 scalar whose operands are settled.
    pub(crate) fn set_expr(&mut self, body: BodyView<'_>, expr: Expr) {
        let (form, interval) = match body.view(expr) {
            View::Int(value) => (Linear::of(value), Interval::of(value)),
            View::Prim { dim } => match body.terms().dim_value(dim) {
                Some(value) => (Linear::of(value), Interval::of(value)),
                None => (Linear::atom(expr), Interval::NATURAL),
            },
            View::Binary { op, a, b } => match self.combine(op, &self.form(a), &self.form(b)) {
                Some(form) => {
                    let interval = self.bounds(&form);
                    (form, interval)
                }
                None => {
                    let interval = self.bounds_of(op, self.interval(a), self.interval(b));
                    (Linear::atom(expr), interval)
                }
            },
            View::Select { then, otherwise, .. } => {
                (Linear::atom(expr), self.interval(then).union(self.interval(otherwise)))
            }
            View::Cast { value } => (Linear::atom(expr), cast_bounds(body, value)),
            _ => (Linear::atom(expr), Interval::ALL),
        };
        self.set(expr, Some(form), interval);
    }

    fn set_loop_variable(&mut self, var: Expr, min: Expr, extent: Expr) {
        let (min, extent) = (self.form(min), self.bounds(&self.form(extent)));
        if extent == Interval::of(1) {
            return self.set_form(var, min);
        }
        // The body of a loop without steps does not run, so any range will do for its variable.
        let last = self.bounds(&min).add(Interval::of(extent.max)).add(Interval::of(-1));
        let range = Interval { min: self.bounds(&min).min, max: last.max };
        let range = if range.min <= range.max { range } else { Interval::of(range.min) };
        self.set(var, Some(Linear::atom(var)), range);
    }

    fn set_named(&mut self, body: BodyView<'_>, var: Expr, value: Expr) {
        if !is_index(body, var) {
            return;
        }
        let form = self.form(value);
        let is_plain = form.terms.iter().all(|&(atom, _)| body.kind(atom) == Kind::VAR);
        match is_plain {
            true => self.set_form(var, form),
            false => self.set(var, Some(Linear::atom(var)), self.bounds(&form)),
        }
    }
}

/// Whether a node is an i64 scalar.
pub(crate) fn is_index(body: BodyView<'_>, expr: Expr) -> bool {
    body.scalar_ty(expr) == Some((DType::I64, 1))
}

fn pick(is_first: bool, a: &Linear, b: &Linear) -> Linear {
    if is_first { a.clone() } else { b.clone() }
}

/// The bounds that the type of a value sets to its conversion to i64.
fn cast_bounds(body: BodyView<'_>, value: Expr) -> Interval {
    match body.scalar_ty(value) {
        Some((DType::BOOL, _)) => Interval::BIT,
        Some((dtype, _)) if dtype.is_int() && dtype.bits() < 64 => match dtype.is_signed() {
            true => {
                let limit = 1i64 << (dtype.bits() - 1);
                Interval { min: -limit, max: limit - 1 }
            }
            false => Interval { min: 0, max: (1i64 << dtype.bits()) - 1 },
        },
        _ => Interval::ALL,
    }
}
