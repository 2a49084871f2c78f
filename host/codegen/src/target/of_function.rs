//! What functions say that their code is for.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tenon_plugin_api::program::TARGET;

use super::Target;
use tenon_ir::{Attrs, Context, Cx, Function, Term, TermView};

/// The targets of a module's functions, as passes and rules read them: of those that functions name each is looked up once.
#[derive(Debug)]
pub struct TargetsOfFunctions {
    of_module: Attrs,
    by_name: Mutex<HashMap<Term, Option<Attrs>>>,
}

impl TargetsOfFunctions {
    /// Those of a module that is compiled for one.
    pub fn new(of_module: Attrs) -> Self {
        Self { of_module, by_name: Mutex::default() }
    }

    /// What the module is compiled for.
    pub fn of_module(&self) -> Attrs {
        self.of_module
    }

    /// That of a function: its own, or the module's. One that is not known is an error of the checker, and of whoever makes code.
    pub fn of(&self, cx: &Cx, function: &Function) -> Attrs {
        let body = function.view();
        let named = body.terms().attrs(body.attrs(body.root())).term(TARGET);
        let Some(name) = named else { return self.of_module };
        // Nothing panics while the lock is held.
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let own = *by_name.entry(name).or_insert_with(|| match cx.terms().view(name) {
            TermView::Str(text) => Target::parse(text).ok().map(|target| target.attrs(cx)),
            _ => None,
        });
        own.unwrap_or(self.of_module)
    }
}
