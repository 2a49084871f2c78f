//! What convolutions over two and over three spatial axes have in common: their types, their programs and what they cost.

pub(super) mod dead_taps;
pub(super) mod program;

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::moves::parse;
use crate::kernel::window::Window;

/// A convolution over spatial axes in any layout.
pub(super) struct Convolution<'a> {
    /// The letters of the spatial axes: `HW`, or `DHW`.
    pub(super) axes: &'a [u8],
    /// Step of the window along each.
    pub(super) strides: &'a [i64],
    /// Before each, then behind each.
    pub(super) padding: &'a [i64],
    /// Distance of the taps along each.
    pub(super) dilation: &'a [i64],
    /// Groups of channels that do not mix.
    pub(super) groups: i64,
    /// Output channels, where the blocks of a kernel hold more.
    pub(super) channels: Option<i64>,
    /// Whether lines of zeros around the data are left out.
    pub(super) skips_lines: bool,
    pub(super) data_layout: &'a Layout,
    pub(super) kernel_layout: &'a Layout,
    /// That of the data when empty.
    pub(super) out_layout: &'a str,
}

impl Convolution<'_> {
    /// The type of the result, whose elements have this type, of data and kernels whose plain layouts have these axes.
    pub(super) fn result<const N: usize>(
        &self,
        cx: &InferCx<'_>,
        dtype: DType,
        [data_axes, kernel_axes]: [&[u8; N]; 2],
    ) -> Result<Type> {
        let text = |axes: &[u8]| String::from_utf8_lossy(axes).into_owned();
        let [of_data, of_kernel] = [data_axes, kernel_axes].map(|axes| text(axes));
        let data_layout = cx.layout("data_layout", &of_data)?;
        let kernel_layout = cx.layout("kernel_layout", &of_kernel)?;
        let out_layout = match self.out_layout {
            "" => data_layout.clone(),
            _ => cx.layout("out_layout", &of_data)?,
        };
        let windows = Window::each(cx, self.strides, self.padding, self.dilation)?;
        let groups = self.groups;
        if groups < 1 {
            return cx.bad_attr("groups", groups, "it must be positive");
        }
        let data = cx.extents(0, &data_layout, data_axes)?;
        let kernel = cx.extents(1, &kernel_layout, kernel_axes)?;
        let (Some(data), Some(kernel)) = (data, kernel) else {
            return Ok(cx.tensor_type(dtype, None));
        };
        let (channels, outputs) = (data[1], self.outputs(cx, kernel[0])?);
        let needed = cx.dim_mul(kernel[1], cx.dim(groups));
        if cx.is_different(channels, needed) {
            let what = format!("the channels of data and kernel, with groups = {groups},");
            return Err(cx.mismatch(&what, &[channels], &[needed]));
        }
        if cx.value(outputs).is_some_and(|outputs| outputs % groups != 0) {
            return cx.bad_attr("groups", groups, "the output channels are no multiple of it");
        }
        let mut extents = data;
        extents[1] = outputs;
        for (axis, window) in windows.iter().enumerate() {
            extents[2 + axis] = window.out_dim(cx, data[2 + axis], kernel[2 + axis], false)?;
        }
        images(cx, dtype, &out_layout, data_axes, extents)
    }

    /// The output channels, of a kernel that holds so many.
    fn outputs(&self, cx: &InferCx<'_>, held: Dim) -> Result<Dim> {
        let Some(channels) = self.channels else { return Ok(held) };
        let block = self.kernel_layout.block(b'O').unwrap_or(1);
        let is_right = |held| held - block < channels && channels <= held;
        if self.groups != 1 || channels < 1 || !cx.value(held).is_none_or(is_right) {
            let why = "one group has as many output channels as the kernel, but for some of its last block";
            return cx.bad_attr("channels", channels, why);
        }
        Ok(cx.dim(channels))
    }

    /// The layout of the result.
    pub(super) fn result_layout(&self) -> Result<Layout> {
        match self.out_layout {
            "" => Ok(self.data_layout.clone()),
            text => parse(text),
        }
    }

    /// For each element of the result a multiplication and an addition for each element of a kernel.
    pub(super) fn cost(&self, at: &mut Site<'_>) -> Option<Cost> {
        let (_, kernel) = at.tensor(at.arg(1))?;
        let (_, result) = at.tensor(at.call.expr)?;
        let outputs = extent(&kernel, self.kernel_layout, 'O', at)?;
        let all = |dims: &[Dim]| at.with_cx(|cx| cx.dim_product(dims));
        let (kernel, result) = (all(&kernel), all(&result));
        let taps = at.with_cx(|cx| cx.dim_floor_div(kernel, outputs));
        let flops = at.with_cx(|cx| cx.dim_mul(cx.dim(2), cx.dim_mul(result, taps)));
        Cost::of_call(at, at.call.expr, flops)
    }
}

/// The type of images in a layout, whose axes with these letters have these extents.
pub(super) fn images<const N: usize>(
    cx: &InferCx<'_>,
    dtype: DType,
    layout: &Layout,
    axes: &[u8; N],
    extents: [Dim; N],
) -> Result<Type> {
    let extent = |letter| {
        let at = axes.iter().position(|&axis| axis == letter);
        extents[at.expect("the layout was checked to have these axes alone")]
    };
    match layout.dims(cx, extent) {
        Ok(dims) => Ok(cx.tensor_type(dtype, Some(&dims))),
        Err(error) => cx.bad_attr("out_layout", layout.text(), error.to_string()),
    }
}

/// The extent of an axis of a layout, blocks counted in.
fn extent(dims: &[Dim], layout: &Layout, axis: char, at: &Site<'_>) -> Option<Dim> {
    let places = layout.text().chars().filter(char::is_ascii_alphabetic).zip(dims);
    let own = places.filter(|(letter, _)| letter.eq_ignore_ascii_case(&axis));
    at.with_cx(|cx| own.map(|(_, &dim)| dim).reduce(|all, dim| cx.dim_mul(all, dim)))
}
