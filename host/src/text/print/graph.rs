//! Graph functions.
//!
//! One loop writes the statements of the innermost open scope. A statement that has scopes of its own
//! opens the first of them, and the loop goes on in there.

use super::layout::Layout;
use super::open::{Open, Step};
use super::terms::TermWriter;
use super::vars::Vars;
use super::weights::{Style, WeightsPolicy};
use crate::ir::{Attrs, BodyView, Expr, Function, Symbol, Type, View};

/// Levels of indentation that are written; deeper ones look alike, so that nesting costs no more than
/// its own text.
const DEEPEST_INDENT: usize = 32;

/// Writes one function behind its name.
pub(super) struct Printer<'a, 'w> {
    pub(super) function: &'a Function,
    pub(super) body: BodyView<'a>,
    pub(super) weights: &'w mut WeightsPolicy,
    pub(super) out: &'w mut String,
    pub(super) terms: TermWriter<'a>,
    pub(super) styles: Vec<Style>,
    pub(super) layout: Layout,
    pub(super) vars: Vars<'a>,
    /// Label of each node that has one.
    pub(super) labels: Vec<u32>,
    next_label: u32,
    open: Vec<Open<'a>>,
}

impl<'a, 'w> Printer<'a, 'w> {
    pub(super) fn new(
        function: &'a Function,
        weights: &'w mut WeightsPolicy,
        out: &'w mut String,
    ) -> Self {
        let body = function.view();
        let styles: Vec<Style> = function
            .constants()
            .iter()
            .map(|constant| Style::of(weights, function.cx(), constant))
            .collect();
        let layout = Layout::of(body, |expr| {
            let style = styles.get(body.raw_node(expr).data as usize);
            style.is_some_and(|style| !style.is_short())
        });
        Self {
            function,
            body,
            weights,
            out,
            terms: TermWriter::new(body.terms()),
            styles,
            layout,
            vars: Vars::of(body),
            labels: vec![0; body.len()],
            next_label: 0,
            open: Vec::new(),
        }
    }

    /// Writes parameters and body of the root.
    pub(super) fn function(mut self) {
        self.header(self.body.root());
        while let Some(open) = self.open.last_mut() {
            match open.step(&self.layout) {
                Step::Label(expr) => self.label(expr),
                Step::Bind(var, value) => self.bind(var, value),
                Step::OpenBlock { is_dataflow } => {
                    self.indent(1);
                    self.out.push_str(if is_dataflow { "dataflow {\n" } else { "bindings {\n" });
                }
                Step::CloseBlock => {
                    self.indent(0);
                    self.out.push_str("}\n");
                }
                Step::Close => self.close(),
            }
        }
    }

    fn label(&mut self, expr: Expr) {
        self.indent(0);
        self.labels[expr.index()] = self.next_label;
        self.next_label += 1;
        self.label_use(expr);
        if let Some(ty) = self.body.ty(expr).filter(|_| self.has_own_type(expr)) {
            self.out.push_str(": ");
            self.terms.ty(self.out, ty);
        }
        self.out.push_str(" = ");
        self.statement(expr);
    }

    fn bind(&mut self, var: Expr, value: Expr) {
        self.indent(0);
        self.var(var);
        self.out.push_str(" = ");
        match self.layout.is_bound(value) {
            true => self.statement(value),
            false => {
                self.operand(value);
                self.out.push('\n');
            }
        }
    }

    /// Ends the innermost scope, or goes on to the else-branch.
    fn close(&mut self) {
        let Some(result) = self.open.last().map(|open| open.result) else { return };
        self.indent(0);
        self.out.push_str("ret ");
        self.operand(result);
        self.out.push('\n');
        let otherwise = self.open.pop().and_then(|open| open.otherwise);
        self.indent(0);
        self.out.push('}');
        match (otherwise, self.open.is_empty()) {
            (Some(branch), _) => {
                if let View::If { otherwise, .. } = self.body.view(branch) {
                    self.out.push_str(" else {\n");
                    self.open_body(branch, 1, otherwise, None);
                }
            }
            (None, false) => self.out.push('\n'),
            (None, true) => {}
        }
    }

    /// Writes a node with its operands up to the end of the line, or up to the brace of its first scope.
    fn statement(&mut self, expr: Expr) {
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
                self.open_body(expr, 0, then, Some(expr));
            }
            View::Let(view) if !self.is_raw(expr) => {
                self.out.push_str("{\n");
                let scope = self.layout.scope(expr, 0);
                self.open.push(Open::new(scope, view.result(), Some(view), None));
            }
            _ => {
                self.node(expr);
                self.out.push('\n');
            }
        }
    }

    /// Parameters, result type, attributes and the opening brace of a function.
    fn header(&mut self, expr: Expr) {
        let View::Function { params, body, result, attrs } = self.body.view(expr) else { return };
        self.out.push('(');
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.var(param);
        }
        self.out.push(')');
        if let Some(result) = result {
            self.out.push_str(" -> ");
            self.terms.ty(self.out, result);
        }
        self.attrs(attrs);
        self.out.push_str(" {\n");
        self.open_body(expr, 0, body, None);
    }

    /// Opens scope `index` of a node, whose content is `body`.
    fn open_body(&mut self, opener: Expr, index: u32, body: Expr, otherwise: Option<Expr>) {
        let scope = self.layout.scope(opener, index);
        let open = match self.body.view(body) {
            View::Let(view) if self.layout.is_body(body) => {
                Open::new(scope, view.result(), Some(view), otherwise)
            }
            _ => Open::new(scope, body, None, otherwise),
        };
        self.open.push(open);
    }

    /// A variable where it is bound, with its type.
    fn var(&mut self, var: Expr) {
        self.vars.write(self.out, var, Symbol(self.body.raw_node(var).data));
        if let Some(ty) = self.body.ty(var) {
            self.out.push_str(": ");
            self.terms.ty(self.out, ty);
        }
    }

    pub(super) fn attrs(&mut self, attrs: Attrs) {
        if !self.body.terms().attrs(attrs).is_empty() {
            self.out.push(' ');
            self.terms.attrs(self.out, attrs);
        }
    }

    pub(super) fn ascription(&mut self, ty: Option<Type>) {
        self.out.push_str(" : ");
        match ty {
            Some(ty) => self.terms.ty(self.out, ty),
            None => self.out.push('_'),
        }
        self.out.push(')');
    }

    /// Starts a line; `outwards` levels less than the statements around it when it is a brace.
    fn indent(&mut self, outwards: usize) {
        const SPACES: &str = match std::str::from_utf8(&[b' '; 2 * DEEPEST_INDENT]) {
            Ok(spaces) => spaces,
            Err(_) => "",
        };
        let inner = self.open.last().is_some_and(Open::has_block_braces) as usize;
        let levels = (self.open.len() + inner).saturating_sub(outwards);
        self.out.push_str(&SPACES[..2 * levels.min(DEEPEST_INDENT)]);
    }
}
