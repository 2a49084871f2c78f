//! Collects what is wrong, and what has no translation.

use std::collections::HashMap;

use crate::io::quoted;
use crate::onnx::proto::NodeProto;

use super::error::printable;
use super::{GraphProblem, Unsupported, UnsupportedList, WrongList};

/// How many places are named for each thing that is not supported.
const PLACES: usize = 3;

/// What has no translation, each thing once.
#[derive(Debug, Default)]
pub(super) struct Problems {
    list: UnsupportedList,
    positions: HashMap<Key, usize>,
    wrong: WrongList,
}

type Key = (String, String, i64, Option<String>);

impl Problems {
    /// Something that is not about a node.
    pub(super) fn add(&mut self, reason: String) {
        self.insert((String::new(), String::new(), 0, Some(reason)), None);
    }

    /// A node of operator set `version`; without a reason, its operator altogether.
    pub(super) fn add_node(&mut self, node: &NodeProto<'_>, version: i64, reason: Option<String>) {
        let domain = if node.domain.is_empty() { "ai.onnx" } else { node.domain };
        let key = (node.op_type.to_owned(), domain.to_owned(), version, reason);
        self.insert(key, Some(node));
    }

    fn insert(&mut self, key: Key, node: Option<&NodeProto<'_>>) {
        let items = &mut self.list.items;
        let position = *self.positions.entry(key).or_insert_with_key(|key| {
            let (op_type, domain, version, reason) = key.clone();
            items.push(Unsupported { op_type, domain, version, reason, count: 0, nodes: vec![] });
            items.len() - 1
        });
        let item = &mut items[position];
        item.count += 1;
        if let Some(node) = node
            && item.nodes.len() < PLACES
        {
            item.nodes.push(place(node));
        }
    }

    /// Something that ONNX does not allow, which is said where there is still room for it.
    pub(super) fn add_wrong(&mut self, problem: impl FnOnce() -> GraphProblem) {
        self.wrong.add(problem);
    }

    /// All that is wrong, with what has no translation beside it; `None` when nothing is wrong.
    pub(super) fn take_wrong(&mut self) -> Option<WrongList> {
        let mut wrong = std::mem::take(&mut self.wrong);
        if wrong.items.is_empty() {
            return None;
        }
        wrong.unsupported = std::mem::take(&mut self.list);
        Some(wrong)
    }

    /// Everything that was added, or `None`.
    pub(super) fn finish(self) -> Option<UnsupportedList> {
        (!self.list.items.is_empty()).then_some(self.list)
    }
}

/// A node in messages: its name, or what it computes.
pub(super) fn place(node: &NodeProto<'_>) -> String {
    match (node.name, node.output.iter().find(|name| !name.is_empty())) {
        ("", Some(output)) => format!("the one that makes {}", quoted(output)),
        (name, _) => quoted(name),
    }
}

/// A node in messages, with its operator and the version of its domain, where that is known.
pub(super) fn describe(node: &NodeProto<'_>, version: Option<i64>) -> String {
    let domain = if node.domain.is_empty() { "ai.onnx" } else { node.domain };
    let of =
        version.map_or_else(String::new, |version| format!(" ({} {version})", printable(domain)));
    let op = printable(node.op_type);
    match (node.name, node.output.iter().find(|name| !name.is_empty())) {
        ("", Some(output)) => format!("the {op}{of} that makes {}", quoted(output)),
        ("", None) => format!("the {op}{of} that makes nothing"),
        (name, _) => format!("the {op}{of} {}", quoted(name)),
    }
}
