//! Commands that are tried on a module.

use std::path::Path;
use std::process::{Command, Stdio};

use super::input::write_module;
use super::output::Failure;
use tenon_compiler::io::Outputs;
use tenon_compiler::ir::Module;

/// Where the path of the module goes.
const PLACE: &str = "{}";

/// A command line; `{}` in it stands for the path of a module's text, which is added where there is none.
pub(super) struct Trial<'a> {
    command: &'a [String],
    folder: tempfile::TempDir,
}

/// How a command ended.
pub(super) struct Ended {
    /// Whether with success.
    pub(super) is_success: bool,
    /// What it said on both outputs.
    pub(super) output: String,
}

impl<'a> Trial<'a> {
    /// A command, which must not be empty.
    pub(super) fn new(command: &'a [String]) -> Result<Self, Failure> {
        Ok(Self { command, folder: tempfile::tempdir()? })
    }

    /// Runs it on a module.
    pub(super) fn run(&self, module: &Module) -> Result<Ended, Failure> {
        let path = self.folder.path().join("module.ir");
        write_module(module, &path, Outputs::default())?;
        let ended = self.command_line(&path).output().map_err(|error| {
            Failure::new(format!("`{}` cannot be run: {error}", self.command[0]))
        })?;
        let mut output = String::from_utf8_lossy(&ended.stdout).into_owned();
        output.push_str(&String::from_utf8_lossy(&ended.stderr));
        Ok(Ended { is_success: ended.status.success(), output })
    }

    fn command_line(&self, path: &Path) -> Command {
        let path = path.display().to_string();
        let mut command = Command::new(&self.command[0]);
        command.args(self.command[1..].iter().map(|arg| arg.replace(PLACE, &path)));
        if !self.command[1..].iter().any(|arg| arg.contains(PLACE)) {
            command.arg(&path);
        }
        command.stdin(Stdio::null());
        command
    }
}
