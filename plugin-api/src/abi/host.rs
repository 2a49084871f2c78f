//! The host as a plugin sees it: safe calls over the host's tables.

mod handles;
mod operators;

use std::ffi::c_void;
use std::sync::OnceLock;

use abi_stable::std_types::{RSlice, RStr};

use super::layout::{RawTable, Table};
use super::read::{self, TermTable};
use super::tables::{
    Failure, HostCodegen, HostImport, HostIr, HostOps, HostRef, HostRules, HostServices, NONE,
    Query, RawRun,
};
use crate::ir::{Context, Expr, Fit, Symbol, Term, TermKind, Terms};

pub(crate) use handles::{FunctionHandle, ModuleHandle, TransactionHandle};
pub(super) use operators::{HostOperators, Kept};

/// A counted reference to the state of one run, with the host's tables. It may be sent to threads.
pub struct Host {
    run: *const RawRun,
    tables: Tables,
}

/// The host's tables.
#[derive(Clone, Copy)]
struct Tables {
    ir: Table<HostIr>,
    services: Table<HostServices>,
    /// Absent in a host that knows of no code generators.
    codegen: Option<Table<HostCodegen>>,
    /// Absent in a host that knows of no operators of plugins.
    ops: Option<Table<HostOps>>,
    /// Absent in a host that knows of no rules.
    rules: Option<Table<HostRules>>,
    /// Absent in a host whose importer names operators itself.
    import: Option<Table<HostImport>>,
}

impl Tables {
    /// The tables of a host. They are valid for ever, so those of the host that asked first are found at once: an
    /// operator is called for every node.
    ///
    /// # Safety
    /// As for [`Host::new`].
    unsafe fn of(raw: HostRef) -> Result<Self, String> {
        static FIRST: OnceLock<(Query, Tables)> = OnceLock::new();
        match FIRST.get() {
            Some((query, tables)) if std::ptr::fn_addr_eq(*query, raw.query) => Ok(*tables),
            _ => {
                // SAFETY: by this function's contract.
                let tables = unsafe { Self::asked_for(raw)? };
                let _ = FIRST.set((raw.query, tables));
                Ok(tables)
            }
        }
    }

    /// # Safety
    /// As for [`Host::new`].
    unsafe fn asked_for(raw: HostRef) -> Result<Self, String> {
        // SAFETY: by this function's contract.
        unsafe {
            Ok(Self {
                ir: table(raw)?,
                services: table(raw)?,
                codegen: table(raw).ok(),
                ops: table(raw).ok(),
                rules: table(raw).ok(),
                import: table(raw).ok(),
            })
        }
    }
}

// SAFETY: the host's tables promise that the calls made here on a shared host are for any thread, and
// the run's state is counted atomically.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Clone for Host {
    fn clone(&self) -> Self {
        // SAFETY: `run` is alive because `self` owns it.
        unsafe { (self.tables.ir.run_retain())(self.run) };
        Self { run: self.run, tables: self.tables }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: `self` owns one count of `run`.
        unsafe { (self.tables.ir.run_release())(self.run) };
    }
}

impl Host {
    /// Takes the host's tables, and a count of the run.
    ///
    /// # Safety
    /// `raw` must come from a host that upholds the contract of [`HostRef`].
    pub(super) unsafe fn new(raw: HostRef) -> Result<Self, String> {
        // SAFETY: by this function's contract.
        let tables = unsafe { Tables::of(raw)? };
        // SAFETY: `run` is borrowed for the call.
        unsafe { (tables.ir.run_retain())(raw.run) };
        Ok(Self { run: raw.run, tables })
    }

    /// The options of the pass, a dictionary term.
    pub(crate) fn options(&self) -> Term {
        // SAFETY: `run` is alive.
        Term(unsafe { (self.tables.services.options())(self.run) })
    }

    /// The target, a dictionary term.
    pub(crate) fn target(&self) -> Term {
        // SAFETY: `run` is alive.
        Term(unsafe { (self.tables.services.target())(self.run) })
    }

    /// What the code of a function is for, a dictionary term. A host older than 1.1 knows that of the module.
    pub(crate) fn target_of(&self, function: &FunctionHandle) -> Term {
        match self.tables.services.target_of() {
            // SAFETY: `run` and the function are alive.
            Some(service) => Term(unsafe { service(self.run, function.raw) }),
            None => self.target(),
        }
    }

    /// Reports a message.
    pub(crate) fn report(&self, level: u32, text: &str) {
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.report())(self.run, level, RStr::from_str(text)) };
    }

    /// Whether the pass should stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.is_cancelled())(self.run) }
    }

    /// What is known of an operator.
    pub(crate) fn op_info(&self, name: Symbol) -> u32 {
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.op_info())(self.run, name.0) }
    }

    /// The tensor program of an operator call.
    pub(crate) fn legalize(
        &self,
        op: Symbol,
        attrs: Term,
        args: &[u32],
        result: Term,
        target: Term,
    ) -> Result<FunctionHandle, String> {
        let args = RSlice::from_slice(args);
        let services = self.tables.services;
        let function = match services.legalize_for() {
            // SAFETY: `run` is alive.
            Some(service) => unsafe { service(self.run, op.0, attrs.0, args, result.0, target.0) },
            // SAFETY: `run` is alive. A host older than 1.1 makes programs for one target.
            None => unsafe { (services.legalize())(self.run, op.0, attrs.0, args, result.0) },
        };
        FunctionHandle::adopt(self, function).ok_or_else(|| self.last_error())
    }

    /// Calls `item` for every index below `count`, by the host's threads. It does not unwind.
    pub(crate) fn parallel_for(
        &self,
        count: usize,
        item: &(dyn Fn(usize) + Sync),
    ) -> Result<(), String> {
        /// # Safety
        /// `state` is what `parallel_for` hands over.
        unsafe extern "C" fn call(state: *mut c_void, index: u64) {
            // SAFETY: `state` leads to the reference that `parallel_for` holds while the host calls.
            let item = unsafe { *state.cast::<&(dyn Fn(usize) + Sync)>() };
            item(index as usize);
        }
        let Some(service) = self.tables.services.parallel_for() else {
            return Err(no_service("parallel_for"));
        };
        let state = (&raw const item).cast_mut().cast();
        // SAFETY: `run` is alive; `item` is for any thread, and no call is left when the service returns.
        match unsafe { service(self.run, count as u64, Some(call), state) } {
            true => Ok(()),
            false => Err(self.last_error()),
        }
    }

    /// Has schedules of a module's programs measured; `None` where the module is that of a candidate.
    pub(crate) fn measure_schedules(
        &self,
        module: &ModuleHandle,
        how: Term,
    ) -> Result<Option<Term>, String> {
        let Some(service) = self.tables.services.measure_schedules() else {
            return Err(no_service("measure_schedules"));
        };
        // SAFETY: `run` and the module are alive.
        match unsafe { service(self.run, module.raw, how.0) } {
            NONE => Err(self.last_error()),
            0 => Ok(None),
            answer => Ok(Some(Term(answer))),
        }
    }

    /// The patterns of a code generator, a list term of strings.
    pub(crate) fn codegen_patterns(&self, generator: Symbol) -> Result<Term, String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        // SAFETY: `run` is alive.
        match unsafe { (table.patterns())(self.run, generator.0) } {
            0 => Err(self.last_error()),
            list => Ok(Term(list)),
        }
    }

    /// Whether a code generator takes a function that one of its patterns matched.
    pub(crate) fn accepts(
        &self,
        generator: Symbol,
        function: &FunctionHandle,
    ) -> Result<bool, String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        // SAFETY: `run` and the function are alive.
        match unsafe { (table.accepts())(self.run, generator.0, function.raw) } {
            NONE => Err(self.last_error()),
            answer => Ok(answer != 0),
        }
    }

    /// Has a code generator compile functions of a module.
    pub(crate) fn generate(
        &self,
        generator: Symbol,
        module: &ModuleHandle,
        names: &[u32],
    ) -> Result<Vec<FunctionHandle>, String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        let mut programs = vec![std::ptr::null(); names.len()];
        let names = RSlice::from_slice(names);
        // SAFETY: `run` and the module are alive, and there is room for so many functions.
        let is_done = unsafe {
            (table.generate())(self.run, generator.0, module.raw, names, programs.as_mut_ptr())
        };
        if !is_done {
            return Err(self.last_error());
        }
        let adopt = |raw| FunctionHandle::adopt(self, raw).ok_or_else(|| self.last_error());
        programs.into_iter().map(adopt).collect()
    }

    /// Hands over what a code generator made.
    pub(super) fn object(&self, bytes: &[u8]) -> Result<(), String> {
        let table = self.tables.codegen.ok_or_else(no_codegen)?;
        // SAFETY: `run` is alive; the bytes are copied.
        unsafe { (table.object())(self.run, RSlice::from_slice(bytes)) };
        Ok(())
    }

    /// The rules of a facet for a key, as a number; `None` when there are none.
    pub(crate) fn find_rules(
        &self,
        facet: Symbol,
        key: Symbol,
        version: u64,
    ) -> Result<Option<u32>, String> {
        let table = self.rules()?;
        // SAFETY: `run` is alive.
        match unsafe { (table.find())(self.run, facet.0, key.0, version) } {
            NONE => Err(self.last_error()),
            rules => Ok((rules != 0).then_some(rules)),
        }
    }

    /// Asks rules that were found; `None` when none answers.
    pub(crate) fn ask(
        &self,
        rules: u32,
        transaction: Option<&mut TransactionHandle>,
        nodes: &[Expr],
        data: Term,
    ) -> Result<Option<(Vec<Expr>, Term)>, String> {
        let table = self.rules()?;
        let edit = transaction.map_or(std::ptr::null_mut(), |transaction| transaction.raw);
        let nodes = RSlice::from_slice(read::expr_ids(nodes));
        // SAFETY: `run` and the transaction, where there is one, are alive; the answer is copied before the next question.
        unsafe {
            match (table.ask())(self.run, rules, edit, nodes, data.0) {
                NONE => Err(self.last_error()),
                0 => Ok(None),
                _ => {
                    let nodes = read::exprs(read::slice((table.answered_nodes())(self.run)));
                    Ok(Some((nodes.to_vec(), Term((table.answered_data())(self.run)))))
                }
            }
        }
    }

    /// Answers what a rule was asked.
    pub(super) fn answer(&self, nodes: &[Expr], data: Term) -> Result<(), String> {
        let table = self.rules()?;
        let nodes = RSlice::from_slice(read::expr_ids(nodes));
        // SAFETY: `run` is alive; the nodes are copied.
        match unsafe { (table.answer())(self.run, nodes, data.0) } {
            true => Ok(()),
            false => Err(self.last_error()),
        }
    }

    /// Says why the rule that is asked has no answer, in a sentence that names the rule; [`Rules::declined`] tells whoever asks.
    /// A host of 1.0 does not listen.
    ///
    /// [`Rules::declined`]: crate::rule::Rules::declined
    pub fn decline(&self, why: &str) {
        if let Some(decline) = self.tables.rules.and_then(|rules| rules.decline()) {
            // SAFETY: `run` is alive; the text is copied.
            unsafe { decline(self.run, RStr::from_str(why)) };
        }
    }

    /// What the rules said that declined what this thread asked last.
    pub(crate) fn declined(&self) -> Vec<String> {
        let Some(declined) = self.tables.rules.and_then(|rules| rules.declined()) else {
            return Vec::new();
        };
        // SAFETY: `run` is alive; each text is copied before the next question.
        let said = (0..).map(|index| read::readable(unsafe { declined(self.run, index) }));
        said.take_while(|why: &String| !why.is_empty()).collect()
    }

    fn rules(&self) -> Result<Table<HostRules>, String> {
        self.tables.rules.ok_or_else(|| format!("this host does not offer {}", HostRules::ID))
    }

    /// What the host does for a rule that imports a node, and the state of this call.
    pub(super) fn import(&self) -> Result<(Table<HostImport>, *const RawRun), String> {
        let table = self.tables.import;
        let table = table.ok_or_else(|| format!("this host does not offer {}", HostImport::ID))?;
        Ok((table, self.run))
    }

    /// Says that the pass fails.
    pub(super) fn fail(&self, failure: Failure, text: &str, node: Option<Expr>) {
        let (text, node) = (RStr::from_str(text), node.map_or(NONE, |node| node.0));
        // SAFETY: `run` is alive.
        unsafe { (self.tables.services.fail())(self.run, failure.0, text, node) };
    }

    /// Says that the pass fails, about a node of a program that it made. An older host is told the message alone.
    pub(super) fn fail_in(&self, failure: Failure, text: &str, place: (&FunctionHandle, Expr)) {
        let Some(service) = self.tables.services.fail_in() else {
            return self.fail(failure, text, None);
        };
        // SAFETY: `run` and the function are alive.
        unsafe { service(self.run, failure.0, RStr::from_str(text), place.0.raw, place.1.0) };
    }

    /// Why the last call of this thread failed.
    pub(super) fn last_error(&self) -> String {
        // SAFETY: `run` is alive; the text is copied before the next call.
        read::readable(unsafe { (self.tables.services.last_error())(self.run) })
    }
}

fn no_service(name: &str) -> String {
    format!("this host is older than 1.1: its {} has no `{name}`", HostServices::ID)
}

fn no_codegen() -> String {
    format!("this host does not offer {}", HostCodegen::ID)
}

/// A table of the host's. The host compared its layout with that of this build before the first call.
///
/// # Safety
/// As for [`Host::new`].
unsafe fn table<T: RawTable>(raw: HostRef) -> Result<Table<T>, String> {
    // SAFETY: by this function's contract.
    let interface = unsafe { (raw.query)(RStr::from_str(T::ID)) };
    // SAFETY: an interface that is not null is valid for ever.
    let Some(interface) = (unsafe { interface.as_ref() }) else {
        return Err(format!("this host does not offer {}", T::ID));
    };
    // SAFETY: by this function's contract; it is the table of this id.
    unsafe { Table::new(interface.table.cast()) }
}

impl Context for Host {
    fn terms(&self) -> Terms<'_> {
        // SAFETY: the table lives as long as the run, of which `self` owns a count.
        let table = unsafe { &*(self.tables.ir.terms())(self.run) };
        Terms::new(TermTable::new(table))
    }

    fn intern(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term]) -> Term {
        let ids = RSlice::from_slice(read::term_ids(children));
        // SAFETY: `run` is alive.
        Term(unsafe { (self.tables.ir.intern())(self.run, kind.0, flags, bits, ids) })
    }

    fn symbol(&self, text: &str) -> Symbol {
        // SAFETY: `run` is alive.
        Symbol(unsafe { (self.tables.ir.symbol())(self.run, RStr::from_str(text)) })
    }

    /// A host older than 1.1 does not ask.
    fn take_to_fit(&self, fit: Fit) {
        if let Some(service) = self.tables.ops.and_then(|ops| ops.take_to_fit()) {
            // SAFETY: `run` is alive.
            unsafe { service(self.run, fit.extent.0, fit.wanted.0, fit.may_be_one) };
        }
    }
}
