//! Modules: functions by name, and attributes.

use std::collections::HashMap;
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
    names: Vec<Symbol>,
    functions: HashMap<Symbol, Arc<Function>, rustc_hash::FxBuildHasher>,
}

impl Module {
    /// An empty module.
    pub fn new(cx: Cx) -> Self {
        Self { cx, attrs: Attrs::NONE, names: Vec::new(), functions: HashMap::default() }
    }

    /// The context of its terms.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// The functions in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Symbol, &Arc<Function>)> {
        self.names.iter().map(|name| (*name, &self.functions[name]))
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no function.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The function called `name`.
    pub fn get(&self, name: Symbol) -> Option<&Arc<Function>> {
        self.functions.get(&name)
    }

    /// The function whose name has this text.
    pub fn get_str(&self, name: &str) -> Option<&Arc<Function>> {
        self.get(self.cx.symbol(name))
    }

    /// Sets a function: in place when there is one of this name, at the end otherwise.
    pub fn insert(&mut self, name: Symbol, function: Arc<Function>) {
        debug_assert!(function.cx.is_same(&self.cx), "a function of another context");
        if self.functions.insert(name, function).is_none() {
            self.names.push(name);
        }
    }

    /// Removes the functions for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(Symbol, &Arc<Function>) -> bool) {
        let functions = &mut self.functions;
        self.names.retain(|&name| {
            let kept = keep(name, &functions[&name]);
            if !kept {
                functions.remove(&name);
            }
            kept
        });
    }

    /// The phase it is in; the first one when nothing is said.
    pub fn phase(&self) -> &str {
        self.cx.terms().attrs(self.attrs).str("phase").unwrap_or(PHASES[0])
    }

    /// A name that no function has: `base`, or `base` with the first free number.
    pub fn fresh_name(&self, base: &str) -> Symbol {
        let plain = self.cx.symbol(base);
        if !self.functions.contains_key(&plain) {
            return plain;
        }
        (1..)
            .map(|number| self.cx.symbol(&format!("{base}_{number}")))
            .find(|name| !self.functions.contains_key(name))
            .expect("some number is free")
    }

    /// Whether both hold the very same function objects under the same names and attributes.
    pub fn is_identical(&self, other: &Module) -> bool {
        self.attrs == other.attrs
            && self.names == other.names
            && self
                .names
                .iter()
                .all(|name| Arc::ptr_eq(&self.functions[name], &other.functions[name]))
    }
}
