//! A node that rules are asked about: its attributes, and the function under construction.

use std::collections::HashMap;

use tenon_plugin_api::abi::tables::Failure;
use tenon_plugin_api::rule::import::{Few, Known};

use crate::border::{
    AttributeParts, ConstantParts, ImportSession, Refusal, Served, ask_about_node,
};
use crate::io::quoted;
use crate::ir::{Attrs, Bytes, Constant, DType, Dim, Rule, Symbol, Type};
use crate::onnx::proto::{AttributeValue, TensorProto};
use crate::onnx::{TensorError, TensorReader};
use crate::services::fits;

use super::builder::{Builder, Value};
use super::declared::Declared;
use super::error::{Problem, invalid, unsupported};
use super::ranks::Ranks;
use super::tensor::{NoTensor, constant_of, dtype_of_code};

/// A node while rules are asked about it. Values are made by the builder underneath.
pub(super) struct Node<'m, 'n> {
    builder: &'n mut Builder,
    /// None for what is no node of the model.
    tensors: Option<&'n mut TensorReader<'m>>,
    /// The version of the operator set that the node is written in.
    version: u64,
    /// What its outputs are called; empty where one has no name.
    outputs: &'n [&'m str],
    /// The ranks of its outputs, of those that are called so.
    ranks: Option<(&'n Ranks, Option<&'n Declared<'m>>)>,
    attributes: &'n [(&'m str, &'n AttributeValue<'m>)],
    /// The attributes that were asked for, one bit each.
    read: u64,
    /// The tensors that could not be read.
    unreadable: Vec<TensorError>,
    /// The lists of texts that were asked for, with a zero behind each text.
    texts: HashMap<String, Vec<u8>>,
    /// What the rule says that is wrong with the node.
    told: Option<Refusal>,
}

impl<'m, 'n> Node<'m, 'n> {
    pub(super) fn new(
        builder: &'n mut Builder,
        tensors: &'n mut TensorReader<'m>,
        version: u64,
        outputs: &'n [&'m str],
        ranks: (&'n Ranks, Option<&'n Declared<'m>>),
        attributes: &'n [(&'m str, &'n AttributeValue<'m>)],
    ) -> Result<Self, Problem> {
        if attributes.len() > 64 {
            return invalid(format!("it has {} attributes", attributes.len()));
        }
        let node = Self::of_importer(builder);
        Ok(Self {
            tensors: Some(tensors),
            version,
            outputs,
            ranks: Some(ranks),
            attributes,
            ..node
        })
    }

    /// What the importer itself asks for: a node without attributes that has one output.
    pub(super) fn of_importer(builder: &'n mut Builder) -> Self {
        Self {
            builder,
            tensors: None,
            version: 0,
            outputs: &[""],
            ranks: None,
            attributes: &[],
            read: 0,
            unreadable: Vec::new(),
            texts: HashMap::new(),
            told: None,
        }
    }

    /// The values that rules for `key` make of these; `None` when there is no rule, or all of them decline.
    pub(super) fn ask(
        &mut self,
        rules: &[Rule],
        key: &str,
        inputs: &[Option<Value>],
    ) -> Result<Option<Vec<Value>>, Problem> {
        let inputs: Vec<u32> = inputs.iter().map(|&input| Value::number(input)).collect();
        let asker = self.builder.asker().clone();
        let name = format!("{}:{key}", super::FACET);
        match ask_about_node(&asker, rules, &name, &inputs, self) {
            Ok(None) => Ok(None),
            Ok(Some(outputs)) => {
                let outputs = outputs.into_iter().map(|output| self.builder.value(output));
                outputs.collect::<Result<_, _>>().map(Some)
            }
            Err(error) => Err(self.problem(error.to_string())),
        }
    }

    /// What is wrong when a rule fails with this message.
    fn problem(&mut self, message: String) -> Problem {
        let Some(Refusal { kind, text }) = self.told.take() else { return Problem::Rule(message) };
        match kind {
            Failure::UNSUPPORTED => Problem::Unsupported(text),
            Failure::INVALID => Problem::Invalid(text),
            Failure::OPERATOR => Problem::Operator(text),
            Failure::TENSOR => {
                let found = self.unreadable.iter().position(|error| error.to_string() == text);
                match found {
                    Some(at) => Problem::Tensor(Box::new(self.unreadable.swap_remove(at))),
                    None => Problem::Invalid(text),
                }
            }
            _ => match kind.parts() {
                (Failure::NOT_CONSTANT, number) => {
                    Problem::NotConstant { input: number.checked_sub(1), text }
                }
                (Failure::AXES, input) => Problem::Choice { input, of: Few::Axes, text },
                (Failure::EXTENTS, input) => Problem::Choice { input, of: Few::Extents, text },
                _ => Problem::Rule(message),
            },
        }
    }

    /// What a rule is told that is wrong.
    fn refusal(&mut self, problem: Problem) -> Refusal {
        let (kind, text) = (problem.kind(), problem.text());
        if let Problem::Tensor(error) = problem {
            self.unreadable.push(*error);
        }
        Refusal { kind, text }
    }

    /// Refuses a node with an attribute that no rule has looked at.
    pub(super) fn check_attributes(&self) -> Result<(), Problem> {
        let unread = (0..self.attributes.len()).find(|position| self.read >> position & 1 == 0);
        match unread {
            Some(position) => {
                unsupported(format!("attribute {}", quoted(self.attributes[position].0)))
            }
            None => Ok(()),
        }
    }

    fn find(&mut self, name: &str) -> Option<&'n AttributeValue<'m>> {
        let position = self.attributes.iter().position(|(other, _)| *other == name)?;
        self.read |= 1 << position;
        Some(self.attributes[position].1)
    }

    fn read_tensor(&mut self, tensor: &TensorProto<'_>) -> Result<Value, Problem> {
        let Some(tensors) = &mut self.tensors else { return invalid("it has no tensors") };
        let data = tensors.read(tensor).map_err(|error| Problem::Tensor(Box::new(error)))?;
        let constant = constant_of(self.builder.cx(), tensor.name, data);
        Ok(self.builder.constant(constant?))
    }

    /// Has the builder make values of others.
    fn made<T>(
        &mut self,
        values: &[u32],
        make: impl FnOnce(&mut Builder, &[Value]) -> Result<T, Problem>,
    ) -> Served<T> {
        let values = values.iter().map(|&value| self.builder.value(value));
        let values: Result<Vec<Value>, Problem> = values.collect();
        let made = values.and_then(|values| make(self.builder, &values));
        made.map_err(|problem| self.refusal(problem))
    }
}

impl ImportSession for Node<'_, '_> {
    fn version(&self) -> u64 {
        self.version
    }

    fn output_count(&self) -> usize {
        self.outputs.len()
    }

    fn output_rank(&self, output: usize) -> Option<usize> {
        let (ranks, declared) = self.ranks?;
        ranks.of(self.outputs.get(output)?, declared)
    }

    fn attribute(&mut self, name: &str) -> Option<AttributeParts<'_>> {
        Some(match self.find(name)? {
            AttributeValue::Float(value) => AttributeParts::Float(*value),
            AttributeValue::Int(value) => AttributeParts::Int(*value),
            AttributeValue::String(bytes) => AttributeParts::Text(bytes),
            AttributeValue::Floats(values) => AttributeParts::Floats(values),
            AttributeValue::Ints(values) => AttributeParts::Ints(values),
            AttributeValue::Strings(texts) => {
                let joined = texts.iter().flat_map(|text| text.iter().copied().chain([0]));
                AttributeParts::Texts(
                    self.texts.entry(name.to_owned()).or_insert_with(|| joined.collect()),
                )
            }
            // A reference that was put in place is none any more, so these are told by their kind alone.
            other => AttributeParts::Other(other.kind().code()),
        })
    }

    fn attribute_tensor(&mut self, name: &str) -> Served<u32> {
        let read = match self.find(name) {
            Some(AttributeValue::Tensor(tensor)) => self.read_tensor(tensor),
            _ => invalid(format!("it has no tensor {}", quoted(name))),
        };
        read.map(Value::into_number).map_err(|problem| self.refusal(problem))
    }

    fn element_type(&self, code: u32) -> Served<DType> {
        let dtype = dtype_of_code(i32::try_from(code).unwrap_or(-1));
        dtype.map_err(|none| match none {
            NoTensor::Code { name: "unknown" | "undefined", code } => {
                let text = format!("there is no element type of code {code}");
                Refusal::new(Failure::INVALID, text)
            }
            none => Refusal::new(Failure::UNSUPPORTED, none.to_string()),
        })
    }

    fn value_type(&self, value: u32) -> Served<Type> {
        let ty = self.builder.value(value).map(|value| self.builder.ty(value));
        ty.map_err(|problem| Refusal::new(problem.kind(), problem.text()))
    }

    fn elements(&self, value: u32, read: &mut dyn FnMut(&[Dim])) {
        let value = self.builder.value(value).ok();
        if let Some(known) = value.and_then(|value| self.builder.elements(value)) {
            read(&known.elements);
        }
    }

    fn is_constant(&self, value: u32) -> bool {
        self.builder.value(value).is_ok_and(|value| self.builder.is_constant(value))
    }

    fn tensor(&self, value: u32) -> Option<ConstantParts> {
        let constant = self.builder.as_constant(self.builder.value(value).ok()?)?;
        let (dtype, shape) = self.builder.terms().static_tensor(constant.ty)?;
        let shape = shape.into_iter().map(u64::try_from).collect::<Result<_, _>>().ok()?;
        Some(ConstantParts { dtype, shape, bytes: constant.data.clone() })
    }

    fn call(&mut self, op: &str, args: &[u32], attrs: Attrs) -> Served<u32> {
        let call = |builder: &mut Builder, args: &[Value]| builder.call(op, args, attrs);
        self.made(args, call).map(Value::into_number)
    }

    fn constant(&mut self, ty: Type, bytes: Vec<u8>) -> u32 {
        let data = Bytes::new(bytes);
        self.builder.constant(Constant { ty, name: Symbol(0), data }).into_number()
    }

    fn retyped(&mut self, value: u32, ty: Type) -> Served<u32> {
        let retype = |builder: &mut Builder, values: &[Value]| {
            let constant = values.first().and_then(|&value| builder.as_constant(value));
            match constant {
                Some(constant) if fits(builder.cx(), ty, constant.data.len() as u64) => {
                    let (name, data) = (constant.name, constant.data.clone());
                    Ok(builder.constant(Constant { ty, name, data }))
                }
                Some(_) => invalid("it has another number of elements"),
                None => {
                    let text = "it is no constant".into();
                    Err(Problem::NotConstant { input: None, text })
                }
            }
        };
        self.made(&[value], retype).map(Value::into_number)
    }

    fn dimensions(&mut self, ty: Type, elements: &[Dim]) -> Served<u32> {
        let tensor = self.builder.terms().static_tensor(ty);
        let shaped = tensor.and_then(|(dtype, shape)| {
            let shape: Vec<usize> =
                shape.iter().map(|&extent| usize::try_from(extent).ok()).collect::<Option<_>>()?;
            let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))?;
            let is_whole = count == elements.len() && Known::has_elements_of(dtype);
            is_whole.then_some((dtype, shape))
        });
        let Some((dtype, shape)) = shaped else {
            let ty = self.builder.terms().type_text(ty);
            let text = format!("{} dimensions are no tensor of type {ty}", elements.len());
            return Err(Refusal::new(Failure::ERROR, text));
        };
        let known = Known { dtype, shape, elements: elements.to_vec() };
        Ok(self.builder.known(known).into_number())
    }

    fn shape(&mut self, dims: &[Dim]) -> u32 {
        self.builder.shape(dims).into_number()
    }

    fn tuple(&mut self, fields: &[u32]) -> Served<u32> {
        self.made(fields, |builder, fields| builder.tuple(fields)).map(Value::into_number)
    }

    fn items(&mut self, tuple: u32) -> Served<Vec<u32>> {
        let items = self.made(&[tuple], |builder, values| match values {
            &[tuple] => builder.items(tuple),
            _ => Ok(Vec::new()),
        });
        Ok(items?.into_iter().map(Value::into_number).collect())
    }

    fn spend(&mut self, bytes: usize) -> bool {
        self.builder.spend(bytes)
    }

    fn refused(&mut self, refusal: Refusal) {
        self.told = Some(refusal);
    }
}
