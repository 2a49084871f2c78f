//! Opening a plugin: once, for ever, after its manifest was read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::library::{AbiHeaderRef, ROOT_MODULE_LOADER_NAME_WITH_NUL};
use abi_stable::prefix_type::PrefixRef;
use abi_stable::std_types::RStr;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use tenon_plugin_api::abi::tables::{
    Outcome, PASS_INTERFACE, PassTable_Prefix, PassTable_Ref, PluginRoot_Ref, ROOT_ABI, Status,
};
use thiserror::Error;

use super::Manifest;
use crate::border::{Run, host_ref, text};
use crate::ir::{Function, Module};

/// `RTLD_NODELETE`: a library stays for as long as the process, since thread-local destructors and
/// `'static` data may outlive every handle.
const NO_DELETE: i32 = 0x1000;

/// A plugin's library, opened. It is never closed.
pub struct Plugin {
    path: PathBuf,
    passes: PassTable_Ref,
    /// The plugin's names of its passes, by their number.
    names: Vec<String>,
}

/// Why a plugin cannot be used.
#[derive(Debug, Error)]
pub enum LoadError {
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

/// How a pass ended when it did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassFailure {
    /// The plugin's message, or where it panicked.
    pub message: String,
    /// The node of the function that it is about.
    pub node: Option<tenon_plugin_api::ir::Expr>,
    /// Whether the pass stopped because it was told to.
    pub is_cancelled: bool,
    /// Whether it panicked.
    pub is_panic: bool,
}

impl PassFailure {
    /// The pass gave the host something that cannot be used.
    pub(crate) fn refused(what: &str) -> Self {
        Self { message: what.to_owned(), node: None, is_cancelled: false, is_panic: false }
    }
}

impl Plugin {
    /// Opens the library at `path`, checks it against this host and against its manifest.
    pub fn open(path: &Path, manifest: &Manifest) -> Result<Plugin, LoadError> {
        let incompatible =
            |reason: String| LoadError::Incompatible { path: path.to_owned(), reason };
        // SAFETY: opening runs the library's initialisers; that this file may do so is what enabling it
        // in the registry decides.
        let library =
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | NO_DELETE) }.map_err(
                |error| LoadError::Open { path: path.to_owned(), reason: error.to_string() },
            )?;
        // SAFETY: the symbol is that of abi_stable's header, whose magic is checked below.
        let header =
            unsafe { library.get::<AbiHeaderRef>(ROOT_MODULE_LOADER_NAME_WITH_NUL.as_bytes()) }
                .map(|symbol| *symbol)
                .map_err(|_| {
                    incompatible(
                        "it exports no plugin root: build it with tenon-plugin-api and `plugin!`"
                            .to_owned(),
                    )
                })?;
        let header = header.upgrade().map_err(|error| incompatible(error.to_string()))?;
        let root = header
            .init_root_module::<PluginRoot_Ref>()
            .map_err(|error| incompatible(first_line(&error.to_string())))?;
        // The library must stay: it is never closed.
        std::mem::forget(library);
        if root.root_abi() != ROOT_ABI {
            return Err(incompatible(format!(
                "its root is version {}, this host's {ROOT_ABI}: use a plugin built with \
                 tenon-plugin-api 1.x",
                root.root_abi()
            )));
        }

        let said = text::readable(root.manifest()());
        let records: Vec<String> = said.lines().map(str::to_owned).collect();
        let loaded = Manifest::parse(&records)
            .map_err(|difference| LoadError::Lie { path: path.to_owned(), difference })?;
        if &loaded != manifest {
            return Err(LoadError::Lie {
                path: path.to_owned(),
                difference: difference(manifest, &loaded),
            });
        }

        let passes = pass_table(root).map_err(incompatible)?;
        let names: Vec<String> =
            (0..passes.count()()).map(|index| readable(passes.name()(index))).collect();
        let expected: Vec<&str> = manifest.passes.iter().map(|pass| pass.name.as_str()).collect();
        if names != expected {
            return Err(LoadError::Lie {
                path: path.to_owned(),
                difference: format!(
                    "the manifest lists the passes {expected:?}, the library has {names:?}"
                ),
            });
        }
        Ok(Plugin { path: path.to_owned(), passes, names })
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
        let unit = std::ptr::from_ref(module).cast();
        let result = self.call(index, run, unit, unit)?;
        // SAFETY: a module pass that succeeds returns a module that it owns, a box of this host.
        Ok(*unsafe { Box::from_raw(result.cast::<Module>()) })
    }

    /// Runs pass `index`, a function pass, over a function of a module.
    pub fn run_on_function(
        &self,
        index: u32,
        run: &Arc<Run>,
        function: &Arc<Function>,
        module: &Module,
    ) -> Result<Arc<Function>, PassFailure> {
        let unit = Arc::as_ptr(function).cast();
        let result = self.call(index, run, unit, std::ptr::from_ref(module).cast())?;
        // SAFETY: a function pass that succeeds returns a function with a count that it owned.
        Ok(unsafe { Arc::from_raw(result.cast::<Function>()) })
    }

    fn call(
        &self,
        index: u32,
        run: &Arc<Run>,
        unit: *const std::ffi::c_void,
        module: *const std::ffi::c_void,
    ) -> Result<*mut std::ffi::c_void, PassFailure> {
        let mut outcome =
            Outcome { unit: std::ptr::null_mut(), message: Default::default(), node: 0 };
        // SAFETY: the table's layout was checked; `unit` and `module` are what the pass's kind says and
        // live during the call.
        let status = unsafe { self.passes.run()(index, host_ref(run), unit, module, &mut outcome) };
        if status == Status::OK && !outcome.unit.is_null() {
            return Ok(outcome.unit);
        }
        let message = match status {
            Status::OK => "the pass returned nothing".to_owned(),
            _ => text::readable(outcome.message),
        };
        Err(PassFailure {
            message,
            node: outcome.node.checked_sub(1).map(tenon_plugin_api::ir::Expr),
            is_cancelled: status == Status::CANCELLED,
            is_panic: status == Status::PANIC,
        })
    }
}

/// The plugin's pass table, its layout checked in both directions: a table only grows, so of two builds
/// one layout is a prefix of the other.
fn pass_table(root: PluginRoot_Ref) -> Result<PassTable_Ref, String> {
    let interfaces = root.interfaces()();
    let Some(desc) = interfaces.iter().find(|desc| readable(desc.id) == PASS_INTERFACE) else {
        let offered: Vec<String> = interfaces.iter().map(|desc| readable(desc.id)).collect();
        return Err(format!("it offers no {PASS_INTERFACE}, only {offered:?}"));
    };
    let ours = <PassTable_Ref as StableAbi>::LAYOUT;
    if check_layout_compatibility(ours, desc.layout).is_err()
        && let Err(error) = check_layout_compatibility(desc.layout, ours)
    {
        return Err(format!(
            "its {PASS_INTERFACE} (revision {}) has another layout than this host's: {}. Rebuild it \
             with tenon-plugin-api 1.x",
            desc.revision,
            first_line(&error.to_string())
        ));
    }
    type Table = abi_stable::prefix_type::WithMetadata_<PassTable_Prefix, PassTable_Prefix>;
    // SAFETY: the table is valid for ever and of the layout that was just checked.
    Ok(PassTable_Ref(unsafe { PrefixRef::from_raw(desc.table.cast::<Table>()) }))
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
    let differs = file.passes.iter().zip(&loaded.passes).find(|(a, b)| a != b);
    let name = differs.map_or("", |(pass, _)| pass.name.as_str());
    format!("they describe the pass `{name}` differently")
}

/// What can be read of a text of the plugin's.
fn readable(text: RStr<'_>) -> String {
    text::checked(text).map_or_else(|readable| readable, str::to_owned)
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim().to_owned()
}
