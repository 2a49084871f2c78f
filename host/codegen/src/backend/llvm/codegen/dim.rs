//! Numbers that a program learns when it is called: symbols, and arithmetic over them.
//!
//! ```text
//! dim(2*n + 1)  =>  %1 = mul nsw i64 2, %n; %2 = add nsw i64 %1, 1
//! ```
//!
//! Nothing recurses, so that a dimension may nest as deeply as it likes.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::{
    assembler::Assembler,
    error::{Problem, Result},
    range::Range,
    value::Value,
};
use tenon_ir::{BinaryOp, DType, Dim, DimView, Symbol, Terms};

/// The values of symbols.
pub(super) type Symbols<'cx> = HashMap<Symbol, Value<'cx>, FxBuildHasher>;

/// What a symbol may stand for: who calls sees to it that no extent is larger.
pub(super) const SYMBOL: Range = Range { low: 0, high: crate::plan::LARGEST_EXTENT };

impl<'cx> Assembler<'cx, '_> {
    /// The value of a dimension, an `i64`.
    pub(super) fn dim(
        &self,
        terms: Terms<'_>,
        symbols: &Symbols<'cx>,
        root: Dim,
    ) -> Result<Value<'cx>> {
        let mut known: HashMap<Dim, Value<'cx>, FxBuildHasher> = HashMap::default();
        let mut pending = vec![root];
        while let Some(&dim) = pending.last() {
            if known.contains_key(&dim) {
                pending.pop();
                continue;
            }
            let parts: &[Dim] = match terms.dim(dim) {
                DimView::Add(parts) | DimView::Mul(parts) => parts,
                DimView::FloorDiv(a, b)
                | DimView::FloorMod(a, b)
                | DimView::Min(a, b)
                | DimView::Max(a, b) => &[a, b],
                DimView::Const(_) | DimView::Symbol(_) | DimView::Unknown(_) => &[],
            };
            let waiting = pending.len();
            pending.extend(parts.iter().filter(|part| !known.contains_key(part)));
            if pending.len() > waiting {
                continue;
            }
            let values: Vec<Value<'cx>> = parts.iter().map(|part| known[part]).collect();
            known.insert(dim, self.dim_of(terms, symbols, dim, &values)?);
            pending.pop();
        }
        Ok(known[&root])
    }

    /// A dimension whose parts have values.
    fn dim_of(
        &self,
        terms: Terms<'_>,
        symbols: &Symbols<'cx>,
        dim: Dim,
        parts: &[Value<'cx>],
    ) -> Result<Value<'cx>> {
        let op = match terms.dim(dim) {
            DimView::Const(value) => {
                let constant = Value::scalar(DType::I64, self.index(value));
                return Ok(constant.with_range(Some(Range::exactly(value))));
            }
            DimView::Symbol(name) => {
                return symbols.get(&name).copied().ok_or_else(|| Problem::Symbolic {
                    what: "an expression".to_owned(),
                    shape: terms.dim_text(dim),
                });
            }
            DimView::Add(_) => BinaryOp::Add,
            DimView::Mul(_) => BinaryOp::Mul,
            DimView::FloorDiv(..) => BinaryOp::FloorDiv,
            DimView::FloorMod(..) => BinaryOp::FloorMod,
            DimView::Min(..) => BinaryOp::Min,
            DimView::Max(..) => BinaryOp::Max,
            DimView::Unknown(_) => {
                return Problem::malformed(format!("the dimension {}", terms.dim_text(dim)));
            }
        };
        let Some((&first, rest)) = parts.split_first() else {
            return Problem::malformed("a dimension without parts");
        };
        rest.iter().try_fold(first, |value, &part| self.binary(op, value, part))
    }
}
