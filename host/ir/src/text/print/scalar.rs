//! Scalar expressions of tensor programs, with as few parentheses as their operators need.

use std::fmt::Write;

use super::function::Printer;
use super::terms::{write_f64, write_int};
use crate::text::element;
use crate::text::implied::has_implied_type;
use crate::text::names::{is_bare_op, write_name};
use crate::text::operators::{ATOM, infix};
use crate::{Args, BinaryOp, DType, Expr, Kind, View};

/// What is still to be written of an expression, last first.
pub(super) enum Pending {
    Text(&'static str),
    /// An operand of an operator that binds as tightly as this.
    Expr(Expr, u8),
    /// The end of an expression whose type is not the implied one.
    Type(Expr),
    /// Lanes of a vector, and the closing parenthesis.
    Lanes(Expr),
    Attrs(Expr),
    /// The end of a node that is looked for, and where it began.
    Mark(Expr, usize),
}

impl Printer<'_, '_> {
    /// A scalar expression where it is used.
    pub(super) fn scalar(&mut self, expr: Expr) {
        self.pending.push(Pending::Expr(expr, 0));
        self.run_pending();
    }

    /// A scalar expression or any other node where it is defined.
    pub(super) fn scalar_itself(&mut self, expr: Expr) {
        self.written(expr, 0);
        self.run_pending();
    }

    /// The indices of a load or store.
    pub(super) fn indices(&mut self, indices: Args<'_>) {
        self.out.push('[');
        self.pending.push(Pending::Text("]"));
        self.push_args(indices);
        self.run_pending();
    }

    fn run_pending(&mut self) {
        while let Some(pending) = self.pending.pop() {
            match pending {
                Pending::Text(text) => self.out.push_str(text),
                Pending::Expr(expr, tightness) => self.used(expr, tightness),
                Pending::Type(expr) => {
                    self.out.push_str(" : ");
                    self.ty_or_none(self.body.ty(expr));
                    self.out.push(')');
                }
                Pending::Lanes(expr) => {
                    let lanes = self.body.scalar_ty(expr).map_or(1, |(_, lanes)| lanes);
                    write!(self.out, ", {lanes})").expect("a string takes all");
                }
                Pending::Attrs(expr) => self.attrs(self.body.attrs(expr)),
                Pending::Mark(expr, start) => self.mark(expr, start),
            }
        }
    }

    /// Schedules arguments with commas; the first comes on top.
    fn push_args(&mut self, args: Args<'_>) {
        for (index, arg) in args.iter().enumerate().rev() {
            self.pending.push(Pending::Expr(arg, 0));
            if index > 0 {
                self.pending.push(Pending::Text(", "));
            }
        }
    }

    fn used(&mut self, expr: Expr, tightness: u8) {
        match self.body.kind(expr) {
            Kind::VAR | Kind::BUFFER => self.var(expr),
            _ if self.layout.has_label(expr) => self.label_use(expr),
            _ => {
                if self.marks.is_wanted(expr) {
                    self.pending.push(Pending::Mark(expr, self.out.len()));
                }
                self.written(expr, tightness);
            }
        }
    }

    fn written(&mut self, expr: Expr, tightness: u8) {
        let is_raw = self.is_raw(expr);
        let has_type = match is_raw {
            true => self.body.ty(expr).is_none(),
            false => has_implied_type(self.body, expr),
        };
        let is_literal = matches!(self.body.kind(expr), Kind::INT | Kind::FLOAT);
        let is_named = matches!(self.body.kind(expr), Kind::GLOBAL | Kind::OP);
        let tightness = match has_type || is_literal || is_named || self.body.kind(expr).is_stmt() {
            true => tightness,
            false => {
                self.out.push('(');
                self.pending.push(Pending::Type(expr));
                0
            }
        };
        if is_raw {
            self.raw_head(expr);
            self.pending.extend([Pending::Attrs(expr), Pending::Text(")")]);
            return self.push_args(self.body.operands(expr));
        }
        match self.body.view(expr) {
            View::Int(value) => self.int(expr, value),
            View::Float(value) => self.float(expr, value),
            View::Binary { op, a, b } => self.binary(op, a, b, tightness),
            View::Select { .. } => self.call("select(", expr),
            View::Cast { .. } => {
                self.ty_or_none(self.body.ty(expr));
                self.call("(", expr);
            }
            View::Ramp { .. } | View::Broadcast { .. } => {
                let is_ramp = self.body.kind(expr) == Kind::RAMP;
                self.out.push_str(if is_ramp { "ramp(" } else { "broadcast(" });
                self.pending.push(Pending::Lanes(expr));
                self.push_args(self.body.operands(expr));
            }
            View::Load { buffer, indices } => {
                self.var(buffer);
                self.out.push('[');
                self.pending.push(Pending::Text("]"));
                self.push_args(indices);
            }
            View::Intrinsic { name, args } => {
                let name = self.body.terms().str(name);
                write_name(self.out, name, is_bare_op(name));
                let last = args.len().checked_sub(1).and_then(|last| self.body.ty(args.at(last)));
                if self.body.ty(expr) != last {
                    self.out.push('<');
                    self.ty_or_none(self.body.ty(expr));
                    self.out.push('>');
                }
                self.call("(", expr);
            }
            View::Call { callee, args, .. } => {
                self.pending.extend([Pending::Attrs(expr), Pending::Text(")")]);
                self.push_args(args);
                self.pending.extend([Pending::Text("("), Pending::Expr(callee, ATOM)]);
            }
            _ => self.leaf(expr),
        }
    }

    /// The opening of a call, and its operands.
    fn call(&mut self, open: &'static str, expr: Expr) {
        self.out.push_str(open);
        self.pending.push(Pending::Text(")"));
        self.push_args(self.body.operands(expr));
    }

    fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr, tightness: u8) {
        let Some(infix) = infix(op) else {
            self.out.push_str(if op == BinaryOp::Min { "min(" } else { "max(" });
            let comma = Pending::Text(", ");
            let (a, b) = (Pending::Expr(a, 0), Pending::Expr(b, 0));
            return self.pending.extend([Pending::Text(")"), b, comma, a]);
        };
        if infix.tightness < tightness {
            self.out.push('(');
            self.pending.push(Pending::Text(")"));
        }
        // Operators of one tightness group to the left; comparisons do not group.
        let left = infix.tightness + op.is_comparison() as u8;
        self.pending.extend([
            Pending::Expr(b, infix.tightness + 1),
            Pending::Text(infix.text),
            Pending::Expr(a, left),
        ]);
    }

    fn int(&mut self, expr: Expr, value: i64) {
        let (dtype, lanes) = self.body.scalar_ty(expr).unwrap_or((DType(0), 0));
        match (dtype, value) {
            (DType::I64, _) if lanes == 1 => write_int(self.out, value),
            (DType::BOOL, 0) if lanes == 1 => self.out.push_str("false"),
            (DType::BOOL, 1) if lanes == 1 => self.out.push_str("true"),
            _ if lanes == 1 && dtype.is_int() => {
                write!(self.out, "{value}{dtype}").expect("a string takes all");
            }
            _ => self.typed_literal(expr, |out| write_int(out, value)),
        }
    }

    fn float(&mut self, expr: Expr, value: f64) {
        let (dtype, lanes) = self.body.scalar_ty(expr).unwrap_or((DType(0), 0));
        let is_plain = lanes == 1 && dtype.is_float() && element::is_known(dtype);
        if !is_plain || !value.is_finite() {
            return self.typed_literal(expr, |out| write_f64(out, value));
        }
        write_f64(self.out, value);
        if dtype != DType::F32 {
            write!(self.out, "{dtype}").expect("a string takes all");
        }
    }

    /// A literal whose type is not said by a suffix.
    fn typed_literal(&mut self, expr: Expr, write: impl FnOnce(&mut String)) {
        self.out.push_str("lit<");
        self.ty_or_none(self.body.ty(expr));
        self.out.push_str(">(");
        write(self.out);
        self.out.push(')');
    }
}
