//! Calls of operators, of which most are like many others of the same network.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use tenon_plugin_api::op::OpError;

use super::devices::on_one_device;
use crate::{Attrs, Context, Cx, OpDef, Symbol, Type};

/// What was found out about operators and calls of them, in one context.
#[derive(Default)]
pub struct KnownCalls {
    ops: HashMap<Symbol, Result<Arc<OpDef>, OpError>, FxBuildHasher>,
    /// The types of calls that were asked for lately, each at the place that its hash leads to.
    types: Vec<(Key, Type)>,
}

/// Operator, attributes, number of arguments and their types. A call of more than there is room for is not kept.
type Key = (Symbol, Attrs, usize, [Type; 4]);

const NO_CALL: (Key, Type) = ((Symbol(0), Attrs::NONE, 0, [Type(0); 4]), Type(0));
const PLACES: usize = 64;

impl KnownCalls {
    /// The operator of this name.
    pub(super) fn op(&mut self, cx: &Cx, name: Symbol) -> Result<Arc<OpDef>, OpError> {
        let known = self.ops.entry(name);
        known.or_insert_with(|| cx.operators().get(cx.terms().str(name))).clone()
    }

    /// The type of a call of an operator.
    pub(super) fn infer(
        &mut self,
        cx: &Cx,
        (name, op): (Symbol, &OpDef),
        args: &[Type],
        attrs: Attrs,
    ) -> Result<Type, OpError> {
        let mut key: Key = (name, attrs, args.len(), [Type(0); 4]);
        let Some(room) = key.3.get_mut(..args.len()) else {
            return on_one_device(cx, op, args, attrs);
        };
        room.copy_from_slice(args);
        self.types.resize(PLACES, NO_CALL);
        let place = (FxBuildHasher.hash_one(key) >> 32) as usize % PLACES;
        let (known, ty) = &mut self.types[place];
        if *known != key {
            (*known, *ty) = (key, on_one_device(cx, op, args, attrs)?);
        }
        Ok(*ty)
    }
}
