//! What is known of index arithmetic: [`Interval`]s bound it, [`Linear`] sums normalize it, and [`Forms`]
//! holds both for every node of a program.

mod forms;
mod interval;
mod linear;
mod normalizer;
mod radix;

pub(crate) use forms::Forms;
pub(crate) use interval::Interval;
pub(crate) use linear::Linear;
pub(crate) use normalizer::Normalizer;
