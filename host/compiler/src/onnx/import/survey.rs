//! Operators without translation where the sweep does not come by: in the graphs inside of attributes, however
//! deep, and in the functions that are called there.

use crate::onnx::proto::{AttributeValue, FunctionProto, GraphAttribute, NodeProto, OperatorSet};

use super::driver::Importer;
use super::error::Stop;
use super::rules;
use super::scope::{standard_domain, version_in};

/// What is still to be looked at.
#[derive(Default)]
struct Pending<'m> {
    /// Graphs, and the operators that their nodes are written in.
    graphs: Vec<(GraphAttribute<'m>, &'m [OperatorSet<'m>])>,
    functions: Vec<&'m FunctionProto<'m>>,
}

impl<'m> Importer<'m> {
    /// Collects operators without translation in the graphs among the attributes of a node.
    pub(super) fn survey_graphs(
        &mut self,
        operator_sets: &'m [OperatorSet<'m>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<(), Stop> {
        let mut pending = Pending::default();
        given.iter().for_each(|(_, value)| pending.add(value, operator_sets));
        loop {
            if let Some((graph, operator_sets)) = pending.graphs.pop() {
                let graph = graph.decode().map_err(Stop::Wire)?;
                self.survey_nodes(&graph.node, operator_sets, &mut pending);
            } else if let Some(function) = pending.functions.pop() {
                self.survey_nodes(&function.node, &function.opset_import, &mut pending);
            } else {
                return Ok(());
            }
        }
    }

    fn look_for_rules(&mut self, node: &NodeProto<'m>, domain: &str, version: i64) {
        match rules::find(&self.cx, &rules::key(domain, node.op_type), version) {
            Ok(rules) if rules.is_empty() => self.problems.add_node(node, version, None),
            Ok(_) => {}
            Err(error) => self.problems.add_node(node, version, Some(error.to_string())),
        }
    }

    fn survey_nodes(
        &mut self,
        nodes: &[NodeProto<'m>],
        operator_sets: &'m [OperatorSet<'m>],
        pending: &mut Pending<'m>,
    ) {
        for node in nodes {
            let domain = standard_domain(node.domain);
            let version = version_in(operator_sets, domain).unwrap_or(0);
            match self.functions.get(&(domain, node.op_type, node.overload)) {
                Some(&function) => {
                    if self.surveyed.insert(std::ptr::from_ref(function)) {
                        pending.functions.push(function);
                    }
                }
                None => self.look_for_rules(node, domain, version),
            }
            node.attribute.iter().for_each(|other| pending.add(&other.value, operator_sets));
        }
    }
}

impl<'m> Pending<'m> {
    fn add(&mut self, value: &AttributeValue<'m>, operator_sets: &'m [OperatorSet<'m>]) {
        let graphs = match value {
            AttributeValue::Graph(graph) => std::slice::from_ref(&**graph),
            AttributeValue::Graphs(graphs) => &graphs[..],
            _ => return,
        };
        self.graphs.extend(graphs.iter().map(|&graph| (graph, operator_sets)));
    }
}
