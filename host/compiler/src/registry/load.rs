//! Opening a plugin: once, for ever, after its manifest was read.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use abi_stable::library::{AbiHeaderRef, ROOT_MODULE_LOADER_NAME_WITH_NUL};
use abi_stable::std_types::{RSlice, RStr};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use tenon_plugin_api::abi::layout::{RawTable, Table};
use tenon_plugin_api::abi::read::{readable, slice};
use tenon_plugin_api::abi::tables::{
    C_ROOT_SYMBOL, CRoot, CodegenTable, Event, InstrumentTable, Interface, OpTable, PASS_INTERFACE,
    PassTable, PluginRoot_Ref, ROOT_ABI, RuleTable,
};
use thiserror::Error;

use super::guard::REMEDY;
use super::journal::{self, Act, Doing, Note};
use super::library_file::Identity;
use super::named::{Named, difference_in, listed_names, names_in};
use super::{LibraryFile, Manifest, OpOffer, PassRecord, Reason, RuleRecord, layout};
use crate::border::{
    Call, INTERFACES, Noted, NotedCall, OpLibrary, PassFailure, RuleLibrary, Run, host_ref,
};
use crate::io::FileError;
use crate::ir::{Evaluation, Function, Module, RuleCode, Symbol};

/// `RTLD_NODELETE`: a library stays for as long as the process, since thread-local destructors and
/// `'static` data may outlive every handle.
const NO_DELETE: i32 = 0x1000;

/// The files that were opened, by their paths: of another one the linker would give the first again.
static OPENED: Mutex<BTreeMap<PathBuf, Identity>> = Mutex::new(BTreeMap::new());

/// A plugin's library, opened. It is never closed.
pub struct Plugin {
    path: PathBuf,
    passes: Table<PassTable>,
    /// The plugin's names of its passes, by their number.
    names: Vec<String>,
    /// What is noted while each of them runs.
    notes: Vec<NotedCall>,
    /// Absent in a plugin that knows of no code generators.
    codegen: Option<Table<CodegenTable>>,
    /// The plugin's names of its code generators, by their number, and what is noted while each runs.
    generators: Vec<(String, Note)>,
    /// Absent in a plugin that knows of no instruments.
    instruments: Option<Table<InstrumentTable>>,
    /// The plugin's names of its operators, by their number.
    operators: Vec<String>,
    /// Absent in a plugin that knows of no operators.
    op_library: Option<Arc<OpLibrary>>,
    /// By the number of a rule's record, its number in the library.
    rules: Vec<u32>,
    /// Absent in a plugin that knows of no rules.
    rule_library: Option<Arc<RuleLibrary>>,
}

/// An instrument of a plugin's, made for one context.
pub struct PluginInstrument {
    table: Table<InstrumentTable>,
    raw: *mut c_void,
    /// What is noted while it runs.
    note: Note,
}

// SAFETY: an instrument is for any thread, one at a time, which `&mut` sees to.
unsafe impl Send for PluginInstrument {}

impl PluginInstrument {
    /// Tells it of an event; its answer.
    pub fn tell(
        &mut self,
        run: &Arc<Run>,
        event: Event,
        pass: &str,
        modules: [Option<&Module>; 2],
        wall: Duration,
    ) -> Result<bool, PassFailure> {
        let call = Arc::new(Call::new(run.clone()));
        let [before, after] =
            modules.map(|module| module.map_or(std::ptr::null(), std::ptr::from_ref).cast());
        let nanoseconds = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        let pass = RStr::from_str(pass);
        // SAFETY: the table's layout was checked; the instrument is alive and used by nobody else, and the
        // modules live during the call.
        let tell = || unsafe {
            self.table.tell()(self.raw, host_ref(&call), event.0, pass, before, after, nanoseconds)
        };
        let answer = journal::during(&self.note, tell);
        match call.failure() {
            Some(failure) => Err(failure.clone()),
            None => Ok(answer),
        }
    }
}

impl Drop for PluginInstrument {
    fn drop(&mut self) {
        // SAFETY: this owns what the table made.
        journal::during(&self.note, || unsafe { self.table.destroy()(self.raw) });
    }
}

/// Why a plugin cannot be used.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another file stands at its path than when it was looked at.
    #[error(
        "{}: it was replaced while it was looked at or opened: run the command again",
        path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// It did harm to the process that opened it.
    #[error("{}: it is in quarantine: {reason}. {REMEDY}", path.display())]
    Quarantined {
        /// The file.
        path: PathBuf,
        /// What it did.
        reason: String,
    },
    /// It is to be opened in a child process, and cannot be.
    #[error("{}: it cannot be opened in a child process: {reason}", path.display())]
    Untried {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A child process that tried it out refuses it, with the message that this one would give.
    #[error("{0}")]
    Refused(String),
    /// Another file of this path is open in this process, and a library is never closed.
    #[error(
        "{}: another build of it is open in this process: start a new one",
        path.display()
    )]
    OpenAlready {
        /// The file.
        path: PathBuf,
    },
    /// The dynamic linker refused it.
    #[error("{}: cannot be opened: {reason}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The linker's words.
        reason: String,
    },
    /// It is not built as a plugin, or for another version of the border.
    #[error("{}: {reason}", path.display())]
    Incompatible {
        /// The file.
        path: PathBuf,
        /// What differs, and the remedy.
        reason: String,
    },
    /// The library is not what its manifest says.
    #[error("{}: manifest and library disagree: {difference}", path.display())]
    Lie {
        /// The file.
        path: PathBuf,
        /// The difference.
        difference: String,
    },
}

impl Plugin {
    /// Opens a library, checks it against this host and against its manifest.
    pub fn open(file: &LibraryFile, manifest: &Manifest) -> Result<Plugin, LoadError> {
        let path = file.path();
        let incompatible = |reason: Reason| LoadError::Incompatible {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        file.check_unchanged()?;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.get(path).is_some_and(|identity| *identity != file.identity()) {
            return Err(LoadError::OpenAlready { path: path.to_owned() });
        }
        // SAFETY: opening runs the library's initialisers; that this file may do so is what enabling it
        // in the registry decides.
        let library =
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | NO_DELETE) }.map_err(
                |error| LoadError::Open { path: path.to_owned(), reason: error.to_string() },
            )?;
        opened.insert(path.to_owned(), file.identity());
        drop(opened);
        // The linker opens a path. The file that was held is the one that it opened when it stood there before
        // and after: nobody else may write to the folder, so nobody puts it back in between.
        file.check_unchanged()?;
        let root = root(&library).map_err(incompatible)?;
        // The library must stay: it is never closed.
        std::mem::forget(library);

        let lie = |difference| LoadError::Lie { path: path.to_owned(), difference };
        let loaded = Manifest::parse(root.manifest.as_str());
        let loaded = loaded.map_err(|broken| lie(broken.to_string()))?;
        if &loaded != manifest {
            return Err(lie(difference(manifest, &loaded)));
        }

        check_layouts(root.interfaces).map_err(incompatible)?;
        let passes = table::<PassTable>(root.interfaces).map_err(incompatible)?;
        let passes = passes.ok_or_else(|| incompatible(no_passes(root.interfaces).into()))?;
        let codegen = offered::<CodegenTable>(root.interfaces).map_err(incompatible)?;
        let compared = |names: Result<Vec<String>, Reason>| {
            names.map_err(|difference| lie(difference.to_string()))
        };
        let listed: Vec<&str> = manifest.passes.iter().map(|pass| pass.name.as_str()).collect();
        let names = compared(listed_names("passes", &listed, Some(&passes)))?;
        let listed: Vec<&str> = manifest.generators.iter().map(|it| it.name.as_str()).collect();
        let generators = compared(listed_names("code generators", &listed, codegen.as_ref()))?;
        let instruments = offered::<InstrumentTable>(root.interfaces).map_err(incompatible)?;
        let listed: Vec<&str> = manifest.instruments.iter().map(|it| it.name.as_str()).collect();
        compared(listed_names("instruments", &listed, instruments.as_ref()))?;
        let ops = offered::<OpTable>(root.interfaces).map_err(incompatible)?;
        let listed: Vec<&str> = manifest.operators.iter().map(OpOffer::name).collect();
        let operators = compared(listed_names("operators", &listed, ops.as_ref()))?;
        let op_notes: Vec<Note> =
            operators.iter().map(|name| running("operator", name, path)).collect();
        let noted: Noted =
            Box::new(move |index, run| journal::during(&op_notes[index as usize], run));
        let op_library = ops.map(|table| Arc::new(OpLibrary::new(table, noted)));
        let rule_table = offered::<RuleTable>(root.interfaces).map_err(incompatible)?;
        let rules = numbers_of_rules(rule_table.as_ref(), &loaded, &root.manifest);
        let rules = rules.map_err(|reason| lie(reason.to_string()))?;
        let noted = noted_rules(rule_table.as_ref(), path);
        let rule_library = rule_table.map(|table| Arc::new(RuleLibrary::new(table, noted)));
        let notes = names.iter().map(|name| {
            let note = running("pass", name, path);
            Arc::new(move |run: &mut dyn FnMut()| journal::during(&note, run)) as NotedCall
        });
        let notes = notes.collect();
        let noted = |name: String| (name.clone(), running("code generator", &name, path));
        let generators = generators.into_iter().map(noted).collect();
        let path = path.to_owned();
        Ok(Plugin {
            path,
            passes,
            names,
            notes,
            codegen,
            generators,
            instruments,
            operators,
            op_library,
            rules,
            rule_library,
        })
    }

    /// The operator called `name`.
    pub fn operator(&self, name: &str) -> Option<Arc<dyn Evaluation>> {
        let index = self.operators.iter().position(|own| own == name)?;
        Some(self.op_library.as_ref()?.operator(index as u32))
    }

    /// The rule of record `number` of the manifest.
    pub fn rule(&self, number: usize) -> Option<Arc<dyn RuleCode>> {
        let index = self.rules.get(number)?;
        Some(self.rule_library.as_ref()?.rule(*index))
    }

    /// Makes the instrument called `name`; none when there is none, or it cannot be made.
    pub fn create_instrument(&self, name: &str) -> Option<PluginInstrument> {
        let table = self.instruments?;
        let index = (0..table.how_many()).find(|&index| table.name_of(index) == name)?;
        let note = running("instrument", name, &self.path);
        // SAFETY: the table's layout was checked; this entry takes any number.
        let raw = journal::during(&note, || unsafe { table.create()(index) });
        (!raw.is_null()).then_some(PluginInstrument { table, raw, note })
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the pass called `name`.
    pub fn index_of(&self, name: &str) -> Option<u32> {
        self.names.iter().position(|own| own == name).map(|index| index as u32)
    }

    /// Runs pass `index`, a module pass, over a module.
    pub fn run_on_module(
        &self,
        index: u32,
        run: &Arc<Run>,
        module: &Module,
    ) -> Result<Module, PassFailure> {
        let (result, call) = self.call(index, run, std::ptr::from_ref(module).cast(), module);
        // SAFETY: a module pass returns null or a module that it owns, a box of this host.
        let after = (!result.is_null()).then(|| *unsafe { Box::from_raw(result.cast::<Module>()) });
        outcome(&call, after, |after| after.cx().is_same(module.cx()))
    }

    /// Runs pass `index`, a function pass, over a function of a module.
    pub fn run_on_function(
        &self,
        index: u32,
        run: &Arc<Run>,
        function: &Arc<Function>,
        module: &Module,
    ) -> Result<Arc<Function>, PassFailure> {
        let (result, call) = self.call(index, run, Arc::as_ptr(function).cast(), module);
        // SAFETY: a function pass returns null or a function with a count that it owned.
        let after =
            (!result.is_null()).then(|| unsafe { Arc::from_raw(result.cast::<Function>()) });
        outcome(&call, after, |after| after.cx().is_same(module.cx()))
    }

    /// Whether code generator `name` takes what one of its patterns matched.
    pub fn accepts(
        &self,
        name: &str,
        run: &Arc<Run>,
        function: &Arc<Function>,
    ) -> Result<bool, PassFailure> {
        let (table, index, note) = self.generator(name)?;
        let call = Arc::new(Call::new(run.clone()));
        let function = Arc::as_ptr(function).cast();
        // SAFETY: the table's layout was checked; the function lives during the call.
        let accepts = || unsafe { table.accepts()(index, host_ref(&call), function) };
        let accepts = journal::during(note, accepts);
        call.failure().map_or(Ok(accepts), |failure| Err(failure.clone()))
    }

    fn generator(&self, name: &str) -> Result<(&Table<CodegenTable>, u32, &Note), PassFailure> {
        let mut numbered = self.generators.iter().zip(0..);
        let found = numbered.find(|((own, _), _)| own == name);
        match (&self.codegen, found) {
            (Some(table), Some(((_, note), index))) => Ok((table, index, note)),
            _ => Err(PassFailure::refused("the library lacks it")),
        }
    }

    /// Has code generator `name` compile functions `names` of `module`. Returns a relocatable object.
    pub fn generate(
        &self,
        name: &str,
        run: &Arc<Run>,
        module: &Module,
        names: &[Symbol],
    ) -> Result<Vec<u8>, PassFailure> {
        let (table, index, note) = self.generator(name)?;
        let call = Arc::new(Call::new(run.clone()));
        let names: Vec<u32> = names.iter().map(|name| name.0).collect();
        let module = std::ptr::from_ref(module).cast();
        // SAFETY: the table's layout was checked; the module lives during the call.
        let generate = || unsafe {
            table.generate()(index, host_ref(&call), module, RSlice::from_slice(&names))
        };
        let is_done = journal::during(note, generate);
        match (call.failure(), is_done, call.take_object()) {
            (Some(failure), ..) => Err(failure.clone()),
            (None, true, Some(object)) => Ok(object),
            (None, ..) => Err(PassFailure::refused("it made nothing and does not say why")),
        }
    }

    /// Calls a pass. What comes back is owned by the caller.
    fn call(
        &self,
        index: u32,
        run: &Arc<Run>,
        unit: *const c_void,
        module: &Module,
    ) -> (*mut c_void, Arc<Call>) {
        let noted = &self.notes[index as usize];
        let call = Arc::new(Call::new(run.clone()).with_noted(noted.clone()));
        let module = std::ptr::from_ref(module).cast();
        let mut result = std::ptr::null_mut();
        let mut run = || {
            // SAFETY: the table's layout was checked; `unit` and `module` are what the pass's kind says and live
            // during the call.
            result = unsafe { self.passes.run()(index, host_ref(&call), unit, module) };
        };
        noted(&mut run);
        (result, call)
    }
}

/// By the number of a rule's record, its number in the library: there its rules stand as their records do in its text.
fn numbers_of_rules(
    table: Option<&Table<RuleTable>>,
    manifest: &Manifest,
    records: &str,
) -> Result<Vec<u32>, Reason> {
    let listed = RuleRecord::all_of(records);
    let names: Vec<String> = listed.iter().map(RuleRecord::name).collect();
    let present = names_in("rules", names.len(), table)?;
    if names != present {
        return Err(difference_in("rules", &names, &present));
    }
    let mut numbers: HashMap<_, u32> = listed.iter().map(RuleRecord::identity).zip(0..).collect();
    let own = manifest.rules.iter().map(RuleRecord::identity);
    let found: Option<Vec<u32>> = own.map(|rule| numbers.remove(&rule)).collect();
    found.ok_or_else(|| "a rule stands in it twice".into())
}

/// What is noted while a rule of a library runs.
fn noted_rules(table: Option<&Table<RuleTable>>, path: &Path) -> Noted {
    let count = table.map_or(0, Named::how_many);
    let names = (0..count).filter_map(|index| Some(table?.name_of(index)));
    let notes: Vec<Note> = names.map(|name| running("rule", &name, path)).collect();
    Box::new(move |index, run| journal::during(&notes[index as usize], run))
}

/// What is noted while something of a library runs.
fn running(kind: &str, name: &str, library: &Path) -> Note {
    Doing::new(Act::Running, "", &format!("{kind} `{name}`"), library).note()
}

/// What a pass returned, unless it says that it failed.
fn outcome<T>(
    call: &Call,
    unit: Option<T>,
    is_of_this_run: impl FnOnce(&T) -> bool,
) -> Result<T, PassFailure> {
    match (call.failure(), unit) {
        (Some(failure), _) => Err(failure.clone()),
        (None, None) => Err(PassFailure::refused("the pass returned nothing and does not say why")),
        (None, Some(unit)) if is_of_this_run(&unit) => Ok(unit),
        (None, Some(_)) => {
            Err(PassFailure::refused("the pass returned what belongs to another run's terms"))
        }
    }
}

/// What either of the two roots says.
struct Root {
    manifest: String,
    interfaces: &'static [Interface],
}

/// The root of a library, if it is one that this host understands.
fn root(library: &Library) -> Result<Root, Reason> {
    // SAFETY: the symbol is that of abi_stable's header, whose magic is checked below.
    let header =
        unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) };
    if let Ok(header) = header {
        // What abi_stable has to say of a difference is up to a megabyte long.
        let foreign = || {
            Reason::from("its root is not that of Tenon 1.x: rebuild it with tenon-plugin-api 1.x")
        };
        let header = header.upgrade().map_err(|_| foreign())?;
        let root = header.init_root_module::<PluginRoot_Ref>().map_err(|_| foreign())?;
        check_root(root.root_abi())?;
        let manifest = readable(root.manifest()());
        return Ok(Root { manifest, interfaces: slice(root.interfaces()()) });
    }
    // SAFETY: the symbol is that of a C root, which starts with its version.
    let Ok(symbol) = (unsafe { library.get::<*const CRoot>(C_ROOT_SYMBOL.as_bytes()) }) else {
        return Err(
            "it exports no plugin root: build it with tenon-plugin-api and `plugin!`, or with \
                    tenon_plugin.h and TENON_PLUGIN"
                .into(),
        );
    };
    // SAFETY: a symbol's address is not null, and every version of the root starts with this word.
    check_root(unsafe { (&raw const (**symbol).root_abi).read() })?;
    // SAFETY: a root of this version is this record, valid for ever.
    let root: CRoot = unsafe { symbol.read() };
    Ok(Root { manifest: readable(root.manifest), interfaces: slice(root.interfaces) })
}

fn check_root(root_abi: u32) -> Result<(), Reason> {
    match root_abi {
        ROOT_ABI => Ok(()),
        other => Err(format!(
            "its root is version {other}, this host's {ROOT_ABI}: use a plugin built for Tenon 1.x"
        )
        .into()),
    }
}

/// Compares all layouts that both sides list.
fn check_layouts(interfaces: &[Interface]) -> Result<(), Reason> {
    let differences = layout::differences(&INTERFACES, interfaces);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "its layouts are not those of Tenon 1.x:\n  {}\nrebuild it with tenon-plugin-api 1.x or \
             its tenon_plugin.h",
            differences.join("\n  ")
        )
        .into()),
    }
}

/// A table of the plugin's, after the layouts were compared; none when the plugin does not offer it.
fn table<T: RawTable>(interfaces: &'static [Interface]) -> Result<Option<Table<T>>, Reason> {
    let offered = interfaces.iter().find(|other| readable(other.id) == T::ID);
    let Some(interface) = offered else { return Ok(None) };
    // SAFETY: the table is valid for ever, and its layout was just checked.
    let table = unsafe { Table::new(interface.table.cast()) };
    table.map(Some).map_err(|error| {
        format!("{error}: rebuild it with tenon-plugin-api 1.x or its tenon_plugin.h").into()
    })
}

/// As [`table`], but one that is listed without a table is known to the plugin, and not offered.
fn offered<T: RawTable>(interfaces: &'static [Interface]) -> Result<Option<Table<T>>, Reason> {
    let is_offered = |other: &Interface| readable(other.id) == T::ID && !other.table.is_null();
    match interfaces.iter().any(is_offered) {
        true => table(interfaces),
        false => Ok(None),
    }
}

fn no_passes(interfaces: &[Interface]) -> String {
    let offered: Vec<String> = interfaces.iter().map(|other| readable(other.id)).collect();
    format!("it offers no {PASS_INTERFACE}, only {offered:?}")
}

/// The first thing in which two manifests differ.
fn difference(file: &Manifest, loaded: &Manifest) -> String {
    if file.plugin != loaded.plugin {
        return format!(
            "the file says `{}` {}, the library `{}` {}",
            file.plugin.id, file.plugin.version, loaded.plugin.id, loaded.plugin.version
        );
    }
    let names = |manifest: &Manifest| -> Vec<String> {
        manifest.passes.iter().map(|pass| pass.name.clone()).collect()
    };
    let (listed, present) = (names(file), names(loaded));
    if let Some(name) = listed.iter().find(|name| !present.contains(name)) {
        return format!("the file lists the pass `{name}`, which the library lacks");
    }
    if let Some(name) = present.iter().find(|name| !listed.contains(name)) {
        return format!("the library has the pass `{name}`, which the file does not list");
    }
    let mut pairs = file.passes.iter().zip(&loaded.passes);
    let Some((file, loaded)) = pairs.find(|(file, loaded)| file != loaded) else {
        return "the records of their passes differ".to_owned();
    };
    let value = |record: &PassRecord| serde_json::to_value(record).unwrap_or_default();
    let (said, found) = (value(file), value(loaded));
    let keys = said.as_object().into_iter().flat_map(|record| record.keys());
    let differing: Vec<String> = keys
        .filter(|&key| said.get(key) != found.get(key))
        .map(|key| {
            format!("`{key}` is {} in the file and {} in the library", said[key], found[key])
        })
        .collect();
    format!("of the pass `{}` {}", file.name, differing.join(", "))
}
