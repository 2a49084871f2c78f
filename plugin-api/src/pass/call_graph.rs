//! Which functions of a module name which.

use crate::ir::{Kind, Symbol, SymbolMap, View};
use crate::pass::Module;

/// Which functions of a module name which, graph functions and tensor programs alike. A function that is named
/// but is not in the module is left out.
pub struct CallGraph {
    /// The functions in the order of the module, and the number of each, which stands for it in all that follows.
    names: Vec<Symbol>,
    numbers: SymbolMap<usize>,
    /// What the functions name, one behind the other, by name and by number, and where that of each begins; one more for the end
    /// of the last.
    named: Vec<Symbol>,
    named_numbers: Vec<usize>,
    first: Vec<usize>,
    /// Each function after those that it names; on a cycle in no special order.
    order: Vec<Symbol>,
    facts: Vec<Facts>,
}

/// What is known of a function.
#[derive(Clone, Copy, Default)]
struct Facts {
    uses: usize,
    is_value: bool,
    is_recursive: bool,
}

impl CallGraph {
    /// The call graph of a module as it is now.
    pub fn of(module: &Module) -> Self {
        let functions = module.functions();
        let numbers = functions.iter().enumerate().map(|(number, &(name, _))| (name, number));
        let mut graph = Self {
            names: functions.iter().map(|&(name, _)| name).collect(),
            numbers: numbers.collect(),
            named: Vec::new(),
            named_numbers: Vec::new(),
            first: Vec::with_capacity(functions.len() + 1),
            order: Vec::with_capacity(functions.len()),
            facts: vec![Facts::default(); functions.len()],
        };
        for (_, function) in &functions {
            let body = function.view();
            graph.first.push(graph.named.len());
            if body.globals().next().is_none() {
                continue;
            }
            for (_, name) in body.globals() {
                if let Some(&number) = graph.numbers.get(&name) {
                    graph.named.push(name);
                    graph.named_numbers.push(number);
                }
            }
            for expr in body.post_order() {
                for (position, operand) in body.operands(expr).iter().enumerate() {
                    let View::Global { name } = body.view(operand) else { continue };
                    let Some(&number) = graph.numbers.get(&name) else { continue };
                    graph.facts[number].uses += 1;
                    let is_called = position == 0 && body.kind(expr) == Kind::CALL;
                    graph.facts[number].is_value |= !is_called;
                }
            }
        }
        graph.first.push(graph.named.len());
        graph.find_components();
        graph
    }

    /// The functions, each after those that it names; on a cycle in no special order.
    pub fn callees_first(&self) -> &[Symbol] {
        &self.order
    }

    /// The functions that a function names, in the order of its nodes.
    pub fn named_by(&self, name: Symbol) -> &[Symbol] {
        let named = |&number| &self.named[self.first[number]..self.first[number + 1]];
        self.numbers.get(&name).map_or(&[], named)
    }

    fn facts(&self, name: Symbol) -> Facts {
        self.numbers.get(&name).map(|&number| self.facts[number]).unwrap_or_default()
    }

    /// Whether a function names itself, directly or over others.
    pub fn is_recursive(&self, name: Symbol) -> bool {
        self.facts(name).is_recursive
    }

    /// Whether a function is named anywhere but as what a call calls. What `call_tir` is given counts.
    pub fn is_value(&self, name: Symbol) -> bool {
        self.facts(name).is_value
    }

    /// In how many places a function of the module is named.
    pub fn uses(&self, name: Symbol) -> usize {
        self.facts(name).uses
    }

    /// The functions that cannot be reached from `roots`, in the order of the module.
    pub fn unreachable(&self, roots: impl IntoIterator<Item = Symbol>) -> Vec<Symbol> {
        let mut is_reached = vec![false; self.facts.len()];
        let roots = roots.into_iter().filter_map(|root| self.numbers.get(&root).copied());
        let mut work: Vec<usize> = roots.collect();
        while let Some(function) = work.pop() {
            if !std::mem::replace(&mut is_reached[function], true) {
                work.extend(&self.named_numbers[self.first[function]..self.first[function + 1]]);
            }
        }
        let unreached = |&(function, _): &(usize, &Symbol)| !is_reached[function];
        self.names.iter().enumerate().filter(unreached).map(|(_, &name)| name).collect()
    }

    /// The strongly connected components, after R. Tarjan, "Depth-first search and linear graph algorithms",
    /// 1972, with a stack of its own in the place of recursion.
    fn find_components(&mut self) {
        /// When a function was reached, 0 for not yet, and the earliest that is known to be in a cycle with it.
        #[derive(Clone, Copy, Default)]
        struct Seen {
            number: usize,
            low: usize,
            is_open: bool,
        }
        let mut seen = vec![Seen::default(); self.names.len()];
        let mut count = 0;
        let mut open: Vec<usize> = Vec::new();
        let mut path: Vec<(usize, usize)> = Vec::new();
        for root in 0..self.names.len() {
            path.push((root, 0));
            while let Some(&mut (function, ref mut next)) = path.last_mut() {
                if *next == 0 {
                    if seen[function].number > 0 {
                        path.pop();
                        continue;
                    }
                    count += 1;
                    seen[function] = Seen { number: count, low: count, is_open: true };
                    open.push(function);
                }
                let callees = self.first[function]..self.first[function + 1];
                let callee = |at: usize| self.named_numbers[callees.clone()].get(at).copied();
                if let Some(previous) = next.checked_sub(1).and_then(callee) {
                    let previous = seen[previous];
                    if previous.is_open {
                        seen[function].low = seen[function].low.min(previous.low);
                    }
                }
                *next += 1;
                if let Some(callee) = callee(*next - 1) {
                    self.facts[function].is_recursive |= callee == function;
                    if seen[callee].number == 0 {
                        path.push((callee, 0));
                    }
                    continue;
                }
                path.pop();
                if seen[function].low == seen[function].number {
                    let first = open.iter().rposition(|&other| other == function).unwrap_or(0);
                    let is_cycle = open.len() - first > 1;
                    for member in open.drain(first..).rev() {
                        seen[member].is_open = false;
                        self.facts[member].is_recursive |= is_cycle;
                        self.order.push(self.names[member]);
                    }
                }
            }
        }
    }
}
