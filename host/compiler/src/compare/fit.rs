//! Two tensors as the same numbers, in whatever layout one of them is.

use super::Error;
use crate::eval::Tensor;

/// So many orders of axes are tried.
const MOST_RANK: usize = 5;

/// Compares a result with what is expected: as it lies, without axes of one element, with an axis in blocks that stand last, or
/// with its axes in another order, of which the best counts. None where no layout has its shape.
pub(super) fn fit(expected: &Tensor, found: &Tensor) -> Option<Error> {
    let numbers = |tensor: &Tensor| -> Option<Vec<f64>> {
        let width = (tensor.dtype().bits() as usize).div_ceil(8);
        let elements = tensor.bytes().chunks_exact(width.max(1));
        elements.map(|element| tensor.dtype().decode(element)).collect()
    };
    let shapes = (expected.shape(), found.shape());
    let layouts = layouts(shapes.0, shapes.1)?;
    let (expected, found) = (numbers(expected)?, numbers(found)?);
    // One at a time, since each says a place for every element.
    let errors = layouts.into_iter().map(|layout| {
        let place = layout.places(shapes.0, shapes.1);
        error(&expected, &found, &place)
    });
    errors.min_by(|a, b| a.relative.total_cmp(&b.relative))
}

/// How one tensor lies in another shape.
enum Layout {
    /// In the same order.
    Same,
    /// An axis in blocks that stand last: `NCHW` as `NCHW16c`.
    Blocks { axis: usize },
    /// The axes in this order.
    Order(Vec<usize>),
}

/// The layouts that two shapes allow; none where there is none.
fn layouts(expected: &[usize], found: &[usize]) -> Option<Vec<Layout>> {
    let kept = |shape: &[usize]| -> Vec<usize> {
        shape.iter().copied().filter(|&extent| extent != 1).collect()
    };
    if kept(expected) == kept(found) {
        return Some(vec![Layout::Same]);
    }
    if let Some(axis) = axis_in_blocks(expected, found) {
        return Some(vec![Layout::Blocks { axis }]);
    }
    let (mut a, mut b) = (expected.to_vec(), found.to_vec());
    a.sort_unstable();
    b.sort_unstable();
    let orders = (a == b && a.len() <= MOST_RANK).then(|| orders(expected, found))?;
    Some(orders.into_iter().map(Layout::Order).collect())
}

impl Layout {
    /// Where each element of the expected tensor stands in the one that was found.
    fn places(&self, expected: &[usize], found: &[usize]) -> Vec<usize> {
        match self {
            Layout::Same => (0..expected.iter().product()).collect(),
            Layout::Blocks { axis } => {
                let Some((&block, outer)) = found.split_last() else { return Vec::new() };
                let place = |index: Vec<usize>| {
                    let of_axis =
                        |at: usize| if at == *axis { index[at] / block } else { index[at] };
                    let start =
                        (0..outer.len()).fold(0, |at, axis| at * outer[axis] + of_axis(axis));
                    start * block + index[*axis] % block
                };
                indices(expected).map(place).collect()
            }
            Layout::Order(order) => {
                let place = |index: Vec<usize>| {
                    let axes = order.iter().zip(found);
                    axes.fold(0, |place, (&axis, extent)| place * extent + index[axis])
                };
                indices(expected).map(place).collect()
            }
        }
    }
}

/// The axis that is cut into blocks, whose elements stand last.
fn axis_in_blocks(expected: &[usize], found: &[usize]) -> Option<usize> {
    let (&block, outer) = found.split_last()?;
    if outer.len() != expected.len() || block == 0 {
        return None;
    }
    let mut differing = (0..outer.len()).filter(|&axis| outer[axis] != expected[axis]);
    let axis = differing.next()?;
    let is_cut = outer[axis] == expected[axis].div_ceil(block);
    (is_cut && differing.next().is_none()).then_some(axis)
}

/// Each order of axes that has the shape.
fn orders(expected: &[usize], found: &[usize]) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for &extent in found {
        let longer = |order: Vec<usize>| {
            let axes = 0..expected.len();
            let free = axes.filter(|axis| expected[*axis] == extent && !order.contains(axis));
            free.map(|axis| [order.as_slice(), &[axis]].concat()).collect::<Vec<_>>()
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders
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
        let error = |found: &Tensor| fit(&expected, found).map(|error| error.relative);
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
        let error = |a: &[f32], b: &[f32]| fit(&of(a), &of(b)).map(|error| error.relative);
        assert_eq!(error(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY]), Some(0.0));
        assert_eq!(error(&[f32::NAN, 1.0], &[0.0, 1.0]), Some(f64::INFINITY));
        assert_eq!(error(&[4.0, 1.0], &[4.0, 2.0]), Some(0.25));
    }
}
