//! The sweep over the nodes.

use std::collections::{HashMap, HashSet};

use crate::io::quoted;
use crate::ir::{Context, Rule};
use crate::onnx::proto::{AttributeValue, FunctionProto, NodeProto};

use super::builder::Value;
use super::conformity::{in_own_words, schema};
use super::control::Control;
use super::driver::{Absent, Importer};
use super::error::{Problem, Stop, unsupported_tensor};
use super::node::Node;
use super::problems::describe;
use super::rules::{self, NEWEST_VERSION, OLDEST_VERSION};
use super::scope::{Call, Definition, Frame, Role, Values, standard_domain};
use super::sizes::Wanted;
use super::stand_ins::is_about_node;
use super::{GraphProblem, attributes};

/// What stands before the key of a rule that does without elements which others must know.
const FOUND: &str = "tenon.found";

/// A function of functions may expand to as many nodes as there are atoms. This many are enough.
pub(super) const LARGEST_EXPANSION: usize = 1 << 20;

/// The rules that are asked about a node.
pub(super) struct Question<'a> {
    pub(super) rules: &'a [Rule],
    pub(super) key: &'a str,
    /// The version of the domain's operators.
    pub(super) version: i64,
    /// Whether the node is one of the graph: of what others make, no types are declared that hold wherever they are used.
    pub(super) is_of_graph: bool,
}

impl<'m> Importer<'m> {
    /// Translates the nodes of the graph, with the model's own functions expanded.
    pub(super) fn nodes(&mut self, values: Values<'m>) -> Result<Values<'m>, Stop> {
        let mut frame = Frame {
            nodes: &self.model.graph.node,
            next: 0,
            values,
            attributes: HashMap::new(),
            operator_sets: &self.model.opset_import,
            role: Role::Graph,
            path: String::new(),
            base: String::new(),
        };
        self.find_inputs(&mut frame)?;
        let mut callers: Vec<Frame<'m>> = Vec::new();
        let mut active: HashSet<*const FunctionProto<'m>> = HashSet::new();
        loop {
            let Some(node) = frame.nodes.get(frame.next) else {
                let Some(mut caller) = callers.pop() else { return Ok(frame.values) };
                let values = frame.values;
                match frame.role {
                    Role::Function(call) => {
                        active.remove(&std::ptr::from_ref(call.function));
                        self.leave(&call, &values, &mut caller)?;
                    }
                    Role::Branch(choice) => {
                        if let Some(next) = self.leave_branch(*choice, values, &mut caller)? {
                            callers.push(caller);
                            caller = next;
                        }
                    }
                    Role::Body(body) => self.leave_loop(*body, values, &mut caller)?,
                    Role::Graph => {}
                }
                frame = caller;
                continue;
            };
            frame.next += 1;
            let inputs = self.inputs_of(&frame, node);
            let given = attributes::resolve(node, &frame.attributes);
            let key = (standard_domain(node.domain), node.op_type, node.overload);
            if let Some(&function) = self.functions.get(&key) {
                if !active.insert(std::ptr::from_ref(function)) {
                    return Err(GraphProblem::Cycle(quoted(function.name)).into());
                }
                let mut inner = self.enter(node, function, &inputs, &given)?;
                inner.path = frame.path_to(node);
                inner.base.clone_from(&inner.path);
                self.find_inputs(&mut inner)?;
                callers.push(std::mem::replace(&mut frame, inner));
                continue;
            }
            match self.control(&mut frame, node, &inputs, &given)? {
                Control::No => {}
                Control::Left => continue,
                Control::Entered(inner) => {
                    callers.push(std::mem::replace(&mut frame, *inner));
                    continue;
                }
            }
            let outputs = self.node(&frame, node, &inputs, &given)?;
            for (&name, value) in node.output.iter().zip(outputs) {
                if !name.is_empty() {
                    let value = self.found_in(&frame, name, value, Some(node))?;
                    self.define(&mut frame, name, value, node);
                }
            }
        }
    }

    /// Defines what a node makes. A name that is defined before stays what it was, and is wrong.
    pub(super) fn define(
        &mut self,
        frame: &mut Frame<'m>,
        name: &'m str,
        value: Value,
        node: &'m NodeProto<'m>,
    ) {
        if let Err(twice) = frame.values.define(name, value, Definition::Output(node)) {
            self.problems.add_wrong(|| twice);
        }
    }

    /// The values that a node reads. What is not defined is wrong, and missing for all that follows.
    fn inputs_of(&mut self, frame: &Frame<'m>, node: &'m NodeProto<'m>) -> Vec<Option<Value>> {
        let read = |name: &&'m str| {
            frame.values.read(name).unwrap_or_else(|_| {
                self.problems.add_wrong(|| {
                    let is_later = frame.nodes.iter().any(|node| node.output.contains(name));
                    let hint = match is_later {
                        true => "; a later node defines it: the nodes are in a circle",
                        false => "",
                    };
                    let node = describe(node, frame.version(standard_domain(node.domain)));
                    GraphProblem::NotDefined { node, name: quoted(name), hint }
                });
                Some(self.builder.missing())
            })
        };
        node.input.iter().map(read).collect()
    }

    /// The frame in which the function that `node` calls is expanded.
    fn enter(
        &mut self,
        node: &'m NodeProto<'m>,
        function: &'m FunctionProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<Frame<'m>, Stop> {
        self.budget = self
            .budget
            .checked_sub(function.node.len() + 1)
            .ok_or(GraphProblem::TooManyNodes(LARGEST_EXPANSION))?;
        if inputs.len() > function.input.len() {
            let reason = format!("the function takes {} inputs", function.input.len());
            return Err(GraphProblem::Node { node: describe(node, None), reason }.into());
        }
        let mut values = Values::default();
        for (position, &name) in function.input.iter().enumerate() {
            match inputs.get(position).copied().flatten() {
                Some(value) => values.define(name, value, Definition::Input)?,
                None => values.leave_out(name),
            }
        }
        Ok(Frame {
            nodes: &function.node,
            next: 0,
            values,
            attributes: attributes::bind(function, given),
            operator_sets: &function.opset_import,
            role: Role::Function(Call { node, function }),
            path: String::new(),
            base: String::new(),
        })
    }

    /// Defines the outputs of a call in the frame of its caller.
    fn leave(
        &mut self,
        call: &Call<'m>,
        values: &Values<'m>,
        caller: &mut Frame<'m>,
    ) -> Result<(), Stop> {
        for (position, &name) in call.node.output.iter().enumerate() {
            if name.is_empty() {
                continue;
            }
            let result = call.function.output.get(position);
            let Some(value) = result.and_then(|result| values.get(result)) else {
                let reason = format!("the function has no output {}", position + 1);
                return Err(GraphProblem::Node { node: describe(call.node, None), reason }.into());
            };
            self.define(caller, name, value, call.node);
        }
        Ok(())
    }

    /// The version of a domain other than the standard one of which a model says none, though it has an operator of it: the first, where
    /// that operator is known. So ONNX Runtime reads what its own tools write.
    fn untold(&self, domain: &str, op_type: &str) -> Option<i64> {
        let rules = rules::find(&self.cx, &rules::key(domain, op_type), 1).ok()?;
        (!domain.is_empty() && !rules.is_empty()).then_some(1)
    }

    /// Translates a node; its outputs are missing when that is not possible.
    fn node(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<Vec<Value>, Stop> {
        let wanted = node.output.iter().rposition(|name| !name.is_empty()).map_or(0, |at| at + 1);
        let missing = |this: &mut Self| Ok((0..wanted).map(|_| this.builder.missing()).collect());
        let stand_ins = |this: &mut Self| match frame.role {
            // The types that a function declares are not those of a call.
            Role::Function(_) | Role::Branch(_) | Role::Body(_) => missing(this),
            Role::Graph => {
                let (declared, builder) = (&this.declared, &mut this.builder);
                Ok(this.stand_ins.make(declared, node, wanted, &this.dims, builder))
            }
        };
        let domain = standard_domain(node.domain);
        let Some(version) = frame.version(domain).or_else(|| self.untold(domain, node.op_type))
        else {
            let domain = if domain.is_empty() { "ai.onnx" } else { domain };
            if self.unversioned.insert(domain) {
                self.problems.add_wrong(|| GraphProblem::NoOperatorSet(quoted(domain)));
            }
            return missing(self);
        };
        if domain.is_empty() && !rules::is_known(node.op_type, version) {
            self.problems.add(format!(
                "version {version} of the operators of ai.onnx; {OLDEST_VERSION} to \
                 {NEWEST_VERSION} are known"
            ));
            return missing(self);
        }
        let key = rules::key(domain, node.op_type);
        let rules = match rules::find(&self.cx, &key, version) {
            Ok(rules) if !rules.is_empty() => rules,
            none => {
                if none.is_ok() && !self.is_of_standard(frame, node) {
                    self.survey_graphs(frame.operator_sets, given)?;
                    return stand_ins(self);
                }
                let reason = none.err().map(|error| error.to_string());
                self.problems.add_node(node, version, reason);
                self.survey_graphs(frame.operator_sets, given)?;
                return stand_ins(self);
            }
        };
        if !self.conforms(frame, node, inputs) {
            self.has_right_attributes(frame, node, given);
            return stand_ins(self);
        }
        let is_of_graph = matches!(frame.role, Role::Graph);
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name, frame.source_of(&self.cx, node));
        let question = Question { rules: &rules, key: &key, version, is_of_graph };
        if inputs.iter().flatten().any(|&input| self.builder.is_missing(input)) {
            inputs.iter().flatten().for_each(|&input| self.report_absent(input));
            if self.has_right_attributes(frame, node, given) {
                self.check_alone(frame, node, &question, inputs, given);
            }
            return stand_ins(self);
        }
        let reads_stand_in = self.stand_ins.are_among(inputs);
        let mut translated = self.ask(&question, node, inputs, given);
        let is_to_be_known = |problem: &Problem| {
            matches!(problem, Problem::NotConstant { .. } | Problem::Choice { .. })
        };
        if self.found.is_some() && translated.as_ref().is_err_and(is_to_be_known) {
            // What is known no earlier than in a call is computed there, where a rule says how.
            let key = rules::key(FOUND, &key).into_owned();
            if let Ok(rules) = rules::find(&self.cx, &key, version) {
                let question = Question { rules: &rules, key: &key, version, is_of_graph };
                let found = self.ask(&question, node, inputs, given);
                translated = found.ok().flatten().map_or(translated, |found| Ok(Some(found)));
            }
        }
        let asked_for = match translated {
            Err(Problem::NotConstant { input, .. }) => Some(Wanted::Sizes(input)),
            Err(Problem::Choice { input, of, .. }) => Some(Wanted::OneOf(input, of)),
            _ => None,
        };
        let reason = match translated {
            Ok(None) => None,
            Ok(Some(mut outputs)) => {
                for (&name, &value) in node.output.iter().zip(&outputs) {
                    if !name.is_empty() {
                        self.builder.define(value, name);
                    }
                }
                for output in outputs.len()..wanted {
                    let value = self.builder.missing();
                    self.absent.insert(value, Absent { node, version, output });
                    outputs.push(value);
                }
                if reads_stand_in {
                    self.stand_ins.extend(&outputs);
                }
                return Ok(outputs);
            }
            Err(Problem::Tensor(error)) if unsupported_tensor(&error).is_none() => {
                return Err(Stop::Tensor(error));
            }
            Err(_) if !self.has_right_attributes(frame, node, given) => return stand_ins(self),
            Err(problem) if reads_stand_in && !is_about_node(&problem) => {
                self.check_alone(frame, node, &question, inputs, given);
                return stand_ins(self);
            }
            Err(problem) => match problem {
                Problem::Invalid(reason) => {
                    let reason = match schema(frame, node) {
                        Some(schema) => in_own_words(&schema, reason),
                        None => reason,
                    };
                    let reason = self.with_types(reason, inputs);
                    self.add_wrong_node(frame, node, vec![reason]);
                    return stand_ins(self);
                }
                Problem::Tensor(error) => unsupported_tensor(&error),
                problem => Some(problem.text()),
            },
        };
        if let Some(wanted) = asked_for {
            self.want(frame, node, wanted);
        }
        self.problems.add_node(node, version, reason);
        stand_ins(self)
    }

    /// What rules make of a node, all of whose attributes are looked at; `None` when there is no rule, or all of them decline.
    pub(super) fn ask(
        &mut self,
        &Question { rules, key, version, is_of_graph }: &Question<'_>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<Option<Vec<Value>>, Problem> {
        let (builder, tensors) = (&mut self.builder, &mut self.tensors);
        let version = version.unsigned_abs();
        let declared = is_of_graph.then_some(&self.declared);
        let ranks = (self.ranks, declared);
        let mut node = Node::new(builder, tensors, version, &node.output, ranks, given)?;
        let outputs = node.ask(rules, key, inputs)?;
        if outputs.is_some() {
            node.check_attributes()?;
        }
        Ok(outputs)
    }

    /// What is wrong with a node, with the types of what it is given.
    fn with_types(&self, mut reason: String, inputs: &[Option<Value>]) -> String {
        const SHOWN: usize = 8;
        let text = |&input: &Value| self.cx.terms().type_text(self.builder.ty(input));
        let given: Vec<String> = inputs.iter().flatten().take(SHOWN).map(text).collect();
        if !given.is_empty() {
            reason.push_str(&format!("; it is given {}", given.join(", ")));
        }
        if inputs.len() > SHOWN {
            reason.push_str(", …");
        }
        reason
    }

    /// Takes note that something reads `value`, in case that it cannot be made.
    pub(super) fn report_absent(&mut self, value: Value) {
        if let Some(Absent { node, version, output }) = self.absent.remove(&value) {
            self.problems.add_node(node, version, Some(format!("output {}", output + 1)));
        }
    }
}
