//! Rules across the border: asking a plugin's, and what the host does for those who ask and who answer.

use std::ptr::NonNull;
use std::sync::Arc;

use abi_stable::std_types::{RSlice, RStr};
use tenon_plugin_api::abi::layout::Table;
use tenon_plugin_api::abi::read;
use tenon_plugin_api::abi::tables::{HostRules, NONE, RawEdit, RawRun, RuleTable};
use tenon_plugin_api::op::OpError;

use super::edit::has_term;
use super::imports::{ImportSession, Lent, Refusal};
use super::operators::Noted;
use super::run::Call;
use super::tables::{answered, call_of, edit_of, host_ref, name_of, owned};
use crate::ir::{Rule, RuleCode, RuleQuestion, RuleReply};
use crate::services::ServiceError;

/// The rules of a library.
pub(crate) struct RuleLibrary {
    table: Table<RuleTable>,
    /// Runs what calls its code, and notes that it does. Its argument is the number of the rule.
    noted: Noted,
}

/// A rule of a library.
struct PluginRule {
    library: Arc<RuleLibrary>,
    index: u32,
}

/// Where what a rule is asked about stands.
pub(super) struct Site {
    /// The call that asks.
    asker: Arc<Call>,
    /// The transaction of the nodes; null where there is none.
    transaction: *mut RawEdit,
    /// The importer's state, where the nodes are values of a model.
    session: Option<NonNull<dyn ImportSession>>,
}

impl Site {
    /// A program that is being written, which nobody else uses as long as this is asked from.
    pub(super) fn of_program(asker: Arc<Call>, transaction: *mut RawEdit) -> Self {
        Self { asker, transaction, session: None }
    }

    /// The transaction; null where there is none.
    pub(super) fn transaction(&self) -> *mut RawEdit {
        self.transaction
    }

    /// A node of a model, whose importer is not used in another way as long as this is asked from.
    pub(super) fn of_node(asker: Arc<Call>, session: NonNull<dyn ImportSession>) -> Self {
        Self { asker, transaction: std::ptr::null_mut(), session: Some(session) }
    }
}

impl RuleLibrary {
    /// The rules of a library that is open.
    pub(crate) fn new(table: Table<RuleTable>, noted: Noted) -> Self {
        Self { table, noted }
    }

    /// The rules of a table in this program.
    pub(crate) fn linked(table: &'static RuleTable) -> Self {
        // SAFETY: it is a table of this build, and lives for ever.
        let table = unsafe { Table::new(table) };
        Self::new(table.expect("a table of this build is whole"), Box::new(|_, run| run()))
    }

    /// Rule `index`, which there is.
    pub(crate) fn rule(self: &Arc<Self>, index: u32) -> Arc<dyn RuleCode> {
        Arc::new(PluginRule { library: self.clone(), index })
    }
}

impl RuleCode for PluginRule {
    fn ask(&self, question: &RuleQuestion<'_>) -> Result<Option<RuleReply>, OpError> {
        let Some(site) = question.site.downcast_ref::<Site>() else {
            return Err(OpError::Broken("it is asked from nowhere".into()));
        };
        let call = site.asker.of_rule();
        if let Some(session) = site.session {
            call.lend(Lent::new(session));
        }
        let (table, nodes) = (self.library.table, RSlice::from_slice(question.nodes));
        let mut is_done = false;
        // SAFETY: the table's layout was checked; the call lives until it returns, and the asker lends the transaction.
        let mut ask = || unsafe {
            is_done =
                table.apply()(self.index, host_ref(&call), site.transaction, nodes, question.data);
        };
        (self.library.noted)(self.index, &mut ask);
        // Whoever has kept the call finds no session behind it from now on.
        let lent = call.take_lent();
        if let (Some(lent), Some(kind)) = (lent, call.failure_kind())
            && let Some(failure) = call.failure()
        {
            lent.tell(Refusal::new(kind, failure.message.clone()));
        }
        match call.failure() {
            Some(failure) if failure.is_panic => Err(OpError::Broken(failure.message.clone())),
            Some(failure) => Err(OpError::Told(failure.message.clone())),
            None if !is_done => Err(OpError::Broken("it fails and does not say why".into())),
            None => {
                let (reply, why) = (call.take_reply(), call.take_why());
                if let (None, Some(why)) = (&reply, why) {
                    site.asker.with_heard(|heard| heard.declined.push(why));
                }
                site.asker.keep(call);
                Ok(reply)
            }
        }
    }
}

/// Asks rules in turn, until one answers.
pub(super) fn first_answer(
    rules: &[Rule],
    name: &str,
    question: &RuleQuestion<'_>,
) -> Result<Option<RuleReply>, ServiceError> {
    for rule in rules {
        match rule.code.ask(question) {
            Ok(None) => {}
            Ok(Some(reply)) => return Ok(Some(reply)),
            Err(OpError::Told(what)) => return Err(ServiceError::Refused(what)),
            Err(OpError::Broken(what)) => {
                let (name, provider) = (name.to_owned(), rule.provider.to_string());
                return Err(ServiceError::Rule { name, provider, what });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

unsafe extern "C" fn find(run: *const RawRun, facet: u32, key: u32, version: u64) -> u32 {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return NONE };
    let find = || {
        let cx = &call.run.cx;
        let (facet, key) = (name_of(cx, facet)?, name_of(cx, key)?);
        if !call.may_ask(facet) {
            return Err(ServiceError::NotDeclared(facet.to_owned()));
        }
        let rules = cx.operators().rules(facet, key, version)?;
        Ok::<_, ServiceError>(match rules.is_empty() {
            true => 0,
            false => call.run.keep_rules(format!("{facet}:{key}"), rules),
        })
    };
    answered(call, find).unwrap_or(NONE)
}

unsafe extern "C" fn ask(
    run: *const RawRun,
    rules: u32,
    transaction: *mut RawEdit,
    nodes: RSlice<'_, u32>,
    data: u32,
) -> u32 {
    // SAFETY: see `mod.rs`.
    let Some(asker) = (unsafe { owned(run.cast::<Call>()) }) else { return NONE };
    let call = asker.clone();
    let ask = || {
        let cx = &call.run.cx;
        if !has_term(cx, data) {
            return Err(ServiceError::NoTerm(data));
        }
        let found = call.run.kept_rules(rules).ok_or(ServiceError::NoRules(rules))?;
        call.with_heard(|heard| heard.declined.clear());
        let site = Site { asker, transaction, session: None };
        let question = RuleQuestion { cx, nodes: read::slice(nodes), data, site: &site };
        first_answer(&found.1, &found.0, &question)
    };
    match answered(&call, ask) {
        None => NONE,
        Some(None) => 0,
        Some(Some(reply)) => {
            call.with_heard(|heard| heard.answer = reply);
            1
        }
    }
}

unsafe extern "C" fn answered_nodes(run: *const RawRun) -> RSlice<'static, u32> {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return RSlice::from_slice(&[]) };
    call.with_heard(|heard| {
        let nodes = &heard.answer.nodes;
        // SAFETY: the list stays where it is until this thread asks again; the lifetime is the plugin's promise not to read
        // it then.
        RSlice::from_slice(unsafe { std::slice::from_raw_parts(nodes.as_ptr(), nodes.len()) })
    })
}

unsafe extern "C" fn answered_data(run: *const RawRun) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { call_of(run) }.map_or(0, |call| call.with_heard(|heard| heard.answer.data))
}

unsafe extern "C" fn answer(run: *const RawRun, nodes: RSlice<'_, u32>, data: u32) -> bool {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return false };
    let take = || match has_term(&call.run.cx, data) {
        true => Ok(RuleReply { nodes: read::slice(nodes).to_vec(), data }),
        false => Err(ServiceError::NoTerm(data)),
    };
    let reply = answered(call, take);
    let is_taken = reply.is_some();
    call.set_reply(reply);
    is_taken
}

unsafe extern "C" fn decline(run: *const RawRun, why: RStr<'_>) {
    // SAFETY: see `mod.rs`.
    if let Some(call) = unsafe { call_of(run) } {
        let why = read::readable(why);
        // An empty text ends the list.
        if !why.is_empty() {
            call.set_why(&why);
        }
    }
}

unsafe extern "C" fn declined(run: *const RawRun, index: u32) -> RStr<'static> {
    // SAFETY: see `mod.rs`.
    let Some(call) = (unsafe { call_of(run) }) else { return RStr::from_str("") };
    call.with_heard(|heard| {
        let why = heard.declined.get(index as usize).map_or("", |why| why);
        // SAFETY: the text stays where it is until this thread asks again; the lifetime is the plugin's promise not to read
        // it then.
        let bytes = unsafe { std::slice::from_raw_parts(why.as_ptr(), why.len()) };
        RStr::from_str(std::str::from_utf8(bytes).expect("a text stays a text"))
    })
}

unsafe extern "C" fn definition(transaction: *mut RawEdit, node: u32) -> u32 {
    // SAFETY: see `mod.rs`.
    unsafe { edit_of(transaction) }.map_or(NONE, |edit| edit.definition(node))
}

unsafe extern "C" fn is_nested_read(transaction: *mut RawEdit, node: u32) -> bool {
    // SAFETY: see `mod.rs`.
    unsafe { edit_of(transaction) }.is_some_and(|edit| edit.is_nested_read(node))
}

pub(super) static RULES: HostRules = HostRules {
    size: size_of::<HostRules>(),
    find,
    ask,
    answered_nodes,
    answered_data,
    answer,
    definition,
    is_nested_read,
    decline,
    declined,
};
