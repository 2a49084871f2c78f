//! The facet `schedule`: how a tensor program runs.
//!
//! A question is a program and its target; the key is the operator that it computes, its attribute `op_name`, and then `any`, for
//! any program. A rule applies primitives; its answer is the trace of what it applied. A rule that meets a refusal, or applies
//! nothing, does not match, and the next one is asked.

use tenon_plugin_api::abi::host::Host;
use tenon_plugin_api::ir::{Attrs, AttrsView, Context, Symbol, Term, TermView};
use tenon_plugin_api::pass::{PassError, Rewriter};
use tenon_plugin_api::rule::{Facet, Question, Reply, Rules};

use crate::refusal;
use crate::schedule::Schedule;
use crate::trace::Script;

/// The facet.
pub struct OfProgram;

/// The key of rules for any program.
const ANY: &str = "any";

/// What a rule is asked: how a program is to run.
pub struct Task {
    /// The program, to be scheduled.
    pub schedule: Schedule,
    cx: Host,
    target: Attrs,
}

impl Task {
    /// What the program is for: `kind`, `vector_bits`, `vector_registers`, `threads`.
    pub fn target(&self) -> AttrsView<'_> {
        self.cx.terms().attrs(self.target)
    }

    /// The target's number of threads.
    pub fn threads(&self) -> i64 {
        self.target().int("threads").unwrap_or(1).max(1)
    }

    /// How many elements of 32 bits a vector of the target holds.
    pub fn lanes(&self) -> i64 {
        (self.target().int("vector_bits").unwrap_or(128) / 32).max(1)
    }
}

impl Facet for OfProgram {
    const NAME: &'static str = "schedule";
    type Ask<'a> = Task;
    type Answer = refusal::Result<()>;

    fn ask(question: Question<'_>) -> Result<Task, PassError> {
        let schedule = Schedule::of(&question.copy_of_program()?)?;
        let cx = question.context().clone();
        Ok(Task { schedule, cx, target: Attrs(question.data().0) })
    }

    fn reply(ask: &mut Task, _: refusal::Result<()>) -> Result<Reply, PassError> {
        let trace = ask.schedule.trace().to_string();
        Ok(Reply { nodes: Vec::new(), data: ask.cx.symbol(&trace).into() })
    }

    fn reply_or_decline(
        ask: &mut Task,
        answer: refusal::Result<()>,
    ) -> Result<Option<Reply>, PassError> {
        if answer.is_err() || !ask.schedule.has_changed() {
            return Ok(None);
        }
        Self::reply(ask, answer).map(Some)
    }
}

/// The trace of the best rule for the program that `rw` edits, which computes the operator `op`, on a target.
///
/// # Errors
/// When a rule fails, or two rules for one key come first.
pub fn ask(
    rules: &mut Rules<OfProgram>,
    rw: &mut Rewriter,
    op: Option<Symbol>,
    target: Attrs,
) -> Result<Option<Script>, PassError> {
    use tenon_plugin_api::ir::Build;
    let any = rw.with_cx(|cx| cx.symbol(ANY));
    for key in op.into_iter().chain([any]) {
        let Some(reply) = rules.ask(rw, key, &[], Term(target.0))? else { continue };
        let TermView::Str(text) = rw.body().terms().view(reply.data) else {
            return Err(PassError::new("a rule of `schedule` answers what is no trace"));
        };
        let script = text.parse();
        return script.map(Some).map_err(|error| {
            PassError::new(format!("a rule of `schedule` answers what is no trace: {error}"))
        });
    }
    Ok(None)
}
