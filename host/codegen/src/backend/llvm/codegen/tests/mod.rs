//! Programs built by hand, compiled and run in this process.

mod arithmetic;
mod large;
mod loops;
mod run;
mod vectors;
