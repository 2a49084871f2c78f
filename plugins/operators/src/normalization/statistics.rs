//! Normalizations by the tensor's own statistics: as arithmetic, and their gradients.
//!
//! At inference floats that are narrower than f32 are computed with in f32, as the operators do: a sum of squares is soon
//! beyond the range of f16.

use tenon_plugin_api::rule::prelude::*;

/// What is normalized by a mean and a variance, and along what gamma and beta run.
pub(crate) struct Statistics {
    /// The shape that the data is put into.
    pub(crate) dims: Vec<Dim>,
    /// The axes of it that one mean is over.
    pub(crate) inner: Vec<i64>,
    /// The axes of it that have a gamma and a beta of their own at each place.
    pub(crate) params: Vec<i64>,
    /// Keeps the root from zero.
    pub(crate) epsilon: f64,
}

/// Normalized data, and what its distance from the mean was multiplied by.
struct Normal {
    data: Expr,
    factor: Expr,
}

impl Statistics {
    /// `(x - mean) * rsqrt(variance + epsilon) * gamma + beta`, where gamma and beta run along `params` of the data in the
    /// shape that it has.
    pub(crate) fn written_out(&self, at: &mut Site<'_>, params: &[i64]) -> Option<Expr> {
        let [x, gamma, beta] = at.args()?;
        let (dtype, dims) = at.tensor(x)?;
        let x = wide(at, x);
        let x = at.reshape(x, &self.dims);
        let normal = self.standardized(at, x).data;
        let normal = at.reshape(normal, &dims);

        let one = at.with_cx(|cx| cx.dim(1));
        let extent = |axis: usize| if params.contains(&(axis as i64)) { dims[axis] } else { one };
        let first = params.iter().copied().min().unwrap_or(0) as usize;
        let shape: Vec<Dim> = (first..dims.len()).map(extent).collect();
        let [gamma, beta] = [gamma, beta].map(|param| {
            let param = wide(at, param);
            at.reshape(param, &shape)
        });
        let product = at.mul(normal, gamma);
        let sum = at.add(product, beta);
        Some(at.in_dtype(sum, dtype))
    }

    /// With `n = (x - mean) r` and `h = g gamma`: to x `r (h - mean(h) - n mean(h n))`, to gamma `sum(g n)`, to beta
    /// `sum(g)`. The means are over a group, the sums over all that one number of gamma and beta is for.
    pub(crate) fn gradient(&self, at: &mut Adjoint<'_>) -> Grads {
        let one = at.with_cx(|cx| cx.dim(1));
        let spread: Vec<Dim> = (0..)
            .zip(&self.dims)
            .map(|(axis, &dim)| if self.params.contains(&axis) { dim } else { one })
            .collect();
        let x = at.reshape(at.arg(0), &self.dims);
        let g = at.reshape(at.grad(), &self.dims);
        let gamma = at.reshape(at.arg(1), &spread);
        let normal = self.standardized(at, x);

        let h = at.mul(g, gamma);
        let shift = at.reduce("mean", h, &self.inner, true);
        let product = at.mul(h, normal.data);
        let slope = at.reduce("mean", product, &self.inner, true);
        let slope = at.mul(normal.data, slope);
        let rest = at.sub(h, shift);
        let rest = at.sub(rest, slope);
        let to_x = at.mul(rest, normal.factor);
        let to_x = at.reshape_like(to_x, at.arg(0));

        let rank = self.dims.len() as i64;
        let others: Vec<i64> = (0..rank).filter(|axis| !self.params.contains(axis)).collect();
        let product = at.mul(g, normal.data);
        let to_gamma = at.reduce("sum", product, &others, false);
        let to_gamma = at.reshape_like(to_gamma, at.arg(1));
        let to_beta = at.reduce("sum", g, &others, false);
        let to_beta = at.reshape_like(to_beta, at.arg(2));
        Grads::of([to_x, to_gamma, to_beta])
    }

    fn standardized(&self, at: &mut impl Calls, x: Expr) -> Normal {
        let mean = at.reduce("mean", x, &self.inner, true);
        let centered = at.sub(x, mean);
        let square = at.mul(centered, centered);
        let variance = at.reduce("mean", square, &self.inner, true);
        let spread = at.plus(variance, self.epsilon);
        let factor = at.apply("rsqrt", &[spread]);
        Normal { data: at.mul(centered, factor), factor }
    }
}

/// A tensor in the element type that its statistics are computed in.
pub(crate) fn wide(at: &mut Site<'_>, x: Expr) -> Expr {
    match at.dtype(x) {
        Some(DType::F16 | DType::BF16) => at.in_dtype(x, DType::F32),
        _ => x,
    }
}
