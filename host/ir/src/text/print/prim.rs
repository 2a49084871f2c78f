//! Statements of tensor programs.

use super::function::Printer;
use super::open::{After, Content};
use crate::DType;
use crate::text::names::{is_word, write_name, write_quoted};
use crate::{Expr, Kind, LoopKind, PrimBlockView, TypeView, View};

impl Printer<'_, '_> {
    /// Parameters, attributes and the opening brace.
    pub(super) fn prim_header(&mut self, root: Expr) {
        let View::PrimFunc { params, outputs, body, attrs } = self.body.view(root) else { return };
        self.out.push('(');
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            if index + outputs >= params.len() {
                self.out.push_str("out ");
            }
            self.param(param);
        }
        self.out.push(')');
        self.attrs(attrs);
        self.source(None, root);
        self.out.push_str(" {\n");
        self.open_body(root, 0, body, After::Nothing);
    }

    /// A buffer or a variable; which of the two is said where the type does not.
    fn param(&mut self, param: Expr) {
        let terms = self.body.terms();
        let ty = self.body.ty(param).map(|ty| terms.ty(ty));
        let is_tensor = ty.map(|ty| matches!(ty, TypeView::Tensor { .. }));
        match (self.body.kind(param) == Kind::BUFFER, is_tensor) {
            (true, Some(true)) | (false, Some(false) | None) => {}
            (true, _) => self.out.push_str("buffer "),
            (false, _) => self.out.push_str("var "),
        }
        self.buffer(param);
    }

    /// A buffer where it is made: name, type, memory scope.
    fn buffer(&mut self, buffer: Expr) {
        self.typed_var(buffer);
        if let View::Buffer { scope, .. } = self.body.view(buffer) {
            let scope = self.body.terms().str(scope);
            if !scope.is_empty() {
                self.out.push(' ');
                write_quoted(self.out, scope);
            }
        }
    }

    /// What a label stands for, and the end of the line.
    pub(super) fn prim_label(&mut self, expr: Expr) {
        if self.body.kind(expr).is_stmt() && !self.is_raw(expr) {
            self.out.push_str("do ");
            return self.written_stmt(expr);
        }
        self.scalar_itself(expr);
        self.out.push('\n');
    }

    /// A statement at the start of its line.
    pub(super) fn stmt(&mut self, stmt: Expr) {
        if self.layout.has_label(stmt) {
            self.label_use(stmt);
            return self.out.push('\n');
        }
        self.written_stmt(stmt);
    }

    fn written_stmt(&mut self, stmt: Expr) {
        let start = self.out.len();
        self.open_stmt(stmt);
        self.mark(stmt, start);
    }

    /// All of a statement, or up to the brace of its first scope.
    fn open_stmt(&mut self, stmt: Expr) {
        if self.is_raw(stmt) {
            self.scalar_itself(stmt);
            return self.out.push('\n');
        }
        match self.body.view(stmt) {
            View::For { body, .. } => {
                self.for_head(stmt);
                return self.open_body(stmt, 0, body, After::Nothing);
            }
            View::IfStmt { then, .. } => {
                self.if_head(stmt);
                return self.open_body(stmt, 0, then, After::ElseStmt(stmt));
            }
            View::Seq(stmts) => {
                self.out.push_str("{\n");
                return self.open_scope(stmt, 0, Content::Seq(stmts, 0), After::Nothing);
            }
            View::Block(block) => return self.block(stmt, block),
            View::Store { buffer, value, indices } => {
                self.var(buffer);
                self.indices(indices);
                self.out.push_str(" = ");
                self.scalar(value);
            }
            View::Alloc { buffer } => {
                self.out.push_str("alloc ");
                self.buffer(buffer);
            }
            View::LetStmt { var, value } => {
                self.out.push_str("let ");
                self.var(var);
                self.out.push_str(": ");
                self.ty_or_none(self.body.ty(var));
                self.out.push_str(" = ");
                self.scalar(value);
            }
            View::Evaluate { value } => {
                self.out.push_str("eval ");
                self.scalar(value);
            }
            _ => self.scalar_itself(stmt),
        }
        self.out.push('\n');
    }

    fn for_head(&mut self, stmt: Expr) {
        let View::For { var, min, extent, kind, thread, attrs, .. } = self.body.view(stmt) else {
            return;
        };
        self.out.push_str("for ");
        self.var(var);
        if !self.is_index(var) {
            self.out.push_str(": ");
            self.ty_or_none(self.body.ty(var));
        }
        self.out.push_str(" in ");
        self.range(min, extent);
        if kind != LoopKind::Serial {
            self.out.push(' ');
            self.out.push_str(kind.text());
        }
        if kind == LoopKind::ThreadBound {
            self.out.push(' ');
            write_quoted(self.out, self.body.terms().str(thread));
        }
        self.attrs(attrs);
        self.out.push_str(" {\n");
    }

    /// `first..end`, or `first : count` where the end is not short to say.
    fn range(&mut self, min: Expr, extent: Expr) {
        self.scalar(min);
        match self.range_end(min, extent) {
            Some(RangeEnd::Extent) => {
                self.out.push_str("..");
                self.scalar(extent);
            }
            Some(RangeEnd::Value(end)) => {
                self.out.push_str("..");
                let start = self.out.len();
                super::terms::write_int(self.out, end);
                self.mark(extent, start);
            }
            None => {
                self.out.push_str(" : ");
                self.scalar(extent);
            }
        }
    }

    /// Whether a variable has the type of indices.
    fn is_index(&self, expr: Expr) -> bool {
        self.body.scalar_ty(expr) == Some((DType::I64, 1))
    }

    /// What stands behind the `..` of a range that starts with a literal index.
    fn range_end(&self, min: Expr, extent: Expr) -> Option<RangeEnd> {
        let View::Int(first) = self.body.view(min) else { return None };
        if !self.is_index(min) || self.is_raw(min) {
            return None;
        }
        match (first, self.body.view(extent)) {
            (0, _) => Some(RangeEnd::Extent),
            (_, View::Int(steps)) if self.is_index(extent) && !self.is_raw(extent) => {
                first.checked_add(steps).map(RangeEnd::Value)
            }
            _ => None,
        }
    }

    fn if_head(&mut self, stmt: Expr) {
        let View::IfStmt { cond, .. } = self.body.view(stmt) else { return };
        self.out.push_str("if ");
        self.scalar(cond);
        self.out.push_str(" {\n");
    }

    /// Behind the then-branch of an `if` statement. An `if` that is all of the else-branch needs no
    /// braces around it.
    pub(super) fn otherwise(&mut self, stmt: Expr) {
        let View::IfStmt { otherwise: Some(otherwise), .. } = self.body.view(stmt) else {
            return self.out.push('\n');
        };
        self.out.push_str(" else ");
        let is_chain = self.body.kind(otherwise) == Kind::IF_STMT
            && self.layout.is_direct(otherwise)
            && !self.is_raw(otherwise)
            && self.layout.labelled(self.layout.scope(stmt, 1)).is_empty();
        match (is_chain, self.body.view(otherwise)) {
            (true, View::IfStmt { then, .. }) => {
                let start = self.out.len();
                self.if_head(otherwise);
                self.mark(otherwise, start);
                self.open_body(otherwise, 0, then, After::ElseStmt(otherwise));
            }
            _ => {
                self.out.push_str("{\n");
                self.open_body(stmt, 1, otherwise, After::Nothing);
            }
        }
    }

    fn block(&mut self, stmt: Expr, block: PrimBlockView<'_>) {
        self.out.push_str("block ");
        write_quoted(self.out, self.body.terms().str(block.name));
        self.out.push_str(" (");
        for (index, iter) in block.iterators().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            let (var, value) = (iter.var, iter.binding);
            let kind = self.body.terms().str(iter.kind);
            self.var(var);
            self.out.push_str(": ");
            write_name(self.out, kind, is_word(kind));
            if !self.is_index(var) {
                self.out.push(' ');
                self.ty_or_none(self.body.ty(var));
            }
            if let Some([first, count]) = iter.domain {
                self.out.push_str(" in ");
                self.range(first, count);
            }
            self.out.push_str(" = ");
            self.scalar(value);
        }
        self.out.push(')');
        if let Some(predicate) = block.predicate {
            self.out.push_str(" where ");
            self.scalar(predicate);
        }
        match self.layout.labelled(self.layout.scope(stmt, 0)).is_empty() {
            true => self.regions(stmt),
            false => {
                self.out.push_str(" with {\n");
                self.open_scope(stmt, 0, Content::Nothing, After::Regions(stmt));
            }
        }
    }

    /// What follows the iterators of a block and the labels that its regions need.
    pub(super) fn regions(&mut self, stmt: Expr) {
        let View::Block(block) = self.body.view(stmt) else { return };
        for (name, regions) in [(" reads(", block.reads), (" writes(", block.writes)] {
            if regions.is_empty() {
                continue;
            }
            self.out.push_str(name);
            for (index, region) in regions.iter().enumerate() {
                if index > 0 {
                    self.out.push_str(", ");
                }
                self.region(region);
            }
            self.out.push(')');
        }
        self.attrs(block.attrs);
        match block.init {
            Some(init) => {
                self.out.push_str(" init {\n");
                self.open_body(stmt, 1, init, After::BlockBody(stmt));
            }
            None => {
                self.out.push_str(" {\n");
                self.open_body(stmt, 2, block.body, After::Nothing);
            }
        }
    }

    fn region(&mut self, region: Expr) {
        let View::Region { buffer, ranges } = self.body.view(region) else { return };
        let start = self.out.len();
        self.var(buffer);
        self.out.push('[');
        for axis in 0..ranges.len() / 2 {
            if axis > 0 {
                self.out.push_str(", ");
            }
            self.scalar(ranges.at(2 * axis));
            self.out.push_str(" : ");
            self.scalar(ranges.at(2 * axis + 1));
        }
        self.out.push(']');
        self.mark(region, start);
    }
}

/// How a range that starts with a literal ends.
enum RangeEnd {
    /// At its number of steps, since it starts at zero.
    Extent,
    Value(i64),
}
