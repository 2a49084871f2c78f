//! The declared types of values.

use crate::onnx::wire::{Reader, WireError};

/// A value's name and declared type.
#[derive(Clone, Debug)]
pub struct ValueInfoProto<'a> {
    pub name: &'a str,
    pub ty: TypeProto<'a>,
}

/// A declared type.
#[derive(Clone, Debug, Default)]
pub enum TypeProto<'a> {
    /// Nothing is declared.
    #[default]
    Unknown,
    /// A tensor; without a shape even its rank is unknown.
    Tensor { elem_type: i32, shape: Option<Vec<Dimension<'a>>> },
    /// A sequence of tensors of this type.
    Sequence { elem_type: i32, shape: Option<Vec<Dimension<'a>>> },
    /// A tensor of this type, or nothing.
    Optional { elem_type: i32, shape: Option<Vec<Dimension<'a>>> },
    /// A sequence of tensors of this type, or nothing.
    OptionalSequence { elem_type: i32, shape: Option<Vec<Dimension<'a>>> },
    /// A map, a sequence of something else than tensors and so on, by name; not looked into.
    Unsupported(&'static str),
}

/// A dimension of a declared shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dimension<'a> {
    #[default]
    Unknown,
    /// As the file has it, which may be negative.
    Value(i64),
    /// A dimension known by name, the same wherever the name appears.
    Param(&'a str),
}

impl<'a> ValueInfoProto<'a> {
    pub(super) fn decode(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let (mut name, mut ty) = ("", TypeProto::Unknown);
        while let Some(field) = reader.next_field()? {
            match field.number {
                1 => name = field.string()?,
                2 => ty.merge(field.message("TypeProto")?)?,
                _ => {}
            }
        }
        if name.is_empty() {
            return Err(reader.error("has no name"));
        }
        Ok(Self { name, ty })
    }
}

impl<'a> TypeProto<'a> {
    fn merge(&mut self, mut reader: Reader<'a>) -> Result<(), WireError> {
        while let Some(field) = reader.next_field()? {
            *self = match field.number {
                1 => {
                    let (elem_type, shape) = tensor_type(field.message("TypeProto.Tensor")?)?;
                    Self::Tensor { elem_type, shape }
                }
                4 => match element(field.message("TypeProto.Sequence")?)? {
                    Element::Tensor((elem_type, shape)) => Self::Sequence { elem_type, shape },
                    Element::Sequence(_) | Element::Other => Self::Unsupported("sequence"),
                },
                5 => Self::Unsupported("map"),
                7 => Self::Unsupported("opaque"),
                8 => Self::Unsupported("sparse tensor"),
                9 => match element(field.message("TypeProto.Optional")?)? {
                    Element::Tensor((elem_type, shape)) => Self::Optional { elem_type, shape },
                    Element::Sequence((elem_type, shape)) => {
                        Self::OptionalSequence { elem_type, shape }
                    }
                    Element::Other => Self::Unsupported("optional"),
                },
                _ => continue,
            };
        }
        Ok(())
    }
}

/// The code of an element type, and a shape.
type TensorType<'a> = (i32, Option<Vec<Dimension<'a>>>);

/// What a sequence or an optional value has in it.
enum Element<'a> {
    Tensor(TensorType<'a>),
    /// A sequence of tensors.
    Sequence(TensorType<'a>),
    Other,
}

fn element<'a>(mut reader: Reader<'a>) -> Result<Element<'a>, WireError> {
    let mut found = Element::Other;
    while let Some(field) = reader.next_field()? {
        if field.number != 1 {
            continue;
        }
        let mut reader = field.message("TypeProto")?;
        while let Some(field) = reader.next_field()? {
            found = match field.number {
                1 => Element::Tensor(tensor_type(field.message("TypeProto.Tensor")?)?),
                4 => match tensor_in(field.message("TypeProto.Sequence")?)? {
                    Some(ty) => Element::Sequence(ty),
                    None => Element::Other,
                },
                5 | 7 | 8 | 9 => Element::Other,
                _ => continue,
            };
        }
    }
    Ok(found)
}

/// The type of what a sequence has in it, where that is a tensor.
fn tensor_in<'a>(mut reader: Reader<'a>) -> Result<Option<TensorType<'a>>, WireError> {
    let mut found = None;
    while let Some(field) = reader.next_field()? {
        if field.number != 1 {
            continue;
        }
        let mut reader = field.message("TypeProto")?;
        while let Some(field) = reader.next_field()? {
            found = match field.number {
                1 => Some(tensor_type(field.message("TypeProto.Tensor")?)?),
                4 | 5 | 7 | 8 | 9 => None,
                _ => continue,
            };
        }
    }
    Ok(found)
}

fn tensor_type<'a>(mut reader: Reader<'a>) -> Result<TensorType<'a>, WireError> {
    let (mut elem_type, mut shape) = (0, None);
    while let Some(field) = reader.next_field()? {
        match field.number {
            1 => elem_type = field.int32()?,
            2 => {
                let dims = shape.get_or_insert_with(Vec::new);
                let mut reader = field.message("TensorShapeProto")?;
                while let Some(field) = reader.next_field()? {
                    if field.number == 1 {
                        dims.push(dimension(field.message("TensorShapeProto.Dimension")?)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok((elem_type, shape))
}

fn dimension<'a>(mut reader: Reader<'a>) -> Result<Dimension<'a>, WireError> {
    let mut dimension = Dimension::Unknown;
    while let Some(field) = reader.next_field()? {
        match field.number {
            // Exporters say -1 and `?` of what they do not know.
            1 => {
                dimension = match field.int64()? {
                    -1 => Dimension::Unknown,
                    value => Dimension::Value(value),
                }
            }
            2 => {
                dimension = match field.string()? {
                    "" | "?" => Dimension::Unknown,
                    name => Dimension::Param(name),
                }
            }
            _ => {}
        }
    }
    Ok(dimension)
}
