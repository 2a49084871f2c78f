//! Operators of ONNX that are one of ours under another name.

/// `same!(Abs is "Abs" since 6);`
macro_rules! same {
    ($op:ident is $onnx:tt since $since:tt) => {
        const _: () = {
            use tenon_plugin_api::rule::prelude::*;

            /// The same under another name.
            #[rule(import.onnx, key = $onnx, since = $since)]
            fn import(node: &mut Node<'_>) -> Outputs {
                node.same(<$op as tenon_plugin_api::op::Schema>::SCHEMA.name)
            }
        };
    };
}
pub(crate) use same;
