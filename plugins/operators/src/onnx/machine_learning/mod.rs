//! `ai.onnx.ml`: trees, and what prepares their inputs.

mod forest;
mod tree_classifier;
mod tree_ensemble;
mod tree_nodes;
mod tree_regressor;

mod binarizer;
mod feature_extractor;

mod attributes;
mod labels;
mod post_transform;
