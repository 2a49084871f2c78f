//! Products with packed weights.

use tenon_plugin_api::prelude::*;

use super::Alter;
use crate::convert_to_dots::{padded, rounded_up};

/// Elements from which a second copy of weights costs more than a product that is a third faster gains.
const LARGE: i64 = 1 << 18;

impl Alter<'_> {
    /// Packs the weights of a product: `[N, K]` becomes `[N/16, K, 16]`.
    pub(super) fn dense(&mut self, x: Expr, weight: Expr, attrs: Attrs) -> Option<Expr> {
        let layout = self.body.terms().attrs(attrs).str("weight_layout").unwrap_or("NK");
        if layout != "NK" {
            return None;
        }
        self.packed(x, weight, "NK", attrs)
    }

    /// Packs the right matrix of a product, `[K, N]` or `[N, K]`, in the same way.
    pub(super) fn matmul(&mut self, x: Expr, weight: Expr, attrs: Attrs) -> Option<Expr> {
        let read = self.body.terms().attrs(attrs);
        if read.bool("transpose_a") == Some(true) {
            return None;
        }
        let layout = if read.bool("transpose_b") == Some(true) { "NK" } else { "KN" };
        let cx = self.rw.cx();
        let attrs = cx.without_attr(cx.without_attr(attrs, "transpose_a"), "transpose_b");
        self.packed(x, weight, layout, attrs)
    }

    /// The product of rows with a constant matrix of a layout, packed.
    fn packed(&mut self, x: Expr, weight: Expr, layout: &str, attrs: Attrs) -> Option<Expr> {
        let (_, shape) = self.body.terms().static_tensor(self.body.ty(weight)?)?;
        if shape.len() != 2 || !self.is_known(weight) {
            return None;
        }
        let axis = layout.find('N')?;
        let columns = shape[axis];
        let block = self.panels.of(&self.rw, x, columns)?;
        let beyond = rounded_up(columns, block) - columns;
        let is_large = shape.iter().product::<i64>() >= LARGE;
        if (is_large || beyond > 0) && self.shared.contains(&mut self.rw, weight) {
            return None;
        }
        let packed = format!("NK{block}n");
        let mut weight = self.rw.body().resolve(weight);
        let mut attrs = self.rw.cx().with_attr(attrs, "weight_layout", packed.as_str().into());
        if beyond > 0 {
            let filled = if axis == 0 { [beyond, 0] } else { [0, beyond] };
            weight = padded(&mut self.rw, weight, filled);
            attrs = self.rw.cx().with_attr(attrs, "units", columns.into());
        }
        let weight = self.transform(weight, layout, &packed);
        let x = self.rw.body().resolve(x);
        Some(self.rw.call_op("nn.dense", &[x, weight], attrs))
    }
}
