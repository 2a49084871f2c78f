//! The kernels of a module that returns what each gives.

use std::collections::HashMap;
use std::ops::Range;

use super::grain::Grain;
use crate::eval::Tensor;
use crate::ir::{
    BodyView, ConstantView, Context, Cx, Expr, Function, Kind, LetView, Module, SourcePart, View,
};

/// A result of a call.
pub(super) struct Kernel {
    /// The program that is called.
    pub(super) program: String,
    /// Which of its results.
    pub(super) field: usize,
    /// The nodes of the model that it came from, and the same as a text.
    pub(super) nodes: Vec<String>,
    pub(super) came_from: String,
    pub(super) args: Vec<Argument>,
}

/// What the function binds.
pub(super) struct Step {
    /// Its results that are returned; none of what is no call.
    pub(super) kernels: Range<usize>,
    /// The steps that it reads.
    pub(super) reads: Vec<usize>,
    /// What its numbers, or any that it reads, were rounded to.
    pub(super) grain: Grain,
}

/// What a kernel is given.
pub(super) enum Argument {
    /// A parameter of the function, by its number.
    Input(usize),
    /// What another one gave.
    Kernel(usize),
    Constant(Tensor),
    /// A part of something.
    Unknown,
}

/// All that are returned, in the order of the results.
#[derive(Default)]
pub(super) struct Kernels {
    pub(super) all: Vec<Kernel>,
    /// All bindings, in order.
    pub(super) steps: Vec<Step>,
    /// The steps that each of the function's own results reads, as far as they are told apart.
    outputs: Vec<Vec<usize>>,
    /// How many results came from the same nodes.
    of_nodes: HashMap<Vec<String>, usize>,
}

/// The bindings of a function.
pub(super) fn bindings_of(function: &Function) -> Option<LetView<'_>> {
    let body = function.view();
    let View::Function { body: value, .. } = body.view(body.root()) else { return None };
    match body.view(value) {
        View::Let(bindings) => Some(bindings),
        _ => None,
    }
}

/// What a function returns behind its results: for each the variable, and which part of it.
pub(super) fn returned(function: &Function) -> Vec<(Expr, usize)> {
    let body = function.view();
    let Some(bindings) = bindings_of(function) else {
        return Vec::new();
    };
    let values: HashMap<Expr, Expr> = bindings.bindings().collect();
    let resolved = |expr: Expr| {
        let mut at = expr;
        while let Some(&value) = values.get(&at) {
            match body.kind(value) {
                Kind::CALL => break,
                _ => at = value,
            }
        }
        at
    };
    let View::Tuple(fields) = body.view(resolved(bindings.result())) else { return Vec::new() };
    let field = |field: Expr| match body.view(resolved(field)) {
        View::TupleGetItem { tuple, index } => (resolved(tuple), index),
        _ => (resolved(field), 0),
    };
    fields.iter().skip(1).map(field).collect()
}

/// The names of what a node came from.
pub(super) fn nodes_of(cx: &Cx, body: BodyView<'_>, expr: Expr) -> Vec<String> {
    let (parts, _) = body.source(expr).parts(cx.terms());
    let name = |part: &SourcePart<'_>| match *part {
        SourcePart::Name { name, .. } => Some(name.to_owned()),
        SourcePart::Place(place) => cx.place_text(place),
    };
    parts.iter().filter_map(name).collect()
}

impl Kernels {
    /// The kernels of a module, in which numbers are no finer than `least`.
    pub(super) fn of(module: &Module, least: Grain) -> Self {
        let Some(function) = module.get_str("main") else { return Self::default() };
        let (cx, body) = (module.cx(), function.view());
        let Some(bindings) = bindings_of(function) else {
            return Self::default();
        };
        let values: HashMap<Expr, Expr> = bindings.bindings().collect();
        let returned = returned(function);
        let numbers: HashMap<(Expr, usize), usize> =
            returned.iter().copied().enumerate().map(|(at, each)| (each, at)).collect();
        let params = function.params();
        let params = params.into_iter().enumerate().map(|(at, param)| (param, at)).collect();
        let known = Known { function, values: &values, params, numbers };
        let mut made = Self::default();
        let mut steps: HashMap<Expr, usize> = HashMap::new();
        let mut grains: HashMap<String, Grain> = HashMap::new();
        let reads = |steps: &HashMap<Expr, usize>, expr: Expr| -> Vec<usize> {
            below(body, expr).into_iter().filter_map(|at| steps.get(&at).copied()).collect()
        };
        for (var, value) in bindings.bindings() {
            let first = made.all.len();
            let (program, args) = call_of(body, value);
            let own = *grains
                .entry(program.clone())
                .or_insert_with(|| Grain::of_program(module, &program).max(least));
            let fields = (0..).take_while(|&field| known.numbers.contains_key(&(var, field)));
            for field in fields {
                made.all.push(Kernel {
                    program: program.clone(),
                    field,
                    nodes: nodes_of(cx, body, value),
                    came_from: cx.source_text(body.source(value)),
                    args: args.iter().map(|&arg| known.argument(arg)).collect(),
                });
            }
            let kernels = first..made.all.len();
            let reads = reads(&steps, value);
            let grain = reads.iter().map(|&step| made.steps[step].grain).fold(own, Grain::max);
            made.steps.push(Step { kernels, reads, grain });
            steps.insert(var, made.steps.len() - 1);
        }
        for kernel in &made.all {
            *made.of_nodes.entry(kernel.nodes.clone()).or_default() += 1;
        }
        let definition = |expr: Expr| values.get(&expr).copied().unwrap_or(expr);
        if let View::Tuple(fields) = body.view(definition(bindings.result()))
            && let Some(own) = fields.get(0)
        {
            let own = match body.view(definition(own)) {
                View::Tuple(fields) => fields.to_vec(),
                _ => vec![own],
            };
            made.outputs = own.into_iter().map(|own| reads(&steps, own)).collect();
        }
        made
    }

    /// How many results came from these nodes.
    pub(super) fn of_nodes(&self, nodes: &[String]) -> usize {
        self.of_nodes.get(nodes).copied().unwrap_or_default()
    }

    /// What the numbers of a result were rounded to.
    pub(super) fn grain_of_output(&self, at: usize) -> Grain {
        let steps = self.of_outputs(&[at]);
        steps.into_iter().map(|step| self.steps[step].grain).max().unwrap_or_default()
    }

    /// The steps that some of the results read.
    pub(super) fn of_outputs(&self, wanted: &[usize]) -> Vec<usize> {
        let is_told = wanted.iter().all(|&at| at < self.outputs.len());
        let wanted = |at: &usize| !is_told || wanted.contains(at);
        (0..self.outputs.len()).filter(wanted).flat_map(|at| self.outputs[at].clone()).collect()
    }
}

/// The variables that an expression without bindings reads.
fn below(body: BodyView<'_>, root: Expr) -> Vec<Expr> {
    let (mut found, mut waiting) = (Vec::new(), vec![root]);
    while let Some(expr) = waiting.pop() {
        match body.kind(expr) {
            Kind::VAR => found.push(expr),
            _ => waiting.extend(body.operands(expr).iter()),
        }
    }
    found
}

/// The program that a call runs, and its arguments.
fn call_of(body: BodyView<'_>, value: Expr) -> (String, Vec<Expr>) {
    let View::Call { callee, args, .. } = body.view(value) else { return Default::default() };
    let name = |expr: Expr| match body.view(expr) {
        View::Global { name } | View::Op { name } => body.terms().str(name).to_owned(),
        _ => String::new(),
    };
    let args = args.to_vec();
    match (body.view(callee), args.split_first()) {
        (View::Op { .. }, Some((&program, rest))) if body.kind(program) == Kind::GLOBAL => {
            (name(program), rest.to_vec())
        }
        _ => (name(callee), args),
    }
}

/// What expressions of a function stand for.
struct Known<'a> {
    function: &'a Function,
    values: &'a HashMap<Expr, Expr>,
    params: HashMap<Expr, usize>,
    numbers: HashMap<(Expr, usize), usize>,
}

impl Known<'_> {
    fn argument(&self, expr: Expr) -> Argument {
        let body = self.function.view();
        let kernel = |of: Expr, field: usize| self.numbers.get(&(of, field)).copied();
        let mut at = expr;
        loop {
            if let Some(number) = kernel(at, 0) {
                return Argument::Kernel(number);
            }
            if let Some(&number) = self.params.get(&at) {
                return Argument::Input(number);
            }
            match (body.view(at), self.values.get(&at)) {
                (View::Constant(constant), _) => {
                    return self.constant(constant).map_or(Argument::Unknown, Argument::Constant);
                }
                (View::TupleGetItem { tuple, index }, _) => {
                    return kernel(tuple, index).map_or(Argument::Unknown, Argument::Kernel);
                }
                (_, Some(&value)) if body.kind(value) != Kind::CALL => at = value,
                _ => return Argument::Unknown,
            }
        }
    }

    fn constant(&self, constant: ConstantView<'_>) -> Option<Tensor> {
        let (dtype, shape) = self.function.view().terms().static_tensor(constant.ty)?;
        let shape = shape.into_iter().map(|extent| extent as usize).collect();
        let data = self.function.constants().get(constant.index as usize)?.data.clone();
        Tensor::new(dtype, shape, data)
    }
}
