//! The kinds of files that are read.

use std::path::Path;

use tenon_compiler::testing::Random;

use crate::{files, mangle, readers};

/// A kind of files.
pub struct Kind {
    pub name: &'static str,
    /// Where right ones are, below the root, and how their names end.
    pub places: &'static [(&'static str, &'static str)],
    /// Right ones that the repository has none of.
    pub made: fn(&Path) -> Vec<Vec<u8>>,
    /// What changes in one, so that other parts of it still fit.
    pub change: fn(&mut Vec<u8>, &mut Random),
    /// Whether bytes are of this kind.
    pub read: fn(&[u8]) -> bool,
}

const MODELS: &[(&str, &str)] = &[("tests", ".onnx"), ("examples", ".onnx")];

#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    Kind { name: "text", places: &[("tests/ir", ".ir"), ("host/tests/text", ".ir")], made: files::none, change: mangle::word, read: readers::text },
    Kind { name: "wire", places: MODELS, made: files::none, change: mangle::field, read: readers::wire },
    Kind { name: "onnx", places: MODELS, made: files::none, change: mangle::field, read: readers::onnx },
    Kind { name: "registry", places: &[("", "registry.toml")], made: files::none, change: mangle::word, read: readers::registry },
    Kind { name: "manifest", places: &[], made: files::manifest, change: mangle::word, read: readers::manifest },
    Kind { name: "plugin", places: &[], made: files::plugin, change: mangle::word, read: readers::plugin },
    Kind { name: "npy", places: &[], made: files::npy, change: mangle::npy_header, read: readers::npy },
    Kind { name: "npz", places: &[], made: files::npz, change: mangle::npz_entry, read: readers::npz },
    Kind { name: "weights", places: &[], made: files::weights, change: mangle::weights_header, read: readers::weights },
    Kind { name: "trace", places: &[], made: files::traces, change: mangle::word, read: readers::trace },
    Kind { name: "pipeline", places: &[], made: files::pipelines, change: mangle::word, read: readers::pipeline },
    Kind { name: "target", places: &[], made: files::targets, change: mangle::word, read: readers::target },
    Kind { name: "database", places: &[], made: files::databases, change: mangle::word, read: readers::database },
    Kind { name: "cache", places: &[], made: files::cache, change: mangle::word, read: readers::cache },
    Kind { name: "library", places: &[], made: files::library, change: mangle::word, read: readers::library },
    Kind { name: "signature", places: &[], made: files::signatures, change: mangle::word, read: readers::signature },
];

impl Kind {
    /// Files that are right.
    pub fn files(&self, root: &Path) -> Vec<Vec<u8>> {
        let mut files = (self.made)(root);
        files.extend(files::found(root, self.places));
        assert!(!files.is_empty(), "there are files for {}", self.name);
        files
    }
}
