//! The tensor program of every operator computes what the operator's reference evaluation says, and has
//! the form that fusion relies on.

use tenon_operators as _;

mod contract;
mod convolutions;
mod elementwise;
mod indexing;
mod normalizations;
mod pools;
mod problem;
mod products;
mod reductions;
mod storage;
