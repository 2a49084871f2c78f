//! One value of all elements so far along an axis.

use tenon_plugin_api::op::number::Sum;
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Extent, Program, Reducer};
use tenon_plugin_api::rule::import;
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use crate::elementwise::types::number;
use crate::kernel::moves::wrap_axis;
use crate::movement::places::around;
use crate::program::index::axis_of;

/// How elements are gone through.
pub(crate) struct Running {
    pub(crate) axis: i64,
    /// Whether an element is left out at its own place.
    pub(crate) exclusive: bool,
    /// Whether it goes from the end to the start.
    pub(crate) reverse: bool,
}

/// The type of the argument, which has the axis.
pub(crate) fn running_type(cx: &InferCx<'_>, axis: i64) -> Result<Type> {
    if let Some(dims) = cx.tensor(0)?.dims {
        cx.axis("axis", axis, dims.len())?;
    }
    number(cx)
}

/// The sum, or the product, of the elements up to each.
pub(crate) fn along(cx: &EvalCx<'_>, running: &Running, is_product: bool) -> Result<Vec<Tensor>> {
    let tensor = cx.arg(0)?;
    let axis = wrap_axis(running.axis, tensor.shape().len());
    let (outer, extent, inner) = around(tensor.shape(), axis);
    with_number!(tensor.dtype(), T => {
        type Held = <T as Number>::Sum;
        let combine: fn(Held, Held) -> Held = if is_product { <Held as Sum>::mul } else { <Held as Sum>::add };
        let elements = tensor.elements::<T>();
        let mut out = vec![T::default(); elements.len()];
        for row in (0..outer * inner).map(|row| row / inner * extent * inner + row % inner) {
            let mut held = if is_product { Held::ONE } else { Held::default() };
            for step in 0..extent {
                let place = if running.reverse { extent - 1 - step } else { step };
                let place = row + place * inner;
                let next = combine(held, elements[place].widen());
                out[place] = T::narrow(if running.exclusive { held } else { next });
                held = next;
            }
        }
        Ok(vec![Tensor::from_vec_as(tensor.dtype(), tensor.shape().to_vec(), out)])
    })
}

impl Running {
    /// What is held at each place is made of what is held at the one before, in the type that arithmetic is done in.
    pub(crate) fn program(&self, program: &Program, reducer: Reducer) -> Result<()> {
        let rank = program.input(0).shape().len();
        match axis_of(self.axis, rank)? {
            axis if axis + 1 < rank => self.of_rows(program, reducer, axis),
            axis => self.of_elements(program, reducer, axis),
        }
        Ok(())
    }

    /// Along the last axis: one element after the other.
    fn of_elements(&self, program: &Program, reducer: Reducer, axis: usize) {
        let (data, out) = (program.input(0), program.output(0));
        let (shape, dtype) = (data.shape(), data.compute_dtype());
        let last = shape[axis].index(program) - 1;
        let identity = reducer.identity(program, dtype);
        let held = program.temporary("held", dtype, shape);
        program.sweep(&shape[..axis], &[shape[axis]], |i, r| {
            let place = |step| {
                let at = if self.reverse { last - step } else { step };
                [&i[..axis], &[at]].concat()
            };
            let before = (r[0] - 1).max(0);
            let first = r[0].lt(1);
            let own = if self.exclusive { before } else { r[0] };
            let so_far = first.select(identity, held.at(&place(before)));
            let next = data.wide(&place(own));
            let next = match self.exclusive {
                true => first.select(identity, next),
                false => next,
            };
            held.set(&place(r[0]), reducer.combine(so_far, next))
        });
        program.set(&out, |i| held.at(i));
    }

    /// Along another axis: one row of the last axis after the other, since its elements are neighbours.
    fn of_rows(&self, program: &Program, reducer: Reducer, axis: usize) {
        let (data, out) = (program.input(0), program.output(0));
        let (shape, dtype) = (data.shape(), data.compute_dtype());
        let identity = reducer.identity(program, dtype);
        let steps = shape[axis].index(program);
        let last = shape.len() - 1;
        let width = shape[last].index(program);
        let others = [&shape[..axis], &shape[axis + 1..last]].concat();
        // What is held may be wider than what is given.
        let held = (out.dtype() != dtype).then(|| program.temporary("held", dtype, shape));
        program.each(&others, |i| {
            let place = |step, j| {
                let at = if self.reverse { steps - 1 - step } else { step };
                [&i[..axis], &[at], &i[axis..], &[j]].concat()
            };
            let set = |step, j, value| {
                let at = place(step, j);
                let mut set = program.block();
                let value = set.bind("value", value);
                if let Some(held) = &held {
                    set.push(held.set(&at, value));
                }
                set.push(out.set(&at, value));
                set.finish()
            };
            let first = program.in_turn(steps.min(1), |step| {
                program.in_turn(width, |j| match self.exclusive {
                    true => set(step, j, identity),
                    false => set(step, j, data.wide(&place(step, j))),
                })
            });
            let others = program.in_turn(steps - 1, |before| {
                let step = before + 1;
                program.in_turn(width, |j| {
                    let so_far = held.as_ref().unwrap_or(&out).at(&place(before, j));
                    let next = data.wide(&place(if self.exclusive { before } else { step }, j));
                    set(step, j, reducer.combine(so_far, next))
                })
            });
            program.seq(&[first, others])
        });
    }
}

/// The outputs of a node whose axis is an input. Where there is one axis alone it need not be known.
pub(crate) fn import_running(node: &mut Node<'_>, op: &'static str) -> Outputs {
    let x = node.input(0)?;
    let axis = match (node.dims(x)?.len(), node.input(1).map(|axis| node.number(axis))?) {
        (rank, Some(import::Scalar::Int(axis))) => node.axis(axis, rank)? as i64,
        (1, None) => 0,
        _ => return node.not_chosen(1),
    };
    let attrs = [
        ("axis", axis.into()),
        ("exclusive", node.flag("exclusive", false)?.into()),
        ("reverse", node.flag("reverse", false)?.into()),
    ];
    Ok(vec![node.call(op, &[x], &attrs)?])
}
