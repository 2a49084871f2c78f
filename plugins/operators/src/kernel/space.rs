//! The index space of an operation on several arrays: extents, and for each array its strides.

use super::parallel::GRAIN;

/// Extents from the outermost axis on, and for each axis the strides of `K` arrays. Axes of extent 1 are
/// left out, and axes that all arrays step through alike are one axis. There is at least one axis.
#[derive(Debug)]
pub(crate) struct Space<const K: usize> {
    pub(crate) dims: Vec<usize>,
    pub(crate) strides: Vec<[isize; K]>,
}

impl<const K: usize> Space<K> {
    pub(crate) fn new(shape: &[usize], strides: [Vec<isize>; K]) -> Self {
        let mut space = Self { dims: Vec::new(), strides: Vec::new() };
        for (axis, &dim) in shape.iter().enumerate() {
            let here: [isize; K] = std::array::from_fn(|k| strides[k][axis]);
            if dim == 1 {
                continue;
            }
            match (space.dims.last_mut(), space.strides.last_mut()) {
                (Some(outer), Some(steps))
                    if (0..K).all(|k| steps[k] == here[k] * dim as isize) =>
                {
                    *outer *= dim;
                    *steps = here;
                }
                _ => {
                    space.dims.push(dim);
                    space.strides.push(here);
                }
            }
        }
        if space.dims.is_empty() {
            space.dims.push(1);
            space.strides.push([0; K]);
        }
        space
    }

    /// The space of arrays of shapes `inputs` that are broadcast to `shape`.
    pub(crate) fn broadcast(shape: &[usize], inputs: [&[usize]; K]) -> Self {
        Self::new(shape, inputs.map(|input| broadcast_strides(shape, input)))
    }

    /// The extent of the innermost axis and its strides: a row.
    pub(crate) fn row(&self) -> (usize, [isize; K]) {
        let last = self.dims.len() - 1;
        (self.dims[last], self.strides[last])
    }

    /// How many rows one thread takes.
    pub(crate) fn rows_at_once(&self) -> usize {
        (GRAIN / self.row().0.max(1)).max(1)
    }

    /// The offsets of the rows from number `first` on.
    pub(crate) fn rows(&self, first: usize) -> Rows<'_, K> {
        Rows::new(&self.dims[..self.dims.len() - 1], &self.strides, first)
    }
}

/// Walks through an index space in order, with the offset of each place in each array.
pub(crate) struct Rows<'a, const K: usize> {
    dims: &'a [usize],
    strides: &'a [[isize; K]],
    index: Vec<usize>,
    offset: [isize; K],
}

impl<'a, const K: usize> Rows<'a, K> {
    pub(crate) fn new(dims: &'a [usize], strides: &'a [[isize; K]], first: usize) -> Self {
        let mut index = vec![0; dims.len()];
        let mut offset = [0; K];
        let mut rest = first;
        for axis in (0..dims.len()).rev() {
            index[axis] = rest % dims[axis].max(1);
            rest /= dims[axis].max(1);
            (0..K).for_each(|k| offset[k] += index[axis] as isize * strides[axis][k]);
        }
        Self { dims, strides, index, offset }
    }
}

impl<const K: usize> Iterator for Rows<'_, K> {
    type Item = [isize; K];

    /// The offsets of this place; after the last one it starts again.
    #[inline]
    fn next(&mut self) -> Option<[isize; K]> {
        let here = self.offset;
        for axis in (0..self.dims.len()).rev() {
            self.index[axis] += 1;
            if self.index[axis] < self.dims[axis] {
                (0..K).for_each(|k| self.offset[k] += self.strides[axis][k]);
                break;
            }
            let back = self.dims[axis] as isize - 1;
            (0..K).for_each(|k| self.offset[k] -= back * self.strides[axis][k]);
            self.index[axis] = 0;
        }
        Some(here)
    }
}

/// The strides of a row-major array.
pub(crate) fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    strides
}

/// The strides of an array of shape `input` that is broadcast to `shape`: 0 where it is repeated.
pub(crate) fn broadcast_strides(shape: &[usize], input: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len() - input.len()];
    let own = row_major(input);
    strides.extend(input.iter().zip(own).map(|(&dim, stride)| if dim == 1 { 0 } else { stride }));
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_merged() {
        let space = Space::broadcast(&[8, 1, 3, 3], [&[8, 1, 3, 3], &[8, 1, 1, 1]]);
        assert_eq!(space.dims, [8, 9]);
        assert_eq!(space.strides, [[9, 1], [1, 0]]);
    }

    #[test]
    fn walking_can_start_anywhere() {
        let space = Space::new(&[2, 3, 2], [vec![1, 4, 100]]);
        let all: Vec<[isize; 1]> = space.rows(0).take(6).collect();
        assert_eq!(all, [[0], [4], [8], [1], [5], [9]]);
        assert_eq!(space.rows(4).next(), Some([5]));
    }
}
