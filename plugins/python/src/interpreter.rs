//! Finds the interpreter of files that end in `.py`: what the registry names, what `TENON_PYTHON` names, that of the virtual environment
//! that is active, or `python3`.
//!
//! The first of these that somebody has said is taken, and no other: a pass that runs by chance in another interpreter than it was
//! tried in lacks its packages. What the interpreter itself lacks it says when it starts ([`BOOT`]).

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tenon_plugin_api::pass::{PassError, Result};
use tenon_plugin_api::rule;
use tenon_plugin_api::rule::Interpreter;

/// Names an interpreter where the registry names none.
const VARIABLE: &str = "TENON_PYTHON";

/// What is looked for where nobody says anything.
const NAME: &str = "python3";

/// What the interpreter runs. It answers with a line why it cannot go on, as a text in JSON; `tenon._worker` goes on from there. The
/// working directory is no place for packages.
const BOOT: &str = r#"
import json, sys
sys.path[:] = [path for path in sys.path if path]
def refuse(why):
    print(json.dumps(why))
    sys.exit(0)
if sys.version_info < (3, 10):
    refuse(f"{sys.executable} is Python {sys.version.split()[0]}, and 3.10 or newer is needed")
try:
    from tenon import _worker
except ImportError as error:
    refuse(f"{sys.executable} cannot import the package `tenon`: {error}. Install it there, or name another interpreter: interpreters.py in registry.toml, or TENON_PYTHON")
_worker.main()
"#;

/// The command that runs a file of Python.
#[rule(interpreter, key = "py")]
fn python(ask: &mut Interpreter<'_>) -> Result<Vec<String>> {
    let found = found(ask.wanted())?;
    let program = found.to_str();
    let program = program.ok_or_else(|| {
        PassError::new(format!("the path of the interpreter {} is not UTF-8", found.display()))
    })?;
    Ok([program, "-c", BOOT].map(str::to_owned).to_vec())
}

/// The first that somebody has said.
fn found(wanted: Option<&str>) -> Result<PathBuf> {
    if let Some(wanted) = wanted {
        return program(wanted, "the registry's interpreters.py");
    }
    if let Ok(wanted) = env::var(VARIABLE) {
        return program(&wanted, VARIABLE);
    }
    if let Some(environment) = env::var_os("VIRTUAL_ENV") {
        let inside = Path::new(&environment).join("bin").join("python");
        if is_program(&inside) {
            return Ok(inside);
        }
    }
    program(NAME, "PATH")
}

/// A path, or a name in one of the folders of `PATH`.
fn program(name: &str, said_by: &str) -> Result<PathBuf> {
    if name.contains('/') {
        let path = PathBuf::from(name);
        // A relative one would depend on where somebody works.
        return match path.is_absolute() && is_program(&path) {
            true => Ok(path),
            false => Err(PassError::new(format!(
                "{said_by} names {name}, which is no absolute path of a program"
            ))),
        };
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut places =
        env::split_paths(&folders).filter(|it| it.is_absolute()).map(|it| it.join(name));
    places.find(|path| is_program(path)).ok_or_else(|| {
        let asked = if said_by == "PATH" { String::new() } else { format!(", which {said_by} names,") };
        PassError::new(format!(
            "there is no `{name}`{asked} in a folder of PATH, and files that end in .py need an interpreter of Python 3.10 or newer \
             with the package `tenon`: install one, or name it in registry.toml (interpreters.py) or in {VARIABLE}"
        ))
    })
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
