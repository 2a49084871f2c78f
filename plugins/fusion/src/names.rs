//! Names of what several programs compute together, and which functions are such groups.

use tenon_plugin_api::ir::Terms;
use tenon_plugin_api::prelude::*;

/// Longer names tell how many programs they leave out.
const MAX_LEN: usize = 64;

/// Whether a function is a group already, of this pass or of a vendor's.
pub(crate) fn is_group(cx: &PassContext, func: &Function) -> bool {
    let attrs = cx.terms().attrs(func.attrs());
    ["Primitive", "Composite", "Codegen"].iter().any(|key| attrs.term(key).is_some())
}

/// How a program appears in names: the last part of the name of the operator that it computes, or `name`
/// where it does not say.
pub(crate) fn label<'a>(terms: Terms<'a>, attrs: Attrs, name: &'a str) -> &'a str {
    let op = terms.attrs(attrs).str("op_name").unwrap_or(name);
    op.rsplit('.').next().unwrap_or(op)
}

/// `conv2d_add_relu`.
pub(crate) fn join<'a>(labels: impl ExactSizeIterator<Item = &'a str>) -> String {
    let mut name = String::new();
    let count = labels.len();
    for (index, label) in labels.enumerate() {
        if name.len() > MAX_LEN {
            return format!("{name}_and_{}_more", count - index);
        }
        if index > 0 {
            name.push('_');
        }
        name.push_str(label);
    }
    name
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_names_are_cut() {
        assert_eq!(super::join(["conv2d", "add"].into_iter()), "conv2d_add");
        let name = super::join(["relu"; 256].into_iter());
        assert!(name.ends_with("_relu_and_242_more"), "{name}");
    }
}
