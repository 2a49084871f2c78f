//! The sweep over a model.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crate::eval::Tensor;
use crate::infer::infer;
use crate::io::{Mapping, quoted};
use crate::ir::{AttrValue, Attrs, Context, Cx, Dim, Module, Term, Type};
use crate::onnx::proto::{
    AttributeValue, FunctionProto, ModelProto, NodeProto, TypeProto, ValueInfoProto,
};
use crate::onnx::{ModelError, TensorError, TensorProblem, TensorReader, decode_model, open_model};

use super::attributes;
use super::builder::{Builder, Value};
use super::dims::Dims;
use super::error::Problem;
use super::node::NodeCx;
use super::problems::{Problems, describe};
use super::rules::{NEWEST_VERSION, OLDEST_VERSION, find};
use super::scope::{Call, Definition, Frame, Values, standard_domain};
use super::tensor::{constant_of, dtype_of_code};
use super::{GraphProblem, ImportError, OptionProblem, fold};

/// What a model is imported with.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Values of named dimensions.
    pub dims: BTreeMap<String, i64>,
    /// Values of inputs. These become constants; they are no parameters any more.
    pub inputs: BTreeMap<String, Tensor>,
}

/// Imports a model file.
pub fn import(path: &Path, options: &ImportOptions) -> Result<Module, ImportError> {
    import_mapping(&open_model(path)?, options)
}

/// Imports a mapped model file.
pub fn import_mapping(file: &Mapping, options: &ImportOptions) -> Result<Module, ImportError> {
    let model = decode_model(file)?;
    let path = || file.path().to_owned();
    match Importer::new(&model, file, options).run() {
        Ok(module) => Ok(module),
        Err(Stop::Graph(problem)) => Err(ImportError::Graph { path: path(), problem }),
        Err(Stop::Options(problem)) => Err(ImportError::Options { path: path(), problem }),
        Err(Stop::Tensor(cause)) => Err(ImportError::Tensor { path: path(), cause }),
        Err(Stop::Unsupported(list)) => Err(ImportError::Unsupported { path: path(), list }),
        Err(Stop::Wire(cause)) => Err(ModelError::Wire { path: path(), cause }.into()),
    }
}

/// What ends an import.
enum Stop {
    Graph(GraphProblem),
    Options(OptionProblem),
    Tensor(Box<TensorError>),
    Unsupported(super::UnsupportedList),
    Wire(crate::onnx::wire::WireError),
}

impl From<GraphProblem> for Stop {
    fn from(problem: GraphProblem) -> Self {
        Self::Graph(problem)
    }
}

impl From<OptionProblem> for Stop {
    fn from(problem: OptionProblem) -> Self {
        Self::Options(problem)
    }
}

/// An output that cannot be made.
struct Absent<'m> {
    node: &'m NodeProto<'m>,
    version: i64,
    output: usize,
}

struct Importer<'m> {
    model: &'m ModelProto<'m>,
    options: &'m ImportOptions,
    cx: Cx,
    builder: Builder,
    tensors: TensorReader<'m>,
    dims: Dims<'m>,
    problems: Problems,
    /// Outputs that cannot be made; that is a problem as soon as something reads them.
    absent: HashMap<Value, Absent<'m>>,
    functions: HashMap<(&'m str, &'m str, &'m str), &'m FunctionProto<'m>>,
    /// How many more nodes functions may expand to.
    budget: usize,
}

/// A function of functions may expand to as many nodes as there are atoms; more than this beyond those of
/// the file are refused.
const LARGEST_EXPANSION: usize = 1 << 20;

impl<'m> Importer<'m> {
    fn new(model: &'m ModelProto<'m>, file: &'m Mapping, options: &'m ImportOptions) -> Self {
        let cx = Cx::new();
        Self {
            model,
            options,
            builder: Builder::new(cx.clone()),
            tensors: TensorReader::new(file),
            dims: Dims::new(cx.clone(), &options.dims),
            problems: Problems::default(),
            absent: HashMap::new(),
            functions: HashMap::new(),
            budget: LARGEST_EXPANSION,
            cx,
        }
    }

    fn run(mut self) -> Result<Module, Stop> {
        self.survey()?;
        let mut values = Values::default();
        self.weights(&mut values)?;
        let inputs = self.inputs(&mut values)?;
        self.dims.check()?;
        let values = self.nodes(values)?;
        for output in &self.model.graph.output {
            if let Some(value) = values.get(output.name) {
                self.report_absent(value);
            }
        }
        if let Some(list) = std::mem::take(&mut self.problems).finish() {
            return Err(Stop::Unsupported(list));
        }
        let (names, outputs) = self.outputs(&values)?;

        let broken = |reason: String| GraphProblem::Node { node: "its graph".into(), reason };
        let func = self.builder.finish(&outputs).map_err(|problem| broken(problem.text()))?;
        let func = infer(&func, &|_| None).map_err(|errors| {
            broken(errors.first().map(ToString::to_string).unwrap_or_default())
        })?;
        let mut module = Module::new(self.cx.clone());
        module.insert(self.cx.symbol("main"), func);
        module.attrs = module_attrs(&self.cx, &inputs, &names);
        Ok(module)
    }

    /// What can be told about the model as a whole.
    fn survey(&mut self) -> Result<(), Stop> {
        for function in &self.model.functions {
            let key = (standard_domain(function.domain), function.name, function.overload);
            if self.functions.insert(key, function).is_some() {
                return Err(GraphProblem::FunctionTwice(quoted(function.name)).into());
            }
        }
        let graph = &self.model.graph;
        for name in &graph.sparse_initializer {
            self.problems.add(format!("the sparse weight {}", quoted(name)));
        }
        if self.model.has_training_info {
            self.problems.add("training information".into());
        }
        if graph.output.is_empty() {
            return Err(GraphProblem::NoOutputs.into());
        }
        Ok(())
    }

    fn weights(&mut self, values: &mut Values<'m>) -> Result<(), Stop> {
        for tensor in &self.model.graph.initializer {
            let data = self.tensors.read(tensor);
            let value = match data.map(|data| constant_of(&self.cx, tensor.name, data)) {
                Ok(Ok(constant)) => self.builder.constant(constant),
                Ok(Err(reason)) => self.missing_weight(tensor.name, &reason),
                Err(error) => match unsupported_tensor(&error) {
                    Some(reason) => self.missing_weight(tensor.name, &reason),
                    None => return Err(Stop::Tensor(Box::new(error))),
                },
            };
            values.define(tensor.name, value, Definition::Weight)?;
        }
        Ok(())
    }

    fn missing_weight(&mut self, name: &str, reason: &str) -> Value {
        self.problems.add(format!("{reason} of the weight {}", quoted(name)));
        self.builder.missing()
    }

    /// Defines the inputs that are not weights, and returns the names of the parameters.
    fn inputs(&mut self, values: &mut Values<'m>) -> Result<Vec<&'m str>, Stop> {
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
                Some(ty) => match self.options.inputs.get(input.name) {
                    Some(tensor) => self.fixed_input(input.name, ty, tensor)?,
                    None => {
                        names.push(input.name);
                        self.builder.param(input.name, ty)
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
            TypeProto::Unsupported(kind) => {
                self.problems.add(format!("{}, a {kind}", place()));
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
        let Some(shape) = shape else { return Ok(Some(self.cx.unranked_tensor_type(dtype))) };
        let mut dims: Vec<Dim> = Vec::with_capacity(shape.len());
        for &dimension in shape {
            dims.push(self.dims.of_input(dimension).ok_or_else(|| {
                let dim = match dimension {
                    crate::onnx::proto::Dimension::Value(value) => value,
                    _ => 0,
                };
                GraphProblem::BadDimension { place: place(), dim }
            })?);
        }
        Ok(Some(self.cx.tensor_type(dtype, &dims)))
    }

    fn fixed_input(&mut self, name: &str, ty: Type, tensor: &Tensor) -> Result<Value, Stop> {
        let constant = tensor.to_constant(&self.cx);
        if is_different(&self.cx, ty, constant.ty) {
            let terms = self.cx.terms();
            let (declared, found) = (terms.type_text(ty), terms.type_text(constant.ty));
            let name = quoted(name);
            return Err(OptionProblem::WrongInput { name, declared, found }.into());
        }
        Ok(self.builder.constant(constant))
    }

    /// Translates the nodes of the graph, with the model's own functions expanded.
    fn nodes(&mut self, values: Values<'m>) -> Result<Values<'m>, Stop> {
        let mut frame = Frame {
            nodes: &self.model.graph.node,
            next: 0,
            values,
            attributes: HashMap::new(),
            operator_sets: &self.model.opset_import,
            call: None,
        };
        let mut callers: Vec<Frame<'m>> = Vec::new();
        let mut active: HashSet<*const FunctionProto<'m>> = HashSet::new();
        loop {
            let Some(node) = frame.nodes.get(frame.next) else {
                let Some(mut caller) = callers.pop() else { return Ok(frame.values) };
                if let Some(call) = &frame.call {
                    active.remove(&std::ptr::from_ref(call.function));
                    self.leave(call, &frame.values, &mut caller)?;
                }
                frame = caller;
                continue;
            };
            frame.next += 1;
            let inputs = frame.values.inputs(frame.nodes, node)?;
            let given = attributes::resolve(node, &frame.attributes);
            let key = (standard_domain(node.domain), node.op_type, node.overload);
            if let Some(&function) = self.functions.get(&key) {
                if !active.insert(std::ptr::from_ref(function)) {
                    return Err(GraphProblem::Cycle(quoted(function.name)).into());
                }
                let inner = self.enter(node, function, &inputs, &given)?;
                callers.push(std::mem::replace(&mut frame, inner));
                continue;
            }
            let outputs = self.node(&frame, node, &inputs, &given)?;
            for (&name, value) in node.output.iter().zip(outputs) {
                if !name.is_empty() {
                    frame.values.define(name, value, Definition::Output(node))?;
                }
            }
        }
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
            return Err(GraphProblem::Node { node: describe(node), reason }.into());
        }
        let mut values = Values::default();
        for (position, &name) in function.input.iter().enumerate() {
            if let Some(value) = inputs.get(position).copied().flatten() {
                values.define(name, value, Definition::Input)?;
            }
        }
        Ok(Frame {
            nodes: &function.node,
            next: 0,
            values,
            attributes: attributes::bind(function, given),
            operator_sets: &function.opset_import,
            call: Some(Call { node, function }),
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
                return Err(GraphProblem::Node { node: describe(call.node), reason }.into());
            };
            caller.values.define(name, value, Definition::Output(call.node))?;
        }
        Ok(())
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
        let domain = standard_domain(node.domain);
        let Some(version) = frame.version(domain) else {
            let domain = if domain.is_empty() { "ai.onnx" } else { domain };
            return Err(GraphProblem::NoOperatorSet(quoted(domain)).into());
        };
        let is_known_version = (OLDEST_VERSION..=NEWEST_VERSION).contains(&version);
        if domain.is_empty() && !is_known_version {
            self.problems.add(format!(
                "version {version} of the operators of ai.onnx; {OLDEST_VERSION} to \
                 {NEWEST_VERSION} are known"
            ));
            return missing(self);
        }
        let rule = if domain.is_empty() { find(node.op_type, version) } else { None };
        let Some(rule) = rule else {
            self.problems.add_node(node, version, None);
            self.survey_graphs(frame, given)?;
            return missing(self);
        };
        if inputs.iter().flatten().any(|&input| self.builder.is_missing(input)) {
            inputs.iter().flatten().for_each(|&input| self.report_absent(input));
            return missing(self);
        }
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        self.builder.begin_node(name);
        let translated = {
            let (builder, tensors) = (&mut self.builder, &mut self.tensors);
            NodeCx::new(builder, tensors, version, inputs, wanted, given).and_then(|mut cx| {
                let outputs = match fold::fold(&mut cx, node.op_type)? {
                    Some(outputs) => outputs,
                    None => rule.translate(&mut cx)?,
                };
                cx.check_attributes()?;
                Ok(outputs)
            })
        };
        let reason = match translated {
            Ok(mut outputs) => {
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
                return Ok(outputs);
            }
            Err(problem) => match problem {
                Problem::Invalid(reason) => {
                    return Err(GraphProblem::Node { node: describe(node), reason }.into());
                }
                Problem::Tensor(error) => match unsupported_tensor(&error) {
                    Some(reason) => reason,
                    None => return Err(Stop::Tensor(error)),
                },
                problem => problem.text(),
            },
        };
        self.problems.add_node(node, version, Some(reason));
        missing(self)
    }

    /// Takes note that something reads `value`, in case that it cannot be made.
    fn report_absent(&mut self, value: Value) {
        if let Some(Absent { node, version, output }) = self.absent.remove(&value) {
            self.problems.add_node(node, version, Some(format!("output {}", output + 1)));
        }
    }

    /// Collects operators without translation in the graphs inside of attributes, however deep.
    fn survey_graphs(
        &mut self,
        frame: &Frame<'m>,
        given: &[(&'m str, &'m AttributeValue<'m>)],
    ) -> Result<(), Stop> {
        let mut pending = Vec::new();
        let collect = |pending: &mut Vec<_>, value: &AttributeValue<'m>| match value {
            AttributeValue::Graph(graph) => pending.push(**graph),
            AttributeValue::Graphs(graphs) => pending.extend(graphs.iter().copied()),
            _ => {}
        };
        given.iter().for_each(|(_, value)| collect(&mut pending, value));
        while let Some(graph) = pending.pop() {
            let graph = graph.decode().map_err(Stop::Wire)?;
            for node in &graph.node {
                let domain = standard_domain(node.domain);
                let key = (domain, node.op_type, node.overload);
                let version = frame.version(domain).unwrap_or(0);
                let is_known = domain.is_empty() && find(node.op_type, version).is_some();
                if !is_known && !self.functions.contains_key(&key) {
                    self.problems.add_node(node, version, None);
                }
                node.attribute.iter().for_each(|other| collect(&mut pending, &other.value));
            }
        }
        Ok(())
    }

    /// The names and values of the outputs.
    fn outputs(&mut self, values: &Values<'m>) -> Result<(Vec<&'m str>, Vec<Value>), Stop> {
        let (mut names, mut outputs) = (Vec::new(), Vec::new());
        for output in &self.model.graph.output {
            let Some(value) = values.get(output.name) else {
                return Err(GraphProblem::OutputNotDefined(quoted(output.name)).into());
            };
            self.check_output(output, self.builder.ty(value))?;
            names.push(output.name);
            outputs.push(value);
        }
        Ok((names, outputs))
    }

    /// Compares an output with its declaration, as far as that says something.
    fn check_output(&self, output: &ValueInfoProto<'m>, found: Type) -> Result<(), Stop> {
        let terms = self.cx.terms();
        let wrong = |declared: String| {
            let (name, found) = (quoted(output.name), terms.type_text(found));
            Err(GraphProblem::WrongOutput { name, declared, found }.into())
        };
        let (elem_type, shape) = match &output.ty {
            TypeProto::Tensor { elem_type, shape } => (*elem_type, shape),
            TypeProto::Unknown => return Ok(()),
            TypeProto::Unsupported(kind) => return wrong(format!("a {kind}")),
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
        match is_different(&self.cx, declared, found) {
            true => wrong(terms.type_text(declared)),
            false => Ok(()),
        }
    }
}

/// Whether two tensor types differ whatever their symbols stand for.
fn is_different(cx: &Cx, a: Type, b: Type) -> bool {
    let terms = cx.terms();
    let differs = |(&a, &b): (&Dim, &Dim)| {
        terms.dim_value(cx.dim_sub(a, b)).is_some_and(|difference| difference != 0)
    };
    match (terms.tensor(a), terms.tensor(b)) {
        (Some((x, a)), Some((y, b))) => {
            x != y || a.len() != b.len() || a.iter().zip(b).any(differs)
        }
        _ => false,
    }
}

/// The name of an element type that tensors cannot have here, when that is what is wrong.
fn unsupported_tensor(error: &TensorError) -> Option<String> {
    match &error.problem {
        TensorProblem::ElementType { name, .. } => Some(format!("the element type {name}")),
        _ => None,
    }
}

fn module_attrs(cx: &Cx, inputs: &[&str], outputs: &[&str]) -> Attrs {
    let list = |names: &[&str]| {
        let names: Vec<Term> = names.iter().map(|name| cx.symbol(name).into()).collect();
        AttrValue::from(cx.list(&names))
    };
    cx.attrs(&[("onnx.inputs", list(inputs)), ("onnx.outputs", list(outputs))])
}
