//! What the names of a graph or a function stand for.

use std::collections::{HashMap, HashSet};

use crate::io::quoted;
use crate::ir::{Cx, NodeSource};
use crate::onnx::proto::{FunctionProto, NodeProto, OperatorSet};

use super::GraphProblem;
use super::attributes::Bound;
use super::builder::Value;
use super::control::Choice;
use super::loops::LoopBody;
use super::problems::describe;

/// A list of nodes in work: the graph, a function that is being expanded, or a graph inside of a node.
pub(super) struct Frame<'m> {
    pub(super) nodes: &'m [NodeProto<'m>],
    /// The number of the next node.
    pub(super) next: usize,
    pub(super) values: Values<'m>,
    /// What the attributes of the function stand for.
    pub(super) attributes: Bound<'m>,
    pub(super) operator_sets: &'m [OperatorSet<'m>],
    pub(super) role: Role<'m>,
    /// The names of the calls that lead here, each with a `/` behind it.
    pub(super) path: String,
    /// The same of the function that is expanded around it; nothing in the graph of the model.
    pub(super) base: String,
}

/// What a list of nodes is.
pub(super) enum Role<'m> {
    /// The graph of the model.
    Graph,
    Function(Call<'m>),
    /// A branch of a choice. It has the values of the frame around it meanwhile.
    Branch(Box<Choice<'m>>),
    /// The body of a loop, likewise.
    Body(Box<LoopBody<'m>>),
}

/// A call of one of the model's own functions.
pub(super) struct Call<'m> {
    pub(super) node: &'m NodeProto<'m>,
    pub(super) function: &'m FunctionProto<'m>,
}

impl Frame<'_> {
    /// What values came from that a node of it makes.
    pub(super) fn source_of(&self, cx: &Cx, node: &NodeProto<'_>) -> NodeSource {
        let (name, scope) = (name_of(node), node.scopes.innermost());
        match self.path.as_str() {
            "" => NodeSource::named(cx, name, scope),
            path => NodeSource::named(cx, &format!("{path}{name}"), scope),
        }
    }

    /// The path of the frame in which a call is expanded. It is no longer than what is kept of a name.
    pub(super) fn path_to(&self, call: &NodeProto<'_>) -> String {
        let name = name_of(call);
        match self.path.len() + name.len() < NodeSource::LONGEST_NAME {
            true => format!("{}{name}/", self.path),
            false => self.path.clone(),
        }
    }

    /// The version of a domain's operators that the nodes are written in.
    pub(super) fn version(&self, domain: &str) -> Option<i64> {
        version_in(self.operator_sets, domain)
    }
}

/// A node's name, or that of what it makes.
fn name_of<'m>(node: &NodeProto<'m>) -> &'m str {
    match node.name {
        "" => node.output.iter().find(|name| !name.is_empty()).unwrap_or(&""),
        name => name,
    }
}

/// The version of a domain's operators among these sets.
pub(super) fn version_in(sets: &[OperatorSet<'_>], domain: &str) -> Option<i64> {
    let domain = standard_domain(domain);
    sets.iter().find(|set| standard_domain(set.domain) == domain).map(|set| set.version)
}

/// The domain with one spelling for the standard one.
pub(super) fn standard_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// Values by their names.
#[derive(Clone, Default)]
pub(super) struct Values<'m> {
    definitions: HashMap<&'m str, Defined<'m>>,
    /// Inputs of a function that its call does not give: a node that reads one is without it.
    left_out: HashSet<&'m str>,
    /// The names that are defined in each graph inside of another that is in work, with what inputs of it hide.
    inner: Vec<Vec<(&'m str, Option<Defined<'m>>)>>,
}

/// What stands behind a name.
#[derive(Clone, Copy)]
struct Defined<'m> {
    value: Value,
    definition: Definition<'m>,
    /// How many graphs are around the one that defines it.
    depth: usize,
}

/// Where a name is defined.
#[derive(Clone, Copy)]
pub(super) enum Definition<'m> {
    Weight,
    Input,
    Output(&'m NodeProto<'m>),
}

impl<'m> Values<'m> {
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        self.definition(name).map(|(value, _)| value)
    }

    /// A value with where its name is defined.
    pub(super) fn definition(&self, name: &str) -> Option<(Value, Definition<'m>)> {
        self.definitions.get(name).map(|it| (it.value, it.definition))
    }

    /// Begins a graph inside of the one in work: it sees what is defined around it.
    pub(super) fn open(&mut self) {
        self.inner.push(Vec::new());
    }

    /// Ends it: what it has defined is not seen outside.
    pub(super) fn close(&mut self) {
        for (name, hidden) in self.inner.pop().unwrap_or_default() {
            match hidden {
                Some(hidden) => self.definitions.insert(name, hidden),
                None => self.definitions.remove(name),
            };
        }
    }

    /// Says that an input of a function is not given.
    pub(super) fn leave_out(&mut self, name: &'m str) {
        self.left_out.insert(name);
    }

    /// Defines a name, which must be new; one that is not stays what it is.
    pub(super) fn define(
        &mut self,
        name: &'m str,
        value: Value,
        definition: Definition<'m>,
    ) -> Result<(), GraphProblem> {
        if let Some(first) = self.definitions.get(name) {
            let (first, second) = (first.definition.text(), definition.text());
            return Err(GraphProblem::DefinedTwice { name: quoted(name), first, second });
        }
        let depth = self.inner.len();
        self.definitions.insert(name, Defined { value, definition, depth });
        if let Some(names) = self.inner.last_mut() {
            names.push((name, None));
        }
        Ok(())
    }

    /// Defines an input of a graph inside of another. It may hide what is defined around it: the standard wants other names, but
    /// exporters give the inputs of a body those of what is carried, and other runtimes take that.
    pub(super) fn define_inner(&mut self, name: &'m str, value: Value) -> Result<(), GraphProblem> {
        let (depth, definition) = (self.inner.len(), Definition::Input);
        let around = self.definitions.get(name).copied().filter(|it| it.depth < depth);
        let (Some(hidden), Some(names)) = (around, self.inner.last_mut()) else {
            return self.define(name, value, definition);
        };
        names.push((name, Some(hidden)));
        self.definitions.insert(name, Defined { value, definition, depth });
        Ok(())
    }

    /// Lets a name that is defined stand for another value.
    pub(super) fn redefine(&mut self, name: &'m str, value: Value) {
        if let Some(defined) = self.definitions.get_mut(name) {
            defined.value = value;
        }
    }

    /// What a node reads by a name: nothing where none is given, and an error where none is defined.
    pub(super) fn read(&self, name: &'m str) -> Result<Option<Value>, Undefined> {
        match (name, self.get(name)) {
            ("", _) => Ok(None),
            (_, Some(value)) => Ok(Some(value)),
            (name, None) if self.left_out.contains(name) => Ok(None),
            _ => Err(Undefined),
        }
    }
}

/// Nothing defines a name.
pub(super) struct Undefined;

impl Definition<'_> {
    fn text(self) -> String {
        match self {
            Self::Weight => "a weight".into(),
            Self::Input => "an input".into(),
            Self::Output(node) => format!("an output of {}", describe(node, None)),
        }
    }
}
