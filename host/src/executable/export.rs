//! Writes a library, and the header beside it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::io::{FileError, write_atomically};
use crate::llvm::{
    LlvmError,
    codegen::{CodegenError, Front, build_front},
    constants::{ConstantArray, write_constants},
    link::{LibraryPlan, Part, link_library},
    linker::Linker,
    object::{self, compile_units},
};

use super::compile::Executable;
use super::error::CompileError;
use super::header::header;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFiles {
    pub library: PathBuf,
    pub header: PathBuf,
    /// What the names of the library's functions begin with.
    pub prefix: String,
}

impl Executable {
    /// Writes a shared library to `path`, and its header beside it, with the extension `h`. Without
    /// a prefix the file's name is taken, see [`prefix_of`].
    pub fn export(&self, path: &Path, prefix: Option<&str>) -> Result<ExportedFiles, CompileError> {
        let prefix = match prefix {
            Some(prefix) => checked(prefix)?,
            None => prefix_of(path),
        };
        let info = serde_json::to_string(&self.signature).map_err(CompileError::Metadata)?;
        let front =
            Front { prefix: &prefix, workspace: self.signature.workspace_size, info: &info };
        let exports = front.exports();
        let options = object::CompileOptions { threads: 1, ..object::CompileOptions::default() };
        let fronts = compile_units(&self.target, &options, &[front], |cx, front| {
            build_front(cx, &self.target, front)
        })
        .map_err(|error: CodegenError| error)?;

        let scratch = tempfile::tempdir().map_err(|source| writing(path, source))?;
        let constants = scratch.path().join("constants.o");
        let arrays: Vec<ConstantArray<'_>> = self
            .constants
            .iter()
            .map(|(symbol, constant)| ConstantArray::new(symbol, &constant.data))
            .collect();
        let file = File::create(&constants).map_err(|source| writing(&constants, source))?;
        write_constants(&self.target, &arrays, file)?;

        let objects = self.objects.iter().map(|unit| Part::Object(&unit.bytes));
        let fronts = fronts.iter().map(|front| Part::Object(front));
        let parts: Vec<Part<'_>> = objects.chain(fronts).chain([Part::File(&constants)]).collect();
        let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
        let target = &self.target;
        link_library(
            &Linker::find()?,
            &LibraryPlan { target, parts: &parts, exports: &exports, output: path },
        )?;
        let header_path = path.with_extension("h");
        let text = header(&prefix, path, &self.signature);
        write_atomically(&header_path, |file| {
            file.write_all(text.as_bytes())
                .map_err(|cause| FileError::Write { path: header_path.clone(), cause })
        })?;
        Ok(ExportedFiles { library: path.to_owned(), header: header_path, prefix })
    }
}

/// The prefix that a library's file name gives: its stem without `lib`, as a C name.
pub fn prefix_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = match stem.strip_prefix("lib") {
        Some(rest) if !rest.is_empty() => rest,
        _ => &stem,
    };
    let name = super::header::identifier(stem);
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("m{name}") } else { name }
}

fn checked(prefix: &str) -> Result<String, CompileError> {
    let fail = |reason| Err(CompileError::Prefix(prefix.to_owned(), reason));
    match prefix.chars().next() {
        None => fail("it is empty"),
        Some(first) if first.is_ascii_digit() => fail("it begins with a digit"),
        Some(_) if super::header::identifier(prefix) != prefix => {
            fail("it may have letters, digits and underscores")
        }
        Some(_) => Ok(prefix.to_owned()),
    }
}

fn writing(path: &Path, source: std::io::Error) -> CompileError {
    LlvmError::Io { action: "write", path: path.to_owned(), source }.into()
}
