//! The outermost message, and the functions that a model brings along.

use crate::{
    io::quoted,
    onnx::{
        proto::{AttributeProto, GraphProto, NodeProto, ValueInfoProto, string_pair},
        wire::{Reader, WireError},
    },
};

/// A model.
#[derive(Clone, Debug, Default)]
pub struct ModelProto<'a> {
    pub ir_version: i64,
    pub opset_import: Vec<OperatorSet<'a>>,
    pub producer_name: &'a str,
    pub producer_version: &'a str,
    pub domain: &'a str,
    pub model_version: i64,
    pub graph: GraphProto<'a>,
    pub metadata: Vec<(&'a str, &'a str)>,
    pub functions: Vec<FunctionProto<'a>>,
    /// Whether there is training information, which is not kept.
    pub has_training_info: bool,
}

/// The version of a domain's operators that a model is written in. The standard domain is `""`
/// or `"ai.onnx"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorSet<'a> {
    pub domain: &'a str,
    pub version: i64,
}

/// An operator that the model defines by a body of nodes.
#[derive(Clone, Debug, Default)]
pub struct FunctionProto<'a> {
    pub domain: &'a str,
    pub name: &'a str,
    pub overload: &'a str,
    pub input: Vec<&'a str>,
    pub output: Vec<&'a str>,
    /// Attributes that a call must give.
    pub attribute: Vec<&'a str>,
    /// Attributes that a call may give, with their defaults.
    pub attribute_default: Vec<AttributeProto<'a>>,
    pub node: Vec<NodeProto<'a>>,
    pub opset_import: Vec<OperatorSet<'a>>,
    pub value_info: Vec<ValueInfoProto<'a>>,
}

impl<'a> ModelProto<'a> {
    /// Reads a model from the bytes of its file. It must have a graph.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new("ModelProto", bytes);
        let mut model = Self::default();
        let mut has_graph = false;
        while let Some(field) = reader.next_field()? {
            match field.number {
                1 => model.ir_version = field.int64()?,
                2 => model.producer_name = field.string()?,
                3 => model.producer_version = field.string()?,
                4 => model.domain = field.string()?,
                5 => model.model_version = field.int64()?,
                7 => {
                    model.graph.merge(field.message("GraphProto")?)?;
                    has_graph = true;
                }
                8 => model.opset_import.push(operator_set(field.message("OperatorSetIdProto")?)?),
                14 => model.metadata.push(string_pair(field.message("StringStringEntryProto")?)?),
                20 => model.has_training_info = true,
                25 => {
                    model.functions.push(FunctionProto::decode(field.message("FunctionProto")?)?);
                }
                _ => {}
            }
        }
        if !has_graph {
            return Err(reader.error("has no graph"));
        }
        Ok(model)
    }
}

impl<'a> FunctionProto<'a> {
    fn decode(mut reader: Reader<'a>) -> Result<Self, WireError> {
        let mut function = Self::default();
        while let Some(field) = reader.next_field()? {
            match field.number {
                1 => function.name = field.string()?,
                4 => function.input.push(field.string()?),
                5 => function.output.push(field.string()?),
                6 => function.attribute.push(field.string()?),
                7 => function.node.push(NodeProto::decode(field.message("NodeProto")?)?),
                9 => {
                    function.opset_import.push(operator_set(field.message("OperatorSetIdProto")?)?)
                }
                10 => function.domain = field.string()?,
                11 => {
                    let attribute = AttributeProto::decode(field.message("AttributeProto")?)?;
                    function.attribute_default.push(attribute);
                }
                12 => {
                    let value = ValueInfoProto::decode(field.message("ValueInfoProto")?)?;
                    function.value_info.push(value);
                }
                13 => function.overload = field.string()?,
                _ => {}
            }
        }
        if function.name.is_empty() {
            let domain = quoted(function.domain);
            return Err(reader.error(format!("of domain {domain} has no name")));
        }
        Ok(function)
    }
}

fn operator_set<'a>(mut reader: Reader<'a>) -> Result<OperatorSet<'a>, WireError> {
    let mut set = OperatorSet::default();
    while let Some(field) = reader.next_field()? {
        match field.number {
            1 => set.domain = field.string()?,
            2 => set.version = field.int64()?,
            _ => {}
        }
    }
    Ok(set)
}
