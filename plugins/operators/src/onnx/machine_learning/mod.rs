//! `ai.onnx.ml`: trees, linear models, support vectors, and what prepares their inputs.

mod forest;
mod tree_classifier;
mod tree_ensemble;
mod tree_nodes;
mod tree_regressor;
mod votes;

mod linear;
mod pairwise_coupling;
mod support_vectors;
mod svm_classifier;

mod binarizer;
mod feature_extractor;
mod feature_vectorizer;
mod imputer;
mod label_encoder;
mod normalizer;
mod one_hot_encoder;
mod scaler;

mod attributes;
mod labels;
mod maps;
mod post_transform;
