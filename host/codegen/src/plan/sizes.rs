//! Numbers that are not known before the function is called, and how they are computed then.
//!
//! ```text
//! %x: f32[n, 2*m]     n = extent 0 of input 0;  m = (extent 1 of input 0) floordiv 2
//! f32[n, m] takes     4*n*m bytes               computed once, when the function begins
//! ```
//!
//! Numbers that are known stay numbers, so that nothing is computed for a function whose shapes are.
//!
//! A number that is *found* comes out of what is computed, and with it whatever is computed of it; the function goes on with it
//! from there. What it is at most is known when the function begins, so memory is planned for that; or it is *open*, and memory
//! that it says the size of is taken when it is known.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use tenon_ir::{BinaryOp, Dim, DimView, Symbol, Terms};

/// No extent is larger: the elements of such an axis would fill the memory that a processor can address.
pub const LARGEST_EXTENT: i64 = 1 << 47;

/// A number that is known, or one that is computed when the function begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    Known(i64),
    /// By its step.
    Computed(usize),
}

impl Default for Size {
    fn default() -> Size {
        Size::Known(0)
    }
}

impl Size {
    /// The number, where it is known.
    pub fn known(self) -> Option<i64> {
        match self {
            Size::Known(value) => Some(value),
            Size::Computed(_) => None,
        }
    }
}

/// How a number is computed. What it is computed from has smaller numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SizeStep {
    /// The extent that the caller gave.
    Extent { input: usize, axis: usize },
    /// How much room rows along an axis of an input have, by its strides.
    Room { input: usize, axis: usize },
    /// An element of an input whose elements are sizes, and what it is at least.
    Element { input: usize, at: usize, least: i64 },
    /// A number that the function is given, by its place among them.
    Given(usize),
    /// One that is found, and how large it is at most.
    Found { number: usize, most: Size },
    /// A sum, difference, product, floor division, remainder, minimum or maximum.
    Binary { op: BinaryOp, a: Size, b: Size },
}

/// What must hold of numbers for the function to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    Equal(Size, Size),
    /// The first is the second, or 1.
    EqualOrOne(Size, Size),
    AtMost(Size, Size),
}

impl Agreement {
    /// What it is about.
    pub(super) fn sizes(self) -> [Size; 2] {
        match self {
            Agreement::Equal(a, b) | Agreement::EqualOrOne(a, b) | Agreement::AtMost(a, b) => {
                [a, b]
            }
        }
    }
}

/// What a call is told to have failed by: the number of its text among the checks of the plan, from 1 on; 0 where it has none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CheckNumber(pub u32);

/// What the symbols of a function stand for.
pub type Bindings = HashMap<Symbol, Size, FxBuildHasher>;

/// The numbers of a function. The same number is computed once.
#[derive(Debug, Default)]
pub struct Sizes {
    steps: Vec<SizeStep>,
    numbers: HashMap<SizeStep, usize, FxBuildHasher>,
    /// Of each number that is found, or computed of one that is, what it is at least and at most.
    bounds: HashMap<usize, [Size; 2], FxBuildHasher>,
    /// The numbers among these of which it is not known what they are at most, and whether each is surely not below 0.
    open: HashMap<usize, bool, FxBuildHasher>,
    /// How many are found.
    found: usize,
}

impl Sizes {
    pub fn step(&mut self, step: SizeStep) -> Size {
        let number = *self.numbers.entry(step).or_insert_with(|| {
            self.steps.push(step);
            self.steps.len() - 1
        });
        Size::Computed(number)
    }

    /// A number that is found, up to one that is known before.
    pub(super) fn found(&mut self, most: Size) -> Size {
        let most = self.most(most);
        let size = self.step(SizeStep::Found { number: self.found, most });
        self.found += 1;
        if let Size::Computed(step) = size {
            self.bounds.insert(step, [Size::Known(0), most]);
        }
        size
    }

    /// A number that is found, of which nobody knows before what it is at most.
    pub(super) fn found_open(&mut self) -> Size {
        let size = self.found(Size::Known(LARGEST_EXTENT));
        if let Size::Computed(step) = size {
            self.open.insert(step, true);
        }
        size
    }

    /// Whether it is not known before what a number is at most.
    pub fn is_open(&self, size: Size) -> bool {
        matches!(size, Size::Computed(step) if self.open.contains_key(&step))
    }

    /// Whether there is one of which nobody knows before what it is at most.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a number is found, or computed of one that is.
    pub(super) fn is_found(&self, size: Size) -> bool {
        matches!(size, Size::Computed(step) if self.bounds.contains_key(&step))
    }

    /// What a number is at most, as one that is known when the function begins; one that is open stays what it is.
    pub fn most(&self, size: Size) -> Size {
        match self.is_open(size) {
            true => size,
            false => self.bounds_of(size)[1],
        }
    }

    fn bounds_of(&self, size: Size) -> [Size; 2] {
        match size {
            Size::Computed(step) => self.bounds.get(&step).copied().unwrap_or([size; 2]),
            Size::Known(_) => [size; 2],
        }
    }

    /// All steps, in their order.
    pub fn into_steps(self) -> Vec<SizeStep> {
        self.steps
    }

    /// The number that another function computes by its steps, where it is given these numbers.
    pub fn of_call(&mut self, steps: &[SizeStep], size: Size, given: &[Size]) -> Size {
        let mut numbers: Vec<Size> = Vec::with_capacity(steps.len());
        let number = |size: Size, numbers: &[Size]| match size {
            Size::Known(_) => size,
            Size::Computed(step) => numbers[step],
        };
        if let Size::Known(_) = size {
            return size;
        }
        for &step in steps {
            let value = match step {
                SizeStep::Given(at) => given[at],
                SizeStep::Binary { op, a, b } => {
                    let (a, b) = (number(a, &numbers), number(b, &numbers));
                    self.binary(op, a, b)
                }
                // Nothing that a caller asks for depends on it.
                SizeStep::Found { .. } => Size::Known(0),
                // Of the entry alone, which nobody calls.
                SizeStep::Extent { .. } | SizeStep::Element { .. } | SizeStep::Room { .. } => {
                    self.step(step)
                }
            };
            numbers.push(value);
        }
        number(size, &numbers)
    }

    /// All steps so far, in their order.
    pub fn steps(&self) -> &[SizeStep] {
        &self.steps
    }

    /// `a op b`; a number where it is one.
    pub fn binary(&mut self, op: BinaryOp, a: Size, b: Size) -> Size {
        if let (Some(a), Some(b)) = (a.known(), b.known())
            && let Some(value) = folded(op, a, b)
        {
            return Size::Known(value);
        }
        match (op, a, b) {
            (BinaryOp::Add, Size::Known(0), other) | (BinaryOp::Mul, Size::Known(1), other) => {
                other
            }
            (BinaryOp::Add | BinaryOp::Sub, other, Size::Known(0))
            | (BinaryOp::Mul | BinaryOp::FloorDiv, other, Size::Known(1)) => other,
            (BinaryOp::Min | BinaryOp::Max, a, b) if a == b => a,
            (op, a, b) => {
                let result = self.step(SizeStep::Binary { op, a, b });
                if let Size::Computed(step) = result
                    && (self.is_found(a) || self.is_found(b))
                    && !self.bounds.contains_key(&step)
                {
                    let bounds = match self.open_binary(op, a, b) {
                        Open::Not => self.bounds_of_binary(op, a, b),
                        Open::UpTo(most) => [Size::Known(0), most],
                        Open::All { is_natural } => {
                            self.open.insert(step, is_natural);
                            [Size::Known(0), result]
                        }
                    };
                    self.bounds.insert(step, bounds);
                }
                result
            }
        }
    }

    /// Whether `a op b` is open, of which one is found.
    fn open_binary(&self, op: BinaryOp, a: Size, b: Size) -> Open {
        let [of_a, of_b] = [a, b].map(|size| self.is_open(size));
        if !of_a && !of_b {
            return Open::Not;
        }
        let is_natural = [a, b].map(|size| match size {
            Size::Known(value) => value >= 0,
            Size::Computed(step) => match (self.open.get(&step), self.bounds.get(&step)) {
                (Some(&is_natural), _) => is_natural,
                (None, Some([least, _])) => matches!(least, Size::Known(0..)),
                // An extent, of those that are not computed.
                (None, None) => !matches!(
                    self.steps[step],
                    SizeStep::Binary { .. } | SizeStep::Element { least: ..0, .. }
                ),
            },
        });
        let both = is_natural == [true; 2];
        match (op, of_a, of_b) {
            // A bound that no extent reaches is none.
            (BinaryOp::Min, _, true) if matches!(a, Size::Known(LARGEST_EXTENT..)) => {
                Open::All { is_natural: both }
            }
            (BinaryOp::Min, true, _) if matches!(b, Size::Known(LARGEST_EXTENT..)) => {
                Open::All { is_natural: both }
            }
            (BinaryOp::Min, true, false) if both => Open::UpTo(self.most(b)),
            (BinaryOp::Min, false, true) if both => Open::UpTo(self.most(a)),
            (BinaryOp::FloorMod, _, false) if both => Open::UpTo(self.most(b)),
            (BinaryOp::Max, ..) => Open::All { is_natural: is_natural.contains(&true) },
            (BinaryOp::Sub, ..) => Open::All { is_natural: false },
            _ => Open::All { is_natural: both },
        }
    }

    /// What `a op b` is at least and at most.
    fn bounds_of_binary(&mut self, op: BinaryOp, a: Size, b: Size) -> [Size; 2] {
        let ([a_least, a_most], [b_least, b_most]) = (self.bounds_of(a), self.bounds_of(b));
        let zero = Size::Known(0);
        match op {
            BinaryOp::Sub => [self.binary(op, a_least, b_most), self.binary(op, a_most, b_least)],
            BinaryOp::Mul => {
                let ends =
                    [(a_least, b_least), (a_least, b_most), (a_most, b_least), (a_most, b_most)];
                let products = ends.map(|(a, b)| self.binary(op, a, b));
                let mut all = |op| products.into_iter().reduce(|a, b| self.binary(op, a, b));
                [all(BinaryOp::Min), all(BinaryOp::Max)].map(Option::unwrap_or_default)
            }
            BinaryOp::FloorDiv if matches!(b, Size::Known(1..)) => {
                [self.binary(op, a_least, b), self.binary(op, a_most, b)]
            }
            // Nearer to zero, by how much is not known.
            BinaryOp::FloorDiv => [
                self.binary(BinaryOp::Min, a_least, zero),
                self.binary(BinaryOp::Max, a_most, zero),
            ],
            BinaryOp::FloorMod => [zero, b_most],
            _ => [self.binary(op, a_least, b_least), self.binary(op, a_most, b_most)],
        }
    }

    /// The next multiple of `align`, a power of two.
    pub fn aligned(&mut self, size: Size, align: u64) -> Size {
        let align = Size::Known(align as i64);
        let below = self.binary(BinaryOp::Sub, align, Size::Known(1));
        let above = self.binary(BinaryOp::Add, size, below);
        let count = self.binary(BinaryOp::FloorDiv, above, align);
        self.binary(BinaryOp::Mul, count, align)
    }

    /// The number that a dimension is; `None` where a symbol of it stands for nothing.
    pub fn dim(&mut self, terms: Terms<'_>, root: Dim, symbols: &Bindings) -> Option<Size> {
        if let Some(value) = terms.dim_value(root) {
            return Some(Size::Known(value));
        }
        let mut known: HashMap<Dim, Size, FxBuildHasher> = HashMap::default();
        let mut pending = vec![root];
        while let Some(&dim) = pending.last() {
            if known.contains_key(&dim) {
                pending.pop();
                continue;
            }
            let (op, parts): (_, &[Dim]) = match terms.dim(dim) {
                DimView::Const(value) => {
                    known.insert(dim, Size::Known(value));
                    continue;
                }
                DimView::Symbol(name) => {
                    known.insert(dim, *symbols.get(&name)?);
                    continue;
                }
                DimView::Unknown(_) => return None,
                DimView::Add(parts) => (BinaryOp::Add, parts),
                DimView::Mul(parts) => (BinaryOp::Mul, parts),
                DimView::FloorDiv(a, b) => (BinaryOp::FloorDiv, &[a, b]),
                DimView::FloorMod(a, b) => (BinaryOp::FloorMod, &[a, b]),
                DimView::Min(a, b) => (BinaryOp::Min, &[a, b]),
                DimView::Max(a, b) => (BinaryOp::Max, &[a, b]),
            };
            let waiting = pending.len();
            pending.extend(parts.iter().filter(|part| !known.contains_key(part)));
            if pending.len() > waiting {
                continue;
            }
            let (&first, rest) = parts.split_first()?;
            let sum = rest.iter().fold(known[&first], |sum, part| {
                let part = known[part];
                self.binary(op, sum, part)
            });
            known.insert(dim, sum);
            pending.pop();
        }
        known.get(&root).copied()
    }

    /// Finds out what symbols stand for from dimensions and the numbers that they are: those that stand alone first, then
    /// those that are the only unknown one of a sum. Returns what each dimension is then; `None` for one with a symbol
    /// that nothing says.
    pub(super) fn bind(
        &mut self,
        terms: Terms<'_>,
        met: &[(Dim, Size)],
        symbols: &mut Bindings,
    ) -> Vec<Option<Size>> {
        for &(dim, size) in met {
            if let DimView::Symbol(name) = terms.dim(dim) {
                symbols.entry(name).or_insert(size);
            }
        }
        for &(dim, size) in met {
            self.solve(terms, dim, size, symbols);
        }
        met.iter().map(|&(dim, _)| self.dim(terms, dim, symbols)).collect()
    }

    /// Binds the symbol of `factor*symbol + rest` so that it is `size`, where it is the only one that is not known. Whether
    /// it comes out even is for who compares the two.
    fn solve(&mut self, terms: Terms<'_>, dim: Dim, size: Size, symbols: &mut Bindings) {
        let one = [dim];
        let parts = match terms.dim(dim) {
            DimView::Add(parts) => parts,
            _ => &one,
        };
        let mut left = size;
        let mut unknown = None;
        for &part in parts {
            if let Some(known) = self.dim(terms, part, symbols) {
                left = self.binary(BinaryOp::Sub, left, known);
                continue;
            }
            let Some(scaled) = scaled_symbol(terms, part) else { return };
            if unknown.replace(scaled).is_some() {
                return;
            }
        }
        if let Some((name, factor)) = unknown {
            let value = self.binary(BinaryOp::FloorDiv, left, Size::Known(factor));
            symbols.insert(name, value);
        }
    }
}

/// Whether it is known before what a number is at most.
enum Open {
    /// It is.
    Not,
    /// It is not below 0, and at most this, although it is computed of one that is open.
    UpTo(Size),
    All {
        /// Whether it is surely not below 0.
        is_natural: bool,
    },
}

/// The symbol and the factor of `factor*symbol`.
fn scaled_symbol(terms: Terms<'_>, dim: Dim) -> Option<(Symbol, i64)> {
    match terms.dim(dim) {
        DimView::Symbol(name) => Some((name, 1)),
        DimView::Mul(&[a, b]) => match (terms.dim(a), terms.dim(b)) {
            (DimView::Const(factor), DimView::Symbol(name))
            | (DimView::Symbol(name), DimView::Const(factor)) => Some((name, factor)),
            _ => None,
        },
        _ => None,
    }
}

/// `None` where it is no number of 64 bits.
fn folded(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::FloorDiv if b > 0 => Some(a.div_euclid(b)),
        BinaryOp::FloorMod if b > 0 => Some(a.rem_euclid(b)),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        _ => None,
    }
}
