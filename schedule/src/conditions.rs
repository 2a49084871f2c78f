//! Where the conditions of choices hold.
//!
//! ```ir
//! for %i in 0..64 { for %r in 0..3 {
//!   select(%i + %r - 1 >= 0 && %i + %r - 1 < 64, %x[…], 0.0) } }       from step 1 of %i on, for 62 steps
//! ```

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use tenon_plugin_api::ir::{Expr, View};

use crate::index::{AtomId, Space, Sum};
use crate::schedule::{Loop, Schedule};
use crate::tree::{Id, Node};

impl Schedule {
    /// The first step of a loop, and the one behind the last, between which the conditions of the choices inside it hold whatever
    /// the steps of other loops, as far as they are comparisons that the loop decides with integers. None where there is no such
    /// condition, or the extent of the loop is not known.
    pub fn interior(&self, each: Loop) -> Option<[i64; 2]> {
        let mut space = self.space();
        let node = self.tree.as_for(each.0)?;
        let var = space.node(node.var).as_atom()?;
        let mut inside: Option<[i64; 2]> = None;
        for slack in self.choices(&mut space, each.0) {
            let whole = [0, self.extent(each)?];
            let Some(bound) = Bound::of(&space, &slack, var) else { continue };
            let [first, end] = inside.unwrap_or(whole);
            inside = Some(match bound {
                Bound::From(least) => [first.max(least), end],
                Bound::To(greatest) => [first, end.min(greatest.saturating_add(1))],
            });
        }
        inside.filter(|[first, end]| first < end)
    }

    /// What is at least zero where the conditions of the choices below a statement hold, in terms of loops.
    fn choices(&self, space: &mut Space, root: Id) -> Vec<Sum> {
        let mut bound: HashMap<AtomId, Sum> = HashMap::default();
        let mut slacks = Vec::new();
        for id in self.tree.walk(root) {
            match self.tree.get(id) {
                Node::Block(block) => {
                    for iter in &block.iters {
                        let binding = space.read(self.body(), iter.binding);
                        let binding = space.substitute(&binding, &bound);
                        bound.extend(space.node(iter.var).as_atom().map(|var| (var, binding)));
                    }
                }
                Node::Store { value, .. } | Node::Let { value, .. } => {
                    for part in self.conditions(*value) {
                        let Some(slack) = self.slack(space, part) else { continue };
                        slacks.push(space.substitute(&slack, &bound));
                    }
                }
                _ => {}
            }
        }
        slacks
    }

    /// The parts of the conditions of the choices that a value is made by.
    fn conditions(&self, value: Expr) -> Vec<Expr> {
        let (mut seen, mut stack) = (HashSet::default(), vec![value]);
        let mut parts = Vec::new();
        while let Some(expr) = stack.pop() {
            if !seen.insert(expr) {
                continue;
            }
            match self.view(expr) {
                View::Load { .. } => continue,
                View::Select { cond, .. } => parts.extend(self.conjuncts(cond)),
                _ => {}
            }
            stack.extend(self.body().operands(expr).iter());
        }
        parts
    }
}

/// The values of a variable with which a condition holds.
enum Bound {
    From(i64),
    To(i64),
}

impl Bound {
    /// From `slack >= 0`.
    fn of(space: &Space, slack: &Sum, var: AtomId) -> Option<Self> {
        let (factor, rest) = slack.linear_in(var)?;
        let factor = factor.value().filter(|&factor| factor != 0)?;
        if space.holds(&rest, var) {
            return None;
        }
        let low = space.lowest(&rest)?.value()?;
        Some(match factor > 0 {
            true => Self::From(-low.div_euclid(factor)),
            false => Self::To(low.div_euclid(-factor)),
        })
    }
}
