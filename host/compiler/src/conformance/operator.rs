//! What is looked at of one operator: calls of it at random, most of which have no type and are to be refused with a word.

use tenon_plugin_api::op::{AttrDef, AttrDefault, AttrKind, OpError, Tensor};

use super::Check;
use super::finding::{Finding, first};
use super::patience::Progress;
use crate::eval::results_of;
use crate::infer::fits;
use crate::ir::{
    AttrValue, Attrs, Context, Cx, DType, Dim, DimBindings, OpDef, Type, TypeView, substitute,
};
use crate::testing::Random;

/// Calls that are tried.
const CALLS: usize = 2000;
/// Calls that have a type and are looked at further.
const ACCEPTED: usize = 60;
/// What the symbols of a call stand for.
const SIZES: [(&str, i64); 2] = [("a", 2), ("b", 3)];

/// A call that has a type.
pub(super) struct Call {
    pub(super) args: Vec<Type>,
    pub(super) attrs: Attrs,
    pub(super) result: Type,
}

/// What was found wrong, by check.
#[derive(Default)]
struct Wrong {
    inference: Vec<Finding>,
    sizes: Vec<Finding>,
    evaluation: Vec<Finding>,
    defaults: Vec<Finding>,
}

/// Examines an operator.
pub(super) fn checks(cx: &Cx, op: &OpDef, seed: u64, progress: &Progress) -> Vec<Check> {
    let mut random = Random::new(seed);
    let mut wrong = Wrong::default();
    let mut accepted: Vec<Call> = Vec::new();
    for _ in 0..CALLS {
        let (args, attrs) = (arguments(cx, op, &mut random), attributes(cx, op, &mut random));
        progress.next("inference", call_text(cx, &args, attrs));
        match op.infer(cx, &args, attrs) {
            Ok(result) => accepted.push(Call { args, attrs, result }),
            Err(OpError::Broken(what)) => wrong.inference.push(told(cx, &args, attrs, &what)),
            Err(_) => {}
        }
        if accepted.len() == ACCEPTED {
            break;
        }
    }
    let mut evaluated = 0;
    for call in &accepted {
        progress.next("evaluation", call_text(cx, &call.args, call.attrs));
        wrong.sizes.extend(with_sizes(cx, op, call).err());
        wrong.defaults.extend(with_defaults(cx, op, call).err());
        match twice(cx, op, &sized(cx, call), &mut random) {
            Ok(true) => evaluated += 1,
            Ok(false) => {}
            Err(what) => wrong.evaluation.push(what),
        }
    }
    report(op, accepted.len(), evaluated, wrong)
}

fn report(op: &OpDef, accepted: usize, evaluated: usize, wrong: Wrong) -> Vec<Check> {
    let name = Some(op.name);
    let calls = format!("{accepted} calls have a type");
    let mut checks = vec![Check::new(name, "inference", calls.clone(), first(wrong.inference))];
    if accepted == 0 {
        checks.push(Check::skipped(op.name, "sizes", "no call at random has a type"));
        return checks;
    }
    checks.push(Check::new(name, "sizes", calls.clone(), first(wrong.sizes)));
    checks.push(Check::new(name, "defaults", calls, first(wrong.defaults)));
    checks.push(match evaluated == 0 && wrong.evaluation.is_empty() {
        true => Check::skipped(op.name, "evaluation", "no call at random has a value"),
        false => {
            let values = format!("{evaluated} calls, each twice");
            Check::new(name, "evaluation", values, first(wrong.evaluation))
        }
    });
    checks
}

fn told(cx: &Cx, args: &[Type], attrs: Attrs, what: &str) -> Finding {
    Finding(format!("{}: {what}", call_text(cx, args, attrs)))
}

/// A call as messages have it.
pub(super) fn call_text(cx: &Cx, args: &[Type], attrs: Attrs) -> String {
    let args: Vec<String> = args.iter().map(|&ty| cx.terms().type_text(ty)).collect();
    let given: Vec<&str> = cx.terms().attrs(attrs).iter().map(|(name, _)| name).collect();
    format!("({}) with {given:?}", args.join(", "))
}

/// With integers in the place of symbols the result is the one that the symbols give, or the call is refused.
fn with_sizes(cx: &Cx, op: &OpDef, call: &Call) -> Result<(), Finding> {
    let Call { args, attrs, result } = sized(cx, call);
    match op.infer(cx, &args, attrs) {
        Ok(found) if fits(cx, result, found, None) => Ok(()),
        Ok(found) => {
            let [result, found] = [result, found].map(|ty| cx.terms().type_text(ty));
            Err(told(cx, &args, attrs, &format!("symbols give {result}, integers {found}")))
        }
        Err(OpError::Broken(what)) => Err(told(cx, &args, attrs, &what)),
        Err(_) => Ok(()),
    }
}

/// Calls at random that have a type.
pub(super) fn calls(cx: &Cx, op: &OpDef, random: &mut Random) -> Vec<Call> {
    let mut accepted = Vec::new();
    for _ in 0..CALLS {
        let (args, attrs) = (arguments(cx, op, random), attributes(cx, op, random));
        if let Ok(result) = op.infer(cx, &args, attrs) {
            accepted.push(Call { args, attrs, result });
        }
        if accepted.len() == ACCEPTED {
            break;
        }
    }
    accepted
}

/// The call with integers in the place of symbols.
pub(super) fn sized(cx: &Cx, call: &Call) -> Call {
    let sizes: DimBindings =
        SIZES.iter().map(|&(name, size)| (cx.symbol(name), cx.dim(size))).collect();
    let of = |&ty: &Type| Type(substitute(cx, ty.into(), &sizes).0);
    let args = call.args.iter().map(of).collect();
    Call { args, attrs: call.attrs, result: of(&call.result) }
}

/// Attributes that are given as they are by default change nothing.
fn with_defaults(cx: &Cx, op: &OpDef, call: &Call) -> Result<(), Finding> {
    let given = cx.terms().attrs(call.attrs);
    let mut attrs = call.attrs;
    for attr in op.attrs.iter().filter(|attr| given.term(attr.name).is_none()) {
        if let Some(value) = attr.default.value() {
            attrs = cx.with_attr(attrs, attr.name, value);
        }
    }
    match op.infer(cx, &call.args, attrs) {
        Ok(found) if found == call.result => Ok(()),
        Ok(found) => {
            let found = cx.terms().type_text(found);
            Err(told(cx, &call.args, attrs, &format!("with its defaults given it is {found}")))
        }
        Err(error) => Err(told(cx, &call.args, attrs, &error.to_string())),
    }
}

/// Evaluates a call without symbols twice, which gives the same; false where its values are refused.
fn twice(cx: &Cx, op: &OpDef, call: &Call, random: &mut Random) -> Result<bool, Finding> {
    let Some(evaluation) = op.evaluation() else { return Ok(false) };
    let Ok(result) = op.infer(cx, &call.args, call.attrs) else { return Ok(false) };
    let outs = results_of(cx.terms(), result);
    let values: Option<Vec<Tensor>> = values(cx, &call.args, random);
    let (Some(outs), Some(values)) = (outs, values) else { return Ok(false) };
    let run = || evaluation.evaluate(cx, &values, call.attrs, &outs);
    let wrong = |what: &str| Err(told(cx, &call.args, call.attrs, what));
    match (run(), run()) {
        (Err(OpError::Broken(what)), _) | (_, Err(OpError::Broken(what))) => wrong(&what),
        (Err(OpError::Told(what)), _) if what.starts_with("it evaluates to") => wrong(&what),
        (Ok(one), Ok(other)) => {
            let is_same = |(one, other): (&Tensor, &Tensor)| one.bytes()[..] == other.bytes()[..];
            match one.len() == other.len() && one.iter().zip(&other).all(is_same) {
                true => Ok(true),
                false => wrong("the second evaluation gives another result"),
            }
        }
        (Err(_), Err(_)) => Ok(false),
        _ => wrong("one of two evaluations fails"),
    }
}

fn static_tensor(cx: &Cx, ty: Type) -> Option<(DType, Vec<usize>)> {
    let (dtype, shape) = cx.terms().static_tensor(ty)?;
    Some((dtype, shape.iter().map(|&extent| extent as usize).collect()))
}

/// Small numbers for arguments, tuples flattened.
fn values(cx: &Cx, args: &[Type], random: &mut Random) -> Option<Vec<Tensor>> {
    let mut values = Vec::new();
    let mut pending: Vec<Type> = args.iter().rev().copied().collect();
    while let Some(ty) = pending.pop() {
        match cx.terms().ty(ty) {
            TypeView::Tuple(fields) => pending.extend(fields.iter().rev()),
            TypeView::Shape(Some(dims)) => {
                let dims: Option<Vec<i64>> =
                    dims.iter().map(|&dim| cx.terms().dim_value(dim)).collect();
                let dims = dims?;
                values.push(Tensor::from_vec(vec![dims.len()], dims));
            }
            _ => values.push(numbers(static_tensor(cx, ty)?, random)?),
        }
    }
    Some(values)
}

fn numbers((dtype, shape): (DType, Vec<usize>), random: &mut Random) -> Option<Tensor> {
    let count = shape.iter().product::<usize>();
    let mut next = || random.below(3) as i64;
    Some(match dtype {
        DType::F32 => Tensor::from_vec(shape, (0..count).map(|_| next() as f32 + 0.5).collect()),
        DType::I64 => Tensor::from_vec(shape, (0..count).map(|_| next()).collect()),
        DType::BOOL => {
            let truths: Vec<u8> = (0..count).map(|_| (next() > 0) as u8).collect();
            Tensor::from_vec_as(DType::BOOL, shape, truths)
        }
        _ => return None,
    })
}

/// Types of arguments, as many as the operator takes.
fn arguments(cx: &Cx, op: &OpDef, random: &mut Random) -> Vec<Type> {
    let most = op.args.max.unwrap_or(op.args.min + 2);
    let count = op.args.min + random.below(most - op.args.min + 1);
    let dtype = random.pick(&[DType::F32, DType::F32, DType::F32, DType::I64, DType::BOOL]);
    let rank = random.below(5);
    let dims: Vec<Dim> = (0..rank).map(|_| dimension(cx, random)).collect();
    (0..count).map(|_| argument(cx, random, dtype, &dims)).collect()
}

/// An argument like the others of its call, more often than not.
fn argument(cx: &Cx, random: &mut Random, dtype: DType, dims: &[Dim]) -> Type {
    let like = cx.tensor_type(dtype, dims);
    match random.below(10) {
        0 => cx.shape_type(Some(dims)),
        1 => cx.tuple_type(&[like, like]),
        2 => cx.unranked_tensor_type(dtype),
        3 => cx.tensor_type(DType::I64, &dims[..dims.len().min(1)]),
        4 => cx.tensor_type(dtype, &dims[dims.len().min(1)..]),
        5 => cx.tensor_type(dtype, &dims[..dims.len().min(1)]),
        _ => like,
    }
}

fn dimension(cx: &Cx, random: &mut Random) -> Dim {
    match random.below(6) {
        0 => cx.dim_symbol(SIZES[0].0),
        1 => cx.dim_symbol(SIZES[1].0),
        2 => cx.dim(1),
        _ => cx.dim(1 + random.below(4) as i64),
    }
}

/// Attributes: all that must be given, and others now and then.
fn attributes(cx: &Cx, op: &OpDef, random: &mut Random) -> Attrs {
    let mut attrs = Attrs::NONE;
    for attr in op.attrs {
        if attr.default == AttrDefault::Required || random.chance(25) {
            attrs = cx.with_attr(attrs, attr.name, value_of(cx, attr, random));
        }
    }
    attrs
}

fn value_of(cx: &Cx, attr: &AttrDef, random: &mut Random) -> AttrValue {
    match attr.kind {
        AttrKind::Int => (random.below(5) as i64 - 1).into(),
        AttrKind::Float => (random.below(5) as f64 / 2.0).into(),
        AttrKind::Bool => random.chance(50).into(),
        AttrKind::Ints => {
            let count = random.below(5);
            (0..count).map(|_| random.below(4) as i64).collect::<Vec<i64>>().into()
        }
        AttrKind::Str if !attr.bounds.one_of.is_empty() => random.pick(attr.bounds.one_of).into(),
        AttrKind::Str => random.pick(&["f32", "i64", "NCHW", "NHWC", "OIHW", "NK", ""]).into(),
        AttrKind::Type => cx.static_tensor_type(DType::F32, &[2]).into(),
        AttrKind::Any => 1i64.into(),
    }
}
