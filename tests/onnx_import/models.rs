//! Real models come in whole: the types of `main` are those that the models declare.
//!
//! The networks under `.cache` come from the onnx wheel (`scripts/setup-python.sh --models`). One that is
//! not there is skipped, and says so.

use std::{collections::BTreeMap, path::Path};

use tenon_compiler::{
    ir::Context,
    onnx::import::{ImportOptions, import},
};

/// Model, value of the dimension `batch` where one is given, type of `main`.
const MODELS: &[(&str, Option<i64>, &str)] = &[
    ("tests/models/mlp.onnx", None, "fn(f32[batch, 64]) -> (f32[batch, 10], f32[batch, 10])"),
    ("tests/models/mlp.onnx", Some(7), "fn(f32[7, 64]) -> (f32[7, 10], f32[7, 10])"),
    ("examples/digits/digits.onnx", None, "fn(f32[batch, 1, 8, 8]) -> f32[batch, 10]"),
    (".cache/models/light_bvlc_alexnet.onnx", None, IMAGE_TO_CLASSES),
    (".cache/models/light_densenet121.onnx", None, "fn(f32[1, 3, 224, 224]) -> f32[1, 1000, 1, 1]"),
    (".cache/models/light_inception_v1.onnx", None, IMAGE_TO_CLASSES),
    (".cache/models/light_inception_v2.onnx", None, IMAGE_TO_CLASSES),
    (".cache/models/light_resnet50.onnx", None, IMAGE_TO_CLASSES),
    (".cache/models/light_shufflenet.onnx", None, IMAGE_TO_CLASSES),
    (".cache/models/light_squeezenet.onnx", None, "fn(f32[1, 3, 224, 224]) -> f32[1, 1000, 1, 1]"),
    (".cache/models/light_vgg19.onnx", None, IMAGE_TO_CLASSES),
    (".cache/models/light_zfnet512.onnx", None, IMAGE_TO_CLASSES),
];

const IMAGE_TO_CLASSES: &str = "fn(f32[1, 3, 224, 224]) -> f32[1, 1000]";

#[test]
fn real_models_are_imported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, batch, expected) in MODELS {
        if !root.join(file).exists() {
            assert!(file.starts_with(".cache/"), "{file} belongs to the repository");
            eprintln!("{file} is skipped: scripts/setup-python.sh --models was not run");
            continue;
        }
        let dims: BTreeMap<String, i64> =
            batch.iter().map(|&value| ("batch".to_owned(), value)).collect();
        let options = ImportOptions { dims, ..Default::default() };
        let module = match import(&tenon_compiler::testing::cx(), &root.join(file), &options) {
            Ok(imported) => imported.module,
            Err(error) => panic!("{error}"),
        };
        let main = module.get_str("main").expect("a module has a main function");
        let body = main.view();
        let ty = body.ty(body.root()).expect("it has a type");
        assert_eq!(&module.cx().terms().type_text(ty), expected, "{file}");
    }
}
