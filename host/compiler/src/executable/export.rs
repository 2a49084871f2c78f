//! Writes a library or an object, and the header beside it.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::backend::{Compilation, ConstantTable, Front, FrontFunction, Work, backend_for};
use crate::io::{FileError, Outputs, is_stream, sha256};
use crate::object::{
    constants::ConstantArray,
    link::{LinkForm, LinkPlan, Part, link},
    linker::Linker,
};
use crate::runtime::signature::{LibraryInfo, Signature};
use crate::runtime::weights::{self, WeightsInfo};

use super::compile::Executable;
use super::error::CompileError;
use super::header::Header;
use super::several::EqualConstants;

/// Digits of the digest of inputs and outputs.
const INTERFACE_DIGITS: usize = 16;

/// What is written.
#[derive(Clone, Copy, Debug)]
pub struct ExportOptions<'a> {
    pub form: LinkForm,
    /// What the names of functions in C begin with. Without it that of the module is taken, its attribute `system_lib_prefix`, or
    /// the file's name, see [`prefix_of`].
    pub prefix: Option<&'a str>,
    /// The file that the constants go into; where none is named, the library holds them.
    pub weights: Option<&'a Path>,
}

impl ExportOptions<'_> {
    /// A library or an object that holds its constants.
    pub fn new(form: LinkForm) -> Self {
        ExportOptions { form, prefix: None, weights: None }
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFiles {
    /// The library or the object.
    pub binary: PathBuf,
    /// `None` when the other went to a device or a pipe, beside which nothing lies.
    pub header: Option<PathBuf>,
    /// The file of constants, where they have one.
    pub weights: Option<PathBuf>,
    /// What the names of its functions begin with.
    pub prefix: String,
}

impl Executable {
    /// Writes a shared library to `path`, or a relocatable object that holds all that it needs, and its header
    /// beside it, with the extension `h`. All of `outputs` is published.
    pub fn export(
        &self,
        path: &Path,
        form: LinkForm,
        prefix: Option<&str>,
        outputs: Outputs,
    ) -> Result<ExportedFiles, CompileError> {
        self.export_with(path, &ExportOptions { prefix, ..ExportOptions::new(form) }, outputs)
    }

    /// The same with options: a file of constants appears with the other two, or none of them does.
    pub fn export_with(
        &self,
        path: &Path,
        options: &ExportOptions<'_>,
        mut outputs: Outputs,
    ) -> Result<ExportedFiles, CompileError> {
        let ExportOptions { form, prefix, weights } = *options;
        let prefix = match prefix {
            Some(prefix) => checked(prefix)?,
            None => match &self.prefix {
                Some(prefix) => checked(prefix)?,
                None => prefix_of(path),
            },
        };
        let functions = self.named(&prefix)?;
        let equal = self.equal_constants();
        let constants = match weights {
            None => ConstantsAt { info: None, tables: self.tables() },
            Some(weights) => {
                let bytes: Vec<&[u8]> = equal.iter().map(|constant| constant.bytes).collect();
                let info = weights::write(&mut outputs, weights, &bytes)?;
                self.unread();
                let (places, _) = weights::places_of(bytes.iter().map(|bytes| bytes.len()));
                ConstantsAt { info: Some(info), tables: self.tables_of_file(&equal, &places) }
            }
        };
        let header = header_path(path);
        if let Some(header) = &header {
            let signatures = &self.info.functions;
            let weights = constants.info.as_ref();
            let functions = &functions;
            let text =
                Header { prefix: &prefix, path, form, functions, signatures, weights }.text();
            outputs.write(header, |file| {
                file.write_all(text.as_bytes())
                    .map_err(|cause| FileError::Write { path: header.clone(), cause })
            })?;
        }
        let linking = Linking { name: path, form, prefix: &prefix, functions: &functions };
        outputs.make(path, form.mode(), |place| self.link(linking, &constants, &equal, place))?;
        outputs.publish()?;
        let weights = weights.map(Path::to_owned);
        Ok(ExportedFiles { binary: path.to_owned(), header, weights, prefix })
    }

    /// Lets the system have the memory of constants that were read.
    fn unread(&self) {
        let all = self.code.iter().flat_map(|code| &code.constants);
        all.for_each(|(_, bytes)| bytes.unread());
    }

    /// The functions with their names in C. That which is meant where nobody names one has those of the library; another one
    /// has its own behind them, or what the module gives it.
    fn named(&self, prefix: &str) -> Result<Vec<FrontFunction>, CompileError> {
        let mut functions = Vec::with_capacity(self.given.len());
        for (at, (given, signature)) in self.given.iter().zip(&self.info.functions).enumerate() {
            let prefix = match given {
                Some(given) => checked(given)?,
                None if at == 0 && self.info.has_default => prefix.to_owned(),
                None => format!("{prefix}_{}", super::header::identifier(&signature.function)),
            };
            functions.push(FrontFunction {
                name: signature.function.clone(),
                prefix,
                code: self.code.iter().map(|code| code.names[at].clone()).collect(),
                interface: interface(signature)?,
                workspace: signature.workspace_size,
                takes: signature.arena,
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

    /// Links all parts into a file at `place`.
    fn link(
        &self,
        linking: Linking<'_>,
        constants_at: &ConstantsAt,
        equal: &[EqualConstants<'_>],
        place: &Path,
    ) -> Result<(), CompileError> {
        let Linking { name, form, prefix, functions } = linking;
        let ConstantsAt { info: weights, tables } = constants_at;
        let mut info = LibraryInfo { weights: weights.clone(), ..self.info.clone() };
        for (signature, function) in info.functions.iter_mut().zip(functions) {
            signature.symbol.clone_from(&function.prefix);
        }
        let has_default = info.has_default;
        let info = info.to_json().map_err(CompileError::Metadata)?;
        let is_library = form == LinkForm::Library;
        let processors = self.processors()?;
        let processors = &processors;
        let info = &info;
        let (constants, weights) = (&tables[..], weights.as_ref());
        let front = Front {
            prefix,
            functions,
            has_default,
            info,
            is_library,
            processors,
            constants,
            weights,
        };
        let exports = front.exports();
        let how = Compilation { threads: 1, ..Compilation::default() };
        // What asks for a processor runs on all.
        let baseline = (!processors.is_empty()).then(|| self.baseline()).transpose()?;
        let target = baseline.as_ref().unwrap_or(&self.code[0].target);
        let fronts =
            backend_for(target.architecture()).compile(target, &[Work::Front(front)], how)?;

        let held = equal.iter().filter(|_| weights.is_none());
        let constants: Vec<ConstantArray<'_>> = held.map(EqualConstants::array).collect();
        let compiled = self.compiled_constants(&constants)?;
        let objects = self.code.iter().flat_map(|code| &code.objects).map(|unit| &unit.bytes[..]);
        let objects = objects.chain(fronts.iter().chain(&compiled).map(|object| &object[..]));
        let mut parts: Vec<Part<'_>> = objects.map(Part::Object).collect();
        if target.architecture().has_elf() {
            parts.push(Part::Constants(&constants));
        }
        let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
        let externals = &self.externals;
        let plan = LinkPlan { target, form, parts: &parts, exports: &exports, name, externals };
        link(&Linker::find_for(target, self.linker.as_deref())?, &plan, place)?;
        self.unread();
        Ok(())
    }

    /// The constants as objects of the backend, where the target has none of ELF.
    fn compiled_constants(
        &self,
        constants: &[ConstantArray<'_>],
    ) -> Result<Vec<Vec<u8>>, CompileError> {
        let target = &self.code[0].target;
        let architecture = target.architecture();
        if architecture.has_elf() {
            return Ok(Vec::new());
        }
        let constants: Vec<(&str, &[u8])> =
            constants.iter().map(|array| (array.symbol, array.bytes)).collect();
        let how = Compilation { threads: 1, ..Compilation::default() };
        let work = [Work::Constants(&constants)];
        Ok(backend_for(architecture).compile(target, &work, how)?)
    }
}

/// What is linked: the file as it will be called, and its functions.
#[derive(Clone, Copy)]
struct Linking<'a> {
    name: &'a Path,
    form: LinkForm,
    prefix: &'a str,
    functions: &'a [FrontFunction],
}

/// Where the code finds its constants.
struct ConstantsAt {
    /// The file that they lie in, if they do.
    info: Option<WeightsInfo>,
    tables: Vec<ConstantTable>,
}

/// Where the constants of a library or an object lie that does not hold them, unless somebody says otherwise.
pub fn library_weights_path(path: &Path) -> Option<PathBuf> {
    (!is_stream(path)).then(|| path.with_extension("weights"))
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
