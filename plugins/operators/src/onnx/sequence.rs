//! Sequences: tuples where their lengths are known when the model is read, of which nothing is left where what stands in them is
//! read. Others are open ([`open_sequence`]), and so is one in which a place is known in a call only.
//!
//! ```ir
//! SplitToSequence(%x), SequenceAt(…, 1)    =>    %parts = split(%x) { … }    %y = %parts.1
//! ```

use tenon_plugin_api::rule::prelude::*;

use super::open_sequence;
use crate::movement::split::of_lengths;

/// No model has a longer sequence.
const LONGEST: i64 = 65_536;

/// A sequence.
pub(super) enum Sequence {
    /// What stands in it.
    Known(Vec<Value>),
    /// A tensor with an element in each row.
    Open(Value),
}

impl Sequence {
    /// The sequence that input `index` is.
    pub(super) fn of(node: &mut Node<'_>, index: usize) -> Result<Self, Problem> {
        let sequence = node.input(index)?;
        let is_open = match node.terms().ty(node.ty(sequence)) {
            TypeView::Tuple(&[only]) => matches!(node.terms().ty(only), TypeView::Tuple(_)),
            TypeView::Tuple(_) => false,
            _ => return invalid(format!("its input {} is no sequence", index + 1)),
        };
        let fields = node.items(sequence)?;
        match (is_open, fields.as_slice()) {
            (true, &[inner]) => match node.items(inner)?.as_slice() {
                &[rows] => Ok(Self::Open(rows)),
                _ => invalid(format!("its input {} is no sequence", index + 1)),
            },
            _ => Ok(Self::Known(fields)),
        }
    }

    /// The same, as one in which the place that input `place` is can be found: open where that is known in a call only.
    fn with_place(node: &mut Node<'_>, place: usize) -> Result<Self, Problem> {
        let sequence = Self::of(node, 0)?;
        let is_known = !matches!(node.optional_ints(place), Err(Problem::NotConstant { .. }));
        match sequence {
            Self::Known(elements) if is_known || elements.is_empty() => Ok(Self::Known(elements)),
            other => Ok(Self::Open(open_sequence::rows_of(node, other)?)),
        }
    }
}

/// The place that input `index` says, among so many; from the end where it is negative.
fn place(node: &Node<'_>, index: usize, count: usize) -> Result<Option<usize>, Problem> {
    let Some(numbers) = node.optional_ints(index)? else { return Ok(None) };
    let &[number] = numbers.as_slice() else {
        return invalid(format!("its input {} is no number", index + 1));
    };
    let at = if number < 0 { number + count as i64 } else { number };
    match usize::try_from(at).ok().filter(|&at| at < count) {
        Some(at) => Ok(Some(at)),
        None => invalid(format!("there is no place {number} among {count}")),
    }
}

/// `SequenceEmpty`.
#[rule(import.onnx, key = "SequenceEmpty", since = 11)]
fn empty(node: &mut Node<'_>) -> Outputs {
    node.ignore("dtype");
    Ok(vec![node.tuple(&[])?])
}

/// `SequenceConstruct`.
#[rule(import.onnx, key = "SequenceConstruct", since = 11)]
fn construct(node: &mut Node<'_>) -> Outputs {
    let inputs = node.all_inputs()?;
    Ok(vec![node.tuple(&inputs)?])
}

/// `SequenceInsert`, at the end where no place is given.
#[rule(import.onnx, key = "SequenceInsert", since = 11)]
fn insert(node: &mut Node<'_>) -> Outputs {
    let mut all = match Sequence::with_place(node, 2)? {
        Sequence::Open(rows) => return open_sequence::insert(node, rows),
        Sequence::Known(all) => all,
    };
    // Behind the last is a place as well, and it is not counted from the end.
    let at = match node.optional_ints(2)?.as_deref() {
        Some([at]) if *at == all.len() as i64 => all.len(),
        Some(_) => place(node, 2, all.len())?.unwrap_or(all.len()),
        None => all.len(),
    };
    all.insert(at, node.input(1)?);
    Ok(vec![node.tuple(&all)?])
}

/// `SequenceErase`, of the last where no place is given.
#[rule(import.onnx, key = "SequenceErase", since = 11)]
fn erase(node: &mut Node<'_>) -> Outputs {
    let mut all = match Sequence::with_place(node, 1)? {
        Sequence::Open(rows) => return open_sequence::erase(node, rows),
        Sequence::Known(all) => all,
    };
    let at = match place(node, 1, all.len())?.or(all.len().checked_sub(1)) {
        Some(at) => at,
        None => return invalid("the sequence is empty"),
    };
    all.remove(at);
    Ok(vec![node.tuple(&all)?])
}

/// `SequenceAt`.
#[rule(import.onnx, key = "SequenceAt", since = 11)]
fn at(node: &mut Node<'_>) -> Outputs {
    let all = match Sequence::with_place(node, 1)? {
        Sequence::Open(rows) => return open_sequence::at(node, rows),
        Sequence::Known(all) => all,
    };
    match place(node, 1, all.len())? {
        Some(at) => Ok(vec![all[at]]),
        None => invalid("it says no place"),
    }
}

/// `SequenceLength`.
#[rule(import.onnx, key = "SequenceLength", since = 11)]
fn length(node: &mut Node<'_>) -> Outputs {
    let count = match Sequence::of(node, 0)? {
        Sequence::Open(rows) => node.dims(rows)?[0],
        Sequence::Known(all) => node.cx().dim(all.len() as i64),
    };
    let count = Known::scalar(DType::I64, count);
    Ok(vec![node.known(&count)?])
}

/// `SplitToSequence`: parts of one length, of which the last may be shorter, or of given lengths.
#[rule(import.onnx, key = "SplitToSequence", since = 11)]
fn split(node: &mut Node<'_>) -> Outputs {
    let x = node.input(0)?;
    let dims = node.dims(x)?;
    let axis = node.axis(node.int_or("axis", 0)?, dims.len())?;
    let keeps = node.flag("keepdims", true)?;
    if node.optional(1).is_some()
        && matches!(node.optional_ints(1), Err(Problem::NotConstant { .. }))
    {
        return split_as_told(node, x, &dims, axis);
    }
    let Some(extent) = node.terms().dim_value(dims[axis]) else {
        return split_open(node, x, axis, keeps);
    };
    let lengths = match node.optional(1) {
        None => vec![1; usize::try_from(extent.min(LONGEST + 1)).unwrap_or(0)],
        Some(split) if node.dims(split)?.is_empty() => equal_parts(extent, node.input_ints(1)?[0])?,
        Some(_) => node.input_ints(1)?,
    };
    if lengths.len() as i64 > LONGEST {
        return unsupported(format!("a sequence of more than {LONGEST} tensors"));
    }
    let all = lengths.iter().try_fold(0i64, |sum, &length| sum.checked_add(length));
    if lengths.iter().any(|&length| length < 0) || all != Some(extent) {
        return invalid(format!("the parts are not {extent} together"));
    }
    let mut parts = match lengths.as_slice() {
        [] => Vec::new(),
        [_] => vec![x],
        [first, rest @ ..] => {
            let mut ends = vec![*first];
            for length in &rest[..rest.len() - 1] {
                ends.push(ends[ends.len() - 1] + length);
            }
            let attrs = [("indices", ends.into()), ("axis", (axis as i64).into())];
            let parts = node.call("split", &[x], &attrs)?;
            node.items(parts)?
        }
    };
    // ONNX says that axes stay where lengths are given; PyTorch writes `unbind` with the length 1, and ONNX Runtime takes them away.
    let are_single = match node.optional(1) {
        None => true,
        Some(split) => node.dims(split)?.is_empty() && node.input_ints(1)? == [1],
    };
    if !keeps && are_single {
        for part in &mut parts {
            *part = node.call("squeeze", &[*part], &[("axis", vec![axis as i64].into())])?;
        }
    }
    Ok(vec![node.tuple(&parts)?])
}

/// The same into parts whose lengths, or the extent of all of them, only a call can tell.
fn split_as_told(node: &mut Node<'_>, x: Value, dims: &[Dim], axis: usize) -> Outputs {
    let split = node.input(1)?;
    match (node.dims(split)?.is_empty(), node.input_dims(1)?.as_slice()) {
        (true, &[length]) => open_sequence::split(node, x, (axis, length), false),
        (_, lengths) => {
            let parts = of_lengths(node, x, dims, (axis, lengths))?;
            Ok(vec![node.tuple(&parts)?])
        }
    }
}

/// The same along an axis that a call says the extent of.
fn split_open(node: &mut Node<'_>, x: Value, axis: usize, keeps: bool) -> Outputs {
    let length = match node.optional(1) {
        None => 1,
        Some(split) if node.dims(split)?.is_empty() => node.input_ints(1)?[0],
        Some(_) => {
            let dims = node.dims(x)?;
            return split_as_told(node, x, &dims, axis);
        }
    };
    if length < 1 {
        return invalid(format!("a part cannot be {length} long"));
    }
    let of_parts = node.cx().dim(length);
    open_sequence::split(node, x, (axis, of_parts), !keeps && length == 1)
}

/// The lengths of parts of `length`, of which the last may be shorter.
fn equal_parts(extent: i64, length: i64) -> Result<Vec<i64>, Problem> {
    if length < 1 {
        return invalid(format!("a part cannot be {length} long"));
    }
    let count = extent / length + i64::from(extent % length > 0);
    let counted = usize::try_from(count.min(LONGEST + 1)).unwrap_or(0);
    let part = |at: usize| length.min(extent - at as i64 * length);
    Ok((0..counted).map(part).collect())
}

/// `ConcatFromSequence`: one behind the other along an axis, or along a new one.
#[rule(import.onnx, key = "ConcatFromSequence", since = 11)]
fn concatenate(node: &mut Node<'_>) -> Outputs {
    let Some(axis) = node.int("axis")? else { return invalid("its attribute `axis` is missing") };
    let is_new = node.flag("new_axis", false)?;
    let mut all = match Sequence::of(node, 0)? {
        Sequence::Known(all) => all,
        Sequence::Open(rows) => {
            let rank = node.dims(rows)?.len() - usize::from(!is_new);
            let axis = node.axis(axis, rank)?;
            return open_sequence::concatenate(node, rows, axis, is_new);
        }
    };
    let Some(&first) = all.first() else { return invalid("the sequence is empty") };
    let axis = node.axis(axis, node.dims(first)?.len() + usize::from(is_new))? as i64;
    if is_new {
        for field in &mut all {
            *field = node.call("expand_dims", &[*field], &[("axis", vec![axis].into())])?;
        }
    }
    if let &[only] = all.as_slice() {
        return Ok(vec![only]);
    }
    let tuple = node.tuple(&all)?;
    Ok(vec![node.call("concatenate", &[tuple], &[("axis", axis.into())])?])
}
