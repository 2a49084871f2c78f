//! Links objects into one shared library, with whatever linker the machine has.
//!
//! The library needs nothing but what [`symbols`] allows; those few come from the C library,
//! which is named as needed when it is found here, and from the process that loads the library
//! otherwise. The file appears under its name when it is complete, or not at all.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::{NamedTempFile, TempDir};

use super::{LlvmError, constants, linker::Linker, symbols, target::CpuTarget};

/// A part of the library.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// An object in memory.
    Object(&'a [u8]),
    /// An object on disk: for constants, which are too large for the other.
    File(&'a Path),
}

/// What to link.
#[derive(Debug, Clone, Copy)]
pub struct LibraryPlan<'a> {
    pub target: &'a CpuTarget,
    pub parts: &'a [Part<'a>],
    /// The symbols that users of the library see. Every other one is hidden.
    pub exports: &'a [&'a str],
    /// Where it goes; the file name is also its soname.
    pub output: &'a Path,
}

/// Links `plan` and puts the library into its place.
pub fn link_library(linker: &Linker, plan: &LibraryPlan<'_>) -> Result<(), LlvmError> {
    let scratch = TempDir::with_prefix("tenon-link-").map_err(io("make", Path::new("tempdir")))?;
    let place = plan.output.parent().filter(|parent| !parent.as_os_str().is_empty());
    let place = place.unwrap_or(Path::new("."));
    // Beside the output, so that the rename at the end stays within one file system.
    let library = NamedTempFile::with_prefix_in(".tenon-", place).map_err(io("write in", place))?;

    let objects = objects_on_disk(plan, scratch.path())?;
    let exports = scratch.path().join("exports");
    std::fs::write(&exports, version_script(plan.exports)).map_err(io("write", &exports))?;
    let mut arguments = arguments(plan, &exports);
    arguments.extend(["-o".into(), library.path().as_os_str().to_owned()]);
    arguments.extend(objects.into_iter().map(PathBuf::into_os_string));
    arguments.extend(
        c_library(plan.target)
            .into_iter()
            .flat_map(|path| [OsString::from("--as-needed"), path.into_os_string()]),
    );
    run(linker, &arguments)?;
    check(plan, library.path())?;
    publish(library, plan.output)
}

/// The parts as paths, those in memory written out.
fn objects_on_disk(plan: &LibraryPlan<'_>, scratch: &Path) -> Result<Vec<PathBuf>, LlvmError> {
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
fn arguments(plan: &LibraryPlan<'_>, exports: &Path) -> Vec<OsString> {
    let mut soname = OsString::from("-soname=");
    soname.push(plan.output.file_name().unwrap_or(OsStr::new("library.so")));
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

fn input_bytes(plan: &LibraryPlan<'_>) -> u64 {
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
fn c_library(target: &CpuTarget) -> Option<PathBuf> {
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

fn run(linker: &Linker, arguments: &[OsString]) -> Result<(), LlvmError> {
    let output = Command::new(linker.program())
        .args(linker.arguments(arguments))
        .stdin(Stdio::null())
        .output()
        .map_err(io("run", linker.program()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LlvmError::Link {
        linker: linker.program().to_owned(),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).trim_end().to_owned(),
    })
}

/// Nothing undefined but what is allowed, and every export there.
fn check(plan: &LibraryPlan<'_>, library: &Path) -> Result<(), LlvmError> {
    let file = File::open(library).map_err(io("open", library))?;
    // SAFETY: the file is ours, just written under a name that nobody else knows, and is not
    // changed while it is mapped.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io("map", library))?;
    symbols::check_undefined(&plan.output.display().to_string(), &map)?;
    symbols::check_exports(&plan.output.display().to_string(), &map, plan.exports)
}

/// Readable and executable for all that may read, as a linker leaves it; then the rename.
fn publish(library: NamedTempFile, output: &Path) -> Result<(), LlvmError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(library.path(), mode).map_err(io("set the mode of", output))?;
    }
    library.persist(output).map(drop).map_err(|error| io("write", output)(error.error))
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> LlvmError + 'a {
    move |source| LlvmError::Io { action, path: path.to_owned(), source }
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
            let plan =
                LibraryPlan { target: &target, parts: &parts, exports: &[], output: &output };
            let words = arguments(&plan, Path::new("exports"));
            assert_eq!(words.iter().any(|word| word == "--no-relax"), kept);
        }
    }
}
