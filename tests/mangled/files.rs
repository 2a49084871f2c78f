//! Files that are right.

use std::fs;
use std::path::Path;
use std::process::Command;

use tenon_compiler::io::{Array, write_npz};
use tenon_plugin_api::abi::note::{NOTE_OWNER, NOTE_TYPE};
use tenon_tuning::{Best, Found, Line, digest};

use crate::readers::{ENTRY, KEPT, keys};

/// Longer files are left out: they take long, and break in the same places.
const LONGEST: u64 = 40_000;

/// Files that there are, below the root of the repository: folders, and how names end.
pub fn found(root: &Path, places: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    let mut folders: Vec<_> = places.iter().map(|(at, end)| (root.join(at), *end)).collect();
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
    files
}

/// Archives of two arrays.
pub fn npz(_: &Path) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("arrays.npz");
    let arrays = [("<f4", 4), (">i8", 8)].map(|dtype| {
        let file = array(dtype);
        Array::decode(&mut &file[..], file.len() as u64).expect("it is right")
    });
    let [a, b] = &arrays;
    write_npz(&path, &[("a", a.view()), ("deep/b", b.view())]).expect("there is room");
    vec![fs::read(path).expect("it was written")]
}

/// The least library that has a manifest: a header, and a segment of notes.
pub fn plugin(_: &Path) -> Vec<Vec<u8>> {
    let note = |record: &str| {
        let mut bytes: Vec<u8> = [NOTE_OWNER.len() as u32, record.len() as u32, NOTE_TYPE]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect();
        for part in [NOTE_OWNER, record.as_bytes()] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    };
    let notes: Vec<u8> = include_str!("manifest.jsonl").lines().flat_map(note).collect();
    let machine: u8 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // A shared object, whose one program header stands behind this one.
    file.extend([3, 0, machine, 0, 1, 0, 0, 0]);
    file.extend([0, 64, 0].map(u64::to_le_bytes).as_flattened());
    file.extend([0, 0, 64, 56, 1, 0, 0].map(u16::to_le_bytes).as_flattened());
    file.resize(64, 0);
    let size = notes.len() as u64;
    file.extend([4u32, 4].map(u32::to_le_bytes).as_flattened());
    file.extend([120, 0, 0, size, size, 4].map(u64::to_le_bytes).as_flattened());
    file.extend(notes);
    vec![file]
}

pub fn none(_: &Path) -> Vec<Vec<u8>> {
    Vec::new()
}

pub fn npy(_: &Path) -> Vec<Vec<u8>> {
    [("<f4", 4), ("|b1", 1), (">i8", 8), ("<f2", 2)].map(array).to_vec()
}

fn array((dtype, size): (&str, usize)) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': (2, 3), }}");
    header.push_str(&" ".repeat(117 - header.len()));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.resize(file.len() + 6 * size, 1);
    file
}

pub fn weights(_: &Path) -> Vec<Vec<u8>> {
    let header = br#"{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},"__metadata__":{"x":"y"}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend([7; 14]);
    vec![file]
}

/// A record of each kind.
pub fn manifest(_: &Path) -> Vec<Vec<u8>> {
    vec![include_bytes!("manifest.jsonl").to_vec()]
}

/// Traces with every kind of word that they have.
pub const TRACES: [&str; 3] = [
    "[acc, matmul] = blocks(); [i, j] = loops(matmul); [i_0, i_1, i_tail] = split(i, [_, 14], tail = cut); \
     acc_tail = children(i_tail); reorder([j, i_0, i_1]); compute_at(acc, j); parallel(j)",
    "b = block(\"relu\"); [i, j] = loops(b); x_shared = cache_read(b, \"x\", shared); i_j = fuse([i, j]); \
     [i_j_0, i_j_1] = split(i_j, [_, 256]); bind(i_j_0, blockIdx_x); bind(i_j_1, threadIdx_x)",
    "acc = anchor(); [a_pad, b_pad] = pad_einsum(acc, [1, 1, 16]); i = loops(acc); [i_0, i_1] = partition(i, [9])",
];

pub fn traces(_: &Path) -> Vec<Vec<u8>> {
    TRACES.map(|trace| trace.as_bytes().to_vec()).to_vec()
}

pub fn pipelines(_: &Path) -> Vec<Vec<u8>> {
    let pipelines = [
        "relax.FoldConstant, tir.VectorizeLoop{lanes=4, names=[\"a\", b], x=-1.5}, default",
        "fixpoint(relax.SimplifyExpr{deep=true}, relax.FoldConstant){rounds=3}, tir.Schedule{trace=\"b = block(\\\"x\\\")\"}",
    ];
    pipelines.map(|text| text.as_bytes().to_vec()).to_vec()
}

pub fn targets(_: &Path) -> Vec<Vec<u8>> {
    let targets = [
        "native,vector-width=256",
        "x86_64-linux-gnu,cpu=x86-64-v3,features=+avx512f,+avx512vl,l3=16M,threads=4",
        "aarch64-linux-gnu,features=+sve,fma-units=2,l1=48K,l2=2M",
        "znver4,float=strict",
    ];
    targets.map(|text| text.as_bytes().to_vec()).to_vec()
}

pub fn databases(_: &Path) -> Vec<Vec<u8>> {
    vec![lines(&["x", "y"]), lines(&["y"])]
}

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

pub fn cache(_: &Path) -> Vec<Vec<u8>> {
    vec![fs::read(KEPT.entry.join(ENTRY)).expect("it was kept")]
}

/// A library of a small function, by the program as it was built.
pub fn library(root: &Path) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("there is room");
    let (model, library) = (folder.path().join("m.ir"), folder.path().join("m.so"));
    fs::write(&model, "fn @main(%x: f32[2]) -> f32[2] {\n  %y = exp(%x)\n  ret %y\n}\n")
        .expect("there is room");
    let output = Command::new(root.join("target/release/tenon"))
        .arg("compile")
        .args([&model, Path::new("-o"), &library])
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    vec![fs::read(&library).expect("it was written")]
}

/// What libraries say, and one with all that can be said.
pub fn signatures(root: &Path) -> Vec<Vec<u8>> {
    let all = include_bytes!("signature.json").to_vec();
    let section = |library: Vec<u8>| {
        let start = library.windows(9).position(|bytes| bytes == b"{\"tenon\":")?;
        Some(library[start..].split(|&byte| byte == 0).next()?.to_vec())
    };
    library(root).into_iter().filter_map(section).chain([all]).collect()
}
