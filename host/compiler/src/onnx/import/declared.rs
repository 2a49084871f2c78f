//! The types that a model's graph declares of what its nodes make.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::onnx::proto::{GraphProto, TypeProto};

/// The types that a graph declares of values other than its inputs, which need not be true.
#[derive(Debug)]
pub(super) struct Declared<'m> {
    graph: &'m GraphProto<'m>,
    /// By name; looked for when the first one is asked for.
    types: OnceCell<HashMap<&'m str, &'m TypeProto<'m>>>,
}

impl<'m> Declared<'m> {
    pub(super) fn of(graph: &'m GraphProto<'m>) -> Self {
        Self { graph, types: OnceCell::new() }
    }

    pub(super) fn ty(&self, name: &str) -> Option<&'m TypeProto<'m>> {
        let types = self.types.get_or_init(|| {
            let values = self.graph.value_info.iter().chain(&self.graph.output);
            values.map(|value| (value.name, &value.ty)).collect()
        });
        types.get(name).copied()
    }

    /// How many axes a value has.
    pub(super) fn rank(&self, name: &str) -> Option<usize> {
        match self.ty(name)? {
            TypeProto::Tensor { shape: Some(shape), .. } => Some(shape.len()),
            _ => None,
        }
    }
}
