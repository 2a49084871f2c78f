//! Tensors, checked and ready to use.
//!
//! What a tensor states about itself (dimensions, element type, place and length of its data) is
//! compared with what is there before anything is allocated. Bytes that are in the file as they
//! are needed are not copied.

use std::ops::Deref;
use std::path::Path;

use crate::{
    io::{MappedSlice, Mapping, quoted},
    onnx::{
        ElementType, ExternalProblem,
        external::ExternalFiles,
        proto::{Storage, TensorProto},
        typed_data,
    },
};

/// A dense tensor, row-major.
#[derive(Clone, Debug)]
pub struct TensorData {
    pub element: ElementType,
    pub dims: Vec<u64>,
    /// As many little-endian elements as the dimensions say. Booleans are 0 or 1.
    pub bytes: TensorBytes,
}

/// The bytes of a tensor: a slice of a mapped file where possible, a copy otherwise.
///
/// They have no alignment. Whoever wants numbers reads them with `from_le_bytes` or copies them
/// to where they are aligned.
#[derive(Clone, Debug)]
pub enum TensorBytes {
    Mapped(MappedSlice),
    Owned(Vec<u8>),
}

/// A tensor that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("tensor {}: {problem}", quoted(tensor))]
pub struct TensorError {
    pub tensor: String,
    pub problem: TensorProblem,
}

/// What is wrong with a tensor.
#[derive(Debug, thiserror::Error)]
pub enum TensorProblem {
    #[error("element type {name} (code {code}) is not supported")]
    ElementType { code: i32, name: &'static str },
    #[error("dimension {axis} is {dim}, expected 0 or more")]
    NegativeDimension { axis: usize, dim: i64 },
    #[error("shape {dims:?} of {} has more bytes than any memory", element.name())]
    Size { dims: Vec<i64>, element: ElementType },
    #[error("pieces of tensors are not supported")]
    Segment,
    #[error("shape {dims:?} of {} takes {expected} bytes, but its raw data has {found}", element.name())]
    RawLength { dims: Vec<i64>, element: ElementType, expected: usize, found: usize },
    #[error("shape {dims:?} has {expected} elements, but there are {found} in {}", storage.name())]
    Count { dims: Vec<i64>, storage: Storage, expected: usize, found: usize },
    #[error("{} elements are in {}, expected them in {}", element.name(), found.name(), element.storage().name())]
    WrongField { element: ElementType, found: Storage },
    #[error("{} holds something else than numbers of its kind", storage.name())]
    BrokenNumbers { storage: Storage },
    #[error("element {index} is {value}, which {} cannot hold", element.name())]
    Range { index: usize, value: i64, element: ElementType },
    #[error("it has data both {0} and {1}")]
    TwoPlaces(&'static str, &'static str),
    #[error("external data: {0}")]
    External(#[from] ExternalProblem),
}

/// Reads the tensors of one model.
#[derive(Debug)]
pub struct TensorReader<'a> {
    model: &'a Mapping,
    external: ExternalFiles,
}

impl<'a> TensorReader<'a> {
    /// For tensors borrowed from `model`. External data is looked for in the model's folder, and
    /// each of its files is mapped once.
    pub fn new(model: &'a Mapping) -> Self {
        Self { model, external: ExternalFiles::beside(model.path()) }
    }

    /// Checks a tensor and finds its bytes. A tensor borrowed from elsewhere is copied.
    pub fn read(&mut self, tensor: &TensorProto<'_>) -> Result<TensorData, TensorError> {
        self.read_unnamed(tensor)
            .map_err(|problem| TensorError { tensor: tensor.name.to_owned(), problem })
    }

    /// The files beside the model that data was taken from.
    pub fn external_files(&self) -> impl Iterator<Item = &Path> {
        self.external.paths()
    }

    fn read_unnamed(&mut self, tensor: &TensorProto<'_>) -> Result<TensorData, TensorProblem> {
        let code = tensor.data_type;
        let element = ElementType::from_code(code)
            .map_err(|name| TensorProblem::ElementType { code, name })?;
        if tensor.is_segment {
            return Err(TensorProblem::Segment);
        }
        let dims = non_negative(&tensor.dims)?;
        let size = || TensorProblem::Size { dims: tensor.dims.clone(), element };
        let count = element_count(&dims, element).ok_or_else(size)?;
        let expected = element.bytes_of(count).ok_or_else(size)?;

        let has_raw = tensor.raw_data.is_some_and(|raw| !raw.is_empty());
        let has_typed = !tensor.typed_data.is_empty();
        let bytes = match (tensor.is_external, has_raw, has_typed) {
            (true, true, _) => return Err(TensorProblem::TwoPlaces("outside", "in raw_data")),
            (true, _, true) => return Err(TensorProblem::TwoPlaces("outside", "in numbers")),
            (_, true, true) => return Err(TensorProblem::TwoPlaces("in raw_data", "in numbers")),
            (true, ..) if count == 0 => TensorBytes::Owned(Vec::new()),
            (true, ..) => {
                let bytes = self.external.find(&tensor.external_data, expected)?;
                TensorBytes::Mapped(bytes)
            }
            (_, _, true) => {
                typed_data::read(tensor, element, expected / element.unit(), self.model)?
            }
            _ => self.raw(tensor, element, expected)?,
        };
        let bytes = match element {
            ElementType::Bool => zeros_and_ones(bytes),
            _ => nothing_behind(bytes, count * element.bits()),
        };
        Ok(TensorData { element, dims, bytes })
    }

    fn raw(
        &self,
        tensor: &TensorProto<'_>,
        element: ElementType,
        expected: usize,
    ) -> Result<TensorBytes, TensorProblem> {
        let raw = tensor.raw_data.unwrap_or_default();
        if raw.len() != expected {
            let (dims, found) = (tensor.dims.clone(), raw.len());
            return Err(TensorProblem::RawLength { dims, element, expected, found });
        }
        Ok(TensorBytes::part_of(self.model, raw))
    }
}

fn non_negative(dims: &[i64]) -> Result<Vec<u64>, TensorProblem> {
    let convert = |(axis, &dim)| {
        u64::try_from(dim).map_err(|_| TensorProblem::NegativeDimension { axis, dim })
    };
    dims.iter().enumerate().map(convert).collect()
}

/// The number of elements; `None` where their bytes would not fit into memory's addresses.
fn element_count(dims: &[u64], element: ElementType) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    let count = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))?;
    let count = usize::try_from(count).ok()?;
    let bytes = element.bytes_of(count)?;
    isize::try_from(bytes).is_ok().then_some(count)
}

/// Other bytes than 0 and 1 are no booleans to compiled code.
fn zeros_and_ones(bytes: TensorBytes) -> TensorBytes {
    if bytes.iter().all(|&byte| byte <= 1) {
        return bytes;
    }
    TensorBytes::Owned(bytes.iter().map(|&byte| u8::from(byte != 0)).collect())
}

/// Bytes of which so many bits are elements, with zeros behind these: elements below a byte need not fill the last one.
fn nothing_behind(bytes: TensorBytes, bits: usize) -> TensorBytes {
    let used = (1u8 << (bits % 8)).wrapping_sub(1);
    match bytes.last() {
        Some(&last) if !bits.is_multiple_of(8) && last & !used != 0 => {
            let mut bytes = bytes.to_vec();
            *bytes.last_mut().expect("there is one") = last & used;
            TensorBytes::Owned(bytes)
        }
        _ => bytes,
    }
}

impl TensorBytes {
    /// Bytes borrowed from a mapping, not copied; from elsewhere, copied.
    pub(super) fn part_of(mapping: &Mapping, bytes: &[u8]) -> Self {
        match mapping.slice_of(bytes) {
            Some(slice) => Self::Mapped(slice),
            None => Self::Owned(bytes.to_vec()),
        }
    }
}

impl Deref for TensorBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(slice) => slice,
            Self::Owned(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests;
