//! The text form of dimensions.

use std::fmt::Write;

use super::type_text::{LONGEST_TEXT, cut};
use crate::ir::{Dim, DimView, Terms};

impl Terms<'_> {
    /// The text form of a dimension: `4*n + 1`, `floordiv(n - 1, 2) + 1`. For messages: a long one is cut,
    /// and ends in `…`. Does not recurse.
    pub fn dim_text(self, dim: Dim) -> String {
        enum Step {
            Dim(Dim, bool),
            Text(&'static str),
        }
        let mut out = String::new();
        let mut stack = vec![Step::Dim(dim, false)];
        while let Some(step) = stack.pop() {
            if out.len() > LONGEST_TEXT {
                break;
            }
            let (dim, is_factor) = match step {
                Step::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Step::Dim(dim, is_factor) => (dim, is_factor),
            };
            let mut call = |name: &'static str, a: Dim, b: Dim| {
                out.push_str(name);
                stack.extend([
                    Step::Text(")"),
                    Step::Dim(b, false),
                    Step::Text(", "),
                    Step::Dim(a, false),
                ]);
            };
            match self.dim(dim) {
                DimView::Const(value) => write!(out, "{value}").expect("a string takes all"),
                DimView::Symbol(name) => out.push_str(self.str(name)),
                DimView::Add(parts) => {
                    if is_factor {
                        out.push('(');
                        stack.push(Step::Text(")"));
                    }
                    for (i, &part) in parts.iter().enumerate().rev() {
                        stack.push(Step::Dim(part, false));
                        if i > 0 {
                            stack.push(Step::Text(" + "));
                        }
                    }
                }
                DimView::Mul(factors) => {
                    // A product within a product is one that has become too long to be one with it.
                    if is_factor {
                        out.push('(');
                        stack.push(Step::Text(")"));
                    }
                    for (i, &factor) in factors.iter().enumerate().rev() {
                        stack.push(Step::Dim(factor, true));
                        if i > 0 {
                            stack.push(Step::Text("*"));
                        }
                    }
                }
                DimView::FloorDiv(a, b) => call("floordiv(", a, b),
                DimView::FloorMod(a, b) => call("floormod(", a, b),
                DimView::Min(a, b) => call("min(", a, b),
                DimView::Max(a, b) => call("max(", a, b),
                DimView::Unknown(kind) => {
                    write!(out, "unknown<{}>", kind.0).expect("a string takes all");
                }
            }
        }
        cut(out)
    }
}
