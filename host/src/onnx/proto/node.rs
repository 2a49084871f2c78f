//! A node: one application of an operator.

use crate::{
    io::quoted,
    onnx::{
        proto::AttributeProto,
        wire::{Reader, WireError},
    },
};

/// A node.
#[derive(Clone, Debug, Default)]
pub struct NodeProto<'a> {
    /// For people; may be empty, and need not be unique.
    pub name: &'a str,
    pub op_type: &'a str,
    pub domain: &'a str,
    pub overload: &'a str,
    /// The values it reads. An empty name is an optional input that is left out.
    pub input: Vec<&'a str>,
    /// The values it defines. An empty name is an optional output that is not wanted.
    pub output: Vec<&'a str>,
    pub attribute: Vec<AttributeProto<'a>>,
}

impl<'a> NodeProto<'a> {
    pub(super) fn decode(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let mut node = Self::default();
        while let Some(field) = reader.next_field()? {
            match field.number {
                1 => node.input.push(field.string()?),
                2 => node.output.push(field.string()?),
                3 => node.name = field.string()?,
                4 => node.op_type = field.string()?,
                5 => {
                    let attribute = AttributeProto::decode(field.message("AttributeProto")?)?;
                    node.attribute.push(attribute);
                }
                7 => node.domain = field.string()?,
                8 => node.overload = field.string()?,
                _ => {}
            }
        }
        if node.op_type.is_empty() {
            return Err(reader.error(format!("{} has no op_type", quoted(node.name))));
        }
        Ok(node)
    }
}
