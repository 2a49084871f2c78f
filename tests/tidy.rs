//! The rules of the house that no compiler checks.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tenon_plugin_api::ir::IntrinsicDef;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files with an extension below a folder.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the house").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|other| other == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The source files of the passes.
fn pass_files() -> Vec<PathBuf> {
    let mut all = files(&root().join("plugins"), "rs");
    all.retain(|path| read(path).lines().any(|line| line.starts_with("#[pass(")));
    assert!(!all.is_empty(), "there are passes");
    all
}

/// Of Tenon a plugin depends on the API, and on libraries that depend on that alone.
#[test]
fn plugins_depend_on_the_api_alone() {
    const LIBRARIES: &[&str] = &["tenon-plugin-api", "tenon-schedule", "tenon-tuning"];
    let libraries = ["schedule", "tuning"].map(|name| root().join(name).join("Cargo.toml"));
    for path in files(&root().join("plugins"), "toml").into_iter().chain(libraries) {
        let manifest: toml::Table = read(&path).parse().expect("a manifest");
        let Some(dependencies) = manifest.get("dependencies").and_then(|table| table.as_table())
        else {
            continue;
        };
        for name in dependencies.keys() {
            assert!(
                !name.starts_with("tenon-") || LIBRARIES.contains(&name.as_str()),
                "{} depends on {name}",
                path.display()
            );
        }
    }
    let api = read(&root().join("plugin-api/Cargo.toml"));
    for part in HOST.map(|(part, _)| format!("tenon-{part}")) {
        assert!(!api.contains(&part), "plugin-api depends on {part}");
    }
}

/// What `mod.rs` holds is a table of contents. Logic stands in a file that is named for it: in a sibling of the others,
/// or beside the folder.
#[test]
fn a_mod_rs_has_no_functions() {
    let starts_function = |line: &&str| {
        let mut words = line.split_whitespace();
        let is_before = |word: &&str| {
            word.starts_with("pub")
                || ["const", "async", "unsafe", "extern", "\"C\""].contains(word)
        };
        words.find(|word| !is_before(word)) == Some("fn")
    };
    let mut with_functions = Vec::new();
    for part in ["host", "plugin-api", "plugins"] {
        for path in files(&root().join(part), "rs") {
            if path.ends_with("mod.rs") && read(&path).lines().any(|line| starts_function(&line)) {
                let folder = path.parent().and_then(|folder| folder.strip_prefix(root()).ok());
                with_functions.push(folder.expect("it is in the house").display().to_string());
            }
        }
    }
    assert!(with_functions.is_empty(), "functions stand in mod.rs: {with_functions:?}");
}

/// The full names of all passes.
fn pass_names() -> Vec<String> {
    let mut names = Vec::new();
    for path in pass_files() {
        let text = read(&path);
        let attribute = text.split_once("\n#[pass(").expect("it holds a pass").1;
        let name = attribute.split('"').nth(1).expect("a pass has a name");
        names.push(name.to_owned());
    }
    names
}

#[test]
fn the_host_names_no_pass() {
    let full = pass_names();
    // A last part of one word is a word of English as well.
    let is_plain = |name: &&str| name.chars().filter(|c| c.is_uppercase()).count() < 2;
    let short: Vec<&str> = full
        .iter()
        .filter_map(|name| name.rsplit('.').next())
        .filter(|name| !is_plain(name))
        .collect();
    let folder = root().join("host");
    let sources = files(&folder, "rs").into_iter().chain(files(&folder, "txt"));
    // What `plugins new` writes is a plugin's, whose fixtures name passes; benchmarks are of passes.
    let apart = ["cli/src/template", "compiler/benches"].map(|part| folder.join(part));
    let sources = sources.filter(|path| !apart.iter().any(|part| path.starts_with(part)));
    let is_test = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "tests");
    for path in sources.filter(|path| !is_test(path) && !path.ends_with("tests.rs")) {
        let text = read(&path);
        let text = text.split("#[cfg(test)]").next().unwrap_or("");
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        for word in text.split(|c| !is_part(c)) {
            let word = word.trim_matches('.');
            let starts = |name: &str| {
                word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let is_pass =
                full.iter().any(|name| starts(name)) || short.iter().any(|name| starts(name));
            assert!(!is_pass, "{} names {word}", path.display());
        }
    }
}

/// The names of our operators.
fn operator_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files(&root().join("plugins/operators/src"), "rs") {
        let text = read(&path);
        for (_, attribute) in text.match_indices("#[op(").map(|(at, _)| text.split_at(at)) {
            let name = attribute.split('"').nth(1).expect("an operator has a name");
            names.insert(name.to_owned());
        }
    }
    assert!(names.len() > 50, "there are operators");
    names
}

/// Intrinsics and words of tensor programs have names of their own, some of which are those of operators.
fn is_intrinsic(name: &str) -> bool {
    ["max", "min", "where"].contains(&name) || IntrinsicDef::find(name).is_some()
}

/// The operators that a line names: as a word, where the name has a dot; else in quotes, or in a call of the text form.
fn named<'a>(line: &'a str, names: &BTreeSet<String>) -> Vec<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || "_.%@/".contains(c);
    let words = line.split(|c| !is_part(c)).map(|word| word.trim_matches('.'));
    let dotted = words.filter(|word| word.contains('.'));
    let quoted = line.split(['"', '`']).skip(1);
    let called = line.match_indices('(').filter_map(|(at, _)| {
        let is_value = ["%", "^", "const(", "("].iter().any(|it| line[at + 1..].starts_with(it));
        let start = line[..at].rfind(|c| !is_part(c)).map_or(0, |before| before + 1);
        line.get(start..at).filter(|_| is_value)
    });
    let is_operator = |word: &&str| names.contains(*word) && !is_intrinsic(word);
    dotted.chain(quoted).chain(called).filter(is_operator).collect()
}

/// What is known of operators comes from rules. The host knows those of its own run-time, its tests have operators of their
/// own, and what it says to users is about any: so no name of ours stands in it, in code or besides.
#[test]
fn the_host_names_no_operator() {
    const LEFT: &[&str] = &[
        // What is measured is made of ours.
        "compiler/benches",
        // What `plugins new` writes is a plugin's, for one who reads ours.
        "cli/src/template",
        // LLVM has intrinsics of such names.
        "codegen/src/backend/llvm/intrinsics.rs",
    ];
    let (names, host) = (operator_names(), root().join("host"));
    let paths = ["rs", "txt", "ir", "c"].iter().flat_map(|extension| files(&host, extension));
    for path in paths.filter(|path| !LEFT.iter().any(|left| path.starts_with(host.join(left)))) {
        for line in read(&path).lines() {
            let found = named(line, &names);
            assert!(found.is_empty(), "{} names {found:?}: {line}", path.display());
        }
    }
}

/// Passes that ask for rules know no operator; what they show in comments, and in help, are examples.
#[test]
fn the_drivers_name_no_operator() {
    let names = operator_names();
    // Who asks for tensor programs alone knows what it puts where.
    let is_driver = |path: &PathBuf| {
        let text = read(path);
        text.contains("asks = [") && !text.contains(r#"asks = ["compute"]"#)
    };
    let mut paths = Vec::new();
    for driver in pass_files().into_iter().filter(is_driver) {
        let parts = driver.with_extension("");
        paths.extend(if parts.is_dir() { files(&parts, "rs") } else { Vec::new() });
        paths.push(driver);
    }
    for path in paths {
        let text = read(&path);
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            for word in line.split('"').skip(1).step_by(2) {
                let is_operator = names.contains(word) && !is_intrinsic(word);
                assert!(!is_operator, "{} names the operator {word}: {line}", path.display());
            }
        }
    }
}

/// How a program runs is the business of schedules.
#[test]
fn no_program_of_an_operator_decides_how_it_runs() {
    let words =
        ["LoopKind", "vector_bits", "vector_registers", "Parallel", "Vectorized", "Unrolled"];
    for file in files(&root().join("plugins/operators/src"), "rs") {
        let text = read(&file);
        let found = words.iter().find(|&&word| text.contains(word));
        assert_eq!(found, None, "{}", file.display());
    }
}

/// A rule of a phase has the name of what a pass establishes, so that who breaks it is told what to run.
#[test]
fn every_rule_of_a_phase_is_established_by_a_pass() {
    let passes: String = pass_files().iter().map(|path| read(path)).collect();
    let established: Vec<&str> =
        passes.split("establishes = [").skip(1).filter_map(|rest| rest.split(']').next()).collect();
    for rule in tenon_compiler::check::rules().iter().filter(|rule| rule.since.is_some()) {
        let name = format!("\"{}\"", rule.name);
        let is_there = established.iter().any(|names| names.contains(&name));
        assert!(is_there, "no pass establishes `{}`", rule.name);
    }
}

/// The crates of the host in the order of their dependence, and what each depends on of those before it.
const HOST: [(&str, &[&str]); 6] = [
    ("ir", &[]),
    ("eval", &["ir"]),
    ("runtime", &[]),
    ("codegen", &["ir", "runtime"]),
    ("compiler", &["ir", "eval", "runtime", "codegen"]),
    ("cli", &["compiler"]),
];

#[test]
fn a_crate_of_the_host_depends_on_those_before_it() {
    for (part, expected) in HOST {
        let path = root().join("host").join(part).join("Cargo.toml");
        let manifest: toml::Table = read(&path).parse().expect("a manifest");
        let dependencies = manifest["dependencies"].as_table().expect("a table");
        let of_the_host =
            |name: &str| HOST.iter().any(|(other, _)| name == format!("tenon-{other}"));
        let mut found: Vec<&String> =
            dependencies.keys().filter(|name| of_the_host(name)).collect();
        let mut expected: Vec<String> = expected.iter().map(|it| format!("tenon-{it}")).collect();
        found.sort();
        expected.sort();
        assert!(found.into_iter().eq(&expected), "{} depends on others", path.display());
    }
}

/// Inference looks operators up in the context's book, and knows neither where these come from nor their programs; the IR
/// itself knows nothing of what is said of it.
#[test]
fn what_is_said_of_the_ir_stands_in_no_circle() {
    let folder = root().join("host/ir/src");
    let of = |part: &str| match part {
        "" => {
            files(&folder, "rs").into_iter().filter(|path| path.parent() == Some(&folder)).collect()
        }
        _ => files(&folder.join(part), "rs"),
    };
    let below = [("", "ops"), ("", "infer"), ("infer", "ops"), ("check", "text")];
    for (part, other) in below {
        let name = format!("crate::{other}");
        let found = of(part).into_iter().find(|path| {
            let text = read(path);
            let code = text.split("#[cfg(test)]").next().unwrap_or("");
            code.contains(&format!("{name}::")) || code.contains(&format!("{name};"))
        });
        assert!(found.is_none(), "{part} knows {other}: {found:?}");
    }
}

#[test]
fn the_host_names_no_plugin() {
    let plugins: Vec<String> = fs::read_dir(root().join("plugins"))
        .expect("plugins")
        .flatten()
        .map(|entry| format!("tenon_{}", entry.file_name().to_string_lossy()))
        .collect();
    let is_test = |path: &Path| {
        path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
    };
    let benches = root().join("host/compiler/benches");
    let sources = files(&root().join("host"), "rs").into_iter();
    for path in sources.filter(|path| !is_test(path) && !path.starts_with(&benches)) {
        let text = read(&path);
        for plugin in &plugins {
            assert!(!text.contains(plugin.as_str()), "{} names {plugin}", path.display());
        }
    }
}

#[test]
fn every_pass_has_a_header_and_fixtures() {
    for path in pass_files() {
        let text = read(&path);
        assert!(text.starts_with("//! "), "{} has no header", path.display());
        let plugin = path
            .ancestors()
            .find(|folder| folder.parent() == Some(&root().join("plugins")))
            .expect("below plugins/");
        let mut name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name == "mod" {
            let folder = path.parent().and_then(Path::file_name).expect("a folder");
            name = folder.to_string_lossy().into_owned();
        }
        let fixtures = plugin.join("tests").join(&name);
        let count = fs::read_dir(&fixtures).map_or(0, |entries| entries.count());
        assert!(count > 0, "{} has no fixtures in {}", path.display(), fixtures.display());
    }
}

/// Where tests ask for more of a crate than the program does, the host and all below it are compiled twice.
#[test]
fn tests_and_examples_share_what_is_built_for_the_program() {
    let crates = |edges: &str| -> BTreeSet<String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root()).args(["tree", "--offline", "--locked", "--workspace"]);
        cargo.args(["--prefix", "none", "--format", "{p} {f}", "--edges", edges]);
        let output = cargo.output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
        text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    };
    let (program, tests) = (crates("normal"), crates("normal,dev"));
    let differing: Vec<&String> = program.difference(&tests).collect();
    assert!(differing.is_empty(), "tests have these with more features: {differing:#?}");
}

/// What one run of everything may take, on two cores.
const MINUTES: f64 = 30.0;

#[test]
fn every_suite_is_given_minutes_and_all_of_them_are_few() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root());
    cargo.args(["metadata", "--offline", "--locked", "--no-deps", "--format-version", "1"]);
    let output = cargo.output().expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let mut suites: BTreeSet<String> =
        ["lint", "build", "doc", "interleavings", "unit"].map(str::to_owned).into();
    for package in metadata["packages"].as_array().expect("there are packages") {
        for target in package["targets"].as_array().expect("there are targets") {
            if target["kind"][0] == "test" {
                let name = |of: &serde_json::Value| of["name"].as_str().expect("a name").to_owned();
                suites.insert(format!("{}::{}", name(package), name(target)));
            }
        }
    }
    let text = read(&root().join("docs/testing.md"));
    let rows = text.lines().filter_map(|line| {
        let (suite, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let minutes: f64 = rest.split(' ').next()?.parse().ok()?;
        Some((suite.to_owned(), minutes))
    });
    let rows: Vec<(String, f64)> = rows.collect();
    let named: BTreeSet<String> = rows.iter().map(|(suite, _)| suite.clone()).collect();
    assert_eq!(named, suites, "the suites in docs/testing.md, and those that there are");
    let sum: f64 = rows.iter().map(|(_, minutes)| minutes).sum();
    assert!(sum <= MINUTES, "the suites in docs/testing.md are given {sum} minutes of {MINUTES}");
}

#[test]
fn the_tools_of_make_sanitize_are_documented() {
    let makefile = read(&root().join("Makefile"));
    assert!(makefile.contains("\nsanitize: setup\n\t@scripts/sanitize.sh\n"), "make sanitize");
    let script = read(&root().join("scripts/sanitize.sh"));
    let tools = script.split_once("\nTOOLS=(").and_then(|(_, rest)| rest.split_once(')'));
    let text = read(&root().join("docs/testing.md"));
    for tool in tools.expect("the script lists its tools").0.split(' ') {
        assert!(script.contains(&format!("\n{tool}() {{")), "scripts/sanitize.sh has no {tool}");
        assert!(text.contains(&format!("\n| `{tool}` | ")), "docs/testing.md has no {tool}");
    }
}

#[test]
fn plugins_have_no_unsafe() {
    for path in files(&root().join("plugins"), "rs") {
        assert!(!read(&path).contains("unsafe"), "{} says unsafe", path.display());
    }
}

/// FNV-1a over the paths and texts of the frozen sources below a folder.
fn hash_of(folder: &Path) -> u64 {
    let sources = files(folder, "rs").into_iter().chain(files(folder, "toml"));
    sources.fold(0xcbf29ce484222325, |hash, path| {
        let name = path.strip_prefix(folder).expect("it is below").display().to_string();
        let text = name + "\0" + &read(&path);
        text.bytes().fold(hash, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x100000001b3))
    })
}

#[test]
fn what_is_frozen_never_changes() {
    let frozen = [("1.0", 0xa6dc88a8447c589e)];
    let folder = root().join("tests/compat");
    for (version, hash) in frozen {
        let found = hash_of(&folder.join(version));
        assert_eq!(found, hash, "tests/compat/{version} is frozen: {found:#x}");
    }
    let versions = fs::read_dir(&folder).expect("a folder of the house").flatten();
    let count = versions.filter(|entry| entry.path().join("plugin-api").exists()).count();
    assert_eq!(count, frozen.len(), "each frozen version has its hash here");
}

/// The lines of a file of pins that say where something stands.
fn pins(api: &Path) -> Vec<String> {
    let text = read(&api.join("src/abi/pins.rs"));
    text.lines().filter(|line| line.contains("offset_of!(")).map(str::to_owned).collect()
}

#[test]
fn todays_tables_are_those_of_1_0_or_longer() {
    let today = pins(&root().join("plugin-api"));
    let frozen = pins(&root().join("tests/compat/1.0/plugin-api"));
    assert!(frozen.len() > 50, "1.0 has pins");
    for pin in frozen {
        assert!(today.contains(&pin), "1.0 has {pin}");
    }
}

#[test]
fn every_document_that_is_named_exists() {
    let documents = ["README.md", "ARCHITECTURE.md"].map(|name| root().join(name));
    for path in documents.into_iter().chain(files(&root().join("docs"), "md")) {
        let folder = path.parent().expect("a folder");
        for link in read(&path).split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{}: no {target}", path.display());
            }
        }
    }
}

#[test]
fn every_rule_has_fixtures_or_tests() {
    let tests = read(&root().join("host/tests/relations/check.rs"));
    for rule in tenon_compiler::check::rules() {
        let folder = root().join("tests/ir/check").join(rule.name);
        let has_fixtures = fs::read_dir(folder).is_ok_and(|entries| entries.count() > 0);
        let is_tested = tests.contains(&format!("\"{}: ", rule.name));
        assert!(has_fixtures || is_tested, "the rule `{}` has no test", rule.name);
    }
}

/// Numbers of cases that nobody gave out.
const NO_CASES: [u32; 41] = [
    37, 41, 49, 73, 81, 87, 93, 106, 131, 139, 143, 160, 172, 176, 185, 190, 197, 199, 203, 209,
    217, 219, 230, 240, 249, 256, 263, 266, 276, 278, 284, 292, 296, 302, 305, 309, 314, 320, 323,
    329, 333,
];

/// The numbers of cases of one kind that tests and fixtures carry: a test before its point, as in `fn c012_c013_point`, a fixture
/// behind it, as in `point_c012.ir`, or `point_s012_b.ir` where several show one.
fn shown_cases(kind: char) -> HashSet<u32> {
    let mut shown = HashSet::new();
    for folder in ["host", "tests", "plugins", "plugin-api/tests"] {
        for path in files(&root().join(folder), "rs") {
            let text = read(&path);
            let tests = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
            shown.extend(
                tests.flat_map(|name| name.split(['_', '(']).map_while(|word| case(kind, word))),
            );
        }
        for path in ["ir", "rs", "txt"].iter().flat_map(|kind| files(&root().join(folder), kind)) {
            let name = path.file_stem().expect("a file has a name").to_string_lossy();
            shown.extend(name.split('_').filter_map(|word| case(kind, word)));
        }
    }
    shown
}

/// The number of a case that is written `c012`.
fn case(kind: char, word: &str) -> Option<u32> {
    let digits = word.strip_prefix(kind).filter(|digits| digits.len() == 3)?;
    digits.parse().ok()
}

/// The numbers in the first columns of the tables of differences, which may be ranges: `C154 to C159`.
fn told_differences(kind: char) -> Vec<u32> {
    let text = read(&root().join("docs/differences.md"));
    let start = format!("| {kind}");
    let mut numbers = Vec::new();
    for row in text.lines().filter_map(|line| line.strip_prefix(&start)) {
        let Some(cases) =
            row.split(" |").next().filter(|cases| cases.starts_with(|c: char| c.is_ascii_digit()))
        else {
            continue;
        };
        for part in cases.split(',') {
            let ends: Vec<u32> = part
                .split(" to ")
                .map(|end| {
                    end.trim().trim_start_matches(kind).parse().expect("the number of a case")
                })
                .collect();
            numbers.extend(ends[0]..=ends[ends.len() - 1]);
        }
    }
    numbers
}

/// The pass infrastructure is 1 to 113, where a difference is a test as well; then come the passes over graphs.
/// Numbers 310 to 312 are about a device.
#[test]
fn every_case_is_shown_or_told_of() {
    let shown = shown_cases('c');
    let told = told_differences('C');
    let cases = (1..=309).chain(313..=335);
    for number in cases.filter(|number| !NO_CASES.contains(number)) {
        let is_shown = shown.contains(&number);
        let is_told = number > 113 && told.contains(&number);
        assert!(is_shown || is_told, "no test carries the number C{number:03}, and no difference");
    }
}

/// Cases of schedules: their primitives, traces, and who chooses.
#[test]
fn every_case_of_schedules_is_shown_or_told_of() {
    let (shown, told) = (shown_cases('s'), told_differences('S'));
    for number in 1..=60 {
        let is_there = shown.contains(&number) || told.contains(&number);
        assert!(is_there, "no test carries the number S{number:03}, and no difference");
    }
}
