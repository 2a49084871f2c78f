//! Nodes of graph functions, and operands where they are used.

use std::fmt::Write;

use super::function::Printer;
use super::open::{After, Content};
use super::weights::write_constant;
use crate::text::implied::{has_implied_type, is_type_redundant, takes_annotation};
use crate::text::names::{is_bare_global, is_bare_op, write_name, write_quoted};
use crate::{Args, Expr, Kind, TypeView, View};

impl Printer<'_, '_> {
    /// Parameters, result type, attributes and the opening brace of a function.
    pub(super) fn header(&mut self, expr: Expr) {
        let View::Function { params, body, result, attrs } = self.body.view(expr) else { return };
        self.out.push('(');
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.typed_var(param);
        }
        self.out.push(')');
        if let Some(result) = result {
            self.out.push_str(" -> ");
            self.terms.ty(self.out, result);
        }
        self.attrs(attrs);
        self.out.push_str(" {\n");
        self.open_body(expr, 0, body, After::Nothing);
    }

    /// What stands behind a `=`: a node with its operands up to the end of the line, or up to the brace
    /// of its first scope. It is bound to `var`, where it is bound.
    pub(super) fn value(&mut self, var: Option<Expr>, expr: Expr) {
        match self.body.view(expr) {
            View::Function { .. } if !self.is_raw(expr) => {
                if self.body.raw_node(expr).flags & 1 == 1 {
                    self.out.push_str("private ");
                }
                self.out.push_str("fn ");
                self.header(expr);
            }
            View::If { cond, then, .. } if !self.is_raw(expr) => {
                self.out.push_str("if ");
                self.operand(cond);
                self.out.push_str(" {\n");
                self.open_body(expr, 0, then, After::Else(expr));
            }
            View::Let(view) if !self.is_raw(expr) => {
                self.out.push_str("{\n");
                self.open_scope(expr, 0, Content::bindings(view), After::Nothing);
            }
            _ => {
                self.node(expr);
                self.source(var, expr);
                self.out.push('\n');
            }
        }
    }

    pub(super) fn is_raw(&self, expr: Expr) -> bool {
        self.layout.is_raw(expr)
    }

    /// Whether the type of a labelled node is written.
    pub(super) fn has_own_type(&self, expr: Expr) -> bool {
        takes_annotation(self.body, expr)
    }

    /// An operand: its label, or itself when it has none. What has none nests no deeper than a tuple of
    /// leaves.
    pub(super) fn operand(&mut self, expr: Expr) {
        if self.layout.has_label(expr) {
            return self.label_use(expr);
        }
        if matches!(self.body.kind(expr), Kind::VAR | Kind::BUFFER) {
            return self.var(expr);
        }
        let is_implied = match self.is_raw(expr) {
            true => self.body.ty(expr).is_none(),
            false => has_implied_type(self.body, expr),
        };
        let start = self.out.len();
        if is_implied || is_type_redundant(self.body.kind(expr)) {
            self.node(expr);
        } else {
            self.out.push('(');
            self.node(expr);
            self.out.push_str(" : ");
            self.ty_or_none(self.body.ty(expr));
            self.out.push(')');
        }
        self.mark(expr, start);
    }

    /// A node that opens no scope.
    fn node(&mut self, expr: Expr) {
        if self.is_raw(expr) {
            return self.raw(expr);
        }
        match self.body.view(expr) {
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
            _ => self.leaf(expr),
        }
    }

    /// A node without operands.
    pub(super) fn leaf(&mut self, expr: Expr) {
        match self.body.view(expr) {
            _ if self.is_raw(expr) => self.raw(expr),
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
    pub(super) fn raw(&mut self, expr: Expr) {
        self.raw_head(expr);
        self.operands(self.body.operands(expr));
        self.out.push(')');
        self.attrs(self.body.attrs(expr));
    }

    /// Its numbers, and the opening parenthesis.
    pub(super) fn raw_head(&mut self, expr: Expr) {
        let node = self.body.raw_node(expr);
        write!(self.out, "unknown<{}, {}, {}, {}>(", node.kind, node.flags, node.data, node.aux)
            .expect("a string takes all");
    }
}
