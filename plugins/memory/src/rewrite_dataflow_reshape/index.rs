//! Index arithmetic in a normal form, so that places which are equal at every step are equal as they stand.
//!
//! A form is a sum of multiples of atoms: variables, and quotients `form floordiv c`. A remainder `a % c` is
//! `a - c * (a floordiv c)`, so what was split into quotient and remainder comes together again by itself. Of a
//! quotient, whole multiples of `c` are taken out; what is left vanishes when it is between 0 and `c`.

use std::collections::{BTreeMap, HashMap};

use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

/// A sum: a number, and multiples of atoms.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Form {
    number: i64,
    terms: BTreeMap<u32, i64>,
}

/// The index arithmetic of a program.
pub(super) struct Indices {
    forms: HashMap<Expr, Form>,
    /// Least and largest value of each atom.
    ranges: Vec<Option<(i64, i64)>>,
    quotients: HashMap<(Form, i64), u32>,
}

impl Indices {
    /// The arithmetic of all nodes of a program; `None` when a loop does not start at 0, or a number is too large.
    pub(super) fn of(body: BodyView<'_>) -> Option<Self> {
        let mut this =
            Self { forms: HashMap::new(), ranges: Vec::new(), quotients: HashMap::new() };
        let mut extents: HashMap<Expr, i64> = HashMap::new();
        for expr in body.post_order() {
            let View::For { var, min, extent, .. } = body.view(expr) else { continue };
            let View::Int(0) = body.view(min) else { return None };
            if let View::Int(extent) = body.view(extent) {
                extents.insert(var, extent);
            }
        }
        for expr in body.post_order() {
            let form = match body.view(expr) {
                View::Int(number) => Some(Form { number, ..Form::default() }),
                View::Var { .. } => {
                    let range = extents.get(&expr).map(|&extent| (0, extent - 1));
                    Some(match range {
                        Some((0, 0)) => Form::default(),
                        _ => this.atom(range),
                    })
                }
                View::Binary { op, a, b } => this.binary(op, a, b),
                _ => None,
            };
            this.forms.extend(form.map(|form| (expr, form)));
        }
        Some(this)
    }

    /// The place that indices lead to in a tensor whose neighbours are `strides` apart.
    pub(super) fn place(&mut self, indices: Args<'_>, strides: &[i64]) -> Option<Form> {
        if indices.len() != strides.len() {
            return None;
        }
        let mut place = Form::default();
        for (index, &stride) in indices.iter().zip(strides) {
            place = place.plus(self.forms.get(&index)?, stride)?;
        }
        Some(place)
    }

    fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Option<Form> {
        let (a, b) = (self.forms.get(&a)?.clone(), self.forms.get(&b)?.clone());
        match op {
            BinaryOp::Add => a.plus(&b, 1),
            BinaryOp::Sub => a.plus(&b, -1),
            BinaryOp::Mul => match (a.as_number(), b.as_number()) {
                (_, Some(b)) => Form::default().plus(&a, b),
                (Some(a), _) => Form::default().plus(&b, a),
                _ => None,
            },
            BinaryOp::FloorDiv => self.quotient(a, b.as_number()?),
            // Both round alike where nothing is negative.
            BinaryOp::Div if self.range(&a)?.0 >= 0 => self.quotient(a, b.as_number()?),
            BinaryOp::FloorMod => {
                let divisor = b.as_number()?;
                let quotient = self.quotient(a.clone(), divisor)?;
                a.plus(&quotient, divisor.checked_neg()?)
            }
            _ => None,
        }
    }

    /// `form floordiv divisor`.
    fn quotient(&mut self, form: Form, divisor: i64) -> Option<Form> {
        if divisor < 1 {
            return None;
        }
        let (mut whole, mut rest) = (Form::default(), Form::default());
        whole.number = form.number.div_euclid(divisor);
        rest.number = form.number.rem_euclid(divisor);
        for (&atom, &factor) in &form.terms {
            whole.add(atom, factor.div_euclid(divisor))?;
            rest.add(atom, factor.rem_euclid(divisor))?;
        }
        if self.range(&rest).is_some_and(|(least, largest)| least >= 0 && largest < divisor) {
            return Some(whole);
        }
        let known = self.quotients.get(&(rest.clone(), divisor)).copied();
        let atom = known.unwrap_or_else(|| {
            let range = self.range(&rest);
            let atom = self.ranges.len() as u32;
            self.ranges.push(range.map(|(a, b)| (a.div_euclid(divisor), b.div_euclid(divisor))));
            self.quotients.insert((rest, divisor), atom);
            atom
        });
        whole.add(atom, 1)?;
        Some(whole)
    }

    fn atom(&mut self, range: Option<(i64, i64)>) -> Form {
        self.ranges.push(range);
        Form { number: 0, terms: BTreeMap::from([(self.ranges.len() as u32 - 1, 1)]) }
    }

    /// The least and largest value of a form, when they are known.
    fn range(&self, form: &Form) -> Option<(i64, i64)> {
        let mut range = (form.number, form.number);
        for (&atom, &factor) in &form.terms {
            let (a, b) = self.ranges[atom as usize]?;
            let (a, b) = (a.checked_mul(factor)?, b.checked_mul(factor)?);
            range = (range.0.checked_add(a.min(b))?, range.1.checked_add(a.max(b))?);
        }
        Some(range)
    }
}

impl Form {
    fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.number)
    }

    /// `self + other * factor`.
    fn plus(&self, other: &Form, factor: i64) -> Option<Form> {
        let mut sum = self.clone();
        sum.number = sum.number.checked_add(other.number.checked_mul(factor)?)?;
        for (&atom, &times) in &other.terms {
            sum.add(atom, times.checked_mul(factor)?)?;
        }
        Some(sum)
    }

    fn add(&mut self, atom: u32, factor: i64) -> Option<()> {
        let sum = self.terms.get(&atom).copied().unwrap_or(0).checked_add(factor)?;
        match sum {
            0 => self.terms.remove(&atom),
            _ => self.terms.insert(atom, sum),
        };
        Some(())
    }
}
