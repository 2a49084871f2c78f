//! Convolutions and products with constant weights, and scales of their channels.

use tenon_plugin_api::prelude::*;

/// A convolution or product whose weight is a constant.
pub(crate) struct Product {
    pub(crate) op: &'static str,
    pub(crate) data: Expr,
    pub(crate) weight: Expr,
    pub(crate) attrs: Attrs,
    /// The axis of the channels of the result, and that of the weight.
    pub(crate) output: (usize, usize),
    /// The axis of the channels of the data, and that of the weight.
    pub(crate) input: Option<(usize, usize)>,
    /// The rank of the data, and of the result.
    pub(crate) rank: usize,
}

impl Product {
    /// The product that an expression is or stands for.
    pub(crate) fn of(rw: &mut Rewriter, expr: Expr) -> Option<Self> {
        const OPS: [&str; 3] = ["nn.conv2d", "nn.dense", "matmul"];
        let (op, call) = OPS.iter().find_map(|&op| Some((op, rw.call_of(expr, op)?)))?;
        let &[data, weight] = call.args.as_slice() else { return None };
        if !rw.is_constant(weight) {
            return None;
        }
        let rank = rw.rank(data)?;
        let shape = rw.extents(weight)?;
        let attrs = rw.terms().attrs(call.attrs);
        let (output, input) = match op {
            "nn.conv2d" => conv2d_axes(attrs, &shape)?,
            "nn.dense" => {
                let is_plain = attrs.str("weight_layout").unwrap_or("NK") == "NK";
                is_plain.then_some(((rank - 1, 0), Some((rank - 1, 1))))?
            }
            _ if shape.len() != 2 || attrs.bool("transpose_a") == Some(true) => return None,
            _ => {
                let flip = attrs.bool("transpose_b") == Some(true);
                ((rank - 1, !flip as usize), Some((rank - 1, flip as usize)))
            }
        };
        let attrs = call.attrs;
        Some(Self { op, data, weight, attrs, output, input, rank })
    }

    /// The product with other data and a weight that is scaled along one of its axes.
    pub(crate) fn scaled(
        &self,
        rw: &mut Rewriter,
        data: Expr,
        axis: usize,
        scale: Expr,
    ) -> Option<Expr> {
        let (weight_rank, count) = (rw.rank(self.weight)?, count(rw, scale)?);
        let mut shape = vec![1; weight_rank];
        shape[axis] = count;
        let dims: Vec<Dim> = shape.iter().map(|&extent| rw.cx().dim(extent)).collect();
        let scale = rw.reshape(scale, &dims);
        let weight = rw.apply("multiply", &[self.weight, scale]);
        Some(rw.call_op(self.op, &[data, weight], self.attrs))
    }

    /// Whether a constant is one number, or one for each channel along `axes`, which are those of a tensor
    /// of the product's rank and of its weight.
    pub(crate) fn is_scale(&self, rw: &mut Rewriter, scale: Expr, axes: (usize, usize)) -> bool {
        let (Some(shape), Some(weight)) = (rw.extents(scale), rw.extents(self.weight)) else {
            return false;
        };
        let channels = weight[axes.1];
        let count: i64 = shape.iter().product();
        let at = (axes.0 + shape.len()).checked_sub(self.rank);
        shape.len() <= self.rank
            && (count == 1 || (count == channels && at.is_some_and(|at| shape[at] == channels)))
    }
}

type Axes = (usize, usize);

/// The axes of a convolution whose layouts are plain; a grouped one has no axis of the data's channels in its
/// weight, but a depthwise one of a filter for each channel has.
fn conv2d_axes(attrs: AttrsView<'_>, weight: &[i64]) -> Option<(Axes, Option<Axes>)> {
    let data = attrs.str("data_layout").unwrap_or("NCHW");
    let out = attrs.str("out_layout").filter(|layout| !layout.is_empty()).unwrap_or(data);
    let kernel = attrs.str("kernel_layout").unwrap_or("OIHW");
    if [data, out, kernel].iter().any(|layout| layout.len() != 4) {
        return None;
    }
    let (o, i) = (kernel.find('O')?, kernel.find('I')?);
    let groups = attrs.int("groups").unwrap_or(1);
    let input = match groups {
        1 => Some((data.find('C')?, i)),
        _ if groups == weight[o] && weight[i] == 1 => Some((data.find('C')?, o)),
        _ => None,
    };
    Some(((out.find('C')?, o), input))
}

/// The number of elements.
fn count(rw: &Rewriter, expr: Expr) -> Option<i64> {
    Some(rw.extents(expr)?.iter().product())
}

/// Whether every element of a constant is a positive number, and finite.
pub(crate) fn is_positive(rw: &mut Rewriter, expr: Expr) -> bool {
    let definition = rw.definition(expr);
    let View::Constant(constant) = rw.view(definition) else { return false };
    let Some((dtype, _)) = rw.terms().tensor(constant.ty) else { return false };
    let width = (dtype.bits() as usize / 8).max(1);
    let is_positive = |element| dtype.decode(element).is_some_and(|x| x > 0.0 && x.is_finite());
    constant.bytes.chunks_exact(width).all(is_positive)
}

/// The argument that is a constant, last, and the other one, where exactly one is constant.
pub(crate) fn with_constant(rw: &mut Rewriter, call: &Call) -> Option<(Expr, Expr)> {
    let &[a, b] = call.args.as_slice() else { return None };
    match (rw.is_constant(a), rw.is_constant(b)) {
        (false, true) => Some((a, b)),
        (true, false) => Some((b, a)),
        _ => None,
    }
}
