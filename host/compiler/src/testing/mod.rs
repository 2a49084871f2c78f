//! What tests of passes need besides the library itself: the conformance kit's, and the house's own.

mod linked;
mod random;

pub use linked::cx;
pub use random::{Drawn, Random, Run, Vocabulary, numbers_of, random_calls, random_module};
