//! Rules: what is known of operators besides their meaning, from any plugin.
//!
//! A *facet* is one kind of knowledge, such as the gradient of a call. A rule gives it for one key, mostly the name of an
//! operator, and is a function under [`macro@crate::rule`]. Whoever needs the knowledge asks for it by key and names no
//! operator: a pass asks through [`PassContext::rules`](crate::pass::PassContext::rules). Of several rules for one key the
//! one of the greatest benefit is asked first, and the next one when it declines; `docs/rules.md` tells who comes first.
//!
//! What is asked and answered crosses between libraries as nodes and one term; [`Facet`] says for its facet what they mean.
//! A plugin that defines a facet of its own implements it, and others that depend on that plugin's crate write rules for it.

mod asking;
mod question;
mod rewrite;
mod site;

pub use asking::Rules;
pub use question::{Answer, Question, Reply};
pub use rewrite::{DecomposeForInference, DecomposeForTraining, Rewrites, Simplify};
pub use site::{AboutCall, Site, op_of};

use crate::pass::Result;

/// One kind of knowledge of operators: what its rules are asked, and what they answer.
///
/// `Facet` is implemented by a type without values that names the facet in `#[rule(…)]`.
pub trait Facet: 'static {
    /// Its name, such as `gradient`; one that a plugin defines begins with the name of its vendor, as in `acme.cost`.
    const NAME: &'static str;

    /// What a rule is given.
    type Ask<'a>;

    /// What a rule answers.
    type Answer;

    /// Takes a question apart.
    fn ask(question: Question<'_>) -> Result<Self::Ask<'_>>;

    /// Puts an answer into the form in which it crosses.
    fn reply(ask: &mut Self::Ask<'_>, answer: Self::Answer) -> Result<Reply>;
}

/// All that a file with rules usually needs.
pub mod prelude {
    pub use crate::ir::{
        AttrValue, Attrs, Build, Context, DType, Dim, Expr, Kind, Symbol, Term, TermView, Type,
        TypeView, View,
    };
    pub use crate::pass::{Call, Calls, PassError};
    pub use crate::rule;
    pub use crate::rule::{AboutCall, Site};
}
