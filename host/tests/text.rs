//! The text form, by the fixtures under `text/`.
//!
//! `*.ir` parses and prints as it stands. `errors/*.ir` does not parse; the `.txt` file beside it says
//! what a user reads. `places/*.txt` says where the text has each node. Both are written anew where
//! `UPDATE_EXPECT` is set.

#[path = "support/operators.rs"]
mod operators;

use std::path::{Path, PathBuf};

use tenon_compiler::diagnostics::{Diagnostic, Diagnostics, Source};
use tenon_compiler::ir::{Context, Expr, Module};
use tenon_compiler::text::{
    NoWeights, TextForm, WeightsPolicy, parse_module, point_at, print_function,
    print_function_marking, print_module, read_module, write_module,
};

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
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
    (text, parse_module(&tenon_compiler::testing::cx(), &source, &mut NoWeights))
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
        expect(&path.with_extension("txt"), &format!("{errors}\n"));
    }
}

/// Compares a text with the one in a file, or writes the file.
fn expect(path: &Path, found: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{}\n{found}", path.display());
}

#[test]
fn every_node_has_a_place() {
    for path in fixtures("text") {
        let module = parse(&path).1.unwrap();
        let mut found = String::new();
        for (name, function) in module.iter() {
            let name = module.cx().terms().str(name);
            let body = function.view();
            let mut weights = WeightsPolicy::inline();
            let nodes: Vec<Expr> = body.post_order().collect();
            let (text, places) = print_function_marking(name, function, &mut weights, &nodes);
            assert_eq!(text, print_function(name, function, &mut weights));
            for (node, place) in nodes.into_iter().zip(places) {
                let written = place.map(|place| &text[place]);
                let written = written.unwrap_or_else(|| panic!("{:?} has none", body.kind(node)));
                found.push_str(&format!("{:16}{written}\n", body.kind(node).name()));
            }
        }
        let name = path.with_extension("txt").file_name().unwrap().to_owned();
        expect(&path.with_file_name("places").join(name), &found);
    }
}

#[test]
fn the_lines_around_a_node_are_few_and_keep_their_numbers() {
    let chain: Vec<String> =
        (1..=10_000).map(|at| format!("  %v{at} = test.double(%v{})\n", at - 1)).collect();
    let text = format!("fn @main(%v0: f32[4]) {{\n{}  ret %v10000\n}}\n", chain.concat());
    let module =
        parse_module(&tenon_compiler::testing::cx(), &Source::new("long", text), &mut NoWeights)
            .unwrap();
    let (_, function) = module.iter().next().unwrap();
    let body = function.view();
    let mut calls = body.post_order().filter(|&node| body.kind(node).name() == "call");
    let node = calls.nth(4999).unwrap();
    let (source, place) = point_at("@main", "main", function, node).unwrap();
    assert_eq!(&source.text[place.clone()], "test.double(%v4999)");
    assert_eq!(source.text.lines().count(), 41);
    let shown = Diagnostic::error("wrong").in_source(&source).label(place, "");
    let label = &shown.to_json()["labels"][0];
    assert_eq!((label["line"].as_u64(), label["column"].as_u64()), (Some(5001), Some(12)));
    assert!(shown.to_string().contains("\n5001 |   %v5000 = test.double(%v4999)\n"), "{shown}");
    assert!(point_at("@main", "main", function, Expr(1 << 30)).is_none());
}

#[test]
fn large_constants_lie_in_a_file_beside_the_text() {
    let source = Source::new(
        "small",
        "fn @main(%x: f32[4]) {
  %a = test.total(%x, const(f32[4], [1, 2.5, nan(0x7fc00001), -inf], \"w/0\"))
  %b = mul(%a, const(bf16[2, 2], [1, 2, 3, 4]))
  %c = mul(%b, const(i4[4], [-8, 7, 1, 0]))
  ret %c
}
",
    );
    let module = parse_module(&tenon_compiler::testing::cx(), &source, &mut NoWeights).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ir");
    write_module(&module, &path, TextForm::new(2)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let (top, rest) = text.split_once("\n\n").unwrap();
    let digest = top.strip_prefix("weights \"model.safetensors\" sha256 \"").unwrap();
    assert_eq!(digest.len(), 65, "{top}");
    assert_eq!(
        rest,
        "fn @main(%x: f32[4]) {
  %a = test.total(%x, const(f32[4], @\"w/0\"))
  %b = mul(%a, const(bf16[2, 2], @constant))
  %c = mul(%b, const(i4[4], [-8, 7, 1, 0]))
  ret %c
}
"
    );
    let again = read_module(&tenon_compiler::testing::cx(), &path).unwrap();
    let inline = |module: &Module| print_module(module, &mut WeightsPolicy::inline());
    assert_eq!(inline(&again).replace(", \"constant\")", ")"), inline(&module));
    write_module(&again, &path, TextForm::new(2)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    write_module(&again, &path, TextForm::new(4)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), inline(&again));

    // Without a digest any weights of these names and types will do.
    let text = text.replacen(top, "weights \"model.safetensors\"", 1);
    std::fs::write(&path, &text).unwrap();
    read_module(&tenon_compiler::testing::cx(), &path).unwrap();
    let wrong = text.replace("f32[4], @", "f32[2, 2], @").replace("@constant", "@unknown");
    std::fs::write(&path, wrong).unwrap();
    let errors = read_module(&tenon_compiler::testing::cx(), &path).unwrap_err();
    let messages: Vec<&str> = errors.0.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages[0], "weight `w/0` is f32[4], not f32[2, 2]");
    assert!(messages[1].ends_with("no tensor `unknown`; there are 2 others"), "{}", messages[1]);
    std::fs::write(&path, text.replace("model.safetensors", "../model.safetensors")).unwrap();
    let errors = read_module(&tenon_compiler::testing::cx(), &path).unwrap_err();
    assert!(errors.0[0].message.ends_with("does not lie below the folder of the text"));
}
