//! One node with its operands, and operands where they are used.

use std::fmt::Write;

use super::graph::Printer;
use super::shape::is_raw;
use super::terms::write_int;
use super::weights::write_constant;
use crate::ir::{Args, Expr, TypeView, View};
use crate::text::implied::{has_implied_type, is_type_redundant};
use crate::text::names::{is_bare_global, is_bare_op, write_name, write_quoted};

impl Printer<'_, '_> {
    pub(super) fn is_raw(&self, expr: Expr) -> bool {
        is_raw(self.body, expr)
    }

    /// Whether the type of a labelled node is written.
    pub(super) fn has_own_type(&self, expr: Expr) -> bool {
        let kind = self.body.kind(expr);
        !is_type_redundant(kind) && !kind.is_leaf_value()
    }

    pub(super) fn label_use(&mut self, expr: Expr) {
        self.out.push('^');
        write_int(self.out, self.labels[expr.index()] as i64);
    }

    /// An operand: its label, or itself when it has none. What has none nests no deeper than a tuple of
    /// leaves.
    pub(super) fn operand(&mut self, expr: Expr) {
        if self.layout.has_label(self.body, expr) {
            return self.label_use(expr);
        }
        if let View::Var { name } | View::Buffer { name, .. } = self.body.view(expr) {
            return self.vars.write(self.out, expr, name);
        }
        let is_raw = self.is_raw(expr);
        let is_implied = match is_raw {
            true => self.body.ty(expr).is_none(),
            false => has_implied_type(self.body, expr),
        };
        if is_implied || is_type_redundant(self.body.kind(expr)) {
            return self.node(expr);
        }
        self.out.push('(');
        self.node(expr);
        self.ascription(self.body.ty(expr));
    }

    /// A node that opens no scope.
    pub(super) fn node(&mut self, expr: Expr) {
        if self.is_raw(expr) {
            return self.raw(expr);
        }
        match self.body.view(expr) {
            View::Constant(constant) => {
                let index = constant.index as usize;
                let name = self.body.terms().str(constant.name);
                let (constant, style) = (&self.function.constants()[index], self.styles[index]);
                write_constant(self.out, &mut self.terms, self.weights, constant, style, name);
            }
            View::Global { name } => {
                let name = self.body.terms().str(name);
                self.out.push('@');
                write_name(self.out, name, is_bare_global(name));
            }
            View::Op { name } => {
                let name = self.body.terms().str(name);
                match is_bare_op(name) {
                    true => self.out.push_str(name),
                    false => {
                        self.out.push_str("op");
                        write_quoted(self.out, name);
                    }
                }
            }
            View::Extern { name } => {
                self.out.push_str("extern");
                write_quoted(self.out, self.body.terms().str(name));
            }
            View::Tuple(fields) => {
                self.out.push('(');
                self.operands(fields);
                self.out.push_str(if fields.len() == 1 { ",)" } else { ")" });
            }
            View::TupleGetItem { tuple, index } => {
                self.operand(tuple);
                write!(self.out, ".{index}").expect("a string takes all");
            }
            View::Call { callee, args, attrs } => {
                self.operand(callee);
                self.out.push('(');
                self.operands(args);
                self.out.push(')');
                self.attrs(attrs);
            }
            View::Shape { ty } => {
                let TypeView::Shape(dims) = self.body.terms().ty(ty) else { return };
                self.out.push_str("shape(");
                self.terms.dims(self.out, dims);
                self.out.push(')');
            }
            View::Prim { dim } => {
                self.out.push_str("dim(");
                self.terms.dim(self.out, dim);
                self.out.push(')');
            }
            _ => self.raw(expr),
        }
    }

    fn operands(&mut self, args: Args<'_>) {
        for (index, arg) in args.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.operand(arg);
        }
    }

    /// A node that is written with numbers.
    fn raw(&mut self, expr: Expr) {
        let node = self.body.raw_node(expr);
        write!(self.out, "unknown<{}, {}, {}, {}>(", node.kind, node.flags, node.data, node.aux)
            .expect("a string takes all");
        self.operands(self.body.operands(expr));
        self.out.push(')');
        self.attrs(self.body.attrs(expr));
    }
}
