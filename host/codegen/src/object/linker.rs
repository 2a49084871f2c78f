//! Finds a linker.
//!
//! In this order: `ld.lld-22`, another `ld.lld-*` (the newest), `ld.lld`, the `rust-lld` of a Rust
//! toolchain, `cc`. The first four are LLVM's linker and need no development files; `cc` is
//! whatever the C compiler uses. A program with LLVM inside is LLVM's linker as well, and is taken before all.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use super::ObjectError;
use crate::target::Target;

/// A program that links, and how to talk to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linker {
    program: PathBuf,
    dialect: Dialect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// `ld`'s own words.
    Ld,
    /// The same behind `-flavor gnu`.
    RustLld,
    /// The same behind `-flavor wasm`.
    RustLldWasm,
    /// A compiler driver, that hands over what stands behind `-Wl,`.
    Cc,
    /// LLVM's linker within `tenon`, with the name that it has.
    Inside(&'static str),
}

impl Linker {
    /// The first linker of the list that is on this machine.
    pub fn find() -> Result<Linker, ObjectError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
        Linker::find_in(&directories)
    }

    /// One that links for a target: for another architecture than this machine's only LLVM's linker does, and for
    /// WebAssembly under another name. `inside` is a program `tenon` that has it inside.
    pub fn find_for(target: &Target, inside: Option<&Path>) -> Result<Linker, ObjectError> {
        if let Some(program) = inside {
            let name = if target.architecture().has_elf() { "ld.lld" } else { "wasm-ld" };
            return Ok(Linker { program: program.to_owned(), dialect: Dialect::Inside(name) });
        }
        match Linker::find()? {
            linker if !target.architecture().has_elf() => linker.for_wasm(),
            Linker { program, dialect: Dialect::Cc } if !target.runs_here() => {
                Err(ObjectError::ForeignLinker { linker: program, target: target.to_string() })
            }
            linker => Ok(linker),
        }
    }

    /// The same linker for WebAssembly.
    fn for_wasm(self) -> Result<Linker, ObjectError> {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy();
        let program = self.program.with_file_name(name.replace("ld.lld", "wasm-ld"));
        match self.dialect {
            Dialect::RustLld => Ok(Linker { dialect: Dialect::RustLldWasm, ..self }),
            Dialect::Ld if program.is_file() => Ok(Linker { program, ..self }),
            Dialect::Ld | Dialect::RustLldWasm | Dialect::Cc | Dialect::Inside(_) => {
                Err(ObjectError::NoLinker { searched: vec![program.display().to_string()] })
            }
        }
    }

    /// [`Linker::find`] in `directories` alone (and in the toolchain of a `rustc` in them).
    pub fn find_in(directories: &[PathBuf]) -> Result<Linker, ObjectError> {
        let lld = find_program(directories, "ld.lld-22")
            .or_else(|| newest_lld(directories))
            .or_else(|| find_program(directories, "ld.lld"));
        if let Some(program) = lld {
            return Ok(Linker { program, dialect: Dialect::Ld });
        }
        if let Some(program) = rust_lld(directories) {
            return Ok(Linker { program, dialect: Dialect::RustLld });
        }
        if let Some(program) = find_program(directories, "cc") {
            return Ok(Linker { program, dialect: Dialect::Cc });
        }
        let searched = ["ld.lld-22", "ld.lld-*", "ld.lld", "rust-lld", "cc"];
        Err(ObjectError::NoLinker { searched: searched.map(str::to_owned).to_vec() })
    }

    /// A linker by path; its name says what it is.
    pub fn at(program: &Path) -> Linker {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let dialect = if name.contains("rust-lld") {
            Dialect::RustLld
        } else if name.contains("ld") && !name.contains("clang") {
            Dialect::Ld
        } else {
            Dialect::Cc
        };
        Linker { program: program.to_owned(), dialect }
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// `ld` arguments in the words of this linker. The first says what is made: `-shared`, `-r`.
    pub fn arguments(&self, ld: &[OsString]) -> Vec<OsString> {
        match self.dialect {
            Dialect::Ld => ld.to_vec(),
            Dialect::RustLld => flavored("gnu", ld),
            Dialect::RustLldWasm => flavored("wasm", ld),
            Dialect::Inside(name) => {
                let name = ["linker", name].into_iter().map(OsString::from);
                name.chain(ld.iter().cloned()).collect()
            }
            Dialect::Cc => {
                let [made, rest @ ..] = ld else { return Vec::new() };
                // Without the start files and libraries of C, of which nothing is used.
                let fixed = [made.clone(), "-nostdlib".into()];
                let rest = rest.iter().flat_map(|word| ["-Xlinker".into(), word.clone()]);
                fixed.into_iter().chain(rest).collect()
            }
        }
    }
}

fn flavored(flavor: &str, ld: &[OsString]) -> Vec<OsString> {
    let flavor = ["-flavor", flavor].into_iter().map(OsString::from);
    flavor.chain(ld.iter().cloned()).collect()
}

fn find_program(directories: &[PathBuf], name: &str) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// The `ld.lld-<version>` with the highest version.
fn newest_lld(directories: &[PathBuf]) -> Option<PathBuf> {
    directories
        .iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.strip_prefix("ld.lld-")?;
            Some((version.parse::<u32>().ok()?, path))
        })
        .max()
        .map(|(_, path)| path)
}

/// The linker inside the toolchain that `rustc` belongs to.
pub fn rust_lld(directories: &[PathBuf]) -> Option<PathBuf> {
    let rustc = find_program(directories, "rustc")?;
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    std::fs::read_dir(sysroot.join("lib/rustlib"))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/rust-lld")))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(directory: &Path, names: &[&str]) {
        for name in names {
            std::fs::write(directory.join(name), "").unwrap();
        }
    }

    #[test]
    fn the_order_is_the_one_above() {
        let directory = tempfile::tempdir().unwrap();
        let directories = [directory.path().to_owned()];
        let found = || Linker::find_in(&directories).unwrap().program;
        touch(directory.path(), &["cc"]);
        assert!(found().ends_with("cc"));
        touch(directory.path(), &["ld.lld"]);
        assert!(found().ends_with("ld.lld"));
        touch(directory.path(), &["ld.lld-9", "ld.lld-19", "ld.lld-old"]);
        assert!(found().ends_with("ld.lld-19"));
        touch(directory.path(), &["ld.lld-22", "ld.lld-23"]);
        assert!(found().ends_with("ld.lld-22"));
    }

    #[test]
    fn no_linker_is_an_error_that_says_what_to_do() {
        let text = Linker::find_in(&[]).unwrap_err().to_string();
        assert!(text.contains("`ld.lld-22`") && text.contains("`cc`"), "{text}");
        assert!(text.contains("apt-get install lld-22"), "{text}");
    }

    #[test]
    fn a_compiler_is_told_what_it_makes_and_hands_over_the_rest() {
        let words = ["-r", "-o", "x"].map(OsString::from);
        let spoken = Linker::at(Path::new("cc")).arguments(&words);
        assert_eq!(spoken, ["-r", "-nostdlib", "-Xlinker", "-o", "-Xlinker", "x"]);
    }

    #[test]
    fn a_path_says_what_it_is() {
        let dialect = |path: &str| Linker::at(Path::new(path)).dialect;
        assert_eq!(dialect("/usr/bin/ld.lld-22"), Dialect::Ld);
        assert_eq!(dialect("/x/rust-lld"), Dialect::RustLld);
        assert_eq!(dialect("/usr/bin/cc"), Dialect::Cc);
        assert_eq!(dialect("/usr/bin/clang"), Dialect::Cc);
    }
}
