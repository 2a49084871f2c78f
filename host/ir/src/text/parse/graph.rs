//! Graph functions.
//!
//! One loop reads statements and expressions; what it is in the middle of stands on a stack of frames,
//! so calls, branches and functions nest as deep as memory allows.

use super::Parser;
use super::body::{Body, Header, NewVar};
use super::cursor::{Halt, Parsed};
use super::graph_scope::{Role, Scope};
use crate::text::implied::takes_annotation;
use crate::text::lexer::{Tok, Token};
use crate::{Build, Expr, Kind, NodeSource, NodeSpec, Type};

/// Reads one graph function.
pub(super) struct Graph<'p, 's, 'w> {
    pub(super) parser: &'p mut Parser<'s, 'w>,
    pub(super) body: Body<'s>,
    pub(super) frames: Vec<Frame<'s>>,
    /// Arguments and fields of the open frames.
    pub(super) values: Vec<Expr>,
    /// Variables and values of the open scopes' bindings.
    pub(super) bindings: Vec<Expr>,
}

/// What is in the middle of being read.
pub(super) enum Frame<'s> {
    Scope(Scope),
    /// `%x: T = …`
    Bind(Binder<'s>, Option<Type>),
    /// `^1: T = …`
    Label(Token, Option<Type>),
    /// `ret …`
    Ret,
    /// `f(…`; the callee is the first value.
    Args {
        base: usize,
        start: u32,
    },
    /// `(…`, a tuple when there was a comma.
    Group {
        base: usize,
        start: u32,
        is_tuple: bool,
    },
    /// `if …`
    Cond {
        start: u32,
    },
    /// `unknown<…>(…`
    Raw {
        base: usize,
        spec: NodeSpec,
    },
}

/// A variable before its value.
pub(super) enum Binder<'s> {
    New(NewVar<'s>),
    /// Defined already, so that its value may use it.
    Defined(Expr),
}

/// What comes next.
pub(super) enum State {
    Statement,
    Operand,
    Value(Written),
    Done(Expr),
}

/// An expression that was read.
#[derive(Clone, Copy)]
pub(super) struct Written {
    pub(super) expr: Expr,
    /// Whether it was written here rather than referred to by name.
    pub(super) is_here: bool,
    /// Where it starts.
    pub(super) start: u32,
}

impl State {
    /// A leaf, or what a name stands for.
    fn leaf(expr: Expr, start: u32) -> State {
        State::Value(Written { expr, is_here: false, start })
    }

    /// A node that was made here.
    pub(super) fn made(expr: Expr, start: u32) -> State {
        State::Value(Written { expr, is_here: true, start })
    }
}

impl<'s> Graph<'_, 's, '_> {
    /// Reads a function from its parameters on; `None` when it has errors but was read to its end.
    pub(super) fn function(mut self, is_private: bool) -> Parsed<Option<(Body<'s>, Expr)>> {
        let errors = self.parser.errors;
        let mut state = self.header(is_private)?;
        loop {
            state = match self.step(state) {
                Ok(State::Done(root)) if self.parser.errors == errors => {
                    return Ok(Some((self.body, root)));
                }
                Ok(State::Done(_)) => return Ok(None),
                Ok(state) => state,
                Err(Halt) => self.recover()?,
            };
        }
    }

    fn step(&mut self, state: State) -> Parsed<State> {
        match state {
            State::Statement => self.statement(),
            State::Operand => self.operand(),
            State::Value(value) => self.after(value),
            State::Done(root) => Ok(State::Done(root)),
        }
    }

    /// Parameters, result type, attributes and the opening brace.
    pub(super) fn header(&mut self, is_private: bool) -> Parsed<State> {
        let start = self.parser.token.start;
        self.parser.expect(Tok::LParen)?;
        self.body.names.open();
        let body = &mut self.body;
        let params = self.parser.list(Tok::RParen, |parser| {
            let token = parser.expect(Tok::Var)?;
            let ty = parser.annotation()?;
            let var = parser.var_name(token)?;
            Ok(parser.define_var(body, var, ty))
        })?;
        let result = match self.parser.eat(Tok::Arrow) {
            true => Some(self.parser.ty()?),
            false => None,
        };
        let attrs = self.parser.attrs()?;
        let source = None;
        let header = Header { params, outputs: 0, result, attrs, source, is_private, start };
        self.open(Role::Function(Box::new(header)))
    }

    fn statement(&mut self) -> Parsed<State> {
        let token = self.parser.token;
        match token.tok {
            Tok::Var => {
                self.parser.bump();
                let var = self.parser.var_name(token)?;
                let ty = self.parser.annotation()?;
                self.parser.expect(Tok::Assign)?;
                // A function may call itself by the name it is bound to.
                let is_function = self.parser.at_word("fn") || self.parser.at_word("private");
                let binder = match is_function {
                    true => Binder::Defined(self.parser.define_var(&mut self.body, var, ty)),
                    false => Binder::New(var),
                };
                self.frames.push(Frame::Bind(binder, ty));
                Ok(State::Operand)
            }
            Tok::Label => {
                self.parser.bump();
                let ty = self.parser.annotation()?;
                self.parser.expect(Tok::Assign)?;
                self.frames.push(Frame::Label(token, ty));
                Ok(State::Operand)
            }
            Tok::RBrace => self.close_brace(),
            Tok::End => Err(self.unclosed()),
            _ if self.parser.is_item_start() => Err(self.unclosed()),
            Tok::Word => match self.parser.slice(token) {
                "ret" => {
                    self.parser.bump();
                    self.frames.push(Frame::Ret);
                    Ok(State::Operand)
                }
                "dataflow" => self.open_block(true),
                "bindings" => self.open_block(false),
                _ => Err(self.parser.expected("a binding or `ret`")),
            },
            _ => Err(self.parser.expected("a binding or `ret`")),
        }
    }

    fn operand(&mut self) -> Parsed<State> {
        let token = self.parser.token;
        let start = token.start;
        match token.tok {
            Tok::Var => Ok(State::leaf(self.parser.name_use(&self.body)?, start)),
            Tok::Label => Ok(State::leaf(self.parser.name_use(&self.body)?, start)),
            Tok::Global => {
                self.parser.bump();
                let name = self.parser.unquoted(token, 1)?;
                let name = self.parser.symbol(&name);
                Ok(State::leaf(self.body.leaf(Kind::GLOBAL, name, token), start))
            }
            Tok::LParen => {
                self.parser.bump();
                let base = self.values.len();
                if self.parser.eat(Tok::RParen) {
                    return Ok(self.tuple(base, start));
                }
                self.frames.push(Frame::Group { base, start, is_tuple: false });
                Ok(State::Operand)
            }
            Tok::LBrace => self.open(Role::Block),
            Tok::Word => self.word(token),
            Tok::Int | Tok::Float | Tok::Minus => {
                let diagnostic = crate::diagnostics::Diagnostic::error("a number needs its type")
                    .label(super::cursor::range(token), "a bare number")
                    .help("write it as a constant, `const(f32[], 1.5)`");
                Err(self.parser.report(diagnostic))
            }
            _ => Err(self.parser.expected("an expression")),
        }
    }

    fn word(&mut self, token: Token) -> Parsed<State> {
        let start = token.start;
        let span = start + 1;
        match self.parser.slice(token) {
            "fn" => {
                self.parser.bump();
                self.header(false)
            }
            "private" => {
                self.parser.bump();
                match self.parser.eat_word("fn") {
                    true => self.header(true),
                    false => Err(self.parser.expected("`fn`")),
                }
            }
            "if" => {
                self.parser.bump();
                self.frames.push(Frame::Cond { start });
                Ok(State::Operand)
            }
            "const" => {
                self.parser.bump();
                let constant = self.parser.constant()?;
                Ok(State::leaf(self.body.tx.shared_constant(constant), start))
            }
            "shape" => {
                self.parser.bump();
                self.parser.expect(Tok::LParen)?;
                let dims = self.parser.dims(Tok::RParen)?;
                let ty = crate::Context::shape_type(self.parser.cx, dims.as_deref());
                let spec = NodeSpec { data: ty.0, span, ..NodeSpec::new(Kind::SHAPE) };
                Ok(State::leaf(self.body.push_implied(spec, &[]), start))
            }
            "dim" => {
                self.parser.bump();
                self.parser.expect(Tok::LParen)?;
                let dim = self.parser.dim()?;
                self.parser.expect(Tok::RParen)?;
                let spec = NodeSpec { data: dim.0, span, ..NodeSpec::new(Kind::PRIM) };
                Ok(State::leaf(self.body.push_implied(spec, &[]), start))
            }
            kind @ ("extern" | "op") => {
                self.parser.bump();
                let kind = if kind == "op" { Kind::OP } else { Kind::EXTERN };
                let name = self.parser.expect(Tok::Str)?;
                let name = self.parser.unquoted(name, 0)?;
                let name = self.parser.symbol(&name);
                // An extern may have a type of its own, so each is its own node.
                let expr = match kind {
                    Kind::OP => self.body.leaf(kind, name, token),
                    _ => self
                        .body
                        .tx
                        .push(NodeSpec { data: name.0, span, ..NodeSpec::new(kind) }, &[]),
                };
                Ok(State::leaf(expr, start))
            }
            "unknown" => {
                self.parser.bump();
                let spec = self.parser.raw_node(span)?;
                let base = self.values.len();
                match self.parser.eat(Tok::RParen) {
                    true => self.raw(base, spec),
                    false => {
                        self.frames.push(Frame::Raw { base, spec });
                        Ok(State::Operand)
                    }
                }
            }
            "ret" | "dataflow" | "bindings" | "else" => Err(self.parser.expected("an expression")),
            name => {
                self.parser.bump();
                let name = self.parser.op_symbol(name);
                Ok(State::leaf(self.body.leaf(Kind::OP, name, token), start))
            }
        }
    }

    /// Goes on behind an expression: calls and tuple items, then whatever was waiting for it.
    fn after(&mut self, value: Written) -> Parsed<State> {
        let Written { expr, start, .. } = value;
        let token = self.parser.token;
        match token.tok {
            Tok::LParen => {
                self.parser.bump();
                let base = self.values.len();
                self.values.push(expr);
                if self.parser.eat(Tok::RParen) {
                    return self.call(base, start);
                }
                self.frames.push(Frame::Args { base, start });
                return Ok(State::Operand);
            }
            Tok::Item => {
                self.parser.bump();
                let Ok(data) = self.parser.slice(token)[1..].parse() else {
                    return Err(self.parser.wrong_number(token, "an index of 32 bits"));
                };
                let spec =
                    NodeSpec { data, span: start + 1, ..NodeSpec::new(Kind::TUPLE_GET_ITEM) };
                return Ok(State::made(self.body.push_implied(spec, &[expr]), start));
            }
            _ => {}
        }
        match self.frames.pop() {
            Some(Frame::Args { base, start }) => {
                self.values.push(expr);
                match self.separator("`,` or `)`")? {
                    true => self.call(base, start),
                    false => {
                        self.frames.push(Frame::Args { base, start });
                        Ok(State::Operand)
                    }
                }
            }
            Some(Frame::Raw { base, spec }) => {
                self.values.push(expr);
                match self.separator("`,` or `)`")? {
                    true => self.raw(base, spec),
                    false => {
                        self.frames.push(Frame::Raw { base, spec });
                        Ok(State::Operand)
                    }
                }
            }
            Some(Frame::Group { base, start, is_tuple }) => {
                self.group(value, base, start, is_tuple)
            }
            Some(Frame::Cond { start }) => self.open(Role::Then { cond: expr, start }),
            Some(Frame::Bind(binder, ty)) => {
                self.annotate(value, ty);
                let source = self.source_of(value)?;
                self.bind(binder, ty, expr, source)
            }
            Some(Frame::Label(token, ty)) => {
                self.annotate(value, ty);
                self.source_of(value)?;
                self.parser.define_label(&mut self.body, token, expr);
                Ok(State::Statement)
            }
            Some(Frame::Ret) => match self.parser.at(Tok::RBrace) {
                true => self.close(expr),
                false if self.parser.at(Tok::End) => Err(self.unclosed()),
                false => Err(self.parser.expected("`}` after the result")),
            },
            Some(Frame::Scope(_)) | None => Err(self.parser.expected("a statement")),
        }
    }

    /// Behind an argument: whether the list ends here.
    fn separator(&mut self, what: &str) -> Parsed<bool> {
        if self.parser.eat(Tok::RParen) {
            return Ok(true);
        }
        match self.parser.eat(Tok::Comma) {
            true => Ok(self.parser.eat(Tok::RParen)),
            false => Err(self.parser.expected(what)),
        }
    }

    fn group(&mut self, value: Written, base: usize, start: u32, is_tuple: bool) -> Parsed<State> {
        if !is_tuple && self.parser.at(Tok::Colon) {
            let kind = self.body.tx.body().kind(value.expr);
            let is_name = !value.is_here && !kind.is_leaf_value();
            let ty = self.parser.ascription(is_name)?;
            self.parser.expect(Tok::RParen)?;
            self.body.tx.set_type(value.expr, ty);
            return Ok(State::Value(value));
        }
        if !is_tuple && self.parser.eat(Tok::RParen) {
            return Ok(State::Value(value));
        }
        self.values.push(value.expr);
        match self.separator("`,` or `)`")? {
            true => Ok(self.tuple(base, start)),
            false => {
                self.frames.push(Frame::Group { base, start, is_tuple: true });
                Ok(State::Operand)
            }
        }
    }

    fn tuple(&mut self, base: usize, start: u32) -> State {
        let spec = NodeSpec { span: start + 1, ..NodeSpec::new(Kind::TUPLE) };
        let expr = self.body.push_implied(spec, &self.values[base..]);
        self.values.truncate(base);
        State::made(expr, start)
    }

    fn call(&mut self, base: usize, start: u32) -> Parsed<State> {
        let attrs = self.parser.attrs()?;
        let spec = NodeSpec { attrs, span: start + 1, ..NodeSpec::new(Kind::CALL) };
        let expr = self.body.tx.push(spec, &self.values[base..]);
        self.values.truncate(base);
        Ok(State::made(expr, start))
    }

    fn raw(&mut self, base: usize, spec: NodeSpec) -> Parsed<State> {
        let attrs = self.parser.attrs()?;
        let expr = self.body.tx.push(NodeSpec { attrs, ..spec }, &self.values[base..]);
        self.values.truncate(base);
        Ok(State::made(expr, spec.span - 1))
    }

    /// Gives a node that was written here the type of its binding, or none.
    fn annotate(&mut self, value: Written, ty: Option<Type>) {
        if value.is_here && takes_annotation(self.body.tx.body(), value.expr) {
            self.body.tx.set_type(value.expr, ty);
        }
    }
}

impl Graph<'_, '_, '_> {
    /// What a value came from, where that stands behind it.
    fn source_of(&mut self, value: Written) -> Parsed<Option<NodeSource>> {
        let source = self.parser.source()?;
        if let Some(source) = source.filter(|_| value.is_here) {
            self.body.tx.set_source_of(value.expr, source);
        }
        Ok(source)
    }
}

impl Parser<'_, '_> {
    /// `: type`, if it is here; `: _` says that there is none.
    pub(super) fn annotation(&mut self) -> Parsed<Option<Type>> {
        if !self.eat(Tok::Colon) || self.eat_word("_") {
            return Ok(None);
        }
        self.ty().map(Some)
    }

    /// `: type` behind an expression in parentheses; a name has its type where it is bound.
    pub(super) fn ascription(&mut self, is_name: bool) -> Parsed<Option<Type>> {
        if !is_name {
            return self.annotation();
        }
        let message = "the type of a name is said where it is defined";
        let span = super::cursor::range(self.token);
        Err(self.error_at(span, message, "no type can stand here"))
    }

    /// `<kind, flags, data, aux>(`: a node of a kind that this build does not know.
    pub(super) fn raw_node(&mut self, span: u32) -> Parsed<NodeSpec> {
        self.expect(Tok::Lt)?;
        let kind = Kind(self.small()?);
        self.expect(Tok::Comma)?;
        let flags = self.small()?;
        self.expect(Tok::Comma)?;
        let data = self.small()?;
        self.expect(Tok::Comma)?;
        let aux = self.small()?;
        self.expect(Tok::Gt)?;
        self.expect(Tok::LParen)?;
        Ok(NodeSpec { flags, data, aux, span, ..NodeSpec::new(kind) })
    }
}
