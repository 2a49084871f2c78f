//! From the calls of a graph to a module: `main`, of which some calls stand in a function of their own or in a branch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::{Argument, Grown, Known, Step, elements, of_numbers};
use crate::eval::Tensor;
use crate::infer::infer_module;
use crate::ir::{
    Attrs, Build, Context, DType, Dim, Expr, Function, Module, Transaction, Type, TypeView,
};

/// How many graphs have a part that is called, or chosen, and how many calls that has at most.
const PARTS: usize = 50;
const LONGEST: usize = 4;

/// A module, and the truth values that its choices hang on, which are its last parameters.
pub(super) struct Written {
    pub(super) module: Module,
    pub(super) conditions: Vec<bool>,
}

/// A truth value as it is given.
pub(super) fn truth(value: bool) -> Tensor {
    Tensor::from_vec_as(DType::BOOL, Vec::new(), vec![u8::from(value)])
}

/// The module of a graph, with a symbol in the place of an extent; none where it is not well typed with that, or values of
/// other sizes are of other types.
pub(super) fn module(
    graph: &mut Grown<'_>,
    results: &[usize],
    open: Option<usize>,
    sizes: &[Vec<Known>],
) -> Option<Written> {
    let types = types(graph, open)?;
    let is_of = |(known, ty): (&Known, &Type)| has_type(graph, &known.tensor, *ty);
    if !sizes.iter().all(|values| values.iter().zip(&types).all(is_of)) {
        return None;
    }
    let part = graph.random.chance(PARTS).then(|| {
        let start = graph.random.below(graph.calls.len());
        let rest = graph.calls.len() - start;
        start..start + 1 + graph.random.below(rest.min(LONGEST))
    });
    let is_choice = graph.random.chance(50);
    let is_taken = graph.random.chance(50);
    let mut module = Module::new(graph.cx.clone());
    let mut conditions = Vec::new();
    let mut writer = Writer::new(graph, &types, open);
    let mut params = writer.params(&graph.params);
    let mut bindings = Vec::new();
    let mut rest = 0..graph.calls.len();
    let part = part.map(|calls| Part::new(graph, calls, results));
    if let Some(part) = part.filter(|part| part.has_sizes(graph, &types, open)) {
        writer.calls(rest.start..part.calls.start, &mut bindings);
        rest.start = part.calls.end;
        let other = if is_choice { writer.other(&part) } else { None };
        let value = match other {
            Some(other) => {
                let ty = graph.cx.tensor_type(DType::BOOL, &[]);
                let condition = writer.tx.var("condition", Some(ty));
                params.push(condition);
                conditions.push(is_taken);
                writer.choice(&part, condition, is_taken, other)
            }
            None => {
                let function = Writer::new(graph, &types, open).part(&part);
                module.insert(graph.cx.symbol("part"), function);
                writer.part_call(&part)
            }
        };
        writer.unpack(&part, value, &mut bindings);
    }
    writer.calls(rest, &mut bindings);
    module.insert(graph.cx.symbol("main"), writer.function(&params, bindings, results));
    let is_typed = open.is_none() || infer_module(&module).is_ok();
    is_typed.then_some(Written { module, conditions })
}

/// The types of all values of a graph; none where one is not known.
fn types(graph: &Grown<'_>, open: Option<usize>) -> Option<Vec<Type>> {
    let cx = graph.cx;
    let of_tensor = |tensor: &Tensor| {
        let dims: Vec<Dim> =
            tensor.shape().iter().map(|&extent| dim(graph, open, extent)).collect();
        cx.tensor_type(tensor.dtype(), &dims)
    };
    let mut types: Vec<Type> = graph.values.iter().map(|known| of_tensor(&known.tensor)).collect();
    for Step { op, arguments, attrs, values, is_tuple } in &graph.calls {
        let given: Vec<Type> =
            arguments.iter().map(|argument| type_of(graph, open, &types, argument)).collect();
        let result = op.infer(cx, &given, *attrs).ok()?;
        match cx.terms().ty(result) {
            TypeView::Tuple(fields) if *is_tuple && fields.len() == values.len() => {
                types[values.clone()].copy_from_slice(fields);
            }
            TypeView::Tensor { .. } if !is_tuple => types[values.start] = result,
            _ => return None,
        }
    }
    Some(types)
}

/// Whether a tensor is of a type, as far as its extents are known. A symbolic axis is kept where one of extent 1 is dropped.
fn has_type(graph: &Grown<'_>, tensor: &Tensor, ty: Type) -> bool {
    let terms = graph.cx.terms();
    let TypeView::Tensor { dims: Some(dims), .. } = terms.ty(ty) else { return false };
    let is_of = |(&dim, &extent): (&Dim, &usize)| {
        terms.dim_value(dim).is_none_or(|value| value == extent as i64)
    };
    dims.len() == tensor.shape().len() && dims.iter().zip(tensor.shape()).all(is_of)
}

fn type_of(graph: &Grown<'_>, open: Option<usize>, types: &[Type], argument: &Argument) -> Type {
    match argument {
        Argument::Known(place) => types[*place],
        Argument::Own(tensor) => tensor.ty(graph.cx),
        Argument::Shape(dims) => graph.cx.shape_type(Some(&dims_of(graph, open, dims))),
        Argument::Tuple(fields) => {
            let fields: Vec<Type> =
                fields.iter().map(|field| type_of(graph, open, types, field)).collect();
            graph.cx.tuple_type(&fields)
        }
    }
}

fn dim(graph: &Grown<'_>, open: Option<usize>, extent: usize) -> Dim {
    match open {
        Some(open) if open == extent => graph.cx.dim_symbol("n"),
        _ => graph.cx.dim(extent as i64),
    }
}

fn dims_of(graph: &Grown<'_>, open: Option<usize>, dims: &[i64]) -> Vec<Dim> {
    dims.iter().map(|&extent| dim(graph, open, extent as usize)).collect()
}

/// Some calls of a graph.
struct Part {
    calls: Range<usize>,
    /// The values from before them that they read.
    given: Vec<usize>,
    /// Their values that something behind them reads.
    made: Vec<usize>,
}

impl Part {
    fn new(graph: &Grown<'_>, calls: Range<usize>, results: &[usize]) -> Self {
        let read = |calls: &[Step]| {
            let mut places = BTreeSet::new();
            calls.iter().flat_map(|step| &step.arguments).for_each(|it| add_read(it, &mut places));
            places
        };
        let inside = &graph.calls[calls.clone()];
        let own: BTreeSet<usize> = inside.iter().flat_map(|step| step.values.clone()).collect();
        let mut wanted = read(&graph.calls[calls.end..]);
        wanted.extend(results);
        let given = read(inside).difference(&own).copied().collect();
        let made = own.intersection(&wanted).copied().collect();
        Self { calls, given, made }
    }
}

impl Part {
    /// Whether what is open follows from what it is given.
    fn has_sizes(&self, graph: &Grown<'_>, types: &[Type], open: Option<usize>) -> bool {
        let symbol = open.map(|extent| dim(graph, open, extent));
        symbol.is_none_or(|symbol| {
            self.given.iter().any(|&place| {
                matches!(graph.cx.terms().ty(types[place]), TypeView::Tensor { dims: Some(dims), .. } if dims.contains(&symbol))
            })
        })
    }
}

fn add_read(argument: &Argument, places: &mut BTreeSet<usize>) {
    match argument {
        Argument::Known(place) => drop(places.insert(*place)),
        Argument::Tuple(fields) => fields.iter().for_each(|field| add_read(field, places)),
        Argument::Own(_) | Argument::Shape(_) => {}
    }
}

type Bindings = Vec<(Expr, Expr)>;

/// A function that is being written.
struct Writer<'a> {
    graph: &'a Grown<'a>,
    types: &'a [Type],
    open: Option<usize>,
    tx: Transaction,
    /// The values that are there, by their places.
    values: BTreeMap<usize, Expr>,
    names: usize,
}

impl<'a> Writer<'a> {
    fn new(graph: &'a Grown<'a>, types: &'a [Type], open: Option<usize>) -> Self {
        let tx = Transaction::new(graph.cx.clone());
        Self { graph, types, open, tx, values: BTreeMap::new(), names: 0 }
    }

    fn params(&mut self, places: &[usize]) -> Vec<Expr> {
        let param = |(number, &place): (usize, &usize)| {
            let var = self.tx.var(&format!("x{number}"), Some(self.types[place]));
            self.values.insert(place, var);
            var
        };
        places.iter().enumerate().map(param).collect()
    }

    fn calls(&mut self, calls: Range<usize>, bindings: &mut Bindings) {
        let graph = self.graph;
        for Step { op, arguments, attrs, values, is_tuple } in &graph.calls[calls] {
            let operands: Vec<Expr> = arguments.iter().map(|it| self.operand(it)).collect();
            let call = self.tx.call_op(op.name, &operands, *attrs);
            let var = self.bound(call, bindings);
            match is_tuple {
                true => self.items(values.clone(), var, bindings),
                false => drop(self.values.insert(values.start, var)),
            }
        }
    }

    /// Binds the items of a tuple, which are the values of these places.
    fn items(&mut self, places: impl Iterator<Item = usize>, tuple: Expr, bindings: &mut Bindings) {
        for (place, index) in places.zip(0..) {
            let item = self.tx.tuple_get_item(tuple, index);
            let var = self.bound(item, bindings);
            self.values.insert(place, var);
        }
    }

    fn bound(&mut self, value: Expr, bindings: &mut Bindings) -> Expr {
        let var = self.tx.var(&format!("v{}", self.names), None);
        self.names += 1;
        bindings.push((var, value));
        var
    }

    fn operand(&mut self, argument: &Argument) -> Expr {
        match argument {
            Argument::Known(place) => self.values[place],
            Argument::Shape(dims) => {
                let dims = dims_of(self.graph, self.open, dims);
                self.tx.shape(&dims)
            }
            Argument::Tuple(fields) => {
                let fields: Vec<Expr> = fields.iter().map(|field| self.operand(field)).collect();
                self.tx.tuple(&fields)
            }
            Argument::Own(tensor) => self.tx.constant(tensor.ty(self.graph.cx), tensor.bytes()),
        }
    }

    /// Bindings, and a tuple of some values behind them.
    fn scope(&mut self, bindings: Bindings, results: &[usize]) -> Expr {
        let fields: Vec<Expr> = results.iter().map(|place| self.values[place]).collect();
        let tuple = self.tx.tuple(&fields);
        self.tx.let_blocks(&[(false, bindings)], tuple)
    }

    fn function(mut self, params: &[Expr], bindings: Bindings, results: &[usize]) -> Arc<Function> {
        let body = self.scope(bindings, results);
        let function = self.tx.function(params, body, None, Attrs::NONE);
        self.tx.set_root(function);
        self.tx.publish().expect("operands are nodes of this body")
    }

    /// A part as a function of what it is given.
    fn part(mut self, part: &Part) -> Arc<Function> {
        let params = self.params(&part.given);
        let mut bindings = Vec::new();
        self.calls(part.calls.clone(), &mut bindings);
        self.function(&params, bindings, &part.made)
    }

    fn part_call(&mut self, part: &Part) -> Expr {
        let args: Vec<Expr> = part.given.iter().map(|place| self.values[place]).collect();
        let callee = self.tx.global("part");
        self.tx.call(callee, &args, Attrs::NONE, None)
    }

    /// What a part makes, which a tuple holds.
    fn unpack(&mut self, part: &Part, value: Expr, bindings: &mut Bindings) {
        let tuple = self.bound(value, bindings);
        self.items(part.made.iter().copied(), tuple, bindings);
    }

    /// What stands in the place of a part that is not chosen: values of the same types that are there, or ones.
    fn other(&mut self, part: &Part) -> Option<Expr> {
        let of_place = |&place: &usize| {
            let ty = self.types[place];
            let there = self.values.iter().rev().find(|(other, _)| self.types[**other] == ty);
            if let Some((_, &there)) = there {
                return Some(there);
            }
            let (dtype, shape) = self.graph.cx.terms().static_tensor(ty)?;
            let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
            let ones = of_numbers(dtype, &shape, &vec![1.0; elements(&shape)])?;
            Some(self.tx.constant(ty, ones.bytes()))
        };
        let fields: Vec<Expr> = part.made.iter().map(of_place).collect::<Option<_>>()?;
        Some(self.tx.tuple(&fields))
    }

    /// A choice of which a part is one branch, and something else of its type the other one.
    fn choice(&mut self, part: &Part, condition: Expr, is_taken: bool, other: Expr) -> Expr {
        let around = self.values.clone();
        let mut bindings = Vec::new();
        self.calls(part.calls.clone(), &mut bindings);
        let branch = self.scope(bindings, &part.made);
        self.values = around;
        match is_taken {
            true => self.tx.if_else(condition, branch, other),
            false => self.tx.if_else(condition, other, branch),
        }
    }
}
