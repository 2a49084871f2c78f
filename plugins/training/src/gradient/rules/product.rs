//! Products and convolutions.

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grad, Grads, Step};

/// The adjoint of a product in the element type of its arguments: sums may be wider.
fn narrowed(s: &mut Step<'_>) -> Result<Expr> {
    let g = s.grad();
    let (dtype, _) = s.tensor(s.arg(0))?;
    Ok(match s.tensor(g)?.0 == dtype {
        true => g,
        false => s.rw.apply_with("cast", &[g], &[("dtype", dtype.to_string().into())]),
    })
}

/// A product with its arguments transposed or not.
fn product(s: &mut Step<'_>, a: (Expr, bool), b: (Expr, bool)) -> Expr {
    let flags = [("transpose_a", a.1), ("transpose_b", b.1)];
    let attrs: Vec<(&str, AttrValue)> =
        flags.into_iter().filter(|flag| flag.1).map(|(name, flag)| (name, flag.into())).collect();
    s.rw.apply_with("matmul", &[a.0, b.0], &attrs)
}

/// `g b'`, `a' g`, where `'` transposes; transposed themselves where the argument is given so.
pub(super) fn matmul(s: &mut Step<'_>) -> Grads {
    let (a, b) = (s.arg(0), s.arg(1));
    let flag = |name| s.attrs().bool(name).unwrap_or(false);
    let (flip_a, flip_b) = (flag("transpose_a"), flag("transpose_b"));
    let g = narrowed(s)?;
    let grad_a = match flip_a {
        false => product(s, (g, false), (b, !flip_b)),
        true => product(s, (b, flip_b), (g, true)),
    };
    let grad_b = match flip_b {
        false => product(s, (a, !flip_a), (g, false)),
        true => product(s, (g, true), (a, flip_a)),
    };
    let grad_a = s.sum_to(grad_a, a)?;
    let grad_b = s.sum_to(grad_b, b)?;
    Ok(vec![Grad::Of(grad_a), Grad::Of(grad_b)])
}

/// `g w`, `g' x`, with all rows of the data as one axis.
pub(super) fn dense(s: &mut Step<'_>) -> Grads {
    let is_packed = s.attrs().str("weight_layout").is_some_and(|layout| layout != "NK");
    if is_packed || s.attrs().term("units").is_some() {
        return Err(PassError::new("its weight is packed"));
    }
    let (x, weight) = (s.arg(0), s.arg(1));
    let g = narrowed(s)?;
    let rows = |s: &mut Step<'_>, x: Expr| -> Result<Expr> {
        let (_, dims) = s.tensor(x)?;
        let (&last, rows) =
            dims.split_last().ok_or_else(|| PassError::new("a tensor has no dimensions"))?;
        let cx = s.rw.cx();
        let count = rows.iter().fold(cx.dim(1), |count, &dim| cx.dim_mul(count, dim));
        Ok(s.rw.reshape(x, &[count, last]))
    };
    let (g_rows, x_rows) = (rows(s, g)?, rows(s, x)?);
    let grad_x = product(s, (g_rows, false), (weight, false));
    let grad_x = s.reshape_like(grad_x, x);
    let grad_weight = product(s, (g_rows, true), (x_rows, false));
    Ok(vec![Grad::Of(grad_x), Grad::Of(grad_weight)])
}

/// How a convolution moves, for data and weights in their plain layouts.
struct Conv {
    data: [i64; 4],
    kernel: [i64; 4],
    out: [i64; 4],
    strides: [i64; 2],
    padding: [i64; 4],
    dilation: [i64; 2],
    groups: i64,
}

impl Conv {
    fn of(s: &Step<'_>) -> Result<Self> {
        let attrs = s.attrs();
        let is_plain =
            |name, plain: &str| attrs.str(name).is_none_or(|own| own.is_empty() || own == plain);
        let is_plain = is_plain("data_layout", "NCHW")
            && is_plain("kernel_layout", "OIHW")
            && is_plain("out_layout", "NCHW");
        if !is_plain {
            return Err(PassError::new("its layouts are other than NCHW and OIHW"));
        }
        let four = |shape: Vec<i64>| {
            <[i64; 4]>::try_from(shape).map_err(|_| PassError::new("it has no four axes"))
        };
        let ints = |name, default: &[i64]| attrs.ints(name).unwrap_or_else(|| default.to_vec());
        let pair = |values: Vec<i64>| [values[0], values[1]];
        let padding = ints("padding", &[0; 4]);
        Ok(Self {
            data: four(s.extents(s.arg(0))?)?,
            kernel: four(s.extents(s.arg(1))?)?,
            out: four(s.extents(s.value)?)?,
            strides: pair(ints("strides", &[1, 1])),
            padding: [padding[0], padding[1], padding[2], padding[3]],
            dilation: pair(ints("dilation", &[1, 1])),
            groups: attrs.int("groups").unwrap_or(1),
        })
    }

    /// The extent of the data with its padding, along one spatial axis.
    fn padded(&self, axis: usize) -> i64 {
        self.data[axis + 2] + self.padding[axis] + self.padding[axis + 2]
    }
}

/// To the data: `g`, spread by the strides, convolved with the kernels mirrored and with their channels swapped.
/// To the kernels: the data convolved with `g`, images taken as channels, and strides as dilations.
pub(super) fn conv2d(s: &mut Step<'_>) -> Grads {
    let conv = Conv::of(s)?;
    let g = narrowed(s)?;
    let data = grad_of_data(s, &conv, g)?;
    let kernel = grad_of_kernel(s, &conv, g);
    Ok(vec![Grad::Of(data), Grad::Of(kernel)])
}

fn grad_of_data(s: &mut Step<'_>, conv: &Conv, g: Expr) -> Result<Expr> {
    let [outputs, inputs, height, width] = conv.kernel;
    let per_group = outputs / conv.groups;
    // From [groups * outputs, inputs] to [groups * inputs, outputs], each kernel mirrored.
    let apart = s.reshape(s.arg(1), &[conv.groups, per_group, inputs, height, width]);
    let swapped = s.rw.transpose(apart, &[0, 2, 1, 3, 4]);
    let joined = s.reshape(swapped, &[conv.groups * inputs, per_group, height, width]);
    let attrs: [(&str, AttrValue); 4] = [
        ("axes", vec![2, 3].into()),
        ("begin", vec![-1, -1].into()),
        ("end", vec![i64::MIN, i64::MIN].into()),
        ("strides", vec![-1, -1].into()),
    ];
    let kernel = s.rw.apply_with("strided_slice", &[joined], &attrs);

    let mut spread = g;
    let mut widths = [[0, 0]; 4];
    for axis in 0..2 {
        spread = s.spread(spread, axis + 2, conv.strides[axis])?;
        let reach = (conv.kernel[axis + 2] - 1) * conv.dilation[axis];
        let length = (conv.out[axis + 2] - 1) * conv.strides[axis] + 1;
        widths[axis + 2] = [reach, conv.padded(axis) - length];
    }
    let spread = s.pad(spread, &widths);
    let attrs = [("dilation", conv.dilation.to_vec().into()), ("groups", conv.groups.into())];
    let mut grad = s.rw.apply_with("nn.conv2d", &[spread, kernel], &attrs);
    for axis in 0..2 {
        let before = conv.padding[axis];
        if conv.padded(axis) != conv.data[axis + 2] {
            grad = s.rw.slice(grad, axis as i64 + 2, before, before + conv.data[axis + 2]);
        }
    }
    Ok(grad)
}

fn grad_of_kernel(s: &mut Step<'_>, conv: &Conv, g: Expr) -> Expr {
    let [batch, channels, height, width] = conv.data;
    let [outputs, inputs, kernel_h, kernel_w] = conv.kernel;
    let (groups, per_group) = (conv.groups, outputs / conv.groups);
    let [_, _, out_h, out_w] = conv.out;
    // From [images, groups * inputs] to [inputs, groups * images].
    let apart = s.reshape(s.arg(0), &[batch, groups, inputs, height, width]);
    let swapped = s.rw.transpose(apart, &[2, 1, 0, 3, 4]);
    let data = s.reshape(swapped, &[channels / groups, groups * batch, height, width]);
    // From [images, groups * outputs] to [groups * outputs, images].
    let apart = s.reshape(g, &[batch, groups * per_group, out_h, out_w]);
    let kernel = s.rw.transpose(apart, &[1, 0, 2, 3]);
    let attrs = [
        ("dilation", conv.strides.to_vec().into()),
        ("groups", groups.into()),
        ("padding", conv.padding.to_vec().into()),
        ("strides", conv.dilation.to_vec().into()),
    ];
    let grad = s.rw.apply_with("nn.conv2d", &[data, kernel], &attrs);
    let grad = s.rw.slice(grad, 2, 0, kernel_h);
    let grad = s.rw.slice(grad, 3, 0, kernel_w);
    s.rw.transpose(grad, &[1, 0, 2, 3])
}
