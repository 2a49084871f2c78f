//! A folder with two models of equal shapes, and the program as a user calls it.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../models/program.rs"]
mod program;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) use program::{profile, tenon};

pub(crate) struct House(tempfile::TempDir);

impl House {
    /// `a.ir` and `b.ir` differ in the elements of one constant, too many to stand in a text that is written.
    pub(crate) fn new() -> Self {
        let house = Self(tempfile::tempdir().expect("a folder"));
        for (name, from) in [("a.ir", 0), ("b.ir", 1)] {
            let mut elements = String::new();
            (from..from + 4096).for_each(|element| write!(elements, "{element}, ").unwrap());
            let text = format!(
                "fn @main(%x: f32[4096]) {{\n  \
                 %y = add(%x, const(f32[4096], [{elements}]))\n  ret %y\n}}\n"
            );
            fs::write(house.at(name), text).expect("it can be written");
        }
        house
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program in this folder.
    pub(crate) fn tenon(&self, words: &[&str]) -> Command {
        let mut command = tenon();
        command.current_dir(self.0.path()).args(words);
        command
    }

    /// What succeeds.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.tenon(words).output().expect("the program is there");
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What is refused.
    #[track_caller]
    pub(crate) fn refused(&self, words: &[&str]) -> String {
        let output = self.tenon(words).output().expect("the program is there");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        said(&output)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in a folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// What a command said on standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
