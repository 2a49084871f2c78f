//! Modules: functions by name, and attributes.

use std::sync::Arc;

use tenon_plugin_api::ir::{Attrs, Context, Symbol, SymbolMap};

use super::{Cx, Function};

/// The phases of compilation, in order. A module's attribute `phase` names the one it is in.
pub const PHASES: &[&str] =
    &["ingest", "optimize", "legalize", "fuse", "plan", "target", "builtin"];

/// An ordered map from names to functions, with attributes. Cloning it shares the functions.
#[derive(Clone, Debug)]
pub struct Module {
    cx: Cx,
    /// The module's attributes.
    pub attrs: Attrs,
    /// Copied when it is first written to while shared.
    table: Arc<Table>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    /// The functions in order. A removed one leaves a gap, so that removing many stays cheap; there are no more gaps than
    /// functions.
    functions: Vec<Option<(Symbol, Arc<Function>)>>,
    /// Where each stands.
    places: SymbolMap<usize>,
}

impl Table {
    fn insert(&mut self, name: Symbol, function: Arc<Function>) {
        let end = self.functions.len();
        let place = *self.places.entry(name).or_insert(end);
        match self.functions.get_mut(place) {
            Some(slot) => *slot = Some((name, function)),
            None => self.functions.push(Some((name, function))),
        }
    }

    fn remove(&mut self, name: Symbol) {
        let Some(place) = self.places.remove(&name) else { return };
        self.functions[place] = None;
        // Each gap pays for one step of this.
        if self.functions.len() > 2 * self.places.len() {
            self.functions.retain(Option::is_some);
            let names = self.functions.iter().flatten().map(|(name, _)| *name);
            self.places = names.enumerate().map(|(place, name)| (name, place)).collect();
        }
    }
}

impl Module {
    /// An empty module.
    pub fn new(cx: Cx) -> Self {
        Self { cx, attrs: Attrs::NONE, table: Arc::default() }
    }

    /// The context of its terms.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// The functions in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Symbol, &Arc<Function>)> {
        self.table.functions.iter().flatten().map(|(name, function)| (*name, function))
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.table.places.len()
    }

    /// Whether there is no function.
    pub fn is_empty(&self) -> bool {
        self.table.places.is_empty()
    }

    /// The function called `name`.
    pub fn get(&self, name: Symbol) -> Option<&Arc<Function>> {
        let place = *self.table.places.get(&name)?;
        self.table.functions[place].as_ref().map(|(_, function)| function)
    }

    /// The function whose name has this text.
    pub fn get_str(&self, name: &str) -> Option<&Arc<Function>> {
        self.get(self.cx.symbol(name))
    }

    /// Sets a function: in place when there is one of this name, at the end otherwise.
    pub fn insert(&mut self, name: Symbol, function: Arc<Function>) {
        debug_assert!(function.cx().is_same(&self.cx), "a function of another context");
        Arc::make_mut(&mut self.table).insert(name, function);
    }

    /// Removes a function.
    pub fn remove(&mut self, name: Symbol) {
        if self.table.places.contains_key(&name) {
            Arc::make_mut(&mut self.table).remove(name);
        }
    }

    /// Removes the functions for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(Symbol, &Arc<Function>) -> bool) {
        let gone: Vec<Symbol> = self
            .iter()
            .filter(|&(name, function)| !keep(name, function))
            .map(|(name, _)| name)
            .collect();
        for name in gone {
            self.remove(name);
        }
    }

    /// The phase it is in; the first one when nothing is said.
    pub fn phase(&self) -> &str {
        self.said_phase().unwrap_or(PHASES[0])
    }

    /// The phase that it says it is in.
    pub fn said_phase(&self) -> Option<&str> {
        self.cx.terms().attrs(self.attrs).str("phase")
    }

    /// A name that no function has: `base`, or `base` with the first free number.
    pub fn fresh_name(&self, base: &str) -> Symbol {
        let plain = self.cx.symbol(base);
        if !self.table.places.contains_key(&plain) {
            return plain;
        }
        (1u64..)
            .map(|number| self.cx.symbol(&format!("{base}_{number}")))
            .find(|name| !self.table.places.contains_key(name))
            .expect("some number is free")
    }

    /// Whether both hold the very same function objects under the same names and attributes.
    pub fn is_identical(&self, other: &Module) -> bool {
        if self.attrs != other.attrs {
            return false;
        }
        Arc::ptr_eq(&self.table, &other.table)
            || (self.len() == other.len()
                && self.iter().zip(other.iter()).all(|(a, b)| a.0 == b.0 && Arc::ptr_eq(a.1, b.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Source;
    use crate::text::{NoWeights, parse_module};

    #[test]
    fn functions_keep_their_order_when_most_are_removed() {
        let text: String =
            (0..9).map(|n| format!("fn @f{n}(%x: f32[4]) {{\n  ret %x\n}}\n\n")).collect();
        let mut module =
            parse_module(&Cx::new(), &Source::new("test", &text), &mut NoWeights).unwrap();
        let shared = module.clone();
        let name = |n: usize| module.cx().symbol(&format!("f{n}"));
        let names: Vec<Symbol> = (0..9).map(name).collect();
        let first = Arc::clone(module.get(names[0]).unwrap());
        for gone in [0, 8, 2, 3, 5, 6] {
            module.remove(names[gone]);
            assert!(module.get(names[gone]).is_none());
        }
        module.insert(names[0], Arc::clone(&first));
        module.insert(names[4], first);
        let left: Vec<Symbol> = module.iter().map(|(name, _)| name).collect();
        assert_eq!(left, [1, 4, 7, 0].map(|n| names[n]));
        assert_eq!((module.len(), shared.len()), (4, 9));
        assert!(module.iter().all(|(name, func)| Arc::ptr_eq(module.get(name).unwrap(), func)));
    }
}
