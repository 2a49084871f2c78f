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
    front::result_of,
    range::Range,
    statement::scalar,
    value::Value,
};
use crate::backend::llvm::attributes::pure;
use tenon_ir::{BinaryOp, DType, Dim, DimView, Symbol, Terms};

/// The values of symbols.
pub(super) type Symbols<'cx> = HashMap<Symbol, Value<'cx>, FxBuildHasher>;

/// Parts of a dimension, from which on LLVM is not told of them.
const MANY_PARTS: usize = 16;

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
        match known.len() > MANY_PARTS {
            true => self.opaque(known[&root]),
            false => Ok(known[&root]),
        }
    }

    /// The same number, of which LLVM does not see what it is the sum of. Its strength reduction tries every few of the terms of an address,
    /// so what stands behind a hundred tensors of unknown sizes would take it a minute.
    fn opaque(&self, value: Value<'cx>) -> Result<Value<'cx>> {
        let number = scalar(value)?;
        let (cx, int) = (self.cx, number.get_type());
        let constraints = if self.target.device().is_some() { "=l,0" } else { "=r,0" };
        let ty = int.fn_type(&[int.into()], false);
        let code =
            cx.create_inline_asm(ty, String::new(), constraints.into(), false, false, None, false);
        let call = self.builder.build_indirect_call(ty, code, &[number.into()], "")?;
        pure(self.cx, call);
        let same = result_of(call)?.into_int_value();
        Ok(Value::scalar(DType::I64, same).with_range(value.range))
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
