//! What a graph has to do with the outside: weights, inputs, outputs.

use std::collections::HashSet;

use crate::eval::Tensor;
use crate::io::quoted;
use crate::ir::{Constant, Context, Cx, DType, Dim, Type, TypeView, flatten_type};
use crate::onnx::proto::{Dimension, GraphProto, TypeProto, ValueInfoProto};

use super::builder::Value;
use super::driver::Importer;
use super::error::{Problem, Stop, unsupported_tensor};
use super::scope::{Definition, Values};
use super::tensor::{check_rank, constant_of, dtype_of_code};
use super::{GraphProblem, OptionProblem};

impl<'m> Importer<'m> {
    /// Defines the weights of a graph.
    pub(super) fn weights(
        &mut self,
        graph: &'m GraphProto<'m>,
        values: &mut Values<'m>,
    ) -> Result<(), Stop> {
        for tensor in &graph.initializer {
            let data = self.tensors.read(tensor);
            let value = match data.map(|data| constant_of(&self.cx, tensor.name, data)) {
                Ok(Ok(constant)) => self.builder.constant(constant),
                Ok(Err(reason)) => self.missing_weight(tensor.name, &reason.to_string()),
                Err(error) => match unsupported_tensor(&error) {
                    Some(reason) => self.missing_weight(tensor.name, &reason),
                    None => return Err(Stop::Tensor(Box::new(error))),
                },
            };
            values.define(tensor.name, value, Definition::Weight)?;
        }
        for name in &graph.sparse_initializer {
            self.problems.add(format!("the sparse weight {}", quoted(name)));
            let value = self.builder.missing();
            values.define(name, value, Definition::Weight)?;
        }
        Ok(())
    }

    fn missing_weight(&mut self, name: &str, reason: &str) -> Value {
        self.problems.add(format!("{reason} of the weight {}", quoted(name)));
        self.builder.missing()
    }

    /// Defines the inputs that are not weights, and returns the names of the parameters.
    pub(super) fn inputs(&mut self, values: &mut Values<'m>) -> Result<Vec<String>, Stop> {
        let mut names = Vec::new();
        let mut parameters = HashSet::new();
        for input in &self.model.graph.input {
            let is_weight = values.get(input.name).is_some() && !parameters.contains(input.name);
            if is_weight {
                continue;
            }
            parameters.insert(input.name);
            let value = match self.input_type(input)? {
                None => self.builder.missing(),
                Some(ty) if is_no_tensor(input) => self.held_input(input, ty, &mut names)?,
                Some(ty) => match self.options.inputs.get(input.name) {
                    Some(tensor) => self.fixed_input(input.name, ty, tensor)?,
                    None => {
                        names.push(input.name.to_owned());
                        if self.case_input(input.name, ty) {
                            continue;
                        }
                        match self.sizes_input(input.name, ty) {
                            Some(sizes) => sizes,
                            None => self.builder.param(input.name, ty),
                        }
                    }
                },
            };
            values.define(input.name, value, Definition::Input)?;
        }
        match self.options.inputs.keys().find(|name| !parameters.contains(name.as_str())) {
            None => Ok(names),
            Some(name) => {
                let inputs = self.model.graph.input.iter().map(|input| input.name.to_owned());
                let known = inputs.filter(|name| parameters.contains(name.as_str())).collect();
                Err(OptionProblem::UnknownInput { name: name.clone(), known }.into())
            }
        }
    }

    /// The type of an input; `None` when it is not supported.
    fn input_type(&mut self, input: &ValueInfoProto<'m>) -> Result<Option<Type>, Stop> {
        let place = || format!("the input {}", quoted(input.name));
        let (elem_type, shape) = match &input.ty {
            TypeProto::Tensor { elem_type, shape } => (*elem_type, shape),
            TypeProto::Unknown => {
                self.problems.add(format!("{} without a type", place()));
                return Ok(None);
            }
            TypeProto::Sequence { shape: None, .. }
            | TypeProto::OptionalSequence { shape: None, .. } => {
                self.problems.add(format!(
                    "{} of kind sequence, of whose elements the model does not declare the shape",
                    place()
                ));
                return Ok(None);
            }
            TypeProto::Sequence { elem_type, shape }
            | TypeProto::Optional { elem_type, shape }
            | TypeProto::OptionalSequence { elem_type, shape } => (*elem_type, shape),
            TypeProto::Unsupported(kind) => {
                self.problems.add(format!("{} of kind {kind}", place()));
                return Ok(None);
            }
        };
        let dtype = match dtype_of_code(elem_type) {
            Ok(dtype) => dtype,
            Err(reason) => {
                self.problems.add(format!("{reason} of {}", place()));
                return Ok(None);
            }
        };
        if let Err(reason) = check_rank(shape.as_ref().map_or(0, Vec::len)) {
            self.problems.add(format!("{reason} of {}", place()));
            return Ok(None);
        }
        let Some(shape) = shape else { return Ok(Some(self.cx.unranked_tensor_type(dtype))) };
        let mut dims: Vec<Dim> = Vec::with_capacity(shape.len() + 1);
        if is_sequence(input) {
            let length = format!("{}_length", input.name);
            dims.extend(self.dims.of_input(Dimension::Param(&length)));
        }
        for &dimension in shape {
            dims.push(self.dims.of_input(dimension).ok_or_else(|| {
                let dim = match dimension {
                    Dimension::Value(value) => value,
                    _ => 0,
                };
                GraphProblem::BadDimension { place: place(), dim }
            })?);
        }
        Ok(Some(self.cx.tensor_type(dtype, &dims)))
    }

    /// The input that is a sequence or an optional value, whose tensor has type `ty`; adds the names of its parameters. A sequence is
    /// one tensor, and beside the tensor of an optional value a truth value says whether it is there.
    fn held_input(
        &mut self,
        input: &ValueInfoProto<'m>,
        ty: Type,
        names: &mut Vec<String>,
    ) -> Result<Value, Stop> {
        let fixed = self.options.inputs.get(input.name);
        let value = match fixed {
            Some(tensor) => self.fixed_input(input.name, ty, tensor)?,
            None => {
                names.push(input.name.to_owned());
                self.builder.param(input.name, ty)
            }
        };
        let held = |this: &mut Self, parts: &[Value]| {
            let held = this.builder.tuple(parts).and_then(|held| this.builder.tuple(&[held]));
            held.map_err(|problem| {
                let node = format!("the input {}", quoted(input.name));
                Stop::from(GraphProblem::Node { node, reason: problem.text() })
            })
        };
        let value = if is_sequence(input) { held(self, &[value])? } else { value };
        if is_optional(input) {
            let name = format!("{}_is_there", input.name);
            let truth = self.cx.static_tensor_type(DType::BOOL, &[]);
            let is_there = match (fixed, self.options.inputs.get(&name)) {
                (None, None) => {
                    let value = self.builder.param(&name, truth);
                    names.push(name);
                    value
                }
                (_, Some(tensor)) => self.fixed_input(&name, truth, tensor)?,
                (Some(_), None) => self.boolean(true),
            };
            return held(self, &[value, is_there]);
        }
        Ok(value)
    }

    fn fixed_input(&mut self, name: &str, ty: Type, tensor: &Tensor) -> Result<Value, Stop> {
        let constant = Constant::of_tensor(tensor, &self.cx);
        if difference(&self.cx, ty, constant.ty).is_some() {
            let terms = self.cx.terms();
            let (declared, found) = (terms.type_text(ty), terms.type_text(constant.ty));
            let name = quoted(name);
            return Err(OptionProblem::WrongInput { name, declared, found }.into());
        }
        Ok(self.builder.constant(constant))
    }

    /// The names and values of the outputs.
    pub(super) fn outputs(
        &mut self,
        values: &Values<'m>,
    ) -> Result<(Vec<String>, Vec<Value>), Stop> {
        let (mut names, mut outputs) = (Vec::new(), Vec::new());
        for output in &self.model.graph.output {
            let Some(value) = values.get(output.name) else {
                return Err(GraphProblem::OutputNotDefined(quoted(output.name)).into());
            };
            self.check_output(output, self.builder.ty(value))?;
            let made = self.output(value).map_err(|problem| {
                let node = format!("the output {}", quoted(output.name));
                GraphProblem::Node { node, reason: problem.text() }
            })?;
            names.extend(self.output_names(output.name, value, made));
            outputs.push(made);
        }
        match std::mem::take(&mut self.problems).finish() {
            Some(list) => Err(Stop::Unsupported(list)),
            None => Ok((names, outputs)),
        }
    }

    /// What the tensors of an output are called: those of a sequence of known length by their numbers, `s.0` and `s.1`.
    fn output_names(&self, name: &str, value: Value, made: Value) -> Vec<String> {
        let ty = self.builder.ty(made);
        let terms = self.cx.terms();
        match (terms.ty(ty), flatten_type(terms, &[ty]).len()) {
            (TypeView::Tuple(_), count) if self.is_optional(value) => {
                let there = std::iter::once(format!("{name}_is_there"));
                numbered(name, count.saturating_sub(1)).chain(there).collect()
            }
            (TypeView::Tuple(_), count) => (0..count).map(|at| format!("{name}.{at}")).collect(),
            _ => vec![name.to_owned()],
        }
    }

    /// What a value is as an output: a sequence of open length is a tensor, and an optional value the value and whether it is there.
    fn output(&mut self, value: Value) -> Result<Value, Problem> {
        if self.is_open_sequence(value) {
            return self.sequence_rows(value);
        }
        if !self.is_optional(value) {
            return Ok(value);
        }
        let inner = self.builder.items(value)?;
        let parts = self.builder.items(inner[0])?;
        let held = match self.is_open_sequence(parts[0]) {
            true => self.sequence_rows(parts[0])?,
            false => parts[0],
        };
        self.builder.tuple(&[held, parts[1]])
    }

    /// Compares an output with its declaration, as far as that says something. Exporters are often wrong about shapes, and
    /// other runtimes only warn: what the graph computes holds.
    pub(super) fn check_output(
        &mut self,
        output: &ValueInfoProto<'m>,
        found: Type,
    ) -> Result<(), Stop> {
        let terms = self.cx.terms();
        let wrong = |declared: String| {
            let (name, found) = (quoted(output.name), terms.type_text(found));
            Err(GraphProblem::WrongOutput { name, declared, found }.into())
        };
        let (elem_type, shape) = match &output.ty {
            TypeProto::Tensor { elem_type, shape } => (*elem_type, shape),
            TypeProto::Unknown => return Ok(()),
            // What there is of an optional value is the value, and of a sequence a tuple.
            TypeProto::Optional { .. }
            | TypeProto::OptionalSequence { .. }
            | TypeProto::Unsupported("optional") => return Ok(()),
            TypeProto::Sequence { .. } | TypeProto::Unsupported("sequence") => {
                return match is_tuple(terms.ty(found)) {
                    true => Ok(()),
                    false => wrong("of kind sequence".into()),
                };
            }
            TypeProto::Unsupported(kind) => return wrong(format!("of kind {kind}")),
        };
        let Ok(dtype) = dtype_of_code(elem_type) else {
            return if elem_type == 0 { Ok(()) } else { wrong("of another element type".into()) };
        };
        let declared = match shape {
            None => self.cx.unranked_tensor_type(dtype),
            Some(shape) => {
                let dims = shape.iter().enumerate().map(|(axis, &dimension)| {
                    // A dimension that is not known by its name may be anything.
                    let unknown = || self.cx.dim_symbol(&format!("unknown.{axis}"));
                    self.dims.of_output(dimension).unwrap_or_else(unknown)
                });
                self.cx.tensor_type(dtype, &dims.collect::<Vec<_>>())
            }
        };
        match difference(&self.cx, declared, found) {
            Some(Difference::ElementType) => return wrong(terms.type_text(declared)),
            Some(Difference::Shape) => {
                let rank = |ty| terms.tensor(ty).map(|(_, dims)| dims.len());
                self.ranks.differ.set(self.ranks.differ.get() || rank(declared) != rank(found));
                let (declared, found) = (terms.type_text(declared), terms.type_text(found));
                let output = quoted(output.name);
                self.notes.push(format!(
                    "the output {output} is declared as {declared}, but it is {found}, which holds"
                ));
            }
            None => {}
        }
        Ok(())
    }
}

/// Whether an input holds tensors and is none.
fn is_no_tensor(input: &ValueInfoProto<'_>) -> bool {
    is_sequence(input) || is_optional(input)
}

fn is_sequence(input: &ValueInfoProto<'_>) -> bool {
    matches!(input.ty, TypeProto::Sequence { .. } | TypeProto::OptionalSequence { .. })
}

fn is_optional(input: &ValueInfoProto<'_>) -> bool {
    matches!(input.ty, TypeProto::Optional { .. } | TypeProto::OptionalSequence { .. })
}

fn is_tuple(ty: TypeView<'_>) -> bool {
    matches!(ty, TypeView::Tuple(_))
}

/// In what two tensor types differ whatever their symbols stand for.
enum Difference {
    ElementType,
    Shape,
}

fn difference(cx: &Cx, a: Type, b: Type) -> Option<Difference> {
    let terms = cx.terms();
    let differs = |(&a, &b): (&Dim, &Dim)| {
        terms.dim_value(cx.dim_sub(a, b)).is_some_and(|difference| difference != 0)
    };
    let ((x, a), (y, b)) = terms.tensor(a).zip(terms.tensor(b))?;
    if x != y {
        return Some(Difference::ElementType);
    }
    let is_different = a.len() != b.len() || a.iter().zip(b).any(differs);
    is_different.then_some(Difference::Shape)
}

/// The name of one tensor, or of each of several.
fn numbered(name: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |at| if count == 1 { name.to_owned() } else { format!("{name}.{at}") })
}
