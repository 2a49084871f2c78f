//! The dimensions of a model by name, and what the names stand for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ir::{Context, Cx, Dim};
use crate::onnx::proto::Dimension;

use super::OptionProblem;
use super::names::Names;

/// The dimensions by their names in the file. `-D` gives some of them a value; each other one is a symbol.
#[derive(Debug)]
pub(super) struct Dims<'o> {
    cx: Cx,
    bound: &'o BTreeMap<String, i64>,
    known: BTreeMap<String, Dim>,
    symbols: Rc<RefCell<Names>>,
    anonymous: usize,
}

impl<'o> Dims<'o> {
    pub(super) fn new(cx: Cx, bound: &'o BTreeMap<String, i64>) -> Self {
        Self { cx, bound, known: BTreeMap::new(), symbols: Rc::default(), anonymous: 0 }
    }

    /// A dimension of an input; `None` when it is negative.
    pub(super) fn of_input(&mut self, dimension: Dimension<'_>) -> Option<Dim> {
        match dimension {
            Dimension::Value(value) => (value >= 0).then(|| self.cx.dim(value)),
            Dimension::Param(name) => Some(self.named(name)),
            Dimension::Unknown => {
                let name = format!("unk_{}", self.anonymous);
                self.anonymous += 1;
                Some(self.named(&name))
            }
        }
    }

    /// A dimension that is declared elsewhere; `None` when nothing is known about it.
    pub(super) fn of_output(&self, dimension: Dimension<'_>) -> Option<Dim> {
        match dimension {
            Dimension::Value(value) => Some(self.cx.dim(value)),
            Dimension::Param(name) => self.known.get(name).copied(),
            Dimension::Unknown => None,
        }
    }

    /// A symbol of its own, called after `name`.
    pub(super) fn fresh(&mut self, name: &str) -> Dim {
        self.cx.dim_symbol(&self.symbols.borrow_mut().fresh(name))
    }

    /// The names of symbols, for who makes some.
    pub(super) fn symbols(&self) -> Rc<RefCell<Names>> {
        self.symbols.clone()
    }

    fn named(&mut self, name: &str) -> Dim {
        if let Some(&dim) = self.known.get(name) {
            return dim;
        }
        let dim = match self.bound.get(name) {
            Some(&value) => self.cx.dim(value),
            None => self.fresh(name),
        };
        self.known.insert(name.to_owned(), dim);
        dim
    }

    /// Checks that everything that is bound is a dimension and gets a possible value.
    pub(super) fn check(&self) -> Result<(), OptionProblem> {
        for (name, &value) in self.bound {
            if !self.known.contains_key(name) {
                let known = self.known.keys().cloned().collect();
                return Err(OptionProblem::UnknownDim { name: name.clone(), known });
            }
            if value < 0 {
                return Err(OptionProblem::BadDim { name: name.clone(), value });
            }
        }
        Ok(())
    }
}
