//! What is looked at of the rules about one operator: passes that ask for them, over calls at random.
//!
//! What such a pass makes computes the same, but for what training does in the place of inference. What adds a function that
//! computes derivatives is compared with differences.

use tenon_plugin_api::rule::{DecomposeForTraining, Facet, Gradient};

use super::Check;
use super::finding::{Finding, first};
use super::operator::{Call, call_text, calls, sized};
use super::patience::Progress;
use super::vocabulary::{sine, sum_of_all, sum_of_two};
use crate::eval::{Evaluator, Tensor, Value};
use crate::infer::infer_module;
use crate::ir::{Attrs, Build, Context, Cx, DType, Module, OpDef, Transaction, Type, TypeView};
use crate::ops::program::COMPUTE;
use crate::passes::{PassContext, PassError, Plan, plan, run};
use crate::registry::{PassRecord, Registry};
use crate::testing::Random;
use crate::validate::{Reference, Tolerance};

/// Calls that each pass is run over.
const CALLS: usize = 20;
/// Elements of each argument by which the loss is differentiated.
const ELEMENTS: usize = 6;

/// The passes of a registry that ask for rules of a facet.
fn askers<'r>(registry: &'r Registry, facet: &str) -> Vec<&'r PassRecord> {
    let records = registry.passes().map(|id| registry.record(id));
    records.filter(|record| record.asks.iter().any(|asked| asked == facet)).collect()
}

/// Examines the rules of a facet about an operator.
pub(super) fn checks(
    registry: &Registry,
    op: &OpDef,
    facet: &str,
    seed: u64,
    progress: &Progress,
) -> Vec<Check> {
    let cx = Cx::with_operators(registry.operators());
    let mut random = Random::new(seed);
    let calls: Vec<Call> =
        calls(&cx, op, &mut random).iter().map(|call| sized(&cx, call)).take(CALLS).collect();
    let name = format!("{} of {}", facet, op.name);
    let mut checks = Vec::new();
    if facet == DecomposeForTraining::NAME {
        checks.push(Check::skipped(&name, "same results", "training computes something else"));
        return checks;
    }
    for pass in askers(registry, facet) {
        let Ok(plan) = plan(registry, &pass.name) else { continue };
        let (mut tried, mut wrong, mut refused) = (0, Vec::new(), Vec::<String>::new());
        for call in &calls {
            let text = call_text(&cx, &call.args, call.attrs);
            progress.next("same results", text.clone());
            match same_results(registry, &plan, pass, facet, &module_of(&cx, op, call), seed) {
                Ok(Trial::Compared) => tried += 1,
                Ok(Trial::Refused(error)) if is_of_rule(&cx, op, call, &error) => {
                    refused.push(format!("{text}: {error}"));
                }
                Ok(Trial::Nothing | Trial::Refused(_)) => {}
                Err(what) => wrong.push(Finding(format!("{}: {what}", pass.name))),
            }
        }
        if tried == 0
            && wrong.is_empty()
            && let Some(first) = refused.first()
        {
            let all = refused.len();
            wrong.push(Finding(format!("{} fails on all of {all} calls, as {first}", pass.name)));
        }
        let wrong = first(wrong);
        checks.push(match tried == 0 && wrong.is_empty() {
            true => Check::skipped(&name, "same results", "no call at random could be compared"),
            false => {
                let calls = format!("{} over {tried} calls", pass.name);
                Check::new(Some(&name), "same results", calls, wrong)
            }
        });
        // A pass that adds programs adds no derivatives.
        if !pass.asks.iter().any(|asked| asked == COMPUTE) {
            let found = derivatives(registry, &plan, op, &name, &mut random, progress);
            let none = || Check::skipped(&name, "derivatives", "no call of f64 alone has any");
            checks.extend(found.or_else(|| (facet == Gradient::NAME).then(none)));
        }
    }
    checks
}

/// A function of one call, without types.
fn module_of(cx: &Cx, op: &OpDef, call: &Call) -> Module {
    let mut tx = Transaction::new(cx.clone());
    let params: Vec<_> =
        (0..).zip(&call.args).map(|(index, &ty)| tx.var(&format!("x{index}"), Some(ty))).collect();
    let callee = tx.op(op.name);
    let value = tx.call(callee, &params, call.attrs, None);
    let var = tx.var("y", None);
    let body = tx.let_blocks(&[(true, vec![(var, value)])], var);
    let root = tx.function(&params, body, None, Attrs::NONE);
    tx.set_root(root);
    let mut module = Module::new(cx.clone());
    if let Ok(function) = tx.finish() {
        module.insert(cx.symbol("main"), function);
    }
    module
}

/// Whether a pass failed by what a rule about the operator says: tensors of unknown rank are nothing that a rule must know of, and
/// what says nothing of the operator is of the pass itself.
fn is_of_rule(cx: &Cx, op: &OpDef, call: &Call, error: &str) -> bool {
    let is_ranked = |&ty: &Type| match cx.terms().ty(ty) {
        TypeView::Tensor { dims, .. } => dims.is_some(),
        _ => true,
    };
    call.args.iter().all(is_ranked) && error.contains(&format!("`{}`", op.name))
}

/// What came of a pass over a call.
enum Trial {
    /// What it made computes the same.
    Compared,
    /// Nothing could be compared.
    Nothing,
    /// It failed with these words of its own.
    Refused(String),
}

/// Runs a pass; its own words when it fails with such.
fn changed(
    registry: &Registry,
    plan: &Plan,
    module: &Module,
) -> Result<Result<Module, String>, Finding> {
    let mut context = PassContext { opt_level: u8::MAX, ..PassContext::default() };
    match run(registry, plan, module, &mut context) {
        Ok(after) => Ok(Ok(after)),
        Err(error) if is_panic(&error) => Err(Finding(error.to_string())),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn is_panic(error: &PassError) -> bool {
    error.to_string().contains("panic at")
}

/// A pass over a call leaves what it computes.
fn same_results(
    registry: &Registry,
    plan: &Plan,
    pass: &PassRecord,
    facet: &str,
    module: &Module,
    seed: u64,
) -> Result<Trial, Finding> {
    let Ok(module) = infer_module(module) else { return Ok(Trial::Nothing) };
    let tolerance = pass.tolerance.map_or_else(Tolerance::default, Tolerance::part);
    let mut reference = Reference::new(&module, seed).with_tolerance(tolerance);
    if facet == COMPUTE {
        // A program adds up in the element type, which has an end where the f64 of the evaluation has none.
        reference = reference.with_ordinary_numbers();
    }
    let after = match changed(registry, plan, &module)? {
        Ok(after) => after,
        Err(error) => return Ok(Trial::Refused(error)),
    };
    match reference.advance(&after) {
        Ok(_) if reference.is_empty() => Ok(Trial::Nothing),
        Ok(_) => Ok(Trial::Compared),
        Err(difference) => Err(Finding(difference.how.to_string())),
    }
}

/// Where a pass adds the derivatives of a loss, they are those of central differences in f64.
fn derivatives(
    registry: &Registry,
    plan: &Plan,
    op: &OpDef,
    name: &str,
    random: &mut Random,
    progress: &Progress,
) -> Option<Check> {
    let cx = Cx::with_operators(registry.operators());
    let loss = Loss::of(&cx)?;
    let (mut tried, mut wrong) = (0, Vec::new());
    for call in calls(&cx, op, random).iter().take(CALLS) {
        let call = in_f64(&cx, &sized(&cx, call));
        let Some(call) = call else { continue };
        progress.next("derivatives", call_text(&cx, &call.args, call.attrs));
        match differences(registry, plan, op, &cx, &call, &loss, random) {
            Ok(was_tried) => tried += usize::from(was_tried),
            Err(what) => wrong.push(what),
        }
    }
    let wrong = first(wrong);
    (tried > 0 || !wrong.is_empty()).then(|| {
        let calls = format!("{tried} calls against differences");
        Check::new(Some(name), "derivatives", calls, wrong)
    })
}

/// The call with floats of f64; `None` where an argument is no tensor of known shape.
fn in_f64(cx: &Cx, call: &Call) -> Option<Call> {
    let wide = |&ty: &Type| {
        let (dtype, shape) = cx.terms().static_tensor(ty)?;
        let dtype = if dtype.is_float() { DType::F64 } else { return None };
        Some(cx.static_tensor_type(dtype, &shape))
    };
    let args: Option<Vec<Type>> = call.args.iter().map(wide).collect();
    Some(Call { args: args?, attrs: call.attrs, result: call.result })
}

/// Compares what is added with differences of the loss.
fn differences(
    registry: &Registry,
    plan: &Plan,
    op: &OpDef,
    cx: &Cx,
    call: &Call,
    made_of: &Loss,
    random: &mut Random,
) -> Result<bool, Finding> {
    let Some(module) = with_loss(cx, op, call, made_of) else { return Ok(false) };
    let Ok(after) = changed(registry, plan, &module)? else { return Ok(false) };
    let added = after.iter().find(|(name, _)| module.get(*name).is_none());
    let Some((adjoint, _)) = added else { return Ok(false) };
    let adjoint = cx.terms().str(adjoint).to_owned();
    let values: Vec<Vec<f64>> = call.args.iter().map(|&ty| numbers(cx, ty, random)).collect();
    let tensors = |values: &[Vec<f64>]| -> Vec<Value> {
        let all = call.args.iter().zip(values);
        all.map(|(&ty, values)| Value::Tensor(tensor(cx, ty, values))).collect()
    };
    let loss = |values: &[Vec<f64>]| -> Option<f64> {
        let value = Evaluator::new(&after).call("main", tensors(values)).ok()?;
        Some(value.to_tensor()?.elements::<f64>()[0])
    };
    if loss(&values).is_none_or(|loss| !loss.is_finite()) {
        return Ok(false);
    }
    let found = Evaluator::new(&after).call(&adjoint, tensors(&values));
    let found = found.map_err(|error| Finding(format!("@{adjoint}: {error}")))?;
    let Value::Tuple(found) = found else {
        return Err(Finding(format!("@{adjoint} gives no tuple")));
    };
    let Some(Value::Tuple(grads)) = found.fields().get(1) else {
        return Err(Finding(format!("@{adjoint} gives no gradients")));
    };
    for (arg, grad) in grads.fields().iter().enumerate() {
        let grad = grad.to_tensor().ok_or_else(|| Finding("a gradient is no tensor".to_owned()))?;
        let grad = grad.elements::<f64>();
        for _ in 0..ELEMENTS.min(grad.len()) {
            let element = random.below(grad.len());
            let difference = |step: f64| {
                let moved = |by: f64| {
                    let mut values = values.clone();
                    values[arg][element] += by;
                    loss(&values)
                };
                Some((moved(step)? - moved(-step)?) / (2.0 * step))
            };
            // The sine of a large number is steep: its third derivative is the cube of the slope.
            let step = 1e-6;
            let (Some(wanted), Some(wider)) = (difference(step), difference(2.0 * step)) else {
                continue;
            };
            let allowed = 1e-4 * (1.0 + wanted.abs());
            // Near a pole it is steeper than any step is short; then the differences of two steps are no longer equal.
            if (wanted - wider).abs() > allowed {
                continue;
            }
            if (grad[element] - wanted).abs() > allowed {
                return Err(Finding(format!(
                    "by element {element} of argument {} it is {}, and by differences {wanted}",
                    arg + 1,
                    grad[element]
                )));
            }
        }
    }
    Ok(true)
}

/// The call, and the loss: the sum of the sines of all elements, so that each one weighs otherwise.
fn with_loss(cx: &Cx, op: &OpDef, call: &Call, Loss { sine, total, add }: &Loss) -> Option<Module> {
    let result = op.infer(cx, &call.args, call.attrs).ok()?;
    let fields = match cx.terms().ty(result) {
        TypeView::Tuple(fields) => fields.to_vec(),
        _ => vec![result],
    };
    let are_floats = fields
        .iter()
        .all(|&ty| cx.terms().static_tensor(ty).is_some_and(|(dtype, _)| dtype == DType::F64));
    if !are_floats {
        return None;
    }
    let mut tx = Transaction::new(cx.clone());
    let mut bindings = Vec::new();
    let mut bind = |tx: &mut Transaction, value| {
        let var = tx.var(&format!("v{}", bindings.len()), None);
        bindings.push((var, value));
        var
    };
    let params: Vec<_> =
        (0..).zip(&call.args).map(|(index, &ty)| tx.var(&format!("x{index}"), Some(ty))).collect();
    let callee = tx.op(op.name);
    let value = tx.call(callee, &params, call.attrs, None);
    let value = bind(&mut tx, value);
    let mut loss = None;
    for index in 0..fields.len() {
        let field = match fields.len() {
            1 if fields[0] == result => value,
            _ => {
                let field = tx.tuple_get_item(value, index as u32);
                bind(&mut tx, field)
            }
        };
        let sine = tx.call_op(sine, &[field], Attrs::NONE);
        let sine = bind(&mut tx, sine);
        let sum = tx.call_op(total, &[sine], Attrs::NONE);
        let sum = bind(&mut tx, sum);
        loss = Some(match loss {
            None => sum,
            Some(loss) => {
                let both = tx.call_op(add, &[loss, sum], Attrs::NONE);
                bind(&mut tx, both)
            }
        });
    }
    let body = tx.let_blocks(&[(true, bindings)], loss?);
    let root = tx.function(&params, body, None, Attrs::NONE);
    tx.set_root(root);
    let mut module = Module::new(cx.clone());
    module.insert(cx.symbol("main"), tx.finish().ok()?);
    infer_module(&module).ok()
}

/// The operators that a loss is made of.
struct Loss {
    sine: String,
    total: String,
    add: String,
}

impl Loss {
    fn of(cx: &Cx) -> Option<Self> {
        Some(Self { sine: sine(cx)?, total: sum_of_all(cx)?, add: sum_of_two(cx)? })
    }
}

/// Numbers that differ from each other, so that what is largest does not change by a small step.
fn numbers(cx: &Cx, ty: Type, random: &mut Random) -> Vec<f64> {
    let count = cx.terms().static_tensor(ty).map_or(0, |(_, shape)| shape.iter().product::<i64>());
    (0..count).map(|_| 0.25 + random.below(100_000) as f64 / 50_000.0).collect()
}

fn tensor(cx: &Cx, ty: Type, values: &[f64]) -> Tensor {
    let shape = cx.terms().static_tensor(ty).map_or(Vec::new(), |(_, shape)| shape);
    Tensor::from_vec(shape.iter().map(|&extent| extent as usize).collect(), values.to_vec())
}
