//! Short convolutions by products of polynomials at points, as programs write them.
//!
//! A kernel of three taps and `m + 2` elements of data are polynomials. Their values at `m + 2` points are multiplied, and `m` sums
//! come back (Cook and Toom; Winograd, "Arithmetic Complexity of Computations", 1980; Lavin and Gray, 2016, use it for images). The
//! points are zero, pairs `p, -p`, and infinity: values at a pair share the even and the odd part.

use tenon_plugin_api::ir::{BinaryOp, DType};
use tenon_plugin_api::program::{Program, Scalar};

use super::winograd_weights::TAPS;

/// The points at which polynomials are multiplied.
pub(super) struct Points {
    /// Those that are numbers: zero, and pairs.
    finite: Vec<f64>,
}

impl Points {
    /// Those for `tile` sums.
    pub(super) fn of(tile: i64) -> Self {
        let pairs = (tile as usize + TAPS - 3) / 2;
        let pairs = [1.0, 2.0].into_iter().take(pairs).flat_map(|point| [point, -point]);
        Self { finite: [0.0].into_iter().chain(pairs).collect() }
    }

    /// How many there are, the one at infinity among them.
    pub(super) fn count(&self) -> usize {
        self.finite.len() + 1
    }

    /// By how much a tap of the kernel counts at a point.
    pub(super) fn weight(&self, point: usize, tap: usize) -> f64 {
        let Some(&at) = self.finite.get(point) else {
            return if tap + 1 == TAPS { 1.0 } else { 0.0 };
        };
        let others = self.finite.iter().filter(|&&other| other != at);
        at.powi(tap as i32) / others.map(|other| at - other).product::<f64>()
    }

    /// By how much each element of the data counts at a point: the coefficients of a polynomial whose zeros the other points are.
    fn coefficients(&self, point: usize) -> Vec<f64> {
        let others = self.finite.iter().enumerate().filter(|&(other, _)| other != point);
        let mut product = vec![1.0];
        for (_, zero) in others {
            product.push(0.0);
            for at in (0..product.len()).rev() {
                let lower = if at > 0 { product[at - 1] } else { 0.0 };
                product[at] = lower - zero * product[at];
            }
        }
        product.resize(self.count(), 0.0);
        product
    }

    /// What the data is at the point with the number `point`.
    pub(super) fn of_data<'p>(&self, point: Scalar<'p>, data: &[Scalar<'p>]) -> Scalar<'p> {
        let at = |point: usize, parity: Option<usize>| {
            let coefficients = self.coefficients(point).into_iter().zip(data).enumerate();
            let wanted =
                coefficients.filter(|(at, _)| parity.is_none_or(|parity| at % 2 == parity));
            weighted(wanted.map(|(_, (weight, &value))| (weight, value)))
        };
        let last = self.count() - 1;
        let mut values = vec![at(0, None)];
        for pair in (1..last).step_by(2) {
            let (even, odd) = (at(pair, Some(0)), at(pair, Some(1)));
            values.extend([even + odd, even - odd]);
        }
        values.push(at(last, None));
        one_of(point, &values)
    }

    /// The sum with the number `place` of what the product is at the points.
    pub(super) fn sum<'p>(&self, place: Scalar<'p>, product: &[Scalar<'p>]) -> Scalar<'p> {
        let (last, places) = (self.count() - 1, self.count() + 1 - TAPS);
        let sums: Vec<Scalar<'p>> = (0..places)
            .map(|place| {
                let pairs = (1..last).step_by(2).map(|pair| {
                    let (plus, minus) = (product[pair], product[pair + 1]);
                    let both = if place % 2 == 0 { plus + minus } else { plus - minus };
                    (self.finite[pair].powi(place as i32), both)
                });
                let first = (place == 0).then_some((1.0, product[0]));
                let infinite = (place + 1 == places).then_some((1.0, product[last]));
                weighted(first.into_iter().chain(pairs).chain(infinite))
            })
            .collect();
        one_of(place, &sums)
    }
}

/// The sum of values by their weights; what counts nothing is left out.
fn weighted<'p>(values: impl Iterator<Item = (f64, Scalar<'p>)>) -> Scalar<'p> {
    let counted = values.filter(|&(weight, _)| weight != 0.0);
    let weighted = counted.map(|(weight, value)| match weight {
        1.0 => value,
        _ => value * weight,
    });
    weighted.reduce(|sum, value| sum + value).expect("a point counts some element")
}

/// The value with the number `index`.
fn one_of<'p>(index: Scalar<'p>, values: &[Scalar<'p>]) -> Scalar<'p> {
    let (&last, others) = values.split_last().expect("there is a value");
    others.iter().enumerate().rev().fold(last, |rest, (number, &value)| {
        index.binary(BinaryOp::Eq, number as i64).select(value, rest)
    })
}

/// A number of a table of so many rows and columns.
pub(super) fn table<'p>(
    program: &'p Program,
    dtype: DType,
    [row, column]: [Scalar<'p>; 2],
    [rows, columns]: [usize; 2],
    number: impl Fn(usize, usize) -> f64,
) -> Scalar<'p> {
    let of_row = |row: usize| {
        let numbers: Vec<_> =
            (0..columns).map(|column| program.literal(dtype, number(row, column))).collect();
        one_of(column, &numbers)
    };
    one_of(row, &(0..rows).map(of_row).collect::<Vec<_>>())
}
