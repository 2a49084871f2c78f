//! Which functions of a module name which.

use crate::ir::{BodyView, Kind, Symbol, SymbolMap, View};
use crate::pass::Module;

/// Which functions of a module name which, graph functions and tensor programs alike. A function that is named
/// but is not in the module is left out.
pub struct CallGraph {
    /// The functions in the order of the module, and the number of each, which stands for it in all that follows.
    names: Vec<Symbol>,
    numbers: SymbolMap<u32>,
    /// What the functions name, one behind the other, and where that of each begins; one more for the end of the last.
    named: Vec<u32>,
    first: Vec<usize>,
    /// Each function after those that it names; on a cycle in no special order.
    order: Vec<u32>,
    facts: Vec<Facts>,
}

/// What is known of a function.
#[derive(Clone, Copy, Default)]
struct Facts {
    uses: u32,
    is_private: bool,
    is_value: bool,
    is_recursive: bool,
}

impl CallGraph {
    /// The call graph of a module as it is now.
    pub fn of(module: &Module) -> Self {
        let functions = module.functions();
        let numbers = functions.iter().zip(0..).map(|(&(name, _), number)| (name, number));
        let mut graph = Self {
            names: functions.iter().map(|&(name, _)| name).collect(),
            numbers: numbers.collect(),
            named: Vec::new(),
            first: Vec::with_capacity(functions.len() + 1),
            order: Vec::with_capacity(functions.len()),
            facts: vec![Facts::default(); functions.len()],
        };
        for (number, (_, function)) in functions.iter().enumerate() {
            graph.facts[number].is_private = function.is_private();
            graph.first.push(graph.named.len());
            graph.add(function.view());
        }
        graph.first.push(graph.named.len());
        graph.find_components();
        graph
    }

    /// Adds what a body names.
    fn add(&mut self, body: BodyView<'_>) {
        let before = self.named.len();
        let named = body.globals().filter_map(|(_, name)| self.numbers.get(&name));
        self.named.extend(named);
        if self.named.len() == before {
            return;
        }
        for expr in body.post_order() {
            for (position, operand) in body.operands(expr).iter().enumerate() {
                let View::Global { name } = body.view(operand) else { continue };
                let Some(&number) = self.numbers.get(&name) else { continue };
                let facts = &mut self.facts[number as usize];
                facts.uses += 1;
                let is_called = position == 0 && body.kind(expr) == Kind::CALL;
                facts.is_value |= !is_called;
            }
        }
    }

    /// The functions, each after those that it names; on a cycle in no special order.
    pub fn callees_first(&self) -> impl DoubleEndedIterator<Item = Symbol> + ExactSizeIterator {
        self.order.iter().map(|&number| self.name(number))
    }

    /// The functions that a function names, in the order of its nodes.
    pub fn named_by(&self, name: Symbol) -> impl ExactSizeIterator<Item = Symbol> {
        let named = self.numbers.get(&name).map_or(&[][..], |&number| self.named(number));
        named.iter().map(|&number| self.name(number))
    }

    fn name(&self, number: u32) -> Symbol {
        self.names[number as usize]
    }

    fn named(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.named[self.first[number]..self.first[number + 1]]
    }

    fn facts(&self, name: Symbol) -> Facts {
        self.numbers.get(&name).map(|&number| self.facts[number as usize]).unwrap_or_default()
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
        self.facts(name).uses as usize
    }

    /// The functions that no public one reaches, in the order of the module.
    pub fn unreachable(&self) -> impl Iterator<Item = Symbol> {
        let mut is_reached = vec![false; self.facts.len()];
        let public = (0..self.names.len() as u32).zip(&self.facts);
        let public = public.filter(|(_, facts)| !facts.is_private);
        let mut work: Vec<u32> = public.map(|(number, _)| number).collect();
        while let Some(function) = work.pop() {
            if !std::mem::replace(&mut is_reached[function as usize], true) {
                work.extend(self.named(function));
            }
        }
        let unreached = self.names.iter().zip(is_reached).filter(|(_, is_reached)| !is_reached);
        unreached.map(|(&name, _)| name)
    }

    /// The strongly connected components, after R. Tarjan, "Depth-first search and linear graph algorithms",
    /// 1972, with a stack of its own in the place of recursion.
    fn find_components(&mut self) {
        /// When a function was reached, 0 for not yet, and the earliest that is known to be in a cycle with it.
        #[derive(Clone, Copy, Default)]
        struct Seen {
            number: u32,
            low: u32,
            is_open: bool,
        }
        let mut seen = vec![Seen::default(); self.names.len()];
        let mut count = 0;
        let mut open: Vec<u32> = Vec::new();
        let mut path: Vec<(u32, usize)> = Vec::new();
        for root in 0..self.names.len() as u32 {
            path.push((root, 0));
            while let Some(&mut (function, ref mut next)) = path.last_mut() {
                let own = function as usize;
                if *next == 0 {
                    if seen[own].number > 0 {
                        path.pop();
                        continue;
                    }
                    count += 1;
                    seen[own] = Seen { number: count, low: count, is_open: true };
                    open.push(function);
                }
                let callees = &self.named[self.first[own]..self.first[own + 1]];
                if let Some(&previous) = next.checked_sub(1).and_then(|at| callees.get(at)) {
                    let previous = seen[previous as usize];
                    if previous.is_open {
                        seen[own].low = seen[own].low.min(previous.low);
                    }
                }
                *next += 1;
                if let Some(&callee) = callees.get(*next - 1) {
                    self.facts[own].is_recursive |= callee == function;
                    if seen[callee as usize].number == 0 {
                        path.push((callee, 0));
                    }
                    continue;
                }
                path.pop();
                if seen[own].low == seen[own].number {
                    let first = open.iter().rposition(|&other| other == function).unwrap_or(0);
                    let is_cycle = open.len() - first > 1;
                    for member in open.drain(first..).rev() {
                        seen[member as usize].is_open = false;
                        self.facts[member as usize].is_recursive |= is_cycle;
                        self.order.push(member);
                    }
                }
            }
        }
    }
}
