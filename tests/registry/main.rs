//! What the program says of registries and plugins. docs/testing.md describes the cases.

mod conformance;
mod faults;
mod harm;
mod library;
#[path = "../support/outside.rs"]
mod outside;
#[path = "../models/program.rs"]
mod program;
mod rules;
mod scaffold;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

use program::{profile, run};

fn main() -> ExitCode {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/registry/cases");
    let mut paths: Vec<_> = fs::read_dir(cases)
        .expect("the folder of cases")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    paths.sort();
    let mut trials: Vec<Trial> = paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Trial::test(format!("case::{name}"), move || check(&path))
        })
        .collect();
    trials.extend(faults::trials());
    trials.extend(harm::trials());
    trials.extend(rules::trials());
    trials.extend(conformance::trials());
    trials.push(Trial::test("scaffold::builds_tests_and_loads", scaffold::builds_tests_and_loads));
    trials.push(Trial::test(
        "scaffold::op_builds_tests_and_loads",
        scaffold::op_builds_tests_and_loads,
    ));
    trials.push(Trial::test(
        "scaffold::schedule_builds_tests_and_loads",
        scaffold::schedule_builds_tests_and_loads,
    ));
    trials.push(Trial::test(
        "scaffold::c_builds_tests_and_loads",
        scaffold::c_builds_tests_and_loads,
    ));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A line that starts with `//! ` and the lines behind it.
struct Section<'t> {
    head: &'t str,
    body: &'t str,
}

/// Does what the sections say, in a folder of its own, and compares what each `run` and `show` prints with
/// the `expect` behind it.
fn check(path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path().canonicalize()?;
    let (mut said, mut found) = (String::new(), String::new());
    for Section { head, body } in sections(&text) {
        let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
        match word {
            "file" => write(&folder.join(rest), body.as_bytes())?,
            "plugin" => write(&folder.join(rest), &library::library(&records(body)))?,
            "plugin-for" => {
                let (machine, path) = rest.split_once(' ').ok_or("a machine and a path")?;
                let library = library::library_for(machine.parse()?, &records(body));
                write(&folder.join(path), &library)?;
            }
            "run" => said = tenon(&folder, rest)?,
            "show" => said = everywhere(&fs::read_to_string(folder.join(rest))?, &folder)?,
            "expect" => {}
            _ => return Err(format!("`//! {word}` is nothing that a case may say").into()),
        }
        let body = if word == "expect" { &said } else { body };
        found.push_str(&format!("//! {head}\n{body}"));
    }
    if std::env::var_os("TENON_BLESS").is_some() {
        return Ok(fs::write(path, found)?);
    }
    match found == text {
        true => Ok(()),
        false => Err(format!("expected:\n{text}\nfound:\n{found}").into()),
    }
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let parts = text.split_inclusive('\n').collect::<Vec<_>>();
    let mut sections: Vec<Section<'_>> = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in parts {
        at += line.len();
        if let Some(head) = line.strip_prefix("//! ") {
            sections.push(Section { head: head.trim_end(), body: "" });
            start = at;
        } else if let Some(section) = sections.last_mut() {
            section.body = &text[start..at];
        }
    }
    sections
}

fn records(body: &str) -> Vec<&str> {
    body.lines().filter(|line| !line.is_empty()).collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    fs::create_dir_all(path.parent().ok_or("a path has a folder")?)?;
    Ok(fs::write(path, bytes)?)
}

/// What the program prints, with the folders' names replaced. The folder's `registry.toml` stands for the
/// files of the program, the system and the user; without one these count, `home` being the user's.
fn tenon(folder: &Path, arguments: &str) -> Result<String, Failed> {
    let path = format!("{}:{}", profile().display(), std::env::var("PATH")?);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("tenon {arguments}")).current_dir(folder).env("PATH", path);
    command.env("HOME", folder.join("home")).env_remove("XDG_CONFIG_HOME");
    command.env_remove("XDG_STATE_HOME").env_remove("TENON_STATE");
    command.env_remove("TENON_REGISTRY");
    let registry = folder.join("registry.toml");
    if registry.exists() {
        command.env("TENON_REGISTRY", registry);
    }
    let output = run(&mut command)?;
    let mut said = String::from_utf8(output.stdout)?;
    said.push_str(&String::from_utf8(output.stderr)?);
    if !output.status.success() {
        said.push_str(&format!("{}\n", output.status));
    }
    everywhere(&said, folder)
}

/// The text as it is in every folder and on every computer.
fn everywhere(text: &str, folder: &Path) -> Result<String, Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize()?;
    let text = text.replace(&folder.display().to_string(), "$DIR");
    let text = text.replace(&root.display().to_string(), "$ROOT");
    let text = without_lines(&text, "$ROOT/registry.toml:");
    Ok(without_digests(&text).replace(std::env::consts::ARCH, "$ARCH"))
}

/// The text with `$LINE` for each number behind `place`: a file that has nothing to do with a test may change.
fn without_lines(text: &str, place: &str) -> String {
    let mut parts = text.split(place);
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out.push_str(place);
        out.push_str("$LINE");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// The text with `$SHA256` for each digest: that of a library depends on its architecture.
fn without_digests(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let word = &rest[start..];
        let end = word.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(word.len());
        out.push_str(&rest[..start]);
        let is_digest = end == 64 && word[..end].contains(|c| c != '0');
        out.push_str(if is_digest { "$SHA256" } else { &word[..end] });
        rest = &word[end..];
    }
    out.push_str(rest);
    out
}
