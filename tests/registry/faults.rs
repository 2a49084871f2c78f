//! Files that are no plugins, and folders of them: each is told of, and the good plugin beside it works.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::library::{library, library_for};
use crate::program::{run, succeed, tenon};

const PLUGIN: &str = r#"{"plugin":"acme.good","format":1,"version":"1.0.0"}"#;
const PASS: &str = r#"{"pass":"acme.Good","kind":"function"}"#;

/// What makes a file in the folder of plugins, called `libbad.so`.
type Make = fn(&Path) -> Result<(), Failed>;

/// The name of a fault, what makes it, and a part of what is said of it.
const FAULTS: &[(&str, Make, &str)] = &[
    ("empty_file", |path| Ok(fs::write(path, b"")?), "it is empty"),
    ("text_file", |path| Ok(fs::write(path, b"#!/bin/sh\n")?), "does not begin as one"),
    ("truncated", truncated, "it is cut short"),
    (
        "only_the_magic",
        |path| Ok(fs::write(path, b"\x7fELF\x02\x01\x01")?),
        "does not begin as one",
    ),
    ("wrong_magic", wrong_magic, "does not begin as one"),
    (
        "other_architecture",
        |path| Ok(fs::write(path, library_for(243, &[PLUGIN]))?),
        "it is built for riscv64, and this host is",
    ),
    ("other_system", |path| Ok(fs::write(path, b"MZ\x90\0\x03\0\0\0")?), "not a 64-bit ELF"),
    ("no_manifest", |path| Ok(fs::write(path, library(&[]))?), "no Tenon manifest"),
    ("no_json", |path| Ok(fs::write(path, library(&["{"]))?), "broken manifest"),
    ("no_plugin_record", |path| Ok(fs::write(path, library(&[PASS]))?), "no record of a plugin"),
    ("wrong_kind", wrong_kind, "pass `acme.Odd`: unknown variant `loop`"),
    ("wrong_default", wrong_default, "the default of option `n` is at most 3, not 4"),
    ("wrong_requirement", wrong_requirement, "`one` is no range of versions"),
    ("unreadable", unreadable, "Permission denied"),
    ("directory", |path| Ok(fs::create_dir(path)?), "is a directory"),
    ("pipe", pipe, "is a pipe"),
    ("device", |path| Ok(symlink("/dev/zero", path)?), "is a device"),
    ("link_to_itself", |path| Ok(symlink(path, path)?), "symbolic links"),
    ("link_to_nothing", |path| Ok(symlink("/nowhere/at/all", path)?), "No such file"),
    ("notes_that_are_large", large_notes, "its notes are larger than 1048576 bytes"),
    ("beside::pipe", |path| beside(path, pipe), "is a pipe"),
    ("beside::device", |path| beside(path, |it| Ok(symlink("/dev/zero", it)?)), "everybody can"),
    ("beside::directory", |path| beside(path, |it| Ok(fs::create_dir(it)?)), "is a directory"),
    ("beside::link", |path| beside(path, |it| Ok(symlink("/nowhere", it)?)), "No such file"),
    ("beside::link_to_itself", |path| beside(path, |it| Ok(symlink(it, it)?)), "symbolic links"),
    ("beside::unreadable", |path| beside(path, unreadable), "Permission denied"),
    ("beside::no_text", |path| beside(path, |it| Ok(fs::write(it, b"\xff")?)), "valid UTF-8"),
    ("beside::no_json", |path| beside(path, |it| Ok(fs::write(it, "[")?)), "broken manifest: EOF"),
    (
        "beside::large",
        |path| beside(path, |it| Ok(fs::File::create(it)?.set_len(1 << 40)?)),
        "it is larger than 1048576 bytes",
    ),
    ("beside::writable_by_all", |path| beside(path, writable), "everybody can write to"),
    ("name::long_id", |path| named(path, &"x".repeat(65_536), "acme.Odd", "n"), "has 65536 char"),
    ("name::long_pass", |path| named(path, "acme", &"x".repeat(65_536), "n"), "has 65536 char"),
    ("name::long_option", |path| named(path, "acme", "acme.Odd", &"x".repeat(999)), "has 999 char"),
    ("name::empty", |path| named(path, "acme", "", "n"), "a pass is called ``"),
    ("name::pipeline", |path| named(path, "acme", "a, b{x=1}", "n"), "with `,` in it"),
    ("name::escape", |path| named(path, "acme", "\\u001b[31m", "n"), "with `\\u{1b}` in it"),
    ("name::reordered", |path| named(path, "\u{202e}emca", "a", "n"), "with `\\u{202e}` in it"),
    ("name::alias", long_alias, "an alias is called `xxx"),
    ("name::version", long_version, "the plugin's version is called"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = FAULTS
        .iter()
        .map(|&(name, make, said)| {
            Trial::test(format!("fault::{name}"), move || is_told(make, said))
        })
        .collect();
    trials.push(Trial::test("fault::odd_names", odd_names));
    trials.push(Trial::test("fault::ten_thousand_files", ten_thousand_files));
    trials.push(Trial::test("fault::folder_that_is_a_file", folder_that_is_a_file));
    trials.push(Trial::test("fault::folder_that_is_missing", folder_that_is_missing));
    trials.push(Trial::test("fault::twenty_thousand_folders", twenty_thousand_folders));
    trials.push(Trial::test("fault::pipelines_within_each_other", pipelines_within_each_other));
    trials
}

/// A folder with a registry and a good plugin.
struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn new() -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("plugins"))?;
        fs::write(folder.path().join("plugins/libgood.so"), library(&[PLUGIN, PASS]))?;
        let registry = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
        fs::write(folder.path().join("registry.toml"), registry)?;
        Ok(Self { folder })
    }

    fn plugin(&self, name: impl AsRef<OsStr>) -> std::path::PathBuf {
        self.folder.path().join("plugins").join(name.as_ref())
    }

    fn tenon(&self, arguments: &[&str]) -> Command {
        let mut command = tenon();
        command.args(arguments).env("TENON_REGISTRY", self.folder.path().join("registry.toml"));
        command
    }

    /// What a command prints, which must succeed.
    fn says(&self, arguments: &[&str]) -> Result<String, Failed> {
        let output = run(&mut self.tenon(arguments))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?),
            false => Err(format!("{arguments:?}: {}\n{said}", output.status).into()),
        }
    }

    /// The good plugin is there, and its pass can be planned.
    fn works(&self) -> Result<(), Failed> {
        succeed(&mut self.tenon(&["pipeline", "show", "acme.Good"]))
    }
}

fn is_told(make: Make, wanted: &str) -> Result<(), Failed> {
    let house = House::new()?;
    make(&house.plugin("libbad.so"))?;
    house.works()?;
    // Nothing is unreadable to the superuser.
    if wanted == "Permission denied" && fs::read(house.plugin("libbad.so")).is_ok() {
        return Ok(());
    }
    let said = house.says(&["plugins", "list"])?;
    let line = said.lines().find(|line| line.starts_with("unusable")).unwrap_or_default();
    if !line.contains(wanted) {
        return Err(format!("`{wanted}` is not said:\n{said}").into());
    }
    let json: serde_json::Value =
        serde_json::from_str(&house.says(&["plugins", "list", "--json"])?)?;
    let count = |key: &str| json[key].as_array().map_or(0, Vec::len);
    match (count("plugins"), count("unusable")) {
        (1, 1) => Ok(()),
        counts => Err(format!("{counts:?} plugins and files that are none").into()),
    }
}

fn truncated(path: &Path) -> Result<(), Failed> {
    let whole = fs::read(crate::profile().join("libtenon_graph.so"))?;
    Ok(fs::write(path, &whole[..whole.len() / 2])?)
}

fn wrong_magic(path: &Path) -> Result<(), Failed> {
    let mut file = library(&[PLUGIN, PASS]);
    file[1] = b'e';
    Ok(fs::write(path, file)?)
}

fn wrong_kind(path: &Path) -> Result<(), Failed> {
    let pass = r#"{"pass":"acme.Odd","kind":"loop"}"#;
    Ok(fs::write(path, library(&[PLUGIN, pass]))?)
}

fn wrong_default(path: &Path) -> Result<(), Failed> {
    let option = r#"{"name":"n","type":"int","default":4,"max":3}"#;
    let pass = format!(r#"{{"pass":"acme.Odd","kind":"prim","options":[{option}]}}"#);
    Ok(fs::write(path, library(&[PLUGIN, &pass]))?)
}

fn wrong_requirement(path: &Path) -> Result<(), Failed> {
    let pass = r#"{"pass":"acme.Odd","kind":"prim","requires":["acme.Good one"]}"#;
    Ok(fs::write(path, library(&[PLUGIN, pass]))?)
}

/// A library without notes, and what stands beside it.
fn beside(path: &Path, make: Make) -> Result<(), Failed> {
    fs::write(path, library(&[]))?;
    let mut name = path.as_os_str().to_owned();
    name.push(".tenon.json");
    make(Path::new(&name))
}

fn writable(path: &Path) -> Result<(), Failed> {
    fs::write(path, format!("[{PLUGIN}]"))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o666))?)
}

fn large_notes(path: &Path) -> Result<(), Failed> {
    let plugin = format!(r#"{{"plugin":"acme.{}","format":1}}"#, "x".repeat(1 << 20));
    Ok(fs::write(path, library(&[&plugin]))?)
}

fn named(path: &Path, plugin: &str, pass: &str, option: &str) -> Result<(), Failed> {
    let plugin = format!(r#"{{"plugin":"{plugin}","format":1,"version":"1.0.0"}}"#);
    let option = format!(r#"{{"name":"{option}","type":"int","default":4}}"#);
    let pass = format!(r#"{{"pass":"{pass}","kind":"prim","options":[{option}]}}"#);
    Ok(fs::write(path, library(&[&plugin, &pass]))?)
}

fn long_alias(path: &Path) -> Result<(), Failed> {
    let plugin = r#"{"plugin":"acme.long","format":1,"version":"1.0.0"}"#;
    let alias = "x".repeat(1000);
    let pass = format!(r#"{{"pass":"acme.Odd","kind":"prim","aliases":["{alias}"]}}"#);
    Ok(fs::write(path, library(&[plugin, &pass]))?)
}

fn long_version(path: &Path) -> Result<(), Failed> {
    let version = format!("1.0.0-{}", "x".repeat(70_000));
    let plugin = format!(r#"{{"plugin":"acme.long","format":1,"version":"{version}"}}"#);
    Ok(fs::write(path, library(&[&plugin]))?)
}

fn unreadable(path: &Path) -> Result<(), Failed> {
    fs::write(path, library(&[r#"{"plugin":"acme.shy","format":1,"version":"1.0.0"}"#]))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o0))?)
}

fn pipe(path: &Path) -> Result<(), Failed> {
    let status = Command::new("mkfifo").arg(path).status()?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}

/// A name of a file may be anything: it is shown so that it moves no cursor, and breaks no JSON.
fn odd_names() -> Result<(), Failed> {
    let house = House::new()?;
    let names: [&[u8]; 4] =
        [b"lib\x1b[31m.so", b"lib\n.so", b"lib\xff.so", "lib\u{fc} \".so".as_bytes()];
    for (number, name) in names.iter().enumerate() {
        let plugin = format!(r#"{{"plugin":"acme.odd{number}","format":1,"version":"1.0.0"}}"#);
        fs::write(house.plugin(OsStr::from_bytes(name)), library(&[&plugin]))?;
    }
    fs::write(house.plugin(OsStr::from_bytes(b"bad\n\x1b.so")), b"")?;
    house.works()?;
    let said = house.says(&["plugins", "list"])?;
    if said.lines().count() != 6 || said.contains('\x1b') {
        return Err(format!("{said:?}").into());
    }
    serde_json::from_str::<serde_json::Value>(&house.says(&["plugins", "list", "--json"])?)?;
    Ok(())
}

fn ten_thousand_files() -> Result<(), Failed> {
    let house = House::new()?;
    let bad = library(&[]);
    for number in 0..10_000 {
        let name = format!("lib{number}.so");
        match number % 3 {
            0 => fs::write(house.plugin(name), b"")?,
            1 => fs::write(house.plugin(name), &bad)?,
            _ => {
                let plugin =
                    format!(r#"{{"plugin":"acme.p{number}","format":1,"version":"1.0.0"}}"#);
                let pass = format!(r#"{{"pass":"acme.P{number}","kind":"function"}}"#);
                fs::write(house.plugin(name), library(&[&plugin, &pass]))?;
            }
        }
    }
    house.works()?;
    let passes = house.says(&["passes", "list"])?.lines().count();
    if passes == 3334 { Ok(()) } else { Err(format!("{passes} passes").into()) }
}

fn folder_that_is_a_file() -> Result<(), Failed> {
    let house = House::new()?;
    let registry = house.folder.path().join("registry.toml");
    let text = fs::read_to_string(&registry)? + "[[plugins.dir]]\npath = \"registry.toml\"\n";
    fs::write(&registry, text)?;
    house.works()?;
    let said = house.says(&["plugins", "list"])?;
    match said.contains("registry.toml`: Not a directory") {
        true => Ok(()),
        false => Err(said.into()),
    }
}

fn folder_that_is_missing() -> Result<(), Failed> {
    let house = House::new()?;
    let registry = house.folder.path().join("registry.toml");
    let text = fs::read_to_string(&registry)? + "[[plugins.dir]]\npath = \"nowhere\"\n";
    fs::write(&registry, text)?;
    house.works()?;
    let said = house.says(&["plugins", "list"])?;
    let line = said.lines().find(|line| line.starts_with("missing")).unwrap_or_default();
    if !line.contains("nowhere: ") || !line.contains("registry.toml:6 names it") {
        return Err(said.into());
    }
    let output = run(&mut house.tenon(&["pipeline", "show", "acme.Other"]))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match said.contains("nowhere, which is not there") {
        true => Ok(()),
        false => Err(said.into()),
    }
}

/// As many folders as files: each is looked at once.
fn twenty_thousand_folders() -> Result<(), Failed> {
    let house = House::new()?;
    let registry = house.folder.path().join("registry.toml");
    let mut text = fs::read_to_string(&registry)?;
    text.extend((0..20_000).map(|at| format!("[[plugins.dir]]\npath = \"nowhere/{at}\"\n")));
    fs::write(&registry, text)?;
    house.works()
}

/// Pipelines that hold each other in one long chain: the chain is not walked again for each of them.
fn pipelines_within_each_other() -> Result<(), Failed> {
    let house = House::new()?;
    let registry = house.folder.path().join("registry.toml");
    let mut text =
        fs::read_to_string(&registry)? + "[pipelines]\np0 = { passes = [\"acme.Good\"] }\n";
    text.extend((1..50_000).map(|at| format!("p{at} = {{ passes = [\"p{}\"] }}\n", at - 1)));
    fs::write(&registry, text)?;
    let said = house.says(&["pipeline", "show", "p49999"])?;
    match said.trim() == "acme.Good" {
        true => Ok(()),
        false => Err(said.into()),
    }
}
