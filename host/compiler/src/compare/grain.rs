//! What numbers were rounded to on the way, which says how far they may be off.
//!
//! Sums in another order differ in the last places. Where such a number is rounded to fewer places, it may become either of its neighbours
//! there, and all that is made of it differs by as much.

use crate::eval::Tensor;
use crate::ir::{Context, DType, Module, TypeView, View};

/// The coarsest elements that numbers were rounded to, finest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grain {
    /// Those of f32 and wider ones, or integers that nothing was rounded to.
    #[default]
    Fine,
    /// f16, of 11 places.
    Half,
    /// bf16, of 8 places, and bytes on a scale.
    Byte,
}

impl Grain {
    /// The largest difference that is none, as a part of the largest magnitude: some steps of such elements.
    pub(super) fn tolerance(self) -> f64 {
        match self {
            Grain::Fine => 1e-3,
            Grain::Half => 2e-2,
            Grain::Byte => 5e-2,
        }
    }

    /// What a program rounds to: the narrow floats in it, and bytes that floats become.
    pub(super) fn of_program(module: &Module, name: &str) -> Self {
        let Some(function) = module.get_str(name) else { return Self::Fine };
        let (cx, body) = (module.cx(), function.view());
        let dtype = |expr| match cx.terms().ty(body.ty(expr)?) {
            TypeView::Scalar { dtype, .. } | TypeView::Tensor { dtype, .. } => Some(dtype),
            _ => None,
        };
        let of = |expr| match dtype(expr) {
            Some(DType::F16) => Self::Half,
            Some(DType::BF16) => Self::Byte,
            Some(DType::I8 | DType::U8) => match body.view(expr) {
                View::Cast { value } if dtype(value).is_some_and(DType::is_float) => Self::Byte,
                _ => Self::Fine,
            },
            _ => Self::Fine,
        };
        body.post_order().map(of).max().unwrap_or_default()
    }
}

/// Whether two elements of a type are neighbours: bytes that differ by a step.
pub(super) fn is_step(tensor: &Tensor, expected: f64, found: f64) -> bool {
    matches!(tensor.dtype(), DType::I8 | DType::U8) && (expected - found).abs() <= 1.0
}
