//! Functions: one loop writes what comes next in the innermost open scope. A statement that has scopes
//! of its own opens the first of them, and the loop goes on in there.

use super::layout::Layout;
use super::marks::Marks;
use super::open::{After, Content, Open, Step};
use super::scalar::Pending;
use super::terms::TermWriter;
use super::vars::Vars;
use super::weights::{Style, WeightsPolicy};
use crate::{Attrs, BodyView, Expr, Function, Symbol, Type, View};

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
    pub(super) pending: Vec<Pending>,
    vars: Vars<'a>,
    /// Label of each node that has one.
    labels: Vec<u32>,
    next_label: u32,
    open: Vec<Open<'a>>,
    pub(super) marks: Marks,
}

impl<'a, 'w> Printer<'a, 'w> {
    pub(super) fn new(
        function: &'a Function,
        weights: &'w mut WeightsPolicy,
        out: &'w mut String,
        marks: Marks,
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
            pending: Vec::new(),
            vars: Vars::of(body),
            labels: vec![0; body.len()],
            next_label: 0,
            open: Vec::new(),
            marks,
        }
    }

    /// Writes parameters and body of the root; the marks say where nodes are written.
    pub(super) fn function(mut self) -> Marks {
        let root = self.body.root();
        match self.layout.is_prim {
            true => self.prim_header(root),
            false => self.header(root),
        }
        self.mark(root, 0);
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
                Step::Stmt(stmt) => {
                    self.indent(0);
                    self.stmt(stmt);
                }
                Step::Close(result) => self.close(result),
            }
        }
        self.weights.after(&self.terms);
        self.marks
    }

    fn label(&mut self, expr: Expr) {
        self.indent(0);
        self.labels[expr.index()] = self.next_label;
        self.next_label += 1;
        self.label_use(expr);
        if !self.layout.is_prim
            && let Some(ty) = self.body.ty(expr).filter(|_| self.has_own_type(expr))
        {
            self.out.push_str(": ");
            self.terms.ty(self.out, ty);
        }
        self.out.push_str(" = ");
        let start = self.out.len();
        match self.layout.is_prim {
            true => self.prim_label(expr),
            false => self.value(None, expr),
        }
        self.mark(expr, start);
    }

    fn bind(&mut self, var: Expr, value: Expr) {
        self.indent(0);
        self.typed_var(var);
        self.out.push_str(" = ");
        match self.layout.is_direct(value) {
            true => {
                let start = self.out.len();
                self.value(Some(var), value);
                self.mark(value, start);
            }
            false => {
                self.operand(value);
                self.source(None, var);
                self.out.push('\n');
            }
        }
    }

    /// Ends the innermost scope, and goes on with what follows it.
    fn close(&mut self, result: Option<Expr>) {
        if let Some(result) = result {
            self.indent(0);
            self.out.push_str("ret ");
            self.operand(result);
            self.out.push('\n');
        }
        let after = self.open.pop().map_or(After::Nothing, |open| open.after);
        self.indent(0);
        self.out.push('}');
        match after {
            After::Nothing if self.open.is_empty() => {}
            After::Nothing => self.out.push('\n'),
            After::Else(branch) => {
                if let View::If { otherwise, .. } = self.body.view(branch) {
                    self.out.push_str(" else {\n");
                    self.open_body(branch, 1, otherwise, After::Nothing);
                }
            }
            After::ElseStmt(branch) => self.otherwise(branch),
            After::Regions(block) => self.regions(block),
            After::BlockBody(block) => {
                self.out.push_str(" {\n");
                if let View::Block(view) = self.body.view(block) {
                    self.open_body(block, 2, view.body, After::Nothing);
                }
            }
        }
    }

    /// Opens scope `index` of a node, whose content is `content`, behind its brace.
    pub(super) fn open_body(&mut self, opener: Expr, index: u32, content: Expr, after: After) {
        if self.layout.is_body(content) {
            self.mark(content, self.out.len() - "{\n".len());
        }
        let content = match self.body.view(content) {
            View::Let(view) if self.layout.is_body(content) => Content::bindings(view),
            View::Seq(stmts) if self.layout.is_body(content) => Content::Seq(stmts, 0),
            _ if self.layout.is_prim => Content::Stmt(Some(content)),
            _ => Content::Result(content),
        };
        self.open_scope(opener, index, content, after);
    }

    pub(super) fn open_scope(
        &mut self,
        opener: Expr,
        index: u32,
        content: Content<'a>,
        after: After,
    ) {
        let scope = self.layout.scope(opener, index);
        self.open.push(Open::new(scope, content, after));
    }

    /// A variable or buffer.
    pub(super) fn var(&mut self, var: Expr) {
        let start = self.out.len();
        self.vars.write(self.out, var, Symbol(self.body.raw_node(var).data));
        self.mark(var, start);
    }

    /// Says that a node was written from `start` on, its first scope not yet.
    pub(super) fn mark(&mut self, expr: Expr, start: usize) {
        if self.marks.is_wanted(expr) {
            let written = self.out[start..].trim_end();
            let written = written.strip_suffix(" {").unwrap_or(written);
            self.marks.set(expr, start..start + written.len());
        }
    }

    /// A variable where it is bound, with its type.
    pub(super) fn typed_var(&mut self, var: Expr) {
        self.var(var);
        if let Some(ty) = self.body.ty(var) {
            self.out.push_str(": ");
            self.terms.ty(self.out, ty);
        }
    }

    pub(super) fn label_use(&mut self, expr: Expr) {
        self.out.push('^');
        super::terms::write_int(self.out, self.labels[expr.index()] as i64);
    }

    pub(super) fn attrs(&mut self, attrs: Attrs) {
        if !self.body.terms().attrs(attrs).is_empty() {
            self.out.push(' ');
            self.terms.attrs(self.out, attrs);
        }
    }

    /// A type, or that there is none.
    pub(super) fn ty_or_none(&mut self, ty: Option<Type>) {
        match ty {
            Some(ty) => self.terms.ty(self.out, ty),
            None => self.out.push('_'),
        }
    }

    /// Starts a line; `outwards` levels less than the statements around it when it is a brace.
    pub(super) fn indent(&mut self, outwards: usize) {
        const SPACES: &str = match std::str::from_utf8(&[b' '; 2 * DEEPEST_INDENT]) {
            Ok(spaces) => spaces,
            Err(_) => "",
        };
        let inner = self.open.last().is_some_and(Open::has_block_braces) as usize;
        let levels = (self.open.len() + inner).saturating_sub(outwards);
        self.out.push_str(&SPACES[..2 * levels.min(DEEPEST_INDENT)]);
    }
}
