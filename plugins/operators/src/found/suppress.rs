//! Boxes that are left when those that overlap better ones are taken away.
//!
//! ```ir
//! %t = vision.suppress(%x, %s, %i, %o, %l, %m)    f32[n, 9, 4], f32[n, 3, 9], i64[n, 3, 9], f32[1], f32[1], shape[5]  =>  (i64[15*n, 3], i64[1])
//! ```
//!
//! The scores `s` of each class of an image come in descending order, with the places `i` of their boxes. A box is kept if its score is
//! above `l` and its overlap with no box kept before is above `o`, at most `m` of a class. The first rows of the first
//! result are image, class and box of each that is kept; the second one says how many there are. The other rows are zero.

use std::cmp::Ordering;

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::program::{Block, Buffer, Extent, Scalar};
use tenon_plugin_api::rule::prelude::*;

use super::first::{bound, first};
use crate::onnx::steps::{cast_to, reshape_to};

/// The boxes of each image and class that no better one overlaps, and how many there are
#[op(name = "vision.suppress", args = 6)]
pub struct Suppress {
    /// whether a box is its middle, width and height, not two corners
    #[attr(default = false)]
    centered: bool,
}

impl Operator for Suppress {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let found = cx.tensor(0)?.dtype;
        if found != DType::F32 {
            let expected = "f32".into();
            return Err(OpError::WrongDType { index: 0, expected, found });
        }
        cx.check_same_dtype(1)?;
        let number = cx.static_tensor_type(DType::F32, &[1]);
        for index in [3, 4] {
            if cx.arg(index)? != number {
                return Err(cx.wrong_arg(index, "an f32[1]"));
            }
        }
        let Some(&[most]) = cx.shape(5)? else {
            return Err(cx.wrong_arg(5, "a shape of one extent"));
        };
        let (boxes, scores) = (cx.tensor_of_rank(0, 3)?.dims, cx.tensor_of_rank(1, 3)?.dims);
        let (Some(boxes), Some(scores)) = (boxes, scores) else {
            return cx.unsupported("boxes of unknown rank");
        };
        if cx.arg(2)? != cx.tensor_type(DType::I64, Some(scores)) {
            return Err(cx.wrong_arg(2, "an i64 for each score"));
        }
        let expected = [scores[0], scores[2], cx.dim(4)];
        if boxes.iter().zip(expected).any(|(&found, expected)| cx.is_different(found, expected)) {
            return Err(cx.mismatch("the boxes and their scores", boxes, scores));
        }
        let of_class = cx.dim_min(most, scores[2]);
        let rows = cx.dim_product(&[scores[0], scores[1], of_class]);
        let kept = cx.tensor_type(DType::I64, Some(&[rows, cx.dim(3)]));
        Ok(cx.tuple_type(&[kept, cx.static_tensor_type(DType::I64, &[1])]))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let [boxes, scores] = [cx.arg(0)?, cx.arg(1)?].map(|tensor| tensor.elements::<f32>());
        let &[images, classes, count] = cx.arg(1)?.shape() else {
            return Err(OpError::Unsupported("three dimensions are expected".into()));
        };
        let places = cx.arg(2)?.elements::<i64>();
        let [overlap, least] = [cx.arg(3)?.elements::<f32>()[0], cx.arg(4)?.elements::<f32>()[0]];
        let most = cx.arg(5)?.elements::<i64>()[0] as usize;
        let mut kept: Vec<i64> = Vec::new();
        for (list, image) in (0..images).flat_map(|image| vec![image; classes]).enumerate() {
            let mut chosen: Vec<[f32; 4]> = Vec::new();
            for at in list * count..(list + 1) * count {
                if chosen.len() == most || scores[at].partial_cmp(&least) != Some(Ordering::Greater)
                {
                    break;
                }
                let place = (image * count + places[at] as usize) * 4;
                let sides = self.sides([0, 1, 2, 3].map(|side| boxes[place + side]));
                if chosen.iter().all(|other| !overlaps(sides, *other, overlap)) {
                    chosen.push(sides);
                    kept.extend([image as i64, (list % classes) as i64, places[at]]);
                }
            }
        }
        let rows = images * classes * most.min(count);
        let found = Tensor::from_vec(vec![1], vec![kept.len() as i64 / 3]);
        kept.resize(rows * 3, 0);
        Ok(vec![Tensor::from_vec(vec![rows, 3], kept), found])
    }
}

impl Suppress {
    /// Where a box begins and ends along both axes.
    fn sides(&self, [a, b, c, d]: [f32; 4]) -> [f32; 4] {
        match self.centered {
            true => [a - c / 2.0, a + c / 2.0, b - d / 2.0, b + d / 2.0],
            false => [a.min(c), a.max(c), b.min(d), b.max(d)],
        }
    }
}

/// Whether the common part of two boxes is more than a share of what they cover together.
fn overlaps(a: [f32; 4], b: [f32; 4], share: f32) -> bool {
    let [width, height] = [0, 2].map(|at| a[at + 1].min(b[at + 1]) - a[at].max(b[at]));
    let [area, other] = [a, b].map(|sides| (sides[1] - sides[0]) * (sides[3] - sides[2]));
    if width <= 0.0 || height <= 0.0 || area <= 0.0 || other <= 0.0 {
        return false;
    }
    let common = width * height;
    common / (area + other - common) > share
}

/// Boxes that are compared before one asks whether there was an overlap.
const PART: i64 = 128;
/// Boxes that are compared at once.
const LANES: i64 = 16;

/// One box after the other, each compared with those that are kept of its class.
#[rule(compute)]
fn program(op: &Suppress, program: &mut Program) -> Result<()> {
    let [boxes, scores, places] = [0, 1, 2].map(|index| program.input(index));
    let [overlap, least] = [3, 4].map(|index| program.input(index));
    let (kept, found) = (program.output(0), program.output(1));
    let (zero, most) = (program.index(0), limit(&kept, &scores));
    // Where the rows of the class in work begin, and whether it may have another one.
    let [begin, is_open] =
        ["begin", "is_open"].map(|name| program.temporary(name, DType::I64, &[1]));
    let cx = program.cx();
    let room = cx.dim_add(scores.shape()[2], cx.dim(PART));
    // The sides of the boxes of the class that are kept, next to each other, so that they are compared in vectors.
    let of_kept =
        ["left", "right", "top", "bottom"].map(|name| program.temporary(name, DType::F32, &[room]));
    of_kept.iter().for_each(|side| program.set(side, |_| program.literal(DType::F32, 0.0)));
    program.set(&kept, |_| zero);
    program.set(&found, |_| zero);
    program.set(&begin, |_| zero);
    program.set(&is_open, |_| zero);
    program.in_order(scores.shape(), |i| {
        let (image, class) = (i[0], i[1]);
        let mut step = program.block();
        let start = [begin.set(&[zero], found.at(&[zero])), is_open.set(&[zero], zero + 1)];
        step.push(program.when(i[2].lt(1), program.seq(&start)));
        let row = step.bind("row", found.at(&[zero]));
        let is_good = scores.at(i).gt(least.at(&[zero])).and((row - begin.at(&[zero])).lt(most));
        let is_wanted = is_good.and(is_open.at(&[zero]).gt(0));
        let is_wanted = step.bind("is_wanted", is_wanted);
        // Scores descend: behind one that is not wanted none is.
        step.push(is_open.set(&[zero], is_wanted.select(zero + 1, zero)));
        let mut body = program.block();
        let place = body.bind("place", places.at(i));
        let own = op.sides_of(&mut body, &boxes, image, place);
        let is_covered = body.local("is_covered", DType::I64, &[1]);
        body.push(is_covered.set(&[zero], zero));
        let count = row - begin.at(&[zero]);
        let covered = body.local("covered", DType::I32, &[LANES]);
        let [no, yes] = [0.0, 1.0].map(|truth| program.literal(DType::I32, truth));
        body.push(program.in_turn(program.index(LANES), |lane| covered.set(&[lane], no)));
        let parts = (count + (PART - 1)) / PART;
        body.push(program.in_turn(parts, |part| {
            let compared = program.in_turn(program.index(PART / LANES), |vector| {
                program.in_turn(program.index(LANES), |lane| {
                    let mut pair = program.block();
                    let at = part * PART + vector * LANES + lane;
                    let other = of_kept.each_ref().map(|side| side.at(&[at]));
                    let overlaps = overlap_above(&mut pair, own, other, overlap.at(&[zero]));
                    let is_one = overlaps.and(at.lt(count));
                    pair.push(covered.set(&[lane], is_one.select(yes, covered.at(&[lane]))));
                    pair.finish()
                })
            });
            let gathered = program.in_turn(program.index(LANES), |lane| {
                is_covered
                    .set(&[zero], is_covered.at(&[zero]).max(covered.at(&[lane]).cast(DType::I64)))
            });
            let is_free = is_covered.at(&[zero]).lt(1);
            program.when(is_free, program.seq(&[compared, gathered]))
        }));
        let mut keep: Vec<_> = [image, class, place]
            .into_iter()
            .zip(0..)
            .map(|(value, column)| kept.set(&[row, program.index(column)], value))
            .collect();
        keep.extend(of_kept.iter().zip(own).map(|(side, value)| side.set(&[count], value)));
        keep.push(found.set(&[zero], row + 1));
        let is_free = is_covered.at(&[zero]).lt(1);
        body.push(program.when(is_free, program.seq(&keep)));
        step.push(program.when(is_wanted, body.finish()));
        step.finish()
    });
    Ok(())
}

/// How many boxes of a class are kept at most, by the rows that there is room for.
fn limit<'p>(kept: &Buffer<'p>, scores: &Buffer<'p>) -> Scalar<'p> {
    let program = kept.program();
    let [rows, images, classes] =
        [kept.shape()[0], scores.shape()[0], scores.shape()[1]].map(|dim| dim.index(program));
    rows / (images * classes).max(1)
}

impl Suppress {
    fn sides_of<'p>(
        &self,
        body: &mut Block<'p>,
        boxes: &Buffer<'p>,
        image: Scalar<'p>,
        place: Scalar<'p>,
    ) -> [Scalar<'p>; 4] {
        let program = boxes.program();
        let number = |side: i64| boxes.at(&[image, place, program.index(side)]);
        let [a, b, c, d] = [0, 1, 2, 3].map(number);
        let sides = match self.centered {
            true => [a - c / 2.0, a + c / 2.0, b - d / 2.0, b + d / 2.0],
            false => [a.min(c), a.max(c), b.min(d), b.max(d)],
        };
        sides.map(|side| body.bind("side", side))
    }
}

/// Whether the common part of two boxes is more than a share of what they cover together.
fn overlap_above<'p>(
    body: &mut Block<'p>,
    a: [Scalar<'p>; 4],
    b: [Scalar<'p>; 4],
    share: Scalar<'p>,
) -> Scalar<'p> {
    let length = |at: usize| a[at + 1].min(b[at + 1]) - a[at].max(b[at]);
    let [width, height] = [length(0), length(2)].map(|length| body.bind("length", length));
    let area = |sides: [Scalar<'p>; 4]| (sides[1] - sides[0]) * (sides[3] - sides[2]);
    let [area, other] = [area(a), area(b)].map(|area| body.bind("area", area));
    let common = body.bind("common", width * height);
    let is_above = (common / (area + other - common)).gt(share);
    let sizes = [height, area, other].map(|size| size.gt(0.0));
    sizes.into_iter().fold(width.gt(0.0), Scalar::and).and(is_above)
}

/// `NonMaxSuppression`: of scores that are in no order.
#[rule(import.onnx, key = "NonMaxSuppression", since = 10)]
fn import(node: &mut Node<'_>) -> Outputs {
    let (boxes, scores) = (node.input(0)?, node.input(1)?);
    let most = match node.optional(2) {
        Some(_) => node.input_dims(2)?.first().copied(),
        None => Some(node.cx().dim(0)),
    };
    let Some(most) = most else { return invalid("how many boxes are kept is not said") };
    let most = match node.terms().dim_value(most) {
        Some(value) if value < 0 => node.cx().dim(0),
        _ => most,
    };
    let overlap = threshold(node, 3, 0.0)?;
    let least = threshold(node, 4, f64::NEG_INFINITY)?;
    let &[images, classes, count] = node.dims(scores)?.as_slice() else {
        return invalid("its scores have not three dimensions");
    };
    let shape = node.shape(&[count])?;
    let sorted = node.apply("topk", &[scores, shape])?;
    let [scores, places] = node.items(sorted)?[..] else { return invalid("scores have no order") };
    let limit = node.shape(&[most])?;
    let args = [boxes, scores, places, overlap, least, limit];
    let centered = node.flag("center_point_box", false)?;
    let kept = node.call("vision.suppress", &args, &[("centered", centered.into())])?;
    let [kept, found] = node.items(kept)?[..] else { return invalid("no box is kept") };
    let of_class = node.cx().dim_min(most, count);
    let rows = node.cx().dim_product(&[images, classes, of_class]);
    let found = bound(node, found, &[rows])?[0];
    let three = node.cx().dim(3);
    Ok(vec![first(node, kept, &[found, three])?])
}

/// An input of one float, or what holds where there is none.
fn threshold(node: &mut Node<'_>, index: usize, default: f64) -> Result<Value, Problem> {
    let value = match node.optional(index) {
        Some(value) => cast_to(node, value, DType::F32)?,
        None => node.scalar(DType::F32, default)?,
    };
    let one = node.cx().dim(1);
    reshape_to(node, value, &[one])
}
