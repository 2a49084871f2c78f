//! Decisions that are drawn at random: a trace says which there are, what was drawn, and draws another one where nothing stands.
//!
//! ```text
//! [a, b] = sample_perfect_tile(i, 2); [i_0, i_1] = split(i, [a, b])
//!   => [a, b] = sample_perfect_tile(i, 2, decision = [8, 16]); [i_0, i_1] = split(i, [a, b])
//! ```
//!
//! These change nothing. What they give, numbers and a place, is named by what comes behind; a trace that was applied says what was
//! drawn, so replaying it gives the same program. As the sampling instructions of MetaSchedule (J. Shao et al., "Tensor Program
//! Optimization with Probabilistic Programs", 2022).

use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::Schedule;
use crate::trace::{Args, At, Handle, Kind, Number, Param, Place, Primitive, Value};
use crate::tree::Id;

use super::compute_at::move_to;
use super::inline;

pub(super) static SAMPLE_CATEGORICAL: Primitive = Primitive {
    name: "sample_categorical",
    version: 1,
    summary: "Draws one of some numbers, each as often as its weight says; the decision is its place among them.",
    params: &[
        Param::new("candidates", Kind::Ints),
        Param::new("weights", Kind::Ints).or("[]"),
        Param::new("decision", Kind::Choice).or("_"),
    ],
    apply: categorical,
};

pub(super) static SAMPLE_PERFECT_TILE: Primitive = Primitive {
    name: "sample_perfect_tile",
    version: 1,
    summary: "Draws as many factors of a loop's extent, the last of them at most one number; the decision is the factors.",
    params: &[
        Param::new("loop", Kind::Loop),
        Param::new("count", Kind::Int),
        Param::new("max_innermost", Kind::Choice).or("_"),
        Param::new("decision", Kind::Ints).or("[]"),
    ],
    apply: perfect_tile,
};

pub(super) static SAMPLE_COMPUTE_LOCATION: Primitive = Primitive {
    name: "sample_compute_location",
    version: 1,
    summary: "Draws where a block is computed: where it is read (-2), where it stands (-1), or in a loop around its first reader (0 is the outermost).",
    params: &[Param::new("block", Kind::Block), Param::new("decision", Kind::Choice).or("_")],
    apply: compute_location,
};

fn categorical(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let (candidates, weights) = (args.ints(0), args.ints(1));
    if candidates.is_empty() {
        return Err(Refusal::new("there is no candidate"));
    }
    if !weights.is_empty() && weights.len() != candidates.len() {
        let (weights, candidates) = (weights.len(), candidates.len());
        let text = format!("there are {weights} weights for {candidates} candidates");
        return Err(Refusal::new(text));
    }
    let shares: Vec<u64> = match weights.is_empty() {
        true => vec![1; candidates.len()],
        false => weights.iter().map(|&weight| u64::try_from(weight).unwrap_or(0)).collect(),
    };
    if weights.iter().any(|&weight| weight < 0) {
        return Err(Refusal::new("a weight is negative"));
    }
    let at =
        match args.choice(2) {
            Some(decision) => usize::try_from(decision).ok().filter(|&at| at < candidates.len()),
            None => Some(schedule.random.weighted(&shares).ok_or_else(|| {
                Refusal::new("no weight is above 0, so no candidate can be drawn")
            })?),
        };
    let Some(at) = at else {
        let (decision, count) = (args.choice(2).unwrap_or_default(), candidates.len());
        let text = format!("the decision {decision} is none of the places 0 to {}", count - 1);
        return Err(Refusal::new(text));
    };
    schedule.drawn = Some(Value::Int(at as i64));
    Ok(vec![schedule.number(candidates[at])])
}

/// Tiles of more levels nobody has.
pub(super) const MAX_COUNT: i64 = 16;
/// After so many draws in which the last factor is too large, its part goes to the first one.
const DRAWS: usize = 32;

fn perfect_tile(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let (count, most, decision) = (args.int(1), args.choice(2), args.ints(3));
    if !(1..=MAX_COUNT).contains(&count) {
        return refuse(
            id,
            format!("{count} factors are asked for, and 1 to {MAX_COUNT} are drawn"),
        );
    }
    if let Some(most) = most
        && most < 1
    {
        return refuse(id, format!("the last factor cannot be at most {most}"));
    }
    let Some(extent) = schedule.extent(crate::schedule::Loop(id)) else {
        return refuse(
            id,
            "the extent of the loop is not known: `sample_tile` draws numbers of steps that need not divide it, and the `tail` of the split says what becomes of the rest",
        );
    };
    if extent < 1 {
        return refuse(id, "the loop has no step, and no number of steps to be factored");
    }
    let is_small = |factors: &[i64]| most.is_none_or(|most| factors.last() <= Some(&most));
    let factors = match decision.is_empty() {
        false => decision,
        true => {
            let mut factors = schedule.random.factors(extent, count as usize);
            for _ in 0..DRAWS {
                if is_small(&factors) {
                    break;
                }
                factors = schedule.random.factors(extent, count as usize);
            }
            let last = factors.len() - 1;
            if !is_small(&factors) && last > 0 {
                factors[0] *= std::mem::replace(&mut factors[last], 1);
            }
            factors
        }
    };
    let list = factors.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let product = factors.iter().try_fold(1i64, |product, &factor| product.checked_mul(factor));
    if factors.len() as i64 != count
        || factors.iter().any(|&factor| factor < 1)
        || product != Some(extent)
    {
        let text = format!("the decision [{list}] is no {count} factors of the extent {extent}");
        return refuse(id, text);
    }
    if let Some(most) = most.filter(|_| !is_small(&factors)) {
        return refuse(id, format!("the last factor of the decision [{list}] is above {most}"));
    }
    let numbers = factors.iter().map(|&factor| schedule.number(factor)).collect();
    schedule.drawn = Some(Value::List(factors.into_iter().map(Value::Int).collect()));
    Ok(numbers)
}

/// What a decision of `sample_compute_location` says besides the number of a loop.
const INLINE: i64 = -2;
const ROOT: i64 = -1;

fn compute_location(schedule: &mut Schedule, args: &Args) -> Result<Vec<Handle>> {
    let id = args.id(0);
    let consumers = schedule.consumers_of(id);
    let loops = consumers.first().map_or(Vec::new(), |&first| schedule.tree.loops_around(first));
    let mut places = vec![(INLINE, At::Inline), (ROOT, At::Root)];
    places.extend((0..).zip(loops.into_iter().map(At::Loop)));
    let decision = match args.choice(1) {
        Some(decision) => decision,
        None => {
            places.retain(|(_, at)| allows(schedule, id, *at).is_ok());
            let drawn = schedule.random.below(places.len());
            // Where it stands it may always stay.
            drawn.map_or(ROOT, |drawn| places[drawn].0)
        }
    };
    let Some(&(_, at)) = places.iter().find(|(number, _)| *number == decision) else {
        let most = places.len() as i64 - 3;
        return refuse(id, format!("the decision {decision} is none of -2 to {most}"));
    };
    if let Err(refusal) = allows(schedule, id, at) {
        return Err(Refusal {
            reason: format!("the decision {decision} does not hold: {}", refusal.reason),
            ..refusal
        });
    }
    schedule.drawn = Some(Value::Int(decision));
    Ok(vec![schedule.place(at)])
}

/// Whether a block may be computed at a place; the program stays as it is.
fn allows(schedule: &mut Schedule, id: Id, at: At) -> Result<()> {
    let before = schedule.tree.clone();
    let result = compute_there(schedule, id, at, "last");
    schedule.tree = before;
    schedule.strides.take();
    result
}

/// Computes a block at a place.
pub(super) fn compute_there(schedule: &mut Schedule, id: Id, at: At, wish: &str) -> Result<()> {
    match at {
        At::Inline => inline::inline(schedule, id),
        At::Root => Ok(()),
        At::Loop(each) => move_to(schedule, id, each, wish),
    }
}

impl Schedule {
    pub(super) fn number(&mut self, value: i64) -> Handle {
        self.draws += 1;
        Handle::Number(Number { value, draw: self.draws })
    }

    fn place(&mut self, at: At) -> Handle {
        self.draws += 1;
        Handle::Place(Place { at, draw: self.draws })
    }
}
