//! What functions say that their code is for, as passes over them read it.

use std::collections::HashMap;

use tenon_plugin_api::program::TARGET;

use crate::ir::{Attrs, Context, Function, Module, Term, TermView};
use crate::target::Target;

/// The targets that the functions of a module name, each looked up once.
pub(super) struct OwnTargets {
    of_module: Attrs,
    by_name: HashMap<Term, Attrs>,
}

impl OwnTargets {
    pub(super) fn of(module: &Module, of_module: Attrs) -> Self {
        let (cx, mut by_name) = (module.cx(), HashMap::new());
        for (_, function) in module.iter() {
            let Some(name) = named(function) else { continue };
            // One that is not known is an error of the checker, and of whoever makes code.
            if let TermView::Str(text) = cx.terms().view(name)
                && let Ok(target) = Target::parse(text)
            {
                by_name.entry(name).or_insert_with(|| target.attrs(cx));
            }
        }
        Self { of_module, by_name }
    }

    /// That of a function: its own, or the module's.
    pub(super) fn of_function(&self, function: &Function) -> Attrs {
        let own = named(function).and_then(|name| self.by_name.get(&name));
        own.copied().unwrap_or(self.of_module)
    }
}

fn named(function: &Function) -> Option<Term> {
    let body = function.view();
    body.terms().attrs(body.attrs(body.root())).term(TARGET)
}
