//! Writes modules into a folder between passes.

use std::fs;
use std::path::PathBuf;

use crate::diagnostics::Diagnostic;
use crate::passes::{Instrument, StepInfo, StepOutcome};
use crate::text::{TextForm, write_module};

/// Constants of up to this many elements stand in the text.
const INLINE_LIMIT: u64 = 64;

/// Writes the module after each pass into a folder, numbered in the order of the passes. What an earlier run has
/// left there is removed.
pub struct Dump {
    folder: PathBuf,
    form: TextForm,
    count: usize,
}

impl Dump {
    /// Writes into `folder`, which is made; with what nodes came from or without.
    pub fn new(folder: PathBuf, has_sources: bool) -> Self {
        let form = TextForm { inline_limit: INLINE_LIMIT, has_sources };
        Self { folder, form, count: 0 }
    }

    fn failed(&self, error: impl std::fmt::Display) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(format!("cannot write to {}: {error}", self.folder.display())))
    }
}

/// Whether a file is one that this writes: `000_acme.Fold.ir`, or the weights beside it.
fn is_ours(name: &str) -> bool {
    let (number, rest) = name.split_once('_').unwrap_or(("", ""));
    number.len() >= 3
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (rest.ends_with(".ir") || rest.ends_with(".safetensors"))
}

impl Instrument for Dump {
    fn enter(&mut self) -> Result<(), Box<Diagnostic>> {
        fs::create_dir_all(&self.folder).map_err(|error| self.failed(error))?;
        for entry in fs::read_dir(&self.folder).map_err(|error| self.failed(error))?.flatten() {
            if entry.file_name().to_str().is_some_and(is_ours) {
                fs::remove_file(entry.path()).map_err(|error| self.failed(error))?;
            }
        }
        self.count = 0;
        Ok(())
    }

    fn after(
        &mut self,
        info: StepInfo<'_>,
        outcome: StepOutcome<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let StepOutcome::Ran { after, .. } = outcome else { return Ok(()) };
        if info.is_group() {
            return Ok(());
        }
        let file = self.folder.join(format!("{:03}_{}.ir", self.count, info.step.name));
        self.count += 1;
        write_module(after, &file, self.form).map_err(|error| self.failed(error))
    }
}
