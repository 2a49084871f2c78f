//! The version after this one, made from today's sources by the edits below: a longer node record, a kind of
//! node, a longer table on either side, a service.

use std::fs;
use std::path::Path;

/// Replaces a text, which stands in its file once, by another.
struct Edit {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const EDITS: &[Edit] = &[
    Edit {
        file: "Cargo.toml",
        from: "version = \"1.0.0\"\nedition",
        to: "version = \"1.1.0\"\nedition",
    },
    // A longer record of a node.
    Edit {
        file: "plugin-api/src/abi/records.rs",
        from: "A copy of the node keeps it.\n        span: u32,\n",
        to: "A copy of the node keeps it.\n        span: u32,\n        /// Where it was made.\n        \
             origin: u32,\n        /// Zero.\n        unused: u32,\n",
    },
    Edit {
        file: "plugin-api/src/ir/build.rs",
        from: "    pub span: u32,\n}",
        to: "    pub span: u32,\n    /// Where it was made.\n    pub origin: u32,\n}",
    },
    Edit {
        file: "plugin-api/src/ir/build.rs",
        from: "attrs: Attrs::NONE, span: 0 }",
        to: "attrs: Attrs::NONE, span: 0, origin: 0 }",
    },
    Edit {
        file: "plugin-api/src/ir/build.rs",
        from: "            span: node.span,\n",
        to: "            span: node.span,\n            origin: node.origin,\n",
    },
    Edit {
        file: "plugin-api/src/ir/build.rs",
        from: "            span: self.span,\n",
        to: "            span: self.span,\n            origin: self.origin,\n            unused: 0,\n",
    },
    // A kind of node.
    Edit {
        file: "plugin-api/src/ir/kind.rs",
        from: "impl Kind {\n    /// Whether nodes of this kind",
        to: "impl Kind {\n    /// A value that is its operand.\n    pub const LATER: Kind = Kind(1000);\n\n    \
             /// Whether nodes of this kind",
    },
    // A longer table of passes.
    Edit {
        file: "plugin-api/src/abi/tables/offered.rs",
        from: "            module: *const RawModule,\n        ) -> *mut c_void;\n    }\n",
        to: "            module: *const RawModule,\n        ) -> *mut c_void;\n    }\n    since \"1.1\" {\n        \
             /// How often passes of the plugin have run. [any thread]\n        fn runs() -> u64;\n    }\n",
    },
    Edit {
        file: "plugin-api/src/abi/plugin.rs",
        from: "count, name, run };",
        to: "count, name, run, runs };\n\nunsafe extern \"C\" fn runs() -> u64 {\n    0\n}",
    },
    // A service.
    Edit {
        file: "plugin-api/src/abi/tables/host.rs",
        from: "module: *const RawModule, how: u32) -> u32;\n    }\n",
        to: "module: *const RawModule, how: u32) -> u32;\n    }\n    since \"1.2\" {\n        \
             /// How many terms the run's context has. [any thread]\n        \
             fn term_count(run: *const RawRun) -> u32;\n    }\n",
    },
    Edit {
        file: "plugin-api/src/abi/host.rs",
        from: "    /// Says that the pass fails.\n",
        to: "    /// How many terms there are; `None` where the host does not count them.\n    \
             pub(crate) fn term_count(&self) -> Option<u32> {\n        // SAFETY: `run` is alive.\n        \
             Some(unsafe { (self.tables.services.term_count()?)(self.run) })\n    }\n\n    \
             /// Says that the pass fails.\n",
    },
    Edit {
        file: "plugin-api/src/pass/context.rs",
        from: "    /// Tells the user something worth knowing",
        to: "    /// How many terms there are; `None` where the host does not count them.\n    \
             pub fn term_count(&self) -> Option<u32> {\n        self.host.term_count()\n    }\n\n    \
             /// Tells the user something worth knowing",
    },
    Edit {
        file: "host/compiler/src/border/services.rs",
        from: "    legalize_for,\n    measure_schedules,\n};",
        to: "    legalize_for,\n    measure_schedules,\n    term_count,\n};\n\n\
             unsafe extern \"C\" fn term_count(run: *const RawRun) -> u32 {\n    // SAFETY: see `mod.rs`.\n    \
             unsafe { call_of(run) }.map_or(0, |call| call.run.cx.term_count())\n}",
    },
];

/// Writes the sources of the next version into a folder; files that are right already are left alone.
pub(crate) fn write(root: &Path, folder: &Path) {
    let sources = ["plugin-api/src", "plugin-api/macros", "tuning", "host", "plugins/operators"];
    // What `tenon plugins new --c` writes.
    let shipped = ["plugin-api/include", "examples/c-pass"];
    for part in sources.into_iter().chain(shipped) {
        remove_stale(root, Path::new(part), folder);
        copy(root, Path::new(part), folder);
    }
    for manifest in ["Cargo.lock", "rustfmt.toml", "plugin-api/Cargo.toml"] {
        copy(root, Path::new(manifest), folder);
    }
    let manifests =
        PACKAGES.map(|part| (format!("{part}/Cargo.toml"), without_targets(root, part)));
    for (file, text) in [("Cargo.toml".to_owned(), workspace(root))].into_iter().chain(manifests) {
        write_changed(&folder.join(&file), &edited(Path::new(&file), text));
    }
}

/// Removes what was copied of a folder and is not in it any more.
fn remove_stale(root: &Path, path: &Path, folder: &Path) {
    let Ok(entries) = fs::read_dir(folder.join(path)) else { return };
    for entry in entries.flatten() {
        let inner = path.join(entry.file_name());
        let is_folder = entry.path().is_dir();
        match root.join(&inner).exists() {
            true if is_folder => remove_stale(root, &inner, folder),
            true => {}
            false if is_folder => fs::remove_dir_all(entry.path()).expect("it can be removed"),
            false => fs::remove_file(entry.path()).expect("it can be removed"),
        }
    }
}

/// The workspace without the root package and the plugins that have passes.
fn workspace(root: &Path) -> String {
    let text = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
    let (_, workspace) = text.split_once("[workspace]\n").expect("it is a workspace");
    let lines = workspace.lines().map(|line| match line {
        line if line.starts_with("members") => {
            let members = PACKAGES.iter().chain(&ONE_PIECE).map(|part| format!("\"{part}\""));
            format!("members = [{}]", members.collect::<Vec<_>>().join(", "))
        }
        line if line.starts_with("default-members") => String::new(),
        line => line.to_owned(),
    });
    format!("[workspace]\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// A package's manifest without benchmarks and examples, whose sources are not copied.
fn without_targets(root: &Path, package: &str) -> String {
    let text = fs::read_to_string(root.join(package).join("Cargo.toml")).expect("a manifest");
    let mut tables: Vec<&str> = text.split("\n[").collect();
    tables.retain(|table| !table.starts_with("[bench]]") && !table.starts_with("[example]]"));
    tables.join("\n[")
}

/// Packages that are copied without what their tests, examples and benchmarks need.
const PACKAGES: [&str; 7] = [
    "plugin-api",
    "host/ir",
    "host/eval",
    "host/runtime",
    "host/codegen",
    "host/compiler",
    "host/cli",
];

/// Packages that are copied with their manifests.
const ONE_PIECE: [&str; 3] = ["plugin-api/macros", "tuning", "plugins/operators"];

fn copy(root: &Path, path: &Path, folder: &Path) {
    let from = root.join(path);
    if from.is_dir() {
        for entry in fs::read_dir(&from).expect("a folder of the house").flatten() {
            copy(root, &path.join(entry.file_name()), folder);
        }
    } else if !path.ends_with("Cargo.toml") || ONE_PIECE.iter().any(|part| path.starts_with(part)) {
        match fs::read_to_string(&from) {
            Ok(text) => write_changed(&folder.join(path), &edited(path, text)),
            Err(_) => {
                fs::copy(&from, folder.join(path)).expect("copied");
            }
        }
    }
}

fn edited(path: &Path, mut text: String) -> String {
    for edit in EDITS.iter().filter(|edit| Path::new(edit.file) == path) {
        let count = text.matches(edit.from).count();
        assert_eq!(count, 1, "{} has {count} places for the edit of `{}`", edit.file, edit.from);
        text = text.replace(edit.from, edit.to);
    }
    text
}

/// Writes a file unless it is as it should be: what is not written anew is not compiled anew.
pub(crate) fn write_changed(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return;
    }
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
    fs::write(path, text).expect("written");
}
