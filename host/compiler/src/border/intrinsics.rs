//! Tensor intrinsics, by the rules of the facet `intrinsic`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tenon_plugin_api::abi::tables::RawEdit;
use tenon_plugin_api::rule::{Facet, Intrinsics, TensorIntrinsic};

use super::edit::Edit;
use super::rules::{Site, first_answer};
use super::run::{Call, Run};
use crate::ir::{Attrs, Cx, Function, RuleQuestion};
use crate::services::ServiceError;

/// The intrinsic of a name, and the program that describes it; none where no plugin has it.
///
/// # Errors
/// When its rule fails or describes it wrongly, or two of its name come first; the text names the intrinsic.
pub fn described_intrinsic(cx: &Cx, name: &str) -> Result<Option<Described>, String> {
    find(cx, name).map_err(|error| error.to_string())
}

/// The intrinsic of a name; none where no plugin has it.
///
/// # Errors
/// As [`described_intrinsic`].
pub fn tensor_intrinsic(cx: &Cx, name: &str) -> Result<Option<TensorIntrinsic>, String> {
    Ok(described_intrinsic(cx, name)?.map(|(intrinsic, _)| intrinsic))
}

type Described = (TensorIntrinsic, Arc<Function>);

fn find(cx: &Cx, name: &str) -> Result<Option<Described>, ServiceError> {
    let facet = Intrinsics::NAME;
    let rules = cx.operators().rules(facet, name, 0)?;
    let run = Run::new(cx.clone(), Attrs::NONE, Attrs::NONE, Arc::<AtomicBool>::default());
    let asker = Arc::new(Call::new(Arc::new(run)));
    let mut edit = Edit::new(asker.clone(), None);
    let site = Site::of_program(asker, (&raw mut edit).cast::<RawEdit>());
    let question = RuleQuestion { cx, nodes: &[], data: 0, site: &site };
    let Some(answer) = first_answer(&rules, &format!("{facet}:{name}"), &question)? else {
        return Ok(None);
    };
    let wrong = |what: String| {
        ServiceError::Refused(format!("the intrinsic `{name}` is described wrongly: {what}"))
    };
    let &[root] = answer.nodes.as_slice() else {
        return Err(wrong("it is no program".to_owned()));
    };
    let function = edit.into_program(root)?;
    let body = function.view();
    let intrinsic = TensorIntrinsic::read(body, name, body.root(), Attrs(answer.data));
    intrinsic.map(|intrinsic| Some((intrinsic, function.clone()))).map_err(wrong)
}
