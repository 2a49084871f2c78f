//! Writes the right files of a kind into a folder: `seeds KIND FOLDER`, the first ones that fuzzers change.

use std::path::Path;
use std::{env, fs};

use tenon_compiler::runtime::io::sha256;
use tenon_fuzz::kinds::KINDS;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, name, folder] = &arguments[..] else { panic!("seeds KIND FOLDER") };
    let kind = KINDS.iter().find(|kind| kind.name == name).expect("a kind of files");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in kind.files(&root) {
        fs::write(Path::new(folder).join(sha256(&file)), file).expect("there is room");
    }
}
