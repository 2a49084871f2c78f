//! Writes the right files of a kind into a folder: `seeds KIND FOLDER`, the first ones that fuzzers change. Besides those
//! that are mangled these are the fixtures of plugins, and models of one node, where these were made.

use std::path::Path;
use std::{env, fs};

use tenon_compiler::runtime::io::sha256;
use tenon_fuzz::files;
use tenon_fuzz::kinds::KINDS;

/// There are many, so that small ones will do.
const SMALL: usize = 2000;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, name, folder] = &arguments[..] else { panic!("seeds KIND FOLDER") };
    let kind = KINDS.iter().find(|kind| kind.name == name).expect("a kind of files");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let more: &[(&str, &str)] = match kind.name {
        "text" => &[("plugins", ".ir")],
        "onnx" => &[(".cache/onnx-nodes", ".onnx")],
        _ => &[],
    };
    let small = files::found(&root, more).into_iter().filter(|file| file.len() <= SMALL);
    for file in kind.files(&root).into_iter().chain(small) {
        fs::write(Path::new(folder).join(sha256(&file)), file).expect("there is room");
    }
}
