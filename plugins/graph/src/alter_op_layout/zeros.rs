//! Lines of zeros around images, which need not be multiplied by weights that are finite.

use tenon_plugin_api::prelude::*;

use super::Alter;

/// The largest share of a convolution's steps that meet data where those that meet lines of zeros are left out: tiles have to be of one
/// line then.
const MOST_INSIDE: f64 = 0.92;
/// Lines of images of which nobody knows how many they have: of the order of those on which kernels with holes work.
const UNKNOWN: i64 = 32;

impl Alter<'_> {
    /// Whether a convolution of images of these extents adds so many lines of zeros that it is worth asking where they are.
    pub(super) fn adds_zeros(&self, extents: &[Dim], weight: Expr, attrs: Attrs) -> bool {
        let read = self.body.terms().attrs(attrs);
        let ints = |key: &str, plain: i64| read.ints(key).unwrap_or(vec![plain; 2 * extents.len()]);
        let (widths, strides) = (ints("padding", 0), ints("strides", 1));
        let (dilation, last) = (ints("dilation", 1), extents.len() - 1);
        let Some(kernel) = self.shape(weight) else { return false };
        let known = |dim| self.body.terms().dim_value(dim);
        // Steps of a sum whose vectors are of several groups are in no order in which lines could be left out.
        let [outputs, per_group] = [kernel[0], kernel[1]].map(known);
        let groups = read.int("groups").unwrap_or(1);
        let share_vectors = outputs.is_none_or(|it| (it / groups) % self.panels.lanes != 0);
        if groups > 1 && per_group != Some(1) && share_vectors {
            return false;
        }
        let share = |axis: usize| {
            let (extent, taps) =
                (known(extents[axis]).unwrap_or(UNKNOWN), known(kernel[2 + axis])?);
            let (before, stride, apart) = (widths[axis], strides[axis], dilation[axis]);
            let padded = extent + before + widths[axis + extents.len()];
            let steps = (padded - (taps - 1) * apart - 1) / stride + 1;
            // The first step at which a tap is not before a place.
            let first = |place: i64| (place + stride - 1).div_euclid(stride).clamp(0, steps);
            let starts = (0..taps).map(|tap| before - tap * apart);
            let inside: i64 = starts.map(|start| first(start + extent) - first(start)).sum();
            Some(inside as f64 / (steps * taps).max(1) as f64)
        };
        let inside = (0..last).map(share).product::<Option<f64>>();
        inside.is_some_and(|inside| inside <= MOST_INSIDE)
    }

    /// Whether an expression is a constant of finite elements of f32.
    pub(super) fn is_finite(&mut self, expr: Expr) -> bool {
        let constant = self.rw.definition(expr);
        let View::Constant(constant) = self.rw.view(constant) else { return false };
        let is_f32 =
            self.rw.terms().tensor(constant.ty).is_some_and(|(dtype, _)| dtype == DType::F32);
        let number = |bytes: &[u8]| bytes.try_into().map(f32::from_le_bytes);
        is_f32
            && constant.bytes.chunks_exact(4).all(|bytes| number(bytes).is_ok_and(f32::is_finite))
    }
}
