//! Windows of convolution and pooling: steps, padding, automatic padding.

use tenon_plugin_api::rule::prelude::*;

use super::steps::{not_among, not_below_zero, reshape_to};
use crate::movement::pad::with_around;

/// Data with one or two spatial axes, as data with two.
///
/// One spatial axis gets another one of extent 1 before it, over which the window does not move.
#[derive(Clone, Copy)]
pub(crate) struct Image {
    pub(crate) value: Value,
    /// N, C, H, W.
    pub(crate) dims: [Dim; 4],
    spatial: usize,
}

impl Image {
    /// The image that `value` is.
    pub(crate) fn of(node: &mut Node<'_>, value: Value) -> Result<Self, Problem> {
        let dims = node.dims(value)?;
        match dims.as_slice() {
            &[n, c, h, w] => Ok(Self { value, dims: [n, c, h, w], spatial: 2 }),
            &[n, c, w] => {
                let dims = [n, c, node.cx().dim(1), w];
                Ok(Self { value: reshape_to(node, value, &dims)?, dims, spatial: 1 })
            }
            [] | [_] | [_, _] => invalid(format!("its data have {} dimensions", dims.len())),
            _ => unsupported(format!("{} spatial dimensions", dims.len() - 2)),
        }
    }

    /// A result, with as many spatial axes as the data.
    pub(crate) fn restore(self, node: &mut Node<'_>, result: Value) -> Result<Value, Problem> {
        match self.spatial {
            1 => node.call("squeeze", &[result], &[("axis", vec![2].into())]),
            _ => Ok(result),
        }
    }

    /// A list with a number for each spatial axis.
    pub(crate) fn pair(self, node: &Node<'_>, name: &str) -> Result<Option<[i64; 2]>, Problem> {
        let Some(values) = node.ints(name)? else { return Ok(None) };
        match (values.as_slice(), self.spatial) {
            (&[h, w], 2) => Ok(Some([h, w])),
            (&[w], 1) => Ok(Some([1, w])),
            _ => self.wrong_count(name, &values),
        }
    }

    /// The padding before and after each spatial axis.
    fn pads(self, node: &Node<'_>) -> Result<Option<[i64; 4]>, Problem> {
        let Some(values) = node.ints("pads")? else { return Ok(None) };
        match (values.as_slice(), self.spatial) {
            (&[top, left, bottom, right], 2) => Ok(Some([top, left, bottom, right])),
            (&[left, right], 1) => Ok(Some([0, left, 0, right])),
            _ => self.wrong_count("pads", &values),
        }
    }

    /// Puts zeros around an axis whose extent is not known.
    fn pad_to_same(
        &mut self,
        node: &mut Node<'_>,
        axis: usize,
        around: [Dim; 2],
    ) -> Result<(), Problem> {
        self.value = with_around(node, self.value, axis, around, 0.0)?;
        self.dims[axis] = around[1];
        Ok(())
    }

    fn wrong_count<T>(self, name: &str, values: &[i64]) -> Result<T, Problem> {
        let axes = self.spatial;
        invalid(format!("its attribute `{name}` is {values:?} for {axes} spatial dimensions"))
    }
}

/// How a window moves over the two spatial axes.
pub(crate) struct Window {
    pub(crate) strides: [i64; 2],
    pub(crate) dilations: [i64; 2],
    /// Top, left, bottom, right.
    pub(crate) padding: [i64; 4],
}

impl Window {
    /// From the attributes of a node. Where padding depends on an extent that is not known, the image gets it.
    pub(crate) fn of(
        node: &mut Node<'_>,
        image: &mut Image,
        kernel: [Dim; 2],
    ) -> Result<Self, Problem> {
        let strides = image.pair(node, "strides")?.unwrap_or([1, 1]);
        let dilations = image.pair(node, "dilations")?.unwrap_or([1, 1]);
        let in_range = |&value: &i64| (1..=i64::from(i32::MAX)).contains(&value);
        let known = kernel.map(|extent| node.terms().dim_value(extent).unwrap_or(1));
        for (name, values) in [("kernel", known), ("strides", strides), ("dilations", dilations)] {
            if !values.iter().all(in_range) {
                return invalid(format!(
                    "its {name} are {values:?}, expected to be between 1 and 2147483647"
                ));
            }
        }
        let mut window = Self { strides, dilations, padding: [0; 4] };
        let pads = image.pads(node)?;
        window.padding = match node.text("auto_pad", "NOTSET")?.as_str() {
            "NOTSET" => pads.unwrap_or([0; 4]),
            "VALID" => [0; 4],
            "SAME_UPPER" => window.same(node, image, kernel, false)?,
            "SAME_LOWER" => window.same(node, image, kernel, true)?,
            other => {
                return not_among(
                    "auto_pad",
                    other,
                    &["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"],
                );
            }
        };
        Ok(window)
    }

    /// The padding that makes as many places as the extent has strides; the odd one comes last, or first
    /// when `is_lower`.
    fn same(
        &self,
        node: &mut Node<'_>,
        image: &mut Image,
        kernel: [Dim; 2],
        is_lower: bool,
    ) -> Result<[i64; 4], Problem> {
        let mut padding = [0; 4];
        for axis in 0..2 {
            let steps = [self.dilations[axis], self.strides[axis]];
            match padding_to_same(node, image.dims[axis + 2], (kernel[axis], steps), is_lower) {
                ToSame::Open(around) => image.pad_to_same(node, axis + 2, around)?,
                ToSame::Known([before, after]) => {
                    padding[axis] = before;
                    padding[axis + 2] = after;
                }
            }
        }
        Ok(padding)
    }

    /// The attributes `strides`, `padding` and `dilation`.
    pub(crate) fn attrs(&self) -> Vec<(&'static str, AttrValue)> {
        vec![
            ("strides", self.strides.to_vec().into()),
            ("padding", self.padding.to_vec().into()),
            ("dilation", self.dilations.to_vec().into()),
        ]
    }
}

/// What makes as many places along an axis as its extent has strides.
pub(super) enum ToSame {
    /// So many elements before the axis and behind it.
    Known([i64; 2]),
    /// So many elements before it, and so many in all.
    Open([Dim; 2]),
}

/// The padding of an axis for a kernel with a dilation and a step; the odd element comes last, or first when `is_lower`.
pub(super) fn padding_to_same(
    node: &Node<'_>,
    extent: Dim,
    (kernel, [dilation, stride]): (Dim, [i64; 2]),
    is_lower: bool,
) -> ToSame {
    let [extent_value, kernel_value] = [extent, kernel].map(|dim| node.terms().dim_value(dim));
    let reach = kernel_value.map(|kernel| (kernel - 1) * dilation + 1);
    let total = match (extent_value, reach) {
        (Some(extent), Some(reach)) => {
            let places = extent.div_euclid(stride) + i64::from(extent % stride != 0);
            (places - 1).saturating_mul(stride).saturating_add(reach).saturating_sub(extent)
        }
        // With a step of one, or one element, it does not depend on the extent.
        (None, Some(reach)) if stride == 1 || reach == 1 => reach - 1,
        (None, Some(reach)) if stride <= reach => {
            return ToSame::Open(whole_steps(node, extent, [reach, stride], is_lower));
        }
        _ => {
            let cx = node.cx();
            let one = cx.dim(1);
            let reach = cx.dim_mul(cx.dim_sub(kernel, one), cx.dim(dilation));
            let reach = cx.dim_add(reach, one);
            return ToSame::Open(any_steps(node, extent, (reach, stride), is_lower));
        }
    };
    let total = total.max(0);
    let (less, more) = (total / 2, total - total / 2);
    ToSame::Known(if is_lower { [more, less] } else { [less, more] })
}

/// For an axis whose extent n is not known, how many elements come before it and how many there are in all, until a window that reaches
/// no less far than it steps has n/s places, rounded up: `s * ((n + s - 1) // s) - s + reach`.
fn whole_steps(
    node: &Node<'_>,
    extent: Dim,
    [reach, stride]: [i64; 2],
    is_lower: bool,
) -> [Dim; 2] {
    let cx = node.cx();
    let step = cx.dim(stride);
    let places = cx.dim_floor_div(cx.dim_add(extent, cx.dim(stride - 1)), step);
    let whole = cx.dim_add(cx.dim_mul(places, step), cx.dim(reach - stride));
    // So many more than the extent, in terms of which none is negative.
    let missing = cx.dim_floor_mod(cx.dim_mul(extent, cx.dim(stride - 1)), step);
    let odd = cx.dim_add(missing, cx.dim(reach - stride + i64::from(is_lower)));
    [cx.dim_floor_div(odd, cx.dim(2)), whole]
}

/// The same of any window, which may reach less far than it steps, or nobody knows how far.
fn any_steps(
    node: &Node<'_>,
    extent: Dim,
    (reach, stride): (Dim, i64),
    is_lower: bool,
) -> [Dim; 2] {
    let cx = node.cx();
    let step = cx.dim(stride);
    let places = cx.dim_floor_div(cx.dim_add(extent, cx.dim(stride - 1)), step);
    let wanted = cx.dim_sub(cx.dim_add(cx.dim_mul(places, step), reach), step);
    let missing = not_below_zero(node, cx.dim_sub(wanted, extent));
    let odd = cx.dim_add(missing, cx.dim(i64::from(is_lower)));
    [cx.dim_floor_div(odd, cx.dim(2)), cx.dim_add(extent, missing)]
}
