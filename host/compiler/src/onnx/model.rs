//! Opens a model file.

use std::path::{Path, PathBuf};

use crate::{
    io::{FileError, Mapping},
    onnx::{proto::ModelProto, wire::WireError},
};

/// A file that is no ONNX model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("`{}` is not a usable ONNX model: {cause}", path.display())]
    Wire { path: PathBuf, cause: WireError },
}

/// Maps a model file. Its content is looked at by [`decode_model`].
pub fn open_model(path: &Path) -> Result<Mapping, ModelError> {
    Ok(Mapping::open(path)?)
}

/// Reads a mapped model file.
pub fn decode_model(file: &Mapping) -> Result<ModelProto<'_>, ModelError> {
    ModelProto::decode(file)
        .map_err(|cause| ModelError::Wire { path: file.path().to_owned(), cause })
}
