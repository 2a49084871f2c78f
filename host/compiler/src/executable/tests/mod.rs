//! Modules as text, compiled, and run against the reference evaluator.

mod arena;
mod calls;
mod cancel;
mod choices;
mod dynamic;
mod entry;
mod foreign;
mod in_place;
mod library;
mod loops;
mod processors;
mod random;
mod recursion;
mod refusals;
mod rooms;
mod run;
mod saved;
mod weights_file;
