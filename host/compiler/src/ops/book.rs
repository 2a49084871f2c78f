//! Books of operators: the host's own before those of plugins, and those that are linked into this program.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tenon_plugin_api::abi::op::{TABLE, operators};
use tenon_plugin_api::abi::rule::{self, RuleItem};
use tenon_plugin_api::op::OpError;

use super::{is_own, own_operator, own_operators};
use crate::border::{OpLibrary, RuleLibrary};
use crate::ir::{OpBook, OpCode, OpDef, Origin, Rule};
use crate::suggest::several_nearest;
use crate::target::Target;

/// The host's own operators, and those of another book.
pub struct Combined(Arc<dyn OpBook>);

impl Combined {
    /// The host's own operators, and those of `plugins`.
    pub fn with_plugins(plugins: Arc<dyn OpBook>) -> Arc<dyn OpBook> {
        Arc::new(Self(plugins))
    }
}

impl OpBook for Combined {
    fn get(&self, name: &str) -> Result<Arc<OpDef>, OpError> {
        match own_operator(name) {
            Some(op) => Ok(op.clone()),
            None => self.0.get(name),
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.0.names();
        names.extend(own_operators().map(str::to_owned));
        names.sort_unstable();
        names
    }

    fn canonical(&self, alias: &str) -> Option<String> {
        match is_own(alias) {
            true => None,
            false => self.0.canonical(alias),
        }
    }

    fn rules(&self, facet: &str, key: &str, version: u64) -> Result<Arc<[Rule]>, OpError> {
        self.0.rules(facet, key, version)
    }

    fn missing_rule(&self, facet: &str, key: &str) -> Vec<String> {
        self.0.missing_rule(facet, key)
    }

    fn searched(&self) -> Vec<PathBuf> {
        self.0.searched()
    }

    fn target_problem(&self, target: &str) -> Option<String> {
        Target::parse(target).err().map(|error| error.to_string())
    }

    fn origin(&self) -> Origin {
        self.0.origin()
    }
}

/// The operators and rules that are linked into this program, as those of a plugin whose library it is.
pub struct Linked {
    operators: HashMap<&'static str, Arc<OpDef>>,
    /// By facet and key, the rules of the greatest benefit in front.
    rules: HashMap<(&'static str, &'static str), Vec<(&'static RuleItem, Rule)>>,
}

/// The host's own operators and those that are linked into this program: a program that uses this crate may link the
/// crates of plugins, in place of opening their libraries.
pub fn linked() -> Arc<dyn OpBook> {
    let library = Arc::new(OpLibrary::linked(&TABLE));
    let schemas = operators().iter().map(|item| item.schema);
    let defs = schemas.zip(0..).flat_map(|(schema, index)| {
        let def = Arc::new(OpDef::new(schema, OpCode::Plugin(library.operator(index))));
        let names = [schema.name].into_iter().chain(schema.aliases.iter().copied());
        names.map(move |name| (name, def.clone())).collect::<Vec<_>>()
    });
    Combined::with_plugins(Arc::new(Linked { operators: defs.collect(), rules: linked_rules() }))
}

fn linked_rules() -> HashMap<(&'static str, &'static str), Vec<(&'static RuleItem, Rule)>> {
    let library = Arc::new(RuleLibrary::linked(&rule::TABLE));
    let mut all: HashMap<_, Vec<_>> = HashMap::new();
    for (&item, index) in rule::rules().iter().zip(0..) {
        let code = Rule { provider: "linked".into(), code: library.rule(index) };
        all.entry((item.facet, item.key)).or_default().push((item, code));
    }
    all.values_mut().for_each(|of_key| of_key.sort_by_key(|(item, _)| Reverse(item.benefit)));
    all
}

impl OpBook for Linked {
    fn get(&self, name: &str) -> Result<Arc<OpDef>, OpError> {
        self.operators.get(name).cloned().ok_or_else(|| {
            let known = self.operators.keys().copied().chain(own_operators());
            let nearest = several_nearest(name, known, 3);
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            OpError::UnknownOp { name: name.to_owned(), nearest, searched: Vec::new() }
        })
    }

    fn names(&self) -> Vec<String> {
        self.operators.keys().map(|&name| name.to_owned()).collect()
    }

    fn rules(&self, facet: &str, key: &str, version: u64) -> Result<Arc<[Rule]>, OpError> {
        let all = self.rules.get(&(facet, key)).map_or(&[][..], Vec::as_slice);
        let held = all.iter().filter(|(item, _)| (item.since..=item.until).contains(&version));
        Ok(held.map(|(_, rule)| rule.clone()).collect())
    }
}
