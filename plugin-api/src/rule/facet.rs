//! What a facet is.

use crate::pass::Result;

use super::{Question, Reply};

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

    /// Whether a rule can have an answer at all, as far as the question tells. Where not, it is not run, and the next one is asked.
    fn concerns(_: &Self::Ask<'_>) -> bool {
        true
    }

    /// Puts an answer into the form in which it crosses.
    fn reply(ask: &mut Self::Ask<'_>, answer: Self::Answer) -> Result<Reply>;

    /// The same where an answer may turn out to be none, and the next rule is asked.
    fn reply_or_decline(ask: &mut Self::Ask<'_>, answer: Self::Answer) -> Result<Option<Reply>> {
        Self::reply(ask, answer).map(Some)
    }
}
