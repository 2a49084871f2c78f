//! The text form, by the fixtures under `text/`.
//!
//! `*.ir` parses and prints as it stands. `errors/*.ir` does not parse; the `.txt` file beside it says
//! what a user reads, and is written anew where `UPDATE_EXPECT` is set.

use std::path::{Path, PathBuf};

use tenon_host::diagnostics::{Diagnostics, Source};
use tenon_host::ir::{Cx, Module};
use tenon_host::text::{
    NoWeights, WeightsPolicy, parse_module, print_module, read_module, write_module,
};

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

#[test]
fn large_constants_lie_in_a_file_beside_the_text() {
    let source = Source::new(
        "small",
        "fn @main(%x: f32[4]) {
  %a = add(%x, const(f32[4], [1, 2.5, nan(0x7fc00001), -inf], \"w/0\"))
  %b = mul(%a, const(bf16[2, 2], [1, 2, 3, 4]))
  %c = mul(%b, const(i4[4], [-8, 7, 1, 0]))
  ret %c
}
",
    );
    let module = parse_module(&Cx::new(), &source, &mut NoWeights).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ir");
    write_module(&module, &path, 2).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "weights \"model.safetensors\"

fn @main(%x: f32[4]) {
  %a = add(%x, const(f32[4], @\"w/0\"))
  %b = mul(%a, const(bf16[2, 2], @constant))
  %c = mul(%b, const(i4[4], [-8, 7, 1, 0]))
  ret %c
}
"
    );
    let again = read_module(&Cx::new(), &path).unwrap();
    let inline = |module: &Module| print_module(module, &mut WeightsPolicy::inline());
    assert_eq!(inline(&again).replace(", \"constant\")", ")"), inline(&module));
    write_module(&again, &path, 2).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    write_module(&again, &path, 4).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), inline(&again));

    let wrong = text.replace("f32[4], @", "f32[2, 2], @").replace("@constant", "@unknown");
    std::fs::write(&path, wrong).unwrap();
    let errors = read_module(&Cx::new(), &path).unwrap_err();
    let messages: Vec<&str> = errors.0.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages[0], "weight `w/0` is f32[4], not f32[2, 2]");
    assert!(messages[1].ends_with("no tensor `unknown`; there are 2 others"), "{}", messages[1]);
    std::fs::write(&path, text.replace("model.safetensors", "../model.safetensors")).unwrap();
    let errors = read_module(&Cx::new(), &path).unwrap_err();
    assert!(errors.0[0].message.ends_with("does not lie below the folder of the text"));
}
