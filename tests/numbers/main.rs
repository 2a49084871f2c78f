//! Numbers: what operators make of all 16-bit floats, of the edges of f32 and f64, and of the extremes of integers.
//!
//! Each group is one module with many results, which is evaluated by the reference evaluator, and compiled for this
//! machine and for one that has next to nothing. What is expected comes from elsewhere: for 16-bit floats from f64,
//! rounded by a search among the neighbours; for f32 and f64 from `edges.txt`, which `make_edges.py` wrote with many
//! digits; for integers from arithmetic of 128 bits. What is promised of sums and threads is in [`promises`].
//!
//! Floats may be wrong by units in the last place: see [`TOLERANCES`].

mod borders;
mod float;
mod integers;
mod nans;
mod promises;
mod rewrites;
mod run;
mod scaling;
mod sweep;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use run::Machine;

/// Units in the last place that a result may be off. Functions of 16-bit floats are computed in f32 and rounded
/// again, which is wrong only near the middle of two neighbours. Those of f32 and f64 round some steps on the way:
/// reduction, polynomial, scaling, and a quotient in `sigmoid`, `tanh` and `rsqrt`.
pub(crate) const TOLERANCES: [(&str, u64); 4] = [("f16", 1), ("bf16", 1), ("f32", 3), ("f64", 3)];

type Check = fn(Machine) -> Result<(), Failed>;

fn main() -> ExitCode {
    let groups: [(&str, Check); 5] = [
        ("functions_of_floats", sweep::functions),
        ("no_number_is_contagious", nans::check),
        ("integers_at_their_extremes", integers::check),
        ("zeros_around_data_are_multiplied", borders::zeros_are_multiplied),
        ("products_with_powers_of_two_are_rounded_once", scaling::check),
    ];
    let others = [
        Trial::test("rewrites_at_the_extremes", rewrites::check),
        Trial::test("equal_bits_for_any_number_of_threads", promises::threads),
        Trial::test("strict_floats_are_computed_as_written", promises::strict),
        Trial::test("a_product_and_its_sum_are_rounded_once", promises::contraction),
        Trial::test("convolutions_by_winograd_are_nearly_as_exact", promises::winograd),
    ];
    let trials = groups.into_iter().flat_map(|(name, check)| {
        Machine::ALL
            .map(|machine| Trial::test(format!("{name}::{machine}"), move || check(machine)))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.chain(others).collect()).exit_code()
}
