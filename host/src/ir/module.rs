//! Modules: functions by name, and attributes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tenon_plugin_api::ir::{Attrs, Context, Symbol};

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
    /// Functions by their place. A removed one leaves a gap, so that removing many stays cheap.
    functions: BTreeMap<u64, (Symbol, Arc<Function>)>,
    places: HashMap<Symbol, u64, rustc_hash::FxBuildHasher>,
    next_place: u64,
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
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Symbol, &Arc<Function>)> {
        self.table.functions.values().map(|(name, function)| (*name, function))
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.table.functions.len()
    }

    /// Whether there is no function.
    pub fn is_empty(&self) -> bool {
        self.table.functions.is_empty()
    }

    /// The function called `name`.
    pub fn get(&self, name: Symbol) -> Option<&Arc<Function>> {
        let place = self.table.places.get(&name)?;
        self.table.functions.get(place).map(|(_, function)| function)
    }

    /// The function whose name has this text.
    pub fn get_str(&self, name: &str) -> Option<&Arc<Function>> {
        self.get(self.cx.symbol(name))
    }

    /// Sets a function: in place when there is one of this name, at the end otherwise.
    pub fn insert(&mut self, name: Symbol, function: Arc<Function>) {
        debug_assert!(function.cx().is_same(&self.cx), "a function of another context");
        let table = Arc::make_mut(&mut self.table);
        let place = *table.places.entry(name).or_insert_with(|| {
            table.next_place += 1;
            table.next_place
        });
        table.functions.insert(place, (name, function));
    }

    /// Removes a function.
    pub fn remove(&mut self, name: Symbol) {
        if !self.table.places.contains_key(&name) {
            return;
        }
        let table = Arc::make_mut(&mut self.table);
        if let Some(place) = table.places.remove(&name) {
            table.functions.remove(&place);
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
