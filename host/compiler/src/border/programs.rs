//! The tensor programs of calls, by the rules of the facet `compute`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use tenon_plugin_api::abi::tables::RawEdit;
use tenon_plugin_api::ir::Term;

use super::edit::Edit;
use super::rules::{Site, first_answer};
use super::run::{Call, Run};
use crate::ir::{Attrs, Context, Cx, Function, OpDef, RuleQuestion, Type};
use crate::ops::program::{Buffers, COMPUTE, no_program};
use crate::services::ServiceError;

/// The tensor program of a call of an operator, private to its module: its parameters are the flattened tensor arguments,
/// then the flattened tensors of the result. `target` is what it is for, a dictionary.
///
/// # Errors
/// When no rule has a program for these types, or one fails; the text names the operator and the plugin.
pub fn program_of_call(
    cx: &Cx,
    op: &OpDef,
    args: &[Type],
    attrs: Attrs,
    out: Type,
    target: Attrs,
) -> Result<Arc<Function>, String> {
    program(cx, op, args, attrs, out, target).map_err(|error| error.to_string())
}

pub(crate) fn program(
    cx: &Cx,
    op: &OpDef,
    args: &[Type],
    attrs: Attrs,
    out: Type,
    target: Attrs,
) -> Result<Arc<Function>, ServiceError> {
    let refused = |error| ServiceError::NoProgram { op: op.name.to_owned(), error };
    let rules = cx.operators().rules(COMPUTE, op.name, 0)?;
    let buffers = Buffers::of_call(cx, op, args, out).map_err(refused)?;
    if rules.is_empty() {
        return Err(refused(no_program(cx, op.name, args, out)));
    }
    if buffers.is_nothing_written(cx) {
        let mut nothing = buffers.nothing(cx, op);
        nothing.make_private();
        return Ok(nothing.finish()?);
    }
    let list = |types: &[Type]| cx.list(&types.iter().map(|&ty| ty.into()).collect::<Vec<Term>>());
    let data = cx.list(&[
        attrs.into(),
        list(args),
        out.into(),
        target.into(),
        list(&buffers.inputs),
        list(&buffers.outputs),
        cx.int(op.pattern as i64),
    ]);
    // A run of its own: what a rule adds is no edit of the pass that needs the program.
    static NEVER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
    let run = Run::new(cx.clone(), Attrs::NONE, target, NEVER.clone());
    let asker = Arc::new(Call::new(Arc::new(run)));
    let mut edit = Edit::new(asker.clone(), None);
    let site = Site::of_program(asker, (&raw mut edit).cast::<RawEdit>());
    let question = RuleQuestion { cx, nodes: &[], data: data.0, site: &site };
    let answer = match first_answer(&rules, &format!("{COMPUTE}:{}", op.name), &question) {
        Err(ServiceError::Refused(what)) => {
            return Err(refused(crate::ops::OpError::Unsupported(what)));
        }
        answer => answer?,
    };
    let Some(answer) = answer else { return Err(refused(no_program(cx, op.name, args, out))) };
    let &[root] = answer.nodes.as_slice() else {
        let what = "it answers what is no program".to_owned();
        return Err(refused(crate::ops::OpError::Broken(what)));
    };
    let function = edit.into_program(root)?;
    buffers.check(&function).map_err(refused)?;
    Ok(function)
}
