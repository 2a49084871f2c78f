//! Constants as signed bytes.

use tenon_plugin_api::prelude::*;

/// Constants that are signed bytes but for a number that is added to all of a column.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    /// In i32, each a number of i8.
    pub(super) bytes: Expr,
    /// What is added, in i32, one for each column; none where it is nothing.
    pub(super) more: Option<Expr>,
}

impl Weights {
    /// A constant of i32 whose columns lie along an axis; none where the numbers of a column are too far apart.
    pub(super) fn of(rw: &mut Rewriter, constant: Expr, axis: usize) -> Option<Self> {
        let bytes = rw.definition(constant);
        let shape = rw.extents(bytes)?;
        let columns = usize::try_from(*shape.get(axis)?).ok()?;
        let inner = usize::try_from(shape[axis + 1..].iter().product::<i64>()).ok()?.max(1);
        let View::Constant(constant) = rw.view(bytes) else { return None };
        let numbers: Vec<i32> = constant
            .bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|four| i32::from_le_bytes(*four))
            .collect();
        let mut bounds = vec![[0i32; 2]; columns];
        for (at, &number) in numbers.iter().enumerate() {
            let [least, most] = &mut bounds[at / inner % columns];
            (*least, *most) = ((*least).min(number), (*most).max(number));
        }
        let more = |&[least, most]: &[i32; 2]| match most.checked_sub(least)? {
            256.. => None,
            _ => Some((most - 127).max(0) + (least + 128).min(0)),
        };
        let more = bounds.iter().map(more).collect::<Option<Vec<i32>>>()?;
        if more.iter().all(|&each| each == 0) {
            return Some(Self { bytes, more: None });
        }
        let lowered = numbers.iter().enumerate();
        let lowered = lowered.map(|(at, number)| number - more[at / inner % columns]);
        let lowered: Vec<u8> = lowered.flat_map(i32::to_le_bytes).collect();
        let ty = rw.cx().static_tensor_type(DType::I32, &shape);
        let bytes = rw.constant(ty, &lowered);
        let ty = rw.cx().static_tensor_type(DType::I32, &[columns as i64]);
        let more: Vec<u8> = more.into_iter().flat_map(i32::to_le_bytes).collect();
        Some(Self { bytes, more: Some(rw.constant(ty, &more)) })
    }
}
