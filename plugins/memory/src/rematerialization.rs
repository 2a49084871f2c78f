//! Computes values again rather than keeping them, so that a function stays within a budget of memory.
//!
//! ```ir
//! %a = broadcast_to(%x, shape(1024))         %a = broadcast_to(%x, shape(1024))
//! %b = sum(%a)                               %b = sum(%a)
//! %c = broadcast_to(%b, shape(1024))    =>   %c = broadcast_to(%b, shape(1024))
//! %d = sum(%c)                               %d = sum(%c)
//! %e = mean(%a)                              %a_1 = broadcast_to(%x, shape(1024))
//! ret (%d, %e)                               %e = mean(%a_1)
//!                                            ret (%d, %e)
//! ```
//!
//! One sweep, as a cache that knows the future. While more than `memory_budget` bytes are alive, of the values that
//! are kept for later the one that is read last is let go (L. A. Belady, "A study of replacement algorithms for a
//! virtual-storage computer", 1966), and is computed anew just before that. A value may go when it is cheap, an
//! element-wise, broadcasting or injective operator, when nothing but calls reads it, and when what it is computed
//! from is alive at that time anyway. So every computation is repeated from what is there, and nothing that has
//! effects, or reads memory that somebody writes, is touched. The function stays as it was when that needs no less
//! memory; when it needs more than the budget still, the pass warns.

use std::collections::{BinaryHeap, HashMap};

use tenon_plugin_api::ir::LetView;
use tenon_plugin_api::prelude::*;

use crate::graph_memory::{GraphRoles, Usage, is_plain};
use crate::lifetimes::Operands;

/// Computes values again rather than keeping them, so that a function stays within a budget of memory.
#[pass(
    name = "raf.Rematerialization",
    aliases = ["raf.pass_.Rematerialization"],
    opt_level = 1,
    phase = "optimize",
    until = "builtin",
    requires = ["relax.Normalize"],
    after = ["raf.MemorySchedule"],
    idempotent = false
)]
fn rematerialization(
    func: Function,
    module: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let budget = options.memory_budget;
    if budget == 0 {
        return Ok(func);
    }
    let body = func.view();
    let Some(block) = func.result() else { return Ok(func) };
    let View::Let(bindings) = body.view(block) else { return Ok(func) };
    let before = Usage::of(body, block, bindings, module);
    if before.peak <= budget {
        return Ok(func);
    }
    let values = Values::of(&func, bindings, module, &before, cx);
    let again = Sweep::new(&values, budget).run();
    let mut rw = func.edit();
    rewrite(&mut rw, block, &values, &again)?;
    let new = rw.body().resolve(block);
    let View::Let(changed) = rw.view(new) else { return Ok(func) };
    let after = Usage::of(rw.body(), new, changed, module).peak;
    if after.min(before.peak) > budget {
        let least = after.min(before.peak);
        cx.warn(&format!("{least} bytes are alive at a time, and the budget is {budget}"));
    }
    match after < before.peak {
        true => rw.finish(),
        false => Ok(func),
    }
}

#[derive(Options)]
struct Options {
    /// bytes that may be alive at a time; 0 is no limit
    #[option(default = 0)]
    memory_budget: u64,
}

/// What is known of the value of a binding.
struct Value {
    bytes: u64,
    /// The last binding that may touch it; none when it is seen outside.
    death: Option<usize>,
    /// The bindings whose memory it reads.
    reads: Vec<usize>,
    /// The bindings that read it.
    readers: Vec<usize>,
    /// Whether it is cheap, and only calls read it.
    may_go: bool,
}

struct Values {
    all: Vec<Value>,
}

impl Values {
    fn of(
        func: &Function,
        bindings: LetView<'_>,
        module: &Module,
        usage: &Usage,
        cx: &PassContext,
    ) -> Self {
        let (body, effects) = (func.view(), Effects::of(func, cx));
        let number: HashMap<Expr, usize> =
            bindings.bindings().enumerate().map(|(at, (var, _))| (var, at)).collect();
        let mut roles = GraphRoles::new(body, module);
        let mut all: Vec<Value> = Vec::with_capacity(bindings.len());
        for (at, (_, value)) in bindings.bindings().enumerate() {
            let role = roles.of(value);
            let is_call = body.kind(value) == Kind::CALL && role.operands == Operands::Use;
            let mut reads: Vec<usize> =
                body.operands(value).iter().filter_map(|arg| number.get(&arg).copied()).collect();
            reads.sort_unstable();
            reads.dedup();
            // Whatever reads more than the variables of a call keeps all that it names.
            let direct =
                |arg: Expr| matches!(body.kind(arg), Kind::VAR) || body.kind(arg).is_leaf_value();
            let reads_directly = is_call && body.operands(value).iter().all(direct);
            if reads_directly {
                reads.iter().for_each(|&read| all[read].readers.push(at));
            } else {
                keep_all(body, value, &number, &mut all);
            }
            let is_same_later = is_plain(body, value, &effects) && effects.version(value) == 0;
            let may_go =
                reads_directly && role.makes && is_same_later && is_cheap(body, value, module, cx);
            all.push(Value {
                bytes: usage.bytes[at],
                death: None,
                reads,
                readers: Vec::new(),
                may_go,
            });
        }
        keep_all(body, bindings.result(), &number, &mut all);
        for made in &usage.made {
            all[made.birth].death = made.death;
        }
        Self { all }
    }
}

/// Notes that what is named inside of `value` is not only read by calls.
fn keep_all(body: BodyView<'_>, value: Expr, number: &HashMap<Expr, usize>, all: &mut [Value]) {
    let mut pending = vec![value];
    let mut seen = std::collections::HashSet::new();
    while let Some(expr) = pending.pop() {
        if !seen.insert(expr) {
            continue;
        }
        match number.get(&expr) {
            Some(&at) if at < all.len() => all[at].may_go = false,
            _ => pending.extend(body.operands(expr).iter()),
        }
    }
}

/// Whether computing a value again costs little.
fn is_cheap(body: BodyView<'_>, value: Expr, module: &Module, cx: &PassContext) -> bool {
    let operands = body.operands(value);
    let Some(op) = body.op_name(operands.at(0)) else { return false };
    let pattern = match operands.get(1).map(|arg| body.view(arg)) {
        Some(View::Global { name }) if op == "call_tir" => {
            let code =
                module.get(name).and_then(|func| cx.terms().attrs(func.attrs()).int("op_pattern"));
            code.map_or(OpPattern::Opaque, OpPattern::from_code)
        }
        _ => cx.op_info(op).map_or(OpPattern::Opaque, |info| info.pattern),
    };
    pattern <= OpPattern::Injective
}

/// For each binding, the values that are computed anew before it.
type Again = Vec<Vec<usize>>;

/// The sweep over the bindings.
struct Sweep<'a> {
    values: &'a [Value],
    budget: u64,
    alive: u64,
    /// How many of the readers of each value came already.
    read: Vec<usize>,
    is_gone: Vec<bool>,
    /// How many values that are gone are to be computed from each.
    needed: Vec<usize>,
    /// Values that may be let go, by their next reader; what is out of date is skipped.
    kept: BinaryHeap<(usize, usize)>,
}

impl<'a> Sweep<'a> {
    fn new(values: &'a Values, budget: u64) -> Self {
        let count = values.all.len();
        Self {
            values: &values.all,
            budget,
            alive: 0,
            read: vec![0; count],
            is_gone: vec![false; count],
            needed: vec![0; count],
            kept: BinaryHeap::new(),
        }
    }

    fn run(mut self) -> Again {
        let mut again: Again = vec![Vec::new(); self.values.len()];
        let mut dying: Vec<Vec<usize>> = vec![Vec::new(); self.values.len()];
        for (at, value) in self.values.iter().enumerate() {
            if let Some(death) = value.death {
                dying[death].push(at);
            }
        }
        for at in 0..self.values.len() {
            for &read in &self.values[at].reads {
                if std::mem::replace(&mut self.is_gone[read], false) {
                    again[at].push(read);
                    self.alive += self.values[read].bytes;
                    self.values[read].reads.iter().for_each(|&of| self.needed[of] -= 1);
                }
            }
            self.alive += self.values[at].bytes;
            while self.alive > self.budget && self.let_one_go(at) {}
            for &read in &self.values[at].reads {
                self.read[read] += 1;
                self.keep(read);
            }
            self.keep(at);
            for &dead in dying[at].iter().filter(|&&dead| !self.is_gone[dead]) {
                self.alive -= self.values[dead].bytes;
            }
        }
        again
    }

    fn next_reader(&self, at: usize) -> Option<usize> {
        self.values[at].readers.get(self.read[at]).copied()
    }

    /// Enters a value among those that may be let go.
    fn keep(&mut self, at: usize) {
        if self.values[at].may_go
            && let Some(next) = self.next_reader(at)
        {
            self.kept.push((next, at));
        }
    }

    /// Lets go of the value that is read last; false when none may go at binding `now`.
    fn let_one_go(&mut self, now: usize) -> bool {
        while let Some((next, at)) = self.kept.pop() {
            let value = &self.values[at];
            let is_current = self.next_reader(at) == Some(next) && !self.is_gone[at] && next > now;
            let is_there = |&of: &usize| {
                !self.is_gone[of] && self.values[of].death.is_none_or(|death| death >= next)
            };
            if is_current && self.needed[at] == 0 && value.reads.iter().all(is_there) {
                self.is_gone[at] = true;
                self.alive -= value.bytes;
                value.reads.iter().for_each(|&of| self.needed[of] += 1);
                return true;
            }
        }
        false
    }
}

/// Binds values anew where the sweep says so, and has what comes behind read those.
fn rewrite(rw: &mut Rewriter, block: Expr, values: &Values, again: &Again) -> Result<()> {
    let View::Let(bindings) = rw.view(block) else { return Ok(()) };
    let old: Vec<(Expr, Expr)> = bindings.bindings().collect();
    let mut current: HashMap<Expr, Expr> = HashMap::new();
    let mut at = 0;
    rw.rewrite_bindings(block, |rw, list, is_dataflow, var, value| {
        for &number in &again[at] {
            let (original, value) = old[number];
            let copy = with_current(rw, value, &current);
            let fresh = rw.rebuild(original, &[]);
            list.bind(is_dataflow, fresh, copy);
            current.insert(original, fresh);
        }
        let is_copy = |&read: &usize| current.contains_key(&old[read].0);
        let value = match values.all[at].reads.iter().any(is_copy) {
            true => with_current(rw, value, &current),
            false => value,
        };
        list.bind(is_dataflow, var, value);
        at += 1;
        Ok(())
    })
}

/// A value that reads the latest copies of variables.
fn with_current(rw: &mut Rewriter, value: Expr, current: &HashMap<Expr, Expr>) -> Expr {
    let operands: Vec<Expr> = rw
        .body()
        .operands(value)
        .iter()
        .map(|operand| current.get(&operand).copied().unwrap_or(operand))
        .collect();
    rw.rebuild(value, &operands)
}
