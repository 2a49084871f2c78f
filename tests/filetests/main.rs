//! File tests: IR in, IR or an error out.
//!
//! Each `.ir` file under `plugins/*/tests/` and `tests/ir/` is a test. The grammar stands in
//! `docs/testing.md`. With `TENON_BLESS=1` the expected parts are rewritten.

use tenon_operators as _;
mod file_test;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [root.join("plugins"), root.join("tests/ir")];
    let arguments = Arguments::from_args();
    let registry = root.join("registry.toml");
    let trials = file_test::trials(root, &folders, &registry, arguments.filter.as_deref());
    libtest_mimic::run(&arguments, trials).exit_code()
}
