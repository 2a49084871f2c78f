//! Which constants are read as they lie, so that one in another layout would be a second copy.

use std::collections::HashSet;

use tenon_plugin_api::prelude::*;

/// The constants of a function that something reads as they lie, by the address of their elements.
pub(crate) struct ReadAsTheyLie(HashSet<usize>);

impl ReadAsTheyLie {
    /// Looks at all calls; `is_free` says which arguments of a call may be constants in any layout.
    pub(crate) fn of(
        rw: &mut Rewriter,
        body: BodyView<'_>,
        is_free: impl Fn(&str, usize) -> bool,
    ) -> Self {
        let mut addresses = HashSet::new();
        for expr in body.post_order() {
            let View::Call { callee, args, .. } = body.view(expr) else { continue };
            let op = body.op_name(callee).unwrap_or_default();
            for (index, arg) in args.iter().enumerate() {
                if !is_free(op, index)
                    && let Some(address) = address_of(rw, arg)
                {
                    addresses.insert(address);
                }
            }
        }
        Self(addresses)
    }

    /// Whether an expression is such a constant.
    pub(crate) fn contains(&self, rw: &mut Rewriter, expr: Expr) -> bool {
        address_of(rw, expr).is_some_and(|address| self.0.contains(&address))
    }
}

/// Where the elements of a constant lie; `None` for anything else.
fn address_of(rw: &mut Rewriter, expr: Expr) -> Option<usize> {
    let definition = rw.definition(expr);
    match rw.view(definition) {
        View::Constant(constant) => Some(constant.bytes.as_ptr().addr()),
        _ => None,
    }
}
