//! The largest or smallest elements along an axis.
//!
//! ```ir
//! %t = topk(%x, %k) { axis = 1 }    f32[n, 9], shape[2]  =>  (f32[n, 2], i64[n, 2])
//! ```
//!
//! The best one comes first, and of equal ones the first. What is not a number is above all numbers. Where there are
//! fewer elements than are asked for, it gives all of them.

use std::cmp::Ordering;

use tenon_plugin_api::ir::{BinaryOp, Build};
use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Block, Buffer, Extent, Scalar, Stmt};
use tenon_plugin_api::rule::prelude::*;
use tenon_plugin_api::with_number;

use super::by_digits;
use crate::kernel::moves::wrap_axis;
use crate::movement::places::around;
use crate::onnx::steps::has_enough;
use crate::program::index::axis_of;

/// The largest or smallest elements along an axis, as many as the second argument says, and where they are
#[op(name = "topk", args = 2)]
pub struct Topk {
    /// the axis
    #[attr(default = -1)]
    axis: i64,
    /// whether the largest ones are meant, not the smallest
    #[attr(default = true)]
    largest: bool,
}

impl Operator for Topk {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let TensorTy { dtype, dims } = cx.tensor(0)?;
        if dtype.is_bool() {
            let expected = "a number".into();
            return Err(OpError::WrongDType { index: 0, expected, found: dtype });
        }
        let Some(&[count]) = cx.shape(1)? else {
            return Err(cx.wrong_arg(1, "a shape of one extent"));
        };
        let Some(dims) = dims else {
            let [values, places] = [dtype, DType::I64].map(|dtype| cx.tensor_type(dtype, None));
            return Ok(cx.tuple_type(&[values, places]));
        };
        let axis = cx.axis("axis", self.axis, dims.len())?;
        let mut dims = dims.to_vec();
        dims[axis] = cx.dim_min(count, dims[axis]);
        let [values, places] = [dtype, DType::I64].map(|dtype| cx.tensor_type(dtype, Some(&dims)));
        Ok(cx.tuple_type(&[values, places]))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let tensor = cx.arg(0)?;
        let axis = wrap_axis(self.axis, tensor.shape().len());
        let (outer, extent, inner) = around(tensor.shape(), axis);
        let (_, shape) = cx.out()?;
        let count = shape[axis];
        with_number!(tensor.dtype(), T => {
            let elements = tensor.elements::<T>();
            let mut values = vec![T::default(); outer * count * inner];
            let mut places = vec![0i64; outer * count * inner];
            for row in 0..outer * inner {
                let (part, column) = (row / inner, row % inner);
                let element = |place: usize| elements[(part * extent + place) * inner + column];
                let mut order: Vec<usize> = (0..extent).collect();
                order.sort_by(|&a, &b| match self.largest {
                    true => ascending(element(b), element(a)),
                    false => ascending(element(a), element(b)),
                });
                for (rank, &place) in order[..count].iter().enumerate() {
                    let to = (part * count + rank) * inner + column;
                    values[to] = element(place);
                    places[to] = place as i64;
                }
            }
            Ok(vec![
                Tensor::from_vec_as(tensor.dtype(), shape.to_vec(), values),
                Tensor::from_vec(shape.to_vec(), places),
            ])
        })
    }
}

/// What is no number is above all numbers.
fn ascending<T: Number>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A heap of the best elements so far, the worst of them on top, which each element that is better replaces. In the end the heap
/// is emptied from the worst to the best.
#[rule(compute)]
fn program(op: &Topk, program: &mut Program) -> Result<()> {
    let [x, values, places] = [program.input(0), program.output(0), program.output(1)];
    let axis = axis_of(op.axis, x.shape().len())?;
    let outer = [&values.shape()[..axis], &values.shape()[axis + 1..]].concat();
    let (extent, count) = (x.shape()[axis], values.shape()[axis]);
    if by_digits::is_better(program, x.compute_dtype(), [extent, count]) {
        let along = by_digits::Along { x: &x, axis, largest: op.largest };
        along.program(program, [&values, &places]);
        return Ok(());
    }
    let sizes = [&outer[..], &[count]].concat();
    let heap = Heap {
        values: program.temporary("heap", x.compute_dtype(), &sizes),
        places: program.temporary("heap_places", DType::I64, &sizes),
        levels: levels(program, count),
        count,
        largest: op.largest,
    };
    let worst = match (op.largest, x.dtype().is_float()) {
        (true, _) => f64::NEG_INFINITY,
        (false, true) => f64::NAN,
        (false, false) => f64::INFINITY,
    };
    let worst = program.literal(x.compute_dtype(), worst);
    program.set(&heap.values, |_| worst);
    // Behind all others, so that every element is better.
    program.set(&heap.places, |_| extent.index(program));
    if program.dim_value(count) == Some(0) {
        return Ok(());
    }
    program.sweep(&outer, &[extent], |i, r| {
        let mut body = program.block();
        let value = body.bind("value", x.wide(&across(i, axis, r[0])));
        let top = heap.at(i, program.index(0));
        let is_better = heap.is_better([value, r[0]], top);
        let size = count.index(program);
        body.push(program.when(is_better, heap.sink(i, size, [value, r[0]])));
        match program.dim_value(count) {
            Some(_) => body.finish(),
            None => program.when(program.index(0).lt(size), body.finish()),
        }
    });
    program.sweep(&outer, &[count], |i, r| {
        let mut body = program.block();
        let rank = count.index(program) - 1 - r[0];
        let [value, place] = heap.at(i, program.index(0));
        body.push(values.set(&across(i, axis, rank), value));
        body.push(places.set(&across(i, axis, rank), place));
        let [value, place] = heap.at(i, rank);
        let last = [body.bind("last", value), body.bind("last_place", place)];
        body.push(heap.sink(i, rank, last));
        body.finish()
    });
    Ok(())
}

/// The place in a row of several axes, of which one is the axis that is gone along.
fn across<'p>(row: &[Scalar<'p>], axis: usize, place: Scalar<'p>) -> Vec<Scalar<'p>> {
    [&row[..axis], &[place], &row[axis..]].concat()
}

/// A heap has no more levels, whatever memory there is.
const LEVELS: u32 = 47;

/// How many levels a heap of so many elements has below the first, where they are not known.
fn levels<'p>(program: &'p Program, count: Dim) -> Option<Buffer<'p>> {
    if program.dim_value(count).is_some() {
        return None;
    }
    let shape = [program.cx().dim(1)];
    Some(program.map("levels", DType::I64, &shape, |_| {
        let has_level = |level: u32| count.index(program).ge(1 << level).cast(DType::I64);
        (1..LEVELS).fold(program.index(0), |levels, level| levels + has_level(level))
    }))
}

/// For each row a heap in a buffer: no element is better than those below it.
struct Heap<'p> {
    values: Buffer<'p>,
    places: Buffer<'p>,
    count: Dim,
    /// The levels below the first, where the count is not known.
    levels: Option<Buffer<'p>>,
    largest: bool,
}

impl<'p> Heap<'p> {
    /// An element and its place.
    fn at(&self, row: &[Scalar<'p>], index: Scalar<'p>) -> [Scalar<'p>; 2] {
        let index = [row, &[index]].concat();
        [self.values.at(&index), self.places.at(&index)]
    }

    /// Whether the first of two elements is wanted before the other.
    fn is_better(&self, a: [Scalar<'p>; 2], b: [Scalar<'p>; 2]) -> Scalar<'p> {
        let is_above = |a: Scalar<'p>, b: Scalar<'p>| {
            let is_above = a.gt(b);
            if !a.dtype().is_float() {
                return is_above;
            }
            let is_nan = a.binary(BinaryOp::Ne, a);
            is_above.binary(BinaryOp::Or, is_nan.and(b.binary(BinaryOp::Eq, b)))
        };
        let (wins, loses) = match self.largest {
            true => (is_above(a[0], b[0]), is_above(b[0], a[0])),
            false => (is_above(b[0], a[0]), is_above(a[0], b[0])),
        };
        let is_equal = loses.binary(BinaryOp::Eq, 0);
        wins.binary(BinaryOp::Or, is_equal.and(a[1].lt(b[1])))
    }

    /// Puts an element in the place of the one on top of a heap of so many, and lower until nothing below it is worse.
    fn sink(&self, row: &[Scalar<'p>], size: Scalar<'p>, new: [Scalar<'p>; 2]) -> Stmt {
        let program = size.program();
        let mut body = program.block();
        if let Some(levels) = &self.levels {
            let hole = body.local("hole", DType::I64, &[1]);
            let first = program.index(0);
            body.push(hole.set(&[first], first));
            body.push(program.in_turn(levels.at(&[first]), |_| {
                let mut level = program.block();
                let at = level.bind("at", hole.at(&[first]));
                let next = self.sink_by_one(&mut level, row, (at, size), new);
                level.push(hole.set(&[first], next));
                level.finish()
            }));
            body.push(self.store(row, hole.at(&[first]), new));
            return body.finish();
        }
        let count = program.dim_value(self.count).unwrap_or(1);
        let mut hole = program.index(0);
        for _ in 0..count.ilog2() {
            let next = self.sink_by_one(&mut body, row, (hole, size), new);
            hole = body.bind("hole", next);
        }
        body.push(self.store(row, hole, new));
        body.finish()
    }

    /// Brings what is below a hole into it if that is worse than a new element; the place of the hole then.
    fn sink_by_one(
        &self,
        body: &mut Block<'p>,
        row: &[Scalar<'p>],
        (hole, size): (Scalar<'p>, Scalar<'p>),
        new: [Scalar<'p>; 2],
    ) -> Scalar<'p> {
        let program = size.program();
        let left = body.bind("left", hole * 2 + 1);
        let last = self.count.index(program) - 1;
        let within = |index: Scalar<'p>| index.min(last);
        let [a, b] = [left, left + 1].map(|child| self.at(row, within(child)));
        let is_right = (left + 1).lt(size).and(self.is_better(a, b));
        let is_right = body.bind("is_right", is_right);
        let child = body.bind("child", within(is_right.select(left + 1, left)));
        let [value, place] = self.at(row, child);
        let below = [body.bind("below", value), body.bind("below_place", place)];
        let moves = left.lt(size).and(self.is_better(new, below));
        let moves = body.bind("moves", moves);
        body.push(program.when(moves, self.store(row, hole, below)));
        moves.select(child, hole)
    }

    fn store(
        &self,
        row: &[Scalar<'p>],
        index: Scalar<'p>,
        [value, place]: [Scalar<'p>; 2],
    ) -> Stmt {
        let index = [row, &[index]].concat();
        let program = place.program();
        program.seq(&[self.values.set(&index, value), self.places.set(&index, place)])
    }
}

/// `g` of the values, at their places.
#[rule(gradient)]
fn gradient(op: &Topk, at: &mut Adjoint<'_>) -> Result<Grads> {
    let Some(g) = at.grads()[0] else { return Ok(at.nothing()) };
    let places = at.value();
    let places = at.tuple_get_item(places, 1);
    let zeros = at.zeros_like(at.arg(0))?;
    let g = at.apply_with("scatter_elements", &[zeros, places, g], &[("axis", op.axis.into())]);
    Ok([Grad::Of(g), Grad::Zero].into())
}

/// `TopK`, of as many elements as an attribute says, or an input.
#[rule(import.onnx, key = "TopK", since = 1)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let count = match node.version() < 10 {
        true => node.int("k")?.map(|count| node.cx().dim(count)),
        false => node.input_dims(1)?.first().copied(),
    };
    let Some(count) = count else { return invalid("how many elements is not said") };
    if let Some(count) = node.terms().dim_value(count).filter(|&count| count < 0) {
        return invalid(format!("{count} elements are asked for"));
    }
    // Those that need not be sorted may be.
    node.ignore("sorted");
    let axis = node.int_or("axis", -1)?;
    let rank = node.dims(x)?.len();
    let axis = node.axis(axis, rank)?;
    let x = has_enough(node, x, axis, count)?;
    let attrs = [("axis", (axis as i64).into()), ("largest", node.flag("largest", true)?.into())];
    let count = node.shape(&[count])?;
    let both = node.call("topk", &[x, count], &attrs)?;
    node.items(both)
}
