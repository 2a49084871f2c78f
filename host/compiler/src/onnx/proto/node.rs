//! A node: one application of an operator.

use crate::{
    io::quoted,
    onnx::{
        proto::{AttributeProto, string_pair},
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
    /// The scopes that PyTorch's exporter says the node is in, as it writes them; may be empty.
    pub scopes: Scopes<'a>,
}

/// The scopes of a node, outermost first, the node itself the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes<'a> {
    /// A list of Python's: `['', 'layer1', 'layer1.conv1', 'conv2d']`.
    names: &'a str,
    /// With their classes: `: Net/layer1: Block/layer1.conv1: Conv2d/conv2d: aten.conv2d.default`.
    namespace: &'a str,
}

impl<'a> Scopes<'a> {
    /// The innermost scope around the node, such as `layer1.conv1`; empty where there is none.
    pub fn innermost(self) -> &'a str {
        let list = self.names.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']'));
        let named = list.and_then(|list| list.rsplit(", ").nth(1));
        match named {
            Some(name) => name.trim_matches(['\'', '"']),
            None => {
                let around = self.namespace.rsplit('/').nth(1).unwrap_or("");
                around.split_once(": ").map_or("", |(name, _)| name)
            }
        }
    }

    /// Takes note of an entry of a node's metadata. What nobody can read says nothing.
    fn note(&mut self, entry: Reader<'a>) {
        match string_pair(entry) {
            Ok(("pkg.torch.onnx.name_scopes", names)) => self.names = names,
            Ok(("namespace", namespace)) => self.namespace = namespace,
            Ok(_) | Err(_) => {}
        }
    }
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
                9 => node.scopes.note(field.message("StringStringEntryProto")?),
                _ => {}
            }
        }
        if node.op_type.is_empty() {
            return Err(reader.error(format!("{} has no op_type", quoted(node.name))));
        }
        Ok(node)
    }
}
