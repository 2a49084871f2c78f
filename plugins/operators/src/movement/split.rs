//! The parts of a tensor.
//!
//! ```ir
//! %t = split(%x) { sections = 3, axis = 1 }    f32[n, 9]  =>  (f32[n, 3], f32[n, 3], f32[n, 3])
//! ```

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

use crate::kernel::moves::{copy, wrap_axis};
use crate::kernel::space::row_major;
use crate::onnx::steps::reshape_to;
use crate::precision::follows_precision;
use crate::program::index::axis_of;
use tenon_plugin_api::op::OpPattern;
use tenon_plugin_api::program::Extent;

/// The parts of a tensor along an axis, as a tuple
#[op(name = "split", pattern = "injective")]
pub struct Split {
    /// where the second and later parts begin
    indices: Option<Vec<i64>>,
    /// the number of equal parts
    sections: Option<i64>,
    /// the axis that is divided
    #[attr(default = 0)]
    axis: i64,
}

impl Operator for Split {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        let tensor = cx.tensor(0)?;
        let Some(dims) = tensor.dims else {
            return Err(cx.wrong_arg(0, "a tensor of known rank"));
        };
        let axis = cx.axis("axis", self.axis, dims.len())?;
        let part = |extent: Dim| {
            let mut dims = dims.to_vec();
            dims[axis] = extent;
            cx.tensor_type(tensor.dtype, Some(&dims))
        };
        let extent = cx.value(dims[axis]);
        let parts: Vec<Type> = match (&self.indices, self.sections) {
            (None, Some(sections)) => {
                if !(1..=65536).contains(&sections)
                    || extent.is_some_and(|extent| extent % sections != 0)
                {
                    let reason = format!("it must divide {}", cx.terms().dim_text(dims[axis]));
                    return cx.bad_attr("sections", sections, reason);
                }
                let each = cx.dim_floor_div(dims[axis], cx.dim(sections));
                vec![part(each); sections as usize]
            }
            (Some(indices), None) => {
                let starts: Vec<i64> = [0].into_iter().chain(indices.iter().copied()).collect();
                let is_sorted = starts.windows(2).all(|pair| pair[0] <= pair[1]);
                if !is_sorted
                    || extent.is_some_and(|extent| starts.iter().any(|&start| start > extent))
                {
                    let extent = cx.terms().dim_text(dims[axis]);
                    return cx.bad_attr(
                        "indices",
                        indices,
                        format!("they must ascend from 0 to {extent}"),
                    );
                }
                let last = cx.dim_sub(dims[axis], cx.dim(starts[starts.len() - 1]));
                starts
                    .windows(2)
                    .map(|pair| cx.dim(pair[1] - pair[0]))
                    .chain([last])
                    .map(part)
                    .collect()
            }
            _ => return cx.unsupported("exactly one of `indices` and `sections` must be given"),
        };
        Ok(cx.tuple_type(&parts))
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        let tensor = cx.arg(0)?;
        let axis = wrap_axis(self.axis, tensor.shape().len());
        let strides = row_major(tensor.shape());
        let mut begin = 0;
        let mut parts = Vec::with_capacity(cx.outs.len());
        for (_, shape) in cx.outs {
            parts.push(copy(tensor, begin * strides[axis] as usize, shape, strides.clone())?);
            begin += shape[axis];
        }
        Ok(parts)
    }
}

/// A copy into each part.
#[rule(compute)]
fn program(op: &Split, program: &mut Program) -> Result<()> {
    program.set_pattern(OpPattern::Opaque);
    let input = program.input(0);
    let axis = axis_of(op.axis, input.shape().len())?;
    let cx = program.cx();
    let mut first = cx.dim(0);
    for output in program.outputs() {
        let before = first.index(program);
        if !output.shape().iter().any(|extent| extent.is(program, 0)) {
            program.each(output.shape(), |indices| {
                let mut source = indices.to_vec();
                source[axis] = indices[axis] + before;
                output.set(indices, input.at(&source))
            });
        }
        first = cx.dim_add(first, output.shape()[axis]);
    }
    Ok(())
}

follows_precision!(Split);

/// Along the place of its axis.
#[rule(layout)]
fn layout(op: &Split, at: &mut Following<'_>) -> Option<Carried> {
    at.along_axis("axis", op.axis)
}

/// The parts of `g` one after the other, with zeros for parts that are not read.
#[rule(gradient)]
fn gradient(op: &Split, at: &mut Adjoint<'_>) -> Result<Grads> {
    let parts = match at.ty().map(|ty| at.terms().ty(ty)) {
        Some(TypeView::Tuple(parts)) => parts.to_vec(),
        _ => return Err(OpError::Unsupported("its result is no tuple".into())),
    };
    let mut fields = Vec::with_capacity(parts.len());
    for (place, part) in parts.into_iter().enumerate() {
        let Some(g) = at.grads()[place].or_else(|| at.zeros(part)) else {
            return Err(OpError::Unsupported("the rank of a part is not known".into()));
        };
        fields.push(g);
    }
    let axis = at.axis(at.arg(0), op.axis)?;
    let tuple = at.tuple(&fields);
    Ok(Grads::of([at.apply_with("concatenate", &[tuple], &[("axis", axis.into())])]))
}

/// `Split` into parts of given lengths, or into equal ones of which the last may be shorter.
#[rule(import.onnx, key = "Split", since = 2)]
fn import(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axis = node.axis(node.int_or("axis", 0)?, dims.len())?;
    let lengths = match node.version() < 13 {
        true => node.ints("split")?,
        false => match node.optional_ints(1) {
            Err(Problem::NotConstant { .. }) => {
                let lengths = node.input_dims(1)?;
                return of_lengths(node, x, &dims, (axis, &lengths));
            }
            known => known?,
        },
    };
    let extent = node.terms().dim_value(dims[axis]);
    let attr = match lengths {
        Some(lengths) if lengths.len() != node.output_count() => {
            let count = node.output_count();
            return invalid(format!("it has {count} outputs for the lengths {lengths:?}"));
        }
        Some(lengths) => ("indices", indices(&lengths, extent)?.into()),
        None => {
            let named = node.int("num_outputs")?;
            let count = named.unwrap_or(node.output_count() as i64);
            if count < 1 || count > node.output_count() as i64 {
                return invalid(format!(
                    "it has {} outputs for {count} parts",
                    node.output_count()
                ));
            }
            match extent {
                Some(extent) if extent % count != 0 => {
                    let length = extent / count + 1;
                    let starts = (1..count).map(|part| part.saturating_mul(length).min(extent));
                    ("indices", starts.collect::<Vec<i64>>().into())
                }
                None if !is_multiple(node, dims[axis], count) => {
                    let lengths = open_lengths(node, dims[axis], count, named.is_some());
                    return of_lengths(node, x, &dims, (axis, &lengths));
                }
                _ => ("sections", count.into()),
            }
        }
    };
    let parts = node.call("split", &[x], &[attr, ("axis", (axis as i64).into())])?;
    node.items(parts)
}

/// Whether an extent is known to be divided by a number, whatever its symbols stand for.
fn is_multiple(node: &Node<'_>, extent: Dim, count: i64) -> bool {
    let left = node.cx().dim_floor_mod(extent, node.cx().dim(count));
    node.terms().dim_value(left) == Some(0)
}

/// The lengths of as many parts of an extent that is not known; the last one may be shorter, or is as long as the others.
fn open_lengths(node: &Node<'_>, extent: Dim, count: i64, may_be_shorter: bool) -> Vec<Dim> {
    let cx = node.cx();
    let room = if may_be_shorter { count - 1 } else { 0 };
    let length = cx.dim_floor_div(cx.dim_add(extent, cx.dim(room)), cx.dim(count));
    let mut lengths = vec![length; count as usize];
    if may_be_shorter {
        let before = cx.dim_mul(length, cx.dim(count - 1));
        lengths[count as usize - 1] = cx.dim_sub(extent, before);
    }
    lengths
}

/// Parts whose lengths are dimensions. A call finds whether they are as much together as there is.
pub(crate) fn of_lengths(
    node: &mut Node<'_>,
    x: Value,
    dims: &[Dim],
    (axis, lengths): (usize, &[Dim]),
) -> Outputs {
    let zero = node.cx().dim(0);
    let whole = lengths.iter().fold(zero, |sum, &length| node.cx().dim_add(sum, length));
    let mut shape = dims.to_vec();
    shape[axis] = whole;
    // That the lengths make the whole is what makes this possible.
    let x = if shape == dims { x } else { reshape_to(node, x, &shape)? };
    let mut first = vec![zero; dims.len()];
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let place = node.known(&Known::vector(first.clone()))?;
        shape[axis] = length;
        let size = node.shape(&shape)?;
        parts.push(node.apply("dynamic_slice", &[x, place, size])?);
        first[axis] = node.cx().dim_add(first[axis], length);
    }
    Ok(parts)
}

/// Where the second and later parts begin.
fn indices(lengths: &[i64], extent: Option<i64>) -> Result<Vec<i64>, Problem> {
    let mut starts = Vec::with_capacity(lengths.len());
    let mut sum = 0i64;
    for &length in lengths {
        starts.push(sum);
        sum = match sum.checked_add(length) {
            Some(sum) if length >= 0 => sum,
            _ => return invalid(format!("its parts have the lengths {lengths:?}")),
        };
    }
    if extent.is_some_and(|extent| extent != sum) {
        return invalid(format!("the lengths {lengths:?} of its parts do not make the whole"));
    }
    Ok(starts.split_off(1.min(starts.len())))
}
