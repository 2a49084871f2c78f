//! Taps of a kernel that meet padding alone, wherever its window stands.
//!
//! ```ir
//! %y = nn.conv2d(%x, const) { dilation = [24, 24], padding = [24, 24, 24, 24] }    f32[1, 64, 16, 16], f32[8, 64, 3, 3]
//!      =>
//! %w = strided_slice(const) { axes = [2, 3], begin = [1, 1], end = [2, 2] }
//! %y = nn.conv2d(%x, %w) { dilation = [24, 24] }
//! ```
//!
//! Kernels with holes in them, which reach far, have such taps on small images (Chen et al., "Rethinking Atrous Convolution for Semantic
//! Image Segmentation", 2017), and so have deep kernels on few images. They add zeros: it is the same to the last bit where the
//! kernel is a constant of finite numbers.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use super::Convolution;

/// The convolution without them; none where there are none, or where nobody knows.
pub(in crate::product) fn without(
    op: &Convolution<'_>,
    name: &str,
    at: &mut Site<'_>,
) -> Option<Expr> {
    if !op.kernel_layout.blocks().is_empty() {
        return None;
    }
    let [x, weight] = at.args()?;
    let (_, data) = at.tensor(x)?;
    let (_, kernel) = at.tensor(weight)?;
    let layout = op.result_layout().ok()?;
    let (_, out) = at.tensor(at.call.expr)?;
    let rank = op.axes.len();
    let mut padding = op.padding.to_vec();
    let (mut axes, mut begin, mut end) = (vec![], vec![], vec![]);
    for (axis, &letter) in op.axes.iter().enumerate() {
        let extent = |dims: &[Dim], position: Option<usize>| at.terms().dim_value(dims[position?]);
        let along = Axis {
            extent: extent(&data, op.data_layout.position(letter))?,
            out: extent(&out, layout.position(letter))?,
            taps: extent(&kernel, op.kernel_layout.position(letter))?,
            stride: op.strides[axis],
            dilation: op.dilation[axis],
            around: [op.padding[axis], op.padding[axis + rank]],
        };
        let Some((live, [before, after])) = along.live() else { continue };
        [padding[axis], padding[axis + rank]] = [before, after];
        axes.push(op.kernel_layout.position(letter)? as i64);
        begin.push(live[0]);
        end.push(live[1]);
    }
    if axes.is_empty() || !is_finite(at, weight) {
        return None;
    }
    let attrs = [("axes", axes.into()), ("begin", begin.into()), ("end", end.into())];
    let weight = at.apply_with("strided_slice", &[weight], &attrs);
    let attrs = at.call.attrs;
    let attrs = at.with_cx(|cx| cx.with_attr(attrs, "padding", padding.into()));
    let call = at.call_op(name, &[x, weight], attrs);
    at.same_type(call)
}

/// A convolution along one axis.
struct Axis {
    extent: i64,
    out: i64,
    taps: i64,
    stride: i64,
    dilation: i64,
    around: [i64; 2],
}

impl Axis {
    /// The first tap that is not dead, the one behind the last, and what is left of the padding; none where no tap is dead.
    fn live(&self) -> Option<([i64; 2], [i64; 2])> {
        let &Self { extent, out, taps, stride, dilation, around: [before, _] } = self;
        let is_live = |tap: &i64| {
            let first = tap * dilation - before;
            first < extent && first + (out - 1) * stride >= 0
        };
        // Nothing is cut off of the data.
        let start = (0..taps).find(is_live)?.min(before / dilation);
        let end = (0..taps).rfind(is_live)? + 1;
        let before = before - start * dilation;
        let reach = (end - start - 1) * dilation + 1;
        let after = ((out - 1) * stride + reach - extent - before).max(0);
        let places = (extent + before + after - reach) / stride + 1;
        (places == out && (start, end) != (0, taps)).then_some(([start, end], [before, after]))
    }
}

/// Whether an expression is a constant of finite numbers.
fn is_finite(at: &mut Site<'_>, expr: Expr) -> bool {
    let definition = at.definition(expr);
    let View::Constant(constant) = at.view(definition) else { return false };
    let Some((dtype, _)) = at.terms().tensor(constant.ty) else { return false };
    let width = (dtype.bits() as usize / 8).max(1);
    let is_finite = |element| dtype.decode(element).is_some_and(f64::is_finite);
    dtype.is_float() && constant.bytes.chunks_exact(width).all(is_finite)
}
