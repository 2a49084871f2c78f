//! Windows of convolution and pooling: steps, padding, automatic padding.

use tenon_plugin_api::rule::prelude::*;

use super::steps::{not_among, reshape_to};
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
    pub(crate) kernel: [i64; 2],
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
        kernel: [i64; 2],
    ) -> Result<Self, Problem> {
        let strides = image.pair(node, "strides")?.unwrap_or([1, 1]);
        let dilations = image.pair(node, "dilations")?.unwrap_or([1, 1]);
        let in_range = |&value: &i64| (1..=i64::from(i32::MAX)).contains(&value);
        for (name, values) in [("kernel", kernel), ("strides", strides), ("dilations", dilations)] {
            if !values.iter().all(in_range) {
                return invalid(format!(
                    "its {name} are {values:?}, expected to be between 1 and 2147483647"
                ));
            }
        }
        let mut window = Self { kernel, strides, dilations, padding: [0; 4] };
        let pads = image.pads(node)?;
        window.padding = match node.text("auto_pad", "NOTSET")?.as_str() {
            "NOTSET" => pads.unwrap_or([0; 4]),
            "VALID" => [0; 4],
            "SAME_UPPER" => window.same(node, image, false)?,
            "SAME_LOWER" => window.same(node, image, true)?,
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
        is_lower: bool,
    ) -> Result<[i64; 4], Problem> {
        let mut padding = [0; 4];
        for axis in 0..2 {
            let reach = (self.kernel[axis] - 1) * self.dilations[axis] + 1;
            let (stride, extent) = (self.strides[axis], image.dims[axis + 2]);
            if let Some(around) = open_padding(node, extent, [reach, stride], is_lower) {
                image.pad_to_same(node, axis + 2, around)?;
                continue;
            }
            let [before, after] = padding_to_same(node, extent, [reach, stride], is_lower)?;
            padding[axis] = before;
            padding[axis + 2] = after;
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

/// For an axis whose extent n is not known, how many elements come before it and how many there are in all, until a window that reaches
/// no less far than it steps has n/s places, rounded up: `s * ((n + s - 1) // s) - s + reach`. None where the padding does not depend
/// on the extent.
pub(super) fn open_padding(
    node: &Node<'_>,
    extent: Dim,
    [reach, stride]: [i64; 2],
    is_lower: bool,
) -> Option<[Dim; 2]> {
    let cx = node.cx();
    if node.terms().dim_value(extent).is_some() || !(2..=reach).contains(&stride) {
        return None;
    }
    let step = cx.dim(stride);
    let places = cx.dim_floor_div(cx.dim_add(extent, cx.dim(stride - 1)), step);
    let whole = cx.dim_add(cx.dim_mul(places, step), cx.dim(reach - stride));
    // So many more than the extent, in terms of which none is negative.
    let missing = cx.dim_floor_mod(cx.dim_mul(extent, cx.dim(stride - 1)), step);
    let odd = cx.dim_add(missing, cx.dim(reach - stride + i64::from(is_lower)));
    Some([cx.dim_floor_div(odd, cx.dim(2)), whole])
}

/// The padding before and behind an axis that makes as many places as the extent has strides; the odd one comes last, or first
/// when `is_lower`.
pub(super) fn padding_to_same(
    node: &Node<'_>,
    extent: Dim,
    [reach, stride]: [i64; 2],
    is_lower: bool,
) -> Result<[i64; 2], Problem> {
    let total = match node.terms().dim_value(extent) {
        Some(extent) => {
            let places = extent.div_euclid(stride) + i64::from(extent % stride != 0);
            (places - 1).saturating_mul(stride).saturating_add(reach).saturating_sub(extent)
        }
        // With a step of one, or one element, it does not depend on the extent.
        None if stride == 1 || reach == 1 => reach - 1,
        None => return unsupported("automatic padding of a symbolic dimension"),
    };
    let total = total.max(0);
    let (less, more) = (total / 2, total - total / 2);
    Ok(if is_lower { [more, less] } else { [less, more] })
}
