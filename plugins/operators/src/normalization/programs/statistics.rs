//! Normalizations by the statistics of the tensor itself, of any extents.
//!
//! ```text
//! mean = sum of x[i] / n
//! inverse = 1 / sqrt(sum of (x[i] - mean)^2 / n + epsilon)
//! out[i] = (x[i] - mean) * inverse * gamma[i] + beta[i]
//! ```
//!
//! One group after the other. The mean is taken away before squaring, so that nothing cancels.

use tenon_plugin_api::ir::Dim;
use tenon_plugin_api::program::{Buffer, Extent, Program, Reducer, Scalar, Stmt};

use super::GroupAxes;

/// By mean and variance, with scale and shift.
pub(crate) fn standardize<'p>(program: &'p Program, groups: &GroupAxes<Dim>, epsilon: f64) -> Stmt {
    let [data, gamma, beta] = [0, 1, 2].map(|index| program.input(index));
    let out = program.output(0);
    let dtype = data.compute_dtype();
    by_group(program, groups, |group| {
        let mut body = program.block();
        let count = group.extents.iter().map(|extent| extent.index(program));
        let count = count.fold(program.index(1), |a, b| a * b).cast(dtype);
        let element = |inner: &[Scalar<'p>]| data.wide(&group.data(inner));
        let sum = body.reduce("sum", Reducer::Sum, dtype, &group.extents, element);
        let mean = body.bind("mean", sum / count);
        let squares = body.reduce("squares", Reducer::Sum, dtype, &group.extents, |inner| {
            let centred = element(inner) - mean;
            centred * centred
        });
        let deviation = (squares / count + epsilon).call("sqrt");
        let inverse = body.bind("inverse", program.literal(dtype, 1.0) / deviation);
        body.push(program.each(&group.extents, |inner| {
            let params = group.params(inner, &gamma);
            let normal = (element(inner) - mean) * inverse;
            out.set(&group.data(inner), normal * gamma.wide(&params) + beta.wide(&params))
        }));
        body.finish()
    })
}

/// By the root of the sum of squares.
pub(crate) fn l2_normalize<'p>(
    program: &'p Program,
    groups: &GroupAxes<Dim>,
    epsilon: f64,
) -> Stmt {
    let (data, out) = (program.input(0), program.output(0));
    let dtype = data.compute_dtype();
    by_group(program, groups, |group| {
        let mut body = program.block();
        let element = |inner: &[Scalar<'p>]| data.wide(&group.data(inner));
        let squares = body.reduce("squares", Reducer::Sum, dtype, &group.extents, |inner| {
            element(inner) * element(inner)
        });
        let length = squares.max(epsilon).call("sqrt");
        let inverse = body.bind("inverse", program.literal(dtype, 1.0) / length);
        body.push(
            program.each(&group.extents, |inner| {
                out.set(&group.data(inner), element(inner) * inverse)
            }),
        );
        body.finish()
    })
}

/// One group.
struct Group<'a, 'p> {
    groups: &'a GroupAxes<Dim>,
    /// Its place among the groups.
    outer: &'a [Scalar<'p>],
    /// The extents of the axes within it.
    extents: Vec<Dim>,
}

fn by_group<'p>(
    program: &'p Program,
    groups: &GroupAxes<Dim>,
    body: impl FnOnce(&Group<'_, 'p>) -> Stmt,
) -> Stmt {
    let extents = |inner| -> Vec<Dim> {
        groups.axes(inner).into_iter().map(|axis| groups.shape[axis]).collect()
    };
    program.each(&extents(false), |outer| body(&Group { groups, outer, extents: extents(true) }))
}

impl<'p> Group<'_, 'p> {
    /// The indices in the shape of the groups.
    fn indices(&self, inner: &[Scalar<'p>]) -> Vec<Scalar<'p>> {
        let (mut outer, mut inner) = (self.outer.iter(), inner.iter());
        let is_inner = self.groups.is_inner.iter();
        is_inner
            .filter_map(|is_inner| if *is_inner { inner.next() } else { outer.next() }.copied())
            .collect()
    }

    /// The indices in the data.
    fn data(&self, inner: &[Scalar<'p>]) -> Vec<Scalar<'p>> {
        let mut indices = self.indices(inner);
        if let Some(axis) = self.groups.divided {
            let channel = self.joined(&indices, axis);
            indices.splice(axis..axis + 2, [channel]);
        }
        indices
    }

    /// The indices in scale and shift, which have one axis for the channels, or the axes of the groups.
    fn params(&self, inner: &[Scalar<'p>], params: &Buffer<'p>) -> Vec<Scalar<'p>> {
        let indices = self.indices(inner);
        match self.groups.divided {
            Some(axis) => vec![self.joined(&indices, axis)],
            None => {
                let own = self.groups.params.iter().map(|&axis| indices[axis]);
                let own: Vec<Scalar<'p>> = own.collect();
                crate::program::index::broadcast(params.program(), params.shape(), &own)
            }
        }
    }

    fn joined(&self, indices: &[Scalar<'p>], axis: usize) -> Scalar<'p> {
        let each = self.groups.shape[axis + 1].index(indices[axis].program());
        indices[axis] * each + indices[axis + 1]
    }
}
