//! What reading a function body needs besides the tokens: the nodes so far and the names.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Parser;
use super::cursor::{Halt, Parsed, range};
use super::scope::{Found, Names};
use super::source::in_context;
use crate::diagnostics::Diagnostic;
use crate::suggest::nearest;
use crate::text::implied::implied_type;
use crate::text::lexer::{Tok, Token};
use crate::{
    Attrs, Build, Context, Cx, Expr, Function, Kind, NodeSource, NodeSpec, Symbol, Transaction,
    Type,
};

/// A function that is being read.
pub(super) struct Body<'s> {
    cx: &'s Cx,
    pub(super) tx: Transaction,
    pub(super) names: Names<'s>,
    /// Operators, globals and externs: one node for each name.
    leaves: FxHashMap<(u16, Symbol), Expr>,
}

impl<'s> Body<'s> {
    pub(super) fn new(cx: &'s Cx) -> Self {
        Self {
            cx,
            tx: Transaction::new(cx.clone()),
            names: Names::default(),
            leaves: FxHashMap::default(),
        }
    }

    /// The node of this kind with this name.
    pub(super) fn leaf(&mut self, kind: Kind, name: Symbol, token: Token) -> Expr {
        let tx = &mut self.tx;
        *self.leaves.entry((kind.0, name)).or_insert_with(|| {
            tx.push(NodeSpec { data: name.0, span: token.start + 1, ..NodeSpec::new(kind) }, &[])
        })
    }

    /// Adds a node whose type is the implied one.
    pub(super) fn push_implied(&mut self, spec: NodeSpec, operands: &[Expr]) -> Expr {
        let expr = self.tx.push(spec, operands);
        if let Some(ty) = implied_type(self.cx, self.tx.body(), expr) {
            self.tx.set_type(expr, Some(ty));
        }
        expr
    }
}

/// What a function says before its body.
pub(super) struct Header {
    pub(super) params: Vec<Expr>,
    pub(super) outputs: u32,
    pub(super) result: Option<Type>,
    pub(super) attrs: Attrs,
    /// What it came from, where that is said.
    pub(super) source: Option<NodeSource>,
    pub(super) is_private: bool,
    pub(super) start: u32,
}

/// A name that is about to be defined.
pub(super) struct NewVar<'s> {
    pub(super) name: Cow<'s, str>,
    pub(super) token: Token,
}

impl<'s> Parser<'s, '_> {
    /// Publishes what was read; the last thing that can be wrong is a weight's fault or ours.
    pub(super) fn publish(&mut self, mut body: Body<'s>, root: Expr) -> Parsed<Arc<Function>> {
        body.tx.set_root(root);
        let function = body.tx.publish().map_err(|error| {
            let span = self.last_end as usize..self.last_end as usize;
            self.error_at(span, format!("this function cannot be built: {error}"), "")
        })?;
        Ok(match self.base {
            Some(0) => function,
            base => function.map_sources(|_, source| in_context(source, base)),
        })
    }

    /// The name of a variable.
    pub(super) fn var_name(&mut self, token: Token) -> Parsed<NewVar<'s>> {
        Ok(NewVar { name: self.unquoted(token, 1)?, token })
    }

    /// A name as a symbol.
    pub(super) fn symbol(&mut self, name: &str) -> Symbol {
        self.cx.symbol(name)
    }

    /// Makes a variable and defines it.
    pub(super) fn define_var(
        &mut self,
        body: &mut Body<'s>,
        var: NewVar<'s>,
        ty: Option<Type>,
    ) -> Expr {
        let data = self.symbol(&var.name).0;
        let span = var.token.start + 1;
        let expr = body.tx.push(NodeSpec { ty, data, span, ..NodeSpec::new(Kind::VAR) }, &[]);
        self.define(body, var, expr);
        expr
    }

    /// Defines a variable or a buffer; a name that is taken is reported, and means the new one.
    pub(super) fn define(&mut self, body: &mut Body<'s>, var: NewVar<'s>, expr: Expr) {
        let token = var.token;
        if let Err(old) = body.names.define(var.name, expr, range(token)) {
            self.taken(token, old.span());
        }
    }

    /// Defines a label.
    pub(super) fn define_label(&mut self, body: &mut Body<'s>, token: Token, expr: Expr) {
        let Ok(label) = self.label_number(token) else { return };
        if let Err(old) = body.names.label(label, expr, range(token)) {
            self.taken(token, old.span());
        }
    }

    fn taken(&mut self, token: Token, old: Range<usize>) {
        let diagnostic = Diagnostic::error(format!("{} is already defined", self.slice(token)))
            .label(range(token), "defined again")
            .label(old, "defined before")
            .help("give one of the two another name");
        self.report(diagnostic);
    }

    fn label_number(&mut self, token: Token) -> Parsed<u32> {
        match self.slice(token)[1..].parse() {
            Ok(label) => Ok(label),
            Err(_) => Err(self.wrong_number(token, "a label of 32 bits")),
        }
    }

    /// The node of the variable or label that is the current token.
    pub(super) fn name_use(&mut self, body: &Body<'s>) -> Parsed<Expr> {
        let token = self.bump();
        let found = match token.tok {
            Tok::Label => body.names.find_label(self.label_number(token)?),
            _ => match self.slice(token).as_bytes()[1] {
                b'"' => body.names.find(&self.unquoted(token, 1)?),
                _ => body.names.find(&self.slice(token)[1..]),
            },
        };
        match found {
            Found::Here(entry) => Ok(entry.expr),
            Found::Ended(entry) => {
                let name = self.slice(token);
                let diagnostic = Diagnostic::error(format!("{name} is not visible here"))
                    .label(range(token), "used after its scope has ended")
                    .label(entry.span(), "defined here")
                    .help("define it before the scope, or make it the scope's result");
                Err(self.report(diagnostic))
            }
            Found::Nowhere => Err(self.unknown_name(body, token)),
        }
    }

    fn unknown_name(&mut self, body: &Body<'s>, token: Token) -> Halt {
        let text = self.slice(token);
        let mut diagnostic = Diagnostic::error(format!("{text} is not defined"))
            .label(range(token), "not defined before this");
        if token.tok == Tok::Var
            && let Some(near) = nearest(&text[1..], body.names.visible())
        {
            diagnostic = diagnostic.help(format!("did you mean %{near}?"));
        }
        self.report(diagnostic)
    }
}
