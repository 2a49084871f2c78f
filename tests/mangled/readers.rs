//! What reads files, each with what holds for any bytes: they are read or refused, and what was read is what was written.
//! Each says whether they were read.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use tempfile::{NamedTempFile, TempDir};
use tenon_compiler::cache::{Cache, Key, KeyBuilder, Lookup};
use tenon_compiler::diagnostics::Source;
use tenon_compiler::infer::infer_module;
use tenon_compiler::io::{Array, Mapping, Weights, read_npz};
use tenon_compiler::ir::Module;
use tenon_compiler::onnx::TensorReader;
use tenon_compiler::onnx::import::{ImportOptions, import_mapping};
use tenon_compiler::onnx::proto::{AttributeValue, ModelProto, TensorProto};
use tenon_compiler::passes::Pipeline;
use tenon_compiler::registry::{Config, Edit, Manifest, OpRecord};
use tenon_compiler::runtime::describe::describe;
use tenon_compiler::runtime::signature::LibraryInfo;
use tenon_compiler::target::Target;
use tenon_compiler::testing::cx;
use tenon_compiler::text::{NoWeights, WeightsPolicy, parse_module, print_module};
use tenon_schedule::Script;
use tenon_tuning::{Database, Keys, digest};

/// The text form; a fixture's module is in the middle of its file.
pub fn text(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let text = text.split("//! expect").next().unwrap_or("");
    let cx = cx();
    let module = match parse_module(&cx, &Source::new("mangled", text), &mut NoWeights) {
        Ok(module) => module,
        Err(errors) => return errors.render(false).is_empty(),
    };
    if let Some(printed) = print(&module) {
        let again = parse_module(&cx, &Source::new("again", printed.as_str()), &mut NoWeights);
        let again = again.expect("what is printed parses");
        assert_eq!(print(&again), Some(printed));
    }
    if let Ok(typed) = infer_module(&module) {
        print(&typed);
    }
    true
}

fn print(module: &Module) -> Option<String> {
    let mut policy = WeightsPolicy::inline();
    let text = print_module(module, &mut policy);
    (!policy.has_elided_terms()).then_some(text)
}

/// The wire form of ONNX: no tensor is larger than the bytes allow.
pub fn wire(bytes: &[u8]) -> bool {
    let file = model(bytes);
    let mut tensors = TensorReader::new(&file);
    let mut read = |tensor: &TensorProto<'_>| {
        if let Ok(data) = tensors.read(tensor) {
            assert!(data.bytes.len() <= 8 * bytes.len());
        }
    };
    if let Ok(tensor) = TensorProto::decode_file(&file) {
        read(&tensor);
    }
    let Ok(model) = ModelProto::decode(&file) else { return false };
    let mut graphs = vec![model.graph];
    // A graph may be reached once per attribute that holds it, never twice.
    while let Some(graph) = graphs.pop() {
        graph.initializer.iter().for_each(&mut read);
        for attribute in graph.node.iter().flat_map(|node| &node.attribute) {
            match &attribute.value {
                AttributeValue::Tensor(tensor) => read(tensor),
                AttributeValue::Tensors(list) => list.iter().for_each(&mut read),
                AttributeValue::Graph(inner) => graphs.extend(inner.decode()),
                AttributeValue::Graphs(list) => graphs.extend(list.iter().flat_map(|g| g.decode())),
                _ => {}
            }
        }
    }
    true
}

/// ONNX models, with their import.
pub fn onnx(bytes: &[u8]) -> bool {
    was_read(import_mapping(&cx(), &model(bytes), &ImportOptions::default()))
}

fn model(bytes: &[u8]) -> Mapping {
    Mapping::in_memory(Path::new("/nowhere/model.onnx"), bytes.to_vec())
}

/// `registry.toml`: one that reads still reads after an edit, which holds.
pub fn registry(bytes: &[u8]) -> bool {
    let (text, path) = (String::from_utf8_lossy(bytes), Path::new("/nowhere/registry.toml"));
    if let Err(error) = Config::parse(&text, path) {
        return error.to_diagnostics().render(false).is_empty();
    }
    let mut edit = Edit::parse(&text, path).expect("the same text");
    edit.set_enabled("acme.A", false);
    edit.pin("acme.npu", &"1.2.3".parse().expect("a version"), &"0".repeat(64));
    let config = Config::parse(&edit.text(), path).expect("an edited file reads");
    let enabled = config.passes["acme.A"].enabled.as_ref().expect("it was set");
    assert!(!enabled.value);
    assert!(config.pins["acme.npu"].version.is_some());
    true
}

/// The records of a manifest: what one says of itself reads back the same.
pub fn manifest(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        drop(OpRecord::parse(line).map_err(|error| error.to_string()));
    }
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => return error.to_string().is_empty(),
    };
    let plugin = serde_json::to_string(&manifest.plugin).expect("a record is JSON");
    let passes =
        manifest.passes.iter().map(|pass| serde_json::to_string(pass).expect("so is this"));
    let records: Vec<String> = [plugin].into_iter().chain(passes).collect();
    let again = Manifest::parse(records.join("\n")).expect("what is written reads");
    assert_eq!((again.plugin, again.passes), (manifest.plugin, manifest.passes));
    true
}

/// The file of a plugin, of which the manifest is a part.
pub fn plugin(bytes: &[u8]) -> bool {
    was_read(Manifest::from_bytes(bytes, Path::new("mangled.so")))
}

pub fn npy(bytes: &[u8]) -> bool {
    let Ok(array) = Array::decode(&mut &bytes[..], bytes.len() as u64) else { return false };
    assert!(array.data.len() <= bytes.len());
    let mut written = Vec::new();
    array.view().encode(&mut written).expect("what was read can be written");
    let again = Array::decode(&mut &written[..], written.len() as u64);
    assert_eq!(again.expect("what was written can be read"), array);
    true
}

pub fn npz(bytes: &[u8]) -> bool {
    as_file(bytes, |path| {
        let arrays = read_npz(path);
        let held = arrays.iter().flatten().map(|(_, array)| array.data.len()).sum::<usize>();
        // Deflate packs no more into a byte.
        assert!(held <= 1032 * bytes.len());
        was_read(arrays)
    })
}

/// safetensors: every tensor lies inside.
pub fn weights(bytes: &[u8]) -> bool {
    let file = Mapping::in_memory(Path::new("weights.safetensors"), bytes.to_vec());
    let Ok(weights) = Weights::read(&file) else { return false };
    let total: usize = weights.iter().map(|(_, weight)| weight.data.len()).sum();
    assert!(total <= bytes.len());
    true
}

/// Traces of schedules.
pub fn trace(bytes: &[u8]) -> bool {
    was_read(String::from_utf8_lossy(bytes).parse::<Script>())
}

/// Pipelines as they are written in arguments and registries: what parses prints as what parses to the same.
pub fn pipeline(bytes: &[u8]) -> bool {
    let pipeline = Pipeline::parse(&String::from_utf8_lossy(bytes));
    if let Ok(pipeline) = &pipeline {
        let printed = pipeline.to_string();
        let again = Pipeline::parse(&printed).expect("what is printed parses");
        assert_eq!(again.to_string(), printed);
    }
    was_read(pipeline)
}

/// Texts of targets: what parses prints as what parses to the same.
pub fn target(bytes: &[u8]) -> bool {
    let target = String::from_utf8_lossy(bytes).parse::<Target>();
    // Without a code generator nothing is known of processors but names, and no text of one is read.
    if let Some(target) = target.as_ref().ok().filter(|target| !target.all_features().is_empty()) {
        let again: Target = target.to_string().parse().expect("what is printed parses");
        assert_eq!(again, *target);
    }
    was_read(target)
}

pub fn database(bytes: &[u8]) -> bool {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').count();
    let database = Database::of(bytes.to_vec());
    assert!(database.passed_over() <= lines);
    let (keys, target) = (keys(), digest(b"target"));
    if let Some((_, best)) = database.best(&keys, &target) {
        assert!(best.ms.is_finite() && best.default_ms.is_finite());
    }
    assert!(database.found(&keys.program, &target).len() <= lines);
    database.passed_over() < lines
}

pub fn keys() -> Keys {
    Keys { program: digest(b"program"), anchor: digest(b"anchor"), sizes: digest(b"sizes") }
}

/// What an entry of a compile cache says that it has.
pub fn cache(bytes: &[u8]) -> bool {
    // One entry is written anew by one after the other.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Kept { entry, cache, key, .. } = &*KEPT;
    fs::write(entry.join(ENTRY), bytes).expect("there is room");
    match cache.find(key) {
        Lookup::Found(_) => true,
        Lookup::Missing => false,
        Lookup::Damaged(why) => {
            assert!(!why.is_empty() && !entry.exists());
            fs::create_dir(entry).expect("there is room");
            fs::write(entry.join(FILE), b"library").expect("there is room");
            false
        }
    }
}

/// The file that says what an entry of a cache has, and the other one.
pub const ENTRY: &str = "entry.json";
const FILE: &str = "k.so";

/// A cache with one entry, in a folder that stays until the process ends.
pub struct Kept {
    pub entry: PathBuf,
    cache: Cache,
    key: Key,
    _folder: TempDir,
}

pub static KEPT: LazyLock<Kept> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("input");
    fs::write(&file, b"library").expect("there is room");
    let place = folder.path().join("cache");
    let cache = Cache::open(&place).expect("a cache opens");
    let mut key = KeyBuilder::default();
    key.text("model", "mangled");
    let key = key.finish();
    cache.keep(&key, std::slice::from_ref(&file), &[(FILE, &file)]).expect("it is kept");
    let mut entries = fs::read_dir(&place).expect("it is a folder").flatten();
    let entry = entries.find(|entry| entry.path().join(ENTRY).is_file()).expect("one entry");
    Kept { entry: entry.path(), cache, key, _folder: folder }
});

/// The file of a library, which says of itself what it has.
pub fn library(bytes: &[u8]) -> bool {
    as_file(bytes, |path| was_read(describe(path)))
}

/// What a library says of its functions: it reads back the same.
pub fn signature(bytes: &[u8]) -> bool {
    let info = match LibraryInfo::from_json(bytes) {
        Ok(info) => info,
        Err(error) => return error.to_string().is_empty(),
    };
    let written = info.to_json().expect("it is JSON");
    assert_eq!(LibraryInfo::from_json(written.as_bytes()).expect("what is written reads"), info);
    true
}

/// Whether it is no error, which says something.
fn was_read<T>(result: Result<T, impl Display>) -> bool {
    result.map_err(|error| assert!(!error.to_string().is_empty())).is_ok()
}

/// Gives bytes to what reads a file; each thread has one.
fn as_file<T>(bytes: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static HELD: RefCell<NamedTempFile> =
            RefCell::new(NamedTempFile::new().expect("there is room"));
    }
    HELD.with_borrow_mut(|held| {
        let file: &mut File = held.as_file_mut();
        file.set_len(0).expect("it is ours");
        file.seek(SeekFrom::Start(0)).expect("it is ours");
        file.write_all(bytes).expect("there is room");
        read(held.path())
    })
}
