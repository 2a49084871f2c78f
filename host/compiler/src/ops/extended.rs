//! A book with operators and rules of a program's own, above those of another one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tenon_plugin_api::op::OpError;

use crate::ir::{Evaluation, OpBook, OpCode, OpDef, Origin, Rule, RuleCode};
use crate::registry::{OpRecord, Reason};

/// Operators and rules of a program's own. Its rules are asked before those of the other book, the greatest benefit first.
pub struct Extended {
    base: Arc<dyn OpBook>,
    ops: HashMap<String, Arc<OpDef>>,
    /// By facet and key.
    rules: HashMap<(String, String), Vec<(i64, Rule)>>,
}

impl Extended {
    /// Nothing more than a book has.
    pub fn over(base: Arc<dyn OpBook>) -> Self {
        Self { base, ops: HashMap::new(), rules: HashMap::new() }
    }

    /// One more operator: its record, as a manifest has it, and its code.
    ///
    /// # Errors
    /// What is wrong with the record, or that there is an operator of this name.
    pub fn with_op(mut self, record: &str, code: Arc<dyn Evaluation>) -> Result<Self, Reason> {
        let record = OpRecord::parse(record)?;
        let name = record.name.clone();
        if self.base.find(&name).is_some() || self.ops.contains_key(&name) {
            return Err(format!("there is an operator `{name}` already").into());
        }
        let def = OpDef::new(record.to_schema(), OpCode::Plugin(code));
        self.ops.insert(name, Arc::new(def));
        Ok(self)
    }

    /// One more rule, of whoever is told of as its provider.
    pub fn with_rule(
        mut self,
        facet: &str,
        key: &str,
        benefit: i64,
        provider: &str,
        code: Arc<dyn RuleCode>,
    ) -> Self {
        let of_key = self.rules.entry((facet.to_owned(), key.to_owned())).or_default();
        of_key.push((benefit, Rule { provider: provider.into(), code }));
        of_key.sort_by_key(|(benefit, _)| Reverse(*benefit));
        self
    }
}

impl OpBook for Extended {
    fn get(&self, name: &str) -> Result<Arc<OpDef>, OpError> {
        match self.ops.get(name) {
            Some(op) => Ok(op.clone()),
            None => self.base.get(name),
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.base.names();
        names.extend(self.ops.keys().cloned());
        names.sort_unstable();
        names
    }

    fn canonical(&self, alias: &str) -> Option<String> {
        match self.ops.contains_key(alias) {
            true => None,
            false => self.base.canonical(alias),
        }
    }

    fn rules(&self, facet: &str, key: &str, version: u64) -> Result<Arc<[Rule]>, OpError> {
        let theirs = self.base.rules(facet, key, version)?;
        let Some(own) = self.rules.get(&(facet.to_owned(), key.to_owned())) else {
            return Ok(theirs);
        };
        Ok(own.iter().map(|(_, rule)| rule).chain(theirs.iter()).cloned().collect())
    }

    fn missing_rule(&self, facet: &str, key: &str) -> Vec<String> {
        self.base.missing_rule(facet, key)
    }

    fn searched(&self) -> Vec<PathBuf> {
        self.base.searched()
    }

    fn target_problem(&self, target: &str) -> Option<String> {
        self.base.target_problem(target)
    }

    /// Another process knows those of the other book alone.
    fn origin(&self) -> Origin {
        self.base.origin()
    }
}
