//! The facet `precision`: whether a call gains or loses by being computed in a narrow element type.
//!
//! A question is a call, an answer a [`Precision`]. An operator without a rule is computed in the element type that it has.

use crate::ir::{Context, Expr, Symbol, Term};
use crate::pass::{PassError, Result, Rewriter};

use super::{Facet, Question, Reply, Rules, Site};

/// The facet.
pub struct NarrowPrecision;

/// When a call is computed in a narrow element type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precision {
    /// With whatever arguments: it reads much for each element that it writes.
    Always {
        /// The attribute that gives the element type of the result, where that can be wider than the arguments': then sums are
        /// kept in it.
        sums: Option<String>,
    },
    /// When its arguments are narrow: it neither sums nor grows.
    Follow,
    /// Not at all: it sums many elements, is steep, or grows beyond the range of f16.
    Never,
}

impl Precision {
    const ALWAYS: i64 = 1;
    const FOLLOW: i64 = 2;
    const NEVER: i64 = 3;
}

impl Facet for NarrowPrecision {
    const NAME: &'static str = "precision";
    type Ask<'a> = Site<'a>;
    type Answer = Precision;

    fn ask(question: Question<'_>) -> Result<Site<'_>> {
        question.site()
    }

    fn reply(ask: &mut Site<'_>, answer: Precision) -> Result<Reply> {
        let cx = crate::ir::Build::cx(ask);
        let (code, sums) = match &answer {
            Precision::Always { sums } => (Precision::ALWAYS, sums.as_deref().unwrap_or("")),
            Precision::Follow => (Precision::FOLLOW, ""),
            Precision::Never => (Precision::NEVER, ""),
        };
        let data = cx.list(&[cx.int(code), cx.symbol(sums).into()]);
        Ok(Reply { nodes: Vec::new(), data })
    }
}

impl Rules<NarrowPrecision> {
    /// When `call`, a call of operator `op`, is computed narrow, where a rule says so.
    pub fn precision(
        &mut self,
        rw: &mut Rewriter,
        op: Symbol,
        call: Expr,
    ) -> Result<Option<Precision>> {
        let reply = self.ask(rw, op, &[call], Term::default()).map_err(|error| error.at(call))?;
        let Some(reply) = reply else { return Ok(None) };
        let terms = crate::pass::Calls::terms(rw);
        let &[code, sums] = terms.children(reply.data) else {
            return Err(PassError::new("a rule of `precision` answers what is no list").at(call));
        };
        let sums = terms.str(sums);
        Ok(Some(match terms.view(code) {
            crate::ir::TermView::Int(Precision::ALWAYS) => {
                Precision::Always { sums: (!sums.is_empty()).then(|| sums.to_owned()) }
            }
            crate::ir::TermView::Int(Precision::FOLLOW) => Precision::Follow,
            _ => Precision::Never,
        }))
    }
}
