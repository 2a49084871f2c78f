//! Bringing index arithmetic into normal form.

use rustc_hash::FxHashMap;
use tenon_plugin_api::prelude::*;

use super::forms::is_index;
use super::linear::Division;
use super::{Forms, Interval, Linear, radix};

/// Fractions of fractions are only followed so deep.
const MAX_NESTING: usize = 8;

/// Rewrites index arithmetic, operands first.
///
/// Sums are not built where they arise: a node gets a form, and only what is no sum itself — an access, a
/// loop, a condition — has the form built when it reads it. One form is built once.
pub(crate) struct Normalizer {
    forms: Forms,
    built: FxHashMap<Linear, Expr>,
    fractions: FxHashMap<Fraction, Expr>,
    /// Quotients and remainders by symbols, the first node of each.
    digits: FxHashMap<(BinaryOp, Linear, Dim), Expr>,
    /// The first node of each dimension that is not a number.
    dims: FxHashMap<Dim, Expr>,
    products: radix::Products,
    /// What the quotients and remainders that are atoms were made of.
    made_of: FxHashMap<Expr, Fraction>,
}

/// `form op divisor`, with `op` a division or a remainder.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Fraction {
    op: BinaryOp,
    form: Linear,
    divisor: i64,
}

impl Normalizer {
    pub(crate) fn new(rw: &Rewriter) -> Self {
        Self {
            forms: Forms::of_variables(rw.body()),
            built: FxHashMap::default(),
            fractions: FxHashMap::default(),
            digits: FxHashMap::default(),
            dims: FxHashMap::default(),
            products: FxHashMap::default(),
            made_of: FxHashMap::default(),
        }
    }

    pub(crate) fn forms(&self) -> &Forms {
        &self.forms
    }

    /// Settles what is known of a node whose operands were visited before.
    pub(crate) fn visit(&mut self, rw: &mut Rewriter, expr: Expr) {
        if !is_index(rw.body(), expr) || rw.body().kind(expr) == Kind::VAR {
            return;
        }
        let (op, a, b) = match rw.view(expr) {
            View::Binary { op, a, b } => (op, a, b),
            View::Prim { dim } if rw.terms().dim_value(dim).is_none() => {
                let first = *self.dims.entry(dim).or_insert(expr);
                self.forms.set_expr(rw.body(), first);
                return self.forms.set_form(expr, Linear::atom(first));
            }
            _ => return self.forms.set_expr(rw.body(), expr),
        };
        let (left, right) = (self.forms.form(a), self.forms.form(b));
        let form = match self.forms.combine(op, &left, &right) {
            Some(form) => {
                let form = self.rejoin(form);
                radix::rejoin(rw, &mut self.forms, &mut self.products, form)
            }
            None => match (op, right.value()) {
                (BinaryOp::FloorDiv | BinaryOp::FloorMod, Some(divisor)) if divisor > 0 => {
                    self.fraction(rw, op, &left, divisor, Some(expr), MAX_NESTING)
                }
                (BinaryOp::FloorDiv | BinaryOp::FloorMod, _) => {
                    self.forms.set_expr(rw.body(), expr);
                    match radix::symbolic(rw, &self.forms, b) {
                        Some(radix) => {
                            let digit = (op, left, radix);
                            Linear::atom(*self.digits.entry(digit).or_insert(expr))
                        }
                        None => return,
                    }
                }
                _ => return self.forms.set_expr(rw.body(), expr),
            },
        };
        self.forms.set_form(expr, form);
    }

    /// Makes each operand of a node of the base the normal form of what it is.
    pub(crate) fn settle_operands(&mut self, rw: &mut Rewriter, expr: Expr) {
        if self.is_sum(rw, expr) {
            return;
        }
        for position in 0..rw.body().operands(expr).len() {
            if rw.body().is_binder(expr, position) {
                continue;
            }
            let operand = rw.body().operands(expr).at(position);
            let settled = self.settle(rw, operand);
            if settled != operand {
                rw.replace(operand, settled);
            }
        }
    }

    /// The node that computes what `expr` does, in normal form.
    pub(crate) fn settle(&mut self, rw: &mut Rewriter, expr: Expr) -> Expr {
        match self.forms.known(expr) {
            Some(form) if form.as_atom() != Some(expr) => {
                let form = form.clone();
                self.build(rw, &form, Some(expr))
            }
            _ => expr,
        }
    }

    /// Whether a node is read through its form alone.
    fn is_sum(&self, rw: &Rewriter, expr: Expr) -> bool {
        let has_form = self.forms.known(expr).is_some_and(|form| form.as_atom() != Some(expr));
        has_form && rw.body().kind(expr) == Kind::BINARY
    }

    /// A node of this form; `candidate` when it is one.
    fn build(&mut self, rw: &mut Rewriter, form: &Linear, candidate: Option<Expr>) -> Expr {
        let built = match (candidate, self.built.get(form)) {
            (Some(expr), _) if is_normal(rw.body(), expr, form) => expr,
            (_, Some(&built)) => return built,
            (_, None) => build_sum(rw, form),
        };
        self.built.insert(form.clone(), built);
        self.forms.set_form(built, form.clone());
        built
    }

    /// The form of `form op divisor` where bounds alone may not settle it. `candidate` computes it.
    fn fraction(
        &mut self,
        rw: &mut Rewriter,
        op: BinaryOp,
        form: &Linear,
        divisor: i64,
        candidate: Option<Expr>,
        nesting: usize,
    ) -> Linear {
        if let Some(settled) = self.forms.combine(op, form, &Linear::of(divisor)) {
            return settled;
        }
        let inner = form.as_atom().and_then(|atom| self.made_of.get(&atom)).cloned();
        if let Some(inner) = inner.filter(|_| nesting > 0) {
            let Fraction { op: inner_op, form: x, divisor: by } = inner;
            let mut next =
                |op, form: &Linear, by| self.fraction(rw, op, form, by, None, nesting - 1);
            match (inner_op, op) {
                // (x // a) // b = x // (a * b)
                (BinaryOp::FloorDiv, BinaryOp::FloorDiv) => {
                    if let Some(product) = by.checked_mul(divisor) {
                        return next(BinaryOp::FloorDiv, &x, product);
                    }
                }
                // (x % (a * b)) // b = (x // b) % a
                (BinaryOp::FloorMod, BinaryOp::FloorDiv) if by % divisor == 0 => {
                    let quotient = next(BinaryOp::FloorDiv, &x, divisor);
                    return next(BinaryOp::FloorMod, &quotient, by / divisor);
                }
                // (x % (a * b)) % b = x % b
                (BinaryOp::FloorMod, BinaryOp::FloorMod) if by % divisor == 0 => {
                    return next(BinaryOp::FloorMod, &x, divisor);
                }
                _ => {}
            }
        }
        let division = form.divide(divisor, |atom| self.forms.interval(atom));
        let rest = division.rest.unwrap_or_default();
        if nesting > 0
            && let Some(settled) = self.in_steps(rw, op, &rest, divisor, nesting)
            && let Some(sum) = match op {
                BinaryOp::FloorMod => Some(settled),
                _ => division.quotient.plus(&settled, 1),
            }
        {
            return sum;
        }
        if op == BinaryOp::FloorMod {
            return self.fraction_atom(rw, Fraction { op, form: rest, divisor }, candidate);
        }
        let (rest, reduced) = rest.reduce_fraction(divisor);
        let fraction = Fraction { op, form: rest, divisor: reduced };
        let atom = self.fraction_atom(rw, fraction, candidate);
        match division.quotient.plus(&atom, 1) {
            Some(sum) => sum,
            None => {
                let whole = Fraction { op, form: form.clone(), divisor };
                self.fraction_atom(rw, whole, candidate)
            }
        }
    }

    /// `(k * x + r) // (k * c)` is `x // c` where `r` is between zero and `k`, and `(k * x + r) % (k * c)` is `x % c * k + r`.
    fn in_steps(
        &mut self,
        rw: &mut Rewriter,
        op: BinaryOp,
        form: &Linear,
        divisor: i64,
        nesting: usize,
    ) -> Option<Linear> {
        let Steps { step, whole, rest } = self.steps_of(form, divisor)?;
        let left = self.fraction(rw, op, &whole, divisor / step, None, nesting - 1);
        match op {
            BinaryOp::FloorMod => left.times(step)?.plus(&rest, 1),
            _ => Some(left),
        }
    }

    /// A form as steps of a divisor's part, and what is left of one.
    fn steps_of(&self, form: &Linear, divisor: i64) -> Option<Steps> {
        let mut steps: Vec<i64> = form.coefficients().map(i64::saturating_abs).collect();
        steps.retain(|&step| step > 1 && step < divisor && divisor % step == 0);
        steps.sort_unstable();
        steps.into_iter().rev().find_map(|step| {
            let Division { quotient, rest, remainder } =
                form.divide(step, |atom| self.forms.interval(atom));
            let has_left = rest.is_none() && remainder != Linear::default();
            has_left.then_some(Steps { step, whole: quotient, rest: remainder })
        })
    }

    /// The node of a fraction, as a form: one that was built, `candidate` when it is one, or a new one.
    fn fraction_atom(
        &mut self,
        rw: &mut Rewriter,
        fraction: Fraction,
        candidate: Option<Expr>,
    ) -> Linear {
        if let Some(&atom) = self.fractions.get(&fraction) {
            return Linear::atom(atom);
        }
        let candidate = candidate.and_then(|expr| match rw.view(expr) {
            View::Binary { op, a, b } => {
                let is_divisor = rw.int_value(b) == Some(fraction.divisor);
                (op == fraction.op && is_divisor && self.forms.form(a) == fraction.form)
                    .then_some((expr, a))
            }
            _ => None,
        });
        let numerator = self.build(rw, &fraction.form, candidate.map(|(_, a)| a));
        let atom = match candidate {
            Some((expr, a)) if a == numerator => expr,
            _ => {
                let divisor = rw.index(fraction.divisor);
                rw.binary(fraction.op, numerator, divisor)
            }
        };
        let bounds = self.forms.bounds(&fraction.form);
        let interval = self.forms.bounds_of(fraction.op, bounds, Interval::of(fraction.divisor));
        self.forms.set(atom, Some(Linear::atom(atom)), interval);
        self.fractions.insert(fraction.clone(), atom);
        self.made_of.insert(atom, fraction);
        Linear::atom(atom)
    }

    /// Puts quotients and remainders of one number together: `(x // c)*c + x % c = x`.
    fn rejoin(&self, mut form: Linear) -> Linear {
        let mut position = 0;
        while let Some(&(atom, scale)) = form.terms.get(position) {
            position += 1;
            let Some(joined) = self.join_digits(&form, atom, scale) else { continue };
            form = joined;
            position = 0;
        }
        form
    }

    /// The form without the digits of a number of which `scale * atom` is the lowest: `x % c` goes on in `scale * c * (z % b)`,
    /// where `z` is `x // c` and something above it, and ends in the quotient.
    fn join_digits(&self, form: &Linear, atom: Expr, scale: i64) -> Option<Linear> {
        let (mut whole, mut modulus) = self.remainder(atom)?;
        let mut rest = form.plus(&Linear::atom(atom), scale.checked_neg()?)?;
        loop {
            let step = scale.checked_mul(modulus)?;
            let quotient = self.quotient(&whole, modulus)?;
            if let Some(left) = rest.without(&quotient, step) {
                return left.plus(&whole, scale);
            }
            let above = rest.terms.iter().filter(|&&(_, scale)| scale == step);
            let (next, above, by) = above
                .filter_map(|&(next, _)| {
                    let (inner, by) = self.remainder(next)?;
                    Some((next, inner.without(&quotient, 1)?, by))
                })
                .next()?;
            rest = rest.plus(&Linear::atom(next), step.checked_neg()?)?;
            whole = whole.plus(&above, modulus)?;
            modulus = modulus.checked_mul(by)?;
        }
    }

    /// What a remainder that is an atom is of, and by what.
    fn remainder(&self, atom: Expr) -> Option<(Linear, i64)> {
        match self.made_of.get(&atom)? {
            Fraction { op: BinaryOp::FloorMod, form, divisor } => Some((form.clone(), *divisor)),
            _ => None,
        }
    }

    /// `whole // divisor`, when it was built or needs no fraction.
    fn quotient(&self, whole: &Linear, divisor: i64) -> Option<Linear> {
        let settled = self.forms.combine(BinaryOp::FloorDiv, whole, &Linear::of(divisor));
        if settled.is_some() {
            return settled;
        }
        let division = whole.divide(divisor, |atom| self.forms.interval(atom));
        let (mut form, mut divisor) = (division.rest?, divisor);
        if let Some(Steps { step, whole, .. }) = self.steps_of(&form, divisor) {
            (form, divisor) = (whole, divisor / step);
        }
        if let Some(atom) = form.as_atom()
            && let Some(Fraction { op: BinaryOp::FloorDiv, form: inner, divisor: by }) =
                self.made_of.get(&atom)
        {
            (form, divisor) = (inner.clone(), divisor.checked_mul(*by)?);
        }
        let (form, divisor) = form.reduce_fraction(divisor);
        let atom = self.fractions.get(&Fraction { op: BinaryOp::FloorDiv, form, divisor })?;
        division.quotient.plus(&Linear::atom(*atom), 1)
    }
}

/// `step * whole + rest`, where `rest` is less than a step.
struct Steps {
    step: i64,
    whole: Linear,
    rest: Linear,
}

/// `((a*x + b*y) - c*z) + constant`, in the order of the atoms.
fn build_sum(rw: &mut Rewriter, form: &Linear) -> Expr {
    let mut sum = None;
    for &(atom, coefficient) in &form.terms {
        let (op, factor) = signed(sum.is_some(), coefficient);
        let factor = rw.index(factor);
        let product = rw.mul(atom, factor);
        sum = Some(match sum {
            None => product,
            Some(sum) => rw.binary(op, sum, product),
        });
    }
    let Some(sum) = sum else { return rw.index(form.constant) };
    let (op, constant) = signed(true, form.constant);
    let constant = rw.index(constant);
    rw.binary(op, sum, constant)
}

/// Whether `expr` is what [`build_sum`] builds.
fn is_normal(body: BodyView<'_>, expr: Expr, form: &Linear) -> bool {
    let is_int = |expr: Expr, value: i64| matches!(body.view(expr), View::Int(x) if x == value);
    let is_product = |expr: Expr, atom: Expr, factor: i64| match body.view(expr) {
        View::Binary { op: BinaryOp::Mul, a, b } if factor != 1 => a == atom && is_int(b, factor),
        _ => factor == 1 && expr == atom,
    };
    let Some((&(first, factor), others)) = form.terms.split_first() else {
        return is_int(expr, form.constant);
    };
    let mut sum = expr;
    let (op, constant) = signed(true, form.constant);
    if constant != 0 {
        match body.view(sum) {
            View::Binary { op: found, a, b } if found == op && is_int(b, constant) => sum = a,
            _ => return false,
        }
    }
    for &(atom, coefficient) in others.iter().rev() {
        let (op, factor) = signed(true, coefficient);
        match body.view(sum) {
            View::Binary { op: found, a, b } if found == op && is_product(b, atom, factor) => {
                sum = a;
            }
            _ => return false,
        }
    }
    is_product(sum, first, factor)
}

/// How a number is added: itself, or taken away when it is negative and something stands before it.
fn signed(has_left: bool, value: i64) -> (BinaryOp, i64) {
    match value.checked_neg() {
        Some(positive) if has_left && value < 0 => (BinaryOp::Sub, positive),
        _ => (BinaryOp::Add, value),
    }
}
