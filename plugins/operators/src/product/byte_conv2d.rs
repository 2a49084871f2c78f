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
        let zero = cx.tensor_of_rank(2, 0)?;
        let data = bytes(cx, 0)?;
        let dtypes = [(1, cx.tensor(1)?.dtype, DType::I8), (2, zero.dtype, data)];
        for (index, found, expected) in dtypes {
            if found != expected {
                let expected = expected.to_string();
                return Err(OpError::WrongDType { index, expected, found });
            }
        }
        self.plain().result(cx, DType::I32)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let plain = parse("NCHW")?;
        let data = relayout(cx.arg(0)?, &self.data_layout, &plain)?;
        let beyond = convert(cx.arg(2)?, DType::I32)?.elements::<i32>()[0];
        let data = self.padded(&convert(&data, DType::I32)?, beyond)?;
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

    /// Data in the plain layout with a number around it.
    fn padded(&self, data: &Tensor, beyond: i32) -> Result<Tensor> {
        let &[batch, channels, height, width] = data.shape() else {
            return Err(OpError::Unsupported("tensors of four dimensions are expected".into()));
        };
        let [top, left, bottom, right] = self.padding.map(|padding| padding as usize);
        let (rows, columns) = (height + top + bottom, width + left + right);
        let mut all = vec![beyond; batch * channels * rows * columns];
        for (at, row) in data.elements::<i32>().chunks_exact(width.max(1)).enumerate() {
            let start = (at / height * rows + at % height + top) * columns + left;
            all[start..start + width].copy_from_slice(row);
        }
        Ok(Tensor::from_vec(vec![batch, channels, rows, columns], all))
    }
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
