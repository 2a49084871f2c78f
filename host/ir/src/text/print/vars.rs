//! Names of variables: unique within a function, and those that the variables have where possible.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::text::names::{is_bare_var, write_quoted};
use crate::{BodyView, Expr, Kind, Symbol, Terms};

/// The names under which the variables and buffers of a function are written.
pub(super) struct Vars<'a> {
    terms: Terms<'a>,
    /// For those that cannot be called as they are.
    renamed: FxHashMap<u32, String>,
}

impl<'a> Vars<'a> {
    /// The first variable of a name keeps it; further ones get a number.
    pub(super) fn of(body: BodyView<'a>) -> Self {
        let terms = body.terms();
        let mut seen = FxHashSet::default();
        let mut rest = Vec::new();
        for expr in body.post_order() {
            let node = body.raw_node(expr);
            if matches!(Kind(node.kind), Kind::VAR | Kind::BUFFER) {
                let is_named = !terms.str(Symbol(node.data)).is_empty();
                if !is_named || !seen.insert(node.data) {
                    rest.push((expr, if is_named { node.data } else { 0 }));
                }
            }
        }
        let mut vars = Self { terms, renamed: FxHashMap::default() };
        if !rest.is_empty() {
            vars.rename(&seen, &rest);
        }
        vars
    }

    fn rename(&mut self, seen: &FxHashSet<u32>, rest: &[(Expr, u32)]) {
        let taken: FxHashSet<&str> =
            seen.iter().map(|&name| self.terms.str(Symbol(name))).collect();
        let mut given: FxHashSet<String> = FxHashSet::default();
        // The number to go on with, by name: a search never starts again.
        let mut next: FxHashMap<u32, u32> = FxHashMap::default();
        for &(expr, symbol) in rest {
            let base = if symbol == 0 { "v" } else { self.terms.str(Symbol(symbol)) };
            let number = next.entry(symbol).or_insert((symbol != 0) as u32);
            let name = loop {
                let name = match *number {
                    0 => base.to_owned(),
                    number => format!("{base}_{number}"),
                };
                *number += 1;
                if !taken.contains(name.as_str()) && !given.contains(&name) {
                    break name;
                }
            };
            given.insert(name.clone());
            self.renamed.insert(expr.0, name);
        }
    }

    /// The name of a variable or buffer whose symbol is `symbol`.
    fn name(&self, expr: Expr, symbol: Symbol) -> &str {
        match self.renamed.is_empty() {
            true => self.terms.str(symbol),
            false => match self.renamed.get(&expr.0) {
                Some(name) => name,
                None => self.terms.str(symbol),
            },
        }
    }

    /// Writes a variable with its sigil.
    pub(super) fn write(&self, out: &mut String, expr: Expr, symbol: Symbol) {
        let name = self.name(expr, symbol);
        out.push('%');
        match is_bare_var(name) {
            true => out.push_str(name),
            false => write_quoted(out, name),
        }
    }
}
