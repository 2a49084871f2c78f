//! A graph: nodes in topological order, weights, inputs and outputs.

use crate::onnx::{
    proto::{NodeProto, TensorProto, ValueInfoProto},
    wire::{Reader, WireError},
};

/// A graph.
#[derive(Clone, Debug, Default)]
pub struct GraphProto<'a> {
    pub name: &'a str,
    pub node: Vec<NodeProto<'a>>,
    pub initializer: Vec<TensorProto<'a>>,
    /// The names of the sparse weights, which are not kept.
    pub sparse_initializer: Vec<&'a str>,
    pub input: Vec<ValueInfoProto<'a>>,
    pub output: Vec<ValueInfoProto<'a>>,
    pub value_info: Vec<ValueInfoProto<'a>>,
}

impl<'a> GraphProto<'a> {
    pub(super) fn merge(&mut self, mut reader: Reader<'a>) -> Result<(), WireError> {
        while let Some(field) = reader.next_field()? {
            match field.number {
                1 => self.node.push(NodeProto::decode(field.message("NodeProto")?)?),
                2 => self.name = field.string()?,
                5 => {
                    let tensor = TensorProto::decode(field.message("TensorProto")?)?;
                    if tensor.name.is_empty() {
                        return Err(field.error("has an initializer without a name"));
                    }
                    self.initializer.push(tensor);
                }
                11 => self.input.push(ValueInfoProto::decode(field.message("ValueInfoProto")?)?),
                12 => self.output.push(ValueInfoProto::decode(field.message("ValueInfoProto")?)?),
                13 => {
                    self.value_info.push(ValueInfoProto::decode(field.message("ValueInfoProto")?)?);
                }
                15 => {
                    let sparse = field.message("SparseTensorProto")?;
                    self.sparse_initializer.push(sparse_name(sparse)?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The name of a sparse tensor is that of its values.
fn sparse_name<'a>(mut reader: Reader<'a>) -> Result<&'a str, WireError> {
    let mut name = "";
    while let Some(field) = reader.next_field()? {
        if field.number == 1 {
            name = TensorProto::decode(field.message("TensorProto")?)?.name;
        }
    }
    Ok(name)
}
