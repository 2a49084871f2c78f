//! Links objects into one shared library or one relocatable object, with whatever linker the machine has.
//!
//! A library needs nothing but what [`symbols`] allows; those few come from the C library, which is named as
//! needed when it is found here, and from the process that loads the library otherwise. An object needs the same,
//! and gets it from the program that it is linked into.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    hash::Hasher,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;
use twox_hash::XxHash3_64;

use super::constants::{self, ConstantArray, Content, write_constants};
use super::externals::{Externals, FileKind};
use super::{ObjectError, linker::Linker, own, symbols};
use crate::target::Target;
use tenon_runtime::io::Mode;

/// A part of what is made.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// An object in memory.
    Object(&'a [u8]),
    /// Constants, which are too large for the other.
    Constants(&'a [ConstantArray<'a>]),
}

impl<'a> Part<'a> {
    /// The bytes that it has.
    fn pieces(&self) -> Vec<&'a [u8]> {
        match *self {
            Part::Object(bytes) => vec![bytes],
            Part::Constants(arrays) => arrays.iter().map(|array| array.bytes).collect(),
        }
    }
}

/// What is made of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkForm {
    /// A shared library.
    Library,
    /// A relocatable object.
    Object,
}

impl LinkForm {
    /// What may be done with the file.
    pub fn mode(self) -> Mode {
        match self {
            LinkForm::Library => Mode::Program,
            LinkForm::Object => Mode::Data,
        }
    }

    /// What the linker is given of constants.
    fn content(self) -> Content {
        match self {
            LinkForm::Library => Content::Room,
            LinkForm::Object => Content::Bytes,
        }
    }
}

/// What to link.
#[derive(Debug, Clone, Copy)]
pub struct LinkPlan<'a> {
    pub target: &'a Target,
    pub form: LinkForm,
    pub parts: &'a [Part<'a>],
    /// The symbols that users see. Every other one is hidden.
    pub exports: &'a [&'a str],
    /// What it will be called: the file name of a library is also its soname.
    pub name: &'a Path,
    /// What the parts call and others define.
    pub externals: &'a Externals,
}

/// Links `plan` and writes the result to `output`.
pub fn link(linker: &Linker, plan: &LinkPlan<'_>, output: &Path) -> Result<(), ObjectError> {
    let architecture = plan.target.architecture();
    if plan.form == LinkForm::Library && !architecture.has_elf() {
        return Err(ObjectError::NoLibraries { architecture });
    }
    let scratch = TempDir::with_prefix("tenon-link-").map_err(io("make", Path::new("tempdir")))?;
    let objects = objects_on_disk(plan, scratch.path())?;
    let mut arguments = match plan.form {
        LinkForm::Object => vec!["-r".into()],
        LinkForm::Library => {
            let exports = scratch.path().join("exports");
            std::fs::write(&exports, version_script(plan.exports))
                .map_err(io("write", &exports))?;
            library_arguments(plan, &exports)
        }
    };
    arguments.extend(["-o".into(), output.as_os_str().to_owned()]);
    arguments.extend(objects.into_iter().map(PathBuf::into_os_string));
    arguments.extend(linked_files(plan)?);
    if plan.form == LinkForm::Library {
        let c_library = c_library(plan.target).into_iter();
        arguments.extend(c_library.flat_map(|path| ["--as-needed".into(), path.into_os_string()]));
    }
    run(linker, &arguments, plan.name)?;
    if plan.form == LinkForm::Object && architecture.has_elf() {
        own::make_own(output, plan.exports)?;
    }
    // What an object of WebAssembly needs is found by who links it.
    if architecture.has_elf() { check_and_fill(plan, output) } else { Ok(()) }
}

/// The files of others. A shared library is none of an object's, but of whatever that is linked into.
fn linked_files(plan: &LinkPlan<'_>) -> Result<Vec<OsString>, ObjectError> {
    let mut arguments = Vec::new();
    for (path, kind) in plan.externals.files.iter().zip(plan.externals.kinds()?) {
        match (kind, plan.form) {
            (FileKind::Shared, LinkForm::Object) => continue,
            // Beside the library first.
            (FileKind::Shared, LinkForm::Library) => {
                arguments.extend(["--enable-new-dtags", "-rpath=$ORIGIN"].map(OsString::from));
                // Found by `-l:`, one without a soname is recorded by its file name, which `$ORIGIN` is searched for; given as a path, by that path.
                if let Some(name) = path.file_name() {
                    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                    let (mut within, mut library) = (OsString::from("-L"), OsString::from("-l:"));
                    within.push(folder.unwrap_or(Path::new(".")));
                    library.push(name);
                    arguments.extend([within, library]);
                    continue;
                }
            }
            (FileKind::Object | FileKind::Archive, _) => {}
        }
        arguments.push(path.into());
    }
    Ok(arguments)
}

/// The parts as paths, those in memory written out.
fn objects_on_disk(plan: &LinkPlan<'_>, scratch: &Path) -> Result<Vec<PathBuf>, ObjectError> {
    plan.parts
        .iter()
        .enumerate()
        .map(|(index, part)| match part {
            Part::Constants(arrays) => {
                let path = scratch.join(format!("{index}.o"));
                let file = File::create(&path).map_err(io("write", &path))?;
                write_constants(plan.target, arrays, plan.form.content(), file)?;
                Ok(path)
            }
            Part::Object(bytes) => {
                let path = scratch.join(format!("{index}.o"));
                let written = File::create(&path).and_then(|mut file| file.write_all(bytes));
                written.map_err(io("write", &path))?;
                Ok(path)
            }
        })
        .collect()
}

/// Everything but inputs and output, in the words of `ld`.
fn library_arguments(plan: &LinkPlan<'_>, exports: &Path) -> Vec<OsString> {
    let mut soname = OsString::from("-soname=");
    soname.push(plan.name.file_name().unwrap_or(OsStr::new("library.so")));
    let mut script = OsString::from("--version-script=");
    script.push(exports);
    let fixed = [
        "-shared",
        "-z",
        "now",
        "-z",
        "relro",
        "-z",
        "noexecstack",
        "--gc-sections",
        "--hash-style=gnu",
        "-Bsymbolic",
    ];
    let mut words: Vec<OsString> = fixed.into_iter().map(OsString::from).collect();
    words.extend([soname, script, build_id(plan).into()]);
    if keeps_got_entries(plan) {
        words.push("--no-relax".into());
    }
    words
}

/// Whether direct addresses do not reach everything. LLVM's linker would replace GOT entries by them first and take that back later,
/// without the relocations that the entries then need.
fn keeps_got_entries(plan: &LinkPlan<'_>) -> bool {
    let pieces = plan.parts.iter().flat_map(Part::pieces);
    pieces.map(|piece| piece.len() as u64).sum::<u64>() >= constants::LARGE_FROM
}

/// What tells libraries apart, for debuggers and profilers: linkers make it of what they write, which has no constants yet.
fn build_id(plan: &LinkPlan<'_>) -> String {
    let mut hash = XxHash3_64::new();
    for piece in plan.parts.iter().flat_map(Part::pieces) {
        hash.write(piece);
    }
    format!("--build-id=0x{:016x}", hash.finish())
}

fn version_script(exports: &[&str]) -> String {
    let names: String = exports.iter().map(|name| format!("\"{name}\"; ")).collect();
    let global = if names.is_empty() { String::new() } else { format!("global: {names}") };
    format!("{{ {global}local: *; }};\n")
}

/// The C library of this machine, when the target is such a machine.
fn c_library(target: &Target) -> Option<PathBuf> {
    if !target.runs_here() || !target.triple().contains("gnu") {
        return None;
    }
    let multiarch = format!("{}-linux-gnu", target.architecture());
    ["/lib", "/usr/lib"]
        .iter()
        .map(|root| Path::new(root).join(&multiarch).join("libc.so.6"))
        .chain(
            ["/lib64/libc.so.6", "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"].map(PathBuf::from),
        )
        .find(|path| path.exists())
}

fn run(linker: &Linker, arguments: &[OsString], name: &Path) -> Result<(), ObjectError> {
    let output = Command::new(linker.program())
        .args(linker.arguments(arguments))
        .stdin(Stdio::null())
        .output()
        .map_err(io("run", linker.program()))?;
    if output.status.success() {
        return Ok(());
    }
    // LLVM's linker maps what it writes, so a page that the disk has no room for ends it.
    if output.status.signal() == Some(libc::SIGBUS) {
        return Err(io("write", name)(std::io::ErrorKind::StorageFull.into()));
    }
    Err(ObjectError::Link {
        linker: linker.program().to_owned(),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
    })
}

/// Nothing undefined but what is allowed, and every export there; then constants are put into the room that they have.
fn check_and_fill(plan: &LinkPlan<'_>, file_path: &Path) -> Result<(), ObjectError> {
    let options = File::options().read(true).write(true).open(file_path);
    let file = options.map_err(io("open", file_path))?;
    // SAFETY: the file is ours, just written under a name that nobody else knows. While it is mapped nothing is changed but the room
    // for constants, which nobody reads here.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io("map", file_path))?;
    let name = plan.name.display().to_string();
    symbols::check_undefined(&name, &map, plan.externals)?;
    symbols::check_exports(&name, &map, plan.exports)?;
    for part in plan.parts {
        if let (Part::Constants(arrays), Content::Room) = (part, plan.form.content()) {
            constants::fill(arrays, &name, &map, &file)?;
        }
    }
    Ok(())
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> ObjectError + 'a {
    move |source| ObjectError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::super::externals::NONE;
    use super::*;

    #[test]
    fn exports_are_all_that_is_seen() {
        assert_eq!(version_script(&[]), "{ local: *; };\n");
        assert_eq!(version_script(&["a", "b.c"]), "{ global: \"a\"; \"b.c\"; local: *; };\n");
    }

    #[test]
    fn large_inputs_keep_their_got_entries() {
        let target = "x86_64-linux-gnu".parse().unwrap();
        let output = Path::new("k.so");
        // Zeros that nobody touches take no memory.
        let zeros = vec![0; constants::LARGE_FROM as usize];
        for (size, kept) in [(zeros.len() - 1, false), (zeros.len(), true)] {
            let arrays = [ConstantArray::new("zeros", &zeros[..size])];
            let parts = [Part::Constants(&arrays)];
            let plan = LinkPlan {
                target: &target,
                form: LinkForm::Library,
                parts: &parts,
                exports: &[],
                name: output,
                externals: &NONE,
            };
            assert_eq!(keeps_got_entries(&plan), kept);
        }
    }
}
