//! Scopes of graph functions: bodies of functions, branches, blocks of bindings; and how reading goes
//! on after an error in one.

use super::body::Header;
use super::cursor::{Halt, Parsed, range};
use super::graph::{Binder, Frame, Graph, State};
use crate::diagnostics::Diagnostic;
use crate::text::lexer::Tok;
use crate::{Build, Context, Expr, Kind, NodeSource, NodeSpec, Term, Type};

/// Statements between braces.
pub(super) struct Scope {
    role: Role,
    /// The finished blocks of bindings, `2 * bindings + is_dataflow` each.
    blocks: Vec<i64>,
    /// Bindings since the last finished block.
    run: i64,
    /// Whether the bindings stand in a block with braces, and whether that is a dataflow block.
    block: Option<bool>,
    /// The opening brace.
    open_at: u32,
    values_base: usize,
    bindings_base: usize,
    is_broken: bool,
}

/// What a scope is for.
pub(super) enum Role {
    Function(Box<Header>),
    Then { cond: Expr, start: u32 },
    Else { cond: Expr, then: Expr, start: u32 },
    Block,
}

impl<'s> Graph<'_, 's, '_> {
    /// Opens a scope at its brace.
    pub(super) fn open(&mut self, role: Role) -> Parsed<State> {
        let open_at = self.parser.token.start;
        if !matches!(role, Role::Function(_)) {
            // A function's scope holds its parameters already.
            self.body.names.open();
        }
        self.frames.push(Frame::Scope(Scope {
            role,
            blocks: Vec::new(),
            run: 0,
            block: None,
            open_at,
            values_base: self.values.len(),
            bindings_base: self.bindings.len(),
            is_broken: false,
        }));
        self.parser.expect(Tok::LBrace)?;
        Ok(State::Statement)
    }

    fn scope(&mut self) -> &mut Scope {
        match self.frames.last_mut() {
            Some(Frame::Scope(scope)) => scope,
            _ => unreachable!("statements are only read with a scope on top"),
        }
    }

    pub(super) fn open_block(&mut self, is_dataflow: bool) -> Parsed<State> {
        if self.scope().block.is_some() {
            return Err(self.parser.expected("a binding; blocks of bindings do not nest"));
        }
        self.parser.bump();
        self.parser.expect(Tok::LBrace)?;
        let scope = self.scope();
        scope.end_run();
        scope.block = Some(is_dataflow);
        Ok(State::Statement)
    }

    /// The text ends inside of the innermost scope.
    pub(super) fn unclosed(&mut self) -> Halt {
        let open_at = self.scope().open_at as usize;
        let diagnostic = Diagnostic::error("this brace is not closed")
            .label(open_at..open_at + 1, "opened here")
            .label(range(self.parser.token), "not closed before this");
        self.parser.report(diagnostic)
    }

    /// A closing brace where a statement could stand.
    pub(super) fn close_brace(&mut self) -> Parsed<State> {
        let scope = self.scope();
        if let Some(is_dataflow) = scope.block.take() {
            scope.blocks.push(2 * scope.run + is_dataflow as i64);
            scope.run = 0;
            self.parser.bump();
            return Ok(State::Statement);
        }
        if !scope.is_broken {
            let open_at = scope.open_at as usize;
            let diagnostic = Diagnostic::error("this scope has no result")
                .label(range(self.parser.token), "expected `ret` before this")
                .label(open_at..open_at + 1, "the scope begins here");
            self.parser.report(diagnostic);
        }
        let poison = self.poison();
        self.close(poison)
    }

    /// A node that stands for one that could not be read.
    fn poison(&mut self) -> Expr {
        self.body.tx.push(NodeSpec::new(Kind::VAR), &[])
    }

    /// Ends the innermost scope at its closing brace, with its result.
    pub(super) fn close(&mut self, result: Expr) -> Parsed<State> {
        let Some(Frame::Scope(mut scope)) = self.frames.pop() else {
            unreachable!("a result is only read in a scope");
        };
        if scope.block.is_some() {
            self.frames.push(Frame::Scope(scope));
            return Err(self.parser.expected("`}` of the block; the result stands behind it"));
        }
        self.parser.bump();
        self.body.names.close();
        scope.end_run();
        let is_let = !scope.blocks.is_empty() || matches!(scope.role, Role::Block);
        let result = if is_let { self.finish_let(&scope, result) } else { result };
        match scope.role {
            Role::Block => Ok(State::made(result, scope.open_at)),
            Role::Function(header) => Ok(self.finish_function(&header, result)),
            Role::Then { cond, start } => match self.parser.eat_word("else") {
                true => self.open(Role::Else { cond, then: result, start }),
                false => Err(self.parser.expected("`else`")),
            },
            Role::Else { cond, then, start } => {
                let spec = NodeSpec { span: start + 1, ..NodeSpec::new(Kind::IF) };
                Ok(State::made(self.body.tx.push(spec, &[cond, then, result]), start))
            }
        }
    }

    fn finish_let(&mut self, scope: &Scope, result: Expr) -> Expr {
        let cx = self.parser.cx;
        let counts: Vec<Term> = scope.blocks.iter().map(|&count| cx.int(count)).collect();
        let data = cx.list(&counts).0;
        self.bindings.push(result);
        let spec = NodeSpec { data, span: scope.open_at + 1, ..NodeSpec::new(Kind::LET) };
        let expr = self.body.push_implied(spec, &self.bindings[scope.bindings_base..]);
        self.bindings.truncate(scope.bindings_base);
        expr
    }

    fn finish_function(&mut self, header: &Header, result: Expr) -> State {
        let mut operands = header.params.clone();
        operands.push(result);
        let spec = NodeSpec {
            flags: header.is_private as u16,
            data: header.result.map_or(0, |ty| ty.0),
            attrs: header.attrs,
            span: header.start + 1,
            ..NodeSpec::new(Kind::FUNCTION)
        };
        let expr = self.body.push_implied(spec, &operands);
        match self.frames.is_empty() {
            true => State::Done(expr),
            false => State::made(expr, header.start),
        }
    }

    /// Adds a binding to the innermost scope.
    pub(super) fn bind(
        &mut self,
        binder: Binder<'s>,
        ty: Option<Type>,
        value: Expr,
        source: Option<NodeSource>,
    ) -> Parsed<State> {
        let var = match binder {
            Binder::New(var) => self.parser.define_var(&mut self.body, var, ty),
            Binder::Defined(var) => var,
        };
        if let Some(source) = source {
            self.body.tx.set_source_of(var, source);
        }
        self.bindings.extend([var, value]);
        self.scope().run += 1;
        Ok(State::Statement)
    }

    /// After an error: drops what is half read, and goes on with the next statement of the innermost
    /// scope that is left.
    pub(super) fn recover(&mut self) -> Parsed<State> {
        if self.parser.is_hopeless() {
            return Err(Halt);
        }
        loop {
            match self.frames.pop() {
                None => return Err(Halt),
                Some(Frame::Scope(mut scope)) => {
                    scope.is_broken = true;
                    self.values.truncate(scope.values_base);
                    self.frames.push(Frame::Scope(scope));
                    break;
                }
                // The name is known from here on, so that its uses are no further errors.
                Some(Frame::Bind(Binder::New(var), ty)) => {
                    self.parser.define_var(&mut self.body, var, ty);
                }
                Some(Frame::Label(token, _)) => {
                    let poison = self.poison();
                    self.parser.define_label(&mut self.body, token, poison);
                }
                Some(_) => {}
            }
        }
        self.parser.skip_statement(&["ret"])?;
        Ok(State::Statement)
    }
}

impl Scope {
    fn end_run(&mut self) {
        if self.run > 0 {
            self.blocks.push(2 * self.run);
            self.run = 0;
        }
    }
}
