//! Translation validation: whether a module still computes what another one computes.
//!
//! Both are run by the reference evaluator on the same random inputs, which come from a seed, once with ordinary
//! numbers and once with extreme ones among them, and their results are compared. That finds differences; it does not prove that there are none. What cannot be evaluated,
//! such as a call of something external, is not compared, and [`Reference::notes`] says so.
//!
//! What a program leaves unwritten is no result. A function that makes memory is run a second time over memory with
//! other contents, and where both results differ nothing is compared.
//!
//! After G. C. Necula, "Translation validation for an optimizing compiler", PLDI 2000, with testing in the
//! place of proof.

mod case;
mod compare;
mod compiled;
mod inputs;
mod reference;

pub(crate) use case::{Case, Unjudged};
pub use compare::{Mismatch, Tolerance};
pub use compiled::{CompiledError, compare_compiled};
pub(crate) use compiled::{run_compiled, tensors_of};
pub use reference::{Difference, How, Reference};

#[cfg(test)]
mod tests;
