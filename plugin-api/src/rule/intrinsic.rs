//! The facet `intrinsic`: instructions that compute a tile at once.
//!
//! ```ir
//! for %j in 0..16 { for %k in 0..4 {                                         <16 x i32> @llvm.x86.avx512.vpdpbusd.512(c, a, b)
//!   %c[%j] = %c[%j] + i32(%a[%k]) * i32(%b[%j, %k]) } }            =>
//! ```
//!
//! The key is the name of the intrinsic, which begins with that of its architecture or its vendor. There is no question; the answer is
//! what the instruction computes, as a plain program, and the code that computes it. `tensorize` of a schedule says that an intrinsic
//! computes a nest of loops: the nest stays what it is, so that all who read it know what is computed, and whoever makes code emits the
//! intrinsic's instead.

use crate::ir::{Attrs, Build, Context, Symbol, Term};
use crate::pass::{PassError, Result, Rewriter};
use crate::program::Intrinsic;

use super::{Facet, Question, Reply, Rules, TensorIntrinsic};

/// The facet.
pub struct Intrinsics;

impl Facet for Intrinsics {
    const NAME: &'static str = "intrinsic";
    type Ask<'a> = Intrinsic;
    type Answer = ();

    fn ask(question: Question<'_>) -> Result<Intrinsic> {
        question.intrinsic()
    }

    fn reply(ask: &mut Intrinsic, (): ()) -> Result<Reply> {
        let (root, facts) = ask.finish()?;
        Ok(Reply { nodes: vec![root], data: Term(facts.0) })
    }
}

impl TensorIntrinsic {
    /// The intrinsic of a name, where a plugin has one.
    ///
    /// # Errors
    /// When the plugin describes it wrongly, two of this name come first, or the pass that looks for it does not say that it asks for
    /// rules of the facet `intrinsic`.
    pub fn find(rw: &mut Rewriter, name: &str) -> Result<Option<Self>> {
        let mut rules = Rules::<Intrinsics>::new(&rw.cx());
        let key: Symbol = rw.with_cx(|cx| cx.symbol(name));
        let Some(reply) = rules.ask(rw, key, &[], Term::default())? else { return Ok(None) };
        let &[root] = reply.nodes.as_slice() else {
            return Err(PassError::new(format!("the intrinsic `{name}` is no program")));
        };
        Self::read(rw.body(), name, root, Attrs(reply.data.0)).map(Some).map_err(|what| {
            PassError::new(format!("the intrinsic `{name}` is described wrongly: {what}"))
        })
    }

    /// How its loops are written, for messages: `j in 0..16, k in 0..4 (or multiples of 4 up to 64)`.
    pub fn nest(&self) -> String {
        let axis = |((name, extent), open): (&(String, i64), &Option<(i64, i64)>)| match open {
            Some((1, most)) => format!("{name} in 0..{extent} (or up to {most})"),
            Some((step, most)) => {
                format!("{name} in 0..{extent} (or multiples of {step} up to {most})")
            }
            None => format!("{name} in 0..{extent}"),
        };
        self.axes.iter().zip(&self.open).map(axis).collect::<Vec<_>>().join(", ")
    }
}
