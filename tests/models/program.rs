//! The program under test, called as a user calls it.

use std::{
    env,
    path::PathBuf,
    process::{Command, Output},
};

use libtest_mimic::Failed;

/// The folder of the program and the plugins: the one above this test's own.
pub(crate) fn profile() -> PathBuf {
    let here = env::current_exe().expect("a running test has a path");
    here.ancestors().nth(2).expect("tests lie in target/<profile>/deps").to_owned()
}

/// The program.
pub(crate) fn tenon() -> Command {
    Command::new(profile().join("tenon"))
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
