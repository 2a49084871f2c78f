//! Values whose shapes a call finds: what the branches of a choice give in different shapes, what changes its shape from trip to
//! trip of a loop, and rows of which nobody knows how many there are.
//!
//! ```text
//! y = If(c)                     %t: (f32[..], i64[1]) = if %c { … ret (%a, const([2])) } else { … ret (%b, %extents) }
//!   then: a: f32[2]       =>    %s: shape[k] = bind_dims(%t.1) { ty = shape[k] }
//!   else: b: f32[n]             %y: f32[k] = the memory of %t.0, of k elements
//! ```
//!
//! The value is memory of unknown size, and beside it stand its extents. That it has to be so is known when its body has been read, so
//! the model is imported once more then, as for sizes that are found.

use crate::ir::{Context, Dim};
use crate::onnx::proto::NodeProto;
use tenon_plugin_api::rule::import::Known;

use super::builder::Value;
use super::driver::Importer;
use super::error::Problem;
use super::scope::Frame;
use super::sizes::FOUND;

/// The rule that gives a tensor of unknown rank its extents.
pub(super) const SHAPED: &str = "tenon::Shaped";

impl<'m> Importer<'m> {
    /// What stands for the shapes of a node's outputs among what is found.
    fn shapes_of(frame: &Frame<'m>, node: &NodeProto<'m>, which: &str) -> String {
        let name = node.output.iter().find(|name| !name.is_empty()).unwrap_or(&"");
        format!("{}{name}\0{which}", frame.base)
    }

    /// Whether the shapes of a choice's results are found.
    pub(super) fn finds_shapes(&self, frame: &Frame<'m>, node: &NodeProto<'m>) -> bool {
        self.finds(frame, node, "")
    }

    /// The same of what is carried by a loop, or of its rows.
    pub(super) fn finds(&self, frame: &Frame<'m>, node: &NodeProto<'m>, which: &str) -> bool {
        self.found.is_some_and(|found| found.contains(&Self::shapes_of(frame, node, which)))
    }

    /// Takes note that they have to be.
    pub(super) fn want_shapes(&self, frame: &Frame<'m>, node: &NodeProto<'m>, which: &str) {
        if self.found.is_some() {
            self.findable.borrow_mut().insert(Self::shapes_of(frame, node, which));
        }
    }

    /// The extents of a tensor as one; nothing of what is no tensor.
    pub(super) fn extents_of(&mut self, value: Value) -> Value {
        let cx = self.cx.clone();
        let dims = cx.terms().tensor(self.builder.ty(value)).map_or(&[][..], |(_, dims)| dims);
        self.builder.known(Known::vector(dims.to_vec()))
    }

    /// A tensor of unknown rank with its extents: those that are open are found in another tensor, and the others are known.
    pub(super) fn with_found_extents(
        &mut self,
        value: Value,
        extents: Value,
        known: &[Dim],
        is_open: &[bool],
    ) -> Result<Value, Problem> {
        let found = self.asked(FOUND, &[extents])?;
        let Some(found) = self.builder.elements(found) else {
            return Err(Problem::Rule(format!("the rule for {FOUND} finds nothing")));
        };
        let dims = known.iter().zip(&found.elements).zip(is_open);
        let dims = dims.map(|((&known, &found), &is_open)| if is_open { found } else { known });
        let dims = self.builder.known(Known::vector(dims.collect()));
        self.asked(SHAPED, &[value, dims])
    }
}
