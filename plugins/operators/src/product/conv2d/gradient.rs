//! The gradient of a convolution, which is two others.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::Conv2d;
use crate::product::factors::narrowed;

/// To the data: `g`, spread by the strides, convolved with the kernels mirrored and with their channels swapped.
/// To the kernels: the data convolved with `g`, images taken as channels, and strides as dilations.
#[rule(gradient)]
fn gradient(op: &Conv2d, at: &mut Adjoint<'_>) -> Result<Grads> {
    let is_plain = op.data_layout.text() == "NCHW"
        && op.kernel_layout.text() == "OIHW"
        && ["", "NCHW"].contains(&op.out_layout.as_str());
    if !is_plain {
        return Err(OpError::Unsupported("its layouts are other than NCHW and OIHW".into()));
    }
    let shape = Shape::of(at)?;
    let g = narrowed(at);
    let data = op.grad_of_data(at, &shape, g)?;
    let kernel = op.grad_of_kernel(at, &shape, g);
    Ok(Grads::of([data, kernel]))
}

/// The extents, in the plain layouts.
struct Shape {
    data: [i64; 4],
    kernel: [i64; 4],
    out: [i64; 4],
}

impl Shape {
    fn of(at: &Adjoint<'_>) -> Result<Self> {
        let four = |x| {
            let extents = <[i64; 4]>::try_from(at.extents(x)?);
            extents.map_err(|_| OpError::Unsupported("it has no four axes".into()))
        };
        Ok(Self { data: four(at.arg(0))?, kernel: four(at.arg(1))?, out: four(at.value())? })
    }
}

impl Conv2d {
    /// The extent of the data with its padding, along one spatial axis.
    fn padded(&self, shape: &Shape, axis: usize) -> i64 {
        shape.data[axis + 2] + self.padding[axis] + self.padding[axis + 2]
    }

    fn grad_of_data(&self, at: &mut Adjoint<'_>, shape: &Shape, g: Expr) -> Result<Expr> {
        let [outputs, inputs, height, width] = shape.kernel;
        let per_group = outputs / self.groups;
        // From [groups * outputs, inputs] to [groups * inputs, outputs], each kernel mirrored.
        let apart = at.reshape_to(at.arg(1), &[self.groups, per_group, inputs, height, width]);
        let swapped = at.transpose(apart, &[0, 2, 1, 3, 4]);
        let joined = at.reshape_to(swapped, &[self.groups * inputs, per_group, height, width]);
        let attrs: [(&str, AttrValue); 4] = [
            ("axes", vec![2, 3].into()),
            ("begin", vec![-1, -1].into()),
            ("end", vec![i64::MIN, i64::MIN].into()),
            ("strides", vec![-1, -1].into()),
        ];
        let kernel = at.apply_with("strided_slice", &[joined], &attrs);

        let mut spread = g;
        let mut widths = [[0, 0]; 4];
        for axis in 0..2 {
            spread = at.spread(spread, axis + 2, self.strides[axis])?;
            let reach = (shape.kernel[axis + 2] - 1) * self.dilation[axis];
            let length = (shape.out[axis + 2] - 1) * self.strides[axis] + 1;
            widths[axis + 2] = [reach, self.padded(shape, axis) - length];
        }
        let spread = at.pad(spread, &widths);
        let attrs = [("dilation", self.dilation.to_vec().into()), ("groups", self.groups.into())];
        let mut grad = at.apply_with("nn.conv2d", &[spread, kernel], &attrs);
        for axis in 0..2 {
            let before = self.padding[axis];
            if self.padded(shape, axis) != shape.data[axis + 2] {
                grad = at.slice(grad, axis as i64 + 2, before, before + shape.data[axis + 2]);
            }
        }
        Ok(grad)
    }

    fn grad_of_kernel(&self, at: &mut Adjoint<'_>, shape: &Shape, g: Expr) -> Expr {
        let [batch, channels, height, width] = shape.data;
        let [outputs, inputs, kernel_h, kernel_w] = shape.kernel;
        let (groups, per_group) = (self.groups, outputs / self.groups);
        let [_, _, out_h, out_w] = shape.out;
        // From [images, groups * inputs] to [inputs, groups * images].
        let apart = at.reshape_to(at.arg(0), &[batch, groups, inputs, height, width]);
        let swapped = at.transpose(apart, &[2, 1, 0, 3, 4]);
        let data = at.reshape_to(swapped, &[channels / groups, groups * batch, height, width]);
        // From [images, groups * outputs] to [groups * outputs, images].
        let apart = at.reshape_to(g, &[batch, groups * per_group, out_h, out_w]);
        let kernel = at.transpose(apart, &[1, 0, 2, 3]);
        let attrs = [
            ("dilation", self.strides.to_vec().into()),
            ("groups", groups.into()),
            ("padding", self.padding.to_vec().into()),
            ("strides", self.dilation.to_vec().into()),
        ];
        let grad = at.apply_with("nn.conv2d", &[data, kernel], &attrs);
        let grad = at.slice(grad, 2, 0, kernel_h);
        let grad = at.slice(grad, 3, 0, kernel_w);
        at.transpose(grad, &[1, 0, 2, 3])
    }
}
