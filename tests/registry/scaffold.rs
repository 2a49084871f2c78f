//! The folder that `plugins new` makes, used as its README.md says.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;

use crate::outside;
use crate::program::{run, state, succeed, tenon};

pub(crate) fn builds_tests_and_loads() -> Result<(), Failed> {
    let shown = built("--pass", "made-passes", "libmade_passes.so")?;
    let manifest = &shown["manifest"];
    let said = (&manifest["plugin"]["plugin"], &manifest["passes"][0]["pass"]);
    let wanted = (&"made-passes".into(), &"made-passes.DoubleNegation".into());
    if said == wanted { Ok(()) } else { Err(format!("{said:?}").into()) }
}

/// The same with an operator and its rules.
pub(crate) fn op_builds_tests_and_loads() -> Result<(), Failed> {
    let shown = built("--op", "made-ops", "libmade_ops.so")?;
    let manifest = &shown["manifest"];
    let said = (&manifest["operators"][0]["op"], &manifest["rules"][0]["rule"]);
    let wanted = (&"made_ops.power_relu".into(), &"compute".into());
    if said == wanted { Ok(()) } else { Err(format!("{said:?}").into()) }
}

/// The same with a rule that schedules programs.
pub(crate) fn schedule_builds_tests_and_loads() -> Result<(), Failed> {
    let shown = built("--schedule", "made-schedules", "libmade_schedules.so")?;
    let rule = &shown["manifest"]["rules"][0];
    let (said, wanted) = ((&rule["rule"], &rule["key"]), (&"schedule".into(), &"nn.dense".into()));
    if said != wanted {
        return Err(format!("{said:?}").into());
    }
    // It is asked first, and takes what it says it is for.
    for (rows, target, is_own) in
        [(4, "x86-64-v3", true), (4, "x86-64-v4", false), (512, "x86-64-v3", false)]
    {
        let rule = scheduled_by(rows, target)?;
        if rule.starts_with("made_schedules::") != is_own {
            return Err(format!("{rows} rows for {target} are scheduled by {rule}").into());
        }
    }
    Ok(())
}

/// The rule that schedules a product of so many rows where the folder's library is enabled beside those of the house.
fn scheduled_by(rows: u32, target: &str) -> Result<String, Failed> {
    let folder = tempfile::tempdir()?;
    let (model, registry) = (folder.path().join("m.ir"), folder.path().join("registry.toml"));
    let text =
        format!("fn @main(%x: f32[{rows}, 64], %w: f32[64, 64]) {{\n  ret nn.dense(%x, %w)\n}}\n");
    fs::write(&model, text)?;
    let library = outside::built().join("libmade_schedules.so");
    fs::copy(&library, folder.path().join("libmade_schedules.so"))?;
    let path = folder.path();
    fs::write(
        &registry,
        format!("schema = 1\n[[plugins.dir]]\npath = {path:?}\nenable = \"all\"\n"),
    )?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compile = tenon();
    compile.args(["compile", "--explain-schedules", "--json", "--emit", "obj", "--target", target]);
    compile.arg("--registry").arg(root.join("registry.toml")).arg("--registry").arg(&registry);
    let said = run(compile.arg(&model).arg("-o").arg(folder.path().join("m.o")))?;
    let said: serde_json::Value = serde_json::from_slice(&said.stdout)?;
    let programs = said["schedules"].as_array().cloned().unwrap_or_default();
    match programs.iter().find_map(|program| program["rule"].as_str()) {
        Some(rule) => Ok(rule.to_owned()),
        None => Err(format!("no rule is told: {said}").into()),
    }
}

/// What the library of a folder says of itself that `plugins new` makes, after its own tests.
fn built(kind: &str, name: &str, library: &str) -> Result<serde_json::Value, Failed> {
    let folder = tempfile::tempdir()?;
    let plugin = folder.path().join(name);
    succeed(tenon().args(["plugins", "new", kind]).arg(&plugin))?;
    // Names that no example has: all are built in one folder. The versions are those of the house, so that nothing is fetched.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("Cargo.lock"), plugin.join("Cargo.lock"))?;
    let cargo = |arguments: &[&str]| {
        let mut cargo = outside::cargo();
        cargo.args(arguments).current_dir(&plugin);
        // The fixtures run the program that made the folder.
        cargo.env_remove("TENON").env_remove("TENON_BLESS");
        cargo.env("TENON_STATE", state());
        cargo.env("TENON_REGISTRY", root.join("registry.toml"));
        outside::locked(|| succeed(&mut cargo))
    };
    cargo(&["test", "--quiet"])?;
    cargo(&["fmt", "--check"])?;

    let library = outside::built().join(library);
    if kind == "--op" {
        succeed(tenon().args(["plugins", "test"]).arg(&library))?;
    }
    let shown = run(tenon().args(["plugins", "show", "--json"]).arg(&library))?;
    Ok(serde_json::from_slice(&shown.stdout)?)
}

/// The same for a plugin in C: it needs make, a C compiler, and nothing of this house.
pub(crate) fn c_builds_tests_and_loads() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let plugin = folder.path().join("acme-c");
    succeed(tenon().args(["plugins", "new", "--c"]).arg(&plugin))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut make = Command::new("make");
    make.arg("test").current_dir(&plugin).env_remove("TENON").env("TENON_STATE", state());
    succeed(make.env("TENON_REGISTRY", root.join("registry.toml")))?;
    let moved = folder.path().join("plugins.d");
    fs::create_dir(&moved)?;
    let install = format!("DIR={}", moved.display());
    succeed(Command::new("make").args(["install", &install]).current_dir(&plugin))?;
    let shown = run(tenon().args(["plugins", "show", "--json"]).arg(moved.join("libacme_c.so")))?;
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout)?;
    let said = &shown["manifest"]["passes"][0]["pass"];
    if said == "acme-c.MultiplyByOne" { Ok(()) } else { Err(format!("{said:?}").into()) }
}
