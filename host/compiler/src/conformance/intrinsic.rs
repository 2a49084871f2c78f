//! What is looked at of a tensor intrinsic: whether its code computes what its description says.
//!
//! ```ir
//! for %i in 0..16 { %c[%i] = %start[%i] }
//! for %j in 0..16 { intrinsic = "acme.dots" } { for %k in 0..4 { %c[%j] = %c[%j] + … } }
//! ```

use std::sync::Arc;

use tenon_plugin_api::rule::{INTRINSIC, TensorIntrinsic};

use super::Check;
use super::patience::Progress;
use crate::border::described_intrinsic;
use crate::diagnostics::Source;
use crate::ir::{
    AttrValue, Attrs, Build, BuildPrim, Context, Cx, DType, Function, LoopKind, Module,
    Transaction, Type, View,
};
use crate::passes::{PassContext, plan, run};
use crate::registry::Registry;
use crate::target::Target;
use crate::text::{NoWeights, WeightsPolicy, parse_module, print_module};
use crate::validate::{Reference, Tolerance, compare_compiled};

/// Sums of floats may be made in another order.
const TOLERANCE: f64 = 1e-4;

/// Examines the intrinsic of a name.
pub(super) fn checks(
    registry: &Registry,
    name: &str,
    seed: u64,
    progress: &Progress,
) -> Vec<Check> {
    let cx = Cx::with_operators(registry.operators());
    let title = format!("intrinsic {name}");
    let check = |check, looked_at: &str, result: Result<(), String>| {
        Check::new(Some(&title), check, looked_at.to_owned(), result.err().into_iter().collect())
    };
    progress.next("description", name.to_owned());
    let found = described_intrinsic(&cx, name)
        .and_then(|found| found.ok_or_else(|| "its rule answers nothing".to_owned()));
    let (intrinsic, program) = match found {
        Ok(found) => found,
        Err(why) => return vec![check("description", "", Err(why))],
    };
    let described = check("description", &format!("the loops {}", intrinsic.nest()), Ok(()));
    progress.next("same results", name.to_owned());
    let compared = match processor(&intrinsic) {
        Err(why) => Check::skipped(&title, "same results", &why),
        Ok(target) => {
            let result = same_results(registry, &cx, &program, name, &target, seed);
            check("same results", "its code for this processor", result)
        }
    };
    vec![described, compared]
}

/// This machine, where it has what the intrinsic needs; otherwise what is missing.
fn processor(intrinsic: &TensorIntrinsic) -> Result<Target, String> {
    let target = Target::native().map_err(|error| error.to_string())?;
    if target.architecture().name() != intrinsic.architecture {
        return Err(format!("this processor is no {}", intrinsic.architecture));
    }
    match intrinsic.features.iter().find(|feature| !target.has(feature)) {
        Some(missing) => Err(format!("this processor has no `{missing}`")),
        None => Ok(target),
    }
}

/// What is compiled of the description with the intrinsic computes what the evaluator makes of the loops.
fn same_results(
    registry: &Registry,
    cx: &Cx,
    program: &Arc<Function>,
    name: &str,
    target: &Target,
    seed: u64,
) -> Result<(), String> {
    let module = module_of(cx, program, name)?;
    let reference = Reference::new(&module, seed).with_tolerance(Tolerance::part(TOLERANCE));
    let reference = reference.with_ordinary_numbers();
    let plan = plan(registry, "default").map_err(|error| error.to_string())?;
    let mut context = PassContext { target: target.attrs(cx), ..PassContext::default() };
    let lowered = run(registry, &plan, &module, &mut context).map_err(|error| error.to_string())?;
    compare_compiled(&reference, &lowered, target, "main").map_err(|error| error.to_string())
}

/// A function `main` that calls the description, whose operand that is read and written starts as one more input.
fn module_of(cx: &Cx, program: &Arc<Function>, name: &str) -> Result<Module, String> {
    let mut with_start = Module::new(cx.clone());
    let (tile, types) = started(program, name).ok_or("its description is no nest of loops")?;
    with_start.insert(cx.symbol("tile"), tile);
    let types: Vec<String> = types.iter().map(|&ty| type_text(cx, ty)).collect();
    let (result, inputs) = types.split_last().ok_or("it has no operands")?;
    let names: Vec<String> = (0..inputs.len()).map(|index| format!("%x{index}")).collect();
    let params: Vec<String> =
        names.iter().zip(inputs).map(|(name, ty)| format!("{name}: {ty}")).collect();
    let text = format!(
        "{}\nfn @main({}) -> {result} {{\n  %y: {result} = call_tir(@tile, {}) {{ out = {result} }}\n  ret %y\n}}\n",
        print_module(&with_start, &mut WeightsPolicy::inline()),
        params.join(", "),
        names.join(", ")
    );
    parse_module(cx, &Source::new("intrinsic", text), &mut NoWeights)
        .map_err(|errors| errors.render(false))
}

/// The description as a program of its own, and the types of its parameters.
fn started(program: &Arc<Function>, name: &str) -> Option<(Arc<Function>, Vec<Type>)> {
    let body = program.view();
    let View::PrimFunc { params, body: nest, .. } = body.view(body.root()) else { return None };
    let View::For { var, min, extent, body: inside, attrs, .. } = body.view(nest) else {
        return None;
    };
    let mut params = params.to_vec();
    let result = params.pop()?;
    let ty = body.ty(result)?;
    let (_, shape) = body.terms().static_tensor(ty)?;
    let mut tx = Transaction::edit(program);
    let start = tx.buffer("start", ty, "");
    let vars: Vec<_> = shape.iter().map(|_| tx.scalar_var("at", DType::I64)).collect();
    let value = tx.load(start, &vars);
    let store = tx.store(result, value, &vars);
    let copy = vars
        .iter()
        .zip(&shape)
        .rev()
        .fold(store, |body, (&var, &extent)| tx.for_range(var, extent, LoopKind::Serial, body));
    let named = tx.with_cx(|cx| cx.with_attr(attrs, INTRINSIC, AttrValue::Str(name.to_owned())));
    let nest = tx.for_loop(var, min, extent, LoopKind::Serial, inside, named);
    let both = tx.seq(&[copy, nest]);
    params.extend([start, result]);
    let types = params.iter().map(|&param| tx.body().ty(param)).collect::<Option<Vec<_>>>()?;
    let root = tx.prim_func(&params, 1, both, Attrs::NONE);
    tx.set_root(root);
    Some((tx.finish().ok()?, types))
}

fn type_text(cx: &Cx, ty: Type) -> String {
    let Some((dtype, shape)) = cx.terms().static_tensor(ty) else { return String::new() };
    let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("{dtype}[{}]", extents.join(", "))
}
