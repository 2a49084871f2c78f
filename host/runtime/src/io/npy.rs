//! NumPy's `.npy` files.
//!
//! Reads versions 1 to 3 with the element types that NumPy itself has; big-endian and
//! column-major (Fortran) files come back little-endian and row-major. Writes version 1.
//! NumPy has no bfloat16, so neither has this: such a file is refused by name.

mod header;
mod order;

use std::{
    io::{self, Read, Write},
    path::Path,
};

use crate::io::{FileError, regular::open_regular, write_atomically};
use header::Header;

/// An array in row-major order with little-endian elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    pub dtype: NpyType,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

/// An array that lies elsewhere, to be written.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    pub dtype: NpyType,
    pub shape: &'a [usize],
    pub data: &'a [u8],
}

/// The element types that NumPy and the compiler share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NpyType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    /// Of the package `ml_dtypes`: NumPy itself has no such type.
    BF16,
    F32,
    F64,
}

/// What is wrong with one array of a file.
#[derive(Debug, thiserror::Error)]
pub enum NpyProblem {
    #[error("not a .npy file: it does not begin with \\x93NUMPY")]
    Magic,
    #[error("version {0}.{1} of the .npy format is not known, expected 1.0, 2.0 or 3.0")]
    Version(u8, u8),
    #[error("the header claims {claimed} bytes, more than the file or any real header has")]
    HeaderLength { claimed: u64 },
    #[error("the header is not understood at its byte {at}: expected {expected}")]
    HeaderSyntax { at: usize, expected: &'static str },
    #[error("the header has no '{0}'")]
    MissingKey(&'static str),
    #[error(
        "the element type '{0}' is not supported, expected bool, int8 to int64, uint8 to \
             uint64, float16, bfloat16, float32 or float64"
    )]
    ElementType(String),
    #[error("arrays with named fields are not supported")]
    Structured,
    #[error("{rank} dimensions, more than the 64 that NumPy allows")]
    Rank { rank: usize },
    #[error("the shape {shape:?} has more elements than any memory")]
    Size { shape: Vec<usize> },
    #[error("the shape {shape:?} takes {expected} bytes, but there are {found}")]
    Length { shape: Vec<usize>, expected: u64, found: u64 },
    #[error("no memory for {bytes} bytes")]
    Memory { bytes: usize },
    #[error("not an array: its name in the archive does not end with .npy")]
    NotAnArray,
    #[error("two arrays have this name")]
    Duplicate,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads a `.npy` file.
pub fn read_npy(path: &Path) -> Result<Array, FileError> {
    let (file, length) = open_regular(path)?;
    Array::decode(&mut io::BufReader::new(file), length)
        .map_err(|problem| FileError::Npy { path: path.to_owned(), problem })
}

/// Writes a `.npy` file, atomically.
pub fn write_npy(path: &Path, array: ArrayView<'_>) -> Result<(), FileError> {
    write_atomically(path, |file| {
        array.encode(file).map_err(|problem| FileError::Npy { path: path.to_owned(), problem })
    })
}

impl Array {
    /// Reads an array from a stream that is said to hold exactly `available` bytes.
    ///
    /// The shape must account for all of them, so what a header claims is never allocated; and
    /// where `available` itself is only a claim, memory grows with the bytes that really come.
    pub fn decode(input: &mut impl Read, available: u64) -> Result<Self, NpyProblem> {
        let header = Header::read(input, available)?;
        let Header { dtype, shape, .. } = header;
        let expected = byte_length(dtype, &shape)?;
        let found = available - header.length;
        let mut data = Vec::new();
        if expected as u64 == found {
            // What a lying claim costs at most.
            const AT_ONCE: usize = 64 << 20;
            data.try_reserve_exact(expected.min(AT_ONCE))
                .map_err(|_| NpyProblem::Memory { bytes: expected })?;
            input.take(found).read_to_end(&mut data)?;
        }
        if data.len() != expected {
            let found = if expected as u64 == found { data.len() as u64 } else { found };
            return Err(NpyProblem::Length { shape, expected: expected as u64, found });
        }
        order::normalize(&mut data, dtype, &shape, header.big_endian, header.fortran_order)?;
        Ok(Self { dtype, shape, data })
    }

    /// The array, borrowed for writing.
    pub fn view(&self) -> ArrayView<'_> {
        ArrayView { dtype: self.dtype, shape: &self.shape, data: &self.data }
    }
}

impl ArrayView<'_> {
    /// Writes the array as a version 1 `.npy` stream.
    pub fn encode(&self, output: &mut impl Write) -> Result<(), NpyProblem> {
        output.write_all(&self.header()?)?;
        output.write_all(self.data)?;
        Ok(())
    }

    /// The header, after checking that shape and data agree.
    pub(crate) fn header(&self) -> Result<Vec<u8>, NpyProblem> {
        let (expected, found) =
            (byte_length(self.dtype, self.shape)? as u64, self.data.len() as u64);
        if expected != found {
            return Err(NpyProblem::Length { shape: self.shape.to_vec(), expected, found });
        }
        header::write(self.dtype, self.shape)
    }
}

impl NpyType {
    /// Bytes per element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// NumPy's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }
}

/// The bytes of an array; an error where the product does not fit into memory's addresses.
fn byte_length(dtype: NpyType, shape: &[usize]) -> Result<usize, NpyProblem> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(dtype.bytes(), |product, &dim| product.checked_mul(dim))
        .filter(|&length| isize::try_from(length).is_ok())
        .ok_or_else(|| NpyProblem::Size { shape: shape.to_vec() })
}

#[cfg(test)]
mod tests;
