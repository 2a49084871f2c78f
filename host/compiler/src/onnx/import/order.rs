//! Nodes that are out of order are put behind those whose outputs they read.
//!
//! The standard asks for that order. ONNX Runtime makes it itself when it opens a model, so there are tools that append a
//! node and leave it where it is, its own among them. What nodes compute does not depend on where they are written,
//! since a name is defined once.
//!
//! A node comes just before the first that reads it; all others stay as they are. A circle stays out of order, and the sweep
//! finds what it reads not defined.

use std::collections::{HashMap, HashSet};

use crate::onnx::proto::{AttributeValue, GraphProto, ModelProto, NodeProto};

use super::graphs::Graphs;

/// Puts the nodes of a model in order, with those of its functions and of the graphs inside of nodes.
pub(super) fn put_in_order<'f>(model: &mut ModelProto<'f>, graphs: &mut Graphs<'f>) {
    let of_functions = model.functions.iter_mut().map(|function| &mut function.node);
    for nodes in of_functions.chain([&mut model.graph.node]) {
        if let Some(order) = order_of(nodes, graphs) {
            arrange(nodes, &order);
        }
    }
    for number in 0..graphs.all().len() {
        if let Some(order) = order_of(&graphs.all()[number].node, graphs) {
            arrange(&mut graphs.all_mut()[number].node, &order);
        }
    }
}

fn arrange<T: Default>(items: &mut Vec<T>, order: &[usize]) {
    let mut before = std::mem::take(items);
    items.extend(order.iter().map(|&at| std::mem::take(&mut before[at])));
}

enum Step {
    Enter(usize),
    Leave(usize),
}

/// In which order nodes are put; none where they stay.
fn order_of(nodes: &[NodeProto<'_>], graphs: &Graphs<'_>) -> Option<Vec<usize>> {
    let mut makers = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        for &name in node.output.iter().filter(|name| !name.is_empty()) {
            makers.entry(name).or_insert(at);
        }
    }
    let read: Vec<Vec<usize>> = nodes.iter().map(|node| read_by(node, graphs, &makers)).collect();
    if read.iter().enumerate().all(|(at, read)| read.iter().all(|&maker| maker < at)) {
        return None;
    }
    let mut order = Vec::with_capacity(nodes.len());
    let mut is_entered = vec![false; nodes.len()];
    let mut steps: Vec<Step> = (0..nodes.len()).rev().map(Step::Enter).collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(at) if is_entered[at] => {}
            Step::Enter(at) => {
                is_entered[at] = true;
                steps.push(Step::Leave(at));
                steps.extend(read[at].iter().rev().map(|&maker| Step::Enter(maker)));
            }
            Step::Leave(at) => order.push(at),
        }
    }
    Some(order)
}

/// The nodes that make what a node reads, itself or in the graphs inside of it. A name that such a graph defines is its own.
fn read_by(node: &NodeProto<'_>, graphs: &Graphs<'_>, makers: &HashMap<&str, usize>) -> Vec<usize> {
    let mut read: Vec<usize> =
        node.input.iter().filter_map(|&name| makers.get(name).copied()).collect();
    let mut scopes: Vec<Scope<'_>> = Vec::new();
    let mut pending: Vec<(&NodeProto<'_>, Option<usize>)> = vec![(node, None)];
    while let Some((node, around)) = pending.pop() {
        for attribute in &node.attribute {
            let AttributeValue::Graph(graph) = &attribute.value else { continue };
            let Some(graph) = graphs.get(graph) else { continue };
            scopes.push(Scope { own: names_of(graph), around });
            let inside = scopes.len() - 1;
            let of_nodes = graph.node.iter().flat_map(|node| node.input.iter().copied());
            for name in of_nodes.chain(graph.output.iter().map(|output| output.name)) {
                if let Some(&maker) = makers.get(name)
                    && !is_own(&scopes, inside, name)
                {
                    read.push(maker);
                }
            }
            pending.extend(graph.node.iter().map(|node| (node, Some(inside))));
        }
    }
    read
}

/// A graph inside of a node, and the one that it is in.
struct Scope<'a> {
    own: HashSet<&'a str>,
    around: Option<usize>,
}

fn names_of<'a>(graph: &GraphProto<'a>) -> HashSet<&'a str> {
    let given = graph.input.iter().map(|input| input.name);
    let given = given.chain(graph.initializer.iter().map(|tensor| tensor.name));
    given.chain(graph.node.iter().flat_map(|node| node.output.iter().copied())).collect()
}

fn is_own(scopes: &[Scope<'_>], inside: usize, name: &str) -> bool {
    let mut scope = Some(inside);
    while let Some(at) = scope {
        if scopes[at].own.contains(name) {
            return true;
        }
        scope = scopes[at].around;
    }
    false
}
