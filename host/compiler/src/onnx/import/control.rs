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
use crate::ir::{Context, DType, Type, TypeView};
use crate::onnx::proto::{AttributeValue, GraphProto, NodeProto};

use super::GraphProblem;
use super::builder::{Body, Value};
use super::driver::Importer;
use super::dropped_axes::drops_axes;
use super::error::{Problem, Stop};
use super::node::Node;
use super::problems::describe;
use super::rules::{self, NEWEST_VERSION, OLDEST_VERSION};
use super::scope::{Frame, Role, Values, standard_domain};
use super::sequences::open_result;
use super::sizes::Wanted;

/// The rule that makes one element without dimensions of a tensor of one.
pub(super) const SCALAR: &str = "tenon::Scalar";

/// What became of a node that may have graphs inside.
pub(super) enum Control<'m> {
    /// It is no control flow.
    No,
    /// It is, and its outputs are defined; they are missing.
    Left,
    /// A graph of it comes next.
    Entered(Box<Frame<'m>>),
}

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
    /// Which of its results are sequences of open length.
    sequences: Vec<bool>,
}

impl<'m> Importer<'m> {
    /// Enters a graph of `node`, where that is control flow.
    pub(super) fn control(
        &mut self,
        frame: &mut Frame<'m>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<Control<'m>, Stop> {
        let version = frame.version("").unwrap_or(0);
        let is_known = (OLDEST_VERSION..=NEWEST_VERSION).contains(&version);
        if !standard_domain(node.domain).is_empty() || !is_known {
            return Ok(Control::No);
        }
        let is_control = ["If", "Loop", "Scan", "SequenceMap"].contains(&node.op_type);
        if is_control && !self.is_right_control(frame, node, inputs, given) {
            self.survey_graphs(frame.operator_sets, given)?;
            self.leave_out(node, frame)?;
            return Ok(Control::Left);
        }
        match node.op_type {
            "If" => self.enter_choice(frame, node, inputs, given),
            "Loop" => self.enter_loop(frame, node, inputs, given),
            "Scan" | "SequenceMap" => self.enter_loop(frame, node, inputs, given),
            _ => Ok(Control::No),
        }
    }

    /// Whether the standard allows a node with graphs.
    fn is_right_control(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> bool {
        let conforms = self.conforms(frame, node, inputs);
        self.has_right_attributes(frame, node, given) && conforms
    }

    /// Enters the first branch of a choice.
    fn enter_choice(
        &mut self,
        frame: &mut Frame<'m>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<Control<'m>, Stop> {
        let version = frame.version("");
        let wrong = |reason: String| GraphProblem::Node { node: describe(node, version), reason };
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
            None if drops_axes(then, otherwise) => (then, None),
            None => {
                let cond = self.condition(frame, node, cond)?;
                let (otherwise, sequences) = (Some(otherwise), Vec::new());
                (then, Some(Both { cond, otherwise, then: None, sequences }))
            }
        };
        let choice = Choice { node, graph, both };
        Ok(Control::Entered(Box::new(self.enter_branch(choice, frame)?)))
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
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name, frame.source_of(&self.cx, node));
        match self.scalar(cond, DType::BOOL) {
            Ok(value) => Ok(Some(value)),
            Err(problem) => self.no_control(frame, node, problem),
        }
    }

    /// One element of a type, as a tensor without dimensions.
    pub(super) fn scalar(&mut self, value: Value, dtype: DType) -> Result<Value, Problem> {
        let ty = self.builder.ty(value);
        match self.cx.terms().tensor(ty) {
            Some((found, [])) if found == dtype => Ok(value),
            Some((found, _)) if found == dtype => self.asked(SCALAR, &[value]),
            _ => {
                let ty = self.cx.terms().type_text(ty);
                Err(Problem::Invalid(format!("one {dtype} is expected, and {ty} is given")))
            }
        }
    }

    /// The value that a rule of the importer's own makes of these.
    pub(super) fn asked(&mut self, key: &str, inputs: &[Value]) -> Result<Value, Problem> {
        let rules = rules::find(&self.cx, key, NEWEST_VERSION);
        let rules = rules.map_err(|error| Problem::Rule(error.to_string()))?;
        let inputs: Vec<Option<Value>> = inputs.iter().copied().map(Some).collect();
        match Node::of_importer(&mut self.builder).ask(&rules, key, &inputs)?.as_deref() {
            Some(&[value]) => Ok(value),
            _ => Err(Problem::Unsupported(format!("it needs a rule for {key}"))),
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
            base: around.base.clone(),
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
        let mut results = self.results(choice.graph, &values)?;
        values.close();
        around.values = values;
        let node = choice.node;
        let Some(both) = &mut choice.both else {
            self.define_all(node, &results, around)?;
            return Ok(None);
        };
        let is_whole = !results.iter().any(|&result| self.builder.is_missing(result));
        let sequences = self.open_results(around, node, &mut results);
        let sequences = match sequences {
            Ok(sequences) => sequences,
            Err(problem) => {
                self.no_control::<()>(around, node, problem)?;
                vec![false; results.len()]
            }
        };
        let mut given = results.clone();
        if is_whole && self.finds_shapes(around, node) {
            given.extend(results.iter().map(|&result| self.extents_of(result)));
        }
        let body = match is_whole {
            true => self.builder.close_body(&given, given.len() != 1).map(Some),
            false => self.builder.close_body(&[], true).map(|_| None),
        };
        let body = body.or_else(|problem| self.no_control(around, node, problem))?;
        if let Some(otherwise) = both.otherwise.take() {
            (both.then, both.sequences) = (body, sequences);
            let next = Choice { graph: otherwise, ..choice };
            return self.enter_branch(next, around).map(Some);
        }
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name, around.source_of(&self.cx, node));
        let outputs = match (both.cond, &both.then, &body) {
            (Some(cond), Some(then), Some(otherwise)) => self
                .check_sequences(around, node, [&both.sequences, &sequences])
                .and_then(|()| self.join(cond, [then, otherwise], (node, around)))
                .and_then(|outputs| self.sequences_of(outputs, &sequences))
                .map(Some)
                .or_else(|problem| self.no_control(around, node, problem))?,
            _ => None,
        };
        let outputs =
            outputs.unwrap_or_else(|| node.output.iter().map(|_| self.builder.missing()).collect());
        self.define_all(node, &outputs, around)?;
        Ok(None)
    }

    /// What a graph gives, compared with what it declares.
    pub(super) fn results(
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

    fn join(
        &mut self,
        cond: Value,
        [then, other]: [&Body; 2],
        (node, around): (&'m NodeProto<'m>, &Frame<'m>),
    ) -> Result<Vec<Value>, Problem> {
        let cx = self.cx.clone();
        let terms = cx.terms();
        let finds = self.finds_shapes(around, node);
        for (at, (&then, &other)) in then.types.iter().zip(&other.types).enumerate() {
            let (a, b) = (terms.type_text(then), terms.type_text(other));
            match (terms.ty(then), terms.ty(other)) {
                (TypeView::Tensor { dtype: x, .. }, TypeView::Tensor { dtype: y, .. })
                    if x != y =>
                {
                    return Err(Problem::Invalid(format!("its branches give {a} and {b}")));
                }
                _ if then == other => {}
                (
                    TypeView::Tensor { dims: Some(x), .. },
                    TypeView::Tensor { dims: Some(y), .. },
                ) if finds && x.len() == y.len() => {}
                _ => {
                    if let (TypeView::Tuple(_), TypeView::Tuple(_)) =
                        (terms.ty(then), terms.ty(other))
                    {
                        self.want_shapes(around, node, &open_result(at));
                    }
                    self.want_shapes(around, node, "");
                    return Err(Problem::Unsupported(format!(
                        "branches whose results have different shapes, {a} and {b}"
                    )));
                }
            }
        }
        let types: Vec<[Type; 2]> =
            then.types.iter().copied().zip(other.types.iter().copied()).map(Into::into).collect();
        let mut outputs = self.builder.choice(cond, then, other)?;
        if !finds {
            return Ok(outputs);
        }
        let extents = outputs.split_off(outputs.len() / 2);
        for ((output, extents), [a, b]) in outputs.iter_mut().zip(extents).zip(types) {
            let (Some((_, a)), Some((_, b))) = (terms.tensor(a), terms.tensor(b)) else { continue };
            if a != b {
                let is_open: Vec<bool> = a.iter().zip(b).map(|(a, b)| a != b).collect();
                *output = self.with_found_extents(*output, extents, a, &is_open)?;
            }
        }
        Ok(outputs)
    }

    /// Takes note that a choice or a loop cannot be made.
    pub(super) fn no_control<T>(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        problem: Problem,
    ) -> Result<Option<T>, Stop> {
        if let Problem::Invalid(reason) = problem {
            self.add_wrong_node(frame, node, vec![reason]);
            return Ok(None);
        }
        match problem {
            Problem::NotConstant { input, .. } => self.want(frame, node, Wanted::Sizes(input)),
            Problem::Choice { input, of, .. } => self.want(frame, node, Wanted::OneOf(input, of)),
            _ => {}
        }
        let version = frame.version("").unwrap_or(0);
        self.problems.add_node(node, version, Some(problem.text()));
        Ok(None)
    }

    pub(super) fn define_all(
        &mut self,
        node: &'m NodeProto<'m>,
        outputs: &[Value],
        frame: &mut Frame<'m>,
    ) -> Result<(), Stop> {
        for (&name, &value) in node.output.iter().zip(outputs) {
            if !name.is_empty() {
                self.builder.define(value, name);
                let value = self.found_in(frame, name, value, Some(node))?;
                self.define(frame, name, value, node);
            }
        }
        Ok(())
    }
}
