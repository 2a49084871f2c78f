//! The pass infrastructure that users of TVM know, case by case.
//!
//! A test named `c067_…` asserts case C067 of that behaviour. Where Tenon answers it in another way on purpose, the
//! test asserts ours, and `docs/differences.md` says why.

mod configuration;
mod contexts;
mod errors;
mod instruments;
#[path = "../../../tests/support/operators.rs"]
mod operators;
mod pass_objects;
mod pipelines;
mod required;
mod sequential;
mod support;
