//! `docs/passes/` is what the plugins say of their passes. `TENON_BLESS=1 cargo test --release --test docs` writes
//! it anew.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "models/program.rs"]
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use program::tenon;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/passes")
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
    let (folder, pages) = (folder(), pages());
    assert!(pages.len() > 30, "there are passes");
    let blesses = env::var_os("TENON_BLESS").is_some();
    if blesses {
        fs::create_dir_all(&folder).expect("docs/passes can be made");
    }
    let there: BTreeSet<String> = fs::read_dir(&folder)
        .expect("docs/passes is there")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    for stale in there.iter().filter(|name| !pages.contains_key(*name)) {
        match blesses {
            true => fs::remove_file(folder.join(stale)).expect("it can be removed"),
            false => panic!("docs/passes/{stale} is of no pass: TENON_BLESS=1 removes it"),
        }
    }
    for (name, page) in &pages {
        let path = folder.join(name);
        if blesses {
            fs::write(&path, page).expect("it can be written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == *page, "docs/passes/{name} is out of date: TENON_BLESS=1 writes it anew");
    }
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
