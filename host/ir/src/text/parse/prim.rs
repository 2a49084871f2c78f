//! Tensor programs: parameters and statements.
//!
//! As for graph functions, one loop reads statements, and what it is in the middle of stands on a stack
//! of frames.

use std::ops::Range;

use super::Parser;
use super::body::{Body, Header, NewVar};
use super::cursor::{Halt, Parsed, range};
use super::prim_scope::{BlockHead, LoopHead, Role, Scope};
use crate::diagnostics::Diagnostic;
use crate::suggest::nearest;
use crate::text::lexer::{Tok, Token};
use crate::text::print::may_be_stmt;
use crate::{Attrs, Build, Context, DType, Expr, Kind, LoopKind, NodeSpec, Term, Type, TypeView};

/// Reads one tensor program.
pub(super) struct Prim<'p, 's, 'w> {
    pub(super) parser: &'p mut Parser<'s, 'w>,
    pub(super) body: Body<'s>,
    pub(super) frames: Vec<Frame>,
    /// Statements of the open scopes.
    pub(super) stmts: Vec<Expr>,
}

/// What is in the middle of being read.
pub(super) enum Frame {
    Scope(Scope),
    /// `^1 = do …`
    Label(Token),
    /// `if … { … } else if …`
    ElseIf {
        cond: Expr,
        then: Expr,
        span: u32,
    },
}

/// What comes next.
pub(super) enum State {
    Statement,
    /// A statement was read.
    Ready(Expr),
    Done(Expr),
}

impl<'s> Prim<'_, 's, '_> {
    /// Reads a program from its parameters on; `None` when it has errors but was read to its end.
    pub(super) fn function(mut self, is_private: bool) -> Parsed<Option<(Body<'s>, Expr)>> {
        let errors = self.parser.errors;
        let mut state = self.header(is_private)?;
        loop {
            let next = match state {
                State::Statement => self.statement(),
                State::Ready(stmt) => self.ready(stmt),
                State::Done(root) if self.parser.errors == errors => {
                    return Ok(Some((self.body, root)));
                }
                State::Done(_) => return Ok(None),
            };
            state = match next {
                Ok(state) => state,
                Err(Halt) => self.recover()?,
            };
        }
    }

    fn header(&mut self, is_private: bool) -> Parsed<State> {
        let start = self.parser.token.start;
        self.parser.expect(Tok::LParen)?;
        self.body.names.open();
        let mut outputs = 0;
        let body = &mut self.body;
        let params = self.parser.list(Tok::RParen, |parser| {
            let token = parser.token;
            if parser.eat_word("out") {
                outputs += 1;
            } else if outputs > 0 {
                let message = "parameters that are written come last";
                return Err(parser.error_at(range(token), message, "`out` expected"));
            }
            parser.param(body)
        })?;
        let attrs = self.parser.attrs()?;
        let source = self.parser.source()?;
        let header = Header { params, outputs, result: None, attrs, source, is_private, start };
        self.open(Role::Function(Box::new(header)))
    }

    fn statement(&mut self) -> Parsed<State> {
        let token = self.parser.token;
        match token.tok {
            Tok::Label => self.label(token),
            Tok::Var => self.store(token),
            Tok::LBrace => self.open(Role::Nested),
            Tok::RBrace => self.close(),
            Tok::End => Err(self.unclosed()),
            _ if self.parser.is_item_start() => Err(self.unclosed()),
            Tok::Word => self.word(token),
            _ => Err(self.parser.expected("a statement")),
        }
    }

    fn word(&mut self, token: Token) -> Parsed<State> {
        let span = token.start + 1;
        let word = self.parser.slice(token);
        match word {
            "for" => self.for_loop(span),
            "if" => self.if_stmt(span),
            "block" => self.block(span),
            "let" => self.let_stmt(span),
            "alloc" => {
                self.parser.bump();
                let buffer = self.parser.buffer(&mut self.body)?;
                Ok(self.push(NodeSpec { span, ..NodeSpec::new(Kind::ALLOC) }, &[buffer]))
            }
            "eval" => {
                self.parser.bump();
                let value = self.parser.scalar(&mut self.body)?;
                Ok(self.push(NodeSpec { span, ..NodeSpec::new(Kind::EVALUATE) }, &[value]))
            }
            "unknown" => {
                let stmt = self.parser.scalar(&mut self.body)?;
                self.as_stmt(range(token), stmt)
            }
            _ => {
                let known = ["for", "if", "block", "let", "alloc", "eval"];
                let mut diagnostic = Diagnostic::error(format!("`{word}` begins no statement"))
                    .label(range(token), "expected a statement");
                diagnostic = match nearest(word, known.into_iter()) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic
                        .help("a call for its effect is written `eval extern \"name\"(…)`"),
                };
                Err(self.parser.report(diagnostic))
            }
        }
    }

    fn push(&mut self, spec: NodeSpec, operands: &[Expr]) -> State {
        State::Ready(self.body.tx.push(spec, operands))
    }

    /// A node that stands as a statement.
    fn as_stmt(&mut self, span: Range<usize>, stmt: Expr) -> Parsed<State> {
        match may_be_stmt(self.body.tx.body().kind(stmt)) {
            true => Ok(State::Ready(stmt)),
            false => {
                let message = "an expression is no statement";
                let diagnostic = Diagnostic::error(message).label(span, "expected a statement");
                let help = "`eval` before an expression evaluates it for its effect";
                Err(self.parser.report(diagnostic.help(help)))
            }
        }
    }

    /// `^1 = expression`, `^1 = do statement`, or `^1` where it is a statement.
    fn label(&mut self, token: Token) -> Parsed<State> {
        let next = self.parser.ahead().next().map(|token| token.tok);
        if next != Some(Tok::Assign) {
            let stmt = self.parser.name_use(&self.body)?;
            return self.as_stmt(range(token), stmt);
        }
        self.parser.bump();
        self.parser.bump();
        if self.parser.eat_word("do") {
            self.frames.push(Frame::Label(token));
            return Ok(State::Statement);
        }
        let expr = self.parser.scalar(&mut self.body)?;
        self.parser.define_label(&mut self.body, token, expr);
        Ok(State::Statement)
    }

    /// `%A[…] = value`
    fn store(&mut self, token: Token) -> Parsed<State> {
        let buffer = self.parser.name_use(&self.body)?;
        self.parser.check_has_elements(&self.body, buffer)?;
        self.parser.expect(Tok::LBracket)?;
        let body = &mut self.body;
        let indices = self.parser.list(Tok::RBracket, |parser| parser.scalar(body))?;
        self.parser.expect(Tok::Assign)?;
        let value = self.parser.scalar(&mut self.body)?;
        let operands: Vec<Expr> = [buffer, value].into_iter().chain(indices).collect();
        let span = token.start + 1;
        Ok(self.push(NodeSpec { span, ..NodeSpec::new(Kind::STORE) }, &operands))
    }

    /// `let %x: type = value`; without a type it is the value's.
    fn let_stmt(&mut self, span: u32) -> Parsed<State> {
        self.parser.bump();
        let token = self.parser.expect(Tok::Var)?;
        let var = self.parser.var_name(token)?;
        let ty = match self.parser.at(Tok::Colon) {
            true => Some(self.parser.annotation()?),
            false => None,
        };
        self.parser.expect(Tok::Assign)?;
        let value = match self.parser.scalar(&mut self.body) {
            Ok(value) => value,
            Err(Halt) => {
                // The name is known from here on, so that its uses are no further errors.
                self.parser.define_var(&mut self.body, var, ty.flatten());
                return Err(Halt);
            }
        };
        let ty = ty.unwrap_or_else(|| self.body.tx.body().ty(value));
        let var = self.parser.define_var(&mut self.body, var, ty);
        Ok(self.push(NodeSpec { span, ..NodeSpec::new(Kind::LET_STMT) }, &[var, value]))
    }

    fn if_stmt(&mut self, span: u32) -> Parsed<State> {
        self.parser.bump();
        let cond = self.parser.scalar(&mut self.body)?;
        self.open(Role::Then { cond, span })
    }

    /// `for %i in 0..16 parallel { key = value } {`
    fn for_loop(&mut self, span: u32) -> Parsed<State> {
        self.parser.bump();
        let token = self.parser.expect(Tok::Var)?;
        let name = self.parser.var_name(token)?;
        let ty = self.index_annotation()?;
        if !self.parser.eat_word("in") {
            return Err(self.parser.expected("`in`"));
        }
        let min = self.parser.scalar(&mut self.body)?;
        let extent = self.range_behind(min)?;
        let (kind, thread) = self.loop_kind()?;
        let attrs = self.parser.attrs()?;
        self.body.names.open();
        let var = self.parser.define_var(&mut self.body, name, ty);
        self.open(Role::For(Box::new(LoopHead { var, min, extent, kind, thread, attrs, span })))
    }

    /// `..end` or `: count` behind the first value: the number of steps.
    fn range_behind(&mut self, min: Expr) -> Parsed<Expr> {
        if self.parser.eat(Tok::Range) {
            let end = self.parser.scalar(&mut self.body)?;
            Ok(self.steps(min, end))
        } else if self.parser.eat(Tok::Colon) {
            self.parser.scalar(&mut self.body)
        } else {
            Err(self.parser.expected("`..` and the end, or `:` and the number of steps"))
        }
    }

    /// The number of steps of a range; its first value is zero or a literal where it is short to say.
    fn steps(&mut self, min: Expr, end: Expr) -> Expr {
        let body = self.body.tx.body();
        let literal = |expr| match body.view(expr) {
            crate::View::Int(value) => Some(value),
            _ => None,
        };
        let data = match (literal(min), literal(end)) {
            (Some(0), _) => return end,
            (Some(first), Some(last)) => last.checked_sub(first),
            _ => None,
        };
        match data {
            Some(steps) => {
                let raw = body.raw_node(end);
                let ty = Some(Type(raw.ty)).filter(|ty| ty.0 != 0);
                let data = self.parser.int(steps).0;
                let spec = NodeSpec { ty, data, span: raw.span, ..NodeSpec::new(Kind::INT) };
                self.body.tx.push(spec, &[])
            }
            None => {
                let data = crate::BinaryOp::Sub as u32;
                let spec = NodeSpec { data, ..NodeSpec::new(Kind::BINARY) };
                self.body.push_implied(spec, &[end, min])
            }
        }
    }

    /// How a loop runs, when that is said, and its thread axis.
    fn loop_kind(&mut self) -> Parsed<(LoopKind, u32)> {
        if !self.parser.at(Tok::Word) {
            return Ok((LoopKind::Serial, 0));
        }
        let token = self.parser.token;
        let word = self.parser.slice(token);
        let Some(&kind) = LoopKind::ALL.iter().find(|kind| kind.text() == word) else {
            let names = LoopKind::ALL.iter().map(|kind| kind.text());
            let near = nearest(word, names.clone());
            let diagnostic = Diagnostic::error(format!("no loop runs `{word}`"))
                .label(range(token), "unknown kind of loop");
            let all: Vec<&str> = names.collect();
            return Err(self.parser.report(match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help(format!("loops are {}", all.join(", "))),
            }));
        };
        self.parser.bump();
        if kind != LoopKind::ThreadBound {
            return Ok((kind, 0));
        }
        let token = self.parser.expect(Tok::Str)?;
        let thread = self.parser.unquoted(token, 0)?;
        Ok((kind, if thread.is_empty() { 0 } else { self.parser.symbol(&thread).0 }))
    }

    /// `: type`; without it, the type of indices.
    fn index_annotation(&mut self) -> Parsed<Option<Type>> {
        match self.parser.at(Tok::Colon) {
            true => self.parser.annotation(),
            false => Ok(Some(self.parser.scalar_type(DType::I64))),
        }
    }

    /// `block "name" (%v: spatial = %i, …)`, then what stands behind it.
    fn block(&mut self, span: u32) -> Parsed<State> {
        self.parser.bump();
        let token = self.parser.expect(Tok::Str)?;
        let name = self.parser.unquoted(token, 0)?;
        let name = if name.is_empty() { 0 } else { self.parser.symbol(&name).0 };
        self.parser.expect(Tok::LParen)?;
        let mut iters = Vec::new();
        while !self.parser.eat(Tok::RParen) {
            iters.push(self.iterator()?);
            if !self.parser.eat(Tok::Comma) {
                self.parser.expect(Tok::RParen)?;
                break;
            }
        }
        let predicate = match self.parser.eat_word("where") {
            true => Some(self.parser.scalar(&mut self.body)?),
            false => None,
        };
        self.body.names.open();
        let mut head = BlockHead {
            name,
            operands: Vec::new(),
            layout: Vec::new(),
            attrs: Attrs::NONE,
            flags: 0,
            init: None,
            span,
        };
        let mut domains = Vec::new();
        for iter in iters {
            let var = self.parser.define_var(&mut self.body, iter.name, iter.ty);
            head.operands.extend([var, iter.value]);
            head.layout.push(iter.kind);
            domains.extend(iter.domain);
        }
        if !domains.is_empty() {
            head.flags |= 2;
            if 2 * domains.len() != head.operands.len() {
                let text = "each iterator of a block has a domain, or none has";
                let diagnostic = Diagnostic::error(text).label(range(token), "of this block");
                return Err(self.parser.report(diagnostic));
            }
        }
        head.operands.extend(domains.into_iter().flatten());
        head.flags |= if predicate.is_some() { 4 } else { 0 };
        head.operands.extend(predicate);
        match self.parser.eat_word("with") {
            true => self.open(Role::With(Box::new(head))),
            false => self.regions(head),
        }
    }

    /// `%v: spatial in 0..8 = %i`
    fn iterator(&mut self) -> Parsed<Iterator<'s>> {
        let parser = &mut self.parser;
        let token = parser.expect(Tok::Var)?;
        parser.expect(Tok::Colon)?;
        let kind = parser.name("`spatial` or `reduce`")?;
        let kind: Term = parser.symbol(&kind).into();
        let ty = match () {
            () if parser.at(Tok::Assign) || parser.at_word("in") => {
                Some(parser.scalar_type(DType::I64))
            }
            () if parser.eat_word("_") => None,
            () => Some(parser.ty()?),
        };
        let domain = match self.parser.eat_word("in") {
            true => {
                let first = self.parser.scalar(&mut self.body)?;
                Some([first, self.range_behind(first)?])
            }
            false => None,
        };
        self.parser.expect(Tok::Assign)?;
        let value = self.parser.scalar(&mut self.body)?;
        Ok(Iterator { name: self.parser.var_name(token)?, kind, ty, domain, value })
    }

    /// Regions and attributes of a block, up to the brace of its initial statement or body.
    pub(super) fn regions(&mut self, mut head: BlockHead) -> Parsed<State> {
        for word in ["reads", "writes"] {
            let before = head.operands.len();
            if self.parser.eat_word(word) {
                self.parser.expect(Tok::LParen)?;
                let body = &mut self.body;
                let regions = self.parser.list(Tok::RParen, |parser| parser.region(body))?;
                head.operands.extend(regions);
            }
            let count = (head.operands.len() - before) as i64;
            head.layout.push(self.parser.int(count));
        }
        head.attrs = self.parser.attrs()?;
        match self.parser.eat_word("init") {
            true => self.open(Role::Init(Box::new(head))),
            false => self.open(Role::Block(Box::new(head))),
        }
    }
}

/// An iterator of a block before its variable is made.
struct Iterator<'s> {
    name: NewVar<'s>,
    kind: Term,
    ty: Option<Type>,
    domain: Option<[Expr; 2]>,
    value: Expr,
}

impl<'s> Parser<'s, '_> {
    /// `%x: type`, a buffer when the type is a tensor; `buffer` or `var` before it decides.
    fn param(&mut self, body: &mut Body<'s>) -> Parsed<Expr> {
        let kind = match () {
            () if self.eat_word("buffer") => Some(Kind::BUFFER),
            () if self.eat_word("var") => Some(Kind::VAR),
            () => None,
        };
        self.buffer_or_var(body, kind)
    }

    /// `%A: type "scope"`
    fn buffer(&mut self, body: &mut Body<'s>) -> Parsed<Expr> {
        self.buffer_or_var(body, Some(Kind::BUFFER))
    }

    fn buffer_or_var(&mut self, body: &mut Body<'s>, kind: Option<Kind>) -> Parsed<Expr> {
        let token = self.expect(Tok::Var)?;
        let var = self.var_name(token)?;
        let ty = self.annotation()?;
        let is_tensor =
            ty.is_some_and(|ty| matches!(self.cx.terms().ty(ty), TypeView::Tensor { .. }));
        if kind.unwrap_or(if is_tensor { Kind::BUFFER } else { Kind::VAR }) == Kind::VAR {
            return Ok(self.define_var(body, var, ty));
        }
        let aux = match self.at(Tok::Str) {
            true => {
                let scope = self.bump();
                let scope = self.unquoted(scope, 0)?;
                if scope.is_empty() { 0 } else { self.symbol(&scope).0 }
            }
            false => 0,
        };
        let data = self.symbol(&var.name).0;
        let span = token.start + 1;
        let spec = NodeSpec { ty, data, aux, span, ..NodeSpec::new(Kind::BUFFER) };
        let expr = body.tx.push(spec, &[]);
        self.define(body, var, expr);
        Ok(expr)
    }

    /// Refuses indices, which stand next, into what is no buffer.
    pub(super) fn check_has_elements(&mut self, body: &Body<'s>, expr: Expr) -> Parsed<()> {
        if !self.at(Tok::LBracket) || body.tx.body().kind(expr) == Kind::BUFFER {
            return Ok(());
        }
        let label = "what stands before this is no buffer";
        Err(self.error_at(range(self.token), "only a buffer has elements", label))
    }

    /// `%A[first : extent, …]`
    fn region(&mut self, body: &mut Body<'s>) -> Parsed<Expr> {
        let span = self.token.start + 1;
        if !self.at(Tok::Var) {
            return Err(self.expected("a part of a buffer"));
        }
        let buffer = self.name_use(body)?;
        self.check_has_elements(body, buffer)?;
        self.expect(Tok::LBracket)?;
        let mut operands = vec![buffer];
        self.list(Tok::RBracket, |parser| {
            operands.push(parser.scalar(body)?);
            parser.expect(Tok::Colon)?;
            operands.push(parser.scalar(body)?);
            Ok(())
        })?;
        Ok(body.tx.push(NodeSpec { span, ..NodeSpec::new(Kind::REGION) }, &operands))
    }
}
