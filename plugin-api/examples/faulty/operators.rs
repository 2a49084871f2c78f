//! Operators that misbehave in every way that a host must survive, and their rules.

use std::sync::atomic::{AtomicU32, Ordering};

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::rule::prelude::*;

/// Says that its result is what it is given
#[op(name = "test.op.Right")]
struct Right;

impl Operator for Right {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.arg(0)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// Panics when it is asked for a type
#[op(name = "test.op.PanicsInInfer")]
struct PanicsInInfer {
    /// where
    #[attr(default = 7)]
    at: i64,
}

impl Operator for PanicsInInfer {
    fn infer(&self, _: &InferCx<'_>) -> Result<Type> {
        let empty: Vec<Type> = Vec::new();
        Ok(empty[self.at as usize])
    }

    fn evaluate(&self, _: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(Vec::new())
    }
}

/// Never has a value
#[op(name = "test.op.Endless")]
struct Endless;

impl Operator for Endless {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.arg(0)
    }

    fn evaluate(&self, _: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }
}

/// Gives a term that is no type
#[op(name = "test.op.NoType")]
struct NoType;

impl Operator for NoType {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(Type(cx.int(5).0))
    }

    fn evaluate(&self, _: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(Vec::new())
    }
}

/// Gives a type of which a part is none
#[op(name = "test.op.NoPart")]
struct NoPart {
    /// which
    #[attr(one_of = ["field", "dimension", "element"])]
    part: String,
}

impl Operator for NoPart {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        Ok(match self.part.as_str() {
            "field" => cx.tuple_type(&[cx.arg(0)?, Type(cx.int(5).0)]),
            "dimension" => cx.tensor_type(DType::F32, Some(&[Dim(cx.arg(0)?.0)])),
            _ => cx.tensor_type(DType(60_000), Some(&[])),
        })
    }

    fn evaluate(&self, _: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(Vec::new())
    }
}

/// Gives a term that there is not
#[op(name = "test.op.NoTerm")]
struct NoTerm;

impl Operator for NoTerm {
    fn infer(&self, _: &InferCx<'_>) -> Result<Type> {
        Ok(Type(1 << 30))
    }

    fn evaluate(&self, _: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(Vec::new())
    }
}

/// Knows better what a size is when it is a number, and never computes the same twice
#[op(name = "test.op.Fickle")]
struct Fickle;

impl Operator for Fickle {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.check_float(0)?;
        match cx.tensor(0)?.dims {
            Some(&[first, ..]) if cx.value(first) == Some(2) => {
                Ok(cx.static_tensor_type(DType::F32, &[7]))
            }
            _ => cx.arg(0),
        }
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (_, shape) = cx.out()?;
        let next = || COUNT.fetch_add(1, Ordering::Relaxed) as f32;
        let numbers = (0..shape.iter().product::<usize>()).map(|_| next()).collect();
        Ok(vec![Tensor::from_vec(shape.to_vec(), numbers)])
    }
}

/// Panics, makes nothing, or makes too much when it is evaluated
#[op(name = "test.op.WrongValue")]
struct WrongValue {
    /// what it does
    #[attr(default = "panics", one_of = ["panics", "nothing", "too much", "error", "lost"])]
    mode: String,
}

impl Operator for WrongValue {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.arg(0)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        match self.mode.as_str() {
            "nothing" => Ok(Vec::new()),
            "too much" => Ok(vec![Tensor::from_vec(vec![9], vec![0f32; 9])]),
            "error" => Err(OpError::Value("it does not like the values".into())),
            _ => panic!("the value of {} is too hard", cx.op.name),
        }
    }
}

/// Panics, fails, or answers what is no node
#[rule(simplify)]
fn simplify(op: &WrongValue, at: &mut Site<'_>) -> std::result::Result<Option<Expr>, PassError> {
    match op.mode.as_str() {
        "panics" => panic!("the rule of {} is too hard", at.call.expr.0),
        "error" => Err(PassError::new("it does not like the call")),
        "lost" => Ok(Some(Expr(99_999))),
        "too much" => Ok(Some(at.shape(&[]))),
        _ => Ok(None),
    }
}

/// A number, whatever the argument is
#[rule(gradient)]
fn gradient(_: &WrongValue, at: &mut Adjoint<'_>) -> Grads {
    Grads::of([at.apply("sum", &[at.grad()])])
}

/// Computes what no program is made for
#[op(name = "test.op.NoProgram")]
struct NoProgram;

impl Operator for NoProgram {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.arg(0)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// Fails whatever the call is
#[rule(compute)]
fn no_program(_: &NoProgram, _: &mut Program) -> Result<()> {
    Err(OpError::Unsupported("this on any day of the week".into()))
}

/// Wrong, and of the same benefit as the one of the operator's own plugin
#[rule(simplify, key = "nn.relu")]
fn instead(at: &mut Site<'_>) -> Option<Expr> {
    Some(at.apply("abs", &[at.arg(0)]))
}
