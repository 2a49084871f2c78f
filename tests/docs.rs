//! `docs/passes/` and `docs/operators/` are what the plugins say of theirs. `TENON_BLESS=1 cargo test --release --test docs` writes
//! it anew.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "models/program.rs"]
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use program::tenon;
use serde_json::Value;
use tenon_compiler::check::check;
use tenon_compiler::diagnostics::{Diagnostic, Diagnostics, Source};
use tenon_compiler::infer::infer_module;
use tenon_compiler::ir::{Bytes, Constant, Context, Cx, DType, Symbol};
use tenon_compiler::text::{LoadWeight, WeightsFile, parse_module};
use tenon_operators as _;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

fn said(arguments: &[&str]) -> String {
    let output = tenon().args(arguments).output().expect("the program was built");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it says UTF-8")
}

/// The pages by their file names.
fn pages() -> BTreeMap<String, String> {
    let passes: Value = serde_json::from_str(&said(&["--json", "passes", "list"])).expect("JSON");
    let passes = passes.as_array().expect("a list of passes");
    let mut pages = BTreeMap::new();
    // By phase and plugin, as the index shows them.
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for pass in passes {
        let text = |key: &str| pass["pass"][key].as_str().unwrap_or("");
        let name = text("pass");
        pages.insert(format!("{name}.md"), said(&["passes", "show", "--markdown", name]));
        let summary = text("doc").lines().next().unwrap_or("").replace('|', "\\|");
        let plugin = pass["plugin"].as_str().unwrap_or("");
        let row = format!("| [{name}]({name}.md) | {plugin} | {summary} |\n");
        rows.entry(text("phase")).or_default().push(row);
    }
    let mut index = String::from(
        "# Passes\n\nWhat the plugins of this repository say of their passes, by phase. `tenon passes show --markdown NAME` \
         writes such a\npage for any pass, a vendor's as well; `cargo test --test docs` keeps these fresh.\n",
    );
    let phases = ["ingest", "optimize", "legalize", "fuse", "plan", "target", "builtin", ""];
    let known: BTreeSet<&str> = phases.into_iter().collect();
    assert!(rows.keys().all(|phase| known.contains(phase)), "{:?}", rows.keys());
    for phase in phases {
        let Some(rows) = rows.get(phase) else { continue };
        let title = if phase.is_empty() { "of no phase" } else { phase };
        index.push_str(&format!(
            "\n## {title}\n\n| pass | plugin | what it does |\n|---|---|---|\n"
        ));
        rows.iter().for_each(|row| index.push_str(row));
    }
    pages.insert("README.md".to_owned(), index);
    pages
}

#[test]
fn pages_of_passes_are_fresh() {
    let pages = pages();
    assert!(pages.len() > 30, "there are passes");
    keep_fresh("passes", &pages);
}

/// Compares the files of a folder of `docs` with what they should be, or writes them anew.
fn keep_fresh(name: &str, pages: &BTreeMap<String, String>) {
    let folder = folder(name);
    let blesses = env::var_os("TENON_BLESS").is_some();
    if blesses {
        fs::create_dir_all(&folder).expect("the folder can be made");
    }
    let there: BTreeSet<String> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    for stale in there.iter().filter(|name| !pages.contains_key(*name)) {
        match blesses {
            true => fs::remove_file(folder.join(stale)).expect("it can be removed"),
            false => panic!("docs/{name}/{stale} is of nothing: TENON_BLESS=1 removes it"),
        }
    }
    for (file, page) in pages {
        let path = folder.join(file);
        if blesses {
            fs::write(&path, page).expect("it can be written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == *page, "docs/{name}/{file} is out of date: TENON_BLESS=1 writes it anew");
    }
}

/// What the plugins say of their operators, as `tenon ops list --json` gives it.
fn operators() -> Vec<Value> {
    let all: Value = serde_json::from_str(&said(&["--json", "ops", "list"])).expect("JSON");
    all.as_array().expect("a list of operators").clone()
}

#[test]
fn pages_of_operators_are_fresh() {
    let mut pages = BTreeMap::new();
    let mut index = String::from(
        "# Operators\n\nWhat the plugins of this repository say of their operators. `tenon ops show --markdown NAME` writes such \
         a page for any\noperator, a vendor's as well; `cargo test --test docs` keeps these fresh. How to write one: \
         [operators.md](../operators.md).\n\n| operator | plugin | what it computes |\n|---|---|---|\n",
    );
    for op in operators() {
        let text = |key: &str| op["op"][key].as_str().unwrap_or("");
        let name = text("op");
        pages.insert(format!("{name}.md"), said(&["ops", "show", "--markdown", name]));
        let summary = text("doc").lines().next().unwrap_or("").replace('|', "\\|");
        let plugin = op["plugin"].as_str().unwrap_or("");
        index.push_str(&format!("| [{name}]({name}.md) | {plugin} | {summary} |\n"));
    }
    assert!(pages.len() > 60, "there are operators");
    pages.insert("README.md".to_owned(), index);
    keep_fresh("operators", &pages);
}

/// The example at the top of an operator's file: `%y = exp(%x)    f32[n, 3]  =>  f32[n, 3]`, the call, the types of its
/// arguments, that of its result. Inference says the same.
#[test]
fn examples_of_operators_have_the_types_that_they_show() {
    let folder = tempfile::tempdir().expect("a folder for the examples");
    let mut text = String::new();
    for (number, op) in operators().iter().enumerate() {
        let (name, header) = (op["op"]["op"].as_str(), op["op"]["header"].as_str());
        let (name, header) = (name.expect("a name"), header.unwrap_or(""));
        let example = header.split("```ir\n").nth(1).and_then(|rest| rest.lines().next());
        let example = example.unwrap_or_else(|| panic!("{name}: its file shows no example"));
        let (call, types) = example.split_once("    ").expect("types stand behind the call");
        let (args, result) = types.split_once("=>").expect("a result stands behind the arguments");
        let (_, call) = call.split_once(" = ").expect("the call is bound");
        let params: Vec<&str> = between(call, '(', ')').split(", ").collect();
        let args = at_commas(args.trim());
        assert_eq!(params.len(), args.len(), "{name}: a type for each argument");
        let params: Vec<String> =
            params.iter().zip(args).map(|(param, ty)| format!("{param}: {ty}")).collect();
        let result = result.trim();
        text.push_str(&format!(
            "fn @example{number}({}) -> {result} {{\n  %result: {result} = {call}\n  ret %result\n}}\n\n",
            params.join(", ")
        ));
    }
    let file = folder.path().join("examples.ir");
    fs::write(&file, &text).expect("the examples can be written");
    let output = tenon().arg("check").arg(&file).output().expect("the program was built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The code in the guides is that of the examples and of ours: a fence that says `file=PATH from="…" to="…"` shows the
/// lines of a file from the one that begins so to the one before that which begins so.
#[test]
fn code_in_the_guide_is_that_of_the_example() {
    let guides = ["operators.md", "rules.md", "programs.md", "schedules.md"];
    let counts = guides.map(keep_guide_fresh);
    assert!(counts[0] >= 3 && counts.iter().all(|&count| count >= 1), "the guides show code");
}

/// Compares the code in a guide with that of the files which it names; how many pieces there are.
fn keep_guide_fresh(name: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("docs").join(name);
    let text = fs::read_to_string(&path).expect("the guide is there");
    let mut fresh = String::new();
    let mut lines = text.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        fresh.push_str(&format!("{line}\n"));
        let Some(fence) = line.strip_prefix("```rust file=") else { continue };
        let (file, range) = fence.split_once(' ').unwrap_or((fence, ""));
        let source = fs::read_to_string(root.join(file)).expect("the file is there");
        fresh.push_str(&excerpt(&source, range));
        fresh.push_str("```\n");
        count += 1;
        lines.find(|line| *line == "```").expect("the fence ends");
    }
    if env::var_os("TENON_BLESS").is_some() {
        fs::write(&path, &fresh).expect("it can be written");
    }
    let found = fs::read_to_string(&path).expect("the guide is there");
    assert!(found == fresh, "docs/{name} is out of date: TENON_BLESS=1 writes it anew");
    count
}

/// The lines of a text from the one that begins as `from="…"` says to the one before `to="…"`.
fn excerpt(text: &str, range: &str) -> String {
    let said = |key: &str| range.split(&format!("{key}=\"")).nth(1)?.split('"').next();
    let (from, to) = (said("from"), said("to"));
    let lines: Vec<&str> = text.lines().collect();
    let at = |start: &str, after: usize| {
        let found = lines[after..].iter().position(|line| line.starts_with(start));
        found.map(|at| at + after).unwrap_or_else(|| panic!("no line begins with `{start}`"))
    };
    let start = from.map_or(0, |from| at(from, 0));
    let end = to.map_or(lines.len(), |to| at(to, start + 1));
    let shown: Vec<&str> = lines[start..end].to_vec();
    let indent = shown[0].len() - shown[0].trim_start().len();
    let cut = |line: &&str| format!("{}\n", line.get(indent..).unwrap_or(line.trim_start()));
    let mut shown: String = shown.iter().map(cut).collect();
    shown.truncate(shown.trim_end().len());
    shown + "\n"
}

/// What stands between the first `open` and the `close` behind it.
fn between(text: &str, open: char, close: char) -> &str {
    let start = text.find(open).map_or(text.len(), |at| at + 1);
    let end = text[start..].find(close).map_or(text.len(), |at| start + at);
    &text[start..end]
}

/// A list of types, whose own commas stand in brackets.
fn at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The table of levels: what a level adds is written there, which passes have it their manifests say.
#[test]
fn the_table_of_levels_is_fresh() {
    let passes: Value = serde_json::from_str(&said(&["--json", "passes", "list"])).expect("JSON");
    let mut levels: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for pass in passes.as_array().expect("a list of passes") {
        let name = pass["pass"]["pass"].as_str().expect("a pass has a name");
        let level = pass["pass"]["opt_level"].as_u64().expect("a pass has a level");
        levels.entry(level).or_default().push(format!("[{name}](passes/{name}.md)"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/passes.md");
    let text = fs::read_to_string(&path).expect("docs/passes.md is there");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (level, adds) = (cells.next()?.parse::<u64>().ok()?, cells.next()?);
        Some((level, adds.to_owned()))
    };
    let mut told = BTreeSet::new();
    let fresh: String = text
        .lines()
        .map(|line| match row(line) {
            None => format!("{line}\n"),
            Some((level, adds)) => {
                told.insert(level);
                let names = levels.get(&level).map_or(String::new(), |names| names.join(", "));
                format!("| {level} | {adds} | {names} |\n")
            }
        })
        .collect();
    assert!(levels.keys().all(|level| told.contains(level)), "docs/passes.md tells {told:?}");
    if env::var_os("TENON_BLESS").is_some() {
        fs::write(&path, &fresh).expect("it can be written");
    }
    let found = fs::read_to_string(&path).expect("docs/passes.md is there");
    assert!(
        found == fresh,
        "the levels of docs/passes.md are out of date: TENON_BLESS=1 writes them"
    );
}

#[test]
fn every_pass_shows_before_and_after() {
    let without: Vec<String> = pages()
        .into_iter()
        .filter(|(name, page)| name != "README.md" && !page.contains("\n## How\n"))
        .map(|(name, _)| name)
        .collect();
    assert!(without.is_empty(), "files of these passes have no header: {without:?}");
}

/// Each operator has one program.
#[test]
fn no_operator_has_a_second_program() {
    let rules: Value =
        serde_json::from_str(&said(&["--json", "rules", "list", "--facet", "compute"]))
            .expect("JSON");
    let rules = rules.as_array().expect("a list of rules").iter().map(|rule| &rule["rule"]);
    let keys: Vec<&str> = rules.filter_map(|rule| rule["key"].as_str()).collect();
    let different: BTreeSet<&str> = keys.iter().copied().collect();
    assert!(keys.len() > 70, "{} programs", keys.len());
    assert_eq!(different.len(), keys.len());
}

/// `docs/schedules.md` lists the primitives as they are.
#[test]
fn the_primitives_of_schedules_are_listed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schedules.md");
    let text = fs::read_to_string(&path).expect("the page is there");
    let lines: Vec<String> = tenon_schedule::primitives()
        .iter()
        .map(|primitive| format!("{}\n    {}", primitive.usage(), primitive.summary))
        .collect();
    let (before, rest) = text.split_once("## The primitives\n\n```\n").expect("it has a part");
    let (_, after) = rest.split_once("\n```").expect("the list ends");
    let wanted = format!("{before}## The primitives\n\n```\n{}\n```{after}", lines.join("\n"));
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(&path, &wanted).expect("the page can be written");
    }
    assert!(text == wanted, "docs/schedules.md is out of date; TENON_BLESS=1 rewrites it");
}

#[test]
fn the_examples_of_the_documents_are_modules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("documents") {
        let path = entry.expect("a document").path();
        // The pages of passes show parts of modules.
        if path.is_dir() {
            continue;
        }
        let document = fs::read_to_string(&path).expect("it is text");
        for block in document.split("\n```ir\n").skip(1) {
            let text = block.split("\n```").next().unwrap_or("");
            let source = Source::new(path.display().to_string(), text);
            let cx = tenon_compiler::testing::cx();
            let module = parse_module(&cx, &source, &mut OneWeight(cx.clone()));
            let module = module.unwrap_or_else(|errors| panic!("{errors}"));
            let typed = infer_module(&module)
                .unwrap_or_else(|errors| panic!("{}", errors[0].1.to_diagnostic(&source)));
            let violations: Vec<Diagnostic> =
                check(&typed).iter().map(|violation| violation.to_diagnostic()).collect();
            assert!(violations.is_empty(), "{}", Diagnostics(violations));
            count += 1;
        }
    }
    assert!(count >= 2, "there are {count} examples");
}

/// The weight that the example names.
struct OneWeight(Cx);

impl LoadWeight for OneWeight {
    fn load(
        &mut self,
        _: Option<&WeightsFile>,
        _: &str,
    ) -> Result<Constant, Box<dyn std::error::Error>> {
        let ty = self.0.static_tensor_type(DType::F32, &[8, 3, 1, 1]);
        Ok(Constant { ty, name: Symbol(0), data: Bytes::new(vec![0; 96]) })
    }
}
