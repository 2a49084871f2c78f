//! Expressions: evaluated from the leaves up, each node once a statement.
//!
//! Nothing recurses, so that a program may nest as deeply as it likes.

use std::collections::HashMap;
use std::rc::Rc;

use half::{bf16, f16};
use inkwell::values::{BasicValueEnum, PointerValue};
use rustc_hash::FxBuildHasher;

use super::{
    access::Buffer,
    assembler::Assembler,
    dim::Symbols,
    error::{Problem, Result},
    intrinsic::Function,
    range::Range,
    value::{Class, Form, Value},
};
use crate::target::FloatMode;
use tenon_ir::{Args, BinaryOp, BodyView, DType, Expr, View};
use tenon_plugin_api::op::number::shorten;

/// What names mean at the place that is being emitted.
#[derive(Clone, Default)]
pub(super) struct Scope<'cx> {
    pub(super) vars: HashMap<Expr, Value<'cx>, FxBuildHasher>,
    pub(super) buffers: HashMap<Expr, Rc<Buffer<'cx>>, FxBuildHasher>,
    pub(super) symbols: Symbols<'cx>,
    /// Where the regions begin of buffers that are made in the parallel loop whose body this is.
    pub(super) pieces: HashMap<Expr, PointerValue<'cx>, FxBuildHasher>,
}

impl<'cx> Scope<'cx> {
    pub(super) fn buffer(&self, body: BodyView<'_>, expr: Expr) -> Result<Rc<Buffer<'cx>>> {
        if let Some(buffer) = self.buffers.get(&expr) {
            return Ok(Rc::clone(buffer));
        }
        match body.view(expr) {
            View::Buffer { name, .. } => {
                let name = body.terms().str(name);
                Problem::malformed(format!("buffer `{name}` is used where it does not exist"))
            }
            _ => Problem::malformed(format!(
                "a {} stands where a buffer is expected",
                body.kind(expr).name()
            )),
        }
    }
}

/// Values of the nodes of one statement. Emptying it costs nothing.
pub(super) struct Memo<'cx> {
    /// For each node of the body, where in `values` its value is, if it has one.
    slots: Vec<u32>,
    values: Vec<(Expr, Value<'cx>)>,
    /// Nodes that wait for their operands.
    pending: Vec<Expr>,
}

impl<'cx> Memo<'cx> {
    pub(super) fn new(body: BodyView<'_>) -> Memo<'cx> {
        Memo { slots: vec![0; body.len()], values: Vec::new(), pending: Vec::new() }
    }

    /// Forgets all: another statement begins.
    pub(super) fn clear(&mut self) {
        self.values.clear();
    }

    fn get(&self, expr: Expr) -> Option<Value<'cx>> {
        let &(owner, value) = self.values.get(self.slots[expr.index()] as usize)?;
        (owner == expr).then_some(value)
    }

    fn insert(&mut self, expr: Expr, value: Value<'cx>) {
        self.slots[expr.index()] = self.values.len() as u32;
        self.values.push((expr, value));
    }
}

impl<'cx> Assembler<'cx, '_> {
    /// The value of `root`, and of all that it is made of.
    pub(super) fn evaluate(
        &self,
        body: BodyView<'_>,
        scope: &Scope<'cx>,
        memo: &mut Memo<'cx>,
        root: Expr,
    ) -> Result<Value<'cx>> {
        memo.pending.clear();
        memo.pending.push(root);
        while let Some(&expr) = memo.pending.last() {
            if memo.get(expr).is_some() {
                memo.pending.pop();
                continue;
            }
            let waiting = memo.pending.len();
            for operand in value_operands(body, expr).iter() {
                if memo.get(operand).is_none() {
                    memo.pending.push(operand);
                }
            }
            if memo.pending.len() > waiting {
                continue;
            }
            let value = self.node(body, scope, memo, expr)?;
            memo.insert(expr, value);
            memo.pending.pop();
        }
        memo.get(root).map_or_else(|| Problem::malformed("an expression has no value"), Ok)
    }

    /// A node whose operands have values.
    fn node(
        &self,
        body: BodyView<'_>,
        scope: &Scope<'cx>,
        memo: &Memo<'cx>,
        expr: Expr,
    ) -> Result<Value<'cx>> {
        let terms = body.terms();
        let value = |operand| {
            memo.get(operand).map_or_else(|| Problem::malformed("an operand has no value"), Ok)
        };
        let values =
            |operands: Args<'_>| operands.iter().map(value).collect::<Result<Vec<Value<'cx>>>>();
        match body.view(expr) {
            View::Var { name } => match scope.vars.get(&expr) {
                Some(&value) => Ok(value),
                None => {
                    let name = terms.str(name);
                    Problem::malformed(format!("`{name}` is read where it has no value"))
                }
            },
            View::Int(literal) => self.int_literal(dtype_of(body, expr)?, literal),
            View::Float(literal) => self.float_literal(dtype_of(body, expr)?, literal),
            View::Prim { dim } => self.dim(terms, &scope.symbols, dim),
            View::Binary { op, a, b } => match self.contraction(body, op, a, b) {
                Some(Contraction { factors: [p, q], other, is_negative }) => {
                    let factors = [value(p)?, value(q)?];
                    self.multiply_add(factors, value(other)?, is_negative)
                }
                None => self.binary(op, value(a)?, value(b)?),
            },
            View::Select { cond, then, otherwise } => {
                self.choose(value(cond)?, value(then)?, value(otherwise)?)
            }
            View::Cast { value: from } => self.cast(value(from)?, dtype_of(body, expr)?),
            View::Intrinsic { name, args } => {
                let args = values(args)?;
                let dtype = body.scalar_ty(expr).map(|(dtype, _)| dtype);
                let dtype = dtype.or(args.first().map(|arg| arg.dtype)).unwrap_or(DType::I64);
                self.call_intrinsic(terms.str(name), &args, dtype)
            }
            View::Ramp { base, stride } => self.ramp(value(base)?, value(stride)?, body, expr),
            View::Broadcast { value: lane } => {
                let lane = value(lane)?;
                match (lane.lanes, lane.form, body.scalar_ty(expr)) {
                    (1, form, Some((_, lanes))) => Ok(Value { lanes, form, ..lane }),
                    _ => Problem::malformed("a broadcast of a vector"),
                }
            }
            View::Load { buffer, indices } => {
                let (buffer, at) = (scope.buffer(body, buffer)?, values(indices)?);
                match self.read_or_zero(body, &scope.symbols, &buffer, indices, &at)? {
                    Some(element) => Ok(element),
                    None => self.read(&buffer, &at),
                }
            }
            View::Constant(_)
            | View::Global { .. }
            | View::Op { .. }
            | View::Extern { .. }
            | View::Tuple(_)
            | View::TupleGetItem { .. }
            | View::Call { .. }
            | View::If { .. }
            | View::Let(_)
            | View::Function { .. }
            | View::Shape { .. }
            | View::PrimFunc { .. }
            | View::Buffer { .. }
            | View::For { .. }
            | View::Block(_)
            | View::Region { .. }
            | View::Store { .. }
            | View::Seq(_)
            | View::Alloc { .. }
            | View::LetStmt { .. }
            | View::IfStmt { .. }
            | View::Evaluate { .. }
            | View::Unknown { .. } => {
                let kind = body.kind(expr).name();
                Problem::malformed(format!("a {kind} stands where a scalar is expected"))
            }
        }
    }

    /// `a op b` as a product and what it is added to, where it may be rounded once.
    fn contraction(
        &self,
        body: BodyView<'_>,
        op: BinaryOp,
        a: Expr,
        b: Expr,
    ) -> Option<Contraction> {
        let (dtype, _) = body.scalar_ty(a)?;
        let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Sub);
        if self.target.float() == FloatMode::Strict
            || !is_sum
            || !matches!(dtype, DType::F32 | DType::F64)
        {
            return None;
        }
        let factors = |expr| match body.view(expr) {
            View::Binary { op: BinaryOp::Mul, a, b } => Some([a, b]),
            _ => None,
        };
        let is_difference = op == BinaryOp::Sub;
        let left = factors(a).map(|factors| Contraction {
            factors,
            other: b,
            is_negative: [false, is_difference],
        });
        left.or_else(|| {
            let factors = factors(b)?;
            Some(Contraction { factors, other: a, is_negative: [is_difference, false] })
        })
    }

    /// `p * q + other`, rounded once where that is one instruction; the product and what is added may be negated.
    fn multiply_add(
        &self,
        [p, q]: [Value<'cx>; 2],
        other: Value<'cx>,
        [is_product_negative, is_other_negative]: [bool; 2],
    ) -> Result<Value<'cx>> {
        let negative = |value: Value<'cx>, is_negative: bool| match is_negative {
            true => self.binary(BinaryOp::Sub, self.float_literal(value.dtype, -0.0)?, value),
            false => Ok(value),
        };
        let (p, other) = (negative(p, is_product_negative)?, negative(other, is_other_negative)?);
        self.call_function(Function::MultiplyAdd, &[p, q, other], p.dtype)
    }

    fn int_literal(&self, dtype: DType, literal: i64) -> Result<Value<'cx>> {
        let class = Class::of(dtype)?;
        if !class.is_integer() {
            return self.float_literal(dtype, literal as f64);
        }
        let scalar = self.int_of(class.register(self.cx), literal)?;
        let range = Range::exactly(literal);
        Ok(Value::scalar(dtype, scalar).with_range(range.fits(dtype).then_some(range)))
    }

    fn float_literal(&self, dtype: DType, literal: f64) -> Result<Value<'cx>> {
        let class = Class::of(dtype)?;
        let ty = class.register(self.cx);
        let scalar = match class {
            Class::F16 => self.int_of(ty, i64::from(shorten(literal, f16::from_f32).to_bits()))?,
            Class::Bf16 => {
                self.int_of(ty, i64::from(shorten(literal, bf16::from_f32).to_bits()))?
            }
            _ => self.float_of(ty, literal)?,
        };
        Ok(Value::scalar(dtype, scalar))
    }

    fn ramp(
        &self,
        base: Value<'cx>,
        stride: Value<'cx>,
        body: BodyView<'_>,
        expr: Expr,
    ) -> Result<Value<'cx>> {
        let Some((dtype, lanes)) = body.scalar_ty(expr) else {
            return Problem::malformed("a ramp has no type");
        };
        let Form::Uniform(BasicValueEnum::IntValue(start)) = base.form else {
            return Problem::malformed("a ramp does not start with an integer");
        };
        if base.dtype != dtype || stride.dtype != dtype || base.lanes != 1 || stride.lanes != 1 {
            return Problem::malformed(format!(
                "a ramp of {dtype} from {} in steps of {}",
                base.dtype, stride.dtype
            ));
        }
        let Some(step) = stride.range.and_then(Range::value) else {
            return self.ramp_of_unknown_stride(base, stride, lanes);
        };
        let last = Range::exactly(step).times(Range::exactly(i64::from(lanes) - 1));
        let range = base.range.and_then(|first| Some(first.union(first.plus(last?)?)));
        let range = range.filter(|range| range.fits(dtype));
        Ok(Value { dtype, lanes, form: Form::Ramp { base: start, stride: step }, range })
    }

    fn ramp_of_unknown_stride(
        &self,
        base: Value<'cx>,
        stride: Value<'cx>,
        lanes: u16,
    ) -> Result<Value<'cx>> {
        let zero = self.int_literal(base.dtype, 0)?;
        let Form::Uniform(BasicValueEnum::IntValue(start)) = zero.form else {
            return Problem::malformed("a ramp is not of integers");
        };
        let count =
            Value { lanes, form: Form::Ramp { base: start, stride: 1 }, range: None, ..zero };
        let steps = self.binary(BinaryOp::Mul, count, stride)?;
        self.binary(BinaryOp::Add, steps, base)
    }
}

/// A sum of which one operand is a product.
struct Contraction {
    factors: [Expr; 2],
    other: Expr,
    /// Whether the product, and the other operand, are taken away.
    is_negative: [bool; 2],
}

/// The operands that are values: all but the buffer of a load.
fn value_operands<'a>(body: BodyView<'a>, expr: Expr) -> Args<'a> {
    let buffers = match body.view(expr) {
        View::Load { .. } => 1,
        View::Binary { .. }
        | View::Select { .. }
        | View::Cast { .. }
        | View::Intrinsic { .. }
        | View::Ramp { .. }
        | View::Broadcast { .. } => 0,
        // The others are leaves, or not expressions, which is found out when they are evaluated.
        _ => body.operands(expr).len(),
    };
    body.operands(expr).skip(buffers)
}

fn dtype_of(body: BodyView<'_>, expr: Expr) -> Result<DType> {
    match body.scalar_ty(expr) {
        Some((dtype, _)) => Ok(dtype),
        None => Problem::malformed(format!("a {} has no scalar type", body.kind(expr).name())),
    }
}
