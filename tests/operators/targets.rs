//! The targets that the suite runs on.

use tenon_host::eval::{Evaluator, Tensor, Value};
use tenon_host::ir::{Context, Expr, Module, Type, View};
use tenon_host::ops::{self, OpDef};

use super::case::{Case, Tolerance};

/// A way to get results.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) tolerance: Tolerance,
    /// Cases that are left out, and why.
    pub(crate) skips: &'static [(&'static str, &'static str)],
    /// Whether a case is for it at all.
    pub(crate) takes: fn(&Case) -> bool,
    pub(crate) run: fn(&Case) -> Result<Vec<Tensor>, String>,
}

pub(crate) const ALL: &[Target] = &[
    // The operator's reference evaluation.
    Target {
        name: "reference",
        tolerance: Tolerance { rtol: 1e-5, atol: 1e-5 },
        skips: &[],
        takes: |_| true,
        run: |case| {
            let args = case.inputs.iter().cloned().map(Value::Tensor).collect();
            let value = Evaluator::new(&case.module).call("main", args);
            value.map(|value| tensors(&value)).map_err(|error| error.to_string())
        },
    },
    // The operator's tensor program, interpreted, for vectors of 128 bits.
    Target {
        name: "program4",
        // Programs add up in f32, in the order of their loops.
        tolerance: Tolerance { rtol: 1e-4, atol: 1e-4 },
        skips: &[],
        takes: has_program,
        run: |case| interpret(case, 4),
    },
    // The same for vectors of 512 bits.
    Target {
        name: "program16",
        // Programs add up in f32, in the order of their loops.
        tolerance: Tolerance { rtol: 1e-4, atol: 1e-4 },
        skips: &[],
        takes: has_program,
        run: |case| interpret(case, 16),
    },
];

/// The tensors of a value, tuples flattened.
fn tensors(value: &Value) -> Vec<Tensor> {
    match value {
        Value::Tuple(tuple) => tuple.fields().iter().flat_map(tensors).collect(),
        value => value.to_tensor().into_iter().collect(),
    }
}

/// The call that a case is about.
fn call(case: &Case) -> (&'static OpDef, Expr) {
    let func = case.module.get_str("main").expect("a case has a function");
    let body = func.view();
    let found = body.post_order().find_map(|expr| match body.view(expr) {
        View::Call { callee, .. } => Some((ops::find(body.op_name(callee)?)?, expr)),
        _ => None,
    });
    found.expect("a case has a call of an operator")
}

fn has_program(case: &Case) -> bool {
    call(case).0.legalize.is_some()
}

/// Runs the tensor program of the case's operator in the interpreter.
fn interpret(case: &Case, lanes: i64) -> Result<Vec<Tensor>, String> {
    let (op, expr) = call(case);
    let func = case.module.get_str("main").ok_or("a case has a function")?;
    let (cx, body) = (case.module.cx(), func.view());
    let args = body.operands(expr).skip(1);
    let types: Option<Vec<Type>> = args.iter().map(|arg| body.ty(arg)).collect();
    let types = types.ok_or("an argument has no type")?;
    let out = body.ty(expr).ok_or("the call has no type")?;
    let unit = ops::VectorUnit { lanes, registers: 32 };
    let program = ops::legalize_call(cx, op, &types, body.attrs(expr), out, unit)
        .map_err(|error| error.to_string())?;
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("main"), program);
    let mut inputs = Vec::new();
    let mut pending: Vec<Expr> = args.iter().rev().collect();
    while let Some(arg) = pending.pop() {
        match body.view(arg) {
            View::Tuple(fields) => pending.extend(fields.iter().rev()),
            View::Constant(constant) => {
                let constant = &func.constants()[constant.index as usize];
                inputs.extend(Tensor::from_constant(constant, cx.terms()).map(Value::Tensor));
            }
            View::Var { .. } => {
                let index = func.params().iter().position(|&param| param == arg);
                inputs.push(Value::Tensor(case.inputs[index.ok_or("a free variable")?].clone()));
            }
            // Shapes are no buffers.
            _ => {}
        }
    }
    let value = Evaluator::new(&module).call("main", inputs);
    value.map(|value| tensors(&value)).map_err(|error| error.to_string())
}
