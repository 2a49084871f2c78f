//! `plugins quarantine`: libraries that did harm when they were opened.

use std::path::Path;

use clap::Subcommand;
use serde_json::json;

use super::Global;
use super::output::{Failure, print, print_json, table};
use tenon_compiler::registry::{Quarantined, State};

#[derive(Subcommand)]
pub(super) enum QuarantineCommand {
    /// List the libraries that are not opened any more, with what they did
    List,
    /// Let libraries be tried again
    Clear {
        /// Their files or digests; all of them when none is named
        #[arg(value_name = "FILE|SHA256")]
        libraries: Vec<String>,
    },
}

pub(super) fn quarantine(global: &Global, command: &QuarantineCommand) -> Result<(), Failure> {
    // A library that a program died of is put there first.
    global.open_registry()?;
    let Some(state) = State::of_user() else {
        let failure = Failure::new("there is no folder that says which plugins did harm");
        return Err(failure.help("set XDG_STATE_HOME or HOME"));
    };
    match command {
        QuarantineCommand::List => list(global, &state.quarantine()),
        QuarantineCommand::Clear { libraries } => clear(global, &state, libraries),
    }
}

fn list(global: &Global, libraries: &[Quarantined]) -> Result<(), Failure> {
    if global.json {
        return print_json(&json!({ "quarantine": libraries }));
    }
    let row = |library: &Quarantined| vec![library.file.clone(), library.reason.clone()];
    print(table(&libraries.iter().map(row).collect::<Vec<_>>()))
}

fn clear(global: &Global, state: &State, named: &[String]) -> Result<(), Failure> {
    let all = state.quarantine();
    let is_meant = |library: &&Quarantined, name: &String| {
        let path = Path::new(name).canonicalize().unwrap_or_else(|_| name.into());
        library.sha256 == *name || library.file == path.display().to_string()
    };
    if let Some(name) = named.iter().find(|name| !all.iter().any(|it| is_meant(&it, name))) {
        let help = "`tenon plugins quarantine list` shows what is";
        return Err(Failure::new(format!("`{name}` is not in quarantine")).help(help));
    }
    let is_cleared =
        |it: &&Quarantined| named.is_empty() || named.iter().any(|name| is_meant(it, name));
    let cleared: Vec<&Quarantined> = all.iter().filter(is_cleared).collect();
    for library in &cleared {
        state.release(library)?;
    }
    if global.json {
        return print_json(&json!({ "cleared": cleared }));
    }
    let line = |it: &&Quarantined| format!("{} is tried again when it is needed\n", it.file);
    print(cleared.iter().map(line).collect::<String>())
}
