//! What a function computes, apart from names.

use crate::ir::{BodyView, Kind};

/// What a function computes, apart from the names of its variables and buffers and its place in the text.
/// Two functions built in the same way have equal structures; a constant is equal to itself, not to another
/// one with the same elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Structure(Vec<u64>);

impl BodyView<'_> {
    /// The structure of a published body: its nodes in order.
    pub fn structure(&self) -> Structure {
        let mut words = Vec::with_capacity(4 * self.len());
        let pair = |a: u32, b: u32| (a as u64) << 32 | b as u64;
        for expr in self.post_order() {
            let node = self.raw_node(expr);
            let kind = Kind(node.kind);
            // The first word says how many belong to the node, so different bodies differ somewhere.
            words.push(pair((node.kind as u32) << 16 | node.flags as u32, node.len));
            words.push(pair(node.ty, node.attrs));
            match kind {
                Kind::VAR => {}
                Kind::BUFFER => words.push(node.aux as u64),
                Kind::CONSTANT => {
                    let bytes = self.constant(node.data).bytes;
                    words.extend([bytes.as_ptr() as u64, bytes.len() as u64]);
                }
                _ => words.push(pair(node.data, node.aux)),
            }
            words.extend(self.operands(expr).iter().map(|operand| operand.0 as u64));
        }
        Structure(words)
    }
}
