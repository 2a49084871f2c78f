//! Convolution of any extents and layouts.
//!
//! ```text
//! padded[n, c, y, x] = data[n, c, y - before, x - before]      where that is inside, and zero, or what stands for it, elsewhere
//! acc[n, oc, y, x] += padded[n, g * depth + ic, y * s + ky, x * s + kx] * weight[oc, ic, ky, kx]
//! ```
//!
//! Where lines of zeros around the data are left out:
//!
//! ```text
//! acc[n, oc, y, x] += select(y * s + ky - before is inside, padded[…] * weight[…], 0)
//! ```
//!
//! So it is over two spatial axes, and likewise over three. It sums over the axes of the weight in their order. Data that no window reaches over is not padded. Where a kernel has one tap and
//! images are rows of pixels, all pixels are one axis: rows are often shorter than vectors.

use tenon_plugin_api::ir::{Context, DType, Dim};
use tenon_plugin_api::op::Layout;
use tenon_plugin_api::program::{Buffer, Extent, Program, Reducer, Scalar};

use super::Convolution;
use crate::program::layout_index::{Coordinate, coordinate, dim_extent, place};

/// The program with sums of a type and a number that lies beyond the data; none where the layout of the result is unknown.
pub(in crate::product) fn plain(
    op: &Convolution<'_>,
    program: &Program,
    dtype: DType,
    beyond: Scalar<'_>,
) -> Option<()> {
    let (weight, out) = (program.input(1), program.output(0));
    let out_layout = op.result_layout().ok()?;
    let cx = program.cx();
    let of_weight = |axis| dim_extent(program, op.kernel_layout, weight.shape(), axis);
    let of_data = |axis| dim_extent(program, op.data_layout, program.input(0).shape(), axis);
    let outputs = op.channels.map_or(of_weight(b'O'), |channels| cx.dim(channels));
    let outputs = cx.dim_floor_div(outputs, cx.dim(op.groups));
    let depth = cx.dim_floor_div(of_data(b'C'), cx.dim(op.groups));
    let has_widths = |lines: bool| {
        let (last, rank) = (op.axes.len() - 1, op.axes.len());
        op.padding.iter().enumerate().any(|(at, &width)| width != 0 && (at % rank < last) == lines)
    };
    // Where all zeros are left out, the data is read in its place.
    let in_place = op.skips_lines && !has_widths(false);
    let data = match in_place || !(has_widths(true) || has_widths(false)) {
        true => program.input(0),
        false => padded(op, program, of_weight, &out_layout, beyond),
    };
    let taps = Taps::of(op.kernel_layout);
    let pixels = Pixels::of(op, program, &out_layout, outputs);
    let shape = pixels.shape(program, out.shape());
    let sum = program.reduce("acc", Reducer::Sum, dtype, &shape, &taps.extents(&weight), |i, k| {
        let (zero, i) = (program.index(0), &pixels.place(i));
        let own = |axis| coordinate(&out_layout, i, axis).unwrap_or(Coordinate::whole(zero));
        let input = match op.groups {
            1 => taps.coordinate(k, b'I', zero),
            _ => taps.coordinate(k, b'I', zero).behind(own(b'C').part_of(outputs), depth),
        };
        let tap = |letter: u8| {
            let axis = op.axes.iter().position(|&axis| axis == letter).expect("an axis of images");
            let tap = taps.coordinate(k, letter, zero).index();
            Coordinate::whole(own(letter).index() * op.strides[axis] + tap * op.dilation[axis])
        };
        let value = data.at(&place(op.data_layout, |axis| match axis {
            b'N' => own(b'N'),
            b'C' => input,
            letter if in_place => nearest(op, program, letter, tap(letter)),
            letter => tap(letter),
        }));
        let weight = weight.at(&place(op.kernel_layout, |axis| match axis {
            b'O' => own(b'C'),
            axis => taps.coordinate(k, axis, zero),
        }));
        let term = value.cast(dtype) * weight.cast(dtype);
        let reach = |letter| {
            let axis = op.axes.iter().position(|&axis| axis == letter).expect("an axis of images");
            taps.coordinate(k, letter, zero).index() * op.dilation[axis]
        };
        let is_inside = is_inside(op, program, |letter| tap(letter).index());
        let is_live = is_live(op, program, &out_layout, reach);
        match is_inside.into_iter().chain(is_live).reduce(|all, one| all.and(one)) {
            Some(is_inside) => is_inside.select(term, program.literal(dtype, 0.0)),
            None => term,
        }
    });
    program.each(&shape, |i| out.set(&pixels.place(i), sum.at(i)));
    Some(())
}

/// The element of the data along an axis that is nearest to a place in the padded data.
fn nearest<'p>(
    op: &Convolution<'_>,
    program: &'p Program,
    letter: u8,
    place: Coordinate<'p>,
) -> Coordinate<'p> {
    let axis = op.axes.iter().position(|&axis| axis == letter).expect("an axis of images");
    let (before, behind) = (op.padding[axis], op.padding[axis + op.axes.len()]);
    let own = dim_extent(program, op.data_layout, program.input(0).shape(), letter).index(program);
    let at = place.index() - before;
    let at = if before > 0 { at.max(0) } else { at };
    Coordinate::whole(if behind > 0 { at.min(own - 1) } else { at })
}

/// Whether a place in the padded data is in no line of zeros: that is asked of all axes but the last, along which vectors or tiles lie.
/// Nothing is asked where zeros have to be multiplied, or where there are none.
fn is_inside<'p>(
    op: &Convolution<'_>,
    program: &'p Program,
    place: impl Fn(u8) -> Scalar<'p>,
) -> Option<Scalar<'p>> {
    let (data, rank) = (program.input(0), op.axes.len());
    let lines = op.axes.iter().enumerate().take(rank - 1).filter(|_| op.skips_lines);
    let asked = lines.flat_map(|(axis, &letter)| {
        let (before, behind) = (op.padding[axis], op.padding[axis + rank]);
        let own = dim_extent(program, op.data_layout, data.shape(), letter).index(program);
        let at = place(letter);
        [(before > 0).then(|| at.ge(before)), (behind > 0).then(|| at.lt(own + before))]
    });
    asked.flatten().reduce(|all, one| all.and(one))
}

/// Whether a tap of a kernel with holes in it, which lies so far from the first, meets any data along the last axis: asked where nobody
/// knows how many there are.
fn is_live<'p>(
    op: &Convolution<'_>,
    program: &'p Program,
    out_layout: &Layout,
    reach: impl Fn(u8) -> Scalar<'p>,
) -> Option<Scalar<'p>> {
    let (axis, rank) = (op.axes.len() - 1, op.axes.len());
    let letter = op.axes[axis];
    let own = dim_extent(program, op.data_layout, program.input(0).shape(), letter);
    let is_asked = op.skips_lines && op.dilation[axis] > 1 && own.value(program).is_none();
    if !is_asked {
        return None;
    }
    let (before, behind) = (op.padding[axis], op.padding[axis + rank]);
    let steps = dim_extent(program, out_layout, program.output(0).shape(), letter).index(program);
    let (first, last) = (reach(letter), reach(letter) + (steps - 1) * op.strides[axis]);
    let asked = [
        (before > 0).then(|| last.ge(before)),
        (behind > 0).then(|| first.lt(own.index(program) + before)),
    ];
    asked.into_iter().flatten().reduce(|all, one| all.and(one))
}

/// The pixels of an image, as axes of a program.
enum Pixels {
    /// As rows and columns.
    Plane,
    /// As one axis, behind one of groups and one of so many channels in a group; rows have this width.
    Row { width: i64, channels: Dim },
}

impl Pixels {
    fn of(op: &Convolution<'_>, program: &Program, out_layout: &Layout, channels: Dim) -> Self {
        let (weight, out) = (program.input(1), program.output(0));
        let is_plain = |layout: &Layout| layout.text() == "NCHW";
        let has_one_tap = op.axes.iter().all(|&axis| {
            dim_extent(program, op.kernel_layout, weight.shape(), axis).is(program, 1)
        });
        let are_pixels = is_plain(op.data_layout) && is_plain(out_layout) && has_one_tap;
        let in_place = op.strides == [1, 1] && op.padding == [0; 4];
        match out.shape()[3].value(program) {
            Some(width) if are_pixels && in_place && width > 0 => Self::Row { width, channels },
            _ => Self::Plane,
        }
    }

    /// The extents of the axes, of those of the result.
    fn shape(&self, program: &Program, result: &[Dim]) -> Vec<Dim> {
        let cx = program.cx();
        match (self, result) {
            (&Self::Row { channels, .. }, &[n, c, h, w]) => {
                vec![n, cx.dim_floor_div(c, channels), channels, cx.dim_mul(h, w)]
            }
            _ => result.to_vec(),
        }
    }

    /// The place in the result.
    fn place<'p>(&self, i: &[Scalar<'p>]) -> Vec<Scalar<'p>> {
        match (self, i) {
            (&Self::Row { width, channels }, &[n, group, c, pixel]) => {
                let channels = channels.index(n.program());
                vec![n, group * channels + c, pixel / width, pixel % width]
            }
            _ => i.to_vec(),
        }
    }
}

/// The data with what lies beyond it around it, as much of it as windows reach.
fn padded<'p>(
    op: &Convolution<'_>,
    program: &'p Program,
    taps: impl Fn(u8) -> Dim,
    out_layout: &Layout,
    beyond: Scalar<'p>,
) -> Buffer<'p> {
    let (data, out, cx) = (program.input(0), program.output(0), program.cx());
    let mut shape = data.shape().to_vec();
    // For each spatial axis: where it is in the layout, the extent of the data, and what lies before these.
    let mut axes = Vec::with_capacity(op.axes.len());
    for (axis, &letter) in op.axes.iter().enumerate() {
        let out = dim_extent(program, out_layout, out.shape(), letter);
        let steps = cx.dim_mul(cx.dim_add(out, cx.dim(-1)), cx.dim(op.strides[axis]));
        let reach = cx.dim_mul(cx.dim_add(taps(letter), cx.dim(-1)), cx.dim(op.dilation[axis]));
        let position = op.data_layout.position(letter).expect("data has its spatial axes");
        shape[position] = cx.dim_add(cx.dim_add(steps, reach), cx.dim(1));
        let own = dim_extent(program, op.data_layout, data.shape(), letter).index(program);
        axes.push((position, own, op.padding[axis]));
    }
    program.map("padded", data.dtype(), &shape, |i| {
        let mut nearest: Vec<Scalar<'p>> = i.to_vec();
        let mut is_inside: Option<Scalar<'p>> = None;
        for &(position, own, before) in &axes {
            let at = i[position] - before;
            nearest[position] = at.max(0).min(own - 1);
            let is_in = at.ge(0).and(at.lt(own));
            is_inside = Some(is_inside.map_or(is_in, |before| before.and(is_in)));
        }
        let value = data.at(&nearest);
        is_inside.map_or(value, |is_inside| is_inside.select(value, beyond))
    })
}

/// The axes of a weight that are summed over: where each stands among those of the sum.
struct Taps<'a> {
    layout: &'a Layout,
    /// The axes of the weight, by their numbers.
    axes: Vec<usize>,
}

impl<'a> Taps<'a> {
    fn of(layout: &'a Layout) -> Self {
        let outer = layout.axes().iter().copied();
        let axes = outer.chain(layout.blocks().iter().map(|&(axis, _)| axis)).enumerate();
        Self { layout, axes: axes.filter(|&(_, axis)| axis != b'O').map(|(at, _)| at).collect() }
    }

    fn extents(&self, weight: &Buffer<'_>) -> Vec<Dim> {
        self.axes.iter().map(|&at| weight.shape()[at]).collect()
    }

    /// The coordinate along an axis of the weight at step `k` of the sum.
    fn coordinate<'p>(&self, k: &[Scalar<'p>], axis: u8, zero: Scalar<'p>) -> Coordinate<'p> {
        let rank = self.layout.axes().len() + self.layout.blocks().len();
        let mut indices = vec![zero; rank];
        for (&at, &step) in self.axes.iter().zip(k) {
            indices[at] = step;
        }
        coordinate(self.layout, &indices, axis).unwrap_or(Coordinate::whole(zero))
    }
}
