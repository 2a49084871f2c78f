//! Convolution of u8 or i8 with i8 over three spatial axes, whose sums are exact.
//!
//! ```ir
//! %y = nn.byte_conv3d(%x, %w, %z)    u8[n, 4, 8, 8, 8], i8[8, 4, 3, 3, 3], u8[]  =>  i32[n, 8, 6, 6, 6]
//! ```
//!
//! What lies beyond the data, the layouts and the sums are as `nn.byte_conv2d` has them.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::byte_conv2d::{check_bytes, surrounded};
use super::conv3d::Conv3d;
use super::convolution::program;
use crate::kernel::convert::convert;
use crate::kernel::moves::{parse, relayout};

/// Convolution of u8 or i8 with i8 over three spatial axes, in i32; beyond the data is the third argument
#[op(name = "nn.byte_conv3d", args = 3, pattern = "out_fusable")]
pub struct ByteConv3d {
    /// step of the window
    #[attr(default = [1, 1, 1])]
    strides: [i64; 3],
    /// before each axis, then behind each
    #[attr(default = [0, 0, 0, 0, 0, 0])]
    padding: [i64; 6],
    /// distance of the taps
    #[attr(default = [1, 1, 1])]
    dilation: [i64; 3],
    /// groups of channels that do not mix
    #[attr(default = 1)]
    groups: i64,
    /// NCDHW, NDHWC, NCDHW16c, …
    #[attr(default = "NCDHW")]
    data_layout: Layout,
    /// OIDHW, OIDHW16o4i, OIDHW16o, …
    #[attr(default = "OIDHW")]
    kernel_layout: Layout,
    /// data_layout when empty
    #[attr(default = "")]
    out_layout: String,
}

impl Operator for ByteConv3d {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        check_bytes(cx)?;
        self.plain().convolution().result(cx, DType::I32, [b"NCDHW", b"OIDHW"])
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let (plain, plain_kernel) = (parse("NCDHW")?, parse("OIDHW")?);
        let data = relayout(cx.arg(0)?, &self.data_layout, &plain)?;
        let beyond = convert(cx.arg(2)?, DType::I32)?.elements::<i32>()[0];
        let data = surrounded(&convert(&data, DType::I32)?, &self.padding, beyond);
        let kernel = relayout(cx.arg(1)?, &self.kernel_layout, &plain_kernel)?;
        let kernel = convert(&kernel, DType::I32)?;
        let op = self.plain();
        let layout = op.convolution().result_layout()?;
        let inside = Conv3d { padding: [0; 6], ..op };
        Ok(vec![relayout(&inside.convolve(&data, &kernel)?, &plain, &layout)?])
    }
}

impl ByteConv3d {
    /// The convolution of numbers that it is.
    fn plain(&self) -> Conv3d {
        Conv3d {
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

/// One element after the other.
#[rule(compute)]
fn program(op: &ByteConv3d, program: &mut Program) -> Option<()> {
    let beyond = program.input(2).at(&[]);
    program::plain(&op.plain().convolution(), program, DType::I32, beyond)
}

/// For each element of the result a multiplication and an addition for each element of a kernel.
#[rule(cost)]
fn cost(op: &ByteConv3d, at: &mut Site<'_>) -> Option<Cost> {
    op.plain().convolution().cost(at)
}
