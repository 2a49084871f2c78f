//! The facet `compute`: the tensor program of a call.
//!
//! ```ir
//! exp(%x)        =>      prim @exp(%a: f32[n], out %out: f32[n]) {
//!                          for %i in 0..dim(n) { block "exp" (%vi: spatial = %i) { %out[%vi] = exp(%a[%vi]) } } }
//! ```
//!
//! A question is the types and the attributes of a call; the answer is the program, written in [`program`](crate::program), for any
//! extents. A rule that declines leaves the question to the next one.

use crate::ir::{Attrs, Terms};
use crate::pass::Result;
use crate::program::Program;

use super::{AboutCall, Facet, Question, Reply};

/// The facet.
pub struct Compute;

impl Facet for Compute {
    const NAME: &'static str = "compute";
    type Ask<'a> = Program;
    type Answer = ();

    fn ask(question: Question<'_>) -> Result<Program> {
        question.program()
    }

    fn reply(ask: &mut Program, (): ()) -> Result<Reply> {
        Ok(Reply::of(ask.root()))
    }
}

impl AboutCall for Program {
    fn attrs_of_call(&self) -> (Attrs, Terms<'_>) {
        (self.attrs(), self.terms())
    }
}
