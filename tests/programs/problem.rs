//! A call of an operator, computed twice: by the reference evaluation of the operator, and by the
//! evaluation of its tensor program.

use std::sync::Arc;

use half::{bf16, f16};
use tenon_compiler::border::program_of_call;
use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::ir::{
    AttrValue, Build, Context, Cx, DType, Dim, Expr, Function, Module, Transaction, Type,
    flatten_type,
};
use tenon_compiler::testing::Random;

use super::contract::check_contract;

/// The vector registers of a processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorUnit {
    bits: i64,
    registers: i64,
}

/// AVX-512, AVX2 and SSE.
pub(crate) const VECTOR_UNITS: [VectorUnit; 3] = [
    VectorUnit { bits: 512, registers: 32 },
    VectorUnit { bits: 256, registers: 16 },
    VectorUnit { bits: 128, registers: 16 },
];

pub(crate) type Attrs = Vec<(&'static str, AttrValue)>;

/// An argument of a call.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    /// A tensor of numbers around zero.
    Any(DType, Vec<i64>),
    /// A tensor of numbers above zero.
    Positive(DType, Vec<i64>),
    /// A tensor of indices into an axis of this extent, counted from either end.
    Indices(DType, Vec<i64>, i64),
    Tuple(Vec<Arg>),
    Shape(Vec<i64>),
}

/// A call of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub op: &'static str,
    pub args: Vec<Arg>,
    pub attrs: Attrs,
    pub vectors: VectorUnit,
}

impl Problem {
    pub(crate) fn new(op: &'static str, args: Vec<Arg>, attrs: Attrs) -> Self {
        Self { op, args, attrs, vectors: VECTOR_UNITS[0] }
    }

    /// Whether the call has a type at all.
    pub(crate) fn is_well_typed(&self) -> bool {
        let cx = tenon_compiler::testing::cx();
        let types: Vec<Type> = self.args.iter().map(|arg| arg.ty(&cx)).collect();
        let op = cx.operators().get(self.op).expect("the operator exists");
        op.infer(&cx, &types, cx.attrs(&self.attrs)).is_ok()
    }

    /// Computes it both ways.
    pub(crate) fn check(&self) {
        let cx = tenon_compiler::testing::cx();
        let op = cx.operators().get(self.op).expect("the operator exists");
        let attrs = cx.attrs(&self.attrs);
        let types: Vec<Type> = self.args.iter().map(|arg| arg.ty(&cx)).collect();
        let out = op.infer(&cx, &types, attrs).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        let mut random = Random::new(7);
        let (mut args, mut tensors) = (Vec::new(), Vec::new());
        self.args.iter().for_each(|arg| arg.values(&mut random, &mut args, &mut tensors));
        let outs: Vec<(DType, Vec<usize>)> = flatten_type(cx.terms(), &[out])
            .iter()
            .map(|&ty| {
                let (dtype, shape) = cx.terms().static_tensor(ty).expect("the result is static");
                (dtype, shape.iter().map(|&extent| extent as usize).collect())
            })
            .collect();
        let evaluation = op.evaluation().expect("the operator has a reference evaluation");
        let expected = evaluation
            .evaluate(&cx, &args, attrs, &outs)
            .unwrap_or_else(|error| panic!("{error}: {self:?}"));

        let VectorUnit { bits, registers } = self.vectors;
        let target = [("vector_bits", bits.into()), ("vector_registers", registers.into())];
        let check = |target, types: &[Type], result| {
            let program = program_of_call(&cx, &op, types, attrs, result, target)
                .unwrap_or_else(|error| panic!("{error}: {self:?}"));
            self.check_program(&cx, program, out, &tensors, &expected);
        };
        check(cx.attrs(&target), &types, out);
        check(tenon_compiler::ir::Attrs::NONE, &types, out);
        // The same for any extents: equal ones become one symbol.
        let symbolic: Vec<Type> = self.args.iter().map(|arg| arg.symbolic_ty(&cx)).collect();
        if let Ok(out) = op.infer(&cx, &symbolic, attrs) {
            check(cx.attrs(&target), &symbolic, out);
        }
    }

    fn check_program(
        &self,
        cx: &Cx,
        program: Arc<Function>,
        out: Type,
        tensors: &[Tensor],
        expected: &[Tensor],
    ) {
        if let Err(broken) = check_contract(&program) {
            panic!("{broken}: {self:?}");
        }
        let mut module = Module::new(cx.clone());
        module.insert(cx.symbol("program"), program);
        module.insert(cx.symbol("main"), caller(cx, tensors, out));
        let inputs = tensors.iter().cloned().map(Value::Tensor).collect();
        let found = Evaluator::new(&module)
            .call("main", inputs)
            .unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let found = match &found {
            Value::Tuple(tuple) => tuple.fields().iter().filter_map(Value::to_tensor).collect(),
            other => Vec::from_iter(other.to_tensor()),
        };
        assert_eq!(expected.len(), found.len(), "results of {self:?}");
        for (expected, found) in expected.iter().zip(&found) {
            if let Some((place, x, y)) = first_difference(expected, found) {
                panic!("element {place} is {y}, but {x} is expected: {self:?}");
            }
        }
    }
}

/// A function that calls the program on tensors like these, whose result is of this type.
fn caller(cx: &Cx, tensors: &[Tensor], out: Type) -> Arc<Function> {
    let mut tx = Transaction::new(cx.clone());
    let params: Vec<Expr> = tensors
        .iter()
        .map(|tensor| {
            let shape: Vec<i64> = tensor.shape().iter().map(|&extent| extent as i64).collect();
            tx.var("x", Some(cx.static_tensor_type(tensor.dtype(), &shape)))
        })
        .collect();
    let (callee, program) = (tx.op("call_tir"), tx.global("program"));
    let args: Vec<Expr> = [program].iter().chain(&params).copied().collect();
    let call = tx.call(callee, &args, cx.attrs(&[("out", out.into())]), Some(out));
    let root = tx.function(&params, call, Some(out), tenon_compiler::ir::Attrs::NONE);
    tx.set_root(root);
    tx.finish().expect("a call is a function")
}

impl Arg {
    fn ty(&self, cx: &Cx) -> Type {
        match self {
            Arg::Any(dtype, shape)
            | Arg::Positive(dtype, shape)
            | Arg::Indices(dtype, shape, _) => cx.static_tensor_type(*dtype, shape),
            Arg::Tuple(fields) => {
                let fields: Vec<Type> = fields.iter().map(|field| field.ty(cx)).collect();
                cx.tuple_type(&fields)
            }
            Arg::Shape(shape) => {
                let dims: Vec<Dim> = shape.iter().map(|&extent| cx.dim(extent)).collect();
                cx.shape_type(Some(&dims))
            }
        }
    }

    /// As [`Arg::ty`], with a symbol for each extent above 1. A shape says what a result is, so it stays.
    fn symbolic_ty(&self, cx: &Cx) -> Type {
        let symbol = |&extent: &i64| match extent {
            0 | 1 => cx.dim(extent),
            _ => cx.dim_symbol(&format!("n{extent}")),
        };
        match self {
            Arg::Any(dtype, shape)
            | Arg::Positive(dtype, shape)
            | Arg::Indices(dtype, shape, _) => {
                cx.tensor_type(*dtype, &shape.iter().map(symbol).collect::<Vec<Dim>>())
            }
            Arg::Tuple(fields) => {
                let fields: Vec<Type> = fields.iter().map(|field| field.symbolic_ty(cx)).collect();
                cx.tuple_type(&fields)
            }
            Arg::Shape(shape) => {
                cx.shape_type(Some(&shape.iter().map(symbol).collect::<Vec<Dim>>()))
            }
        }
    }

    /// Adds what the reference evaluation is given to `args`, and what the program is to `tensors`.
    fn values(&self, random: &mut Random, args: &mut Vec<Tensor>, tensors: &mut Vec<Tensor>) {
        let tensor = match self {
            Arg::Any(dtype, shape) => numbers(random, *dtype, shape, -2.0, 2.0),
            Arg::Positive(dtype, shape) => numbers(random, *dtype, shape, 0.1, 2.0),
            Arg::Indices(dtype, shape, extent) => {
                let steps = 100.0 / *extent as f64;
                let limit = *extent as f64 / 50.0;
                assert!(*extent <= 100 && steps >= 1.0, "small extents are expected");
                numbers(random, *dtype, shape, -limit, limit - 0.02)
            }
            Arg::Tuple(fields) => {
                return fields.iter().for_each(|field| field.values(random, args, tensors));
            }
            Arg::Shape(shape) => {
                return args.push(Tensor::from_vec(vec![shape.len()], shape.clone()));
            }
        };
        args.push(tensor.clone());
        tensors.push(tensor);
    }
}

/// A tensor of numbers from `low` to `high`; integers are fifty times as large.
fn numbers(random: &mut Random, dtype: DType, shape: &[i64], low: f64, high: f64) -> Tensor {
    let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
    let count = shape.iter().product();
    let mut next = || low + (high - low) * random.below(1025) as f64 / 1024.0;
    macro_rules! tensor {
        ($t:ty, $convert:expr) => {{
            let elements: Vec<$t> = (0..count).map(|_| $convert(next())).collect();
            Tensor::from_vec_as(dtype, shape, elements)
        }};
    }
    let int = |x: f64| (x * 50.0).round();
    match dtype {
        DType::F64 => tensor!(f64, |x| x),
        DType::F32 => tensor!(f32, |x| x as f32),
        DType::F16 => tensor!(f16, f16::from_f64),
        DType::BF16 => tensor!(bf16, bf16::from_f64),
        DType::I8 => tensor!(i8, |x| int(x) as i8),
        DType::I32 => tensor!(i32, |x| int(x) as i32),
        DType::I64 => tensor!(i64, |x| int(x) as i64),
        DType::U8 => tensor!(u8, |x| int(x) as i64 as u8),
        DType::BOOL => tensor!(u8, |x| (x > 0.5) as u8),
        other => panic!("no numbers of {other}"),
    }
}

/// The first element that two tensors differ in by more than rounding.
fn first_difference(expected: &Tensor, found: &Tensor) -> Option<(usize, f64, f64)> {
    assert_eq!(expected.dtype(), found.dtype());
    assert_eq!(expected.shape(), found.shape());
    let tolerance = match expected.dtype() {
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        dtype if dtype.is_float() => 1e-5,
        _ => 0.0,
    };
    let is_near = |x: f64, y: f64| {
        x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * (2.0 + x.abs())
    };
    let pairs = elements(expected).into_iter().zip(elements(found));
    pairs.enumerate().map(|(at, (x, y))| (at, x, y)).find(|&(_, x, y)| !is_near(x, y))
}

fn elements(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::F64 => tensor.elements::<f64>().to_vec(),
        DType::F32 => tensor.elements::<f32>().iter().map(|&x| x as f64).collect(),
        DType::F16 => tensor.elements::<f16>().iter().map(|x| x.to_f64()).collect(),
        DType::BF16 => tensor.elements::<bf16>().iter().map(|x| x.to_f64()).collect(),
        DType::I8 => tensor.elements::<i8>().iter().map(|&x| x as f64).collect(),
        DType::I32 => tensor.elements::<i32>().iter().map(|&x| x as f64).collect(),
        DType::I64 => tensor.elements::<i64>().iter().map(|&x| x as f64).collect(),
        DType::U8 | DType::BOOL => tensor.elements::<u8>().iter().map(|&x| x as f64).collect(),
        other => panic!("no elements of {other}"),
    }
}

pub(crate) fn ints(values: &[i64]) -> AttrValue {
    AttrValue::Ints(values.to_vec())
}

/// A number from `low` to `high`, both included.
pub(crate) fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    low + random.below((high - low + 1) as usize) as i64
}
