//! What type inference finds wrong.

use std::sync::Arc;

use thiserror::Error;

use crate::diagnostics::{Diagnostic, Source};
use crate::{BodyView, Cx, Expr};
use tenon_plugin_api::op::OpError;

/// Something wrong at a node.
#[derive(Debug, Error, Clone)]
#[error("{problem}")]
pub struct InferError {
    /// The node.
    pub node: Expr,
    /// The byte of the text where it was read, where it was read from one.
    pub place: Option<usize>,
    /// What it came from, where nothing was read there.
    pub came_from: Option<String>,
    /// What is wrong.
    pub problem: Box<InferProblem>,
}

impl InferError {
    /// Something wrong at a node of a body.
    pub(super) fn at(cx: &Cx, body: BodyView<'_>, node: Expr, problem: InferProblem) -> Self {
        let place = cx.offset_of(body.source(node));
        let text = || Some(cx.source_text(body.source(node))).filter(|text| !text.is_empty());
        let came_from = if place.is_none() { text() } else { None };
        Self { node, place, came_from, problem: Box::new(problem) }
    }

    /// The error as a person reads it, underlined where the node stands in the text it was parsed from.
    pub fn to_diagnostic(&self, source: &Arc<Source>) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.problem.to_string()).in_source(source);
        match (self.place, &self.came_from) {
            (Some(at), _) => diagnostic.label(source.word_at(at), ""),
            (None, Some(from)) => diagnostic.note(format!("from {from}")),
            (None, None) => diagnostic,
        }
    }
}

/// What is wrong at a node.
#[derive(Debug, Error, Clone)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum InferProblem {
    #[error("`{op}`: {error}")]
    Op { op: String, error: OpError },
    #[error("there is no function `@{0}` in the module, or its signature is not known")]
    UnknownGlobal(String),
    #[error("parameter `%{0}` has no type")]
    UntypedParam(String),
    #[error(
        "`%{0}` has no type here: nothing binds it before; a recursive function needs a type on its variable"
    )]
    UntypedVar(String),
    #[error("this {0} has no type, and stands where a value is needed")]
    Untyped(&'static str),
    #[error("a call of the external function `{0}` needs a type")]
    UntypedExtern(String),
    #[error("`{0}` can be called, but is no value")]
    NotAValue(String),
    #[error("a value of type {0} cannot be called")]
    NotCallable(String),
    #[error("the function takes {expected} argument{}, not {found}", if *.expected == 1 { "" } else { "s" })]
    WrongArgCount { expected: usize, found: usize },
    #[error("argument {} is {found}, but the parameter is {expected}", .index + 1)]
    WrongArg { index: usize, expected: String, found: String },
    #[error("the result is declared as {declared}, but it is {found}")]
    WrongResult { declared: String, found: String },
    #[error("it is declared as {declared}, but its value is {found}")]
    WrongDeclaration { declared: String, found: String },
    #[error(
        "it is declared as {declared}, but its value is {found}, and only a run could say whether that is one; \
         leave the type out, or give the value another shape by an operator, which compares sizes when it runs"
    )]
    OpenDeclaration { declared: String, found: String },
    #[error("there is no field {index} in {found}")]
    NoField { index: usize, found: String },
    #[error("the condition is {0}, but a bool without dimensions is expected")]
    WrongCondition(String),
    #[error("the branches are {then} and {otherwise}, which have no type in common")]
    WrongBranches { then: String, otherwise: String },
}
