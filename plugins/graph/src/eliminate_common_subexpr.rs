//! Computes what is written twice once.
//!
//! ```ir
//! %a = add(%x, %y)             %a = add(%x, %y)
//! %b = add(%x, %y)      =>     %b = %a
//! %c = multiply(%a, %b)        %c = multiply(%a, %a)
//! ret %c                       ret %c
//! ```
//!
//! Values are numbered: two nodes get one number when they are calls of one pure operator, or projections, with
//! equal attributes and types, of operands with equal numbers. The first binding of a number that is visible
//! stands for the later ones, whose values become its variable; `relax.CanonicalizeBindings` removes these. What
//! a branch or a closure binds is forgotten behind it. Impure calls, and calls of functions, which may be impure,
//! are never merged, and calls that read memory only where nothing writes memory between them ([`Effects`]); leaves
//! and tuples never become bindings. In a function without bindings, branches and closures the nodes themselves are
//! shared.
//!
//! After J. Cocke and J. T. Schwartz, "Programming Languages and Their Compilers", 1970: value numbering.

use hashbrown::HashTable;
use tenon_plugin_api::prelude::*;

/// Computes what is written twice once.
#[pass(
    name = "relax.EliminateCommonSubexpr",
    aliases = ["relay._transform.EliminateCommonSubexpr", "relax.transform.EliminateCommonSubexpr"],
    opt_level = 1,
    phase = "optimize",
    until = "builtin",
    idempotent = true
)]
fn eliminate_common_subexpr(
    func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let mut values = Values::new(&func, cx, &options);
    let is_graph = body.post_order().all(|expr| match body.kind(expr) {
        Kind::LET | Kind::IF => false,
        Kind::FUNCTION => expr == body.root(),
        _ => true,
    });
    if is_graph {
        let mut first = Visible::default();
        for expr in body.post_order() {
            if let Some(number) = values.candidate(expr) {
                match first.get(number) {
                    Some((earlier, _)) => rw.replace(expr, earlier),
                    None => first.set(number, Some((expr, expr))),
                }
            }
        }
    } else {
        merge_bindings(body, &mut values, &mut rw);
    }
    rw.finish()
}

#[derive(Options)]
struct Options {
    /// merge calls alone, no projections
    #[option(default = false)]
    call_only: bool,
    /// operators whose calls are left alone
    #[option(default = [])]
    skip: Vec<Symbol>,
}

/// A part of the walk over bindings, in the order in which they are evaluated.
enum Step {
    /// The bindings of a `let` from this one on.
    Bindings(Expr, usize),
    /// Bindings made since the log had this length are not visible any more.
    Forget(usize),
}

/// By number, the binding that is visible: its variable and its value.
#[derive(Default)]
struct Visible(Vec<Option<(Expr, Expr)>>);

impl Visible {
    fn get(&self, number: u32) -> Option<(Expr, Expr)> {
        self.0.get(number as usize).copied().flatten()
    }

    fn set(&mut self, number: u32, binding: Option<(Expr, Expr)>) {
        let place = number as usize;
        if self.0.len() <= place {
            self.0.resize((place + 1).next_power_of_two(), None);
        }
        self.0[place] = binding;
    }
}

fn merge_bindings(body: BodyView<'_>, values: &mut Values<'_>, rw: &mut Rewriter) {
    let mut visible = Visible::default();
    let mut log: Vec<u32> = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    enter(body, body.root(), 0, &mut steps);
    while let Some(step) = steps.pop() {
        let (list, index) = match step {
            Step::Bindings(list, index) => (list, index),
            Step::Forget(len) => {
                for number in log.drain(len..) {
                    visible.set(number, None);
                }
                continue;
            }
        };
        let View::Let(bindings) = body.view(list) else { continue };
        if index == bindings.len() {
            enter(body, bindings.result(), log.len(), &mut steps);
            continue;
        }
        steps.push(Step::Bindings(list, index + 1));
        let (var, value) = bindings.binding(index);
        let number = values.number(value);
        values.numbers[var] = number;
        enter(body, value, log.len(), &mut steps);
        if values.candidate(value).is_none() {
            continue;
        }
        match visible.get(number) {
            Some((earlier, same)) if same != value && body.ty(earlier) == body.ty(var) => {
                rw.replace(value, earlier);
                rw.replace(var, earlier);
            }
            Some(_) => {}
            None => {
                visible.set(number, Some((var, value)));
                log.push(number);
            }
        }
    }
}

/// Walks into the bodies that a node has, those of a choice or a function, each a scope of its own; and through
/// choices and functions that are bodies of each other.
fn enter(body: BodyView<'_>, expr: Expr, visible: usize, steps: &mut Vec<Step>) {
    if !matches!(body.kind(expr), Kind::IF | Kind::FUNCTION) {
        return;
    }
    let mut waiting = vec![expr];
    while let Some(expr) = waiting.pop() {
        match body.view(expr) {
            View::Let(_) => steps.extend([Step::Forget(visible), Step::Bindings(expr, 0)]),
            View::If { then, otherwise, .. } => waiting.extend([then, otherwise]),
            View::Function { body: inner, .. } => waiting.push(inner),
            _ => {}
        }
    }
}

/// So many nodes are looked for among the users of their youngest operand, and later ones in a table. A user lies near what it
/// uses, mostly; a place in a table of a million is a miss of every cache, which took two thirds of the time on chains.
const FEW_USERS: usize = 8;

/// Constants of up to so many bytes are equal when their bytes are, larger ones when they share them.
const SMALL: usize = 64;

/// The numbers of values.
struct Values<'a> {
    body: BodyView<'a>,
    effects: Effects,
    /// By node; 0 while it has none.
    numbers: SideTable<u32>,
    /// For each node, whether it is a call of a pure operator that may be merged.
    is_pure_call: SideTable<bool>,
    call_only: bool,
    /// By number, the latest of the first [`FEW_USERS`] nodes with a number of their own whose youngest operand, the one of the
    /// greatest number, has this number.
    users: Vec<Option<Expr>>,
    /// By node, the one before it among those.
    user_before: SideTable<Option<Expr>>,
    /// The other nodes with a number of their own, each with the hash that it is found by.
    others: HashTable<(u32, Expr)>,
    last: u32,
}

impl<'a> Values<'a> {
    fn new(func: &'a Function, cx: &PassContext, options: &Options) -> Self {
        let body = func.view();
        let may_merge = |op: Symbol| cx.is_pure_op(op) && !options.skip.contains(&op);
        let is_pure_call = SideTable::of(body, |expr| match body.view(expr) {
            View::Call { callee, .. } => body.op_symbol(callee).is_some_and(may_merge),
            _ => false,
        });
        Self {
            body,
            effects: Effects::of(func, cx),
            numbers: SideTable::new(body, 0),
            is_pure_call,
            call_only: options.call_only,
            users: vec![None],
            user_before: SideTable::new(body, None),
            others: HashTable::new(),
            last: 0,
        }
    }

    /// The number of a node that may be merged with an equal one.
    fn candidate(&mut self, expr: Expr) -> Option<u32> {
        let is_item = !self.call_only && self.body.kind(expr) == Kind::TUPLE_GET_ITEM;
        (is_item || self.is_pure_call[expr]).then(|| self.number(expr))
    }

    /// The number of a node. Variables have those of their values, which were numbered before.
    fn number(&mut self, expr: Expr) -> u32 {
        if self.numbers[expr] != 0 {
            return self.numbers[expr];
        }
        let mut waiting = vec![expr];
        while let Some(&next) = waiting.last() {
            let before = waiting.len();
            if self.numbers[next] == 0 && self.has_structure(next) {
                let operands = self.body.operands(next);
                waiting.extend(operands.iter().filter(|each| self.numbers[*each] == 0));
            }
            if waiting.len() == before {
                waiting.pop();
                if self.numbers[next] == 0 {
                    self.numbers[next] = self.own_number(next);
                }
            }
        }
        self.numbers[expr]
    }

    /// Whether a node is what its parts are: evaluating it twice is evaluating it once.
    fn has_structure(&self, expr: Expr) -> bool {
        let kind = self.body.kind(expr);
        self.is_pure_call[expr]
            || matches!(kind, Kind::TUPLE_GET_ITEM | Kind::TUPLE)
            || kind.is_leaf_value()
    }

    /// The number of an equal node, or a new one.
    fn own_number(&mut self, expr: Expr) -> u32 {
        if self.has_structure(expr)
            && let Some(node) = self.find_or_keep(expr)
        {
            return self.numbers[node];
        }
        self.last += 1;
        self.users.push(None);
        self.last
    }

    /// An equal node, or none: then this one is found from now on.
    fn find_or_keep(&mut self, expr: Expr) -> Option<Expr> {
        let operands = self.body.operands(expr);
        if let Some(youngest) = operands.iter().map(|operand| self.numbers[operand]).max() {
            let latest = self.users[youngest as usize];
            let (mut user, mut count) = (latest, 0);
            while let Some(node) = user {
                if self.is_equal(node, expr) {
                    return Some(node);
                }
                (user, count) = (self.user_before[node], count + 1);
            }
            if count < FEW_USERS {
                self.user_before[expr] = latest;
                self.users[youngest as usize] = Some(expr);
                return None;
            }
        }
        let hash = self.hash(expr);
        let is_same = |&(known, node): &(u32, Expr)| known == hash && self.is_equal(node, expr);
        if let Some(&(_, node)) = self.others.find(spread(hash), is_same) {
            return Some(node);
        }
        self.others.insert_unique(spread(hash), (hash, expr), |&(hash, _)| spread(hash));
        None
    }

    fn hash(&self, expr: Expr) -> u32 {
        let node = self.body.raw_node(expr);
        let data = match self.body.view(expr) {
            View::Constant(constant) => hash_of(constant.bytes),
            _ => node.data as u64,
        };
        let version = self.effects.version(expr) as u64;
        let attrs = version << 32 | node.attrs as u64;
        let own = [(node.kind as u64) << 32 | node.ty as u64, attrs, data];
        let number = |operand: Expr| self.numbers[operand] as u64;
        let words = own.into_iter().chain(self.body.operands(expr).iter().map(number));
        (words.fold(0, mix) >> 32) as u32
    }

    fn is_equal(&self, a: Expr, b: Expr) -> bool {
        let (x, y) = (self.body.raw_node(a), self.body.raw_node(b));
        if (x.kind, x.ty, x.attrs, x.len) != (y.kind, y.ty, y.attrs, y.len)
            || self.effects.version(a) != self.effects.version(b)
        {
            return false;
        }
        if let (View::Constant(x), View::Constant(y)) = (self.body.view(a), self.body.view(b)) {
            let is_small = x.bytes.len() <= SMALL;
            return std::ptr::eq(x.bytes, y.bytes) || (is_small && x.bytes == y.bytes);
        }
        let number = |operand: Expr| self.numbers[operand];
        let (p, q) = (self.body.operands(a), self.body.operands(b));
        x.data == y.data && p.iter().map(number).eq(q.iter().map(number))
    }
}

/// An odd number whose multiples have well mixed upper bits: 2⁶⁴ over the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(26) ^ word).wrapping_mul(MIX)
}

/// A hash of what makes a constant equal to another: its bytes while they are few, and else where they are.
fn hash_of(bytes: &[u8]) -> u64 {
    match bytes.len() {
        ..=SMALL => bytes.iter().fold(0, |hash, &byte| mix(hash, byte as u64)),
        _ => bytes.as_ptr() as u64,
    }
}

/// A hash as wide as the table wants it.
fn spread(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}
