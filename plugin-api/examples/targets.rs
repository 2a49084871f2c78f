//! A plugin that decides by the target: an operator with two programs, and passes that say what they see.

use tenon_plugin_api::op::prelude::*;
use tenon_plugin_api::pass;
use tenon_plugin_api::prelude::{Function, Module, PassContext};
use tenon_plugin_api::rule::prelude::*;

tenon_plugin_api::plugin! { id = "test.targets", summary = "Decides by the target" }

/// A tensor as it is
#[op(name = "test.copied", pattern = "elementwise")]
pub struct Copied {}

impl Operator for Copied {
    fn infer(&self, cx: &InferCx<'_>) -> Result<Type> {
        cx.tensor(0)?;
        cx.arg(0)
    }

    fn evaluate(&self, cx: &EvalCx<'_>) -> Result<Vec<Tensor>> {
        Ok(vec![cx.arg(0)?.clone()])
    }
}

/// The program for vectors of 512 bits, through a buffer called `wide`.
#[rule(compute, benefit = 10)]
fn wide(_: &Copied, program: &mut Program) -> Option<()> {
    if program.target().int("vector_bits").is_none_or(|bits| bits < 512) {
        return None;
    }
    let (x, y) = (program.input(0), program.output(0));
    let copy = program.map("wide", x.compute_dtype(), x.shape(), |place| x.wide(place));
    program.set(&y, |place| copy.at(place));
    Some(())
}

/// The program for all others.
#[rule(compute)]
fn any(_: &Copied, program: &mut Program) {
    let (x, y) = (program.input(0), program.output(0));
    program.set(&y, |place| x.wide(place));
}

/// Says of each function how wide the vectors of its target are, and those of the module's.
#[pass(name = "test.TellTargets", opt_level = 0)]
fn tell_targets(module: Module, cx: &PassContext) -> pass::Result<Module> {
    let of_module = cx.target().int("vector_bits").unwrap_or(0);
    for (name, func) in module.functions() {
        let own = cx.terms().attrs(cx.target_of(&func)).int("vector_bits").unwrap_or(0);
        cx.note(&format!("@{} has {own} of {of_module}", cx.terms().str(name)));
    }
    Ok(module)
}

/// Says how wide the vectors of its target are, where it is over one function.
#[pass(name = "test.TellTarget", opt_level = 0)]
fn tell_target(func: Function, _: &Module, cx: &PassContext) -> pass::Result<Function> {
    let own = cx.target().int("vector_bits").unwrap_or(0);
    cx.note(&format!("one of {}, {own}", func.param_types().len()));
    Ok(func)
}
