//! Facets whose rules write a call in another way: `simplify`, `approximate`, `canonicalize`, `decompose.inference`,
//! `decompose.training` and `view`.
//!
//! A question is a call, an answer what takes its place, of the same type.

use crate::ir::{Expr, Symbol, Term};
use crate::pass::{PassError, Result, Rewriter};

use super::{Facet, Question, Reply, Rules, Site};

/// A facet whose rules write a call in another way.
pub trait Rewrites: Facet {}

macro_rules! rewrites {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal;)*) => {$(
        $(#[doc = $doc])*
        pub struct $name;

        impl Facet for $name {
            const NAME: &'static str = $text;
            type Ask<'a> = Site<'a>;
            type Answer = Expr;

            fn ask(question: Question<'_>) -> Result<Site<'_>> {
                question.site()
            }

            fn reply(_: &mut Site<'_>, answer: Expr) -> Result<Reply> {
                Ok(Reply::of(answer))
            }
        }

        impl Rewrites for $name {}
    )*};
}

rewrites! {
    /// `simplify`: something cheaper or plainer that is the same to the last bit.
    Simplify = "simplify";
    /// `approximate`: something cheaper that differs in the last places, or at infinities and zeros with a sign.
    Approximate = "approximate";
    /// `canonicalize`: a special operator's call by plain operators, of which more is known.
    Canonicalize = "canonicalize";
    /// `decompose.inference`: a call that means less once training is over, as the arithmetic that is left of it.
    DecomposeForInference = "decompose.inference";
    /// `decompose.training`: a call as the arithmetic that training does.
    DecomposeForTraining = "decompose.training";
    /// `view`: a call that computes nothing and needs no tensor program, as what it is then: a `reshape`, or the call itself.
    AsView = "view";
}

impl<F: Rewrites> Rules<F> {
    /// What takes the place of `call`, a call of operator `op`, where a rule knows something.
    pub fn rewritten(&mut self, rw: &mut Rewriter, op: Symbol, call: Expr) -> Result<Option<Expr>> {
        let reply = self.ask(rw, op, &[call], Term::default()).map_err(|error| error.at(call))?;
        match reply.as_ref().map(|reply| reply.nodes.as_slice()) {
            None => Ok(None),
            Some(&[new]) if new.index() < crate::ir::Build::body(rw).len() => Ok(Some(new)),
            Some(_) => {
                let text = format!("a rule of `{}` answers what is no node", F::NAME);
                Err(PassError::new(text).at(call))
            }
        }
    }
}
