//! Scopes of tensor programs: the statements between two braces, what is made of them, and how reading
//! goes on after an error.

use super::body::Header;
use super::cursor::{Halt, Parsed, range};
use super::prim::{Frame, Prim, State};
use crate::diagnostics::Diagnostic;
use crate::text::lexer::Tok;
use crate::{Attrs, Build, Context, Expr, Kind, LoopKind, NodeSpec, Term};

/// Words that begin statements.
const STATEMENTS: &[&str] = &["for", "if", "block", "let", "alloc", "eval"];

/// Statements between braces.
pub(super) struct Scope {
    role: Role,
    /// The opening brace.
    open_at: u32,
    base: usize,
}

/// What a scope is for.
pub(super) enum Role {
    Function(Box<Header>),
    For(Box<LoopHead>),
    Then {
        cond: Expr,
        span: u32,
    },
    Else {
        cond: Expr,
        then: Expr,
        span: u32,
    },
    /// Labels that the regions of a block need.
    With(Box<BlockHead>),
    Init(Box<BlockHead>),
    Block(Box<BlockHead>),
    Nested,
}

/// A loop before its body.
pub(super) struct LoopHead {
    pub(super) var: Expr,
    pub(super) min: Expr,
    pub(super) extent: Expr,
    pub(super) kind: LoopKind,
    pub(super) thread: u32,
    pub(super) attrs: Attrs,
    pub(super) span: u32,
}

/// A block before its body.
pub(super) struct BlockHead {
    pub(super) name: u32,
    pub(super) operands: Vec<Expr>,
    /// Kinds of the iterators, number of reads, number of writes.
    pub(super) layout: Vec<Term>,
    pub(super) attrs: Attrs,
    /// Whether there are domains (2) and a predicate (4).
    pub(super) flags: u16,
    pub(super) init: Option<Expr>,
    pub(super) span: u32,
}

impl Role {
    /// Whether the names that its head defines are its scope's own, so that it opens none itself.
    fn has_open_names(&self) -> bool {
        matches!(self, Role::Function(_) | Role::For(_) | Role::With(_))
    }
}

impl Prim<'_, '_, '_> {
    /// Opens a scope at its brace.
    pub(super) fn open(&mut self, role: Role) -> Parsed<State> {
        let open_at = self.parser.token.start;
        if !role.has_open_names() {
            self.body.names.open();
        }
        self.frames.push(Frame::Scope(Scope { role, open_at, base: self.stmts.len() }));
        self.parser.expect(Tok::LBrace)?;
        Ok(State::Statement)
    }

    /// The text ends inside of the innermost scope.
    pub(super) fn unclosed(&mut self) -> Halt {
        let scope = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Scope(scope) => Some(scope.open_at as usize),
            _ => None,
        });
        let open_at = scope.unwrap_or(0);
        let diagnostic = Diagnostic::error("this brace is not closed")
            .label(open_at..open_at + 1, "opened here")
            .label(range(self.parser.token), "not closed before this");
        self.parser.report(diagnostic)
    }

    /// A statement was read: hands it to what waits for it.
    pub(super) fn ready(&mut self, stmt: Expr) -> Parsed<State> {
        match self.frames.pop() {
            Some(Frame::Label(token)) => {
                self.parser.define_label(&mut self.body, token, stmt);
                Ok(State::Statement)
            }
            Some(Frame::ElseIf { cond, then, span }) => {
                let spec = NodeSpec { span, ..NodeSpec::new(Kind::IF_STMT) };
                Ok(State::Ready(self.body.tx.push(spec, &[cond, then, stmt])))
            }
            Some(frame @ Frame::Scope(_)) => {
                self.frames.push(frame);
                self.stmts.push(stmt);
                Ok(State::Statement)
            }
            None => Ok(State::Done(stmt)),
        }
    }

    /// Ends the innermost scope at its closing brace.
    pub(super) fn close(&mut self) -> Parsed<State> {
        let Some(Frame::Scope(scope)) = self.frames.pop() else {
            return Err(self.parser.expected("a statement"));
        };
        self.parser.bump();
        if !matches!(scope.role, Role::With(_)) {
            self.body.names.close();
        }
        let is_nested = matches!(scope.role, Role::Nested);
        let content = match &self.stmts[scope.base..] {
            &[stmt] if !is_nested => stmt,
            stmts => {
                let span = scope.open_at + 1;
                self.body.tx.push(NodeSpec { span, ..NodeSpec::new(Kind::SEQ) }, stmts)
            }
        };
        self.stmts.truncate(scope.base);
        match scope.role {
            Role::Nested => Ok(State::Ready(content)),
            Role::Function(header) => Ok(State::Done(self.finish_function(&header, content))),
            Role::For(head) => {
                let spec = NodeSpec {
                    data: head.kind as u32,
                    aux: head.thread,
                    attrs: head.attrs,
                    span: head.span,
                    ..NodeSpec::new(Kind::FOR)
                };
                let operands = [head.var, head.min, head.extent, content];
                Ok(State::Ready(self.body.tx.push(spec, &operands)))
            }
            Role::Then { cond, span } => self.after_then(cond, content, span),
            Role::Else { cond, then, span } => {
                let spec = NodeSpec { span, ..NodeSpec::new(Kind::IF_STMT) };
                Ok(State::Ready(self.body.tx.push(spec, &[cond, then, content])))
            }
            Role::With(head) => self.regions(*head),
            Role::Init(mut head) => {
                head.init = Some(content);
                self.open(Role::Block(head))
            }
            Role::Block(head) => {
                // The names of its iterators.
                self.body.names.close();
                Ok(State::Ready(self.finish_block(*head, content)))
            }
        }
    }

    fn after_then(&mut self, cond: Expr, then: Expr, span: u32) -> Parsed<State> {
        if !self.parser.eat_word("else") {
            let spec = NodeSpec { span, ..NodeSpec::new(Kind::IF_STMT) };
            return Ok(State::Ready(self.body.tx.push(spec, &[cond, then])));
        }
        if self.parser.at_word("if") {
            self.frames.push(Frame::ElseIf { cond, then, span });
            return Ok(State::Statement);
        }
        self.open(Role::Else { cond, then, span })
    }

    fn finish_function(&mut self, header: &Header, content: Expr) -> Expr {
        let mut operands = header.params.clone();
        operands.push(content);
        let spec = NodeSpec {
            flags: header.is_private as u16,
            data: header.outputs,
            attrs: header.attrs,
            span: header.source.map_or(header.start + 1, |source| source.0),
            ..NodeSpec::new(Kind::PRIM_FUNC)
        };
        self.body.tx.push(spec, &operands)
    }

    fn finish_block(&mut self, head: BlockHead, content: Expr) -> Expr {
        let mut operands = head.operands;
        operands.extend(head.init);
        operands.push(content);
        let spec = NodeSpec {
            flags: head.flags | head.init.is_some() as u16,
            data: head.name,
            aux: self.parser.cx.list(&head.layout).0,
            attrs: head.attrs,
            span: head.span,
            ..NodeSpec::new(Kind::BLOCK)
        };
        self.body.tx.push(spec, &operands)
    }

    /// After an error: goes on with the next statement of the innermost scope.
    pub(super) fn recover(&mut self) -> Parsed<State> {
        if self.parser.is_hopeless() {
            return Err(Halt);
        }
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Scope(_) => {
                    self.frames.push(frame);
                    self.parser.skip_statement(STATEMENTS)?;
                    return Ok(State::Statement);
                }
                Frame::Label(token) => {
                    let poison = self.body.tx.push(NodeSpec::new(Kind::VAR), &[]);
                    self.parser.define_label(&mut self.body, token, poison);
                }
                Frame::ElseIf { .. } => {}
            }
        }
        Err(Halt)
    }
}
