//! The graphs inside of attributes, decoded: those of the model, of its functions, and of each other, however deep.

use std::collections::HashMap;

use crate::onnx::proto::{AttributeValue, GraphAttribute, GraphProto, ModelProto, NodeProto};
use crate::onnx::wire::WireError;

/// The graphs that nodes have as attributes.
#[derive(Debug, Default)]
pub(super) struct Graphs<'f> {
    graphs: Vec<GraphProto<'f>>,
    /// By where the attribute stands: in a box of its own, which stays where it is when what has it is moved.
    numbers: HashMap<*const GraphAttribute<'f>, usize>,
}

impl<'f> Graphs<'f> {
    /// Those of a model.
    pub(super) fn of(model: &ModelProto<'f>) -> Result<Self, WireError> {
        let mut this = Self::default();
        let functions = model.functions.iter().flat_map(|function| &function.node);
        let mut found: Vec<(*const GraphAttribute<'f>, GraphAttribute<'f>)> =
            model.graph.node.iter().chain(functions).flat_map(graphs_of).collect();
        while let Some((place, graph)) = found.pop() {
            let graph = graph.decode()?;
            found.extend(graph.node.iter().flat_map(graphs_of));
            this.numbers.insert(place, this.graphs.len());
            this.graphs.push(graph);
        }
        Ok(this)
    }

    /// All of them, in no order that says anything.
    pub(super) fn all(&self) -> &[GraphProto<'f>] {
        &self.graphs
    }

    pub(super) fn all_mut(&mut self) -> &mut [GraphProto<'f>] {
        &mut self.graphs
    }

    /// The graph of an attribute of the model.
    pub(super) fn get(&self, attribute: &GraphAttribute<'f>) -> Option<&GraphProto<'f>> {
        let number = self.numbers.get(&std::ptr::from_ref(attribute))?;
        self.graphs.get(*number)
    }
}

/// The graphs among the attributes of a node, with where they stand.
fn graphs_of<'f>(
    node: &NodeProto<'f>,
) -> impl Iterator<Item = (*const GraphAttribute<'f>, GraphAttribute<'f>)> {
    node.attribute.iter().filter_map(|attribute| match &attribute.value {
        AttributeValue::Graph(graph) => Some((std::ptr::from_ref(&**graph), **graph)),
        _ => None,
    })
}
