//! The registry: which plugins there are, which passes they offer, and under which names.
//!
//! [`discover`] goes through the directories, and [`found`] holds what they have: an [`entry`] for each plugin.
//! [`config`] is `registry.toml`; [`manifest`] reads what a plugin says of itself without running it;
//! [`names`] finds a pass by name; [`trust`] says who else could have written a library; [`library_file`] keeps
//! what was checked and what is opened one file; [`open`] has [`load`] open a library when the first of its passes is
//! needed, and [`layout`] compares what it says of the border with what the host says. A plugin may be a text ([`script`]), whose
//! passes run in a process of the interpreter that a rule finds.

mod child;
mod codegen;
mod config;
mod digest;
mod discover;
mod entry;
mod found;
mod guard;
mod journal;
mod last_words;
mod layout;
mod library_file;
mod load;
mod manifest;
mod named;
mod names;
mod notes;
mod op_offer;
mod op_record;
mod open;
mod operators;
mod option;
mod probe;
mod reason;
mod rule_record;
mod rules;
mod script;
mod sidecar;
mod spelling;
mod state;
mod trust;
mod worker;

pub use crate::border::PassFailure;
pub(crate) use child::{Child, begin as begin_child, limit_memory};
pub use config::{
    Config, ConfigError, DirConfig, Edit, Enable, PassConfig, PinConfig, PipelineConfig,
    PipelineContent, Place, Set, TrustConfig,
};
pub use digest::sha256;
use entry::competing;
pub use entry::{PluginEntry, PluginState, Standing};
pub use found::{Found, PassId, PluginLookupError, Registry};
pub use guard::Guard;
pub use last_words::exit_at_once;
pub use last_words::{at_hand, leave, prepare as prepare_last_words};
pub use library_file::LibraryFile;
pub use load::{LoadError, Plugin, PluginInstrument};
pub use manifest::{
    CodegenRecord, InstrumentRecord, Manifest, ManifestError, PassKind, PassRecord, PluginRecord,
    Requirement,
};
pub use names::{Candidate, LookupError};
pub use op_offer::OpOffer;
pub use op_record::{AttrRecord, Effect, Kind, OpRecord, Pattern};
pub use open::{GetPassError, LoadedPass};
pub use option::{Misfit, OptionRecord, OptionType, OptionValue, Scalar};
pub use probe::{PROBE_COMMAND, ProbeLimits, probe_here, try_out};
pub use reason::Reason;
pub use rule_record::{KnobRecord, RuleRecord};
pub(crate) use spelling::is_name_char;
pub use state::{Quarantined, State};
pub use trust::TrustPolicy;
pub(crate) use trust::writers_of_path;
pub use worker::{IsolatedPass, PassLimits, WORKER_COMMAND, Worker, serve, serve_text};
