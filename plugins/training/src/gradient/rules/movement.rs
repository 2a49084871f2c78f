//! Operators that move elements: their adjoints move back, and are summed where elements were repeated.

use tenon_plugin_api::prelude::*;

use crate::gradient::step::{Grad, Grads, Step, one};

/// `g` in the shape of `x`. A second argument is a shape.
pub(super) fn reshape(s: &mut Step<'_>) -> Grads {
    let g = s.reshape_like(s.grad(), s.arg(0));
    let shapes = s.call.args.iter().skip(1).map(|_| Grad::Zero);
    Ok([Grad::Of(g)].into_iter().chain(shapes).collect())
}

/// `g`, summed over what was repeated.
pub(super) fn broadcast_to(s: &mut Step<'_>) -> Grads {
    let g = s.sum_to(s.grad(), s.arg(0))?;
    Ok(vec![Grad::Of(g), Grad::Zero])
}

/// `g` with the axes back in their order.
pub(super) fn transpose(s: &mut Step<'_>) -> Grads {
    let rank = s.rank(s.arg(0))?;
    let axes = match s.attrs().ints("axes") {
        Some(axes) => axes.iter().map(|axis| axis.rem_euclid(rank)).collect(),
        None => (0..rank).rev().collect::<Vec<i64>>(),
    };
    let mut back = vec![0; axes.len()];
    for (place, &axis) in axes.iter().enumerate() {
        back[axis as usize] = place as i64;
    }
    let g = s.grad();
    one(s.rw.transpose(g, &back))
}

/// `g` in the first layout.
pub(super) fn layout_transform(s: &mut Step<'_>) -> Grads {
    let attrs = s.attrs();
    let layout = |name| attrs.str(name).unwrap_or("").to_owned();
    let (from, to) = (layout("src_layout"), layout("dst_layout"));
    let g = s.grad();
    let attrs = [("src_layout", to.into()), ("dst_layout", from.into())];
    one(s.rw.apply_with("layout_transform", &[g], &attrs))
}

/// To each part its range of `g`.
pub(super) fn concatenate(s: &mut Step<'_>) -> Grads {
    let fields = match s.rw.body().ty(s.arg(0)).map(|ty| s.rw.terms().ty(ty)) {
        Some(TypeView::Tuple(fields)) => fields.to_vec(),
        _ => return Err(PassError::new("its argument is no tuple")),
    };
    let g = s.grad();
    let axis = s.axis(0, s.rank(g)?);
    let mut begin = 0;
    let mut grads = Vec::with_capacity(fields.len());
    for field in fields {
        let dims = s.rw.terms().tensor(field).map(|(_, dims)| dims[axis as usize]);
        let extent = dims.and_then(|dim| s.rw.terms().dim_value(dim));
        let extent = extent.ok_or_else(|| PassError::new("the extent of a part is not known"))?;
        grads.push(s.rw.slice(g, axis, begin, begin + extent));
        begin += extent;
    }
    Ok(vec![Grad::Fields(grads)])
}

/// The parts of `g` one after the other, with zeros for parts that are not read.
pub(super) fn split(s: &mut Step<'_>) -> Grads {
    let parts = match s.call.ty.map(|ty| s.rw.terms().ty(ty)) {
        Some(TypeView::Tuple(parts)) => parts.to_vec(),
        _ => return Err(PassError::new("its result is no tuple")),
    };
    let mut fields = Vec::with_capacity(parts.len());
    for (place, part) in parts.into_iter().enumerate() {
        let g = s.grads.get(place).copied().flatten();
        let g = g.or_else(|| crate::gradient::step::zeros(s.rw, part));
        fields.push(g.ok_or_else(|| PassError::new("the rank of a part is not known"))?);
    }
    let axis = s.axis(0, s.rank(s.arg(0))?);
    let tuple = s.rw.tuple(&fields);
    one(s.rw.apply_with("concatenate", &[tuple], &[("axis", axis.into())]))
}

/// `g` added to zeros at the indices.
pub(super) fn take(s: &mut Step<'_>) -> Grads {
    let axis = s.axis(0, s.rank(s.arg(0))?);
    let zeros = s.zeros_like(s.arg(0))?;
    let args = [zeros, s.arg(1), s.grad()];
    let g = s.rw.apply_with("index_add", &args, &[("axis", axis.into())]);
    Ok(vec![Grad::Of(g), Grad::Zero])
}

/// `g`, and its parts at the indices.
pub(super) fn index_add(s: &mut Step<'_>) -> Grads {
    let g = s.grad();
    let axis = s.axis(0, s.rank(g)?);
    let parts = s.rw.apply_with("take", &[g, s.call.args[1]], &[("axis", axis.into())]);
    Ok(vec![Grad::Of(g), Grad::Zero, Grad::Of(parts)])
}

/// `g` without the padding.
pub(super) fn pad(s: &mut Step<'_>) -> Grads {
    if s.attrs().str("mode").unwrap_or("constant") != "constant" {
        return Err(PassError::new("padding repeats elements"));
    }
    let widths = s.attrs().ints("pad_width").unwrap_or_default();
    let shape = s.extents(s.arg(0))?;
    let mut g = s.grad();
    for (axis, (pair, &extent)) in widths.chunks_exact(2).zip(&shape).enumerate() {
        if pair != [0, 0] {
            g = s.rw.slice(g, axis as i64, pair[0], pair[0] + extent);
        }
    }
    one(g)
}

/// `g` with zeros where nothing was read.
pub(super) fn strided_slice(s: &mut Step<'_>) -> Grads {
    let shape = s.extents(s.arg(0))?;
    let attrs = s.attrs();
    let begin = attrs.ints("begin").unwrap_or_default();
    let steps = attrs.ints("strides").unwrap_or_else(|| vec![1; begin.len()]);
    let axes = attrs.ints("axes").unwrap_or_else(|| (0..begin.len() as i64).collect());
    let mut g = s.grad();
    let counts = s.extents(g)?;
    for (place, axis) in axes.iter().enumerate() {
        let axis = axis.rem_euclid(shape.len() as i64) as usize;
        let (extent, count, step) = (shape[axis], counts[axis], steps[place]);
        if count == 0 {
            let zeros = s.zeros_like(s.arg(0))?;
            return one(zeros);
        }
        let start = if begin[place] < 0 { begin[place] + extent } else { begin[place] };
        let mut first = start.clamp(0, extent - 1);
        if step < 0 {
            // The last element that was read is the first one in the tensor.
            first += (count - 1) * step;
            let whole = |value: i64| AttrValue::Ints(vec![value]);
            let attrs = [
                ("axes", whole(axis as i64)),
                ("begin", whole(-1)),
                ("end", whole(i64::MIN)),
                ("strides", whole(-1)),
            ];
            g = s.rw.apply_with("strided_slice", &[g], &attrs);
        }
        g = s.spread(g, axis, step.abs())?;
        let length = (count - 1) * step.abs() + 1;
        let mut widths = vec![[0, 0]; shape.len()];
        widths[axis] = [first, extent - first - length];
        g = s.pad(g, &widths);
    }
    one(g)
}
