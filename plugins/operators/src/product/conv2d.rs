//! Convolution over two spatial axes, in any layout.
//!
//! ```ir
//! %y = nn.conv2d(%x, %w) { padding = [1, 1, 1, 1] }    f32[n, 3, 32, 32], f32[8, 3, 3, 3]  =>  f32[n, 8, 32, 32]
//! ```

mod gradient;

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::compute_dtype;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::convolution::{Convolution, dead_taps, program};
use super::taps::{Axis, PLANES, Tap};
use crate::kernel::convert::convert;
use crate::kernel::moves::{parse, relayout};
use crate::kernel::parallel::fill;
use crate::movement::pad::with_around;
use crate::onnx::spatial::Spatial;
use crate::onnx::steps::{extent_of, reshape_to};
use crate::onnx::window::{self, Image};
use crate::precision::gains_by_precision;

/// Convolution over two spatial axes
#[op(name = "nn.conv2d", args = 2, pattern = "out_fusable")]
pub struct Conv2d {
    /// step of the window
    #[attr(default = [1, 1])]
    pub(super) strides: [i64; 2],
    /// top, left, bottom, right
    #[attr(default = [0, 0, 0, 0])]
    pub(super) padding: [i64; 4],
    /// distance of the taps
    #[attr(default = [1, 1])]
    pub(super) dilation: [i64; 2],
    /// groups of channels that do not mix
    #[attr(default = 1)]
    pub(super) groups: i64,
    /// output channels, where the blocks of the kernel hold more
    pub(super) channels: Option<i64>,
    /// lines of zeros around the data, along all axes but the last, are left out, not multiplied
    #[attr(default = false)]
    pub(super) skip_lines: bool,
    /// NCHW, NHWC, NCHW16c, …
    #[attr(default = "NCHW")]
    pub(super) data_layout: Layout,
    /// OIHW, OIHW16i16o, OIHW16o, …
    #[attr(default = "OIHW")]
    pub(super) kernel_layout: Layout,
    /// data_layout when empty
    #[attr(default = "")]
    pub(super) out_layout: String,
    /// element type of the result: that of the data when empty, or f32 for f16 and bf16
    #[attr(default = "")]
    pub(super) out_dtype: String,
}

impl Operator for Conv2d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_same_dtype(1)?;
        let dtype = cx.product_dtype("out_dtype", &self.out_dtype)?;
        self.result(cx, dtype)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (dtype, _) = cx.out()?;
        // Elements of a wider type hold what the narrow ones are.
        let (data, kernel) = (convert(cx.arg(0)?, dtype)?, convert(cx.arg(1)?, dtype)?);
        Ok(vec![with_number!(dtype, T => self.computed::<T>(&data, &kernel))?])
    }
}

impl Conv2d {
    /// It as one of the convolutions.
    pub(super) fn convolution(&self) -> Convolution<'_> {
        Convolution {
            axes: b"HW",
            strides: &self.strides,
            padding: &self.padding,
            dilation: &self.dilation,
            groups: self.groups,
            channels: self.channels,
            skips_lines: self.skip_lines,
            data_layout: &self.data_layout,
            kernel_layout: &self.kernel_layout,
            out_layout: &self.out_layout,
        }
    }

    /// The type of the result, whose elements have this type.
    pub(super) fn result(&self, cx: &InferCx<'_>, dtype: DType) -> Result<Type> {
        self.convolution().result(cx, dtype, [b"NCHW", b"OIHW"])
    }

    /// The result in its layout, of data and a kernel in theirs.
    pub(super) fn computed<T: Number>(&self, data: &Tensor, kernel: &Tensor) -> Result<Tensor> {
        let out_layout = self.convolution().result_layout()?;
        let (plain, plain_kernel) = (parse("NCHW")?, parse("OIHW")?);
        let data = relayout(data, &self.data_layout, &plain)?;
        let kernel = relayout(kernel, &self.kernel_layout, &plain_kernel)?;
        relayout(&self.convolve::<T>(&data, &kernel)?, &plain, &out_layout)
    }
}

/// Without the taps that meet padding alone.
#[rule(simplify)]
fn simplify(op: &Conv2d, at: &mut Site<'_>) -> Option<Expr> {
    dead_taps::without(&op.convolution(), "nn.conv2d", at)
}

/// One element after the other.
#[rule(compute)]
fn program(op: &Conv2d, program: &mut Program) -> Option<()> {
    let dtype = compute_dtype(program.input(1).dtype());
    let beyond = program.literal(program.input(0).dtype(), 0.0);
    program::plain(&op.convolution(), program, dtype, beyond)
}

impl Conv2d {
    /// The result in the plain layouts.
    fn convolve<T: Number>(&self, data: &Tensor, kernel: &Tensor) -> Result<Tensor> {
        let Self { strides, padding, dilation, .. } = *self;
        let groups = self.groups as usize;
        let &[batch, channels, height, width] = data.shape() else { return rank_error() };
        let &[held, inputs, kernel_h, kernel_w] = kernel.shape() else { return rank_error() };
        let outputs = self.channels.map_or(held, |channels| channels as usize);
        let axis = |index: usize, extent: usize, taps: usize| {
            let (stride, dilation) = (strides[index] as usize, dilation[index] as usize);
            let padded = extent + (padding[index] + padding[index + 2]) as usize;
            let out = (padded - (taps - 1) * dilation - 1) / stride + 1;
            Axis { extent, out, stride, before: padding[index] as usize, dilation }
        };
        let (rows, columns) = (axis(0, height, kernel_h), axis(1, width, kernel_w));
        let plane = rows.out * columns.out;
        let (x, w) = (data.elements::<T>(), kernel.elements::<T>());
        let mut out = vec![T::default(); batch * outputs * plane];
        let per_group = outputs / groups;
        // A chunk never reaches over the end of a group.
        let planes = if per_group.is_multiple_of(PLANES) { PLANES } else { 1 };
        let taps: Vec<(usize, usize)> =
            (0..kernel_h).flat_map(|h| (0..kernel_w).map(move |w| (h, w))).collect();
        fill(&mut out, planes * plane, &|chunk, out| {
            let (image, output) = (chunk * planes / outputs, chunk * planes % outputs);
            let first_input = output / per_group * inputs;
            let mut sums = vec![T::Sum::default(); planes * plane];
            for input in 0..inputs {
                let source = (image * channels + first_input + input) * height * width;
                let source = &x[source..source + height * width];
                for (tap, &(tap_h, tap_w)) in taps.iter().enumerate() {
                    let weight =
                        |p: usize| w[((output + p) * inputs + input) * taps.len() + tap].widen();
                    let tap = Tap { rows, columns, tap_h, tap_w, skips_lines: self.skip_lines };
                    match planes {
                        PLANES => {
                            tap.add(source, &mut sums, std::array::from_fn::<_, PLANES, _>(weight))
                        }
                        _ => tap.add(source, &mut sums, [weight(0)]),
                    }
                }
            }
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::narrow(sum));
        });
        let shape = vec![batch, outputs, rows.out, columns.out];
        Ok(Tensor::from_vec_as(data.dtype(), shape, out))
    }
}

fn rank_error<T>() -> Result<T> {
    Err(OpError::Unsupported("tensors of four dimensions are expected".into()))
}

gains_by_precision!(Conv2d);

/// In the layouts that are wanted of data and kernel, NHWC and OHWI where nobody says.
#[rule(layout)]
fn layout(op: &Conv2d, at: &mut Following<'_>) -> Result<Option<Carried>> {
    let desired = at.desired.clone();
    let desired: Vec<&str> = desired.iter().map(String::as_str).collect();
    let [data, kernel] = match desired[..] {
        [] => ["NHWC", "OHWI"],
        [data, kernel] => [data, kernel],
        _ => return Err(OpError::Unsupported("it has two layouts, such as NHWC OHWI".into())),
    };
    for (layout, axes) in [(data, "NCHW"), (kernel, "OIHW")] {
        if order(axes, layout).is_none() {
            let text =
                format!("the layout {layout:?} does not have each of the axes of {axes} once");
            return Err(OpError::Unsupported(text));
        }
    }
    Ok(in_layouts(op, at, data, kernel))
}

fn in_layouts(op: &Conv2d, at: &mut Following<'_>, data: &str, kernel: &str) -> Option<Carried> {
    let (own, own_kernel) = (op.data_layout.text(), op.kernel_layout.text());
    let is_plain = op.out_layout.is_empty() || op.out_layout == own;
    if !is_plain || (own, own_kernel) == (data, kernel) {
        return None;
    }
    let (order, kernel_order) = (order(own, data)?, order(own_kernel, kernel)?);
    let [LayoutArg::One(x), LayoutArg::One(weight)] = &at.inputs.clone()[..] else { return None };
    let x = at.in_order(x, &order)?;
    let weight = at.in_order(weight, &kernel_order)?;
    let cx = at.cx();
    let attrs = cx.without_attr(at.call.attrs, "out_layout");
    let attrs = cx.with_attr(attrs, "data_layout", data.into());
    let attrs = cx.with_attr(attrs, "kernel_layout", kernel.into());
    let value = at.again(&[x, weight], attrs)?;
    Some(Carried { value, order })
}

/// For each axis of `to`, where it is in `from`; `None` when the axes are not the same four letters.
fn order(from: &str, to: &str) -> Option<Vec<usize>> {
    let places: Option<Vec<usize>> = to.chars().map(|axis| from.find(axis)).collect();
    let mut sorted = places.clone()?;
    sorted.sort_unstable();
    (from.len() == 4 && sorted == [0, 1, 2, 3]).then_some(places)?
}

/// For each element of the result a multiplication and an addition for each element of a kernel.
#[rule(cost)]
fn cost(op: &Conv2d, at: &mut Site<'_>) -> Option<Cost> {
    op.convolution().cost(at)
}

/// `Conv` over one, two or three spatial axes; the bias is added for each channel.
#[rule(import.onnx, key = "Conv", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    node.check_arity(2, 3)?;
    let (x, weight, bias) = (node.input(0)?, node.input(1)?, node.optional(2));
    Ok(vec![convolved(node, x, weight, bias)?])
}

/// The convolution that the attributes of a node say.
pub(crate) fn convolved(
    node: &mut Node<'_>,
    x: Value,
    weight: Value,
    bias: Option<Value>,
) -> Result<Value, Problem> {
    let (rank, own) = (node.dims(x)?.len(), node.dims(weight)?.len());
    if rank != own {
        return invalid(format!("its data have {rank} dimensions, its kernels {own}"));
    }
    if rank == 5 {
        return convolved_3d(node, x, weight, bias);
    }
    let mut image = Image::of(node, x)?;
    let weight = Image::of(node, weight)?;
    let mut kernel = [weight.dims[2], weight.dims[3]];
    if let Some(given) = image.pair(node, "kernel_shape")? {
        let known = kernel.map(|extent| node.terms().dim_value(extent));
        if let [Some(h), Some(w)] = known
            && given != [h, w]
        {
            return invalid(format!("its kernel_shape is {given:?}, but the weight's is {h}, {w}"));
        }
        kernel = given.map(|extent| node.cx().dim(extent));
    }
    let window = window::Window::of(node, &mut image, kernel)?;
    let mut attrs = window.attrs();
    attrs.push(("groups", node.int_or("group", 1)?.into()));
    let mut y = node.call("nn.conv2d", &[image.value, weight.value], &attrs)?;
    if let Some(bias) = bias {
        let bias = per_channel(node, bias, 2)?;
        y = node.apply("add", &[y, bias])?;
    }
    image.restore(node, y)
}

/// The same over three spatial axes.
fn convolved_3d(
    node: &mut Node<'_>,
    x: Value,
    weight: Value,
    bias: Option<Value>,
) -> Result<Value, Problem> {
    let (dims, kernel) = (node.dims(x)?, node.dims(weight)?);
    let extent = |&dim| extent_of(node, dim, "extent of a kernel");
    let extents: Vec<i64> = kernel[2..].iter().map(extent).collect::<Result<_, _>>()?;
    if let Some(given) = node.ints("kernel_shape")?.filter(|given| *given != extents) {
        return invalid(format!("its kernel_shape is {given:?}, but the weight's is {extents:?}"));
    }
    let (window, around) = Spatial::with_open(node, &dims[2..], extents)?;
    let x = around
        .into_iter()
        .try_fold(x, |x, (axis, around)| with_around(node, x, 2 + axis, around, 0.0))?;
    let attrs = [
        ("strides", window.strides.clone().into()),
        ("dilation", window.dilations.clone().into()),
        ("padding", window.padding().into()),
        ("groups", node.int_or("group", 1)?.into()),
    ];
    let mut y = node.call("nn.conv3d", &[x, weight], &attrs)?;
    if let Some(bias) = bias {
        let bias = per_channel(node, bias, 3)?;
        y = node.apply("add", &[y, bias])?;
    }
    Ok(y)
}

/// A vector of one element per channel, with `spatial` axes of extent 1 behind the channels.
fn per_channel(node: &mut Node<'_>, vector: Value, spatial: usize) -> Result<Value, Problem> {
    let &[channels] = node.dims(vector)?.as_slice() else {
        return invalid("a vector of one element per channel is expected");
    };
    let one = node.cx().dim(1);
    let mut dims = vec![one, channels];
    dims.resize(2 + spatial, one);
    reshape_to(node, vector, &dims)
}
