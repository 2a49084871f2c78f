//! Functions that call themselves, directly or over others.
//!
//! ```ir
//! fn @sum(%x: f32[4], %left: i64[]) -> f32[4] { max_depth = 100 } {
//!   …
//!   %r: f32[4] = if %goes_on { %s: f32[4] = @sum(%y, %less) … }          a circle of one
//! ```
//!
//! How deep calls go is not known before, so a circle has a depth: as many calls of its functions may be in work at once, and whoever
//! calls into it brings memory for as many as large as the first, or the largest that this calls of the circle. A call that would go deeper, or needs more than is left, is an error
//! of the call that was made from outside.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::{PlanProblem, Shared, Step};
use tenon_ir::{Function, Module, Symbol};

/// The attribute of a function that says how many calls of its circle may be in work at once.
const MAX_DEPTH: &str = "max_depth";
/// How many there are where no function of a circle says it.
const DEFAULT_DEPTH: i64 = 64;
/// Each of them takes a part of the stack of the thread that calls.
const LARGEST_DEPTH: i64 = 1024;

/// Functions that call each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circle {
    /// It has a number of its own.
    pub number: usize,
    /// How many calls of its functions may be in work at once.
    pub depth: i64,
}

/// Graph functions that are planned together.
pub(super) struct Needed {
    pub(super) members: Vec<Symbol>,
    /// Whether they call each other, or the one itself.
    pub(super) is_circle: bool,
}

/// The graph functions that a function needs, but for those that are planned, callees first; itself only if it is called again.
/// These are the strongly connected components of the calls (R. Tarjan, "Depth-first search and linear graph algorithms", 1972), with
/// a stack of its own in the place of recursion.
pub(super) fn needed(module: &Module, root: Symbol, planned: &Shared) -> Vec<Needed> {
    let is_graph = |name: &Symbol| {
        let is_new = !planned.routine_numbers.contains_key(name);
        is_new && module.get(*name).is_some_and(|function| !function.is_prim())
    };
    let named = |name: Symbol| -> Vec<Symbol> {
        let function = module.get(name).map(|function| function.view());
        let globals = function.into_iter().flat_map(|body| body.globals().collect::<Vec<_>>());
        globals.map(|(_, name)| name).filter(is_graph).collect()
    };
    let mut search = Search::default();
    let mut path = vec![(search.open(root), named(root))];
    while let Some((at, callees)) = path.last_mut() {
        let at = *at;
        match callees.pop() {
            Some(callee) => match search.numbers.get(&callee) {
                None => path.push((search.open(callee), named(callee))),
                Some(&other) => search.meets(at, other),
            },
            None => {
                path.pop();
                if let Some((before, _)) = path.last() {
                    search.seen[*before].low = search.seen[*before].low.min(search.seen[at].low);
                }
                search.close(at);
            }
        }
    }
    search.found.retain(|needed| needed.is_circle || needed.members != [root]);
    search.found
}

/// A function that was reached, by its number.
struct Seen {
    name: Symbol,
    /// The first that is known to be in a circle with it.
    low: usize,
    is_open: bool,
    calls_itself: bool,
}

#[derive(Default)]
struct Search {
    numbers: HashMap<Symbol, usize, FxBuildHasher>,
    seen: Vec<Seen>,
    open: Vec<usize>,
    found: Vec<Needed>,
}

impl Search {
    fn open(&mut self, name: Symbol) -> usize {
        let at = self.seen.len();
        self.numbers.insert(name, at);
        self.seen.push(Seen { name, low: at, is_open: true, calls_itself: false });
        self.open.push(at);
        at
    }

    /// Notes a call of a function that was reached before.
    fn meets(&mut self, at: usize, other: usize) {
        self.seen[at].calls_itself |= at == other;
        if self.seen[other].is_open {
            self.seen[at].low = self.seen[at].low.min(other);
        }
    }

    /// Ends a function, and its circle where that began with it.
    fn close(&mut self, at: usize) {
        if self.seen[at].low != at {
            return;
        }
        let first = self.open.iter().rposition(|&other| other == at).unwrap_or(0);
        let circle = self.open.split_off(first);
        let is_circle = circle.len() > 1 || self.seen[at].calls_itself;
        circle.iter().for_each(|&member| self.seen[member].is_open = false);
        let members = circle.into_iter().rev().map(|member| self.seen[member].name).collect();
        self.found.push(Needed { members, is_circle });
    }
}

/// How deep calls of some functions may go: as deep as the one that says most.
pub(super) fn depth_of<'m>(functions: impl Iterator<Item = &'m Function>) -> Step<i64> {
    let mut most = None;
    for function in functions {
        let body = function.view();
        let attrs = body.terms().attrs(body.attrs(body.root()));
        if attrs.get(MAX_DEPTH).is_none() {
            continue;
        }
        match attrs.int(MAX_DEPTH).filter(|depth| (1..=LARGEST_DEPTH).contains(depth)) {
            Some(depth) => most = most.max(Some(depth)),
            None => {
                let what = format!("a `{MAX_DEPTH}` that is no number from 1 to {LARGEST_DEPTH}");
                let help =
                    "it says how many calls of a function that calls itself may be in work at once";
                return Err(PlanProblem::Unsupported { what, help });
            }
        }
    }
    Ok(most.unwrap_or(DEFAULT_DEPTH))
}
