//! The weights that lie beside a module's text form, as a safetensors file.
//!
//! Reading maps the file and hands out slices of it; writing streams the tensors, so neither
//! copies several gigabytes. Little-endian, row-major. The tensors are written by descending
//! element size behind a header padded to 64 bytes, so each is aligned for its element in a
//! mapped file. Files from elsewhere need not be: a reader must not count on it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Write,
    path::Path,
};

use safetensors::{
    Dtype,
    tensor::{Metadata, TensorInfo},
};

use crate::io::{
    FileError, Hashing, MappedSlice, Mapping, Outputs, outputs::aside_of, quoted, sha256,
};

/// Bytes before the header: its length.
const PREFIX: usize = 8;
/// The format's own limit on the length of a header.
const LONGEST_HEADER: usize = 100_000_000;

/// An open weights file.
#[derive(Debug)]
pub struct Weights {
    mapping: Mapping,
    tensors: BTreeMap<String, Weight>,
    metadata: HashMap<String, String>,
}

/// A tensor in a weights file.
#[derive(Clone, Debug)]
pub struct Weight {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub data: MappedSlice,
}

/// A tensor to be written.
#[derive(Clone, Copy, Debug)]
pub struct WeightView<'a> {
    pub dtype: Dtype,
    pub shape: &'a [usize],
    pub data: &'a [u8],
}

/// What is wrong with a weights file.
#[derive(Debug, thiserror::Error)]
pub enum WeightsProblem {
    #[error("not a safetensors file: {0} bytes are too few")]
    Short(usize),
    #[error("the header claims {claimed} bytes, but the file has {file}")]
    Header { claimed: u64, file: usize },
    #[error("the header is not understood: {0}")]
    Json(serde_json::Error),
    #[error("the header describes {described} bytes of tensors, but there are {found}")]
    Length { described: usize, found: usize },
    #[error("no tensor {name}; there are {count} others")]
    Unknown { name: String, count: usize },
    #[error("two tensors are called {0}")]
    Duplicate(String),
    #[error("tensor {name}: shape {shape:?} of {dtype} does not take {found} bytes")]
    Shape { name: String, dtype: Dtype, shape: Vec<usize>, found: usize },
    #[error(
        "these are other weights than those of the text: their SHA-256 digest is {found}, and the text \
         names {expected}"
    )]
    Digest { expected: String, found: String },
    #[error("tensor {0}: elements smaller than a byte are not supported")]
    SubByte(String),
}

impl Weights {
    /// Maps a file and checks that its header accounts for every byte.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let mapping = Mapping::open(path)?;
        Self::read(&mapping)
            .map_err(|problem| FileError::Weights { path: path.to_owned(), problem })
    }

    /// As [`Weights::open`], for the file of this digest: whoever replaces it together with what names it has put
    /// it aside in between.
    pub fn open_exact(path: &Path, digest: &str) -> Result<Self, FileError> {
        let mut problem = None;
        let aside = aside_of(path, digest);
        // It may get its name after it was looked for there.
        for place in [Some(path), aside.as_deref(), Some(path)].into_iter().flatten() {
            let mapping = match Mapping::open(place) {
                Ok(mapping) => mapping,
                Err(error) => {
                    problem.get_or_insert(error);
                    continue;
                }
            };
            let found = sha256(&mapping);
            let in_file = |problem| FileError::Weights { path: path.to_owned(), problem };
            if found == digest {
                return Self::read(&mapping).map_err(in_file);
            }
            let expected = digest.to_owned();
            problem.get_or_insert(in_file(WeightsProblem::Digest { expected, found }));
        }
        Err(problem.unwrap_or(FileError::Empty { path: path.to_owned() }))
    }

    /// As [`Weights::open`], from a mapping.
    pub fn read(mapping: &Mapping) -> Result<Self, WeightsProblem> {
        let Some((prefix, rest)) = mapping.split_first_chunk::<PREFIX>() else {
            return Err(WeightsProblem::Short(mapping.len()));
        };
        let claimed = u64::from_le_bytes(*prefix);
        let header = usize::try_from(claimed)
            .ok()
            .filter(|&length| length <= LONGEST_HEADER)
            .and_then(|length| rest.get(..length))
            .ok_or(WeightsProblem::Header { claimed, file: mapping.len() })?;
        // Deserializing checks offsets against shapes and types, without overflow.
        let header_length = header.len();
        let header: Metadata = serde_json::from_slice(header).map_err(WeightsProblem::Json)?;
        let start = PREFIX + header_length;
        let (described, found) = (header.data_len(), mapping.len() - start);
        if described != found {
            return Err(WeightsProblem::Length { described, found });
        }

        let mut tensors = BTreeMap::new();
        for (name, TensorInfo { dtype, shape, data_offsets: (from, to) }) in header.tensors() {
            if dtype.bitsize() % 8 != 0 {
                return Err(WeightsProblem::SubByte(quoted(&name)));
            }
            let data = mapping
                .slice(start + from..start + to)
                .ok_or(WeightsProblem::Length { described, found })?;
            tensors.insert(name, Weight { dtype: *dtype, shape: shape.clone(), data });
        }
        let metadata = header.metadata().clone().unwrap_or_default();
        Ok(Self { mapping: mapping.clone(), tensors, metadata })
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Result<&Weight, FileError> {
        self.tensors.get(name).ok_or_else(|| FileError::Weights {
            path: self.mapping.path().to_owned(),
            problem: WeightsProblem::Unknown { name: quoted(name), count: self.tensors.len() },
        })
    }

    /// Every tensor, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Weight)> {
        self.tensors.iter().map(|(name, weight)| (name.as_str(), weight))
    }

    /// What the file says about itself, besides its tensors.
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.metadata
    }
}

/// Writes a weights file as one of several outputs, and tells its SHA-256 digest, by which another one names it.
pub fn write_weights(
    outputs: &mut Outputs,
    path: &Path,
    tensors: &[(&str, WeightView<'_>)],
    metadata: HashMap<String, String>,
) -> Result<String, FileError> {
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_by(|(a, left), (b, right)| {
        (right.dtype.bitsize(), right.dtype).cmp(&(left.dtype.bitsize(), left.dtype)).then(a.cmp(b))
    });
    let header = header(&order, metadata)
        .map_err(|problem| FileError::Weights { path: path.to_owned(), problem })?;
    let failed = |cause| FileError::Write { path: path.to_owned(), cause };
    let mut digest = String::new();
    outputs.write(path, |file| {
        let mut file = Hashing::new(file);
        file.write_all(&(header.len() as u64).to_le_bytes()).map_err(failed)?;
        file.write_all(&header).map_err(failed)?;
        order.iter().try_for_each(|(_, tensor)| file.write_all(tensor.data)).map_err(failed)?;
        digest = file.finish();
        Ok(())
    })?;
    outputs.named_by_digest(&digest);
    Ok(digest)
}

/// The header for tensors in this order, padded with spaces so that data starts at a multiple
/// of 64 bytes.
fn header(
    tensors: &[&(&str, WeightView<'_>)],
    metadata: HashMap<String, String>,
) -> Result<Vec<u8>, WeightsProblem> {
    let mut names = HashSet::new();
    let mut infos = Vec::with_capacity(tensors.len());
    let mut offset = 0;
    for (name, tensor) in tensors {
        check_shape(name, tensor)?;
        if !names.insert(*name) || *name == "__metadata__" {
            return Err(WeightsProblem::Duplicate(quoted(name)));
        }
        let data_offsets = (offset, offset + tensor.data.len());
        offset = data_offsets.1;
        let info = TensorInfo { dtype: tensor.dtype, shape: tensor.shape.to_vec(), data_offsets };
        infos.push(((*name).to_owned(), info));
    }
    let metadata = Some(metadata).filter(|metadata| !metadata.is_empty());
    let metadata = Metadata::new(metadata, infos)
        .expect("the offsets are consecutive and were checked against the shapes");
    let mut header = serde_json::to_vec(&metadata).map_err(WeightsProblem::Json)?;
    let padded = (PREFIX + header.len()).next_multiple_of(64) - PREFIX;
    header.resize(padded, b' ');
    Ok(header)
}

fn check_shape(name: &str, tensor: &WeightView<'_>) -> Result<(), WeightsProblem> {
    let bits = tensor.dtype.bitsize();
    if !bits.is_multiple_of(8) {
        return Err(WeightsProblem::SubByte(quoted(name)));
    }
    let bytes = tensor.shape.iter().try_fold(bits / 8, |product, &dim| product.checked_mul(dim));
    if bytes == Some(tensor.data.len()) {
        return Ok(());
    }
    Err(WeightsProblem::Shape {
        name: quoted(name),
        dtype: tensor.dtype,
        shape: tensor.shape.to_vec(),
        found: tensor.data.len(),
    })
}

#[cfg(test)]
mod tests;
