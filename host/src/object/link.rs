//! Links objects into one shared library or one relocatable object, with whatever linker the machine has.
//!
//! A library needs nothing but what [`symbols`] allows; those few come from the C library, which is named as
//! needed when it is found here, and from the process that loads the library otherwise. An object needs the same,
//! and gets it from the program that it is linked into.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::{ObjectError, constants, linker::Linker, own, symbols};
use crate::io::Mode;
use crate::target::Target;

/// A part of what is made.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// An object in memory.
    Object(&'a [u8]),
    /// An object on disk: for constants, which are too large for the other.
    File(&'a Path),
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
    pub(crate) fn mode(self) -> Mode {
        match self {
            LinkForm::Library => Mode::Program,
            LinkForm::Object => Mode::Data,
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
    if plan.form == LinkForm::Library {
        let c_library = c_library(plan.target).into_iter();
        arguments.extend(c_library.flat_map(|path| ["--as-needed".into(), path.into_os_string()]));
    }
    run(linker, &arguments, plan.name)?;
    if plan.form == LinkForm::Object && architecture.has_elf() {
        own::make_own(output, plan.exports)?;
    }
    // What an object of WebAssembly needs is found by who links it.
    if architecture.has_elf() { check(plan, output) } else { Ok(()) }
}

/// The parts as paths, those in memory written out.
fn objects_on_disk(plan: &LinkPlan<'_>, scratch: &Path) -> Result<Vec<PathBuf>, ObjectError> {
    plan.parts
        .iter()
        .enumerate()
        .map(|(index, part)| match part {
            Part::File(path) => Ok(path.to_path_buf()),
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
        "--build-id",
        "--hash-style=gnu",
        "-Bsymbolic",
    ];
    let mut words: Vec<OsString> = fixed.into_iter().map(OsString::from).collect();
    words.extend([soname, script]);
    if input_bytes(plan) >= constants::LARGE_FROM {
        // Direct addresses do not reach that far. LLVM's linker would replace GOT entries by them
        // first and take that back later, without the relocations that the entries then need.
        words.push("--no-relax".into());
    }
    words
}

fn input_bytes(plan: &LinkPlan<'_>) -> u64 {
    let size = |part: &Part<'_>| match part {
        Part::Object(bytes) => bytes.len() as u64,
        Part::File(path) => path.metadata().map_or(0, |metadata| metadata.len()),
    };
    plan.parts.iter().map(size).sum()
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

/// Nothing undefined but what is allowed, and every export there.
fn check(plan: &LinkPlan<'_>, file_path: &Path) -> Result<(), ObjectError> {
    let file = File::open(file_path).map_err(io("open", file_path))?;
    // SAFETY: the file is ours, just written under a name that nobody else knows, and is not
    // changed while it is mapped.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io("map", file_path))?;
    symbols::check_undefined(&plan.name.display().to_string(), &map)?;
    symbols::check_exports(&plan.name.display().to_string(), &map, plan.exports)
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> ObjectError + 'a {
    move |source| ObjectError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_all_that_is_seen() {
        assert_eq!(version_script(&[]), "{ local: *; };\n");
        assert_eq!(version_script(&["a", "b.c"]), "{ global: \"a\"; \"b.c\"; local: *; };\n");
    }

    #[test]
    fn large_inputs_keep_their_got_entries() {
        let target = "x86_64-linux-gnu".parse().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let sparse = directory.path().join("sparse.o");
        let output = directory.path().join("k.so");
        for (size, kept) in [(constants::LARGE_FROM - 1, false), (constants::LARGE_FROM, true)] {
            File::create(&sparse).unwrap().set_len(size).unwrap();
            let parts = [Part::File(&sparse)];
            let form = LinkForm::Library;
            let plan =
                LinkPlan { target: &target, form, parts: &parts, exports: &[], name: &output };
            let words = library_arguments(&plan, Path::new("exports"));
            assert_eq!(words.iter().any(|word| word == "--no-relax"), kept);
        }
    }
}
