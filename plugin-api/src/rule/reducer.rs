//! The facet `reducer`: how two states of a reduction become one.
//!
//! ```text
//! argmax:  (best, place), (best', place')  =>  (best', place') where that is better, or as good and comes before; else (best, place)
//! ```
//!
//! A reduction may keep several numbers, as the best value and its place do, or a mean and how far values lie from it. Its block says how by
//! its attribute `reducer`, and writes a buffer for each of them. How a step changes the state stands in the block; that is not
//! how two states are joined, which a schedule needs to reduce over parts first.
//!
//! The key is the name of the reducer. The question are the numbers of two states, in the order in which the block's initial statement writes
//! them; the answer is the state of nothing, from which the block starts, and what both states are together. Joining is associative, and
//! commutative.

use std::cell::RefCell;

use crate::abi::host::TransactionHandle;
use crate::ir::{Build, Context, Expr, Term};
use crate::pass::{PassError, Result, Rewriter};
use crate::program::{Program, Scalar};

use super::{Facet, Question, Reply, Rules};

/// Attribute of a block: the reducer that joins what it reduces to.
pub const REDUCER: &str = "reducer";

/// The facet.
pub struct Reducers;

/// Two states that are to be joined.
pub struct Joining {
    program: Program,
    states: [Vec<Expr>; 2],
    answer: RefCell<Vec<Expr>>,
}

impl Joining {
    pub(crate) fn new(
        transaction: TransactionHandle,
        name: &'static str,
        nodes: &[Expr],
    ) -> Result<Self> {
        let (a, b) = nodes.split_at(nodes.len() / 2);
        if a.len() != b.len() {
            return Err(PassError::new("a question of `reducer` has two states of one size"));
        }
        let program = Program::without_call(transaction, name);
        Ok(Self { program, states: [a.to_vec(), b.to_vec()], answer: RefCell::default() })
    }

    /// The numbers of both states.
    ///
    /// # Errors
    /// When they are not `N`: the block has another state than the reducer.
    pub fn states<const N: usize>(&self) -> Result<[[Scalar<'_>; N]; 2]> {
        let found = self.states[0].len();
        if found != N {
            let text = format!("it has a state of {N} numbers, and the block one of {found}");
            return Err(PassError::new(text));
        }
        let state = |state: &[Expr]| std::array::from_fn(|at| self.program.scalar(|_| state[at]));
        Ok([state(&self.states[0]), state(&self.states[1])])
    }

    /// The program that they are part of, for numbers.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Says what the state of nothing is, and what both states are together.
    pub fn answer<const N: usize>(&self, identity: [Scalar<'_>; N], joined: [Scalar<'_>; N]) {
        let all = identity.iter().chain(&joined).map(|scalar| scalar.expr());
        *self.answer.borrow_mut() = all.collect();
    }
}

impl Facet for Reducers {
    const NAME: &'static str = "reducer";
    type Ask<'a> = Joining;
    type Answer = ();

    fn ask(question: Question<'_>) -> Result<Joining> {
        question.joining()
    }

    fn reply(ask: &mut Joining, (): ()) -> Result<Reply> {
        Ok(Reply { nodes: ask.answer.take(), data: Term::default() })
    }
}

/// What a reducer makes of two states.
pub struct Joined {
    /// The state of nothing.
    pub identity: Vec<Expr>,
    /// What both are together.
    pub joined: Vec<Expr>,
}

impl Joined {
    /// Asks the reducer of a name, where a plugin has one.
    ///
    /// # Errors
    /// When it does not take such states, two of this name come first, or the pass that looks for it does not say that it asks for rules of
    /// the facet `reducer`.
    pub fn of(rw: &mut Rewriter, name: &str, states: [&[Expr]; 2]) -> Result<Option<Self>> {
        let mut rules = Rules::<Reducers>::new(&rw.cx());
        let key = rw.with_cx(|cx| cx.symbol(name));
        let Some(reply) = rules.ask(rw, key, &states.concat(), Term::default())? else {
            return Ok(None);
        };
        let count = states[0].len();
        if reply.nodes.len() != 2 * count {
            return Err(PassError::new(format!(
                "the reducer `{name}` does not say what a state is joined to"
            )));
        }
        let (identity, joined) = reply.nodes.split_at(count);
        Ok(Some(Self { identity: identity.to_vec(), joined: joined.to_vec() }))
    }
}
