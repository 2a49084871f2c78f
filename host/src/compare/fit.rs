//! Two tensors as the same numbers, in whatever layout one of them is.

use super::Error;
use crate::eval::Tensor;

/// So many orders of axes are tried.
const MOST_RANK: usize = 5;

/// How a result fits to a number of the model.
pub(super) struct Fit {
    pub(super) error: Error,
}

/// Compares a result with what is expected: as it lies, without axes of one element, with an axis in blocks that stand last, or
/// with its axes in another order, of which the best counts. None where no layout has its shape.
pub(super) fn fit(expected: &Tensor, found: &Tensor) -> Option<Fit> {
    let numbers = |tensor: &Tensor| -> Option<Vec<f64>> {
        let width = (tensor.dtype().bits() as usize).div_ceil(8);
        let elements = tensor.bytes().chunks_exact(width.max(1));
        elements.map(|element| tensor.dtype().decode(element)).collect()
    };
    let places = places(expected.shape(), found.shape())?;
    let (expected, found) = (numbers(expected)?, numbers(found)?);
    let errors = places.into_iter().map(|place| error(&expected, &found, &place));
    errors.min_by(|a, b| a.relative.total_cmp(&b.relative)).map(|error| Fit { error })
}

/// For each layout that the shapes allow, where each element of the expected tensor stands in the one that was found.
fn places(expected: &[usize], found: &[usize]) -> Option<Vec<Vec<usize>>> {
    let kept = |shape: &[usize]| -> Vec<usize> {
        shape.iter().copied().filter(|&extent| extent != 1).collect()
    };
    let count: usize = expected.iter().product();
    if kept(expected) == kept(found) {
        return Some(vec![(0..count).collect()]);
    }
    if let Some(place) = in_blocks(expected, found) {
        return Some(vec![place]);
    }
    let (mut a, mut b) = (expected.to_vec(), found.to_vec());
    a.sort_unstable();
    b.sort_unstable();
    (a == b && a.len() <= MOST_RANK).then(|| in_other_orders(expected, found))
}

/// An axis that is cut into blocks, whose elements stand last: `NCHW` as `NCHW16c`.
fn in_blocks(expected: &[usize], found: &[usize]) -> Option<Vec<usize>> {
    let (&block, outer) = found.split_last()?;
    if outer.len() != expected.len() || block == 0 {
        return None;
    }
    let differs = |&axis: &usize| outer[axis] != expected[axis];
    let axis = (0..outer.len()).find(differs)?;
    let is_cut = outer[axis] == expected[axis].div_ceil(block);
    if !is_cut || (axis + 1..outer.len()).any(|axis| outer[axis] != expected[axis]) {
        return None;
    }
    let place = |index: &[usize]| {
        let of_axis = |at: usize| if at == axis { index[at] / block } else { index[at] };
        let start = (0..outer.len()).fold(0, |place, at| place * outer[at] + of_axis(at));
        start * block + index[axis] % block
    };
    Some(indices(expected).map(|index| place(&index)).collect())
}

/// Each order of axes that has the shape.
fn in_other_orders(expected: &[usize], found: &[usize]) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for &extent in found {
        orders = orders
            .into_iter()
            .flat_map(|order| {
                let axes = 0..expected.len();
                let free = axes.filter(|axis| expected[*axis] == extent && !order.contains(axis));
                let longer = |axis| [order.as_slice(), &[axis]].concat();
                free.map(longer).collect::<Vec<_>>()
            })
            .collect();
    }
    let place = |order: &[usize], index: &[usize]| {
        order.iter().zip(found).fold(0, |place, (&axis, extent)| place * extent + index[axis])
    };
    let places =
        orders.iter().map(|order| indices(expected).map(|index| place(order, &index)).collect());
    places.collect()
}

/// The indices of all elements of a shape, in order.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let count = shape.iter().product::<usize>();
    (0..count).map(move |mut at| {
        let mut index = vec![0; shape.len()];
        for (index, &extent) in index.iter_mut().zip(shape).rev() {
            *index = at % extent;
            at /= extent;
        }
        index
    })
}

/// The largest difference. What is no number, or infinite, has to be the same.
fn error(expected: &[f64], found: &[f64], place: &[usize]) -> Error {
    let finite = expected.iter().copied().filter(|number| number.is_finite());
    let largest = finite.map(f64::abs).fold(0.0, f64::max);
    let off = |(expected, found): (f64, f64)| match () {
        () if expected == found || expected.is_nan() && found.is_nan() => 0.0,
        () if !expected.is_finite() || !found.is_finite() => f64::INFINITY,
        () if largest == 0.0 => f64::INFINITY,
        () => (expected - found).abs() / largest,
    };
    let pairs = expected.iter().copied().zip(place.iter().map(|&at| found[at]));
    let worst = pairs.enumerate().map(|(index, pair)| (off(pair), index, pair));
    let worst = worst.reduce(|worst, next| if next.0 > worst.0 { next } else { worst });
    let (relative, index, (expected, found)) = worst.unwrap_or((0.0, 0, (0.0, 0.0)));
    Error { relative, index, expected, found, of: place.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize]) -> Tensor {
        let count = shape.iter().product::<usize>();
        Tensor::from_vec(shape.to_vec(), (0..count).map(|at| at as f32).collect())
    }

    #[test]
    fn layouts_are_undone() {
        let expected = tensor(&[2, 3, 4]);
        let error = |found: &Tensor| fit(&expected, found).map(|fit| fit.error.relative);
        assert_eq!(error(&tensor(&[2, 1, 3, 4])), Some(0.0));
        // Channels in blocks of two, of which the last is half empty.
        let mut blocks = vec![0f32; 2 * 2 * 4 * 2];
        for (at, index) in indices(&[2, 3, 4]).enumerate() {
            let (n, c, w) = (index[0], index[1], index[2]);
            blocks[((n * 2 + c / 2) * 4 + w) * 2 + c % 2] = at as f32;
        }
        assert_eq!(error(&Tensor::from_vec(vec![2, 2, 4, 2], blocks)), Some(0.0));
        let turned = indices(&[4, 2, 3]).map(|at| (at[1] * 12 + at[2] * 4 + at[0]) as f32);
        assert_eq!(error(&Tensor::from_vec(vec![4, 2, 3], turned.collect())), Some(0.0));
        assert!(error(&tensor(&[4, 2, 3])).is_some_and(|error| error > 0.1));
        assert_eq!(error(&tensor(&[5, 5])), None);
    }

    #[test]
    fn what_is_no_number_has_to_be_none() {
        let of = |numbers: &[f32]| Tensor::from_vec(vec![numbers.len()], numbers.to_vec());
        let error = |a: &[f32], b: &[f32]| fit(&of(a), &of(b)).map(|fit| fit.error.relative);
        assert_eq!(error(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY]), Some(0.0));
        assert_eq!(error(&[f32::NAN, 1.0], &[0.0, 1.0]), Some(f64::INFINITY));
        assert_eq!(error(&[4.0, 1.0], &[4.0, 2.0]), Some(0.25));
    }
}
