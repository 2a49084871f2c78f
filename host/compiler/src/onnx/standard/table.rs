//! The operators of the standard, by name and version.

use std::sync::OnceLock;

use crate::suggest::nearest;

use super::{Attribute, Occurs, Parameter, Schema};

const TEXT: &str = include_str!("operators.tsv");

/// The lines of the table.
struct Table {
    sets: Vec<&'static str>,
    /// In the order of their names, and for one name of their versions.
    operators: Vec<Line>,
}

struct Line {
    name: &'static str,
    since: i64,
    rest: &'static str,
}

/// What an operator is in a version of the standard.
#[derive(Debug)]
pub(in crate::onnx) enum Standing {
    /// It is there.
    Is(Schema),
    /// It comes later.
    NotYet { since: i64 },
    /// It has gone.
    NoMore { since: i64 },
    /// No version has it; the name of this one is near.
    Never { near: Option<&'static str> },
}

/// What the standard says in `version` of an operator.
pub(in crate::onnx) fn standing(name: &str, version: i64) -> Standing {
    let table = table();
    let own = table.versions(name);
    match own.iter().rfind(|line| line.since <= version) {
        Some(line) if line.rest.ends_with("\tdeprecated") => Standing::NoMore { since: line.since },
        Some(line) => Standing::Is(table.schema(line)),
        None => match own.first() {
            Some(first) => Standing::NotYet { since: first.since },
            None => Standing::Never {
                near: nearest(name, table.operators.iter().map(|line| line.name)),
            },
        },
    }
}

/// The newest versions of the standard in which something holds of an operator, from the first to the last.
pub(in crate::onnx) fn versions_where(
    name: &str,
    holds: impl Fn(&Schema) -> bool,
) -> Option<[i64; 2]> {
    let (table, mut last) = (table(), i64::MAX);
    let mut found: Option<[i64; 2]> = None;
    for line in table.versions(name).iter().rev() {
        match (holds(&table.schema(line)), &mut found) {
            (true, Some([since, _])) => *since = line.since,
            (true, none) => *none = Some([line.since, last]),
            (false, Some(_)) => break,
            (false, None) => {}
        }
        last = line.since - 1;
    }
    found
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let is_operator = |line: &&str| line.contains('\t');
        let mut operators: Vec<Line> = TEXT.lines().filter(is_operator).map(line).collect();
        operators.sort_by_key(|line| (line.name, line.since));
        Table { sets: TEXT.lines().filter(|line| !is_operator(line)).collect(), operators }
    })
}

fn line(line: &'static str) -> Line {
    let (name, rest) = line.split_once('\t').unwrap_or((line, ""));
    let (since, rest) = rest.split_once('\t').unwrap_or((rest, ""));
    Line { name, since: since.parse().unwrap_or(0), rest }
}

impl Table {
    fn schema(&self, line: &Line) -> Schema {
        let mut fields =
            line.rest.split('\t').map(|field| field.split(' ').filter(|part| !part.is_empty()));
        let mut next = || fields.next().into_iter().flatten();
        Schema {
            name: line.name,
            inputs: next().map(|text| self.parameter(text)).collect(),
            outputs: next().map(|text| self.parameter(text)).collect(),
            attributes: next().map(attribute).collect(),
        }
    }

    fn parameter(&self, text: &'static str) -> Parameter {
        let (name, types) = text.split_once('=').unwrap_or((text, ""));
        let (variable, set) = types.split_once(':').unwrap_or((types, ""));
        let types = set.parse().ok().and_then(|set: usize| self.sets.get(set)).copied();
        let (name, occurs) = match name.find(['?', '*', '+']) {
            None => (name, Occurs::Once),
            Some(at) => {
                let least = || name[at + 1..].parse().unwrap_or(0);
                let occurs = match name.as_bytes()[at] {
                    b'?' => Occurs::Optional,
                    mark => Occurs::Repeated { least: least(), alike: mark == b'*' },
                };
                (&name[..at], occurs)
            }
        };
        Parameter { name, occurs, variable, types: types.unwrap_or_default() }
    }

    /// The versions of an operator, the oldest first.
    fn versions(&self, name: &str) -> &[Line] {
        let start = self.operators.partition_point(|line| line.name < name);
        let all = &self.operators[start..];
        &all[..all.partition_point(|line| line.name == name)]
    }
}

fn attribute(text: &'static str) -> Attribute {
    let (name, kind) = text.split_once(':').unwrap_or((text, ""));
    let given = kind.strip_suffix('!');
    Attribute { name, kind: given.unwrap_or(kind), is_required: given.is_some() }
}
