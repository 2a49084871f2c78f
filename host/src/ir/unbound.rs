//! Symbols that have no value where one is needed, in words.

use rustc_hash::FxHashSet;

use super::{Dim, DimView, Terms};

/// Symbols that a message names.
const MOST_NAMED: usize = 8;

/// The names of symbols that need a value.
#[derive(Debug)]
pub(crate) struct Unbound {
    names: Vec<String>,
}

impl Unbound {
    /// The first symbols of `dims`, in the order in which they are written; `None` where there is none.
    pub(crate) fn in_dims(terms: Terms<'_>, dims: impl IntoIterator<Item = Dim>) -> Option<Self> {
        let mut pending: Vec<Dim> = dims.into_iter().collect();
        pending.reverse();
        let (mut names, mut seen) = (Vec::new(), FxHashSet::default());
        while let Some(dim) = pending.pop().filter(|_| names.len() < MOST_NAMED) {
            if !seen.insert(dim) {
                continue;
            }
            match terms.dim(dim) {
                DimView::Symbol(name) => names.push(terms.str(name).to_owned()),
                DimView::Add(parts) | DimView::Mul(parts) => pending.extend(parts.iter().rev()),
                DimView::FloorDiv(a, b)
                | DimView::FloorMod(a, b)
                | DimView::Min(a, b)
                | DimView::Max(a, b) => pending.extend([b, a]),
                DimView::Const(_) | DimView::Unknown(_) => {}
            }
        }
        (!names.is_empty()).then_some(Self { names })
    }

    /// What is wrong.
    pub(crate) fn problem(&self) -> String {
        match self.names.as_slice() {
            [name] => format!("symbolic dimension {name} is not bound"),
            names => format!("symbolic dimensions {} are not bound", names.join(", ")),
        }
    }

    /// The pronoun for the symbols.
    pub(crate) fn them(&self) -> &'static str {
        if self.names.len() == 1 { "it" } else { "them" }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> String {
        let flags: Vec<String> = self.names.iter().map(|name| format!("-D {name}=…")).collect();
        let (flags, them) = (flags.join(" "), self.them());
        let rest = match self.names.len() {
            1 => "a number in its place",
            _ => "numbers in their places",
        };
        format!("give {flags} to import a model with {them}, or write {rest} in a text")
    }
}
