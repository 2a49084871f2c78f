//! The text form of types.

use std::fmt::Write;

use crate::ir::{Dim, Terms, Type, TypeView};

/// Bytes behind which a text for people is cut: parts that are shared are one term, but are written each
/// time, so a small term may have a text that fills the memory.
pub(super) const LONGEST_TEXT: usize = 1000;

/// The text, or what there is room for and `…`.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}

/// What is still to be written, last first.
enum Step {
    Type(Type),
    Text(&'static str),
}

impl Terms<'_> {
    /// The text form of a type: `f32[1, n]`, `(f32[4], i64)`, `fn(f32[4]) -> f32[4]`, `shape[n, 4]`,
    /// `object<storage>`; `[*]` for an unknown rank, `f32x8` for a vector. For messages: a long one is cut,
    /// and ends in `…`. Does not recurse.
    pub fn type_text(self, ty: Type) -> String {
        let mut out = String::new();
        let mut stack = vec![Step::Type(ty)];
        while let Some(step) = stack.pop() {
            if out.len() > LONGEST_TEXT {
                break;
            }
            let ty = match step {
                Step::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Step::Type(ty) => ty,
            };
            match self.ty(ty) {
                TypeView::Scalar { dtype, lanes: 1 } => {
                    write!(out, "{dtype}").expect("a string takes all");
                }
                TypeView::Scalar { dtype, lanes } => {
                    write!(out, "{dtype}x{lanes}").expect("a string takes all");
                }
                TypeView::Tensor { dtype, dims } => {
                    write!(out, "{dtype}").expect("a string takes all");
                    self.write_dims(&mut out, dims);
                    if let Some(device) = self.device(ty) {
                        write!(out, " on {:?}", self.str(device)).expect("a string takes all");
                    }
                }
                TypeView::Tuple(fields) => {
                    out.push('(');
                    push_list(&mut stack, fields, if fields.len() == 1 { ",)" } else { ")" });
                }
                TypeView::Func { params, result } => {
                    out.push_str("fn(");
                    stack.push(Step::Type(result));
                    push_list(&mut stack, params, ") -> ");
                }
                TypeView::Shape(dims) => {
                    out.push_str("shape");
                    self.write_dims(&mut out, dims);
                }
                TypeView::Object(class) => {
                    write!(out, "object<{}>", self.str(class)).expect("a string takes all");
                }
                TypeView::Unknown(kind) => {
                    write!(out, "unknown<{}>", kind.0).expect("a string takes all");
                }
            }
        }
        cut(out)
    }

    fn write_dims(self, out: &mut String, dims: Option<&[Dim]>) {
        out.push('[');
        for (axis, &dim) in dims.unwrap_or_default().iter().enumerate() {
            if out.len() > LONGEST_TEXT {
                return;
            }
            if axis > 0 {
                out.push_str(", ");
            }
            out.push_str(&self.dim_text(dim));
        }
        out.push_str(if dims.is_some() { "]" } else { "*]" });
    }
}

fn push_list(stack: &mut Vec<Step>, types: &[Type], end: &'static str) {
    stack.push(Step::Text(end));
    for (i, &ty) in types.iter().enumerate().rev() {
        stack.push(Step::Type(ty));
        if i > 0 {
            stack.push(Step::Text(", "));
        }
    }
}
