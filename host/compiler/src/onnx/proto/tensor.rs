//! A tensor as its file has it. Its data is not decoded here.

use crate::{
    io::quoted,
    onnx::{
        proto::string_pair,
        wire::{Reader, Run, WireError},
    },
};

/// A tensor.
#[derive(Clone, Debug, Default)]
pub struct TensorProto<'a> {
    pub name: &'a str,
    pub dims: Vec<i64>,
    /// ONNX's code for the element type.
    pub data_type: i32,
    /// The elements as little-endian bytes.
    pub raw_data: Option<&'a [u8]>,
    /// The elements as numbers, in pieces.
    pub typed_data: Vec<TypedRun<'a>>,
    /// Where the elements are when they lie in another file: `location`, `offset`, `length`.
    pub external_data: Vec<(&'a str, &'a str)>,
    pub is_external: bool,
    /// Whether it holds strings, which are not kept.
    pub has_strings: bool,
    /// Whether it says to be a piece of a larger tensor.
    pub is_segment: bool,
}

/// Consecutive elements from one of the fields for typed data.
#[derive(Clone, Copy, Debug)]
pub struct TypedRun<'a> {
    pub storage: Storage,
    pub run: Run<'a>,
}

/// The fields for typed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Float,
    Int32,
    Int64,
    Double,
    Uint64,
}

impl<'a> TensorProto<'a> {
    /// Reads a file that is nothing but a tensor, as ONNX's test data has them.
    pub fn decode_file(bytes: &'a [u8]) -> Result<Self, WireError> {
        Self::decode(Reader::new("TensorProto", bytes))
    }

    pub(super) fn decode(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let mut tensor = Self::default();
        while let Some(field) = reader.next_field()? {
            let mut typed = |storage| {
                tensor.typed_data.push(TypedRun { storage, run: field.run() });
            };
            match field.number {
                1 => field.int64s_into(&mut tensor.dims)?,
                2 => tensor.data_type = field.int32()?,
                3 => tensor.is_segment = true,
                4 => typed(Storage::Float),
                5 => typed(Storage::Int32),
                6 => tensor.has_strings = true,
                7 => typed(Storage::Int64),
                8 => tensor.name = field.string()?,
                9 => tensor.raw_data = Some(field.bytes()?),
                10 => typed(Storage::Double),
                11 => typed(Storage::Uint64),
                13 => {
                    let entry = string_pair(field.message("StringStringEntryProto")?)?;
                    tensor.external_data.push(entry);
                }
                14 => tensor.is_external = field.int32()? == 1,
                _ => {}
            }
        }
        if tensor.data_type == 0 {
            return Err(reader.error(format!("{} has no data_type", quoted(tensor.name))));
        }
        Ok(tensor)
    }
}

impl Storage {
    /// The field's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float => "float_data",
            Self::Int32 => "int32_data",
            Self::Int64 => "int64_data",
            Self::Double => "double_data",
            Self::Uint64 => "uint64_data",
        }
    }
}
