//! Which variables and labels are visible where.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::Expr;

/// The names of one function. A name lives from its definition to the end of its scope.
#[derive(Default)]
pub(super) struct Names<'s> {
    vars: FxHashMap<Cow<'s, str>, Entry>,
    labels: FxHashMap<u32, Entry>,
    is_open: Vec<bool>,
    open: Vec<u32>,
}

/// What a name stands for.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) expr: Expr,
    scope: u32,
    start: u32,
    end: u32,
}

impl Entry {
    /// Where it was defined.
    pub(super) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// What looking for a name gives.
pub(super) enum Found {
    Here(Entry),
    /// Defined in a scope that has ended.
    Ended(Entry),
    Nowhere,
}

impl<'s> Names<'s> {
    pub(super) fn open(&mut self) {
        self.open.push(self.is_open.len() as u32);
        self.is_open.push(true);
    }

    pub(super) fn close(&mut self) {
        if let Some(scope) = self.open.pop() {
            self.is_open[scope as usize] = false;
        }
    }

    /// Defines a variable; the error is its visible definition.
    pub(super) fn define(
        &mut self,
        name: Cow<'s, str>,
        expr: Expr,
        span: Range<usize>,
    ) -> Result<(), Entry> {
        let entry = self.entry(expr, span);
        let is_open = &self.is_open;
        match self.vars.insert(name, entry) {
            Some(old) if is_open[old.scope as usize] => Err(old),
            _ => Ok(()),
        }
    }

    /// Defines a label; the error is its visible definition.
    pub(super) fn label(
        &mut self,
        label: u32,
        expr: Expr,
        span: Range<usize>,
    ) -> Result<(), Entry> {
        let entry = self.entry(expr, span);
        let is_open = &self.is_open;
        match self.labels.insert(label, entry) {
            Some(old) if is_open[old.scope as usize] => Err(old),
            _ => Ok(()),
        }
    }

    fn entry(&self, expr: Expr, span: Range<usize>) -> Entry {
        let scope = self.open.last().copied().unwrap_or(0);
        Entry { expr, scope, start: span.start as u32, end: span.end as u32 }
    }

    pub(super) fn find(&self, name: &str) -> Found {
        self.found(self.vars.get(name))
    }

    pub(super) fn find_label(&self, label: u32) -> Found {
        self.found(self.labels.get(&label))
    }

    fn found(&self, entry: Option<&Entry>) -> Found {
        match entry {
            Some(&entry) if self.is_open[entry.scope as usize] => Found::Here(entry),
            Some(&entry) => Found::Ended(entry),
            None => Found::Nowhere,
        }
    }

    /// The visible variables, in no particular order.
    pub(super) fn visible(&self) -> impl Iterator<Item = &str> {
        let is_open = |entry: &Entry| self.is_open[entry.scope as usize];
        self.vars.iter().filter(move |(_, entry)| is_open(entry)).map(|(name, _)| name.as_ref())
    }
}
