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

use std::sync::Arc;

use half::{bf16, f16};

use super::Random;
use crate::eval::{Tensor, results_of};
use crate::ir::{
    AttrValue, Attrs, Build, Context, Cx, DType, Expr, Module, OpDef, Transaction, Type, TypeView,
};
use crate::ops::{AttrDef, AttrDefault, AttrKind, OpEffect};

/// Elements of a value, at most.
const ELEMENTS: usize = 2048;
/// How large a value may be.
const LARGEST: f64 = 1e4;
/// Draws for a call.
const DRAWS: usize = 60;
/// Values of which the newest are taken more often.
const RECENT: usize = 5;
const EXTENTS: [usize; 10] = [1, 1, 2, 3, 4, 4, 5, 8, 9, 17];
const FRESH: [DType; 12] = [
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::F16,
    DType::I64,
    DType::I32,
    DType::I8,
    DType::U8,
    DType::BOOL,
];

/// A module with one function `main`, what it is given, and what it should give.
pub struct Drawn {
    /// The module. Its types are left to inference.
    pub module: Module,
    /// The arguments of `main`.
    pub inputs: Vec<Tensor>,
    /// The results, one for each field of the tuple that `main` gives, and how far each may be off.
    pub results: Vec<(Tensor, f64)>,
    /// The operators that are called.
    pub operators: Vec<&'static str>,
}

/// The graph of a seed, of at most so many calls; none where no draw had a value.
pub fn random_calls(cx: &Cx, seed: u64, calls: usize) -> Option<Drawn> {
    let computing = |name: String| {
        let op = cx.operators().find(&name).filter(|op| op.name == name)?;
        (op.effect == OpEffect::None && op.evaluation().is_some()).then_some(op)
    };
    let operators = cx.operators().names().into_iter().filter_map(computing).collect();
    let mut writer = Writer {
        cx,
        random: Random::new(seed),
        tx: Transaction::new(cx.clone()),
        values: Vec::new(),
        params: Vec::new(),
        bindings: Vec::new(),
        called: Vec::new(),
    };
    writer.grow(operators, calls);
    writer.finish()
}

/// A value of the graph.
#[derive(Clone)]
struct Known {
    expr: Expr,
    tensor: Tensor,
    twins: [Tensor; 2],
    is_read: bool,
    is_computed: bool,
}

struct Writer<'a> {
    cx: &'a Cx,
    random: Random,
    tx: Transaction,
    values: Vec<Known>,
    params: Vec<(Expr, Tensor)>,
    bindings: Vec<(Expr, Expr)>,
    called: Vec<&'static str>,
}

/// An argument: a value that is there, by its place, or a tensor of its own.
#[derive(Clone)]
enum Argument {
    Known(usize),
    Fresh(Tensor),
    Tuple(Vec<Argument>),
    Shape(Vec<i64>),
}

impl Writer<'_> {
    fn grow(&mut self, operators: Vec<Arc<OpDef>>, calls: usize) {
        for _ in 0..4 * calls {
            if self.called.len() == calls || operators.is_empty() {
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
    fn call(&mut self, op: &OpDef) -> Option<()> {
        let arguments = self.arguments(op);
        let types: Vec<Type> = arguments.iter().map(|it| self.type_of(it)).collect();
        let attrs = self.attributes(op);
        let result = op.infer(self.cx, &types, attrs).ok()?;
        let is_tuple = matches!(self.cx.terms().ty(result), TypeView::Tuple(_));
        let outs = tensors_of(self.cx, result)?;
        if outs.iter().any(|(_, shape)| !(1..=ELEMENTS).contains(&elements(shape))) {
            return None;
        }
        let evaluate = |twin: Option<usize>| {
            let mut tensors = Vec::new();
            arguments.iter().for_each(|it| self.tensors(it, twin, &mut tensors));
            op.evaluation()?.evaluate(self.cx, &tensors, attrs, &outs).ok()
        };
        let (plain, up, down) = (evaluate(None)?, evaluate(Some(0))?, evaluate(Some(1))?);
        let mut known = Vec::new();
        for ((tensor, up), down) in plain.into_iter().zip(up).zip(down) {
            let twins = self.moved(&tensor, [up, down])?;
            known.push((tensor, twins));
        }
        self.add(op, arguments, attrs, known, is_tuple);
        Some(())
    }

    fn add(
        &mut self,
        op: &OpDef,
        arguments: Vec<Argument>,
        attrs: Attrs,
        results: Vec<(Tensor, [Tensor; 2])>,
        is_tuple: bool,
    ) {
        let operands: Vec<Expr> = arguments.into_iter().map(|it| self.operand(it)).collect();
        let call = self.tx.call_op(op.name, &operands, attrs);
        let var = self.bound(call);
        for (index, (tensor, twins)) in results.into_iter().enumerate() {
            let expr = match is_tuple {
                true => {
                    let item = self.tx.tuple_get_item(var, index as u32);
                    self.bound(item)
                }
                false => var,
            };
            self.values.push(Known { expr, tensor, twins, is_read: false, is_computed: true });
        }
        self.called.push(op.name);
    }

    fn bound(&mut self, value: Expr) -> Expr {
        let var = self.tx.var(&format!("v{}", self.bindings.len()), None);
        self.bindings.push((var, value));
        var
    }

    /// The node that an argument is; a tensor of its own becomes a parameter or a constant.
    fn operand(&mut self, argument: Argument) -> Expr {
        match argument {
            Argument::Known(place) => {
                self.values[place].is_read = true;
                self.values[place].expr
            }
            Argument::Shape(dims) => {
                let dims: Vec<_> = dims.iter().map(|&extent| self.cx.dim(extent)).collect();
                self.tx.shape(&dims)
            }
            Argument::Tuple(fields) => {
                let fields: Vec<Expr> = fields.into_iter().map(|it| self.operand(it)).collect();
                self.tx.tuple(&fields)
            }
            Argument::Fresh(tensor) => {
                let ty = tensor.ty(self.cx);
                if self.random.chance(35) {
                    return self.tx.constant(ty, tensor.bytes());
                }
                let expr = self.tx.var(&format!("x{}", self.params.len()), Some(ty));
                self.params.push((expr, tensor.clone()));
                let twins = [tensor.clone(), tensor.clone()];
                self.values.push(Known { expr, tensor, twins, is_read: true, is_computed: false });
                expr
            }
        }
    }

    fn type_of(&self, argument: &Argument) -> Type {
        match argument {
            Argument::Known(place) => self.values[*place].tensor.ty(self.cx),
            Argument::Fresh(tensor) => tensor.ty(self.cx),
            Argument::Shape(dims) => {
                let dims: Vec<_> = dims.iter().map(|&extent| self.cx.dim(extent)).collect();
                self.cx.shape_type(Some(&dims))
            }
            Argument::Tuple(fields) => {
                let fields: Vec<Type> = fields.iter().map(|it| self.type_of(it)).collect();
                self.cx.tuple_type(&fields)
            }
        }
    }

    /// The tensors of an argument, or those of a twin.
    fn tensors(&self, argument: &Argument, twin: Option<usize>, tensors: &mut Vec<Tensor>) {
        match argument {
            Argument::Known(place) => {
                let known = &self.values[*place];
                tensors.push(twin.map_or(&known.tensor, |twin| &known.twins[twin]).clone());
            }
            Argument::Fresh(tensor) => tensors.push(tensor.clone()),
            Argument::Shape(dims) => {
                tensors.push(Tensor::from_vec(vec![dims.len()], dims.clone()));
            }
            // Tuples hold no tuples.
            Argument::Tuple(fields) => fields.iter().for_each(|it| match it {
                Argument::Known(place) => {
                    let known = &self.values[*place];
                    tensors.push(twin.map_or(&known.tensor, |twin| &known.twins[twin]).clone());
                }
                Argument::Fresh(tensor) => tensors.push(tensor.clone()),
                Argument::Tuple(_) | Argument::Shape(_) => {}
            }),
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
            true => Argument::Fresh(self.numbers(dtype, shape)),
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

    /// The twins of a result, moved; none where it is too large, or hangs on roundings.
    fn moved(&mut self, tensor: &Tensor, twins: [Tensor; 2]) -> Option<[Tensor; 2]> {
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
                .map(|(x, sign)| x + direction * sign * rounding * (x.abs() + largest))
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
        let mut results: Vec<Known> =
            self.values.iter().filter(|it| it.is_computed && !it.is_read).cloned().collect();
        let more = self.random.below(3);
        let computed: Vec<Known> =
            self.values.iter().filter(|it| it.is_computed && it.is_read).cloned().collect();
        for _ in 0..more.min(computed.len()) {
            results.push(self.random.pick(&computed));
        }
        if results.is_empty() {
            return None;
        }
        let fields: Vec<Expr> = results.iter().map(|it| it.expr).collect();
        let tuple = self.tx.tuple(&fields);
        let body = self.tx.let_blocks(&[(true, self.bindings)], tuple);
        let params: Vec<Expr> = self.params.iter().map(|(expr, _)| *expr).collect();
        let function = self.tx.function(&params, body, None, Attrs::NONE);
        self.tx.set_root(function);
        let mut module = Module::new(self.cx.clone());
        let function = self.tx.publish().expect("operands are nodes of this body");
        module.insert(self.cx.symbol("main"), function);
        let results = results.into_iter().map(|known| {
            let off = apart(&known).unwrap_or(0.0);
            (known.tensor, off)
        });
        Some(Drawn {
            module,
            inputs: self.params.into_iter().map(|(_, tensor)| tensor).collect(),
            results: results.collect(),
            operators: self.called,
        })
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

/// Some roundings of a type, and how far twins may be apart, as parts of the largest element.
fn precision(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::F64 => Some((1e-12, 2e-3)),
        DType::F32 => Some((2e-6, 2e-3)),
        DType::F16 => Some((2e-3, 5e-2)),
        DType::BF16 => Some((1.6e-2, 1e-1)),
        _ => None,
    }
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

/// The elements of a tensor of floats.
fn numbers_of(tensor: &Tensor) -> Option<Vec<f64>> {
    Some(match tensor.dtype() {
        DType::F64 => tensor.elements::<f64>().to_vec(),
        DType::F32 => tensor.elements::<f32>().iter().map(|&x| f64::from(x)).collect(),
        DType::F16 => tensor.elements::<f16>().iter().map(|x| x.to_f64()).collect(),
        DType::BF16 => tensor.elements::<bf16>().iter().map(|x| x.to_f64()).collect(),
        _ => return None,
    })
}

/// A tensor of these numbers, which its type has.
fn of_numbers(dtype: DType, shape: &[usize], numbers: &[f64]) -> Option<Tensor> {
    let shape = shape.to_vec();
    macro_rules! of {
        ($ty:ty, |$x:ident| $value:expr) => {
            Tensor::from_vec::<$ty>(shape, numbers.iter().map(|&$x| $value).collect())
        };
    }
    Some(match dtype {
        DType::F64 => of!(f64, |x| x),
        DType::F32 => of!(f32, |x| x as f32),
        DType::F16 => of!(f16, |x| f16::from_f64(x)),
        DType::BF16 => of!(bf16, |x| bf16::from_f64(x)),
        DType::I64 => of!(i64, |x| x as i64),
        DType::I32 => of!(i32, |x| x as i32),
        DType::I8 => of!(i8, |x| x as i8),
        DType::U8 => of!(u8, |x| x as u8),
        DType::BOOL => {
            let truths = numbers.iter().map(|&x| x as u8).collect();
            Tensor::from_vec_as(DType::BOOL, shape, truths)
        }
        _ => return None,
    })
}
