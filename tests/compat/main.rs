//! Plugins and hosts of different versions, as binaries.
//!
//! `1.0/` holds the sources of plugin-api 1.0, frozen. `next.rs` makes the version after this one out of today's
//! sources. `plugin/lib.rs` is built with both, and each is loaded by today's host and by the next one.

mod next;
#[path = "../support/outside.rs"]
mod outside;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use outside::{built, cargo, locked, workshop};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a plugin is built with.
#[derive(Clone, Copy)]
enum Api {
    Frozen,
    Next,
    /// The frozen one, by a nightly compiler that lays every Rust type out at random.
    FrozenByNightly,
}

impl Api {
    fn name(self) -> &'static str {
        match self {
            Api::Frozen => "frozen",
            Api::Next => "next",
            Api::FrozenByNightly => "nightly",
        }
    }

    fn sources(self) -> PathBuf {
        match self {
            Api::Next => next_sources(),
            Api::Frozen | Api::FrozenByNightly => root().join("tests/compat/1.0"),
        }
    }
}

fn next_sources() -> PathBuf {
    let folder = workshop().join("sources");
    next::write(root(), &folder);
    folder
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the tests are run by cargo");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}");
}

/// The plugin, built with one version of the API.
fn plugin(api: Api) -> PathBuf {
    locked(|| {
        let folder = workshop().join(api.name());
        let package = format!("compat-{}", api.name());
        let manifest = format!(
            "[package]\nname = \"{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [lib]\ncrate-type = [\"cdylib\"]\n\n[features]\nnext = []\n\n\
             [dependencies]\ntenon-plugin-api = {{ path = {:?} }}\n\n[workspace]\n",
            api.sources().join("plugin-api")
        );
        let source =
            fs::read_to_string(root().join("tests/compat/plugin/lib.rs")).expect("it is there");
        next::write_changed(&folder.join("Cargo.toml"), &manifest);
        next::write_changed(&folder.join("src/lib.rs"), &source);
        if !folder.join("Cargo.lock").exists() {
            fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");
        }
        let library = format!("lib{}.so", package.replace('-', "_"));
        let mut cargo = cargo();
        cargo.args(["build", "--quiet"]).current_dir(&folder);
        match api {
            Api::Frozen => succeed(&mut cargo),
            Api::Next => succeed(cargo.args(["--features", "next"])),
            // Nothing that another compiler has built is of use to it.
            Api::FrozenByNightly => {
                let target = workshop().join("nightly");
                cargo.env("CARGO_TARGET_DIR", &target).env("RUSTUP_TOOLCHAIN", "nightly");
                succeed(cargo.env("RUSTFLAGS", "-Zrandomize-layout"));
                return target.join("debug").join(library);
            }
        }
        built().join(library)
    })
}

/// Today's program.
fn todays_host() -> PathBuf {
    let here = env::current_exe().expect("a running test has a path");
    here.ancestors().nth(2).expect("tests lie in target/<profile>/deps").join("tenon")
}

/// The program of the next version.
fn next_host() -> PathBuf {
    locked(|| {
        let mut cargo = cargo();
        cargo.args(["build", "--quiet", "--no-default-features"]).current_dir(next_sources());
        succeed(cargo.args(["-p", "tenon-cli", "--bin", "tenon"]));
        // Operators lie beside the program, and what others build does not. They are today's: a plugin like others.
        let folder = workshop().join("next");
        fs::create_dir_all(&folder).expect("a folder");
        let operators = "libtenon_operators.so";
        for (from, file) in
            [(built().join("tenon"), "tenon"), (todays_host().with_file_name(operators), operators)]
        {
            fs::copy(from, folder.join(file)).expect("copied");
        }
        folder.join("tenon")
    })
}

/// A folder with plugins and a registry.
struct House(tempfile::TempDir);

impl House {
    fn new(plugins: &[PathBuf]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("plugins")).expect("a folder in it");
        for (number, plugin) in plugins.iter().enumerate() {
            let place = folder.path().join(format!("plugins/lib{number}.so"));
            fs::copy(plugin, place).expect("copied");
        }
        let registry = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
        fs::write(folder.path().join("registry.toml"), registry).expect("written");
        Self(folder)
    }

    fn opt(&self, host: &Path, pipeline: &str, model: &str) -> Output {
        let path = self.0.path().join("model.ir");
        fs::write(&path, model).expect("written");
        let mut command = Command::new(host);
        command.env("TENON_STATE", self.0.path().join("state"));
        command.arg("opt").arg(path).args(["-p", pipeline, "--registry"]);
        command.arg(self.0.path().join("registry.toml")).output().expect("the program runs")
    }

    /// The module that comes out, and what the passes note.
    fn run(&self, host: &Path, pipeline: &str, model: &str) -> (String, String) {
        let output = self.opt(host, pipeline, model);
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{pipeline}: {notes}");
        (String::from_utf8_lossy(&output.stdout).into_owned(), notes)
    }

    fn error(&self, host: &Path, pipeline: &str) -> String {
        let output = self.opt(host, pipeline, MODEL);
        assert!(!output.status.success(), "{pipeline} fails");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

const MODEL: &str =
    "fn @main(%x: f32[4]) -> f32[4] {\n  %a = exp(%x)\n  %b = add(%a, %x)\n  ret %b\n}\n";

/// A module with a node, a type's dimension and an attribute that nobody knows.
const UNKNOWN: &str = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = exp(%x)\n  \
                       %b: f32[4] = unknown<2000, 3, 7, 9>(%a, %x) { later = term<900, 1, 77>(5) }\n  \
                       %c = exp(%b)\n  ret %c\n}\n";

/// A module whose values lie on a device, but for a parameter.
const PLACED: &str = "fn @main(%x: f32[4] on \"cpu:0\", %y: f32[n]) -> (f32[4] on \"cpu:0\", f32[n]) {\n  \
                      %a: f32[4] on \"cpu:0\" = exp(%x)\n  ret (%a, %y)\n}\n";

/// What holds of every plugin in every host.
fn check(host: &Path, house: &House) {
    let (module, notes) = house.run(host, "compat.Read", MODEL);
    assert!(notes.contains("note: compat.Read: 1 functions, "), "{notes}");
    assert!(notes.contains(" 0 attributes, 0 unknown"), "{notes}");
    assert!(module.contains("exp(%x)"), "{module}");
    let (module, _) = house.run(host, "compat.Rewrite", MODEL);
    assert!(module.contains("%a: f32[4] = negative(%x)\n"), "{module}");
    let (module, notes) = house.run(host, "compat.Read, compat.Rewrite", UNKNOWN);
    assert!(notes.contains(" 1 attributes, 1 unknown"), "{notes}");
    let kept = "unknown<2000, 3, 7, 9>(%a, %x) { later = term<900, 1, 77>(5) }";
    assert!(module.contains(kept) && module.contains("negative(%b)"), "{module}");
    assert!(
        house.error(host, "compat.Fail").contains("`compat.Fail` in function @main: as it should")
    );
    assert!(house.error(host, "compat.Panic").contains(": as it should"));
    let (module, _) = house.run(host, "compat.Types, compat.Rewrite", PLACED);
    let placed = "%a: f32[4] on \"cpu:0\" = negative(%x)\n";
    assert!(module.contains(placed), "{module}");
}

#[test]
fn a_plugin_of_1_0_in_todays_host() {
    let (host, house) = (todays_host(), House::new(&[plugin(Api::Frozen)]));
    check(&host, &house);
    // A type that says a device is of a kind that it does not know, and no tensor with one more dimension.
    let (_, notes) = house.run(&host, "compat.Types", PLACED);
    assert!(notes.contains("1 tensors of 1 dimensions, 3 unknown"), "{notes}");
}

#[test]
fn a_plugin_by_another_compiler_in_todays_host() {
    let nightly = Command::new("rustup").args(["run", "nightly", "rustc", "--version"]).output();
    if !nightly.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no nightly compiler");
        return;
    }
    check(&todays_host(), &House::new(&[plugin(Api::FrozenByNightly)]));
}

#[test]
fn a_plugin_of_the_next_version_in_todays_host() {
    let (host, house) = (todays_host(), House::new(&[plugin(Api::Next)]));
    check(&host, &house);
    let (_, notes) = house.run(&host, "compat.Types", PLACED);
    assert!(notes.contains("4 tensors of 4 dimensions, 0 unknown"), "{notes}");
    // The record is as long as today's, and the service is absent.
    let (module, notes) = house.run(&host, "compat.MakeLater, compat.ReadLater", MODEL);
    assert!(module.contains("unknown<1000, 0, 0, 0>(%b)"), "{module}");
    assert!(notes.contains("origins 0, this host does not count terms"), "{notes}");
}

#[test]
fn a_plugin_of_1_0_in_the_next_host() {
    check(&next_host(), &House::new(&[plugin(Api::Frozen)]));
}

#[test]
fn a_plugin_of_the_next_version_in_the_next_host() {
    let (host, house) = (next_host(), House::new(&[plugin(Api::Next)]));
    check(&host, &house);
    let (_, notes) = house.run(&host, "compat.MakeLater, compat.ReadLater", MODEL);
    assert!(notes.contains("origins 42, it counts terms"), "{notes}");
}
