//! Inputs that choose what a model computes: axes, truth values, and extents of results.
//!
//! ```text
//! x: float[3, 2], a: int64[1]          fn @main(%x: f32[3, 2], %a: i64[1]) {
//! y = ReduceSum(x, a): float[?]          %n = …                              which case %a is, from 1 on; 0 where it is none
//!                                 =>     %e = expect(…)                      that there is one
//!                                        %y = if %second { %s = … } else { %t = … }
//! ```
//!
//! What is reduced along an axis is another program for each axis. So where a rule must know axes, and they follow from inputs of
//! few elements, the model is imported with each of the values that such inputs may have: an axis is within the largest rank
//! that the model names, and extents of results are among those that it declares. Values that the model does not allow, those
//! for which its outputs are not as it declares them among them, are none of its cases; a call with such a value is refused.
//! Cases that compute the same are one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::eval::Tensor;
use crate::ir::{Bytes, Constant, Context, DType, Module, NodeSource, Symbol, Type};
use crate::onnx::proto::{Dimension, GraphProto, ModelProto, TypeProto, ValueInfoProto};
use tenon_plugin_api::rule::import::Few;

use super::GraphProblem;
use super::builder::Value;
use super::driver::{ImportOptions, Importer};
use super::error::{Problem, Stop};
use super::scope::{Definition, Values};
use super::sizes::CHOOSING;
use super::tensor::dtype_of_code;

/// The rule that finds a case: of inputs, each with the rows of values that it may have, and the numbers of the cases.
const CASE: &str = "tenon::Case";
/// The rule that compares its number: whether the first is not below the second.
pub(super) const AT_LEAST: &str = "tenon::AtLeast";

/// So many values are tried, and so many nodes imported for that, and there may be so many cases.
const MOST_VALUES: usize = 1 << 11;
const MOST_NODES: usize = 1 << 16;
const MOST_CASES: usize = 16;

/// What a model computes by the values of some inputs.
pub(super) struct Cases {
    pub(super) inputs: Vec<CaseInput>,
    /// For each case the values that mean it: the elements of all inputs, one behind the other.
    values: Vec<Vec<Vec<i64>>>,
}

/// An input that chooses.
pub(super) struct CaseInput {
    pub(super) name: String,
    dtype: DType,
    shape: Vec<usize>,
    /// What each element may be.
    range: Vec<i64>,
}

impl CaseInput {
    /// The input of a graph, where it has few elements that choose.
    fn of(graph: &GraphProto<'_>, name: &str, of: Few) -> Option<Self> {
        let input = graph.input.iter().find(|input| input.name == name)?;
        let TypeProto::Tensor { elem_type, shape: Some(shape) } = &input.ty else { return None };
        let (dtype, shape) = (dtype_of_code(*elem_type).ok()?, shape.iter().map(extent));
        let range = match of {
            _ if dtype.is_bool() => vec![0, 1],
            Few::Axes => {
                let rank = shapes(graph).map(Vec::len).max().unwrap_or(0) as i64;
                (-rank..rank).collect()
            }
            Few::Extents => {
                let extents = graph.output.iter().filter_map(shape_of).flatten();
                let extents: BTreeSet<usize> = extents.filter_map(extent).collect();
                extents.into_iter().map(|extent| extent as i64).collect()
            }
        };
        let name = name.to_owned();
        Some(Self { name, dtype, shape: shape.collect::<Option<_>>()?, range })
            .filter(|it| CHOOSING.contains(&dtype) && it.count() < MOST_VALUES)
    }

    fn count(&self) -> usize {
        self.shape
            .iter()
            .try_fold(1usize, |count, &dim| count.checked_mul(dim))
            .unwrap_or(MOST_VALUES)
    }

    fn bytes(&self, elements: &[i64]) -> Vec<u8> {
        let size = self.dtype.bits() as usize / 8;
        let bytes = |&element: &i64| match self.dtype {
            DType::F32 => u64::from((element as f32).to_bits()).to_le_bytes(),
            DType::F64 => (element as f64).to_le_bytes(),
            _ => element.to_le_bytes(),
        };
        elements.iter().flat_map(|element| bytes(element).into_iter().take(size)).collect()
    }

    fn tensor(&self, elements: &[i64]) -> Option<Tensor> {
        Tensor::new(self.dtype, self.shape.clone(), Bytes::new(self.bytes(elements)))
    }
}

impl Cases {
    /// The cases that inputs of these names make; `import` imports the model with values for them.
    pub(super) fn find(
        model: &ModelProto<'_>,
        choices: &BTreeMap<String, Few>,
        options: &ImportOptions,
        import: &dyn Fn(&ImportOptions) -> Option<Module>,
    ) -> Option<Self> {
        let inputs: Vec<CaseInput> = choices
            .iter()
            .map(|(name, &of)| CaseInput::of(&model.graph, name, of))
            .collect::<Option<_>>()?;
        let ranges = inputs.iter().flat_map(|it| vec![it.range.clone(); it.count()]);
        let ranges: Vec<Vec<i64>> = ranges.collect();
        let total = ranges.iter().try_fold(1usize, |total, range| {
            total.checked_mul(range.len()).filter(|&total| total <= MOST_VALUES)
        })?;
        if inputs.is_empty() || total.checked_mul(model.graph.node.len())? > MOST_NODES {
            return None;
        }
        let mut cases = Self { inputs, values: Vec::new() };
        let (mut known, mut result) = (HashMap::new(), None);
        for number in 0..total {
            let elements = nth(&ranges, number);
            let mut with = options.clone();
            for (input, elements) in cases.inputs.iter().zip(cases.parts(&elements)) {
                with.inputs.insert(input.name.clone(), input.tensor(elements)?);
            }
            let Some(module) = import(&with) else { continue };
            let main = module.get_str("main")?;
            let view = main.view();
            let ty = view.ty(view.root());
            // The parameters are the same, so the types of the functions are where their results are.
            if *result.get_or_insert(ty) != ty {
                return None;
            }
            let next = known.len();
            let case = *known.entry(view.structure()).or_insert(next);
            match cases.values.get_mut(case) {
                Some(values) => values.push(elements),
                None => cases.values.push(vec![elements]),
            }
            if cases.values.len() > MOST_CASES {
                return None;
            }
        }
        (!cases.values.is_empty()).then_some(cases)
    }

    /// The elements of each input.
    fn parts<'e>(&self, mut elements: &'e [i64]) -> Vec<&'e [i64]> {
        let part = |input: &CaseInput| {
            let (part, rest) = elements.split_at(input.count().min(elements.len()));
            elements = rest;
            part
        };
        self.inputs.iter().map(part).collect()
    }
}

/// The shapes that a graph declares.
fn shapes<'g, 'm>(graph: &'g GraphProto<'m>) -> impl Iterator<Item = &'g Vec<Dimension<'m>>> {
    graph.input.iter().chain(&graph.output).chain(&graph.value_info).filter_map(shape_of)
}

fn shape_of<'g, 'm>(value: &'g ValueInfoProto<'m>) -> Option<&'g Vec<Dimension<'m>>> {
    match &value.ty {
        TypeProto::Tensor { shape, .. } => shape.as_ref(),
        _ => None,
    }
}

/// A dimension that is a number.
fn extent(dimension: &Dimension<'_>) -> Option<usize> {
    match *dimension {
        Dimension::Value(value) => usize::try_from(value).ok(),
        _ => None,
    }
}

/// One value of each range, the last one changing first.
fn nth(ranges: &[Vec<i64>], mut number: usize) -> Vec<i64> {
    let mut elements = vec![0; ranges.len()];
    for (element, range) in elements.iter_mut().zip(ranges).rev() {
        *element = range[number % range.len()];
        number /= range.len();
    }
    elements
}

/// The names and values of the outputs.
pub(super) type Outputs = (Vec<String>, Vec<Value>);

impl<'m> Importer<'m> {
    /// The parameter for an input that chooses, which no node reads.
    pub(super) fn case_input(&mut self, name: &str, ty: Type) -> bool {
        let is_case = self.cases.is_some_and(|cases| cases.inputs.iter().any(|it| it.name == name));
        if is_case {
            let value = self.builder.param(name, ty);
            self.case_params.insert(name.to_owned(), value);
        }
        is_case
    }

    /// The outputs of the graph, which are those of one of its cases.
    pub(super) fn cases(&mut self, cases: &Cases, values: &Values<'m>) -> Result<Outputs, Stop> {
        let name = cases.inputs.first().map_or("", |input| &input.name);
        self.builder.begin_node(name, NodeSource::NONE);
        let broken = |problem: Problem| {
            let (node, reason) = ("the choice of what it computes".to_owned(), problem.text());
            Stop::from(GraphProblem::Node { node, reason })
        };
        let number = self.case_number(cases).map_err(broken)?;
        let mut at_least = Vec::new();
        for case in 1..=cases.values.len() {
            let bound = self.numbers(DType::I64, &[], &[case as i64]);
            at_least.push(self.asked(AT_LEAST, &[number, bound]).map_err(broken)?);
        }
        self.builder.expect(at_least[0]).map_err(broken)?;
        let last = cases.values.len() - 1;
        let mut bodies = Vec::new();
        for case in 0..last {
            self.builder.open_body();
            let (_, outputs) = self.case(cases, case, values)?;
            let body = self.builder.close_body(&outputs, outputs.len() != 1);
            bodies.push(body.map_err(broken)?);
            self.builder.open_body();
        }
        let (names, mut outputs) = self.case(cases, last, values)?;
        for (case, body) in bodies.iter().enumerate().rev() {
            self.builder.begin_node(name, NodeSource::NONE);
            let rest = self.builder.close_body(&outputs, outputs.len() != 1).map_err(broken)?;
            outputs = self.builder.choice(at_least[case + 1], &rest, body).map_err(broken)?;
        }
        Ok((names, outputs))
    }

    /// What the graph computes in one case.
    fn case(&mut self, cases: &Cases, case: usize, values: &Values<'m>) -> Result<Outputs, Stop> {
        let mut values = values.clone();
        let elements = cases.values[case].first().map_or(&[][..], |elements| elements);
        for (input, elements) in cases.inputs.iter().zip(cases.parts(elements)) {
            let found = self.model.graph.input.iter().find(|other| other.name == input.name);
            let constant = self.numbers(input.dtype, &input.shape, elements);
            if let Some(found) = found {
                values.define(found.name, constant, Definition::Input)?;
            }
        }
        self.graph(values)
    }

    /// Which case the inputs are, from 1 on.
    fn case_number(&mut self, cases: &Cases) -> Result<Value, Problem> {
        let rows: Vec<(i64, &Vec<i64>)> = (1..)
            .zip(&cases.values)
            .flat_map(|(number, values)| values.iter().map(move |elements| (number, elements)))
            .collect();
        let mut inputs = Vec::new();
        for (at, input) in cases.inputs.iter().enumerate() {
            let Some(&param) = self.case_params.get(&input.name) else { continue };
            let elements: Vec<i64> =
                rows.iter().flat_map(|(_, elements)| cases.parts(elements)[at].to_vec()).collect();
            let table = self.numbers(input.dtype, &[rows.len(), input.count()], &elements);
            inputs.extend([param, table]);
        }
        let numbers: Vec<i64> = rows.iter().map(|&(number, _)| number).collect();
        inputs.push(self.numbers(DType::I64, &[rows.len()], &numbers));
        self.asked(CASE, &inputs)
    }

    /// A constant of integers.
    fn numbers(&mut self, dtype: DType, shape: &[usize], elements: &[i64]) -> Value {
        let (name, range) = (String::new(), Vec::new());
        let input = CaseInput { name, dtype, shape: shape.to_vec(), range };
        let dims: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        let data = Bytes::new(input.bytes(elements));
        let ty = self.cx.static_tensor_type(dtype, &dims);
        self.builder.constant(Constant { ty, name: Symbol(0), data })
    }
}
