//! Files that were mangled: whatever reads them says what is wrong, or reads them; nothing panics.
//!
//! Each reader has files that are right, and a seed mangles one of them: bytes change, pieces go, come twice, or come from
//! another file; numbers become extremes, and words change places with words. `TENON_CAMPAIGN=SECONDS` mangles more, from
//! the seed that `TENON_SEED` says, and prints how many it were; the test alone does some hundreds of each.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs};

use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;
use tenon_compiler::cache::{Cache, Key, KeyBuilder, Lookup};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::io::{Array, Mapping, Weights};
use tenon_compiler::onnx::import::{ImportOptions, import};
use tenon_compiler::registry::{Config, Manifest};
use tenon_compiler::runtime::describe::describe;
use tenon_compiler::testing::{Random, cx};
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};
use tenon_schedule::Script;
use tenon_tuning::{Best, Database, Found, Keys, Line, digest};

/// Files that a trial mangles.
const FILES: u64 = 400;
/// Longer files are left out: they take long, and break in the same places.
const LONGEST: u64 = 40_000;

struct Reader {
    name: &'static str,
    /// Where right files are, below the root, and how their names end.
    corpus: &'static [(&'static str, &'static str)],
    read: fn(&[u8]),
}

const READERS: &[Reader] = &[
    Reader {
        name: "text",
        corpus: &[("tests/ir", ".ir"), ("host/compiler/tests/text", ".ir")],
        read: text,
    },
    Reader {
        name: "onnx",
        corpus: &[("tests/models", ".onnx"), ("tests/programs", ".onnx")],
        read: onnx,
    },
    Reader { name: "registry", corpus: &[("", "registry.toml")], read: registry },
    Reader { name: "manifest", corpus: &[], read: manifest },
    Reader { name: "npy", corpus: &[], read: npy },
    Reader { name: "weights", corpus: &[], read: weights },
    Reader { name: "trace", corpus: &[], read: trace },
    Reader { name: "database", corpus: &[], read: database },
    Reader { name: "cache", corpus: &[], read: cache_entry },
    Reader { name: "library", corpus: &[], read: library },
];

fn main() -> ExitCode {
    if let Some(seconds) = env::var("TENON_CAMPAIGN").ok().and_then(|text| text.parse().ok()) {
        return campaign(Duration::from_secs(seconds));
    }
    let trial = |reader: &'static Reader| {
        Trial::test(reader.name, move || {
            let files = corpus(reader);
            (0..FILES).try_for_each(|seed| run(reader, &files, seed))
        })
    };
    libtest_mimic::run(&Arguments::from_args(), READERS.iter().map(trial).collect()).exit_code()
}

/// Goes on until the time is over, with each reader in turn.
fn campaign(time: Duration) -> ExitCode {
    let first = env::var("TENON_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(FILES);
    let corpora: Vec<Vec<Vec<u8>>> = READERS.iter().map(corpus).collect();
    let (begin, mut seed, mut failures) = (Instant::now(), first, 0);
    while begin.elapsed() < time {
        for (reader, files) in READERS.iter().zip(&corpora) {
            if let Err(problem) = run(reader, files, seed) {
                failures += 1;
                println!("{}", problem.message().unwrap_or("it fails"));
            }
        }
        seed += 1;
    }
    println!(
        "{} files, seeds {first} to {seed}; {failures} fail",
        (seed - first) * READERS.len() as u64
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(reader: &Reader, files: &[Vec<u8>], seed: u64) -> Result<(), Failed> {
    let bytes = mangled(files, seed);
    catch_unwind(|| (reader.read)(&bytes))
        .map_err(|_| format!("{}: seed {seed}: it panics", reader.name).into())
}

/// The right files of a reader: those that there are, and those that are made here.
fn corpus(reader: &Reader) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = made(reader.name);
    let mut folders: Vec<_> = reader.corpus.iter().map(|(at, end)| (root.join(at), *end)).collect();
    while let Some((folder, end)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let is_right = path.to_string_lossy().ends_with(end);
            if path.is_dir() && folder != root {
                folders.push((path, end));
            } else if is_right && path.metadata().is_ok_and(|it| it.len() <= LONGEST) {
                files.extend(fs::read(&path));
            }
        }
    }
    assert!(!files.is_empty(), "there are files for {}", reader.name);
    files
}

/// Files of kinds that the repository has none of.
fn made(name: &str) -> Vec<Vec<u8>> {
    match name {
        "npy" => ["<f4", "|b1", ">i8", "<f2"].map(array).to_vec(),
        "weights" => {
            let header = br#"{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},"__metadata__":{"x":"y"}}"#;
            let mut file = (header.len() as u64).to_le_bytes().to_vec();
            file.extend(header);
            file.extend([7; 14]);
            vec![file]
        }
        "manifest" => {
            let file = "{\"record\":\"plugin\",\"name\":\"acme\",\"version\":\"1.0.0\",\"api\":\"1.0\"}\n\
                        {\"record\":\"pass\",\"name\":\"acme.A\",\"kind\":\"function\",\"opt_level\":1,\"phase\":\"optimize\"}\n";
            vec![file.into()]
        }
        "trace" => TRACES.iter().map(|trace| trace.as_bytes().to_vec()).collect(),
        "database" => vec![lines(&["x", "y"]), lines(&["y"])],
        "cache" => vec![fs::read(kept().0.join(ENTRY)).expect("it was kept")],
        "library" => vec![compiled()],
        _ => Vec::new(),
    }
}

fn array(dtype: &str) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': (2, 3), }}");
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend([1; 48]);
    file
}

/// Traces with every kind of word that they have.
const TRACES: [&str; 3] = [
    "[acc, matmul] = blocks(); [i, j] = loops(matmul); [i_0, i_1, i_tail] = split(i, [_, 14], tail = cut); \
     acc_tail = children(i_tail); reorder([j, i_0, i_1]); compute_at(acc, j); parallel(j)",
    "b = block(\"relu\"); [i, j] = loops(b); x_shared = cache_read(b, \"x\", shared); i_j = fuse([i, j]); \
     [i_j_0, i_j_1] = split(i_j, [_, 256]); bind(i_j_0, blockIdx_x); bind(i_j_1, threadIdx_x)",
    "acc = anchor(); [a_pad, b_pad] = pad_einsum(acc, [1, 1, 16]); i = loops(acc); [i_0, i_1] = partition(i, [9])",
];

/// A tuning database of one program's schedules.
fn lines(schedules: &[&str]) -> Vec<u8> {
    let keys = keys();
    let line = |schedule: &&str| {
        let best = Best {
            schedule: digest(schedule.as_bytes()),
            op: "matmul".to_owned(),
            rule: "acme::product".to_owned(),
            knobs: [("rows".to_owned(), 6)].into(),
            trace: TRACES[0].to_owned(),
            ms: 1.5,
            default_ms: 2.0,
            judge: "evaluator".to_owned(),
            cpu: "znver4".to_owned(),
            tenon: "1.0.0".to_owned(),
        };
        let tried = Found::Tried { schedule: digest(b"other"), ms: 2.5 };
        [Found::Best(best), tried].map(|found| Line::new(&keys, &digest(b"target"), found))
    };
    schedules.iter().flat_map(line).flat_map(|line| line.to_text().into_bytes()).collect()
}

fn keys() -> Keys {
    Keys { program: digest(b"program"), anchor: digest(b"anchor"), sizes: digest(b"sizes") }
}

/// The file that says what an entry of a cache has.
const ENTRY: &str = "entry.json";

/// The one entry of a cache with its key, in a folder that stays until the process ends.
fn kept() -> &'static (PathBuf, Cache, Key, TempDir) {
    static KEPT: LazyLock<(PathBuf, Cache, Key, TempDir)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("input");
        fs::write(&file, b"library").expect("there is room");
        let place = folder.path().join("cache");
        let cache = Cache::open(&place).expect("a cache opens");
        let mut key = KeyBuilder::default();
        key.text("model", "mangled");
        let key = key.finish();
        cache.keep(&key, std::slice::from_ref(&file), &[("k.so", &file)]).expect("it is kept");
        let mut entries = fs::read_dir(&place).expect("it is a folder").flatten();
        let entry = entries.find(|entry| entry.path().join(ENTRY).is_file()).expect("one entry");
        (entry.path(), cache, key, folder)
    });
    &KEPT
}

/// A library of a small function, by the program as it was built.
fn compiled() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("there is room");
    let (model, library) = (folder.path().join("m.ir"), folder.path().join("m.so"));
    fs::write(&model, "fn @main(%x: f32[2]) -> f32[2] {\n  %y = exp(%x)\n  ret %y\n}\n")
        .expect("there is room");
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("target/release/tenon"))
        .arg("compile")
        .args([&model, Path::new("-o"), &library])
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(&library).expect("it was written")
}

/// A file with some things changed.
fn mangled(files: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = files[random.below(files.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(24)).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] = random.any() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            4 => {
                let other = &files[random.below(files.len())];
                let from = random.below(other.len() + 1);
                let piece = other[from..(from + 32).min(other.len())].to_vec();
                bytes.splice(at..end, piece);
            }
            5 => number(&mut bytes, at, &mut random),
            _ => word(&mut bytes, &mut random),
        }
    }
    bytes
}

/// A run of digits behind a place becomes an extreme.
fn number(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let extremes =
        ["0", "-1", "9223372036854775807", "18446744073709551616", "1e999", "4294967296"];
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|off| at + off) else {
        return;
    };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + digits, random.pick(&extremes).bytes());
}

/// A word takes the place of another one.
fn word(bytes: &mut Vec<u8>, random: &mut Random) {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.%@".contains(byte);
    let mut find = |bytes: &[u8]| {
        let at = random.below(bytes.len() + 1);
        let start = bytes[at..].iter().position(is_letter).map(|off| at + off)?;
        Some(start..start + bytes[start..].iter().take_while(|byte| is_letter(byte)).count())
    };
    if let (Some(from), Some(to)) = (find(bytes), find(bytes)) {
        let piece = bytes[from].to_vec();
        bytes.splice(to, piece);
    }
}

fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // A fixture's module is in the middle of its file.
    let text = text.split("//! expect").next().unwrap_or("");
    let cx = cx();
    let module = match parse_module(&cx, &Source::new("mangled", text), &mut NoWeights) {
        Ok(module) => module,
        Err(errors) => return drop(errors.render(false)),
    };
    let mut policy = WeightsPolicy::inline();
    let printed = print_module(&module, &mut policy);
    if !policy.has_elided_terms() {
        let again = parse_module(&cx, &Source::new("again", printed.as_str()), &mut NoWeights);
        let again = again.expect("what is printed parses");
        assert_eq!(print_module(&again, &mut WeightsPolicy::inline()), printed);
    }
    if let Ok(typed) = infer_module(&module) {
        print_module(&typed, &mut WeightsPolicy::inline());
    }
}

fn onnx(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("there is room");
    fs::write(file.path(), bytes).expect("there is room");
    if let Err(error) = import(&cx(), file.path(), &ImportOptions::default()) {
        assert!(!error.to_string().is_empty());
    }
}

fn registry(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = Config::parse(&text, Path::new("/nowhere/registry.toml")) {
        drop(error.to_diagnostics().render(false));
    }
}

fn manifest(bytes: &[u8]) {
    drop(
        Manifest::parse(String::from_utf8_lossy(bytes).into_owned())
            .map_err(|error| error.to_string()),
    );
    drop(Manifest::from_bytes(bytes, Path::new("mangled.so")).map_err(|error| error.to_string()));
}

fn npy(bytes: &[u8]) {
    let Ok(array) = Array::decode(&mut &bytes[..], bytes.len() as u64) else { return };
    let mut written = Vec::new();
    array.view().encode(&mut written).expect("what was read can be written");
    let again = Array::decode(&mut &written[..], written.len() as u64);
    assert_eq!(again.expect("what was written can be read"), array);
}

fn weights(bytes: &[u8]) {
    let file = Mapping::in_memory(Path::new("weights.safetensors"), bytes.to_vec());
    let Ok(weights) = Weights::read(&file) else { return };
    let total: usize = weights.iter().map(|(_, weight)| weight.data.len()).sum();
    assert!(total <= bytes.len());
}

fn trace(bytes: &[u8]) {
    if let Err(error) = String::from_utf8_lossy(bytes).parse::<Script>() {
        assert!(!error.to_string().is_empty());
    }
}

fn database(bytes: &[u8]) {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').count();
    let database = Database::of(bytes.to_vec());
    assert!(database.passed_over() <= lines);
    let (keys, target) = (keys(), digest(b"target"));
    if let Some((_, best)) = database.best(&keys, &target) {
        assert!(best.ms.is_finite() && best.default_ms.is_finite());
    }
    assert!(database.found(&keys.program, &target).len() <= lines);
}

fn cache_entry(bytes: &[u8]) {
    // One entry is written anew by one after the other.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, cache, key, _) = kept();
    // What is found to be damaged goes.
    fs::create_dir_all(folder).expect("there is room");
    fs::write(folder.join("k.so"), b"library").expect("there is room");
    fs::write(folder.join(ENTRY), bytes).expect("there is room");
    match cache.find(key) {
        Lookup::Found(_) => {}
        Lookup::Missing => {}
        Lookup::Damaged(why) => assert!(!why.is_empty()),
    }
}

fn library(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("there is room");
    fs::write(file.path(), bytes).expect("there is room");
    if let Err(error) = describe(file.path()) {
        assert!(!error.to_string().is_empty());
    }
}
