//! The intrinsics that the loops of a program say compute them.

use std::collections::BTreeSet;

use tenon_plugin_api::rule::{INTRINSIC, TensorIntrinsic};

use crate::backend::{BackendError, Problem};
use crate::border::tensor_intrinsic;
use crate::ir::{Function, View};

/// Those that a program names, each once.
///
/// # Errors
/// When a plugin has none of a name, or describes it wrongly.
pub(super) fn intrinsics_of(
    name: &str,
    program: &Function,
) -> Result<Vec<TensorIntrinsic>, BackendError> {
    let body = program.view();
    let named = body.post_order().filter_map(|expr| match body.view(expr) {
        View::For { attrs, .. } => body.terms().attrs(attrs).str(INTRINSIC),
        _ => None,
    });
    let find = |intrinsic: &str| {
        let refused = |reason: String| {
            let what = format!("what the intrinsic `{intrinsic}` computes");
            Problem::Unsupported { what, reason }.of(name)
        };
        match tensor_intrinsic(program.cx(), intrinsic) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(refused("no plugin has it".to_owned())),
            Err(why) => Err(refused(why)),
        }
    };
    named.collect::<BTreeSet<&str>>().into_iter().map(find).collect()
}
