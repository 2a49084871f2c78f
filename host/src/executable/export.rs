//! Writes a library or an object, and the header beside it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::backend::{Compilation, Front, FrontFunction, Work, backend_for};
use crate::io::{FileError, Outputs, is_stream, sha256};
use crate::object::{
    ObjectError,
    constants::{ConstantArray, write_constants},
    link::{LinkForm, LinkPlan, Part, link},
    linker::Linker,
};
use crate::runtime::signature::Signature;

use super::compile::Executable;
use super::error::CompileError;
use super::header::Header;

/// Digits of the digest of inputs and outputs.
const INTERFACE_DIGITS: usize = 16;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFiles {
    /// The library or the object.
    pub binary: PathBuf,
    /// `None` when the other went to a device or a pipe, beside which nothing lies.
    pub header: Option<PathBuf>,
    /// What the names of its functions begin with.
    pub prefix: String,
}

impl Executable {
    /// Writes a shared library to `path`, or a relocatable object that holds all that it needs, and its header
    /// beside it, with the extension `h`. Without a prefix that of the module is taken, its attribute `system_lib_prefix`, or
    /// the file's name, see [`prefix_of`]. All of `outputs` is published.
    pub fn export(
        &self,
        path: &Path,
        form: LinkForm,
        prefix: Option<&str>,
        mut outputs: Outputs,
    ) -> Result<ExportedFiles, CompileError> {
        let prefix = match prefix {
            Some(prefix) => checked(prefix)?,
            None => match &self.prefix {
                Some(prefix) => checked(prefix)?,
                None => prefix_of(path),
            },
        };
        let functions = self.named(&prefix)?;
        let header = header_path(path);
        if let Some(header) = &header {
            let signatures = &self.info.functions;
            let text =
                Header { prefix: &prefix, path, form, functions: &functions, signatures }.text();
            outputs.write(header, |file| {
                file.write_all(text.as_bytes())
                    .map_err(|cause| FileError::Write { path: header.clone(), cause })
            })?;
        }
        outputs
            .make(path, form.mode(), |place| self.link(path, form, &prefix, &functions, place))?;
        outputs.publish()?;
        Ok(ExportedFiles { binary: path.to_owned(), header, prefix })
    }

    /// The functions with their names in C. That which is meant where nobody names one has those of the library; another one
    /// has its own behind them, or what the module gives it.
    fn named(&self, prefix: &str) -> Result<Vec<FrontFunction>, CompileError> {
        let mut functions = Vec::with_capacity(self.names.len());
        for (at, (names, signature)) in self.names.iter().zip(&self.info.functions).enumerate() {
            let prefix = match &names.given {
                Some(given) => checked(given)?,
                None if at == 0 && self.info.has_default => prefix.to_owned(),
                None => format!("{prefix}_{}", super::header::identifier(&signature.function)),
            };
            functions.push(FrontFunction {
                name: signature.function.clone(),
                prefix,
                run: names.run.clone(),
                sizes: names.sizes.clone(),
                interface: interface(signature)?,
                workspace: signature.workspace_size,
            });
        }
        let mut owners: HashMap<String, &str> = HashMap::new();
        // The header's constants have them in capitals.
        for function in &functions {
            for name in function.exports().chain([function.prefix.to_ascii_uppercase()]) {
                if let Some(first) = owners.insert(name.clone(), &function.name) {
                    let (first, second) = (first.to_owned(), function.name.clone());
                    return Err(CompileError::SameName { first, second, name });
                }
            }
        }
        Ok(functions)
    }

    /// Links all parts into a file at `place`, which will be called `name`.
    fn link(
        &self,
        name: &Path,
        form: LinkForm,
        prefix: &str,
        functions: &[FrontFunction],
        place: &Path,
    ) -> Result<(), CompileError> {
        let mut info = self.info.clone();
        for (signature, function) in info.functions.iter_mut().zip(functions) {
            signature.symbol.clone_from(&function.prefix);
        }
        let has_default = info.has_default;
        let info = info.to_json().map_err(CompileError::Metadata)?;
        let is_library = form == LinkForm::Library;
        let front = Front { prefix, functions, has_default, info: &info, is_library };
        let exports = front.exports();
        let how = Compilation { threads: 1, ..Compilation::default() };
        let fronts = backend_for(self.target.architecture()).compile(
            &self.target,
            &[Work::Front(front)],
            how,
        )?;

        let scratch = tempfile::tempdir().map_err(|source| writing(name, source))?;
        let constants = scratch.path().join("constants.o");
        self.write_constants(&constants)?;

        let objects = self.objects.iter().map(|unit| Part::Object(&unit.bytes));
        let fronts = fronts.iter().map(|front| Part::Object(front));
        let parts: Vec<Part<'_>> = objects.chain(fronts).chain([Part::File(&constants)]).collect();
        let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
        let target = &self.target;
        let plan = LinkPlan { target, form, parts: &parts, exports: &exports, name };
        Ok(link(&Linker::find_for(target, self.linker.as_deref())?, &plan, place)?)
    }

    /// Writes the constants as an object.
    fn write_constants(&self, path: &Path) -> Result<(), CompileError> {
        let constants = self.constants.iter();
        let constants = constants.map(|(symbol, constant)| (symbol.as_str(), &constant.data[..]));
        let mut file = File::create(path).map_err(|source| writing(path, source))?;
        if self.target.architecture().has_elf() {
            let arrays: Vec<ConstantArray<'_>> =
                constants.map(|(symbol, bytes)| ConstantArray::new(symbol, bytes)).collect();
            write_constants(&self.target, &arrays, file)?;
            self.constants.iter().for_each(|(_, constant)| constant.data.unread());
            return Ok(());
        }
        let constants: Vec<(&str, &[u8])> = constants.collect();
        let how = Compilation { threads: 1, ..Compilation::default() };
        let objects = backend_for(self.target.architecture()).compile(
            &self.target,
            &[Work::Constants(&constants)],
            how,
        )?;
        objects
            .iter()
            .try_for_each(|object| file.write_all(object))
            .map_err(|source| writing(path, source))
    }
}

/// Where the header of a library or an object lies.
pub fn header_path(path: &Path) -> Option<PathBuf> {
    (!is_stream(path)).then(|| path.with_extension("h"))
}

/// What a header and a library must agree on: inputs and outputs, as digits.
fn interface(signature: &Signature) -> Result<String, CompileError> {
    let parts = serde_json::to_vec(&(&signature.inputs, &signature.outputs));
    let mut digest = sha256(&parts.map_err(CompileError::Metadata)?);
    digest.truncate(INTERFACE_DIGITS);
    Ok(digest)
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
    ObjectError::Io { action: "write", path: path.to_owned(), source }.into()
}
