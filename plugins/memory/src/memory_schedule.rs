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

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

use crate::graph_memory::{GraphRoles, Usage, is_plain};
use crate::lifetimes::Operands;

/// Orders bindings so that less memory is alive at a time.
#[pass(
    name = "raf.MemorySchedule",
    aliases = ["raf.pass_.MemorySchedule"],
    opt_level = 1,
    phase = "optimize",
    until = "builtin",
    requires = ["relax.Normalize"],
    idempotent = false
)]
fn memory_schedule(func: Function, module: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let Some(block) = func.result() else { return Ok(func) };
    let View::Let(bindings) = body.view(block) else { return Ok(func) };
    let before = Usage::of(body, block, bindings, module);
    let values = Values::of(body, bindings, module, &before);
    let mut state =
        State { left: vec![(0, 0); bindings.len()], is_freed: vec![false; bindings.len()] };
    let effects = Effects::of(&func, cx);
    let mut rw = func.edit();
    let mut list = LetList::new();
    for part in bindings.blocks() {
        let end = part.first + part.len;
        let mut first = part.first;
        while first < end {
            let may_move = |&at: &usize| is_plain(body, bindings.binding(at).1, &effects);
            let len = (first..end).take_while(may_move).count().max(1);
            for at in values.order(first..first + len, &mut state) {
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
    if Usage::of(rw.body(), new, scheduled, module).peak >= before.peak {
        return Ok(func);
    }
    rw.set_type(new, body.ty(block));
    rw.replace(block, new);
    rw.finish()
}

/// What bindings read, and whose memory that is.
struct Values {
    /// For each binding, the bindings that it reads.
    reads: Lists,
    /// For each binding, whose memory it touches besides its own.
    touches: Lists,
    /// For each binding, how often its memory is touched; more often than that when it is seen outside.
    touched: Vec<u64>,
    bytes: Vec<u64>,
}

/// Many lists in one vector.
struct Lists {
    ends: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    fn of(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.items[start..self.ends[index] as usize]
    }

    fn push(&mut self, items: &[u32]) {
        self.items.extend_from_slice(items);
        self.ends.push(self.items.len() as u32);
    }
}

/// No binding.
const NONE: u32 = u32::MAX;

impl Values {
    fn of(body: BodyView<'_>, bindings: LetView<'_>, module: &Module, usage: &Usage) -> Self {
        let count = bindings.len();
        let mut roles = GraphRoles::new(body, module);
        let mut number = SideTable::new(body, NONE);
        for (at, (var, _)) in bindings.bindings().enumerate() {
            number[var] = at as u32;
        }
        let lists =
            || Lists { ends: Vec::with_capacity(count), items: Vec::with_capacity(2 * count) };
        let mut values = Self {
            reads: lists(),
            touches: lists(),
            touched: vec![0; count],
            bytes: usage.bytes.clone(),
        };
        // For each binding, whose memory it stands for; none for what stands for several.
        let mut owner: Vec<u32> = Vec::with_capacity(count);
        let mut seen = SideTable::new(body, NONE);
        let (mut reads, mut touches, mut pending) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (_, value)) in bindings.bindings().enumerate() {
            reads.clear();
            pending.push(value);
            // Through tuples and branches; each node is looked at once for each binding.
            while let Some(expr) = pending.pop() {
                if std::mem::replace(&mut seen[expr], at as u32) == at as u32 {
                    continue;
                }
                match number[expr] {
                    NONE => pending.extend(body.operands(expr).iter()),
                    read => reads.push(read),
                }
            }
            touches.clear();
            touches.extend(reads.iter().map(|&read| owner[read as usize]).filter(|&of| of != NONE));
            touches.sort_unstable();
            touches.dedup();
            touches.iter().for_each(|&of| values.touched[of as usize] += 1);
            owner.push(match (roles.of(value).operands, touches.as_slice()) {
                (Operands::Alias, &[only]) if body.kind(value) != Kind::TUPLE => only,
                (Operands::Alias, _) => NONE,
                _ => at as u32,
            });
            if owner[at] == NONE {
                // What stands for several keeps them: nobody is the last to touch them.
                touches.iter().for_each(|&of| values.touched[of as usize] += count as u64);
            }
            values.reads.push(&reads);
            values.touches.push(&touches);
        }
        for made in usage.made.iter().filter(|made| made.death.is_none()) {
            values.touched[made.birth] += count as u64;
        }
        values
    }

    /// A good order of bindings that follow each other and may change places.
    fn order(&self, range: std::ops::Range<usize>, state: &mut State) -> Vec<usize> {
        if range.len() < 3 {
            return range.collect();
        }
        let start = range.start;
        let mut cost: Vec<i128> = range.clone().map(|at| self.bytes[at] as i128).collect();
        let mut waiting_for = vec![0u32; range.len()];
        let mut readers = vec![0u32; range.len() + 1];
        for at in range.clone() {
            for &read in self.reads.of(at).iter().filter(|&&read| read as usize >= start) {
                waiting_for[at - start] += 1;
                readers[read as usize - start + 1] += 1;
            }
            for &of in self.touches.of(at) {
                let (count, who) = &mut state.left[of as usize];
                *count += 1;
                *who ^= at as u32;
            }
        }
        (1..readers.len()).for_each(|at| readers[at] += readers[at - 1]);
        let mut read_by = vec![0u32; readers[range.len()] as usize];
        let mut next = readers.clone();
        for at in range.clone() {
            for &read in self.reads.of(at).iter().filter(|&&read| read as usize >= start) {
                let place = &mut next[read as usize - start];
                read_by[*place as usize] = at as u32;
                *place += 1;
            }
        }
        let touched = || range.clone().flat_map(|at| self.touches.of(at)).map(|&of| of as usize);
        for of in touched() {
            let (count, who) = state.left[of];
            if count == 1 && self.touched[of] == 1 {
                cost[who as usize - start] -= self.bytes[of] as i128;
            }
        }
        // What bindings outside of the range touch is not freed in it.
        let is_freed = |left: &[(u32, u32)], of: usize| left[of].0 as u64 == self.touched[of];
        let freed: Vec<bool> = touched().map(|of| is_freed(&state.left, of)).collect();
        for (of, is_freed) in touched().zip(freed) {
            state.is_freed[of] = is_freed;
        }
        let mut ready: BTreeSet<(i128, usize)> = range
            .clone()
            .filter(|&at| waiting_for[at - start] == 0)
            .map(|at| (cost[at - start], at))
            .collect();
        let mut order = Vec::with_capacity(range.len());
        while let Some((_, at)) = ready.pop_first() {
            order.push(at);
            for &of in self.touches.of(at) {
                let (count, who) = &mut state.left[of as usize];
                *count -= 1;
                *who ^= at as u32;
                if *count == 1 && state.is_freed[of as usize] {
                    let last = *who as usize;
                    let is_ready = ready.remove(&(cost[last - start], last));
                    cost[last - start] -= self.bytes[of as usize] as i128;
                    if is_ready {
                        ready.insert((cost[last - start], last));
                    }
                }
            }
            let readers = readers[at - start] as usize..readers[at - start + 1] as usize;
            for &reader in &read_by[readers] {
                let reader = reader as usize;
                waiting_for[reader - start] -= 1;
                if waiting_for[reader - start] == 0 {
                    ready.insert((cost[reader - start], reader));
                }
            }
        }
        order
    }
}

/// For memory touched in a range: by how many that are still to come, and the exclusive or of those. It is as it was,
/// all zero, when the range is done.
struct State {
    left: Vec<(u32, u32)>,
    /// Whether nobody outside of the range touches it.
    is_freed: Vec<bool>,
}
