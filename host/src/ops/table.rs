//! The operators that exist, by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{OpDef, OpError};
use crate::suggest::several_nearest;

static TABLE: LazyLock<HashMap<&'static str, &'static OpDef, rustc_hash::FxBuildHasher>> =
    LazyLock::new(|| inventory::iter::<OpDef>().map(|op| (op.name, op)).collect());

/// The operator called `name`; the error lists the nearest names.
pub fn get(name: &str) -> Result<&'static OpDef, OpError> {
    match TABLE.get(name) {
        Some(op) => Ok(op),
        None => {
            let nearest = several_nearest(name, TABLE.keys().copied(), 3);
            Err(OpError::UnknownOp { name: name.into(), nearest })
        }
    }
}

/// The operator called `name`, if there is one.
pub fn find(name: &str) -> Option<&'static OpDef> {
    TABLE.get(name).copied()
}

/// All operators in ascending order of their names.
pub fn all() -> Vec<&'static OpDef> {
    let mut all: Vec<&'static OpDef> = TABLE.values().copied().collect();
    all.sort_unstable_by_key(|op| op.name);
    all
}
