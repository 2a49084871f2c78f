//! The one door: from a model to something that runs.
//!
//! ```ignore
//! let session = Session::open(&Installation::at("/opt/tenon/bin/tenon"), &[])?;
//! let model = session.read("encoder.onnx".as_ref(), &Dims::new())?;
//! let executable = session.compile(&model, &Target::native()?, &Options::default())?;
//! let outputs = executable.jit()?.run(&[ids], None)?;
//! ```
//!
//! A session holds the registry: which plugins there are, and which of them were opened. What is compiled, for what and how
//! are arguments, so one session compiles any number of models, on several threads at once. Nothing is printed and nothing
//! of the process is changed; who wants to see what goes on brings a [`Watch`].

mod cached;
mod error;
mod lower;
mod model;
mod options;
mod reproducers;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::backend::Emit;
use crate::executable::{self, CompileError, DeviceProgram, Executable, Unit};
use crate::ir::{Module, OpBook};
use crate::ops::Extended;
use crate::passes::{OwnPasses, Pass, RegisterError, establishing, help_to_establish};
use crate::registry::{Config, ConfigError, Guard, Registry, State};
use crate::target::{Target, Targets};

pub use cached::{CachePlace, Cached, FileJob};
pub use error::SessionError;
pub use model::{Dims, Model};
pub use options::{Options, Pipeline, ReproducerPlace, Validation};
pub use reproducers::write_reproducer;
pub use watch::{Observer, Silent, Watch};

/// Where Tenon is installed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Installation {
    /// The program: new libraries are tried out in a process of it, and isolated plugins live in some.
    pub program: PathBuf,
    /// The folders in which the libraries of operators lie.
    pub libraries: Vec<PathBuf>,
    /// What runs plugins that are texts, by what names of their files end in, where the registry names nothing.
    pub interpreters: BTreeMap<String, String>,
}

impl Installation {
    /// The one that a program belongs to: its libraries lie beside it, or in `../lib/tenon`.
    pub fn at(program: impl Into<PathBuf>) -> Installation {
        let program = program.into();
        let real = program.canonicalize().unwrap_or_else(|_| program.clone());
        let folder = real.parent().unwrap_or(Path::new("/"));
        let libraries = vec![folder.to_owned(), folder.join("../lib/tenon")];
        Installation { libraries, program, interpreters: BTreeMap::new() }
    }
}

/// Compiles models. It may be shared by threads.
pub struct Session {
    registry: Registry,
    operators: Arc<dyn OpBook>,
    own: OwnPasses,
    cancelled: Arc<AtomicBool>,
    /// Whose program measures schedules, and links where a linker is inside.
    installation: Option<Installation>,
    linker: Option<PathBuf>,
}

impl Session {
    /// One with the plugins of an installation's own registry, of those of the system and the user above it, and of
    /// `registries`, which are `registry.toml` files, above all.
    pub fn open(
        installation: &Installation,
        registries: &[PathBuf],
    ) -> Result<Session, ConfigError> {
        let config = Config {
            own: installation.libraries.clone(),
            own_interpreters: installation.interpreters.clone(),
            ..Config::load_for(Some(&installation.program), registries)?
        };
        Session::of_config(installation, config)
    }

    /// One with what the files of a registry say.
    pub fn of_config(installation: &Installation, config: Config) -> Result<Session, ConfigError> {
        let guard = Guard::new(installation.program.clone(), State::of_user());
        let registry = Registry::guarded(config, guard);
        registry.check_isolation()?;
        let linker = cfg!(feature = "static-llvm").then(|| installation.program.clone());
        let installation = Some(installation.clone());
        Ok(Session { installation, linker, ..Session::new(registry) })
    }

    /// One with the plugins of `registry`.
    pub fn new(registry: Registry) -> Session {
        let operators = registry.operators();
        let own = OwnPasses::new();
        let cancelled = Arc::default();
        Session { registry, operators, own, cancelled, installation: None, linker: None }
    }

    /// The same with a pass of the program's own, which the texts of pipelines may name, and other passes of the program's own may
    /// require.
    ///
    /// # Errors
    /// When its name is none, or means something else.
    pub fn with_pass(mut self, pass: Pass) -> Result<Session, RegisterError> {
        self.own.register(&self.registry, pass)?;
        Ok(self)
    }

    /// The same with operators and rules of the program's own besides: `extend` is given a book with those of the plugins.
    ///
    /// # Errors
    /// What `extend` says.
    pub fn extended<E>(
        self,
        extend: impl FnOnce(Extended) -> Result<Extended, E>,
    ) -> Result<Session, E> {
        let operators = Arc::new(extend(Extended::over(self.operators.clone()))?);
        Ok(Session { operators, ..self })
    }

    /// The same, stopped when `flag` is set: passes end as soon as they can, with [`SessionError::is_cancelled`].
    pub fn cancelled_by(self, flag: Arc<AtomicBool>) -> Session {
        Session { cancelled: flag, ..self }
    }

    /// The plugins.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The plugins, for who does without the rest.
    pub fn into_registry(self) -> Registry {
        self.registry
    }

    /// The flag that stops it.
    pub fn cancelled(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    /// Compiles a model for a target, or for each of several processors.
    ///
    /// # Errors
    /// What the passes or the code generator refuse, as diagnostics.
    pub fn compile(
        &self,
        model: &Model,
        targets: impl Into<Targets>,
        options: &Options,
    ) -> Result<Executable, SessionError> {
        self.compile_watched(model, &targets.into(), options, &mut Watch::default())
    }

    /// The same, with somebody who watches. Instruments see the passes for the first target, the best of several.
    ///
    /// # Errors
    /// What the passes or the code generator refuse, as diagnostics.
    pub fn compile_watched(
        &self,
        model: &Model,
        targets: &Targets,
        options: &Options,
        watch: &mut Watch<'_>,
    ) -> Result<Executable, SessionError> {
        let mut all = Vec::with_capacity(targets.all().len());
        for target in targets.all() {
            let lowered = self.lower(model, target, options, watch)?;
            all.push(self.generate(&lowered, target, options)?);
        }
        self.join(all)
    }

    /// One executable of the code for several processors, each made of the same model; of one, it.
    ///
    /// # Errors
    /// When the targets cannot be those of one library.
    pub fn join(&self, all: Vec<Executable>) -> Result<Executable, SessionError> {
        Executable::joined(all).map_err(|error| self.no_code(error))
    }

    /// Reads an executable that [`Executable::save`] has written. It is run and exported as one that was compiled here.
    ///
    /// # Errors
    /// When others can write the file or a folder above it, or it is not what was written.
    pub fn load(&self, path: &Path) -> Result<Executable, SessionError> {
        let loaded = Executable::load_from(path).map_err(|error| self.no_code(error))?;
        Ok(loaded.linked_by(self.linker.clone()))
    }

    /// Makes code of a lowered module.
    pub fn generate(
        &self,
        lowered: &Module,
        target: &Target,
        options: &Options,
    ) -> Result<Executable, SessionError> {
        let mut code = options.code.clone();
        code.linker = code.linker.or_else(|| self.linker.clone());
        let made = Executable::compile(lowered, target, &code);
        made.map_err(|error| self.no_code(error))
    }

    /// Makes the programs of a lowered module for a device.
    pub fn generate_for_device(
        &self,
        lowered: &Module,
        target: &Target,
        options: &Options,
    ) -> Result<DeviceProgram, SessionError> {
        let made = DeviceProgram::compile(lowered, target, &options.code);
        made.map_err(|error| self.no_code(error))
    }

    /// The code of a lowered module in another form than objects.
    pub fn emit(
        &self,
        lowered: &Module,
        target: &Target,
        options: &Options,
        form: Emit,
    ) -> Result<Vec<Unit>, SessionError> {
        let made = executable::emit(lowered, target, &options.code, form);
        made.map_err(|error| self.no_code(error))
    }

    /// Why code was not made, with the passes that were to establish what does not hold.
    fn no_code(&self, error: CompileError) -> SessionError {
        let fact = error.missing_fact();
        let passes = fact.map_or(Vec::new(), |fact| establishing(&self.registry, fact));
        let help = (!passes.is_empty()).then(|| help_to_establish(&self.registry, &passes));
        SessionError::Code { error: Box::new(error), help }
    }
}
