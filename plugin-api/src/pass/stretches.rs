//! The stretches of a function in which no memory is written, and what may be memory.
//!
//! In a published body ascending ids are the order of evaluation, and a value stands before what reads the variables
//! that are bound to it. So one pass over the nodes counts the calls that may write, and knows of each operand whether
//! it may be memory. Each body, of the function and of the closures in it, is counted by itself.

use crate::ir::{BodyView, Callee, Expr, Kind, Symbol, Type, TypeView, View};
use crate::pass::OpEffect;

/// What is known of a node.
#[derive(Clone, Copy)]
pub(super) struct Node {
    /// The stretch in which it is evaluated, from 1.
    pub(super) stretch: u32,
    /// Whether evaluating it reads memory.
    pub(super) reads: bool,
    /// Whether its value may be memory, or hold some.
    pub(super) is_memory: bool,
    /// Whether that may be memory which this function made.
    pub(super) is_own: bool,
    /// Whether evaluating it, with all that is nested in it, has an effect besides its result.
    pub(super) has_effect: bool,
}

/// What is assumed of a node that was built later.
pub(super) const WORST: Node =
    Node { stretch: u32::MAX, reads: true, is_memory: true, is_own: true, has_effect: true };

/// A node of a function that writes no memory.
pub(super) const UNWRITTEN: Node =
    Node { stretch: 1, reads: false, is_memory: false, is_own: false, has_effect: false };

/// One pass over the nodes of a body.
pub(super) struct Scan<'a> {
    body: BodyView<'a>,
    nodes: Vec<Node>,
    bound: Bound,
    /// For each node the function whose body it is in; empty where there is one.
    homes: Vec<u32>,
    /// For each function, by its node, whether it holds memory, and whether that is of this function.
    held: Vec<(bool, bool)>,
    held_by_several: (bool, bool),
    /// For each function, by its node, its stretch as far as the pass has come; over when it is not above `floor`.
    stretches: Vec<u32>,
    last: u32,
    floor: u32,
    first_write: Option<Expr>,
}

impl<'a> Scan<'a> {
    /// A pass over the first `len` nodes.
    pub(super) fn new(body: BodyView<'a>, len: usize) -> Self {
        Self {
            body,
            nodes: vec![WORST; len],
            bound: Bound::of(body, len),
            homes: homes(body, len),
            held: vec![(false, false); len],
            held_by_several: (false, false),
            stretches: vec![0; len],
            last: 0,
            floor: 0,
            first_write: None,
        }
    }

    /// What the nodes do, and the first one that may write memory. `effect` says what operators do, `is_pure` which
    /// functions have no effect.
    pub(super) fn run(
        mut self,
        mut effect: impl FnMut(Symbol) -> OpEffect,
        is_pure: impl Fn(Symbol) -> bool,
    ) -> (Vec<Node>, Option<Expr>) {
        for index in 0..self.nodes.len() {
            let expr = Expr(index as u32);
            let mut node = self.without_call(expr);
            let does = match self.body.callee(expr) {
                None => None,
                Some(Callee::Op(op)) => Some(effect(op)),
                Some(Callee::Function(name)) if self.bound.is_dataflow[index] || is_pure(name) => {
                    Some(OpEffect::Shares)
                }
                Some(Callee::Function(_) | Callee::Value) => Some(OpEffect::Any),
            };
            if let Some(does) = does {
                self.call(expr, does, &mut node);
            }
            self.nodes[index] = node;
            if self.body.kind(expr) != Kind::VAR || !self.bound.is_bound[index] {
                self.hand_on(expr);
            }
        }
        if self.first_write.is_none() {
            // What nobody writes may be read at any time.
            for node in &mut self.nodes {
                *node = Node { has_effect: node.has_effect, ..UNWRITTEN };
            }
        }
        (self.nodes, self.first_write)
    }

    /// What is true of a node, whether it is a call or not, because of its operands.
    fn without_call(&mut self, expr: Expr) -> Node {
        let kind = self.body.kind(expr);
        let mut node = Node {
            stretch: self.stretch(expr),
            reads: false,
            is_memory: false,
            is_own: false,
            has_effect: !kind.is_graph(),
        };
        match kind {
            // Until its value is known the worst is assumed of a variable: a closure may name itself.
            Kind::VAR if self.bound.is_bound[expr.index()] => {
                let Node { is_memory, is_own, .. } = self.nodes[expr.index()];
                return Node { is_memory, is_own, ..node };
            }
            Kind::VAR => {
                return Node { is_memory: self.may_hold_memory(expr), ..node };
            }
            // It runs when it is called, and is what it holds.
            Kind::FUNCTION => {
                let operands = self.body.operands(expr);
                let result = operands.at(operands.len() - 1);
                self.note_held(result, expr.0);
                let [own, shared] = [self.held[expr.index()], self.held_by_several];
                let held = (own.0 || shared.0, own.1 || shared.1);
                self.hold(self.home(expr), held);
                return Node { is_memory: held.0, is_own: held.1, ..node };
            }
            // Which branch is taken, and what is read within, is not told apart.
            Kind::IF | Kind::LET => node.reads = true,
            _ => {}
        }
        for (position, operand) in self.body.operands(expr).iter().enumerate() {
            if kind == Kind::LET && self.body.is_binder(expr, position) {
                continue;
            }
            let Node { reads, is_memory, is_own, has_effect, .. } = self.nodes[operand.index()];
            node.reads |= reads;
            node.has_effect |= has_effect;
            self.note_held(operand, self.home(expr));
            // A choice is none of its condition.
            if kind != Kind::IF || position > 0 {
                node.is_memory |= is_memory;
                node.is_own |= is_own;
            }
        }
        if let View::Let(bindings) = self.body.view(expr) {
            let result = self.nodes[bindings.result().index()];
            (node.is_memory, node.is_own) = (result.is_memory, result.is_own);
        }
        node.is_memory &= self.may_hold_memory(expr);
        node.is_own &= node.is_memory;
        node
    }

    /// Notes what a body reads, if it is memory of a body around it.
    fn note_held(&mut self, operand: Expr, home: u32) {
        let Node { is_memory, is_own, .. } = self.nodes[operand.index()];
        if is_memory && self.home(operand) != home {
            self.hold(home, (is_memory, is_own));
        }
    }

    fn hold(&mut self, home: u32, (is_memory, is_own): (bool, bool)) {
        let held = self.held.get_mut(home as usize).unwrap_or(&mut self.held_by_several);
        held.0 |= is_memory;
        held.1 |= is_own;
    }

    /// What a call adds to what is true because of its operands.
    fn call(&mut self, expr: Expr, does: OpEffect, node: &mut Node) {
        let operands = self.body.operands(expr).iter();
        let is_given_memory = operands.into_iter().any(|it| self.nodes[it.index()].is_memory);
        match does {
            OpEffect::None => {
                node.reads |= is_given_memory;
                (node.is_memory, node.is_own) = (false, false);
            }
            OpEffect::Shares => node.reads |= is_given_memory,
            OpEffect::Makes | OpEffect::Any => {
                node.has_effect = true;
                node.is_memory = self.may_hold_memory(expr);
                node.is_own = node.is_memory;
            }
        }
        if does == OpEffect::Any && is_given_memory {
            self.first_write.get_or_insert(expr);
            self.end_stretch(expr);
        }
    }

    /// The stretch that a node is evaluated in.
    fn stretch(&mut self, expr: Expr) -> u32 {
        match self.home(expr) {
            SEVERAL => {
                self.last += 1;
                self.last
            }
            home => {
                let stretch = &mut self.stretches[home as usize];
                if *stretch <= self.floor {
                    self.last += 1;
                    *stretch = self.last;
                }
                *stretch
            }
        }
    }

    fn end_stretch(&mut self, expr: Expr) {
        match self.home(expr) {
            SEVERAL => self.floor = self.last,
            home => self.stretches[home as usize] = 0,
        }
    }

    fn home(&self, expr: Expr) -> u32 {
        self.homes.get(expr.index()).copied().unwrap_or(0)
    }

    /// Hands on what is known of a value to the variables that are bound to it, and to those that are bound to them.
    fn hand_on(&mut self, value: Expr) {
        let Node { is_memory, is_own, .. } = self.nodes[value.index()];
        if self.bound.first_var[value.index()] == NONE {
            return;
        }
        let mut waiting = vec![value];
        while let Some(value) = waiting.pop() {
            let mut next = self.bound.first_var[value.index()];
            while next != NONE {
                let var = &mut self.nodes[next as usize];
                // The variable stands before its value, and is not written by the pass any more.
                (var.is_memory, var.is_own) = (is_memory, is_own);
                waiting.push(Expr(next));
                next = self.bound.next_var[next as usize];
            }
        }
    }

    /// Whether a value of this type may be, or hold, memory: tensors, objects and closures; no shapes and numbers.
    fn may_hold_memory(&self, expr: Expr) -> bool {
        let may = |ty: Type| match self.body.terms().ty(ty) {
            TypeView::Shape(_) | TypeView::Scalar { .. } => false,
            TypeView::Tuple(fields) => !fields.is_empty(),
            _ => true,
        };
        self.body.ty(expr).is_none_or(may)
    }
}

const NONE: u32 = u32::MAX;

/// The bindings of a body.
struct Bound {
    is_bound: Vec<bool>,
    /// Whether a node is the value of a binding of a dataflow block.
    is_dataflow: Vec<bool>,
    /// For each value a variable that is bound to it, and for that the next one.
    first_var: Vec<u32>,
    next_var: Vec<u32>,
}

impl Bound {
    fn of(body: BodyView<'_>, len: usize) -> Self {
        let mut bound = Self {
            is_bound: vec![false; len],
            is_dataflow: vec![false; len],
            first_var: vec![NONE; len],
            next_var: vec![NONE; len],
        };
        for expr in (0..len as u32).map(Expr) {
            let View::Let(bindings) = body.view(expr) else { continue };
            for block in bindings.blocks() {
                for at in block.first..block.first + block.len {
                    let (var, value) = bindings.binding(at);
                    bound.is_bound[var.index()] = true;
                    bound.is_dataflow[value.index()] |= block.is_dataflow;
                    bound.next_var[var.index()] = bound.first_var[value.index()];
                    bound.first_var[value.index()] = var.0;
                }
            }
        }
        bound
    }
}

/// The home of a node that is nested in several bodies.
const SEVERAL: u32 = u32::MAX;

/// For each node the function, by its node, whose body it is evaluated in; empty when the root is the only one.
fn homes(body: BodyView<'_>, len: usize) -> Vec<u32> {
    let nodes = || (0..len as u32).map(Expr);
    if nodes().filter(|&expr| body.kind(expr) == Kind::FUNCTION).count() < 2 {
        return Vec::new();
    }
    const UNKNOWN: u32 = u32::MAX - 1;
    let mut homes = vec![UNKNOWN; len];
    // Users stand behind: what binds a variable is behind all that reads it, so it is first to say.
    for expr in nodes().rev() {
        let inner = match body.kind(expr) {
            Kind::FUNCTION => expr.0,
            _ => homes[expr.index()],
        };
        for operand in body.operands(expr).iter().filter(|it| it.index() < len) {
            let home = &mut homes[operand.index()];
            match *home {
                UNKNOWN => *home = inner,
                known if known == inner || body.kind(operand) == Kind::VAR => {}
                _ => *home = SEVERAL,
            }
        }
    }
    let root = len as u32 - 1;
    homes.iter_mut().filter(|home| **home == UNKNOWN).for_each(|home| *home = root);
    homes
}
