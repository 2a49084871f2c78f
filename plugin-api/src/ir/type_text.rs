//! The text form of types.

use std::fmt::Write;

use crate::ir::{Dim, Terms, Type, TypeView};

/// What is still to be written, last first.
enum Step {
    Type(Type),
    Text(&'static str),
}

impl Terms<'_> {
    /// The text form of a type: `f32[1, n]`, `(f32[4], i64)`, `fn(f32[4]) -> f32[4]`, `shape[n, 4]`,
    /// `object<storage>`; `[*]` for an unknown rank, `f32x8` for a vector. Does not recurse.
    pub fn type_text(self, ty: Type) -> String {
        let mut out = String::new();
        let mut stack = vec![Step::Type(ty)];
        while let Some(step) = stack.pop() {
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
        out
    }

    fn write_dims(self, out: &mut String, dims: Option<&[Dim]>) {
        let dims = match dims {
            Some(dims) => dims.iter().map(|&dim| self.dim_text(dim)).collect::<Vec<_>>().join(", "),
            None => "*".to_owned(),
        };
        write!(out, "[{dims}]").expect("a string takes all");
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
