//! Names of lifted functions.
//!
//! Rounds, each over all that have no name yet: the name that `global_symbol` gives; the function of the module
//! and the variable, `main_inner`; those of the functions around it too, `main_outer_inner`; and `main_inner_0`,
//! with the first number that is free. In a round a name is taken when nobody has it and one function asks for it.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

use super::captures::Nest;

/// So many variables stand in a name at most.
const MAX_PATH: usize = 8;

/// Gives a name to every function but those of the module.
pub(super) fn choose(nests: &mut [Nest<'_>], module: &Module, cx: &PassContext) -> Result<()> {
    let mut unnamed: Vec<(usize, usize)> = Vec::new();
    let mut taken: HashSet<Symbol> = HashSet::new();
    for (number, nest) in nests.iter_mut().enumerate() {
        for level in 0..nest.root() {
            let Some(name) = own_name(nest, level) else {
                unnamed.push((number, level));
                continue;
            };
            let symbol = cx.symbol(&name);
            if module.get(symbol).is_some() || !taken.insert(symbol) {
                let node = nest.levels[level].node;
                let message = format!(
                    "there is a function `@{name}` already; give this one another `global_symbol`"
                );
                return Err(PassError::new(message).at(node));
            }
            nest.levels[level].global = symbol;
        }
    }
    for proposal in [short_name, long_name] {
        let names: Vec<Symbol> = unnamed
            .iter()
            .map(|&(nest, level)| cx.symbol(&proposal(&nests[nest], level)))
            .collect();
        let mut askers: HashMap<Symbol, usize> = HashMap::new();
        names.iter().for_each(|&name| *askers.entry(name).or_default() += 1);
        let mut names = names.into_iter();
        unnamed.retain(|&(nest, level)| {
            let name = names.next().expect("each proposes one");
            let is_free = askers[&name] == 1 && module.get(name).is_none() && taken.insert(name);
            if is_free {
                nests[nest].levels[level].global = name;
            }
            !is_free
        });
    }
    let mut next: HashMap<String, usize> = HashMap::new();
    for (nest, level) in unnamed {
        let base = short_name(&nests[nest], level);
        let number = next.entry(base.clone()).or_default();
        nests[nest].levels[level].global = loop {
            let name = cx.symbol(&format!("{base}_{number}"));
            *number += 1;
            if module.get(name).is_none() && taken.insert(name) {
                break name;
            }
        };
    }
    Ok(())
}

fn own_name(nest: &Nest<'_>, level: usize) -> Option<String> {
    let body = nest.func.view();
    let attrs = body.terms().attrs(body.attrs(nest.levels[level].node));
    attrs.str("global_symbol").map(str::to_owned)
}

fn short_name(nest: &Nest<'_>, level: usize) -> String {
    format!("{}_{}", nest.name, var_name(nest, level))
}

fn long_name(nest: &Nest<'_>, level: usize) -> String {
    let mut path = vec![var_name(nest, level)];
    let mut at = nest.levels[level].parent;
    while let Some(outer) = at.filter(|&outer| outer != nest.root() && path.len() < MAX_PATH) {
        path.push(var_name(nest, outer));
        at = nest.levels[outer].parent;
    }
    path.push(nest.name);
    path.reverse();
    path.join("_")
}

/// The name of the variable that a function is bound to.
fn var_name<'a>(nest: &Nest<'a>, level: usize) -> &'a str {
    let body = nest.func.view();
    match nest.levels[level].var.map(|var| body.view(var)) {
        Some(View::Var { name }) => body.terms().str(name),
        _ => "fn",
    }
}
