//! The text form, by the fixtures under `text/`.
//!
//! `*.ir` parses and prints as it stands. `errors/*.ir` does not parse; the `.txt` file beside it says
//! what a user reads, and is written anew where `UPDATE_EXPECT` is set.

use std::path::{Path, PathBuf};

use tenon_host::diagnostics::{Diagnostics, Source};
use tenon_host::ir::{Cx, Module};
use tenon_host::text::{NoWeights, WeightsPolicy, parse_module, print_module};

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ir"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

fn parse(path: &Path) -> (String, Result<Module, Diagnostics>) {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let source = Source::new(name, text.clone());
    (text, parse_module(&Cx::new(), &source, &mut NoWeights))
}

#[test]
fn fixtures_print_as_they_stand() {
    for path in fixtures("text") {
        let (text, module) = parse(&path);
        let module = module.unwrap_or_else(|errors| panic!("{errors}"));
        let printed = print_module(&module, &mut WeightsPolicy::inline());
        assert_eq!(printed, text, "{}\n{printed}", path.display());
    }
}

#[test]
fn errors_say_what_was_expected_and_where() {
    for path in fixtures("text/errors") {
        let Err(errors) = parse(&path).1 else { panic!("{} parses", path.display()) };
        let rendered = format!("{errors}\n");
        let expected = path.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&expected, &rendered).unwrap();
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(rendered, expected, "{}\n{rendered}", path.display());
    }
}
