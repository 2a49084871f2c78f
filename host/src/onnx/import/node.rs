//! A node as its translation sees it: inputs as values, attributes by kind.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use crate::io::quoted;
use crate::ir::{Constant, Dim};
use crate::onnx::TensorReader;
use crate::onnx::proto::{AttributeValue, TensorProto};

use super::builder::{Builder, Value};
use super::error::{Problem, invalid, unsupported};
use super::tensor::{LARGEST_RANK, constant_of};

/// A node in translation. Values are made by the builder underneath.
pub(super) struct NodeCx<'m, 'n> {
    pub(super) builder: &'n mut Builder,
    pub(super) tensors: &'n mut TensorReader<'m>,
    /// The version of the operator set that the node is written in.
    pub(super) version: i64,
    /// `None` for an optional input that is left out.
    pub(super) inputs: &'n [Option<Value>],
    /// How many outputs it has, those without a name counted.
    pub(super) output_count: usize,
    attributes: &'n [(&'m str, &'n AttributeValue<'m>)],
    /// The attributes that were asked for, one bit each.
    read: Cell<u64>,
}

impl Deref for NodeCx<'_, '_> {
    type Target = Builder;

    fn deref(&self) -> &Builder {
        self.builder
    }
}

impl DerefMut for NodeCx<'_, '_> {
    fn deref_mut(&mut self) -> &mut Builder {
        self.builder
    }
}

impl<'m, 'n> NodeCx<'m, 'n> {
    pub(super) fn new(
        builder: &'n mut Builder,
        tensors: &'n mut TensorReader<'m>,
        version: i64,
        inputs: &'n [Option<Value>],
        output_count: usize,
        attributes: &'n [(&'m str, &'n AttributeValue<'m>)],
    ) -> Result<Self, Problem> {
        if attributes.len() > 64 {
            return invalid(format!("it has {} attributes", attributes.len()));
        }
        let read = Cell::new(0);
        Ok(Self { builder, tensors, version, inputs, output_count, attributes, read })
    }

    /// Input `index`, which must be given.
    pub(super) fn input(&self, index: usize) -> Result<Value, Problem> {
        match self.optional(index) {
            Some(value) => Ok(value),
            None => invalid(format!("its input {} is missing", index + 1)),
        }
    }

    /// Input `index`, if it is given.
    pub(super) fn optional(&self, index: usize) -> Option<Value> {
        self.inputs.get(index).copied().flatten()
    }

    /// All inputs, none of which may be left out.
    pub(super) fn all_inputs(&self) -> Result<Vec<Value>, Problem> {
        (0..self.inputs.len()).map(|index| self.input(index)).collect()
    }

    /// The integers that input `index` is, when it is given.
    pub(super) fn optional_ints(&self, index: usize) -> Result<Option<Vec<i64>>, Problem> {
        let Some(value) = self.optional(index) else { return Ok(None) };
        let numbers = self.elements(value).and_then(|known| known.numbers(self.terms()));
        match numbers {
            Some(numbers) => Ok(Some(numbers)),
            None => self.not_constant(index),
        }
    }

    /// The integers that input `index` is.
    pub(super) fn input_ints(&self, index: usize) -> Result<Vec<i64>, Problem> {
        self.input(index)?;
        Ok(self.optional_ints(index)?.unwrap_or_default())
    }

    /// The dimensions that input `index` is.
    pub(super) fn input_dims(&self, index: usize) -> Result<Vec<Dim>, Problem> {
        match self.elements(self.input(index)?) {
            Some(known) => Ok(known.elements.clone()),
            None => self.not_constant(index),
        }
    }

    /// Says that input `index` is needed at compile time.
    pub(super) fn not_constant<T>(&self, index: usize) -> Result<T, Problem> {
        Err(Problem::NotConstant(format!("input {} must be a constant here", index + 1)))
    }

    /// Checks the number of inputs.
    pub(super) fn check_arity(&self, min: usize, max: usize) -> Result<(), Problem> {
        match self.inputs.len() {
            count if (min..=max).contains(&count) => Ok(()),
            count => invalid(format!("it has {count} inputs, expected {min} to {max}")),
        }
    }

    /// Whether attribute `name` is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    /// An integer attribute.
    pub(super) fn int(&self, name: &str) -> Result<Option<i64>, Problem> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(*value)),
            Some(other) => self.wrong_kind(name, "an integer", other),
        }
    }

    /// An integer attribute with its default.
    pub(super) fn int_or(&self, name: &str, default: i64) -> Result<i64, Problem> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer attribute that is 0 or 1, with its default.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Problem> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }

    /// A list of integers.
    pub(super) fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Problem> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(values)) => Ok(Some(values.clone())),
            Some(other) => self.wrong_kind(name, "a list of integers", other),
        }
    }

    /// A float attribute.
    pub(super) fn float(&self, name: &str) -> Result<Option<f32>, Problem> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Float(value)) => Ok(Some(*value)),
            Some(other) => self.wrong_kind(name, "a float", other),
        }
    }

    /// A float attribute with its default.
    pub(super) fn float_or(&self, name: &str, default: f32) -> Result<f64, Problem> {
        Ok(f64::from(self.float(name)?.unwrap_or(default)))
    }

    /// A list of floats.
    pub(super) fn floats(&self, name: &str) -> Result<Option<Vec<f32>>, Problem> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Floats(values)) => Ok(Some(values.clone())),
            Some(other) => self.wrong_kind(name, "a list of floats", other),
        }
    }

    /// A text attribute with its default.
    pub(super) fn text(&self, name: &str, default: &'static str) -> Result<String, Problem> {
        match self.attribute(name) {
            None => Ok(default.to_owned()),
            Some(AttributeValue::String(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Some(other) => self.wrong_kind(name, "a string", other),
        }
    }

    /// A tensor attribute.
    pub(super) fn tensor(&mut self, name: &str) -> Result<Option<Constant>, Problem> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Tensor(tensor)) => self.read_tensor(tensor).map(Some),
            Some(other) => self.wrong_kind(name, "a tensor", other),
        }
    }

    fn read_tensor(&mut self, tensor: &TensorProto<'_>) -> Result<Constant, Problem> {
        let data = self.tensors.read(tensor).map_err(|error| Problem::Tensor(Box::new(error)))?;
        constant_of(self.builder.cx(), tensor.name, data).map_err(Problem::Unsupported)
    }

    /// Takes note of an attribute that makes no difference.
    pub(super) fn ignore(&self, name: &str) {
        self.attribute(name);
    }

    fn attribute(&self, name: &str) -> Option<&'n AttributeValue<'m>> {
        let position = self.attributes.iter().position(|(other, _)| *other == name)?;
        self.read.set(self.read.get() | 1 << position);
        Some(self.attributes[position].1)
    }

    fn wrong_kind<T>(
        &self,
        name: &str,
        expected: &str,
        found: &AttributeValue<'_>,
    ) -> Result<T, Problem> {
        invalid(format!("its attribute `{name}` is {expected}, not a {:?}", found.kind()))
    }

    /// Refuses a node with an attribute that its translation did not look at.
    pub(super) fn check_attributes(&self) -> Result<(), Problem> {
        let read = self.read.get();
        let unread = (0..self.attributes.len()).find(|position| read >> position & 1 == 0);
        match unread {
            Some(position) => {
                unsupported(format!("attribute {}", quoted(self.attributes[position].0)))
            }
            None => Ok(()),
        }
    }

    /// An axis of a tensor of `rank` dimensions, counted from the end when negative.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Result<usize, Problem> {
        let bound = rank as i64;
        match axis {
            axis if (0..bound).contains(&axis) => Ok(axis as usize),
            axis if (-bound..0).contains(&axis) => Ok((axis + bound) as usize),
            _ => invalid(format!("axis {axis} of a tensor of {rank} dimensions")),
        }
    }

    /// Axes, each at most once.
    pub(super) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, Problem> {
        if rank > LARGEST_RANK {
            return unsupported(format!("{rank} dimensions"));
        }
        let mut is_named = vec![false; rank];
        let mut found = Vec::with_capacity(axes.len().min(rank));
        for &axis in axes {
            let axis = self.axis(axis, rank)?;
            if std::mem::replace(&mut is_named[axis], true) {
                return invalid(format!("axis {axis} is named twice"));
            }
            found.push(axis);
        }
        Ok(found)
    }
}
