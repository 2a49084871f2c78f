//! What closures read of the functions around them.
//!
//! One walk over each function, inner ones first; a function that stands within another counts as what it
//! captures, so that the work is as much as the functions and their captures are.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::DimView;
use tenon_plugin_api::prelude::*;

use crate::symbols::{Symbols, said_by};

/// A function and those within it.
pub(super) struct Nest<'a> {
    pub(super) name: &'a str,
    pub(super) func: &'a Function,
    /// The functions, inner ones before those around them. The last is the function of the module.
    pub(super) levels: Vec<Level>,
    pub(super) level_of: HashMap<Expr, usize>,
    /// For variables that a closure is bound to, its level.
    closures: HashMap<Expr, usize>,
    /// The level that binds each of these variables.
    binder: HashMap<Expr, usize>,
    /// Variables of closures that are read as values.
    values: HashSet<Expr>,
}

/// One of the functions.
pub(super) struct Level {
    pub(super) node: Expr,
    /// The variable that it is bound to.
    pub(super) var: Option<Expr>,
    /// The function around it.
    pub(super) parent: Option<usize>,
    /// The variables that it reads and others bind, in their order.
    pub(super) captures: Vec<Expr>,
    /// Symbols that no type of its parameters or captures binds.
    pub(super) dims: Vec<Dim>,
    /// The name that it gets.
    pub(super) global: Symbol,
}

impl Level {
    fn is_closed(&self) -> bool {
        self.captures.is_empty() && self.dims.is_empty()
    }
}

impl<'a> Nest<'a> {
    /// `None` when no function stands within this one.
    pub(super) fn of(name: &'a str, func: &'a Function) -> Option<Self> {
        let body = func.view();
        let nodes: Vec<Expr> =
            body.post_order().filter(|&expr| body.kind(expr) == Kind::FUNCTION).collect();
        if nodes.len() < 2 {
            return None;
        }
        let level_of: HashMap<Expr, usize> =
            nodes.iter().enumerate().map(|(level, &node)| (node, level)).collect();
        let mut nest = Self {
            name,
            func,
            levels: Vec::with_capacity(nodes.len()),
            level_of,
            closures: HashMap::new(),
            binder: HashMap::new(),
            values: HashSet::new(),
        };
        let mut vars: HashMap<Expr, Expr> = HashMap::new();
        for expr in body.post_order() {
            let View::Let(bindings) = body.view(expr) else { continue };
            for (var, value) in bindings.bindings() {
                if let Some(&level) = nest.level_of.get(&value) {
                    nest.closures.insert(var, level);
                    vars.insert(value, var);
                }
            }
        }
        let mut walk = Walk { reached: SideTable::new(body, 0), bound: SideTable::new(body, 0) };
        for node in nodes {
            nest.add(&mut walk, node, vars.get(&node).copied());
        }
        Some(nest)
    }

    /// The level of the function of the module.
    pub(super) fn root(&self) -> usize {
        self.levels.len() - 1
    }

    /// The function that a call of `callee` within `level` calls, where its captures can be given directly.
    pub(super) fn direct(&self, level: usize, callee: Expr) -> Option<usize> {
        let target = self.level_of.get(&callee).or(self.closures.get(&callee)).copied()?;
        let is_near = target == level || self.binder.get(&callee).is_none_or(|&at| at == level);
        (is_near || self.levels[target].is_closed()).then_some(target)
    }

    /// The name of the function that a variable is bound to, when that captures nothing.
    pub(super) fn closed(&self, var: Expr) -> Option<Symbol> {
        let level = &self.levels[*self.closures.get(&var)?];
        level.is_closed().then_some(level.global)
    }

    /// Whether the binding of a variable is still needed.
    pub(super) fn is_kept(&self, var: Expr) -> bool {
        let Some(&level) = self.closures.get(&var) else { return true };
        !self.levels[level].is_closed() && self.values.contains(&var)
    }

    /// Adds the next function, those within it being there.
    fn add(&mut self, walk: &mut Walk, node: Expr, var: Option<Expr>) {
        let body = self.func.view();
        let terms = body.terms();
        let level = self.levels.len();
        let now = level as u32 + 1;
        let mut reads: Vec<Expr> = Vec::new();
        let mut symbols = Symbols::default();
        // What it finds itself nobody says.
        let mut found: HashSet<Dim> = HashSet::new();
        let mut stack = body.operands(node).to_vec();
        for param in body.operands(node).take(stack.len() - 1).iter() {
            walk.bound[param] = now;
        }
        while let Some(expr) = stack.pop() {
            if std::mem::replace(&mut walk.reached[expr], now) == now {
                continue;
            }
            symbols.find_in(body, expr);
            match body.view(expr) {
                View::Var { .. } => reads.push(expr),
                View::Function { .. } => {
                    let inner = self.level_of[&expr];
                    self.levels[inner].parent = Some(level);
                    reads.extend(&self.levels[inner].captures);
                    symbols.found.extend(&self.levels[inner].dims);
                }
                View::Let(bindings) => {
                    for (bound, value) in bindings.bindings() {
                        walk.bound[bound] = now;
                        if self.closures.contains_key(&bound) {
                            self.binder.insert(bound, level);
                        }
                        // What is only bound is not read, but its type is.
                        symbols.find_in(body, bound);
                        stack.push(value);
                        self.note_value(value, var);
                    }
                    stack.push(bindings.result());
                    self.note_value(bindings.result(), var);
                }
                view => {
                    let is_call = matches!(view, View::Call { .. });
                    if let View::Call { callee, .. } = view
                        && body.op_name(callee) == Some("bind_dims")
                    {
                        found.extend(said_by(terms, body.ty(expr)));
                    }
                    let operands = body.operands(expr);
                    operands
                        .skip(is_call as usize)
                        .iter()
                        .for_each(|use_| self.note_value(use_, var));
                    stack.extend(operands.iter());
                }
            }
        }
        reads.sort_unstable();
        reads.dedup();
        let is_closed = |&read: &Expr| {
            self.closures
                .get(&read)
                .and_then(|&at| self.levels.get(at))
                .is_some_and(Level::is_closed)
        };
        reads.retain(|read| walk.bound[*read] != now && Some(*read) != var && !is_closed(read));
        reads.iter().for_each(|&read| self.note_value(read, None));
        let params = body.operands(node);
        let params = params.take(params.len() - 1);
        let bound: HashSet<Dim> = params
            .iter()
            .chain(reads.iter().copied())
            .flat_map(|expr| said_by(terms, body.ty(expr)))
            .chain(found)
            .collect();
        let mut dims: Vec<Dim> =
            symbols.found.into_iter().filter(|symbol| !bound.contains(symbol)).collect();
        dims.sort_unstable_by_key(|&dim| match terms.dim(dim) {
            DimView::Symbol(name) => terms.str(name),
            _ => "",
        });
        self.levels.push(Level {
            node,
            var,
            parent: None,
            captures: reads,
            dims,
            global: Symbol(0),
        });
    }

    /// Notes that `expr` is read as a value within the function bound to `own`.
    fn note_value(&mut self, expr: Expr, own: Option<Expr>) {
        if Some(expr) != own && self.closures.contains_key(&expr) {
            self.values.insert(expr);
        }
    }
}

/// What the walks share: for each node, one more than the last level that reached, or bound, it.
struct Walk {
    reached: SideTable<u32>,
    bound: SideTable<u32>,
}
