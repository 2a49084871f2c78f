//! Asking for rules.

use std::marker::PhantomData;

use crate::abi::host::Host;
use crate::ir::{Context, Expr, Symbol, Term};
use crate::pass::{PassContext, PassError, Result, Rewriter};

use super::{Facet, Reply};

const KNOWN: usize = 64;

/// The rules of a facet, for whoever asks.
pub struct Rules<F> {
    host: Host,
    facet: Symbol,
    /// Keys that were asked for, with the number that the host gave their rules: most have none. A key stands at the place that
    /// its symbol leads to.
    known: [Option<(Symbol, Option<u32>)>; KNOWN],
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
        Self { host: host.clone(), facet, known: [None; KNOWN], of: PhantomData }
    }

    /// Whether there is a rule for a key.
    ///
    /// # Errors
    /// When the rules of this key cannot be used: two of them come first.
    pub fn has(&mut self, key: Symbol) -> Result<bool> {
        self.find(key).map(|found| found.is_some())
    }

    fn find(&mut self, key: Symbol) -> Result<Option<u32>> {
        let place = &mut self.known[key.0 as usize % KNOWN];
        match place {
            Some((known, found)) if *known == key => Ok(*found),
            _ => {
                let found = self.host.find_rules(self.facet, key, 0).map_err(PassError::new)?;
                *place = Some((key, found));
                Ok(found)
            }
        }
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
        let Some(found) = self.find(key)? else { return Ok(None) };
        let answer = self.host.ask(found, Some(rw.transaction()), nodes, data);
        let answer = answer.map_err(PassError::new)?;
        Ok(answer.map(|(nodes, data)| Reply { nodes, data }))
    }

    /// What the rules said that declined what was asked last, each in a sentence that names the rule; most say nothing.
    pub fn declined(&self) -> Vec<String> {
        self.host.declined()
    }
}
