//! Graphs of calls over all operators that there are, driven by what they say of themselves: how many arguments they take,
//! which attributes, and which of them have a type.
//!
//! A graph grows call by call, as in J. Liu et al., "NNSmith: Generating diverse and valid test cases for deep learning
//! compilers", ASPLOS 2023. Arguments are values that are there, inputs or constants; attributes are drawn within their
//! bounds; what has no type is dropped, and so is what has no value, a large one, or too many elements.
//!
//! What is compiled may round otherwise than the evaluation. So each value has two twins that are computed of the twins of
//! what it was computed of and moved by some roundings in opposite directions. A call whose integers and truth values
//! differ between them is dropped, and one whose floats differ by much; how far they are apart says how far a result may
//! be off.
//!
//! Some graphs have an extent that is open, and are computed again for other sizes. Some of their calls stand in a function of
//! their own, or in a branch of a choice.

mod numbers;
mod write;

use std::ops::Range;
use std::sync::Arc;

use super::Random;
use crate::eval::{Tensor, results_of};
use crate::ir::{AttrValue, Attrs, Context, Cx, DType, Module, OpDef, Type, TypeView};
use crate::ops::{AttrDef, AttrDefault, AttrKind, OpEffect};
pub use numbers::numbers_of;
use numbers::{of_numbers, precision};

/// Elements of a value, at most.
const ELEMENTS: usize = 2048;
/// How large a value may be.
const LARGEST: f64 = 1e4;
/// Draws for a call.
const DRAWS: usize = 60;
/// Values of which the newest are taken more often.
const RECENT: usize = 5;
const EXTENTS: [usize; 10] = [1, 1, 2, 3, 4, 4, 5, 8, 9, 17];
/// How many graphs have an extent that is open, if that is possible.
const OPEN: usize = 40;
const FRESH: [DType; 13] = [
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I8,
    DType::U8,
    DType::BOOL,
];

/// A module with a function `main`, what it is given, and what it should give.
pub struct Drawn {
    /// The module. Its types are left to inference.
    pub module: Module,
    /// A call of `main`, and others with another extent in the place of one, where that is open.
    pub runs: Vec<Run>,
    /// The operators that are called.
    pub operators: Vec<&'static str>,
}

/// A call of `main`.
pub struct Run {
    /// The arguments.
    pub inputs: Vec<Tensor>,
    /// The results, one for each field of the tuple that `main` gives, and how far each may be off.
    pub results: Vec<(Tensor, f64)>,
}

/// The graph of a seed, of at most so many calls; none where no draw had a value. The results of operators in `cancelling` come of
/// differences of numbers of a size, which roundings of those move.
pub fn random_calls(cx: &Cx, seed: u64, calls: usize, cancelling: &[(&str, f64)]) -> Option<Drawn> {
    let computing = |name: String| {
        let op = cx.operators().find(&name).filter(|op| op.name == name)?;
        (op.effect == OpEffect::None && op.evaluation().is_some()).then_some(op)
    };
    let operators = cx.operators().names().into_iter().filter_map(computing).collect();
    let mut random = Random::new(seed);
    let is_open = random.chance(OPEN);
    let mut grown = Grown {
        cx,
        cancelling,
        random,
        is_open,
        values: Vec::new(),
        params: Vec::new(),
        calls: Vec::new(),
    };
    grown.grow(operators, calls);
    grown.finish()
}

/// A value of the graph.
#[derive(Clone)]
struct Known {
    tensor: Tensor,
    twins: [Tensor; 2],
    is_read: bool,
    is_computed: bool,
}

/// A call of the graph, which makes the values of some places.
struct Step {
    op: Arc<OpDef>,
    arguments: Vec<Argument>,
    attrs: Attrs,
    values: Range<usize>,
    is_tuple: bool,
}

/// A graph that grows.
struct Grown<'a> {
    cx: &'a Cx,
    cancelling: &'a [(&'a str, f64)],
    random: Random,
    /// Whether an extent shall be open.
    is_open: bool,
    values: Vec<Known>,
    /// The places of the values that are given.
    params: Vec<usize>,
    calls: Vec<Step>,
}

/// An argument: a value that is there, by its place, or a tensor of its own.
#[derive(Clone)]
enum Argument {
    Known(usize),
    Own(Tensor),
    Tuple(Vec<Argument>),
    Shape(Vec<i64>),
}

/// A number in the place of an extent.
#[derive(Clone, Copy)]
struct Resized {
    extent: usize,
    size: usize,
}

/// What a call gives, with the twins, and whether it is a tuple.
type Results = (Vec<(Tensor, [Tensor; 2])>, bool);

impl Grown<'_> {
    fn grow(&mut self, operators: Vec<Arc<OpDef>>, calls: usize) {
        for _ in 0..4 * calls {
            if self.calls.len() == calls || operators.is_empty() {
                return;
            }
            let op = self.random.pick(&operators);
            for _ in 0..DRAWS {
                if self.call(&op).is_some() {
                    break;
                }
            }
        }
    }

    /// Draws a call; none where it is not fit for the graph.
    fn call(&mut self, op: &Arc<OpDef>) -> Option<()> {
        let arguments = self.arguments(op);
        let attrs = self.attributes(op);
        let values = std::mem::take(&mut self.values);
        let results = self.results(op, &arguments, attrs, &values);
        self.values = values;
        let (results, is_tuple) = results?;
        let arguments: Vec<Argument> = arguments.into_iter().map(|it| self.kept(it)).collect();
        let first = self.values.len();
        let known = |(tensor, twins)| Known { tensor, twins, is_read: false, is_computed: true };
        self.values.extend(results.into_iter().map(known));
        let values = first..self.values.len();
        self.calls.push(Step { op: op.clone(), arguments, attrs, values, is_tuple });
        Some(())
    }

    /// What a call gives for some values; none where that is not fit for the graph.
    fn results(
        &mut self,
        op: &OpDef,
        arguments: &[Argument],
        attrs: Attrs,
        values: &[Known],
    ) -> Option<Results> {
        let types: Vec<Type> = arguments.iter().map(|it| self.type_of(it, values)).collect();
        let result = op.infer(self.cx, &types, attrs).ok()?;
        let is_tuple = matches!(self.cx.terms().ty(result), TypeView::Tuple(_));
        let outs = tensors_of(self.cx, result)?;
        if outs.iter().any(|(_, shape)| !(1..=ELEMENTS).contains(&elements(shape))) {
            return None;
        }
        let evaluate = |twin: Option<usize>| {
            let mut tensors = Vec::new();
            arguments.iter().for_each(|it| tensors_in(it, twin, values, &mut tensors));
            op.evaluation()?.evaluate(self.cx, &tensors, attrs, &outs).ok()
        };
        let (plain, up, down) = (evaluate(None)?, evaluate(Some(0))?, evaluate(Some(1))?);
        let of_op = self.cancelling.iter().find(|(name, _)| *name == op.name);
        let least = of_op.map_or(0.0, |&(_, size)| size);
        let mut known = Vec::new();
        for ((tensor, up), down) in plain.into_iter().zip(up).zip(down) {
            let twins = self.moved(&tensor, [up, down], least)?;
            known.push((tensor, twins));
        }
        Some((known, is_tuple))
    }

    /// An argument of a call that is part of the graph; a tensor of its own becomes a parameter or a constant.
    fn kept(&mut self, argument: Argument) -> Argument {
        match argument {
            Argument::Known(place) => self.values[place].is_read = true,
            Argument::Shape(_) => {}
            Argument::Tuple(fields) => {
                return Argument::Tuple(fields.into_iter().map(|it| self.kept(it)).collect());
            }
            Argument::Own(tensor) => {
                if self.random.chance(if self.is_open { 10 } else { 35 }) {
                    return Argument::Own(tensor);
                }
                let place = self.values.len();
                self.params.push(place);
                let twins = [tensor.clone(), tensor.clone()];
                self.values.push(Known { tensor, twins, is_read: true, is_computed: false });
                return Argument::Known(place);
            }
        }
        argument
    }

    fn type_of(&self, argument: &Argument, values: &[Known]) -> Type {
        match argument {
            Argument::Known(place) => values[*place].tensor.ty(self.cx),
            Argument::Own(tensor) => tensor.ty(self.cx),
            Argument::Shape(dims) => {
                let dims: Vec<_> = dims.iter().map(|&extent| self.cx.dim(extent)).collect();
                self.cx.shape_type(Some(&dims))
            }
            Argument::Tuple(fields) => {
                let fields: Vec<Type> = fields.iter().map(|it| self.type_of(it, values)).collect();
                self.cx.tuple_type(&fields)
            }
        }
    }

    /// Arguments, as many as the operator takes, of which most are alike.
    fn arguments(&mut self, op: &OpDef) -> Vec<Argument> {
        let most = op.args.max.unwrap_or(op.args.min + 2);
        let count = op.args.min + self.random.below(most - op.args.min + 1);
        let (dtype, shape) = self.like();
        (0..count).map(|_| self.argument(dtype, &shape)).collect()
    }

    /// A type and a shape for the arguments of a call: those of a value that is there, more often than not.
    fn like(&mut self) -> (DType, Vec<usize>) {
        if !self.values.is_empty() && self.random.chance(85) {
            let place = self.recent();
            let tensor = &self.values[place].tensor;
            return (tensor.dtype(), tensor.shape().to_vec());
        }
        let rank = self.random.below(5);
        let shape = (0..rank).map(|_| self.random.pick(&EXTENTS)).collect();
        (self.random.pick(&FRESH), shape)
    }

    fn recent(&mut self) -> usize {
        let count = self.values.len();
        match self.random.chance(70) {
            true => count - 1 - self.random.below(count.min(RECENT)),
            false => self.random.below(count),
        }
    }

    fn argument(&mut self, dtype: DType, shape: &[usize]) -> Argument {
        match self.random.below(20) {
            0 => return Argument::Shape(shape.iter().map(|&extent| extent as i64).collect()),
            1 => {
                let fields = 1 + self.random.below(3);
                return Argument::Tuple((0..fields).map(|_| self.tensor(dtype, shape)).collect());
            }
            _ => {}
        }
        let (mut dtype, mut own) = (dtype, shape.to_vec());
        if self.random.chance(15) {
            dtype = self.random.pick(&FRESH);
        }
        match self.random.below(10) {
            0 if !own.is_empty() => own.truncate(1),
            1 if !own.is_empty() => drop(own.remove(0)),
            2 => own.reverse(),
            3 => own.clear(),
            4 | 5 if !own.is_empty() => {
                // Another extent, 1 most of all: rows of a product, channels of a window.
                let axis = self.random.below(own.len());
                own[axis] = self.random.pick(&EXTENTS);
            }
            6 if own.len() > 1 => {
                // Kernels: channels, and a small window.
                let window = 1 + self.random.below(3);
                own = [self.random.pick(&EXTENTS), own[1]].into_iter().collect();
                own.extend(vec![window; shape.len() - 2]);
            }
            _ => {}
        }
        self.tensor(dtype, &own)
    }

    /// A value of that type, or a tensor of its own.
    fn tensor(&mut self, dtype: DType, shape: &[usize]) -> Argument {
        let fitting: Vec<usize> = (0..self.values.len())
            .filter(|&place| {
                let tensor = &self.values[place].tensor;
                tensor.dtype() == dtype && tensor.shape() == shape
            })
            .collect();
        match fitting.is_empty() || self.random.chance(25) {
            true => Argument::Own(self.numbers(dtype, shape)),
            false => {
                let last = fitting.len() - 1;
                let place = if self.random.chance(60) { last } else { self.random.below(last + 1) };
                Argument::Known(fitting[place])
            }
        }
    }

    /// Small numbers: floats are multiples of 1/8, so that sums of products are exact in any order.
    fn numbers(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        let low = if self.random.chance(30) { 0.0 } else { -2.0 };
        let numbers: Vec<f64> = (0..elements(shape))
            .map(|_| match dtype {
                DType::BOOL => f64::from(self.random.chance(50)),
                dtype if dtype.is_float() => low + self.random.below(33) as f64 / 8.0,
                DType::U8 => self.random.below(5) as f64,
                _ if low < 0.0 => self.random.below(5) as f64 - 1.0,
                _ => self.random.below(3) as f64,
            })
            .collect();
        of_numbers(dtype, shape, &numbers).expect("all types that are drawn are known")
    }

    /// The twins of a result, moved by roundings of numbers of that size at least; none where it is too large, or hangs on roundings.
    fn moved(&mut self, tensor: &Tensor, twins: [Tensor; 2], least: f64) -> Option<[Tensor; 2]> {
        if !tensor.dtype().is_float() {
            let is_same = |twin: &Tensor| twin.bytes()[..] == tensor.bytes()[..];
            return twins.iter().all(is_same).then_some(twins);
        }
        let plain = numbers_of(tensor)?;
        let largest = plain.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        if !plain.iter().all(|x| x.is_finite()) || largest > LARGEST {
            return None;
        }
        let (rounding, allowed) = precision(tensor.dtype())?;
        let signs: Vec<f64> =
            plain.iter().map(|_| if self.random.chance(50) { 1.0 } else { -1.0 }).collect();
        let mut moved = Vec::new();
        for (twin, direction) in twins.iter().zip([1.0, -1.0]) {
            let values: Vec<f64> = numbers_of(twin)?
                .iter()
                .zip(&signs)
                .map(|(x, sign)| x + direction * sign * rounding * (x.abs() + largest.max(least)))
                .collect();
            let allowed = allowed * largest.max(1e-3);
            // What is no number in a twin, as an angle just beyond 1, is not near.
            let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < allowed;
            if !values.iter().zip(&plain).all(is_near) {
                return None;
            }
            moved.push(of_numbers(tensor.dtype(), tensor.shape(), &values)?);
        }
        moved.try_into().ok()
    }

    /// Attributes: all that must be given, and others now and then.
    fn attributes(&mut self, op: &OpDef) -> Attrs {
        let mut attrs = Attrs::NONE;
        for attr in op.attrs {
            let is_needed = attr.default == AttrDefault::Required;
            let is_given = is_needed || self.random.chance(30);
            if let Some(value) = is_given.then(|| self.attribute(attr, is_needed)).flatten() {
                attrs = self.cx.with_attr(attrs, attr.name, value);
            }
        }
        attrs
    }

    fn attribute(&mut self, attr: &AttrDef, is_needed: bool) -> Option<AttrValue> {
        let (low, high) = (attr.bounds.min.unwrap_or(-1.0), attr.bounds.max.unwrap_or(4.0));
        let (low, high) = (low.max(-3.0), high.min(low.max(-3.0) + 5.0));
        let whole = |random: &mut Random| {
            low.ceil() as i64 + random.below((high - low) as usize + 1) as i64
        };
        Some(match attr.kind {
            AttrKind::Int => whole(&mut self.random).into(),
            AttrKind::Float => (low + self.random.below(9) as f64 / 8.0 * (high - low)).into(),
            AttrKind::Bool => self.random.chance(50).into(),
            AttrKind::Ints => {
                let count = self.random.below(5);
                let is_axes = self.random.chance(40);
                let mut items: Vec<i64> = (0..count).map(|_| whole(&mut self.random)).collect();
                if is_axes {
                    items.sort_unstable();
                    items.dedup();
                }
                items.into()
            }
            AttrKind::Str if !attr.bounds.one_of.is_empty() => {
                self.random.pick(attr.bounds.one_of).into()
            }
            AttrKind::Str => {
                let texts = ["f32", "f64", "f16", "i64", "i32", "u8", "bool", "NHWC", "OHWI", ""];
                self.random.pick(&texts).into()
            }
            AttrKind::Type => {
                let dtype = self.random.pick(&FRESH);
                self.cx.static_tensor_type(dtype, &[2]).into()
            }
            AttrKind::Any if is_needed => 1i64.into(),
            AttrKind::Any => return None,
        })
    }

    /// The module, once there is a call.
    fn finish(mut self) -> Option<Drawn> {
        let of_kind = |is_read: bool| -> Vec<usize> {
            let is_fit = |place: &usize| {
                let known = &self.values[*place];
                known.is_computed && known.is_read == is_read
            };
            (0..self.values.len()).filter(is_fit).collect()
        };
        let (mut results, read) = (of_kind(false), of_kind(true));
        for _ in 0..self.random.below(3).min(read.len()) {
            results.push(self.random.pick(&read));
        }
        if results.is_empty() {
            return None;
        }
        let (written, sizes) = match self.opened(&results) {
            Some(opened) => opened,
            None => (write::module(&mut self, &results, None, &[])?, Vec::new()),
        };
        let all = std::iter::once(&self.values).chain(&sizes);
        let runs = all.map(|values| Run {
            inputs: self
                .params
                .iter()
                .map(|&place| values[place].tensor.clone())
                .chain(written.conditions.iter().map(|&it| write::truth(it)))
                .collect(),
            results: results
                .iter()
                .map(|&place| (values[place].tensor.clone(), apart(&values[place]).unwrap_or(0.0)))
                .collect(),
        });
        Some(Drawn {
            module: written.module,
            runs: runs.collect(),
            operators: self.calls.iter().map(|step| step.op.name).collect(),
        })
    }

    /// The graph with an extent that is open, and its values for other sizes; none where it shall have no such one, or cannot.
    fn opened(&mut self, results: &[usize]) -> Option<(write::Written, Vec<Vec<Known>>)> {
        let shapes = self.params.iter().map(|&place| self.values[place].tensor.shape());
        let extents: Vec<usize> = shapes.flatten().copied().filter(|&extent| extent > 1).collect();
        if !self.is_open || extents.is_empty() {
            return None;
        }
        let extent = self.random.pick(&extents);
        let others: Vec<usize> =
            [1, 2, 3, 6, 7, 11, 16].into_iter().filter(|&it| it != extent).collect();
        let mut sizes = Vec::new();
        for _ in 0..2 {
            let size = self.random.pick(&others);
            sizes.push(self.resized(Resized { extent, size })?);
        }
        Some((write::module(self, results, Some(extent), &sizes)?, sizes))
    }

    /// All values, computed of others of another size.
    fn resized(&mut self, resized: Resized) -> Option<Vec<Known>> {
        let mut values = self.values.clone();
        for place in self.params.clone() {
            let tensor = &values[place].tensor;
            let shape: Vec<usize> = tensor.shape().iter().map(|&it| resized.of(it)).collect();
            let tensor = match shape[..] == *tensor.shape() {
                true => tensor.clone(),
                false => self.numbers(tensor.dtype(), &shape),
            };
            values[place].twins = [tensor.clone(), tensor.clone()];
            values[place].tensor = tensor;
        }
        let calls = std::mem::take(&mut self.calls);
        let is_fit = calls.iter().all(|step| {
            let arguments: Vec<Argument> =
                step.arguments.iter().map(|it| resized.argument(it)).collect();
            let Some((results, _)) = self.results(&step.op, &arguments, step.attrs, &values) else {
                return false;
            };
            for (place, (tensor, twins)) in step.values.clone().zip(results) {
                (values[place].tensor, values[place].twins) = (tensor, twins);
            }
            true
        });
        self.calls = calls;
        is_fit.then_some(values)
    }
}

impl Resized {
    fn of(self, extent: usize) -> usize {
        if extent == self.extent { self.size } else { extent }
    }

    fn argument(self, argument: &Argument) -> Argument {
        match argument {
            Argument::Shape(dims) => {
                Argument::Shape(dims.iter().map(|&dim| self.of(dim as usize) as i64).collect())
            }
            other => other.clone(),
        }
    }
}

/// The tensors of an argument, or those of a twin.
fn tensors_in(
    argument: &Argument,
    twin: Option<usize>,
    values: &[Known],
    tensors: &mut Vec<Tensor>,
) {
    let of_place = |place: usize| {
        let known = &values[place];
        twin.map_or(&known.tensor, |twin| &known.twins[twin]).clone()
    };
    match argument {
        Argument::Known(place) => tensors.push(of_place(*place)),
        Argument::Own(tensor) => tensors.push(tensor.clone()),
        Argument::Shape(dims) => tensors.push(Tensor::from_vec(vec![dims.len()], dims.clone())),
        // Tuples hold no tuples.
        Argument::Tuple(fields) => fields.iter().for_each(|it| match it {
            Argument::Known(place) => tensors.push(of_place(*place)),
            Argument::Own(tensor) => tensors.push(tensor.clone()),
            Argument::Tuple(_) | Argument::Shape(_) => {}
        }),
    }
}

/// How far the twins of a value are from it.
fn apart(known: &Known) -> Option<f64> {
    let plain = numbers_of(&known.tensor)?;
    let mut most = 0.0f64;
    for twin in &known.twins {
        let off = numbers_of(twin)?.into_iter().zip(&plain).map(|(a, b)| (a - b).abs());
        most = off.fold(most, f64::max);
    }
    Some(most)
}

fn elements(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// The tensors of a type; none of what a graph of tensors cannot go on with.
fn tensors_of(cx: &Cx, ty: Type) -> Option<Vec<(DType, Vec<usize>)>> {
    let terms = cx.terms();
    let is_tensor = |ty: Type| terms.static_tensor(ty).is_some();
    let is_fit = match terms.ty(ty) {
        TypeView::Tuple(fields) => fields.iter().all(|&field| is_tensor(field)),
        _ => is_tensor(ty),
    };
    let outs = results_of(terms, ty).filter(|_| is_fit)?;
    let is_known = |dtype: DType| dtype.is_float() == precision(dtype).is_some();
    outs.iter().all(|(dtype, _)| is_known(*dtype)).then_some(outs)
}
