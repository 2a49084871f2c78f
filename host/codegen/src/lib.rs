//! From tensor programs to machine code.
//!
//! [`target`] says what code is made for, [`plan`] what a call of a function executes, in which memory, [`backend`] makes objects of
//! both, and [`object`] makes libraries of objects.

pub mod backend;
pub mod object;
pub mod plan;
pub mod target;
