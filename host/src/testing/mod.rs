//! What tests need besides the library itself. Behind the feature `testing`.

mod random;

pub use random::{Random, random_module};
