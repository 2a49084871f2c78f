//! Which rules there are for a node.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ir::{Cx, Rule};
use crate::ops::OpError;

/// The oldest version of the standard operators that is known.
pub(super) const OLDEST_VERSION: i64 = 7;
/// The newest one.
pub(super) const NEWEST_VERSION: i64 = 28;

/// What rules for the nodes of a type are asked by: the type, behind its domain where that is not the standard one.
pub(super) fn key<'a>(domain: &str, op_type: &'a str) -> Cow<'a, str> {
    match domain {
        "" => Cow::Borrowed(op_type),
        domain => Cow::Owned(format!("{domain}::{op_type}")),
    }
}

/// The rules for a key that hold in a version of the domain's operators. The error says why they cannot be used.
pub(super) fn find(cx: &Cx, key: &str, version: i64) -> Result<Arc<[Rule]>, OpError> {
    match u64::try_from(version) {
        Ok(version) => cx.operators().rules(super::FACET, key, version),
        Err(_) => Ok(Arc::new([])),
    }
}
