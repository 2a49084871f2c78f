//! A plugin's own side of the border, of its rules: what `#[rule]` expands to.

use std::sync::OnceLock;

use abi_stable::std_types::{RSlice, RStr};

use super::guard::guard;
use super::host::Host;
use super::plugin::told;
use super::read;
use super::tables::{HostRef, RawEdit, RuleTable};
use crate::ir::Term;
use crate::pass::{PassError, Result};
use crate::rule::{Knob, Question, Reply};

/// A rule as `#[rule]` registers it.
pub struct RuleItem {
    /// Its facet.
    pub facet: &'static str,
    /// What it is about.
    pub key: &'static str,
    /// Its function, with the module that it stands in.
    pub name: &'static str,
    /// What it lets others choose.
    pub knobs: &'static [Knob],
    /// Of several rules for one key the one with the greatest benefit is asked first.
    pub benefit: u32,
    /// The first version in which it holds.
    pub since: u64,
    /// The last one.
    pub until: u64,
    /// Its manifest record.
    pub manifest: &'static str,
    /// Its code; it declines with nothing.
    pub apply: fn(Question<'_>) -> Result<Option<Reply>>,
}

/// The rules of this library. The linker collects them; no code runs at load.
#[linkme::distributed_slice]
pub static RULES: [RuleItem];

/// The rules in the order of their records: the linker's order differs between builds.
pub fn rules() -> &'static [&'static RuleItem] {
    static SORTED: OnceLock<Vec<&'static RuleItem>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut items: Vec<_> = RULES.iter().collect();
        items.sort_by_key(|item| (item.facet, item.key, item.manifest));
        items
    })
}

unsafe extern "C" fn count() -> u32 {
    rules().len() as u32
}

unsafe extern "C" fn facet(index: u32) -> RStr<'static> {
    RStr::from_str(rules().get(index as usize).map_or("", |item| item.facet))
}

unsafe extern "C" fn key(index: u32) -> RStr<'static> {
    RStr::from_str(rules().get(index as usize).map_or("", |item| item.key))
}

unsafe extern "C" fn apply(
    index: u32,
    host: HostRef,
    transaction: *mut RawEdit,
    nodes: RSlice<'_, u32>,
    data: u32,
) -> bool {
    // SAFETY: the caller is a host that upholds the contract of `RuleTable::apply`: `host` is valid during the call.
    let Ok(host) = (unsafe { Host::new(host) }) else { return false };
    // SAFETY: as above: nobody else uses the transaction until this returns.
    let ran = guard(|| unsafe { ask(index, &host, transaction, read::slice(nodes), data) });
    told(&host, ran).is_some()
}

/// # Safety
/// `transaction` is null or a transaction of this host that nobody else uses meanwhile.
unsafe fn ask(
    index: u32,
    host: &Host,
    transaction: *mut RawEdit,
    nodes: &[u32],
    data: u32,
) -> Result<()> {
    let item = rules().get(index as usize).copied();
    let item = item.ok_or_else(|| PassError::new(format!("this library has no rule {index}")))?;
    let transaction = match transaction.is_null() {
        true => None,
        // SAFETY: by this function's contract.
        false => Some(unsafe { host.borrowed(transaction) }.map_err(PassError::new)?),
    };
    let (nodes, data) = (read::exprs(nodes), Term(data));
    let question = Question { host: host.clone(), transaction, rule: item, nodes, data };
    match (item.apply)(question)? {
        Some(reply) => host.answer(&reply.nodes, reply.data).map_err(PassError::new),
        None => Ok(()),
    }
}

/// The rules of this library, as a host is handed them.
pub static TABLE: RuleTable = RuleTable { size: size_of::<RuleTable>(), count, facet, key, apply };
