//! Operators that modules of the kit are made of. The kit knows none by name: it asks the book for some that compute, from
//! numbers, what it looks for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Check;
use super::patience::{Progress, with_patience};
use crate::eval::{Tensor, results_of};
use crate::ir::{Attrs, Context, Cx, DType, OpBook, OpDef, Type};
use crate::ops::{AttrDefault, OpEffect, OpPattern};
use crate::testing::Vocabulary;

/// Where operators of one argument are looked at. One that jumps mostly jumps at one of these.
const PLACES: [f64; 7] = [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5];
/// How far beside a place the value is nearly that at the place.
const STEP: f64 = 1e-4;
/// Rows of the first argument of an operator of two; the second one is a row.
const ROWS: i64 = 2;

/// Operators whose values are numbers of moderate size and change little with their arguments; none where nobody adds.
pub(super) fn vocabulary(book: &Arc<dyn OpBook>) -> Option<Vocabulary> {
    let cx = Cx::with_operators(book.clone());
    let unary = of_one(&cx, is_moderate);
    let mut binary: Vec<String> = of_two(&cx, |_, _, _| true);
    let adds = sum_of_two(&cx)?;
    binary.retain(|name| *name != adds);
    binary.insert(0, adds);
    (!unary.is_empty()).then_some(Vocabulary { unary, binary })
}

/// The vocabulary of a book; where an operator does not end, the check that says so.
pub(super) fn found_within(
    patience: Duration,
    book: &Arc<dyn OpBook>,
) -> Result<Option<Vocabulary>, Check> {
    let found = Arc::new(Mutex::new(None));
    let (book, place) = (book.clone(), found.clone());
    let look = move |progress: &Progress| {
        progress.next("evaluation", "on a few numbers".to_owned());
        *place.lock().unwrap_or_else(PoisonError::into_inner) = vocabulary(&book);
        Vec::new()
    };
    with_patience(patience, "operators", look)?;
    Ok(found.lock().unwrap_or_else(PoisonError::into_inner).take())
}

/// The operator that gives sines.
pub(super) fn sine(cx: &Cx) -> Option<String> {
    let is_sine = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| is_near(x.sin(), *y));
    of_one(cx, is_sine).into_iter().next()
}

/// The operator that adds two tensors.
pub(super) fn sum_of_two(cx: &Cx) -> Option<String> {
    of_two(cx, |a, b, y| is_near(a + b, y)).into_iter().next()
}

/// The operator that adds all elements.
pub(super) fn sum_of_all(cx: &Cx) -> Option<String> {
    let elements = PLACES.map(|x| x + 3.0);
    let is_sum = |op: &Arc<OpDef>| {
        let values = values(cx, op, &[(&[PLACES.len() as i64], &elements)]);
        values.is_some_and(|y| y.len() == 1 && is_near(elements.iter().sum(), y[0]))
    };
    plain(cx, OpPattern::Reduction).find(is_sum).map(|op| op.name.to_owned())
}

fn is_near(wanted: f64, found: f64) -> bool {
    (wanted - found).abs() < 1e-9
}

/// Numbers that are not all the same, none of them large, and nearly the same at both sides of a place.
fn is_moderate(x: &[f64], y: &[f64]) -> bool {
    let is_smooth = y.chunks(2).all(|pair| (pair[0] - pair[1]).abs() < 1e-2);
    let is_small = y.iter().all(|y| y.abs() < 8.0);
    x.len() == y.len() && is_smooth && is_small && y.iter().any(|value| !is_near(y[0], *value))
}

/// Operators of one argument, element by element, of whose values something is true.
fn of_one(cx: &Cx, holds: impl Fn(&[f64], &[f64]) -> bool) -> Vec<String> {
    let x: Vec<f64> = PLACES.iter().flat_map(|place| [place - STEP, place + STEP]).collect();
    let is_one = |op: &Arc<OpDef>| {
        let values = values(cx, op, &[(&[x.len() as i64], &x)]);
        values.is_some_and(|y| y.len() == x.len() && holds(&x, &y))
    };
    plain(cx, OpPattern::Elementwise).filter(is_one).map(|op| op.name.to_owned()).collect()
}

/// Operators of two arguments that are broadcast, whose values are finite and of each of which something is true.
fn of_two(cx: &Cx, holds: impl Fn(f64, f64, f64) -> bool) -> Vec<String> {
    let (columns, a) = (PLACES.len(), [PLACES, PLACES.map(|x| 0.75 - x)].concat());
    let is_one = |op: &Arc<OpDef>| {
        let args: [(&[i64], &[f64]); 2] =
            [(&[ROWS, columns as i64], &a), (&[columns as i64], &PLACES)];
        let Some(y) = values(cx, op, &args).filter(|y| y.len() == a.len()) else { return false };
        let b = PLACES.iter().cycle();
        a.iter().zip(b).zip(y).all(|((&a, &b), y)| y.is_finite() && holds(a, b, y))
    };
    plain(cx, OpPattern::Broadcast).filter(is_one).map(|op| op.name.to_owned()).collect()
}

/// The operators with a fusion pattern that compute, and have all attributes by default.
fn plain(cx: &Cx, pattern: OpPattern) -> impl Iterator<Item = Arc<OpDef>> {
    let is_given = |op: &OpDef| op.attrs.iter().all(|it| it.default != AttrDefault::Required);
    cx.operators().names().into_iter().filter_map(move |name| {
        let op = cx.operators().find(&name).filter(|op| op.name == name)?;
        (op.pattern == pattern && op.effect == OpEffect::None && is_given(&op)).then_some(op)
    })
}

/// The elements of the one result of a call on tensors of f64; none where there is no such call.
fn values(cx: &Cx, op: &OpDef, args: &[(&[i64], &[f64])]) -> Option<Vec<f64>> {
    let types: Vec<Type> =
        args.iter().map(|(shape, _)| cx.static_tensor_type(DType::F64, shape)).collect();
    let result = op.infer(cx, &types, Attrs::NONE).ok()?;
    cx.terms().static_tensor(result).filter(|(dtype, _)| *dtype == DType::F64)?;
    let tensors: Vec<Tensor> = args
        .iter()
        .map(|(shape, elements)| {
            let shape = shape.iter().map(|&extent| extent as usize).collect();
            Tensor::from_vec(shape, elements.to_vec())
        })
        .collect();
    let outs = results_of(cx.terms(), result)?;
    let found = op.evaluation()?.evaluate(cx, &tensors, Attrs::NONE, &outs).ok()?;
    Some(found.first()?.elements::<f64>().to_vec())
}
