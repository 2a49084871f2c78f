//! Random numbers: pure functions of a seed and a place.
//!
//! [`philox`] is the generator, [`seed`] says which one a node of a model has. [`uniform`] and [`normal`] are operators; what else
//! draws numbers is made of them.

mod bernoulli;
mod box_muller;
mod drawn;
mod multinomial;
pub mod normal;
mod philox;
pub(crate) mod seed;
pub mod uniform;
