//! Orders bindings so that less memory is alive at a time.
//!
//! ```ir
//! %a = broadcast_to(%x, shape(64, 64))       %a = broadcast_to(%x, shape(64, 64))
//! %b = broadcast_to(%y, shape(64, 64))       %c = sum(%a)
//! %c = sum(%a)                          =>   %b = broadcast_to(%y, shape(64, 64))
//! %d = sum(%b)                               %d = sum(%b)
//! ```
//!
//! List scheduling: of the bindings whose operands are there, the one comes next that adds least to what is
//! alive, counting what it is the last to read; of equals, the one that came first. Only pure bindings that follow
//! each other in one block change places; what has effects, a choice or a closure stays where it is, and nothing
//! moves across it. The new order is taken when its peak is lower. It takes `n log n` steps.

use std::collections::BTreeSet;
use std::collections::HashMap;

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

use crate::graph_memory::{GraphRoles, Usage, is_pure};
use crate::lifetimes::Operands;

/// Orders bindings so that less memory is alive at a time.
#[pass(
    name = "raf.MemorySchedule",
    aliases = ["raf.pass_.MemorySchedule"],
    opt_level = 1,
    phase = "optimize",
    requires = ["relax.Normalize"],
    idempotent = false
)]
fn memory_schedule(func: Function, module: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let Some(block) = func.result() else { return Ok(func) };
    let View::Let(bindings) = body.view(block) else { return Ok(func) };
    let before = Usage::of(body, bindings, module);
    let values = Values::of(body, bindings, module, &before);
    let mut rw = func.edit();
    let mut list = LetList::new();
    for part in bindings.blocks() {
        let end = part.first + part.len;
        let mut first = part.first;
        while first < end {
            let may_move = |&at: &usize| is_pure(body, bindings.binding(at).1, cx);
            let len = (first..end).take_while(may_move).count().max(1);
            for at in values.order(first..first + len) {
                let (var, value) = bindings.binding(at);
                list.bind(part.is_dataflow, var, value);
            }
            first += len;
        }
    }
    let is_same = list.iter().map(|(_, var, _)| var).eq(bindings.bindings().map(|(var, _)| var));
    if is_same {
        return Ok(func);
    }
    let new = list.finish(&mut rw, bindings.result());
    let View::Let(scheduled) = rw.view(new) else { return Ok(func) };
    if Usage::of(rw.body(), scheduled, module).peak >= before.peak {
        return Ok(func);
    }
    rw.set_type(new, body.ty(block));
    rw.replace(block, new);
    rw.finish()
}

/// What bindings read, and whose memory that is.
struct Values {
    /// For each binding, the bindings that it reads.
    reads: Vec<Vec<usize>>,
    /// For each binding, whose memory it touches besides its own.
    touches: Vec<Vec<usize>>,
    /// For each binding, how often its memory is touched; more often than that when it is seen outside.
    touched: Vec<usize>,
    bytes: Vec<u64>,
}

impl Values {
    fn of(body: BodyView<'_>, bindings: LetView<'_>, module: &Module, usage: &Usage) -> Self {
        let count = bindings.len();
        let mut roles = GraphRoles::new(body, module);
        let number: HashMap<Expr, usize> =
            bindings.bindings().enumerate().map(|(at, (var, _))| (var, at)).collect();
        let mut values = Self {
            reads: Vec::with_capacity(count),
            touches: Vec::with_capacity(count),
            touched: vec![0; count],
            bytes: usage.bytes.clone(),
        };
        // For each binding, whose memory it stands for; none for what stands for several.
        let mut owner: Vec<Option<usize>> = Vec::with_capacity(count);
        let mut seen = vec![0; body.len()];
        for (at, (_, value)) in bindings.bindings().enumerate() {
            let reads = reads(body, value, &number, &mut seen, at + 1);
            let role = roles.of(value);
            let mut touches: Vec<usize> = reads.iter().filter_map(|&read| owner[read]).collect();
            touches.sort_unstable();
            touches.dedup();
            touches.iter().for_each(|&owner| values.touched[owner] += 1);
            owner.push(match (role.operands, touches.as_slice()) {
                (Operands::Alias, &[only]) if body.kind(value) != Kind::TUPLE => Some(only),
                (Operands::Alias, _) => None,
                _ => Some(at),
            });
            if owner[at].is_none() {
                // What stands for several keeps them: nobody is the last to touch them.
                touches.iter().for_each(|&owner| values.touched[owner] += count);
            }
            values.reads.push(reads);
            values.touches.push(touches);
        }
        for made in usage.made.iter().filter(|made| made.death.is_none()) {
            values.touched[made.birth] += count;
        }
        values
    }

    /// A good order of bindings that follow each other and may change places.
    fn order(&self, range: std::ops::Range<usize>) -> Vec<usize> {
        if range.len() < 3 {
            return range.collect();
        }
        let start = range.start;
        let mut waiting_for = vec![0usize; range.len()];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); range.len()];
        // For memory touched in the range: how often still, and the exclusive or of those who do.
        let mut left: HashMap<usize, (usize, usize)> = HashMap::new();
        for at in range.clone() {
            for &read in self.reads[at].iter().filter(|&&read| read >= start) {
                waiting_for[at - start] += 1;
                readers[read - start].push(at);
            }
            for &owner in &self.touches[at] {
                let (count, who) = left.entry(owner).or_default();
                *count += 1;
                *who ^= at;
            }
        }
        // What bindings outside of the range touch is not freed in it.
        left.retain(|&owner, (count, _)| *count == self.touched[owner]);
        let mut cost: Vec<i128> = range.clone().map(|at| self.bytes[at] as i128).collect();
        for (&owner, &(count, who)) in &left {
            if count == 1 {
                cost[who - start] -= self.bytes[owner] as i128;
            }
        }
        let mut ready: BTreeSet<(i128, usize)> = range
            .clone()
            .filter(|&at| waiting_for[at - start] == 0)
            .map(|at| (cost[at - start], at))
            .collect();
        let mut order = Vec::with_capacity(range.len());
        while let Some((_, at)) = ready.pop_first() {
            order.push(at);
            for owner in &self.touches[at] {
                let Some((count, who)) = left.get_mut(owner) else { continue };
                *count -= 1;
                *who ^= at;
                if *count == 1 {
                    let (last, freed) = (*who, self.bytes[*owner] as i128);
                    let is_ready = ready.remove(&(cost[last - start], last));
                    cost[last - start] -= freed;
                    if is_ready {
                        ready.insert((cost[last - start], last));
                    }
                }
            }
            for &reader in &readers[at - start] {
                waiting_for[reader - start] -= 1;
                if waiting_for[reader - start] == 0 {
                    ready.insert((cost[reader - start], reader));
                }
            }
        }
        order
    }
}

/// The bindings that a value reads, through tuples and branches, each once. What was seen carries `mark`.
fn reads(
    body: BodyView<'_>,
    value: Expr,
    number: &HashMap<Expr, usize>,
    seen: &mut [usize],
    mark: usize,
) -> Vec<usize> {
    let mut found = Vec::new();
    let mut pending = vec![value];
    while let Some(expr) = pending.pop() {
        if std::mem::replace(&mut seen[expr.index()], mark) == mark {
            continue;
        }
        match number.get(&expr) {
            Some(&at) => found.push(at),
            None => pending.extend(body.operands(expr).iter()),
        }
    }
    found.sort_unstable();
    found
}
