//! The choice that PyTorch's exporter writes for an axis dropped of a length that it does not know.
//!
//! ```text
//! y = If(length == 1) {
//!   then:  gives Squeeze(x, axis)    =>    y = Squeeze(x, axis)
//!   else:  gives Identity(x)
//! }
//! ```
//!
//! Its branches give results of different ranks, and a value of ours has one rank. What stands behind it is written for the
//! one without the axis, nearly always; so the length has to be 1, and a call in which it is not is told that its sizes do not
//! fit the model.

use crate::onnx::proto::GraphProto;

/// Whether the first of two branches drops axes of what the second one gives as it is.
pub(super) fn drops_axes(then: &GraphProto<'_>, otherwise: &GraphProto<'_>) -> bool {
    let ([dropped], [kept]) = (&then.output[..], &otherwise.output[..]) else { return false };
    let mut nodes = then.node.iter().filter(|node| node.op_type != "Constant");
    let (Some(drop), None) = (nodes.next(), nodes.next()) else { return false };
    let whole = match &otherwise.node[..] {
        [] => kept.name,
        [node] if node.op_type == "Identity" && node.output == [kept.name] => {
            match node.input[..] {
                [whole] => whole,
                _ => return false,
            }
        }
        _ => return false,
    };
    drop.op_type == "Squeeze" && drop.output == [dropped.name] && drop.input.first() == Some(&whole)
}
