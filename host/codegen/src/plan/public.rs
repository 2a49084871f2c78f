//! Which functions of a module a library has.

use super::PlanError;
use super::sizes::{Bindings, SizeStep, Sizes};
use tenon_ir::{Context, Dim, Function, Module, View};

/// The function that is meant where nobody names one.
const MAIN: &str = "main";

/// The functions of a library, that which is meant where nobody names one first, and whether there is such a one: all that
/// others may call, and `main`.
pub fn functions_of(module: &Module) -> Result<(Vec<String>, bool), PlanError> {
    let default = default_function(module).ok();
    let others = all(module).into_iter().filter(|name| Some(name) != default.as_ref());
    let functions: Vec<String> = default.iter().cloned().chain(others).collect();
    match functions.is_empty() {
        true => Err(PlanError::NoDefault { found: functions }),
        false => Ok((functions, default.is_some())),
    }
}

/// The function that is meant where nobody names one: `main`, or the only one that others may call. Where a module has a graph
/// function, its programs are parts of that.
pub fn default_function(module: &Module) -> Result<String, PlanError> {
    if module.get_str(MAIN).is_some() {
        return Ok(MAIN.to_owned());
    }
    let graph = named(module, |function| !function.is_prim());
    let mut found = if graph.is_empty() { all(module) } else { graph };
    match found.len() {
        1 => Ok(found.remove(0)),
        _ => Err(PlanError::NoDefault { found }),
    }
}

/// The functions that others may call: graph functions, and tensor programs that stand alone; others are parts of what calls
/// them.
pub(super) fn all(module: &Module) -> Vec<String> {
    named(module, |function| !function.is_prim() || stands_alone(function))
}

fn named(module: &Module, is_meant: impl Fn(&Function) -> bool) -> Vec<String> {
    let terms = module.cx().terms();
    let functions = module.iter().filter(|(_, it)| !it.is_private() && is_meant(it));
    functions.map(|(name, _)| terms.str(name).to_owned()).collect()
}

/// Whether a program takes nothing but tensors, whose shapes say those of what it writes.
fn stands_alone(program: &Function) -> bool {
    let (body, terms) = (program.view(), program.cx().terms());
    let View::PrimFunc { params, outputs, .. } = body.view(body.root()) else { return false };
    let tensor = |param| body.ty(param).and_then(|ty| terms.tensor(ty));
    let tensors: Option<Vec<&[Dim]>> = params.iter().map(|it| Some(tensor(it)?.1)).collect();
    let Some(tensors) = tensors else { return false };
    let (read, written) = tensors.split_at(tensors.len() - outputs);
    let (mut sizes, mut symbols) = (Sizes::default(), Bindings::default());
    let mut met = Vec::new();
    for (input, dims) in read.iter().enumerate() {
        for (axis, &dim) in dims.iter().enumerate() {
            met.push((dim, sizes.step(SizeStep::Extent { input, axis })));
        }
    }
    let bound = sizes.bind(terms, &met, &mut symbols);
    bound.iter().all(Option::is_some)
        && written.iter().copied().flatten().all(|&dim| sizes.dim(terms, dim, &symbols).is_some())
}
