//! Symbols that have no value where one is needed, in words.

use super::symbols::symbols_in;
use super::{Dim, Terms};

/// Symbols that a message names.
const MOST_NAMED: usize = 8;

/// The names of symbols that need a value.
#[derive(Debug)]
pub struct Unbound {
    names: Vec<String>,
}

impl Unbound {
    /// The first symbols of `dims`, in the order in which they are written; `None` where there is none.
    pub fn in_dims(terms: Terms<'_>, dims: impl IntoIterator<Item = Dim>) -> Option<Self> {
        let names = symbols_in(terms, dims).take(MOST_NAMED);
        let names: Vec<String> = names.map(|name| terms.str(name).to_owned()).collect();
        (!names.is_empty()).then_some(Self { names })
    }

    /// What is wrong.
    pub fn problem(&self) -> String {
        match self.names.as_slice() {
            [name] => format!("symbolic dimension {name} is not bound"),
            names => format!("symbolic dimensions {} are not bound", names.join(", ")),
        }
    }

    /// The pronoun for the symbols.
    pub fn them(&self) -> &'static str {
        if self.names.len() == 1 { "it" } else { "them" }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        let flags: Vec<String> = self.names.iter().map(|name| format!("-D {name}=…")).collect();
        let (flags, them) = (flags.join(" "), self.them());
        let rest = match self.names.len() {
            1 => "a number in its place",
            _ => "numbers in their places",
        };
        format!("give {flags} to import a model with {them}, or write {rest} in a text")
    }
}
