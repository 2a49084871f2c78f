//! The program under test, called as a user calls it.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use libtest_mimic::Failed;

/// The folder of the program and the plugins: the one above this test's own.
pub(crate) fn profile() -> PathBuf {
    let here = env::current_exe().expect("a running test has a path");
    here.ancestors().nth(2).expect("tests lie in target/<profile>/deps").to_owned()
}

/// Where the program remembers what it knows of plugins, for all tests.
pub(crate) fn state() -> PathBuf {
    profile().with_file_name("tmp").join("state")
}

/// The program, with the registry of the house and nobody else's.
pub(crate) fn tenon() -> Command {
    let mut command = Command::new(profile().join("tenon"));
    command.env("TENON_STATE", state());
    command.env("TENON_REGISTRY", Path::new(env!("CARGO_MANIFEST_DIR")).join("registry.toml"));
    command
}

/// Runs a command to its end, however that is.
pub(crate) fn run(command: &mut Command) -> Result<Output, Failed> {
    let output = command.output().map_err(|error| {
        format!(
            "{} cannot be run: {error}; cargo build --release --workspace builds it",
            command.get_program().display()
        )
    })?;
    Ok(output)
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failed> {
    let output = run(command)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}\n{said}", output.status).into())
}
