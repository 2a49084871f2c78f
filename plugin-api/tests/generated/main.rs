//! What is generated from the Rust definitions of the border: `tenon_plugin.h` for C, and the assertions that
//! pin every offset. Both are compared; `TENON_BLESS=1` writes them anew.

mod header;
mod pins;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn check(path: &str, generated: &str) {
    let path = root().join(path);
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(&path, generated).expect("written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let line = found.lines().zip(generated.lines()).position(|(a, b)| a != b);
    assert!(
        found == generated,
        "{} is not what the definitions give, from line {:?} on; TENON_BLESS=1 writes it anew",
        path.display(),
        line.map(|line| line + 1)
    );
}

#[test]
fn the_header_is_fresh() {
    check("include/tenon_plugin.h", &header::text());
}

#[test]
fn the_pins_are_fresh() {
    check("src/abi/pins.rs", &pins::text());
}

#[test]
fn every_function_says_on_which_thread_it_may_be_called() {
    for description in tenon_plugin_api::abi::tables::DESCRIPTIONS {
        for (index, params) in description.params.iter().enumerate() {
            let doc = description.docs[index].join("");
            let name = &description.layout[index].name;
            let doc = doc.split(" Since ").next().unwrap_or("");
            let is_said = doc.ends_with("[any thread]") || doc.ends_with("[one thread]");
            assert!(params.is_none() || is_said, "{}::{name}", description.name);
        }
    }
}

/// A plugin without passes. What tensor programs are written with includes what all plugins are.
const PLUGIN: &str = "#include \"tenon_program.h\"
static uint32_t count(void) { return 0; }
static tenon_str name(uint32_t index) { (void)index; return tenon_text(\"\"); }
static void *run(uint32_t index, tenon_host host, const void *unit, const tenon_module *module) {
  (void)index, (void)host, (void)unit, (void)module;
  return NULL;
}
static const tenon_pass_table passes = {sizeof(tenon_pass_table), count, name, run};
TENON_PLUGIN(TENON_PLUGIN_RECORD(\"test.empty\", \"0.1.0\", \"No pass\"), passes);
";

/// Compiles it; the compiler's words when it does not.
fn compile(compiler: &str, standard: &str, extension: &str) -> Option<Result<(), String>> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("header.{extension}"));
    fs::write(&source, PLUGIN).expect("written");
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(&source)
        .output()
        .ok()?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(if output.status.success() { Ok(()) } else { Err(words) })
}

#[test]
fn the_header_compiles_as_c() {
    compile("cc", "-std=c11", "c").expect("a Rust toolchain links with cc").expect("it compiles");
}

#[test]
fn the_header_compiles_as_cpp() {
    match compile("c++", "-std=c++11", "cpp") {
        Some(result) => result.expect("it compiles"),
        None => println!("skipped: there is no c++"),
    }
}
