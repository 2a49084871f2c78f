//! Which functions of a module name which.

use std::collections::{HashMap, HashSet};

use crate::ir::{Kind, Symbol, View};
use crate::pass::Module;

/// Which functions of a module name which, graph functions and tensor programs alike. A function that is named
/// but is not in the module is left out.
pub struct CallGraph {
    /// Each function after those that it names; on a cycle in no special order.
    order: Vec<Symbol>,
    named: HashMap<Symbol, Vec<Symbol>>,
    recursive: HashSet<Symbol>,
    values: HashSet<Symbol>,
    uses: HashMap<Symbol, usize>,
}

impl CallGraph {
    /// The call graph of a module as it is now.
    pub fn of(module: &Module) -> Self {
        let functions = module.functions();
        let mut graph = Self {
            order: Vec::with_capacity(functions.len()),
            named: HashMap::with_capacity(functions.len()),
            recursive: HashSet::new(),
            values: HashSet::new(),
            uses: HashMap::new(),
        };
        for (name, function) in &functions {
            let body = function.view();
            let named: Vec<Symbol> = body.globals().map(|(_, name)| name).collect();
            if !named.is_empty() {
                for expr in body.post_order() {
                    let operands = body.operands(expr);
                    for (position, operand) in operands.iter().enumerate() {
                        let View::Global { name } = body.view(operand) else { continue };
                        *graph.uses.entry(name).or_default() += 1;
                        if position > 0 || body.kind(expr) != Kind::CALL {
                            graph.values.insert(name);
                        }
                    }
                }
            }
            graph.named.insert(*name, named);
        }
        let known: HashSet<Symbol> = graph.named.keys().copied().collect();
        for named in graph.named.values_mut() {
            named.retain(|name| known.contains(name));
        }
        graph.find_components(functions.iter().map(|&(name, _)| name));
        graph
    }

    /// The functions, each after those that it names; on a cycle in no special order.
    pub fn callees_first(&self) -> &[Symbol] {
        &self.order
    }

    /// The functions that a function names, in the order of its nodes.
    pub fn named_by(&self, name: Symbol) -> &[Symbol] {
        self.named.get(&name).map_or(&[], Vec::as_slice)
    }

    /// Whether a function names itself, directly or over others.
    pub fn is_recursive(&self, name: Symbol) -> bool {
        self.recursive.contains(&name)
    }

    /// Whether a function is named anywhere but as what a call calls. What `call_tir` is given counts.
    pub fn is_value(&self, name: Symbol) -> bool {
        self.values.contains(&name)
    }

    /// In how many places a function is named.
    pub fn uses(&self, name: Symbol) -> usize {
        self.uses.get(&name).copied().unwrap_or(0)
    }

    /// The functions that can be reached from `roots`, themselves included.
    pub fn reachable(&self, roots: impl IntoIterator<Item = Symbol>) -> HashSet<Symbol> {
        let mut reached = HashSet::new();
        let mut work: Vec<Symbol> = roots.into_iter().collect();
        while let Some(name) = work.pop() {
            if reached.insert(name) {
                work.extend(self.named_by(name));
            }
        }
        reached
    }

    /// The strongly connected components, after R. Tarjan, "Depth-first search and linear graph algorithms",
    /// 1972, with a stack of its own in the place of recursion.
    fn find_components(&mut self, names: impl Iterator<Item = Symbol>) {
        /// When a function was reached, and the earliest that is known to be in a cycle with it.
        struct Seen {
            number: usize,
            low: usize,
            is_open: bool,
        }
        let mut seen: HashMap<Symbol, Seen> = HashMap::with_capacity(self.named.len());
        let mut open: Vec<Symbol> = Vec::new();
        for root in names {
            let mut path: Vec<(Symbol, usize)> = vec![(root, 0)];
            while let Some(&mut (name, ref mut next)) = path.last_mut() {
                if *next == 0 {
                    if seen.contains_key(&name) {
                        path.pop();
                        continue;
                    }
                    let number = seen.len();
                    seen.insert(name, Seen { number, low: number, is_open: true });
                    open.push(name);
                }
                let named = &self.named[&name];
                if let Some(previous) = next.checked_sub(1).and_then(|at| named.get(at))
                    && seen[previous].is_open
                {
                    let low = seen[previous].low;
                    let own = seen.get_mut(&name).expect("it was reached");
                    own.low = own.low.min(low);
                }
                *next += 1;
                if let Some(&callee) = named.get(*next - 1) {
                    match seen.get(&callee) {
                        None => path.push((callee, 0)),
                        Some(_) if callee == name => drop(self.recursive.insert(name)),
                        Some(_) => {}
                    }
                    continue;
                }
                path.pop();
                let own = &seen[&name];
                if own.low == own.number {
                    let first = open.iter().rposition(|&other| other == name).unwrap_or(0);
                    let component = open.split_off(first);
                    if component.len() > 1 {
                        self.recursive.extend(component.iter().copied());
                    }
                    for member in &component {
                        seen.get_mut(member).expect("it was reached").is_open = false;
                    }
                    self.order.extend(component.into_iter().rev());
                }
            }
        }
    }
}
