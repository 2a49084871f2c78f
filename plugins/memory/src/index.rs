//! Index arithmetic in a normal form, so that places which are equal at every step are equal as they stand.
//!
//! A form is a sum of multiples of atoms: variables, and quotients `form floordiv c`. A remainder `a % c` is
//! `a - c * (a floordiv c)`, so what was split into quotient and remainder comes together again by itself. Of a
//! quotient, whole multiples of `c` are taken out; what is left vanishes when it is between 0 and `c`. A quotient of a
//! quotient is one quotient, and what a `let` or a block names is its value.

use std::collections::{BTreeMap, HashMap};

use tenon_plugin_api::ir::{Args, Terms};
use tenon_plugin_api::prelude::*;

/// A sum: a number, and multiples of atoms.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Form {
    number: i64,
    terms: BTreeMap<u32, i64>,
}

/// The index arithmetic of a program.
pub(crate) struct Indices {
    forms: SideTable<Option<Form>>,
    /// What variables stand for that are no loop's.
    values: SideTable<Option<Expr>>,
    /// Least and largest value of each atom.
    ranges: Vec<Option<(i64, i64)>>,
    quotients: HashMap<(Form, i64), u32>,
    /// What the atoms that are quotients divide, and by what.
    divided: HashMap<u32, (Form, i64)>,
}

impl Indices {
    /// The arithmetic of all nodes of a program; `None` when a loop does not start at 0, or a number is too large.
    pub(crate) fn of(body: BodyView<'_>) -> Option<Self> {
        let mut this = Self {
            forms: SideTable::new(body, None),
            values: SideTable::new(body, None),
            ranges: Vec::new(),
            quotients: HashMap::new(),
            divided: HashMap::new(),
        };
        let mut extents: SideTable<Option<i64>> = SideTable::new(body, None);
        for expr in body.post_order() {
            match body.view(expr) {
                View::For { var, min, extent, .. } => {
                    let View::Int(0) = body.view(min) else { return None };
                    if let View::Int(extent) = body.view(extent) {
                        extents[var] = Some(extent);
                    }
                }
                View::LetStmt { var, value } => {
                    this.values[var] = Some(value);
                }
                View::Block(block) => {
                    let iters = block.iters.to_vec();
                    for iter in iters.chunks_exact(2) {
                        this.values[iter[0]] = Some(iter[1]);
                    }
                }
                _ => {}
            }
        }
        for expr in body.post_order() {
            this.forms[expr] = match body.view(expr) {
                View::Int(number) => Some(Form { number, ..Form::default() }),
                View::Var { .. } => {
                    let range = extents[expr].map(|extent| (0, extent - 1));
                    Some(match range {
                        Some((0, 0)) => Form::default(),
                        _ => this.atom(range),
                    })
                }
                View::Binary { op, a, b } => this.binary(op, a, b),
                _ => None,
            };
        }
        Some(this)
    }

    /// The place that indices lead to in a tensor whose neighbours are `strides` apart.
    pub(crate) fn place(&mut self, indices: Args<'_>, strides: &[i64]) -> Option<Form> {
        if indices.len() != strides.len() {
            return None;
        }
        let mut place = Form::default();
        for (index, &stride) in indices.iter().zip(strides) {
            place = place.plus(self.form(index)?, stride)?;
        }
        Some(place)
    }

    /// Whether no two steps of the loops over `vars`, all of which start at 0 and are taken `extents` times, lead to
    /// one place. Variables are split into the digits that quotients tell apart; sorted by what one more of it is
    /// worth, each digit must step beyond all places of those before it.
    pub(crate) fn is_injective(&self, place: &Form, vars: &[(Expr, i64)]) -> bool {
        let (mut digits, mut known) = (Vec::new(), 0);
        for &(var, extent) in vars.iter().filter(|&&(_, extent)| extent > 1) {
            let Some(var) = &self.forms[var] else { return false };
            let mut parts: Vec<(i64, i64)> = place
                .terms
                .iter()
                .filter_map(|(&atom, &factor)| match self.divided.get(&atom) {
                    Some((inner, by)) => (inner == var).then_some((*by, factor)),
                    None => var.terms.contains_key(&atom).then_some((1, factor)),
                })
                .collect();
            known += parts.len();
            if parts.iter().all(|&(by, _)| by != 1) {
                parts.push((1, 0));
            }
            parts.sort_unstable();
            let ends = parts[1..].iter().map(|&(by, _)| Some(by)).chain([None]);
            for (index, (end, &(by, _))) in ends.zip(&parts).enumerate() {
                let end = end.unwrap_or(extent.saturating_add(by - 1));
                if parts[..index].iter().any(|&(smaller, _)| by % smaller != 0) {
                    return false;
                }
                let worth = parts[..=index].iter().try_fold(0i64, |worth, &(smaller, factor)| {
                    worth.checked_add((by / smaller).checked_mul(factor)?)
                });
                let Some(worth) = worth else { return false };
                digits.push((worth, end / by - 1));
            }
        }
        digits.sort_unstable();
        let mut reach = 0i64;
        let is_beyond = digits.iter().filter(|&&(_, last)| last > 0).all(|&(worth, last)| {
            let is_beyond = worth > reach;
            reach = reach.saturating_add(worth.saturating_mul(last));
            is_beyond
        });
        is_beyond && known == place.terms.len()
    }

    fn form(&self, expr: Expr) -> Option<&Form> {
        let value = self.values[expr].and_then(|value| self.forms[value].as_ref());
        value.or(self.forms[expr].as_ref())
    }

    fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Option<Form> {
        let (a, b) = (self.form(a)?.clone(), self.form(b)?.clone());
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
        if let Some((inner, by)) = self.divided_by(&rest) {
            let quotient = self.quotient(inner, by.checked_mul(divisor)?)?;
            return whole.plus(&quotient, 1);
        }
        let known = self.quotients.get(&(rest.clone(), divisor)).copied();
        let atom = known.unwrap_or_else(|| {
            let range = self.range(&rest);
            let atom = self.ranges.len() as u32;
            self.ranges.push(range.map(|(a, b)| (a.div_euclid(divisor), b.div_euclid(divisor))));
            self.divided.insert(atom, (rest.clone(), divisor));
            self.quotients.insert((rest, divisor), atom);
            atom
        });
        whole.add(atom, 1)?;
        Some(whole)
    }

    /// A quotient, when `form` is one and a number: what is divided, with the number in it, and by what.
    fn divided_by(&self, form: &Form) -> Option<(Form, i64)> {
        let (atom, &1) = form.terms.first_key_value()? else { return None };
        let (inner, by) = self.divided.get(atom).filter(|_| form.terms.len() == 1)?;
        let number = Form { number: form.number, ..Form::default() };
        Some((inner.plus(&number, *by)?, *by))
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
    /// The number that a form is.
    pub(crate) fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.number)
    }

    /// `self + other * factor`.
    pub(crate) fn plus(&self, other: &Form, factor: i64) -> Option<Form> {
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

/// Whether a program does nothing but store, at each step of its loops.
pub(crate) fn is_plain(body: BodyView<'_>) -> bool {
    body.post_order().all(|expr| match body.view(expr) {
        View::Block(block) => block.predicate.is_none(),
        _ => !matches!(
            body.kind(expr),
            Kind::IF_STMT | Kind::LET_STMT | Kind::ALLOC | Kind::EVALUATE
        ),
    })
}

/// How far apart neighbours along each axis are in row-major order; all but the first dimension must be numbers.
pub(crate) fn strides(terms: Terms<'_>, dims: &[Dim]) -> Option<Vec<i64>> {
    let mut strides = vec![1i64; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].checked_mul(terms.dim_value(dims[axis])?)?;
    }
    Some(strides)
}
