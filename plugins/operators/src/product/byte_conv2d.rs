//! Convolution of u8 or i8 with i8, whose sums are exact.
//!
//! ```ir
//! %y = nn.byte_conv2d(%x, %w, %z) { padding = [1, 1, 1, 1] }    u8[n, 4, 8, 8], i8[8, 4, 3, 3], u8[]  =>  i32[n, 8, 8, 8]
//! ```
//!
//! What lies beyond the data is `z`, of the data's dtype, the number that stands for zero: so the sums of a kernel say how much it moves a result,
//! wherever that is. In the layouts `NCHW16c` and `OIHW16o4i` quads of channels lie as instructions for dot products read them. Sums
//! are those of i32, exact up to 65,792 products.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::byte_dots::bytes;
use super::conv2d::Conv2d;
use super::convolution::program;
use crate::kernel::convert::convert;
use crate::kernel::moves::{parse, relayout};

/// Convolution of u8 or i8 with i8 over two spatial axes, in i32; beyond the data is the third argument
#[op(name = "nn.byte_conv2d", args = 3, pattern = "out_fusable")]
pub struct ByteConv2d {
    /// step of the window
    #[attr(default = [1, 1])]
    strides: [i64; 2],
    /// top, left, bottom, right
    #[attr(default = [0, 0, 0, 0])]
    padding: [i64; 4],
    /// distance of the taps
    #[attr(default = [1, 1])]
    dilation: [i64; 2],
    /// groups of channels that do not mix
    #[attr(default = 1)]
    groups: i64,
    /// NCHW, NHWC, NCHW16c, …
    #[attr(default = "NCHW")]
    data_layout: Layout,
    /// OIHW, OIHW16o4i, OIHW16o, …
    #[attr(default = "OIHW")]
    kernel_layout: Layout,
    /// data_layout when empty
    #[attr(default = "")]
    out_layout: String,
}

impl Operator for ByteConv2d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_bytes(cx)?;
        self.plain().result(cx, DType::I32)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let plain = parse("NCHW")?;
        let data = relayout(cx.arg(0)?, &self.data_layout, &plain)?;
        let beyond = convert(cx.arg(2)?, DType::I32)?.elements::<i32>()[0];
        let data = surrounded(&convert(&data, DType::I32)?, &self.padding, beyond);
        let kernel = convert(cx.arg(1)?, DType::I32)?;
        let out_layout = match self.out_layout.as_str() {
            "" => self.data_layout.text(),
            text => text,
        };
        let out_layout = out_layout.to_owned();
        let op = Conv2d { padding: [0; 4], data_layout: plain, out_layout, ..self.plain() };
        Ok(vec![op.computed::<i32>(&data, &kernel)?])
    }
}

impl ByteConv2d {
    /// The convolution of numbers that it is.
    fn plain(&self) -> Conv2d {
        Conv2d {
            strides: self.strides,
            padding: self.padding,
            dilation: self.dilation,
            groups: self.groups,
            channels: None,
            skip_lines: false,
            data_layout: self.data_layout.clone(),
            kernel_layout: self.kernel_layout.clone(),
            out_layout: self.out_layout.clone(),
            out_dtype: String::new(),
        }
    }
}

/// That data and the number beyond it are bytes of one type, and the kernel is of i8.
pub(super) fn check_bytes(cx: &InferCx<'_>) -> Result<()> {
    let zero = cx.tensor_of_rank(2, 0)?;
    let data = bytes(cx, 0)?;
    let dtypes = [(1, cx.tensor(1)?.dtype, DType::I8), (2, zero.dtype, data)];
    match dtypes.into_iter().find(|(_, found, expected)| found != expected) {
        Some((index, found, expected)) => {
            Err(OpError::WrongDType { index, expected: expected.to_string(), found })
        }
        None => Ok(()),
    }
}

/// Data in a plain layout with a number around its images; the widths are those before each axis, then those behind each.
pub(super) fn surrounded(data: &Tensor, widths: &[i64], beyond: i32) -> Tensor {
    let (axes, own) = (widths.len() / 2, data.shape());
    let before: Vec<usize> = widths[..axes].iter().map(|&width| width as usize).collect();
    let mut shape = own.to_vec();
    for (axis, extent) in shape[2..].iter_mut().enumerate() {
        *extent += before[axis] + widths[axes + axis] as usize;
    }
    let mut all = vec![beyond; shape.iter().product()];
    let (last, width) = (own.len() - 1, own[own.len() - 1]);
    for (number, row) in data.elements::<i32>().chunks_exact(width.max(1)).enumerate() {
        let (mut rest, mut start, mut step) = (number, before[axes - 1], shape[last]);
        for axis in (0..last).rev() {
            let at = rest % own[axis] + if axis < 2 { 0 } else { before[axis - 2] };
            (rest, start, step) = (rest / own[axis], start + at * step, step * shape[axis]);
        }
        all[start..start + width].copy_from_slice(row);
    }
    Tensor::from_vec(shape, all)
}

/// One element after the other.
#[rule(compute)]
fn program(op: &ByteConv2d, program: &mut Program) -> Option<()> {
    let beyond = program.input(2).at(&[]);
    program::plain(&op.plain().convolution(), program, DType::I32, beyond)
}

/// For each element of the result a multiplication and an addition for each element of a kernel.
#[rule(cost)]
fn cost(op: &ByteConv2d, at: &mut Site<'_>) -> Option<Cost> {
    op.plain().convolution().cost(at)
}
