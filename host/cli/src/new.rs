//! `plugins new`: a folder that builds, tests and loads as it is.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::json;

use super::Global;
use super::output::{Failure, print, print_json};

#[derive(Args)]
#[command(group = ArgGroup::new("language").required(true))]
pub(super) struct NewArgs {
    /// The folder to make; its last part is the plugin's name
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// With a pass in Rust
    #[arg(long, group = "language")]
    pass: bool,
    /// With an operator in Rust, and rules for it
    #[arg(long, group = "language")]
    op: bool,
    /// With a rule in Rust that schedules tensor programs
    #[arg(long, group = "language")]
    schedule: bool,
    /// With a pass in C
    #[arg(long, group = "language")]
    c: bool,
    /// The folder of tenon-plugin-api; by default that which this program was built from
    #[arg(long, value_name = "PATH", conflicts_with = "c")]
    api: Option<PathBuf>,
}

/// Where this program's own plugin API lies when it was built on this computer.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugin-api");

/// Files of a plugin in C and what is in them. The pass is that of `examples/c-pass`.
const C_FILES: &[(&str, &str)] = &[
    ("Makefile", include_str!("template/Makefile.txt")),
    ("README.md", include_str!("template/README_c.md.txt")),
    ("registry.toml", include_str!("template/registry_c.toml.txt")),
    (".gitignore", "*.so\n"),
    ("include/tenon_plugin.h", include_str!("../../../plugin-api/include/tenon_plugin.h")),
    ("multiply_by_one.c", include_str!("../../../examples/c-pass/multiply_by_one.c")),
    ("tests/run.sh", include_str!("template/run.sh.txt")),
    (
        "tests/multiply_by_one/both_sides.ir",
        include_str!("../../../examples/c-pass/tests/multiply_by_one/both_sides.ir"),
    ),
    (
        "tests/multiply_by_one/keeps_other_factors.ir",
        include_str!("../../../examples/c-pass/tests/multiply_by_one/keeps_other_factors.ir"),
    ),
];

/// What the pass of `examples/c-pass` is called, and what its plugin is.
const EXAMPLE_PASS: &str = "c.MultiplyByOne";
const EXAMPLE_PLUGIN: &str = "\"example.c\"";

/// Files of a plugin in Rust and what is in them.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    ("README.md", include_str!("template/README.md.txt")),
    ("registry.toml", include_str!("template/registry.toml.txt")),
    (".gitignore", "/target\n"),
    ("rustfmt.toml", include_str!("../../../rustfmt.toml")),
    ("src/lib.rs", include_str!("template/lib.rs.txt")),
    ("src/double_negation.rs", include_str!("template/double_negation.rs.txt")),
    ("tests/fixtures.rs", include_str!("template/fixtures.rs.txt")),
    ("tests/double_negation/pair.ir", include_str!("template/pair.ir.txt")),
    ("tests/double_negation/single.ir", include_str!("template/single.ir.txt")),
];

/// Files of a plugin with an operator and what is in them.
const OP_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    ("README.md", include_str!("template/README_op.md.txt")),
    ("registry.toml", include_str!("template/registry_op.toml.txt")),
    (".gitignore", "/target\n"),
    ("rustfmt.toml", include_str!("../../../rustfmt.toml")),
    ("src/lib.rs", include_str!("template/lib_op.rs.txt")),
    ("src/power_relu.rs", include_str!("template/power_relu.rs.txt")),
    ("tests/fixtures.rs", include_str!("template/fixtures.rs.txt")),
    ("tests/power_relu/gradient.ir", include_str!("template/gradient.ir.txt")),
    ("tests/power_relu/simplified.ir", include_str!("template/simplified.ir.txt")),
    ("tests/power_relu/value.ir", include_str!("template/value.ir.txt")),
];

/// Files of a plugin with a schedule and what is in them.
const SCHEDULE_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo_schedule.toml.txt")),
    ("README.md", include_str!("template/README_schedule.md.txt")),
    ("registry.toml", include_str!("template/registry_op.toml.txt")),
    (".gitignore", "/target\n"),
    ("rustfmt.toml", include_str!("../../../rustfmt.toml")),
    ("src/lib.rs", include_str!("template/lib_schedule.rs.txt")),
    ("src/dense.rs", include_str!("template/dense.rs.txt")),
    ("tests/fixtures.rs", include_str!("template/fixtures.rs.txt")),
    ("tests/dense/eight_columns.ir", include_str!("template/eight_columns.ir.txt")),
];

pub(super) fn new(global: &Global, args: &NewArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    let name = name_of(folder)?;
    let tenon = quoted(&std::env::current_exe()?)?;
    // The example's own names come first, since a plugin's name may end as they begin.
    let mut values = match args.c {
        true => vec![
            (EXAMPLE_PASS, format!("{name}.MultiplyByOne")),
            (EXAMPLE_PLUGIN, format!("\"{name}\"")),
        ],
        false => {
            let [api, schedule] = crates(args.api.as_deref())?;
            vec![("{api}", api), ("{schedule}", schedule)]
        }
    };
    values.extend([
        ("{name}", name.to_owned()),
        ("{library}", name.replace('-', "_")),
        ("{tenon_path}", tenon.trim_matches('"').replace('$', "$$")),
        ("{tenon}", tenon),
    ]);
    fs::create_dir_all(folder.parent().unwrap_or(Path::new(".")))?;
    fs::create_dir(folder)
        .map_err(|error| Failure::new(format!("cannot make `{}`: {error}", folder.display())))?;
    let (files, what) = match args {
        NewArgs { c: true, .. } => (C_FILES, "pass"),
        NewArgs { op: true, .. } => (OP_FILES, "operator"),
        NewArgs { schedule: true, .. } => (SCHEDULE_FILES, "schedule"),
        _ => (FILES, "pass"),
    };
    for (file, template) in files {
        let text =
            values.iter().fold(template.to_string(), |text, (key, value)| text.replace(key, value));
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    match global.json {
        true => print_json(&json!({ "folder": folder.display().to_string(), "plugin": name })),
        false => print(format!(
            "{} is a plugin with one {what}; README.md says how to build and test it\n",
            folder.display(),
        )),
    }
}

/// The name of the package and the plugin.
fn name_of(folder: &Path) -> Result<&str, Failure> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    match name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_inside) {
        true => Ok(name),
        false => Err(Failure::new(format!(
            "`{name}` is no name of a plugin: use lowercase letters, digits, `-` and `_`"
        ))),
    }
}

/// What stands behind `tenon-plugin-api =` and `tenon-schedule =`. The second crate lies beside the first.
fn crates(named: Option<&Path>) -> Result<[String; 2], Failure> {
    let is_there = |folder: &Path| folder.join("Cargo.toml").is_file();
    let folder = match named {
        Some(folder) if !is_there(folder) => {
            let message = format!("there is no crate in `{}`", folder.display());
            return Err(Failure::new(message).help("name the folder of tenon-plugin-api"));
        }
        Some(folder) => folder.canonicalize()?,
        None if is_there(Path::new(BUILT_FROM)) => Path::new(BUILT_FROM).canonicalize()?,
        None => return Ok(["\"1\"".to_owned(), "\"1\"".to_owned()]),
    };
    let beside = folder.with_file_name("schedule");
    let schedule = if is_there(&beside) { path_of(&beside)? } else { "\"1\"".to_owned() };
    Ok([path_of(&folder)?, schedule])
}

fn path_of(folder: &Path) -> Result<String, Failure> {
    Ok(format!("{{ path = {} }}", quoted(folder)?))
}

/// A path as a text of Rust's and of TOML's.
fn quoted(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().ok_or_else(|| {
        Failure::new(format!("`{}` cannot be written into a source file", path.display()))
    })?;
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}
