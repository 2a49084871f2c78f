//! Ranges of symbols, which whoever compiles a model promises and each call keeps.
//!
//! With them, what a number is at most can be known before a call: that of each step from those before it.

use std::collections::BTreeMap;

use super::sizes::{LARGEST_EXTENT, Size, SizeStep};
use super::{PlanError, Planner};
use tenon_ir::{BinaryOp, Context, Dim, Module, Type, TypeView, View, symbols_in};

/// What a symbol is at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DimRange {
    pub least: i64,
    /// None where nobody says it.
    pub most: Option<i64>,
}

impl DimRange {
    /// The number in it that is nearest to another.
    pub fn nearest(&self, extent: i64) -> i64 {
        extent.min(self.most.unwrap_or(extent)).max(self.least)
    }
}

/// Ranges by the names of symbols.
pub type DimRanges = BTreeMap<String, DimRange>;

/// The range of a number of a function.
#[derive(Clone, Debug)]
pub struct RangedSize {
    /// The symbol.
    pub name: String,
    pub size: Size,
    pub range: DimRange,
}

/// Nothing is larger, so that bounds of bounds are numbers.
const HUGE: i128 = 1 << 90;

impl Planner<'_> {
    /// The numbers of the function that have ranges.
    pub(super) fn ranged(&self, ranges: &DimRanges) -> Vec<RangedSize> {
        let ranged = ranges.iter().filter_map(|(name, &range)| {
            let size = *self.symbols.get(&self.module.cx().symbol(name))?;
            Some(RangedSize { name: name.clone(), size, range })
        });
        ranged.collect()
    }

    /// The names of the symbols of the function, sorted.
    pub(super) fn symbol_names(&self) -> Vec<String> {
        let terms = self.module.cx().terms();
        let mut names: Vec<String> =
            self.symbols.keys().map(|&name| terms.str(name).to_owned()).collect();
        names.sort_unstable();
        names
    }
}

/// That each range is of a symbol of some function.
pub(super) fn check(
    ranges: &DimRanges,
    used: &[RangedSize],
    mut known: Vec<String>,
) -> Result<(), PlanError> {
    known.sort_unstable();
    known.dedup();
    match ranges.keys().find(|name| !used.iter().any(|ranged| ranged.name == **name)) {
        Some(name) => Err(PlanError::NoSymbol { name: name.clone(), found: known }),
        None => Ok(()),
    }
}

/// That each range is of a symbol that what `module` takes says, for whom stops before there is code.
pub fn check_ranges(module: &Module, ranges: &DimRanges) -> Result<(), PlanError> {
    let terms = module.cx().terms();
    let functions = module.iter().map(|(_, function)| function.view());
    let mut types: Vec<Type> = functions
        .flat_map(|body| match body.view(body.root()) {
            View::Function { params, .. } => params.iter().filter_map(|it| body.ty(it)).collect(),
            _ => Vec::new(),
        })
        .collect();
    let mut dims: Vec<Dim> = Vec::new();
    while let Some(ty) = types.pop() {
        match terms.ty(ty) {
            TypeView::Tensor { dims: Some(all), .. } | TypeView::Shape(Some(all)) => {
                dims.extend(all);
            }
            TypeView::Tuple(fields) => types.extend(fields),
            _ => {}
        }
    }
    let known = symbols_in(terms, dims).map(|name| terms.str(name).to_owned());
    let mut known: Vec<String> = known.collect();
    known.sort_unstable();
    match ranges.keys().find(|name| known.binary_search(name).is_err()) {
        Some(name) => Err(PlanError::NoSymbol { name: name.clone(), found: known }),
        None => Ok(()),
    }
}

/// What a number is at most that is computed by these steps; none where that is more than any memory has.
pub fn largest(steps: &[SizeStep], size: Size, ranges: &[RangedSize]) -> Option<i64> {
    let mut bounds: Vec<[i128; 2]> = Vec::with_capacity(steps.len());
    let of = |size: Size, bounds: &[[i128; 2]]| match size {
        Size::Known(value) => [i128::from(value); 2],
        Size::Computed(step) => bounds[step],
    };
    let all = [0, i128::from(LARGEST_EXTENT)];
    for (number, step) in steps.iter().enumerate() {
        let given = ranges.iter().find(|it| it.size == Size::Computed(number));
        let [least, most] = match (given, *step) {
            (Some(RangedSize { range, .. }), _) => {
                [range.least.into(), range.most.unwrap_or(LARGEST_EXTENT).into()]
            }
            (_, SizeStep::Found { most, .. }) => [0, of(most, &bounds)[1]],
            (_, SizeStep::Binary { op, a, b }) => {
                of_binary(op, of(a, &bounds), of(b, &bounds)).unwrap_or([-HUGE, HUGE])
            }
            (_, SizeStep::Extent { .. } | SizeStep::Room { .. } | SizeStep::Given(_)) => all,
            (_, SizeStep::Element { least, .. }) => [least.into(), all[1]],
        };
        bounds.push([least.clamp(-HUGE, HUGE), most.clamp(-HUGE, HUGE)]);
    }
    let most = of(size, &bounds)[1];
    i64::try_from(most).ok().filter(|&most| most < LARGEST_EXTENT)
}

/// What `a op b` is at least and at most.
fn of_binary(op: BinaryOp, a: [i128; 2], b: [i128; 2]) -> Option<[i128; 2]> {
    let corners = |of: fn(i128, i128) -> i128| {
        let ends = [of(a[0], b[0]), of(a[0], b[1]), of(a[1], b[0]), of(a[1], b[1])];
        ends.iter().fold([ends[0]; 2], |[least, most], &end| [least.min(end), most.max(end)])
    };
    match op {
        BinaryOp::Add => Some(corners(|a, b| a + b)),
        BinaryOp::Sub => Some(corners(|a, b| a - b)),
        BinaryOp::Mul => Some(corners(i128::saturating_mul)),
        BinaryOp::FloorDiv if b[0] > 0 => Some(corners(i128::div_euclid)),
        BinaryOp::FloorMod if b[0] > 0 => Some([0, b[1] - 1]),
        BinaryOp::Min => Some(corners(i128::min)),
        BinaryOp::Max => Some(corners(i128::max)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(op: BinaryOp, a: Size, b: Size) -> SizeStep {
        SizeStep::Binary { op, a, b }
    }

    #[test]
    fn bounds_follow_from_those_of_symbols() {
        let [n, m] = [0, 1].map(Size::Computed);
        let mut steps =
            vec![SizeStep::Extent { input: 0, axis: 0 }, SizeStep::Extent { input: 0, axis: 1 }];
        let range = |size, least, most| RangedSize {
            name: String::new(),
            size,
            range: DimRange { least, most },
        };
        let ranges = [range(n, 3, Some(10)), range(m, 1, None)];
        let five = Size::Known(5);
        let mut largest_of = |step: SizeStep| {
            steps.push(step);
            largest(&steps, Size::Computed(steps.len() - 1), &ranges)
        };
        assert_eq!(largest_of(binary(BinaryOp::Mul, n, five)), Some(50));
        assert_eq!(largest_of(binary(BinaryOp::Sub, five, n)), Some(2));
        assert_eq!(largest_of(binary(BinaryOp::FloorDiv, Size::Computed(2), n)), Some(16));
        assert_eq!(largest_of(binary(BinaryOp::FloorMod, m, n)), Some(9));
        assert_eq!(largest_of(binary(BinaryOp::Min, m, n)), Some(10));
        assert_eq!(largest_of(binary(BinaryOp::Max, five, n)), Some(10));
        assert_eq!(largest_of(SizeStep::Found { number: 0, most: Size::Computed(2) }), Some(50));
        // Of what has no bound nothing is known, however often it is multiplied.
        assert_eq!(largest_of(binary(BinaryOp::Add, m, n)), None);
        let mut square = m;
        for at in 0..8 {
            assert_eq!(largest_of(binary(BinaryOp::Mul, square, square)), None);
            square = Size::Computed(10 + at);
        }
        assert_eq!(largest(&steps, five, &ranges), Some(5));
    }
}
