//! The targets that the suite runs on.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use tenon_compiler::border::program_of_call;
use tenon_compiler::eval::{Evaluator, Tensor, Value};
use tenon_compiler::ir::{Attrs, Context, Expr, Module, OpDef, Type, View};
use tenon_compiler::ops;

use super::case::{Case, Tolerance};
use super::compiled;
use super::emulated::{Emulator, RISCV64};
use super::short_floats::FP16;

/// A way to get results.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Whether a case is for it at all.
    pub(crate) takes: fn(&Case) -> bool,
    runs: Runs,
}

enum Runs {
    /// Here, each case by itself.
    Here(fn(&Case) -> Result<Vec<Tensor>, String>),
    /// On another machine, many cases as one program.
    On(&'static Emulator),
}

pub(crate) const ALL: &[Target] = &[
    // The operator's reference evaluation.
    Target {
        name: "reference",
        takes: |_| true,
        runs: Runs::Here(|case| {
            let args = case.inputs.iter().cloned().map(Value::Tensor).collect();
            let value = Evaluator::new(&case.module).call("main", args);
            value.map(|value| tensors(&value)).map_err(|error| error.to_string())
        }),
    },
    // The operator's tensor program, interpreted, for no target in particular.
    Target { name: "plain", takes: has_program, runs: Runs::Here(|case| interpret(case, None)) },
    // The same for vectors of 128 bits.
    Target {
        name: "program4",
        takes: has_program,
        runs: Runs::Here(|case| interpret(case, Some(4))),
    },
    // The same for vectors of 512 bits.
    Target {
        name: "program16",
        takes: has_program,
        runs: Runs::Here(|case| interpret(case, Some(16))),
    },
    // The default pipeline, and LLVM's code for this machine.
    Target {
        name: "compiled",
        takes: |_| true,
        runs: Runs::Here(|case| compiled::run(&compiled::compile(&case.module)?, &case.inputs)),
    },
    // The same with shapes that are known when it is called.
    Target {
        name: "dynamic",
        takes: |case| case.dynamic.is_some(),
        runs: Runs::Here(|case| {
            let module = case.dynamic.as_ref().ok_or("it has no symbols")?;
            compiled::run(&compiled::compile(module)?, &case.inputs)
        }),
    },
    // The same for other processors, with an emulator.
    Target { name: "aarch64", takes: |_| true, runs: Runs::On(&FP16) },
    Target { name: "riscv64", takes: |_| true, runs: Runs::On(&RISCV64) },
];

impl Target {
    /// What it runs on, where that is not this machine.
    pub(crate) fn emulator(&self) -> Option<&'static Emulator> {
        match self.runs {
            Runs::Here(_) => None,
            Runs::On(emulator) => Some(emulator),
        }
    }

    /// Why nothing can be run on it here.
    pub(crate) fn missing(&self) -> Option<String> {
        self.emulator().and_then(Emulator::missing)
    }

    /// What each of some cases gives; a panic is an error.
    pub(crate) fn run(&self, cases: &[&Case]) -> Vec<Result<Vec<Tensor>, String>> {
        match self.runs {
            Runs::Here(run) => cases.iter().map(|case| caught(case, || run(case))).collect(),
            Runs::On(emulator) => {
                let compile = |case: &&Case| caught(case, || emulator.compile(&case.module));
                let models: Vec<_> = cases.iter().map(compile).collect();
                let given: Vec<&[Tensor]> = cases.iter().map(|case| &case.inputs[..]).collect();
                emulator.run_all(&models, &given)
            }
        }
    }
}

fn caught<T>(case: &Case, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // Shown when the case ends the process.
    eprintln!("{}", case.name);
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("it panics".to_owned()))
}

/// What is asked of each target: `targets.toml`.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Settings(BTreeMap<String, TargetSettings>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetSettings {
    rtol: f64,
    atol: f64,
    /// Cases that it gets wrong, and why.
    #[serde(default)]
    skips: BTreeMap<String, String>,
}

impl Settings {
    pub(crate) fn read(path: &Path) -> Settings {
        let text = fs::read_to_string(path).expect("the settings can be read");
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn tolerance(&self, target: &Target) -> Tolerance {
        let TargetSettings { rtol, atol, .. } = *self.of(target);
        Tolerance { rtol, atol }
    }

    /// Why a target does not do a case.
    pub(crate) fn skip(&self, target: &Target, case: &Case) -> Option<&str> {
        self.of(target).skips.get(&case.name).map(String::as_str)
    }

    fn of(&self, target: &Target) -> &TargetSettings {
        self.0.get(target.name).unwrap_or_else(|| panic!("no settings for {}", target.name))
    }

    /// Whether each name in it is that of a target or case, and each skip has its reason.
    pub(crate) fn check(&self, cases: &[&str]) -> Result<(), String> {
        for (target, settings) in &self.0 {
            if !ALL.iter().any(|known| known.name == target) {
                return Err(format!("there is no target {target}"));
            }
            for (case, reason) in &settings.skips {
                if !cases.contains(&case.as_str()) || reason.is_empty() {
                    return Err(format!(
                        "{target}: the case {case} is not there, or has no reason"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The tensors of a value, tuples flattened.
fn tensors(value: &Value) -> Vec<Tensor> {
    match value {
        Value::Tuple(tuple) => tuple.fields().iter().flat_map(tensors).collect(),
        value => value.to_tensor().into_iter().collect(),
    }
}

/// The call that a case is about.
fn call(case: &Case) -> (Arc<OpDef>, Expr) {
    let func = case.module.get_str("main").expect("a case has a function");
    let body = func.view();
    let found = body.post_order().find_map(|expr| match body.view(expr) {
        View::Call { callee, .. } => {
            Some((case.module.cx().operators().find(body.op_name(callee)?)?, expr))
        }
        _ => None,
    });
    found.expect("a case has a call of an operator")
}

fn has_program(case: &Case) -> bool {
    ops::has_program(case.module.cx(), call(case).0.name)
}

/// Runs the tensor program of the case's operator in the interpreter.
fn interpret(case: &Case, lanes: Option<i64>) -> Result<Vec<Tensor>, String> {
    let (op, expr) = call(case);
    let func = case.module.get_str("main").ok_or("a case has a function")?;
    let (cx, body) = (case.module.cx(), func.view());
    let args = body.operands(expr).skip(1);
    let types: Option<Vec<Type>> = args.iter().map(|arg| body.ty(arg)).collect();
    let types = types.ok_or("an argument has no type")?;
    let out = body.ty(expr).ok_or("the call has no type")?;
    let target = lanes.map(|lanes| {
        cx.attrs(&[("vector_bits", (32 * lanes).into()), ("vector_registers", 32.into())])
    });
    let target = target.unwrap_or(Attrs::NONE);
    let program = program_of_call(cx, &op, &types, body.attrs(expr), out, target)?;
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("main"), program);
    let mut inputs = Vec::new();
    let mut pending: Vec<Expr> = args.iter().rev().collect();
    while let Some(arg) = pending.pop() {
        match body.view(arg) {
            View::Tuple(fields) => pending.extend(fields.iter().rev()),
            View::Constant(constant) => {
                let constant = &func.constants()[constant.index as usize];
                inputs.extend(constant.to_tensor(cx.terms()).map(Value::Tensor));
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
