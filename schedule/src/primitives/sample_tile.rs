//! Tiles that need not divide a loop, of any extent, drawn at random.
//!
//! ```text
//! [a, b] = sample_tile(i, 2); [i_0, i_1, i_2] = split(i, [_, a, b], tail = mask)
//!   => [a, b] = sample_tile(i, 2, decision = [4, 8]); [i_0, i_1, i_2] = split(i, [_, a, b], tail = mask)
//! ```
//!
//! The outermost loop has as many steps as are needed, so an extent that is a symbol or a prime has as many tiles as any other. What is
//! left of the last tile says the `tail` of the split.

use crate::refusal::{Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::trace::{Args, Handle, Kind, Param, Primitive, Value};

use super::sample::MAX_COUNT;

pub(super) static SAMPLE_TILE: Primitive = Primitive {
    name: "sample_tile",
    version: 1,
    summary: "Draws numbers of steps of inner loops, which need not divide a loop's extent: their product is at most one number, and the extent.",
    params: &[
        Param::new("loop", Kind::Loop),
        Param::new("count", Kind::Int),
        Param::new("most", Kind::Int).or("64"),
        Param::new("decision", Kind::Ints).or("[]"),
    ],
    apply,
};

fn apply(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (id, count, decision) = (args.id(0), args.int(1), args.ints(3));
    if !(1..=MAX_COUNT).contains(&count) {
        return refuse(
            id,
            format!("{count} numbers are asked for, and 1 to {MAX_COUNT} are drawn"),
        );
    }
    if args.int(2) < 1 {
        return refuse(id, format!("the product cannot be at most {}", args.int(2)));
    }
    let most = match schedule.extent(Loop(id)) {
        Some(extent) => args.int(2).min(extent.max(1)),
        None => args.int(2),
    };
    let numbers = match decision.is_empty() {
        false => decision,
        true => {
            // Each product is as likely as any other, and so is each way to write it.
            let drawn = usize::try_from(most).ok().and_then(|most| schedule.random.below(most));
            let product = drawn.map_or(1, |drawn| drawn as i64 + 1);
            schedule.random.factors(product, count as usize)
        }
    };
    let product = numbers.iter().try_fold(1i64, |product, &number| product.checked_mul(number));
    if numbers.len() as i64 != count
        || numbers.iter().any(|&number| number < 1)
        || product.is_none_or(|product| product > most)
    {
        let list = numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        return refuse(
            id,
            format!(
                "the decision [{list}] is no {count} numbers of steps whose product is at most {most}"
            ),
        );
    }
    let results = numbers.iter().map(|&number| schedule.number(number)).collect();
    schedule.drawn = Some(Value::List(numbers.into_iter().map(Value::Int).collect()));
    Ok(results)
}
