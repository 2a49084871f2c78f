//! A call whose adjoint is known, and what its rule builds from it.

use std::ops::{Deref, DerefMut};

use crate::abi::host::Host;
use crate::ir::{Attrs, BodyView, Build, Context, DType, Dim, Expr, NodeSpec, Terms, Type};
use crate::pass::{Arithmetic, Calls, PassError, Result};
use crate::rule::{AboutCall, Site};

use super::{Grad, Grads};

/// A call whose adjoint is known: what a rule of the facet `gradient` is given.
///
/// What it builds, it builds by [`Calls`] and [`Arithmetic`]. Of shapes that are not known its own methods say so in an error,
/// which a rule hands on.
pub struct Adjoint<'a> {
    site: Site<'a>,
    value: Expr,
    grads: Vec<Option<Expr>>,
}

impl<'a> Adjoint<'a> {
    pub(super) fn new(site: Site<'a>, value: Expr, grads: Vec<Option<Expr>>) -> Self {
        Self { site, value, grads }
    }

    /// What holds the result of the call: a rule that needs the result reads this, and does not compute it again.
    pub fn value(&self) -> Expr {
        self.value
    }

    /// The adjoint of the result, where that is one tensor.
    ///
    /// # Panics
    /// When the result is a tuple of which nothing reads the first tensor; see [`Adjoint::grads`].
    pub fn grad(&self) -> Expr {
        self.grads.first().copied().flatten().expect("a call with one result has one adjoint")
    }

    /// The adjoint of each tensor of the result, in order, also of those in inner tuples; `None` for one that nothing
    /// reads.
    pub fn grads(&self) -> &[Option<Expr>] {
        &self.grads
    }

    /// Nothing to any argument: the derivative is zero wherever there is one.
    pub fn nothing(&self) -> Grads {
        vec![Grad::Zero; self.call.args.len()].into()
    }

    /// A contribution to each argument, summed over what broadcasting repeated of it.
    ///
    /// # Errors
    /// As [`Adjoint::sum_to`].
    pub fn summed<const N: usize>(&mut self, mut grads: [Expr; N]) -> Result<Grads> {
        for (index, grad) in grads.iter_mut().enumerate() {
            *grad = self.sum_to(*grad, self.arg(index))?;
        }
        Ok(Grads::of(grads))
    }

    /// Element type and dimensions of a tensor.
    ///
    /// # Errors
    /// When its rank is not known.
    pub fn tensor(&self, x: Expr) -> Result<(DType, Vec<Dim>)> {
        Calls::tensor(&self.site, x).ok_or_else(unknown_rank)
    }

    /// The number of dimensions of a tensor.
    ///
    /// # Errors
    /// When it is not known.
    pub fn rank(&self, x: Expr) -> Result<i64> {
        Ok(self.tensor(x)?.1.len() as i64)
    }

    /// The extents of a tensor.
    ///
    /// # Errors
    /// When they are not all integers.
    pub fn extents(&self, x: Expr) -> Result<Vec<i64>> {
        let extents = Calls::extents(&self.site, x);
        extents.ok_or_else(|| PassError::new("the extents of a tensor are not known"))
    }

    /// An axis of a tensor, where a negative one counts from behind.
    ///
    /// # Errors
    /// When the rank of the tensor is not known.
    pub fn axis(&self, x: Expr, axis: i64) -> Result<i64> {
        Ok(axis.rem_euclid(self.rank(x)?.max(1)))
    }

    /// Axes of a tensor, where negative ones count from behind; all when they are not given.
    ///
    /// # Errors
    /// When the rank of the tensor is not known.
    pub fn axes(&self, x: Expr, axes: Option<&[i64]>) -> Result<Vec<i64>> {
        let rank = self.rank(x)?;
        let wrap = |axis: &i64| axis.rem_euclid(rank.max(1));
        Ok(axes.map_or_else(|| (0..rank).collect(), |axes| axes.iter().map(wrap).collect()))
    }

    /// `grad` summed over what broadcasting repeated, in the shape of `like`.
    ///
    /// # Errors
    /// When what was repeated is known at run time alone, or `like` cannot have been broadcast to the shape of `grad`.
    pub fn sum_to(&mut self, grad: Expr, like: Expr) -> Result<Expr> {
        let (_, from) = self.tensor(grad)?;
        let (_, to) = self.tensor(like)?;
        let one = self.with_cx(|cx| cx.dim(1));
        let Some(missing) = from.len().checked_sub(to.len()) else {
            return Err(PassError::new("a contribution has fewer dimensions than the argument"));
        };
        let mut axes: Vec<i64> = (0..missing as i64).collect();
        for (axis, (&from, &to)) in from[missing..].iter().zip(&to).enumerate() {
            match from == to {
                true => {}
                false if to == one => axes.push((missing + axis) as i64),
                false => {
                    return Err(PassError::new(
                        "which dimensions are broadcast is known at run time alone",
                    ));
                }
            }
        }
        let sum = self.reduce("sum", grad, &axes, true);
        Ok(self.reshape(sum, &to))
    }

    /// `x` repeated to the shape of `like`.
    ///
    /// # Errors
    /// When a rank is not known.
    pub fn broadcast_like(&mut self, x: Expr, like: Expr) -> Result<Expr> {
        let (_, dims) = self.tensor(like)?;
        if self.tensor(x)?.1 == dims {
            return Ok(x);
        }
        let shape = self.shape(&dims);
        Ok(self.apply("broadcast_to", &[x, shape]))
    }

    /// `x` in the shape of `like`, whose rank need not be known.
    pub fn reshape_like(&mut self, x: Expr, like: Expr) -> Expr {
        match Calls::tensor(&self.site, like) {
            Some((_, dims)) => self.reshape(x, &dims),
            None => {
                let shape = self.apply("shape_of", &[like]);
                self.apply("reshape", &[x, shape])
            }
        }
    }

    /// Zeros of the type of `like`.
    ///
    /// # Errors
    /// When its rank is not known.
    pub fn zeros_like(&mut self, like: Expr) -> Result<Expr> {
        let ty = self.body().ty(like);
        ty.and_then(|ty| self.zeros(ty)).ok_or_else(unknown_rank)
    }

    /// `x` with zeros before and after each axis; `x` itself where there are none.
    pub fn pad(&mut self, x: Expr, widths: &[[i64; 2]]) -> Expr {
        match widths.iter().flatten().all(|&width| width == 0) {
            true => x,
            false => self.apply_with("nn.pad", &[x], &[("pad_width", widths.concat().into())]),
        }
    }

    /// `x` with `step - 1` zeros between its elements along an axis.
    ///
    /// # Errors
    /// When the extents are not known.
    pub fn spread(&mut self, x: Expr, axis: usize, step: i64) -> Result<Expr> {
        let shape = self.extents(x)?;
        if step == 1 || shape[axis] <= 1 {
            return Ok(x);
        }
        let mut apart = shape.clone();
        apart.insert(axis + 1, 1);
        let mut widths = vec![[0, 0]; apart.len()];
        widths[axis + 1] = [0, step - 1];
        let apart = self.reshape_to(x, &apart);
        let padded = self.pad(apart, &widths);
        let mut joined = shape.clone();
        joined[axis] *= step;
        let joined = self.reshape_to(padded, &joined);
        let count = (shape[axis] - 1) * step + 1;
        Ok(self.slice(joined, axis as i64, 0, count))
    }
}

fn unknown_rank() -> PassError {
    PassError::new("the rank of a tensor is not known")
}

impl<'a> Deref for Adjoint<'a> {
    type Target = Site<'a>;

    fn deref(&self) -> &Site<'a> {
        &self.site
    }
}

impl DerefMut for Adjoint<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.site
    }
}

impl AboutCall for Adjoint<'_> {
    fn attrs_of_call(&self) -> (Attrs, Terms<'_>) {
        self.site.attrs_of_call()
    }
}

impl Build for Adjoint<'_> {
    type Cx = Host;

    fn cx(&self) -> Host {
        self.site.cx()
    }

    fn with_cx<R>(&self, work: impl FnOnce(&Host) -> R) -> R {
        self.site.with_cx(work)
    }

    fn body(&self) -> BodyView<'_> {
        self.site.body()
    }

    fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        self.site.push(spec, operands)
    }

    fn constant(&mut self, ty: Type, bytes: &[u8]) -> Expr {
        self.site.constant(ty, bytes)
    }
}

impl Calls for Adjoint<'_> {
    fn definition(&mut self, expr: Expr) -> Expr {
        self.site.definition(expr)
    }

    fn is_nested_read(&mut self, expr: Expr) -> bool {
        self.site.is_nested_read(expr)
    }
}
