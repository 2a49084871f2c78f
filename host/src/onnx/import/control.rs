//! Choices between graphs that stand in a node.
//!
//! ```text
//! y = If(c) {                           %y = if %c {
//!   then:  a = Relu(x), gives a    =>     %a = acme.ramp(%x)
//!   else:  gives x                        ret %a
//! }                                     } else {
//!                                         ret %x
//!                                       }
//! ```
//!
//! The sweep goes through a branch as through the graph around it, whose names it sees. A name is defined once among all
//! that are seen; what a branch defines is not seen outside. Of a choice whose condition is known, the branch that is taken
//! stands in its place, and nobody looks at the other one.

use std::mem::take;

use crate::io::quoted;
use crate::ir::{Context, TypeView};
use crate::onnx::proto::{AttributeValue, GraphProto, NodeProto};

use super::GraphProblem;
use super::builder::{Body, Value};
use super::driver::Importer;
use super::error::{Problem, Stop};
use super::node::Node;
use super::problems::describe;
use super::rules::{self, NEWEST_VERSION, OLDEST_VERSION};
use super::scope::{Definition, Frame, Role, Values, standard_domain};

/// The rule that makes one boolean of a condition.
const CONDITION: &str = "tenon::Condition";

/// A choice one of whose branches is in work.
pub(super) struct Choice<'m> {
    node: &'m NodeProto<'m>,
    /// The graph of the branch in work.
    graph: &'m GraphProto<'m>,
    /// `None` where the branch in work is the only one that matters.
    both: Option<Both<'m>>,
}

/// What is needed where both branches matter.
struct Both<'m> {
    /// `None` where it is missing.
    cond: Option<Value>,
    /// The graph of the other branch, while it comes next.
    otherwise: Option<&'m GraphProto<'m>>,
    /// The first branch; `None` while it is in work, and where something of it is missing.
    then: Option<Body>,
}

impl<'m> Importer<'m> {
    /// The frame of the first branch, where `node` is a choice.
    pub(super) fn enter_choice(
        &mut self,
        frame: &mut Frame<'m>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<Option<Frame<'m>>, Stop> {
        let version = frame.version("").unwrap_or(0);
        let is_known = (OLDEST_VERSION..=NEWEST_VERSION).contains(&version);
        if !standard_domain(node.domain).is_empty() || node.op_type != "If" || !is_known {
            return Ok(None);
        }
        let wrong = |reason: String| GraphProblem::Node { node: describe(node), reason };
        let branch = |name: &str| {
            let value = given.iter().find(|(other, _)| *other == name).map(|&(_, value)| value);
            let graph = match value {
                Some(AttributeValue::Graph(graph)) => self.graphs.get(graph),
                _ => None,
            };
            graph.ok_or_else(|| wrong(format!("its attribute `{name}` is missing")))
        };
        let (then, otherwise) = (branch("then_branch")?, branch("else_branch")?);
        for graph in [then, otherwise] {
            if !graph.input.is_empty() {
                return Err(wrong("a branch has inputs".into()).into());
            }
            if graph.output.len() != node.output.len() {
                let (found, expected) = (graph.output.len(), node.output.len());
                return Err(
                    wrong(format!("a branch has {found} outputs, the node {expected}")).into()
                );
            }
        }
        let &[Some(cond)] = inputs else {
            return Err(wrong("it takes one condition".into()).into());
        };
        let known = self.builder.as_constant(cond).filter(|_| !self.builder.is_missing(cond));
        let known = known.and_then(|constant| constant.data.first().map(|&byte| byte != 0));
        let (graph, both) = match known {
            Some(true) => (then, None),
            Some(false) => (otherwise, None),
            None => {
                let cond = self.condition(frame, node, cond)?;
                (then, Some(Both { cond, otherwise: Some(otherwise), then: None }))
            }
        };
        let choice = Choice { node, graph, both };
        self.enter_branch(choice, frame).map(Some)
    }

    /// One boolean that says what a condition says; `None` where it is missing.
    fn condition(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        cond: Value,
    ) -> Result<Option<Value>, Stop> {
        if self.builder.is_missing(cond) {
            self.report_absent(cond);
            return Ok(None);
        }
        let version = frame.version("").unwrap_or(0);
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name, frame.source_of(&self.cx, node));
        let made = match rules::find(&self.cx, CONDITION, version) {
            Ok(rules) => Node::of_importer(&mut self.builder).ask(&rules, CONDITION, &[Some(cond)]),
            Err(error) => Err(Problem::Rule(error.to_string())),
        };
        match made {
            Ok(Some(values)) if values.len() == 1 => Ok(values.first().copied()),
            Ok(_) => {
                self.problems.add_node(node, version, Some("no rule for its condition".into()));
                Ok(None)
            }
            Err(Problem::Invalid(reason)) => {
                Err(GraphProblem::Node { node: describe(node), reason }.into())
            }
            Err(problem) => {
                self.problems.add_node(node, version, Some(problem.text()));
                Ok(None)
            }
        }
    }

    /// The frame of a branch, which takes the values of the one around it.
    fn enter_branch(
        &mut self,
        choice: Choice<'m>,
        around: &mut Frame<'m>,
    ) -> Result<Frame<'m>, Stop> {
        let graph = choice.graph;
        if choice.both.is_some() {
            self.builder.open_body();
        }
        let mut values = take(&mut around.values);
        values.open();
        self.weights(graph, &mut values)?;
        Ok(Frame {
            nodes: &graph.node,
            next: 0,
            values,
            attributes: around.attributes.clone(),
            operator_sets: around.operator_sets,
            path: around.path_to(choice.node),
            role: Role::Branch(Box::new(choice)),
        })
    }

    /// Ends a branch; gives the frame of the other one, where it comes next.
    pub(super) fn leave_branch(
        &mut self,
        mut choice: Choice<'m>,
        mut values: Values<'m>,
        around: &mut Frame<'m>,
    ) -> Result<Option<Frame<'m>>, Stop> {
        let results = self.results(choice.graph, &values)?;
        values.close();
        around.values = values;
        let node = choice.node;
        let Some(both) = &mut choice.both else {
            self.define_all(node, &results, around)?;
            return Ok(None);
        };
        let is_whole = !results.iter().any(|&result| self.builder.is_missing(result));
        let body = match is_whole {
            true => self.builder.close_body(&results).map(Some),
            false => self.builder.close_body(&[]).map(|_| None),
        };
        let body = body.or_else(|problem| self.no_choice(around, node, problem))?;
        if let Some(otherwise) = both.otherwise.take() {
            both.then = body;
            let next = Choice { graph: otherwise, ..choice };
            return self.enter_branch(next, around).map(Some);
        }
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name, around.source_of(&self.cx, node));
        let outputs = match (both.cond, &both.then, &body) {
            (Some(cond), Some(then), Some(otherwise)) => self
                .join(cond, then, otherwise)
                .map(Some)
                .or_else(|problem| self.no_choice(around, node, problem))?,
            _ => None,
        };
        let outputs =
            outputs.unwrap_or_else(|| node.output.iter().map(|_| self.builder.missing()).collect());
        self.define_all(node, &outputs, around)?;
        Ok(None)
    }

    /// What a graph gives, compared with what it declares.
    fn results(
        &mut self,
        graph: &'m GraphProto<'m>,
        values: &Values<'m>,
    ) -> Result<Vec<Value>, Stop> {
        let mut results = Vec::with_capacity(graph.output.len());
        for output in &graph.output {
            let Some(value) = values.get(output.name) else {
                return Err(GraphProblem::OutputNotDefined(quoted(output.name)).into());
            };
            self.report_absent(value);
            if !self.builder.is_missing(value) {
                self.check_output(output, self.builder.ty(value))?;
            }
            results.push(value);
        }
        Ok(results)
    }

    fn join(&mut self, cond: Value, then: &Body, other: &Body) -> Result<Vec<Value>, Problem> {
        let terms = self.cx.terms();
        for (&then, &other) in then.types.iter().zip(&other.types) {
            let (a, b) = (terms.type_text(then), terms.type_text(other));
            match (terms.ty(then), terms.ty(other)) {
                (TypeView::Tensor { dtype: x, .. }, TypeView::Tensor { dtype: y, .. })
                    if x != y =>
                {
                    return Err(Problem::Invalid(format!("its branches give {a} and {b}")));
                }
                _ if then == other => {}
                _ => {
                    return Err(Problem::Unsupported(format!(
                        "branches whose results have different shapes, {a} and {b}"
                    )));
                }
            }
        }
        self.builder.choice(cond, then, other)
    }

    /// Takes note that a choice cannot be made.
    fn no_choice<T>(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        problem: Problem,
    ) -> Result<Option<T>, Stop> {
        if let Problem::Invalid(reason) = problem {
            return Err(GraphProblem::Node { node: describe(node), reason }.into());
        }
        let version = frame.version("").unwrap_or(0);
        self.problems.add_node(node, version, Some(problem.text()));
        Ok(None)
    }

    fn define_all(
        &mut self,
        node: &'m NodeProto<'m>,
        outputs: &[Value],
        frame: &mut Frame<'m>,
    ) -> Result<(), Stop> {
        for (&name, &value) in node.output.iter().zip(outputs) {
            if !name.is_empty() {
                self.builder.define(value, name);
                frame.values.define(name, value, Definition::Output(node))?;
            }
        }
        Ok(())
    }
}
