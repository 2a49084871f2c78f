//! Nodes that the standard forbids: told as the model's mistakes, whatever could be made of them.

use std::collections::HashMap;

use crate::io::quoted;
use crate::ir::{Context, TypeView};
use crate::onnx::proto::{AttributeValue, NodeProto};
use crate::onnx::standard::{Occurs, Parameter, Schema, Standing, standing, versions_where};

use super::GraphProblem;
use super::builder::Value;
use super::driver::Importer;
use super::problems::describe;
use super::scope::{Frame, standard_domain};

/// The attributes of a node.
type Given<'m, 'n> = &'n [(&'m str, &'m AttributeValue<'m>)];

impl<'m> Importer<'m> {
    /// Whether the standard allows a node of these inputs; what it forbids is taken note of.
    pub(super) fn conforms(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        inputs: &[Option<Value>],
    ) -> bool {
        let Some(schema) = schema(frame, node) else { return true };
        let mut wrong = Vec::new();
        check_count(
            "input",
            &schema,
            &schema.inputs,
            inputs.iter().map(Option::is_some),
            &mut wrong,
        );
        let outputs = node.output.iter().map(|name| !name.is_empty());
        check_count("output", &schema, &schema.outputs, outputs, &mut wrong);
        if wrong.is_empty() {
            self.check_types(&schema, inputs, &mut wrong);
        }
        let is_allowed = wrong.is_empty();
        self.add_wrong_node(frame, node, wrong);
        is_allowed
    }

    /// Whether the standard knows the attributes of a node for which there is no translation, and all are there that must be.
    pub(super) fn has_right_attributes(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        given: Given<'m, '_>,
    ) -> bool {
        let Some(schema) = schema(frame, node) else { return true };
        let wrong = wrong_attributes(&schema, given);
        let is_right = wrong.is_empty();
        self.add_wrong_node(frame, node, wrong);
        is_right
    }

    /// Whether the standard has an operator for which there is no rule.
    pub(super) fn is_of_standard(&mut self, frame: &Frame<'m>, node: &'m NodeProto<'m>) -> bool {
        let (true, Some(version)) = (is_standard(node), frame.version("")) else { return true };
        let name = quoted(node.op_type);
        let reason = match standing(node.op_type, version) {
            Standing::Is(_) => return true,
            Standing::NotYet { since } => format!(
                "the standard has {name} since version {since}; convert the model to that version, or give the one that it \
                 is written in"
            ),
            Standing::NoMore { since } => format!(
                "the standard has {name} no more since version {since}; convert the model, or give the version that it is \
                 written in"
            ),
            Standing::Never { near } => format!(
                "the standard has no {name}{}; an operator of one's own is of a domain of its own",
                near.map_or_else(String::new, |near| format!(", but {}", quoted(near)))
            ),
        };
        self.add_wrong_node(frame, node, vec![reason]);
        false
    }

    /// Takes note of what is wrong with a node.
    pub(super) fn add_wrong_node(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        reasons: Vec<String>,
    ) {
        for reason in reasons {
            let version = frame.version(standard_domain(node.domain));
            self.problems
                .add_wrong(|| GraphProblem::Node { node: describe(node, version), reason });
        }
    }

    /// Each input has a type that is allowed, and those of one variable have one.
    fn check_types(&self, schema: &Schema, inputs: &[Option<Value>], wrong: &mut Vec<String>) {
        let mut bound: HashMap<&str, (usize, String)> = HashMap::new();
        for (index, &input) in inputs.iter().enumerate() {
            let Some(parameter) = Parameter::of(&schema.inputs, index) else { continue };
            let Some(found) = input.and_then(|input| self.elements_of(input)) else { continue };
            if !parameter.allows(&found) {
                wrong.extend(not_allowed(parameter, index, &found));
                continue;
            }
            let is_mixed = matches!(parameter.occurs, Occurs::Repeated { alike: false, .. });
            if parameter.variable.is_empty() || is_mixed {
                continue;
            }
            let first = bound.entry(parameter.variable).or_insert_with(|| (index, found.clone()));
            if first.1 != found {
                wrong.push(format!(
                    "its input {}, {}, is {found}, but input {} is {}, and both have one type; put a Cast before \
                     one of them",
                    index + 1,
                    quoted(parameter.name),
                    first.0 + 1,
                    first.1
                ));
            }
        }
    }

    /// The standard's word for the type of a tensor's elements; `None` for what is no tensor.
    fn elements_of(&self, value: Value) -> Option<String> {
        if self.builder.is_missing(value) {
            return None;
        }
        match self.cx.terms().ty(self.builder.ty(value)) {
            TypeView::Tensor { dtype, .. } => Some(dtype.to_string()),
            TypeView::Shape(_) => Some("i64".to_owned()),
            _ => None,
        }
    }
}

/// What an operator says that is wrong with a call of it, in words of the node where these are the same: an attribute of one name.
pub(super) fn in_own_words(schema: &Schema, reason: String) -> String {
    let own = reason.split_once("`, ").map(|(_, rest)| rest).filter(|_| reason.starts_with("as `"));
    let named = own.and_then(|rest| rest.strip_prefix("its attribute `")?.split('`').next());
    match (own, named) {
        (Some(own), Some(name)) if schema.attribute(name).is_some() => own.to_owned(),
        _ => reason,
    }
}

/// What the standard says of a node; `None` where it says nothing of such ones.
pub(super) fn schema(frame: &Frame<'_>, node: &NodeProto<'_>) -> Option<Schema> {
    let version = frame.version("").filter(|_| is_standard(node))?;
    match standing(node.op_type, version) {
        Standing::Is(schema) => Some(schema),
        Standing::NotYet { .. } | Standing::NoMore { .. } | Standing::Never { .. } => None,
    }
}

fn is_standard(node: &NodeProto<'_>) -> bool {
    standard_domain(node.domain).is_empty()
}

/// There are as many inputs or outputs as there may be, and those that must be.
fn check_count(
    what: &str,
    schema: &Schema,
    parameters: &[Parameter],
    given: impl ExactSizeIterator<Item = bool>,
    wrong: &mut Vec<String>,
) {
    let given: Vec<bool> = given.collect();
    let count = given.iter().rposition(|&is_given| is_given).map_or(0, |last| last + 1);
    let (least, most) = Parameter::bounds(parameters);
    // An output that nobody reads is missed by nobody.
    let fits = |(least, most): (usize, Option<usize>)| {
        (count >= least || what == "output") && most.is_none_or(|most| count <= most)
    };
    if !fits((least, most)) {
        let number = |count| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let allowed = match most {
            None => format!("{least} or more"),
            Some(most) if most == least => most.to_string(),
            Some(most) => format!("{least} to {most}"),
        };
        let names = parameters.iter().map(|parameter| quoted(parameter.name));
        let names = names.collect::<Vec<_>>().join(", ");
        let of = match what {
            "input" => |schema: &Schema| Parameter::bounds(&schema.inputs),
            _ => |schema: &Schema| Parameter::bounds(&schema.outputs),
        };
        let hint = other_version(schema, |other| fits(of(other)));
        let are = if least == 1 && most == Some(1) { "is" } else { "are" };
        wrong.push(format!("it has {}, but {allowed} {are} allowed: {names}{hint}", number(count)));
        return;
    }
    let must_be =
        |index: usize| Parameter::of(parameters, index).is_some_and(|it| it.occurs == Occurs::Once);
    for index in (0..count).filter(|&index| !given[index] && must_be(index) && what == "input") {
        let name = quoted(parameters[index].name);
        wrong.push(format!("its input {}, {name}, is left out, and must be given", index + 1));
    }
}

/// Another version of an operator, of which holds what does not of this one.
fn other_version(schema: &Schema, holds: impl Fn(&Schema) -> bool) -> String {
    match versions_where(schema.name, holds) {
        Some([since, last]) => {
            let to = if last == i64::MAX { String::new() } else { format!(" to {last}") };
            format!(
                "; it would be right in version {since}{to}: give the version that the model is written in, or convert it"
            )
        }
        None => String::new(),
    }
}

/// An input of a type that is not allowed; nothing where no tensor is.
fn not_allowed(parameter: &Parameter, index: usize, found: &str) -> Option<String> {
    let tensors: Vec<&str> = parameter.types.split(' ').filter(|ty| !ty.contains('(')).collect();
    let (last, others) = tensors.split_last()?;
    let allowed = match others {
        [] => (*last).to_owned(),
        others => format!("{} or {last}", others.join(", ")),
    };
    Some(format!(
        "its input {}, {}, is {found}, but {allowed} is allowed; put a Cast before it",
        index + 1,
        quoted(parameter.name)
    ))
}

/// Attributes that there are not, of another kind, or missing.
fn wrong_attributes(schema: &Schema, given: Given<'_, '_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, value) in given {
        let kind = value.kind().name();
        match schema.attribute(name) {
            None => {
                let known: Vec<String> =
                    schema.attributes.iter().map(|attribute| quoted(attribute.name)).collect();
                let known = match known.is_empty() {
                    true => format!("{} has none", schema.name),
                    false => format!("{} has {}", schema.name, known.join(", ")),
                };
                let hint = other_version(schema, |other| other.attribute(name).is_some());
                wrong.push(format!("it has an attribute {}, but {known}{hint}", quoted(name)));
            }
            Some(attribute) if attribute.kind != kind => {
                let (wanted, given) = (with_article(attribute.kind), with_article(kind));
                wrong.push(format!("its attribute {} is {wanted}, not {given}", quoted(name)));
            }
            Some(_) => {}
        }
    }
    let is_missing = |name: &str| given.iter().all(|(given, _)| *given != name);
    let needed = schema.attributes.iter().filter(|it| it.is_required && is_missing(it.name));
    wrong.extend(needed.map(|attribute| {
        let kind = with_article(attribute.kind);
        format!("its attribute {}, {kind}, is missing", quoted(attribute.name))
    }));
    wrong
}

/// The standard's word for a kind of attributes, in a sentence.
fn with_article(kind: &str) -> String {
    match kind {
        "int" => "an int".into(),
        "ints" | "floats" | "strings" | "tensors" | "graphs" | "types" => {
            format!("a list of {kind}")
        }
        _ => format!("a {kind}"),
    }
}
