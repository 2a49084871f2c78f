//! What crosses between who asks and a rule.

use std::collections::HashMap;
use std::marker::PhantomData;

use crate::abi::host::{Host, TransactionHandle};
use crate::abi::rule::RuleItem;
use crate::ir::{Build, Expr, Term};
use crate::pass::{PassError, PrimFunc, Result, Rewriter};
use crate::program::{Intrinsic, Program};

use super::{Joining, Knob, Site};

/// What a rule is asked, before its facet has taken it apart.
pub struct Question<'a> {
    pub(crate) host: Host,
    pub(crate) transaction: Option<TransactionHandle>,
    pub(crate) rule: &'static RuleItem,
    pub(crate) nodes: &'a [Expr],
    pub(crate) data: Term,
}

/// What a rule answers, as it crosses.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Nodes of the transaction that the question is about; [`Reply::NONE`] for none.
    pub nodes: Vec<Expr>,
    /// What the facet says.
    pub data: Term,
}

impl Reply {
    /// Stands for no node.
    pub const NONE: Expr = Expr(crate::abi::tables::NONE);

    /// An answer that is one node.
    pub fn of(node: Expr) -> Self {
        Self { nodes: vec![node], data: Term::default() }
    }
}

impl<'a> Question<'a> {
    /// The key that it is asked for.
    pub fn key(&self) -> &'static str {
        self.rule.key
    }

    /// The function that is asked, with the module that it stands in.
    pub fn rule(&self) -> &'static str {
        self.rule.name
    }

    /// What the rule lets others choose.
    pub fn knobs(&self) -> &'static [Knob] {
        self.rule.knobs
    }

    /// The nodes that it is about; [`Reply::NONE`] for none.
    pub fn nodes(&self) -> &'a [Expr] {
        self.nodes
    }

    /// Its data.
    pub fn data(&self) -> Term {
        self.data
    }

    /// The terms that the data is one of.
    pub fn context(&self) -> &Host {
        &self.host
    }

    /// The program that it asks for.
    pub(super) fn program(self) -> Result<Program> {
        let transaction = self.transaction.ok_or_else(|| {
            PassError::new("its facet is asked for programs, and there is none to write")
        })?;
        Program::new(transaction, self.rule.key, self.data)
    }

    /// The intrinsic that it asks for.
    pub(super) fn intrinsic(self) -> Result<Intrinsic> {
        let transaction = self.transaction.ok_or_else(|| {
            PassError::new("its facet is asked for programs, and there is none to write")
        })?;
        Ok(Intrinsic::new(transaction, self.rule.key))
    }

    /// The states that it asks to join.
    pub(super) fn joining(self) -> Result<Joining> {
        let transaction = self.transaction.ok_or_else(|| {
            PassError::new("its facet is asked about numbers, and there is no transaction")
        })?;
        Joining::new(transaction, self.rule.key, self.nodes)
    }

    /// A copy of the tensor program that the question is about, which is the rule's own.
    pub fn copy_of_program(&self) -> Result<PrimFunc> {
        let transaction = self.transaction.as_ref().ok_or_else(|| {
            PassError::new("its facet is asked about programs, and the question is about none")
        })?;
        let body = transaction.body();
        let mut copy = Rewriter::on(&self.host);
        let mut made: HashMap<Expr, Expr> = HashMap::new();
        let mut stack = vec![(body.root(), false)];
        while let Some((expr, is_ready)) = stack.pop() {
            if made.contains_key(&expr) {
                continue;
            }
            let operands: Vec<Expr> = body.operands_keeping_binders(expr).collect();
            if !is_ready {
                stack.push((expr, true));
                stack.extend(operands.into_iter().rev().map(|operand| (operand, false)));
                continue;
            }
            let operands: Vec<Expr> = operands.iter().map(|operand| made[operand]).collect();
            made.insert(expr, copy.copy_node(body, expr, &operands));
        }
        copy.set_root(made[&body.root()]);
        Ok(copy.finish()?.into())
    }

    /// The call that the first node is, in the function that it stands in.
    pub fn site(self) -> Result<Site<'a>> {
        let transaction = self.transaction.ok_or_else(|| {
            PassError::new("its facet is asked about calls, and the question is about none")
        })?;
        let &[call, ..] = self.nodes else {
            return Err(PassError::new("the question names no call"));
        };
        Site::new(transaction, call, PhantomData)
    }
}

/// What a rule may return: an answer, or nothing when it declines.
#[diagnostic::on_unimplemented(
    message = "a rule of this facet answers `{A}`, or nothing",
    label = "it returns `{Self}`"
)]
pub trait Answer<A> {
    /// The answer.
    fn answer(self) -> Result<Option<A>>;
}

impl<A> Answer<A> for A {
    fn answer(self) -> Result<Option<A>> {
        Ok(Some(self))
    }
}

impl<A> Answer<A> for Option<A> {
    fn answer(self) -> Result<Option<A>> {
        Ok(self)
    }
}

impl<A, E: Into<PassError>> Answer<A> for std::result::Result<A, E> {
    fn answer(self) -> Result<Option<A>> {
        self.map(Some).map_err(Into::into)
    }
}

impl<A, E: Into<PassError>> Answer<A> for std::result::Result<Option<A>, E> {
    fn answer(self) -> Result<Option<A>> {
        self.map_err(Into::into)
    }
}
