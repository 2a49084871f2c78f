//! Plugins that break the border's contract, written in C and built here: each is refused, or its pass fails,
//! with a message that says what is wrong.

#[path = "../../tests/support/operators.rs"]
mod operators;

use std::fs;
use std::path::Path;
use std::process::Command;

use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::Module;
use tenon_compiler::passes::{PassContext, plan, run};
use tenon_compiler::registry::Registry;
use tenon_compiler::text::{NoWeights, parse_module};

/// Runs the pass of the plugin with a fault over a small module.
fn run_with(fault: &str) -> Result<Module, String> {
    run_beside(fault, "")
}

/// The same, with a manifest beside the library where it is not empty.
fn run_beside(fault: &str, manifest: &str) -> Result<Module, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let house = tempfile::tempdir().expect("a folder");
    let plugins = house.path().join("plugins");
    fs::create_dir(&plugins).expect("a folder in it");
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I"])
        .arg(root.join("../../plugin-api/include"))
        .arg(format!("-DFAULT={fault}"))
        .arg("-o")
        .arg(plugins.join("libfault.so"))
        .arg(root.join("tests/plugin/faults.c"))
        .output()
        .expect("a Rust toolchain links with cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if !manifest.is_empty() {
        fs::write(plugins.join("libfault.so.tenon.json"), manifest).expect("written");
    }
    let registry = "schema = 1\n[[plugins.dir]]\npath = \"plugins\"\nenable = \"all\"\n";
    fs::write(house.path().join("registry.toml"), registry).expect("registry.toml");

    let registry = Registry::open(&house.path().join("registry.toml")).expect("it is readable");
    let plan = plan(&registry, "test.C").map_err(|error| error.to_string())?;
    let text = "fn @main(%x: f32[4]) -> f32[4] {\n  %a = test.double(%x)\n  ret %a\n}\n";
    let module =
        parse_module(&tenon_compiler::testing::cx(), &Source::new("small", text), &mut NoWeights);
    let module = infer_module(&module.expect("it parses")).expect("it has types");
    let after = run(&registry, &plan, &module, &mut PassContext::default());
    after.map_err(|error| error.to_string().replace(&plugins.display().to_string(), "…"))
}

fn error(fault: &str) -> String {
    run_with(fault).expect_err("this plugin is wrong")
}

const REFUSED: &str = "pass `test.C`: …/libfault.so: ";
const LIE: &str = "pass `test.C`: …/libfault.so: manifest and library disagree: ";

#[test]
fn a_right_one_runs() {
    run_with("NO_FAULT").expect("it does nothing");
}

#[test]
fn a_later_one_runs() {
    run_with("LONGER_LAYOUT").expect("what a later version adds is absent here");
}

#[test]
fn another_root_is_refused_before_anything_of_it_is_read() {
    let found = error("ROOT_VERSION");
    let wanted = "its root is version 2, this host's 1: use a plugin built for Tenon 1.x";
    assert_eq!(found, format!("{REFUSED}{wanted}"));
}

#[test]
fn a_table_shorter_than_the_first_one_is_refused() {
    let found = error("SHORT_TABLE");
    assert!(found.contains("tenon.pass/1 has a table of 16 bytes, the least is 32"), "{found}");
    let found = error("NULL_ENTRY");
    assert!(found.contains("tenon.pass/1: `run` is null"), "{found}");
    let found = error("NO_PASS_TABLE");
    assert!(found.contains("it offers no tenon.pass/1, only [\"tenon.later/1\""), "{found}");
}

#[test]
fn each_difference_of_layout_is_one_line() {
    let found = error("OTHER_LAYOUT");
    let lines: Vec<&str> = found.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "pass `test.C`: …/libfault.so: its layouts are not those of Tenon 1.x:",
            "tenon.pass/1: the host has `count`: uint32_t() (8 bytes at 8), the plugin `count`: \
             uint64_t() (8 bytes at 8)",
            "tenon.pass/1: the host has `name`: tenon_str(uint32_t) (8 bytes at 16), the plugin \
             `label`: tenon_str(uint32_t) (8 bytes at 16)",
            "tenon_node: the host has `flags`: uint16_t (2 bytes at 2), the plugin `flags`: uint32_t \
             (4 bytes at 4)",
            "rebuild it with tenon-plugin-api 1.x or its tenon_plugin.h",
        ]
    );
}

#[test]
fn both_sides_of_a_lie_are_refused_with_the_difference() {
    let listed = "the manifest lists the passes [\"test.C\"], the table has ";
    assert_eq!(error("PASS_MISSING"), format!("{LIE}{listed}[]"));
    assert_eq!(error("PASS_EXTRA"), format!("{LIE}{listed}[\"test.C\", \"test.Extra\"]"));
    let endless = "the table of passes says that it has 4000000000, the manifest lists 1";
    assert_eq!(error("PASSES_WITHOUT_END"), format!("{LIE}{endless}"));
    let found = error("OTHER_MANIFEST");
    let wanted = "of the pass `test.C` `doc` is \"Does nothing.\" in the file and \"Does something.\" in \
                  the library";
    assert_eq!(found, format!("{LIE}{wanted}"));
}

#[test]
fn c012_a_pass_that_fails_says_why_or_the_host_does() {
    let at = "pass `test.C` in function @main: ";
    let silent = "the pass returned nothing and does not say why";
    assert_eq!(error("SAYS_NOTHING"), format!("{at}{silent}"));
    assert_eq!(error("FAILS_AND_RETURNS"), format!("{at}returned all the same"));
    assert_eq!(error("CANCELS"), format!("{at}enough"));
    assert_eq!(error("FINISHES_NOTHING"), format!("{at}the function has no root"));
    let refused = "a call has the operand 12345, which is not there";
    assert_eq!(error("IGNORES_REFUSALS"), format!("{at}{refused}"));
}

#[test]
fn a_library_without_a_note_has_its_manifest_beside_it() {
    assert!(error("NO_NOTE").starts_with("no pass is called `test.C`"));
    let manifest = |doc: &str| {
        format!(
            r#"[{{"plugin": "test.c", "format": 1, "version": "1.0.0", "summary": "Wrong in one way"}},
                {{"pass": "test.C", "kind": "function", "doc": "{doc}"}}]"#
        )
    };
    run_beside("NO_NOTE", &manifest("Does nothing.")).expect("it is what the library says");
    let lie = run_beside("NO_NOTE", &manifest("Does much.")).expect_err("it is not");
    assert!(lie.contains("`doc` is \"Does much.\" in the file and \"Does nothing.\" in"), "{lie}");
    let broken = run_beside("NO_NOTE", "{").expect_err("it is no manifest");
    assert!(broken.starts_with("no pass is called `test.C`"), "{broken}");
}
