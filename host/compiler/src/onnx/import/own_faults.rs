//! What is wrong with a node whatever it reads, told where it reads what is not known.
//!
//! ```text
//! a = acme::Odd(x)                     has no rule, and of no known type: nothing is known of a
//! b = Transpose(a) { perm = [0, 0] }   wrong for an `a` of any shape and type
//! ```
//!
//! The rules are asked about the node once more, with values of several ranks and element types in the place of those
//! that are not known. An attribute is at fault where it is refused by its name and the node is right without it, or with a 1
//! in its place if it has to be there; the node must be right nowhere with the attribute, and without it nowhere where something
//! else is refused.
//! The import fails in the end, so it does not matter what is built meanwhile.

use crate::ir::{Context, DType, TypeView};
use crate::onnx::proto::{AttributeValue, NodeProto};
use crate::onnx::standard::{Parameter, Schema};
use tenon_plugin_api::rule::import::LARGEST_RANK;

use super::builder::Value;
use super::conformity::{in_own_words, schema};
use super::driver::Importer;
use super::error::Problem;
use super::scope::Frame;
use super::sweep::Question;

/// The ranks that are tried: what most values have first, since most nodes are right, and what any axis is within.
const RANKS: [usize; 8] = [4, 3, 2, 5, 1, 6, 0, LARGEST_RANK];
/// The element types that are tried, where they are allowed.
const ELEMENTS: [DType; 3] = [DType::F32, DType::I64, DType::BOOL];

/// What stands in the place of an attribute that has to be there.
const ONE: &AttributeValue<'static> = &AttributeValue::Int(1);

/// What rules said of an attribute, for inputs of a rank.
struct Refused {
    rank: usize,
    reason: String,
    inputs: Vec<Option<Value>>,
}

/// What rules said of a node that is right for no inputs.
#[derive(Default)]
struct Answers {
    /// The attribute that was refused first.
    name: Option<&'static str>,
    refused: Vec<Refused>,
    /// The inputs for which something else was refused.
    others: Vec<Vec<Option<Value>>>,
}

/// A node that rules are asked about again.
#[derive(Clone, Copy)]
struct Asked<'a, 'm> {
    schema: &'a Schema,
    node: &'m NodeProto<'m>,
    question: &'a Question<'a>,
    inputs: &'a [Option<Value>],
    given: &'a [(&'m str, &'m AttributeValue<'m>)],
}

impl<'m> Importer<'m> {
    /// Takes note of an attribute that is wrong for inputs of any type. Those that are not known are missing, or stand-ins.
    pub(super) fn check_alone(
        &mut self,
        frame: &Frame<'m>,
        node: &'m NodeProto<'m>,
        question: &Question<'_>,
        inputs: &[Option<Value>],
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) {
        let Some(schema) = schema(frame, node).filter(|_| !given.is_empty()) else { return };
        let asked = Asked { schema: &schema, node, question, inputs, given };
        if let Some(reason) = self.own_fault(asked) {
            self.add_wrong_node(frame, node, vec![reason]);
        }
    }

    /// What is wrong with an attribute, whatever the node reads.
    fn own_fault(&mut self, asked: Asked<'_, 'm>) -> Option<String> {
        let Asked { schema, node, question, given, .. } = asked;
        let Answers { name, mut refused, others } = self.answers(asked)?;
        let name = name?;
        let is_required = schema.attribute(name).is_some_and(|attribute| attribute.is_required);
        let is_other = |(other, _): &(_, _)| *other != name;
        let mut without: Vec<_> = given.iter().copied().filter(is_other).collect();
        if is_required {
            without.push((name, ONE));
        }
        let mut is_right = |inputs: &[Option<Value>]| {
            matches!(self.ask(question, node, inputs, &without), Ok(Some(_)))
        };
        if others.iter().any(|inputs| is_right(inputs)) {
            return None;
        }
        refused.retain(|it| is_right(&it.inputs));
        let (_, value) = given.iter().find(|(other, _)| *other == name)?;
        let meant = match value {
            AttributeValue::Ints(list) => list.len(),
            _ => RANKS[0],
        };
        let place = refused.iter().position(|it| it.rank == meant).unwrap_or(0);
        refused.into_iter().nth(place).map(|it| it.reason)
    }

    /// What rules say of a node for inputs of all kinds; nothing where it is right for some, or elements have to be known.
    fn answers(&mut self, asked: Asked<'_, 'm>) -> Option<Answers> {
        let Asked { schema, node, question, inputs, given } = asked;
        let mut answers = Answers::default();
        for elements in self.elements_to_try(schema, inputs)? {
            for rank in RANKS {
                let inputs = self.tried(inputs, &elements, rank);
                let reason = match self.ask(question, node, &inputs, given) {
                    Ok(_) | Err(Problem::NotConstant { .. } | Problem::Choice { .. }) => {
                        return None;
                    }
                    Err(Problem::Invalid(reason)) => in_own_words(schema, reason),
                    Err(_) => String::new(),
                };
                match named(schema, &reason) {
                    Some(name) if *answers.name.get_or_insert(name) == name => {
                        answers.refused.push(Refused { rank, reason, inputs });
                    }
                    _ => answers.others.push(inputs),
                }
            }
        }
        Some(answers)
    }

    /// Inputs with others of one rank in the place of those that are not known.
    fn tried(
        &mut self,
        inputs: &[Option<Value>],
        elements: &[Option<DType>],
        rank: usize,
    ) -> Vec<Option<Value>> {
        let tried = inputs.iter().zip(elements).map(|(&input, &element)| {
            let Some(element) = element else { return input };
            let dims: Vec<_> = (0..rank).map(|_| self.dims.fresh("any")).collect();
            let ty = self.cx.tensor_type(element, &dims);
            Some(self.builder.param("any", ty))
        });
        tried.collect()
    }

    /// The element types to try: for each input that is not known one, where it must be a tensor.
    fn elements_to_try(
        &self,
        schema: &Schema,
        inputs: &[Option<Value>],
    ) -> Option<Vec<Vec<Option<DType>>>> {
        let mut tries = Vec::new();
        for wanted in ELEMENTS {
            let elements = inputs.iter().enumerate().map(|(index, &input)| match input {
                Some(input) if self.is_unknown(input) => {
                    self.element_to_try(schema, inputs, index, wanted).map(Some)
                }
                _ => Some(None),
            });
            let elements: Vec<_> = elements.collect::<Option<_>>()?;
            if !tries.contains(&elements) {
                tries.push(elements);
            }
        }
        Some(tries)
    }

    /// The element type of an input: its own, or that of another one which has to be of the same, or the wanted one if it is allowed.
    fn element_to_try(
        &self,
        schema: &Schema,
        inputs: &[Option<Value>],
        index: usize,
        wanted: DType,
    ) -> Option<DType> {
        let parameter = Parameter::of(&schema.inputs, index)?;
        if parameter.types.contains('(') {
            return None;
        }
        let alike = |other: &usize| {
            !parameter.variable.is_empty()
                && Parameter::of(&schema.inputs, *other)
                    .is_some_and(|it| it.variable == parameter.variable)
        };
        let others = (0..inputs.len()).filter(alike);
        let known = [index].into_iter().chain(others).find_map(|at| self.element_of(inputs[at]?));
        let first = || parameter.types.split(' ').find_map(DType::from_name);
        let wanted = Some(wanted).filter(|wanted| parameter.allows(&wanted.to_string()));
        known.or(wanted).or_else(first)
    }

    /// The element type of a tensor of which anything is known.
    fn element_of(&self, value: Value) -> Option<DType> {
        if self.builder.is_missing(value) {
            return None;
        }
        match self.cx.terms().ty(self.builder.ty(value)) {
            TypeView::Tensor { dtype, .. } => Some(dtype),
            _ => None,
        }
    }

    fn is_unknown(&self, value: Value) -> bool {
        self.builder.is_missing(value) || self.stand_ins.are_among(&[Some(value)])
    }
}

/// The attribute that a reason is about.
fn named(schema: &Schema, reason: &str) -> Option<&'static str> {
    let name = reason.strip_prefix("its attribute `")?.split('`').next()?;
    schema.attribute(name).map(|attribute| attribute.name)
}
