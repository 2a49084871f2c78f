//! A graph function for some of its arguments.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

/// What takes the place of a parameter.
pub(crate) struct Bound {
    /// The number of the parameter.
    pub(crate) param: usize,
    /// The constant, by its function and number.
    pub(crate) value: Value,
}

/// A constant.
pub(crate) enum Value {
    /// Number `1` of a function's constants.
    Shared(Function, u32),
    /// Of a static tensor type, by its bytes.
    Made(Type, Vec<u8>),
}

/// A graph function without the parameters that are bound, and with dimensions in the place of symbols.
pub(crate) fn specialize(
    func: &Function,
    bound: &[Bound],
    dims: &mut Substitution,
    cx: &PassContext,
) -> Result<Function> {
    let body = func.view();
    let mut rw = Rewriter::new(cx);
    let mut map: HashMap<Expr, Expr> = HashMap::new();
    let params = body.operands(body.root());
    for bound in bound {
        let constant = match &bound.value {
            Value::Shared(from, index) => rw.share_constant(from, *index),
            Value::Made(ty, bytes) => rw.constant(*ty, bytes),
        };
        map.insert(params.at(bound.param), constant);
    }
    let is_bound = |param: usize| bound.iter().any(|bound| bound.param == param);
    let operands: Vec<Expr> = (0..params.len())
        .filter(|&param| !is_bound(param))
        .map(|param| rw.import_with(func, params.at(param), &mut map, dims))
        .collect();
    let root = rw.copy_from(func, body.root(), &operands, dims);
    rw.set_type(root, None);
    rw.set_root(root);
    rw.finish()
}
