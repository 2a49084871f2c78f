//! Reductions of several numbers: how two of their states become one.
//!
//! | reducer | state |
//! |---|---|
//! | `argmax`, `argmin` | the best value, and the first place where it is |
//! | `softmax` | the largest value, and the sum of the exponentials of how far values lie below it |
//! | `welford` | the mean, the sum of squares of how far values lie from it, and how many they are |

use tenon_plugin_api::ir::BinaryOp;
use tenon_plugin_api::pass::Result;
use tenon_plugin_api::program::{Reducer, Scalar};
use tenon_plugin_api::rule::prelude::*;

use super::programs::is_better;

/// The better one, and of equal ones the first.
#[rule(reducer, key = "argmax")]
fn argmax(it: &mut Joining) -> Result<()> {
    best(it, true)
}

/// The better one, and of equal ones the first.
#[rule(reducer, key = "argmin")]
fn argmin(it: &mut Joining) -> Result<()> {
    best(it, false)
}

fn best(it: &Joining, is_max: bool) -> Result<()> {
    let [[best, place], [other, elsewhere]] = it.states()?;
    let mut is_equal = other.binary(BinaryOp::Eq, best);
    if best.dtype().is_float() {
        let [is_none, was_none] = [other, best].map(|it| it.binary(BinaryOp::Ne, it));
        is_equal = is_equal.binary(BinaryOp::Or, is_none.and(was_none));
    }
    let is_first = is_equal.and(elsewhere.lt(place));
    let is_taken = is_better(other, best, is_max).binary(BinaryOp::Or, is_first);
    let worst = if is_max { Reducer::Max } else { Reducer::Min };
    let program = it.program();
    it.answer(
        [worst.identity(program, best.dtype()), program.int(place.dtype(), 0)],
        [is_taken.select(other, best), is_taken.select(elsewhere, place)],
    );
    Ok(())
}

/// Sums of exponentials below the larger of both.
#[rule(reducer, key = "softmax")]
fn softmax(it: &mut Joining) -> Result<()> {
    let [[top, sum], [other, others]] = it.states()?;
    let (program, dtype) = (it.program(), top.dtype());
    let most = top.max(other);
    it.answer(
        [Reducer::Max.identity(program, dtype), program.literal(dtype, 0.0)],
        [most, below(most, top, sum) + below(most, other, others)],
    );
    Ok(())
}

/// A sum of exponentials below `top` as one below `most`. Of nothing the largest is minus infinity, which lies in no distance from itself.
fn below<'p>(most: Scalar<'p>, top: Scalar<'p>, sum: Scalar<'p>) -> Scalar<'p> {
    let is_most = top.binary(BinaryOp::Eq, most);
    is_most.select(sum, sum * (top - most).call("exp"))
}

/// Means by how many they are of, and what lies between them (T. Chan, G. Golub and R. LeVeque, 1979).
#[rule(reducer, key = "welford")]
fn welford(it: &mut Joining) -> Result<()> {
    let [[mean, squares, count], [other, others, more]] = it.states()?;
    let (program, dtype) = (it.program(), mean.dtype());
    let all = count + more;
    let share = more / all.max(1.0);
    let distance = other - mean;
    let zero = program.literal(dtype, 0.0);
    it.answer(
        [zero, zero, program.literal(count.dtype(), 0.0)],
        [mean + distance * share, squares + others + distance * distance * count * share, all],
    );
    Ok(())
}
