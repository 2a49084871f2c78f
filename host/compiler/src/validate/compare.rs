//! Comparing results.

use thiserror::Error;

use half::{bf16, f16};

use super::inputs::Numbers;
use crate::eval::{Tensor, Value};
use crate::ir::DType;

/// How much floats may differ: by `absolute` of the largest number in the tensor plus `relative` of the expected
/// number. What is exact, integers and truth values, must be equal, and so must infinities and what is no
/// number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Part of the expected number.
    pub relative: f64,
    /// Part of the largest number of the tensor, or of 1 when all are smaller.
    pub absolute: f64,
    /// Whether an infinity or a NaN in an input may make NaNs of results that were numbers: they are computed together with others
    /// that stood apart before.
    pub spreads: bool,
}

impl Default for Tolerance {
    /// What reordering the sums of a network in f32 may do.
    fn default() -> Self {
        Self { relative: 1e-3, absolute: 1e-4, spreads: false }
    }
}

/// A place where two results differ.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum Mismatch {
    /// An element of a tensor.
    #[error(
        "tensor {leaf} of the result: element {index} was {expected}, and is {found}; {count} of {of} differ"
    )]
    Element {
        /// Which part of the result: the tensors in it are counted from 0.
        leaf: usize,
        /// The row-major number of the first element that differs.
        index: usize,
        /// Its value before.
        expected: f64,
        /// Its value now.
        found: f64,
        /// Elements that differ.
        count: usize,
        /// Elements that there are.
        of: usize,
    },
    /// Something of another kind or shape.
    #[error("part {leaf} of the result was {expected}, and is {found}")]
    Kind {
        /// Which part of the result, counted from 0.
        leaf: usize,
        /// What it was.
        expected: String,
        /// What it is.
        found: String,
    },
}

/// The elements of a result that nothing has written.
#[derive(Clone, Default)]
pub(super) struct Undefined {
    /// For each part of the result, counted as in a [`Mismatch`], its elements; none where all were written.
    leaves: Vec<Vec<bool>>,
}

impl Undefined {
    /// All was written.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// Where two results differ that came from memory with different contents; `None` when they are of different
    /// kinds or shapes.
    pub(super) fn between(a: &Value, b: &Value) -> Option<Self> {
        let mut leaves = Vec::new();
        for (a, b) in Leaves::of(a, b) {
            let undefined = match (a.to_tensor(), b.to_tensor()) {
                (Some(a), Some(b)) if a.dtype() == b.dtype() && a.shape() == b.shape() => {
                    different_elements(&a, &b)
                }
                (None, None) if describe(&a) == describe(&b) => Vec::new(),
                _ => return None,
            };
            leaves.push(undefined);
        }
        Some(Self { leaves })
    }

    fn has(&self, leaf: usize, index: usize) -> bool {
        self.leaves.get(leaf).and_then(|leaf| leaf.get(index)).is_some_and(|&is| is)
    }
}

/// For each element whether its bytes differ; nothing when no element's do.
fn different_elements(a: &Tensor, b: &Tensor) -> Vec<bool> {
    if a.bytes()[..] == b.bytes()[..] {
        return Vec::new();
    }
    let width = a.dtype().bits().div_ceil(8) as usize;
    let pairs = a.bytes().chunks_exact(width).zip(b.bytes().chunks_exact(width));
    pairs.map(|(a, b)| a != b).collect()
}

/// The parts of two results, side by side. Tuples may be nested to any depth.
struct Leaves {
    waiting: Vec<(Value, Value)>,
}

impl Leaves {
    fn of(a: &Value, b: &Value) -> Self {
        Self { waiting: vec![(a.clone(), b.clone())] }
    }
}

impl Iterator for Leaves {
    type Item = (Value, Value);

    fn next(&mut self) -> Option<(Value, Value)> {
        while let Some((a, b)) = self.waiting.pop() {
            match (&a, &b) {
                (Value::Tuple(x), Value::Tuple(y)) if x.fields().len() == y.fields().len() => {
                    let fields = x.fields().iter().zip(y.fields()).rev();
                    self.waiting.extend(fields.map(|(x, y)| (x.clone(), y.clone())));
                }
                _ => return Some((a, b)),
            }
        }
        None
    }
}

impl Tolerance {
    /// What both allow.
    pub fn max(self, other: Self) -> Self {
        Self {
            relative: self.relative.max(other.relative),
            absolute: self.absolute.max(other.absolute),
            spreads: self.spreads || other.spreads,
        }
    }

    /// Floats that differ by a part of a number, and of the largest of their tensor, and may be NaN beside an infinity.
    pub fn part(part: f64) -> Self {
        Self { relative: part, absolute: part, spreads: true }
    }

    /// Compares a result, computed of such numbers, with the expected one where that is defined.
    pub(super) fn compare(
        &self,
        expected: &Value,
        found: &Value,
        undefined: &Undefined,
        numbers: Numbers,
    ) -> Result<(), Mismatch> {
        Leaves::of(expected, found).enumerate().try_for_each(|(leaf, (expected, found))| {
            self.compare_leaves(leaf, &expected, &found, undefined, numbers)
        })
    }

    fn compare_leaves(
        &self,
        leaf: usize,
        expected: &Value,
        found: &Value,
        undefined: &Undefined,
        numbers: Numbers,
    ) -> Result<(), Mismatch> {
        match (expected, found) {
            (Value::Shape(a), Value::Shape(b)) if a == b => return Ok(()),
            (Value::Scalar(a), Value::Scalar(b)) if a == b => return Ok(()),
            // What these are is known to the evaluation that made them alone.
            (Value::Function(_), Value::Function(_)) | (Value::Storage(_), Value::Storage(_)) => {
                return Ok(());
            }
            _ => {}
        }
        match (expected.to_tensor(), found.to_tensor()) {
            (Some(a), Some(b)) if a.dtype() == b.dtype() && a.shape() == b.shape() => {
                self.compare_tensors(leaf, &a, &b, undefined, numbers)
            }
            _ => {
                let (expected, found) = (describe(expected), describe(found));
                Err(Mismatch::Kind { leaf, expected, found })
            }
        }
    }

    fn compare_tensors(
        &self,
        leaf: usize,
        a: &Tensor,
        b: &Tensor,
        undefined: &Undefined,
        numbers: Numbers,
    ) -> Result<(), Mismatch> {
        if a.bytes()[..] == b.bytes()[..] {
            return Ok(());
        }
        let dtype = a.dtype();
        let (expected, found) = (as_numbers(a), as_numbers(b));
        let is_defined = |index: usize| !undefined.has(leaf, index);
        let finite = (0..expected.len())
            .filter(|&index| expected[index].is_finite() && is_defined(index))
            .map(|index| expected[index]);
        let largest = finite.fold(1.0f64, |most, x| most.max(x.abs()));
        // Narrow floats are rounded at every step.
        let step = match dtype {
            DType::F16 => 4.0 / 1024.0,
            DType::BF16 => 4.0 / 128.0,
            _ => 0.0,
        };
        let width = dtype.bits().div_ceil(8) as usize;
        let differs = |index: &usize| {
            let (x, y) = (expected[*index], found[*index]);
            if !dtype.is_float() {
                let bytes = width * index..width * (index + 1);
                return a.bytes()[bytes.clone()] != b.bytes()[bytes];
            }
            match x.is_finite() && y.is_finite() {
                true => {
                    let allowed = (self.absolute + step) * largest + self.relative * x.abs();
                    (x - y).abs() > allowed
                }
                false if self.spreads && numbers != Numbers::Ordinary && y.is_nan() => false,
                false if numbers != Numbers::Infinite => x != y && !(x.is_nan() && y.is_nan()),
                // Where products and sums change places, `∞ * (2 - 1)` becomes `∞ - ∞`: what is not finite may be no
                // number as well. It does not become finite, nor an infinity the other one.
                false => x.is_finite() || y.is_finite() || x == -y,
            }
        };
        let mut different =
            (0..expected.len()).filter(|&index| is_defined(index) && differs(&index));
        match different.next() {
            None => Ok(()),
            Some(index) => Err(Mismatch::Element {
                leaf,
                index,
                expected: expected[index],
                found: found[index],
                count: 1 + different.count(),
                of: expected.len(),
            }),
        }
    }
}

fn describe(value: &Value) -> String {
    match (value, value.to_tensor()) {
        (_, Some(tensor)) => format!("{}{:?}", tensor.dtype(), tensor.shape()),
        (Value::Shape(dims), _) => format!("the shape {dims:?}"),
        (Value::Scalar(extent), _) => format!("the dimension {extent}"),
        (value, _) => value.kind().to_owned(),
    }
}

/// The elements as f64, the nearest one for integers beyond 2^53.
fn as_numbers(tensor: &Tensor) -> Vec<f64> {
    macro_rules! as_f64 {
        ($ty:ty, $convert:expr) => {
            tensor.elements::<$ty>().iter().map(|&x| $convert(x)).collect()
        };
    }
    match tensor.dtype() {
        DType::F64 => as_f64!(f64, |x| x),
        DType::F32 => as_f64!(f32, f64::from),
        DType::F16 => as_f64!(f16, f64::from),
        DType::BF16 => as_f64!(bf16, f64::from),
        DType::I64 => as_f64!(i64, |x| x as f64),
        DType::U64 => as_f64!(u64, |x| x as f64),
        DType::I32 => as_f64!(i32, f64::from),
        DType::U32 => as_f64!(u32, f64::from),
        DType::I16 => as_f64!(i16, f64::from),
        DType::U16 => as_f64!(u16, f64::from),
        DType::I8 => as_f64!(i8, f64::from),
        _ => as_f64!(u8, f64::from),
    }
}
