//! Operators whose inputs or outputs are maps or strings, which no tensor holds. Each says what to do instead.

use tenon_plugin_api::rule::prelude::*;

/// `ZipMap`: the last node of classifiers, which brings scores into maps.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "ZipMap", since = 1)]
fn zip_map(_: &mut Node<'_>) -> Outputs {
    unsupported(
        "maps, which are no tensors; export the model with `options={'zipmap': False}`, \
         of which scores are a matrix",
    )
}

/// `DictVectorizer` and `CastMap`: tensors of maps.
#[rule(import.onnx, domain = "ai.onnx.ml", key = ["DictVectorizer", "CastMap"], since = 1)]
fn of_map(_: &mut Node<'_>) -> Outputs {
    unsupported("maps, which are no tensors; give the model a matrix of features instead")
}

/// `CategoryMapper`: numbers of strings, or strings of numbers.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "CategoryMapper", since = 1)]
fn category_mapper(_: &mut Node<'_>) -> Outputs {
    unsupported(
        "strings, as in its attribute `cats_strings`; encode categories as whole numbers before the model",
    )
}
