//! Asking for rules.

use std::collections::HashMap;
use std::marker::PhantomData;

use crate::abi::host::Host;
use crate::ir::{Context, Expr, Symbol, Term};
use crate::pass::{PassContext, PassError, Result, Rewriter};

use super::{Facet, Reply};

/// The rules of a facet, for whoever asks.
pub struct Rules<F> {
    host: Host,
    facet: Symbol,
    /// By key, whether there is a rule: most calls have none.
    known: HashMap<Symbol, bool>,
    of: PhantomData<F>,
}

impl PassContext {
    /// The rules of a facet, of all plugins that may be used.
    pub fn rules<F: Facet>(&self) -> Rules<F> {
        Rules::new(self.host())
    }
}

impl<F: Facet> Rules<F> {
    pub(crate) fn new(host: &Host) -> Self {
        let facet = host.symbol(F::NAME);
        Self { host: host.clone(), facet, known: HashMap::new(), of: PhantomData }
    }

    /// Whether there is a rule for a key.
    ///
    /// # Errors
    /// When the rules of this key cannot be used: two of them come first.
    pub fn has(&mut self, key: Symbol) -> Result<bool> {
        if let Some(&is_there) = self.known.get(&key) {
            return Ok(is_there);
        }
        let count = self.host.rule_count(self.facet, key, 0).map_err(PassError::new)?;
        self.known.insert(key, count > 0);
        Ok(count > 0)
    }

    /// Asks the rules for a key about nodes of the function that `rw` edits, the best one first, until one answers.
    ///
    /// # Errors
    /// When a rule fails, or the rules of this key cannot be used.
    pub fn ask(
        &mut self,
        rw: &mut Rewriter,
        key: Symbol,
        nodes: &[Expr],
        data: Term,
    ) -> Result<Option<Reply>> {
        if !self.has(key)? {
            return Ok(None);
        }
        let names = [self.facet, key];
        let answer = self.host.ask(names, 0, Some(rw.transaction()), nodes, data);
        let answer = answer.map_err(PassError::new)?;
        Ok(answer.map(|(nodes, data)| Reply { nodes, data }))
    }
}
