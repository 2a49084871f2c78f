//! What a rule works with: a call, the adjoint of its result, and arithmetic.

use tenon_plugin_api::prelude::*;

/// A call whose adjoint is handed on to its arguments.
pub(super) struct Step<'a> {
    pub(super) rw: &'a mut Rewriter,
    pub(super) call: Call,
    /// The variable that holds the result of the call.
    pub(super) value: Expr,
    /// The adjoint of the result; of a tuple, those of its fields.
    pub(super) grads: Vec<Option<Expr>>,
}

/// What a call contributes to the adjoint of an argument.
pub(super) enum Grad {
    /// Nothing.
    Zero,
    /// This.
    Of(Expr),
    /// To each field of a tuple.
    Fields(Vec<Expr>),
}

/// What a call contributes to each argument, or why that is not known.
pub(super) type Grads = Result<Vec<Grad>>;

/// The one contribution of a call of one argument.
pub(super) fn one(grad: Expr) -> Grads {
    Ok(vec![Grad::Of(grad)])
}

impl Step<'_> {
    /// Argument `index`.
    pub(super) fn arg(&self, index: usize) -> Expr {
        self.call.args[index]
    }

    /// The adjoint of the result.
    pub(super) fn grad(&self) -> Expr {
        self.grads.first().copied().flatten().expect("a call with one result has one adjoint")
    }

    /// The attributes of the call.
    pub(super) fn attrs(&self) -> AttrsView<'_> {
        self.rw.terms().attrs(self.call.attrs)
    }

    /// Element type and dimensions of a tensor.
    pub(super) fn tensor(&self, expr: Expr) -> Result<(DType, Vec<Dim>)> {
        self.rw.tensor(expr).ok_or_else(|| PassError::new("the rank of a tensor is not known"))
    }

    /// The extents of a tensor.
    pub(super) fn extents(&self, expr: Expr) -> Result<Vec<i64>> {
        self.rw.extents(expr).ok_or_else(|| PassError::new("the extents of a tensor are not known"))
    }

    /// The number of dimensions of a tensor.
    pub(super) fn rank(&self, expr: Expr) -> Result<i64> {
        Ok(self.tensor(expr)?.1.len() as i64)
    }

    /// An operator without attributes.
    pub(super) fn op(&mut self, op: &str, args: &[Expr]) -> Expr {
        self.rw.apply(op, args)
    }

    pub(super) fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.op("add", &[a, b])
    }

    pub(super) fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        self.op("subtract", &[a, b])
    }

    pub(super) fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        self.op("multiply", &[a, b])
    }

    pub(super) fn div(&mut self, a: Expr, b: Expr) -> Expr {
        self.op("divide", &[a, b])
    }

    /// A number of the element type of `like`.
    pub(super) fn number(&mut self, like: Expr, value: f64) -> Expr {
        let ty = self.rw.body().ty(like);
        let dtype = match ty.map(|ty| self.rw.terms().ty(ty)) {
            Some(TypeView::Tensor { dtype, .. }) => dtype,
            _ => DType::F32,
        };
        self.rw.number(dtype, value).expect("a float type has every number, rounded")
    }

    /// `x * factor`.
    pub(super) fn scale(&mut self, x: Expr, factor: f64) -> Expr {
        let factor = self.number(x, factor);
        self.mul(x, factor)
    }

    /// `x + number`.
    pub(super) fn plus(&mut self, x: Expr, number: f64) -> Expr {
        let number = self.number(x, number);
        self.add(x, number)
    }

    /// `grad` where a comparison of `a` and `b` holds, zero elsewhere.
    pub(super) fn masked(&mut self, comparison: &str, a: Expr, b: Expr, grad: Expr) -> Expr {
        let mask = self.op(comparison, &[a, b]);
        let zero = self.number(grad, 0.0);
        self.op("where", &[mask, grad, zero])
    }

    /// 1 where a comparison holds, 0 elsewhere, in the element type of `a`.
    pub(super) fn indicator(&mut self, comparison: &str, a: Expr, b: Expr) -> Expr {
        let one = self.number(a, 1.0);
        self.masked(comparison, a, b, one)
    }

    /// A reduction along axes.
    pub(super) fn reduce(&mut self, op: &str, x: Expr, axes: &[i64], keepdims: bool) -> Expr {
        match axes.is_empty() {
            true => x,
            false => {
                let attrs = [("axis", axes.into()), ("keepdims", keepdims.into())];
                self.rw.apply_with(op, &[x], &attrs)
            }
        }
    }

    /// `grad` summed over what broadcasting repeated, in the shape of `like`.
    pub(super) fn sum_to(&mut self, grad: Expr, like: Expr) -> Result<Expr> {
        let (_, from) = self.tensor(grad)?;
        let (_, to) = self.tensor(like)?;
        let one = self.rw.cx().dim(1);
        let missing = from.len() - to.len();
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
        Ok(self.rw.reshape(sum, &to))
    }

    /// `x` repeated to the shape of `like`.
    pub(super) fn broadcast_like(&mut self, x: Expr, like: Expr) -> Result<Expr> {
        let (_, dims) = self.tensor(like)?;
        if self.tensor(x)?.1 == dims {
            return Ok(x);
        }
        let shape = self.rw.shape(&dims);
        Ok(self.op("broadcast_to", &[x, shape]))
    }

    /// `x` in the shape of `like`, whose rank need not be known.
    pub(super) fn reshape_like(&mut self, x: Expr, like: Expr) -> Expr {
        match self.rw.tensor(like) {
            Some((_, dims)) => self.rw.reshape(x, &dims),
            None => {
                let shape = self.op("shape_of", &[like]);
                self.op("reshape", &[x, shape])
            }
        }
    }

    /// Zeros of the type of `like`.
    pub(super) fn zeros_like(&mut self, like: Expr) -> Result<Expr> {
        let zeros = self.rw.body().ty(like).and_then(|ty| zeros(self.rw, ty));
        zeros.ok_or_else(|| PassError::new("the rank of a tensor is not known"))
    }

    /// The axes that an attribute names, none negative; all when it is not given.
    pub(super) fn axes(&self, name: &str, rank: i64) -> Vec<i64> {
        let attrs = self.attrs();
        let given = attrs.ints(name).or_else(|| attrs.int(name).map(|axis| vec![axis]));
        let given = given.unwrap_or_else(|| (0..rank).collect());
        given.into_iter().map(|axis| axis.rem_euclid(rank.max(1))).collect()
    }

    /// The axis that the attribute `axis` names, not negative.
    pub(super) fn axis(&self, default: i64, rank: i64) -> i64 {
        self.attrs().int("axis").unwrap_or(default).rem_euclid(rank.max(1))
    }

    /// Zeros before and after each axis.
    pub(super) fn pad(&mut self, x: Expr, widths: &[[i64; 2]]) -> Expr {
        match widths.iter().flatten().all(|&width| width == 0) {
            true => x,
            false => self.rw.apply_with("nn.pad", &[x], &[("pad_width", widths.concat().into())]),
        }
    }

    /// `x` with `step - 1` zeros between its elements along an axis.
    pub(super) fn spread(&mut self, x: Expr, axis: usize, step: i64) -> Result<Expr> {
        let shape = self.extents(x)?;
        if step == 1 || shape[axis] <= 1 {
            return Ok(x);
        }
        let mut apart = shape.clone();
        apart.insert(axis + 1, 1);
        let mut widths = vec![[0, 0]; apart.len()];
        widths[axis + 1] = [0, step - 1];
        let apart = self.reshape(x, &apart);
        let padded = self.pad(apart, &widths);
        let mut joined = shape.clone();
        joined[axis] *= step;
        let joined = self.reshape(padded, &joined);
        let count = (shape[axis] - 1) * step + 1;
        Ok(self.rw.slice(joined, axis as i64, 0, count))
    }

    /// The elements in a shape of integers.
    pub(super) fn reshape(&mut self, x: Expr, shape: &[i64]) -> Expr {
        let dims: Vec<Dim> = shape.iter().map(|&extent| self.rw.cx().dim(extent)).collect();
        self.rw.reshape(x, &dims)
    }
}

/// Zeros of a tensor type of known rank.
pub(super) fn zeros(rw: &mut Rewriter, ty: Type) -> Option<Expr> {
    let (dtype, dims) = rw.terms().tensor(ty)?;
    let (dtype, dims) = (dtype, dims.to_vec());
    let shape = rw.shape(&dims);
    let attrs = [("value", 0.0.into()), ("dtype", dtype.to_string().into())];
    Some(rw.apply_with("full", &[shape], &attrs))
}
