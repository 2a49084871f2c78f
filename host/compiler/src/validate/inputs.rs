//! Random arguments.

use std::hash::{Hash, Hasher};

use half::{bf16, f16};
use rustc_hash::{FxHashSet, FxHasher};
use thiserror::Error;

use crate::eval::{Tensor, Tuple, Value};
use crate::ir::{
    Context, Cx, DType, Dim, DimBindings, DimView, Function, Symbol, Term, TermKind, Type,
    TypeView, View, substitute,
};
use crate::plan::DimRanges;

/// Extents that symbolic dimensions stand for, one after the other: small, and different from each other.
const EXTENTS: &[i64] = &[3, 5, 2, 7, 4, 6];

/// What is added to them, where a dimension such as `n - 4` would be none with the smallest.
const LARGER: &[i64] = &[0, 8, 128];

/// The extent of all symbols where different ones do not go together: it has many divisors.
const EQUAL: i64 = 12;

/// So many elements an argument may have.
const MAX_ELEMENTS: usize = 1 << 26;

/// Which numbers arguments have.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Numbers {
    /// Floats between -1 and 1, small integers that are not negative, truth values.
    Ordinary,
    /// Now and then a float that is no number, or the least above zero, or a zero with a sign; the least or the greatest
    /// integer.
    Extreme,
    /// Now and then an infinity; no other float that is extreme. The greatest ones are in no input: whether a sum of them
    /// is finite depends on its order, which passes that round may change.
    Infinite,
}

/// What the symbols of a function's parameters stand for.
pub(super) struct Sizes(DimBindings);

impl Sizes {
    /// Sizes to be tried one after the other, until the function has a value; one where there are no symbols.
    pub(super) fn of(function: &Function) -> Vec<Self> {
        Self::within(function, &DimRanges::new())
    }

    /// The same within ranges of symbols.
    pub(super) fn within(function: &Function, ranges: &DimRanges) -> Vec<Self> {
        let cx = function.cx();
        let symbols = symbols(cx, &param_types(function).unwrap_or_default());
        let bind = |extent: &dyn Fn(usize) -> i64| {
            let bound = symbols.iter().enumerate().map(|(at, &name)| {
                let range = ranges.get(cx.terms().str(name));
                let extent = range.map_or(extent(at), |range| range.nearest(extent(at)));
                (name, cx.dim(extent))
            });
            Self(bound.collect())
        };
        let mut all: Vec<Self> = LARGER
            .iter()
            .map(|more| bind(&|at| EXTENTS[at % EXTENTS.len()] + more))
            .chain([bind(&|_| EQUAL)])
            .collect();
        if symbols.is_empty() {
            all.truncate(1);
        }
        all
    }
}

/// The types of what a function is called with.
fn param_types(function: &Function) -> Option<Vec<Type>> {
    let body = function.view();
    let params = match body.view(body.root()) {
        View::Function { params, .. } => params,
        // The results of a tensor program are made by who calls it.
        View::PrimFunc { params, outputs, .. } => params.take(params.len() - outputs),
        _ => return None,
    };
    params.iter().map(|param| body.ty(param)).collect()
}

/// Why a function is not called.
#[derive(Debug, Error)]
pub(super) enum NoInputs {
    #[error("a parameter has no type")]
    NoType,
    #[error("no argument of type {0} is made: it is no data, or too large")]
    OfType(String),
}

/// Whether a function is worth a run with infinities: it takes floats.
pub(super) fn takes_floats(inputs: &[Value]) -> bool {
    let mut waiting: Vec<Value> = inputs.to_vec();
    while let Some(value) = waiting.pop() {
        match &value {
            Value::Tuple(tuple) => waiting.extend(tuple.fields().iter().cloned()),
            Value::Tensor(tensor) if tensor.dtype().is_float() => return true,
            _ => {}
        }
    }
    false
}

/// Arguments for a function, the same ones for the same seed and name, or why there are none.
pub(super) fn random(
    function: &Function,
    sizes: &Sizes,
    numbers: Numbers,
    seed: u64,
    name: &str,
) -> Result<Vec<Value>, NoInputs> {
    let cx = function.cx();
    let types = param_types(function).ok_or(NoInputs::NoType)?;
    let mut hasher = FxHasher::default();
    (seed, name, numbers).hash(&mut hasher);
    let mut random = fastrand::Rng::with_seed(hasher.finish());
    let mut argument = |ty: Type| {
        let ty = Type(substitute(cx, ty.into(), &sizes.0).0);
        value(cx, ty, numbers, &mut random)
            .ok_or_else(|| NoInputs::OfType(cx.terms().type_text(ty)))
    };
    types.into_iter().map(&mut argument).collect()
}

/// The symbols in the types, in the order of their first appearance.
fn symbols(cx: &Cx, types: &[Type]) -> Vec<Symbol> {
    let terms = cx.terms();
    let mut found = Vec::new();
    let mut seen: FxHashSet<Term> = FxHashSet::default();
    let mut waiting: Vec<Term> = types.iter().rev().map(|&ty| ty.into()).collect();
    while let Some(term) = waiting.pop() {
        if !seen.insert(term) || terms.kind(term) == TermKind::FUNC {
            continue;
        }
        if let DimView::Symbol(name) = terms.dim(Dim(term.0)) {
            found.push(name);
        } else {
            waiting.extend(terms.children(term).iter().rev());
        }
    }
    found
}

/// A value of a type without symbols.
fn value(cx: &Cx, ty: Type, numbers: Numbers, random: &mut fastrand::Rng) -> Option<Value> {
    enum Step {
        Make(Type),
        Tuple(usize),
    }
    let terms = cx.terms();
    let mut steps = vec![Step::Make(ty)];
    let mut done = Vec::new();
    while let Some(step) = steps.pop() {
        let ty = match step {
            Step::Tuple(count) => {
                let fields = done.split_off(done.len() - count);
                done.push(Value::Tuple(Tuple::new(fields)));
                continue;
            }
            Step::Make(ty) => ty,
        };
        done.push(match terms.ty(ty) {
            TypeView::Tensor { .. } => Value::Tensor(tensor(cx, ty, numbers, random)?),
            TypeView::Scalar { dtype: DType::I64, lanes: 1 } => Value::Scalar(random.i64(0..4)),
            TypeView::Scalar { dtype, lanes: 1 } => {
                Value::Tensor(tensor(cx, cx.static_tensor_type(dtype, &[]), numbers, random)?)
            }
            TypeView::Shape(Some(dims)) => {
                Value::Shape(dims.iter().map(|&dim| terms.dim_value(dim)).collect::<Option<_>>()?)
            }
            TypeView::Tuple(fields) => {
                steps.push(Step::Tuple(fields.len()));
                steps.extend(fields.iter().rev().map(|&field| Step::Make(field)));
                continue;
            }
            _ => return None,
        });
    }
    done.pop()
}

/// One element in so many is extreme, where extremes are asked for: rows without one are compared as well.
const EXTREME_EVERY: usize = 8;

fn tensor(cx: &Cx, ty: Type, numbers: Numbers, random: &mut fastrand::Rng) -> Option<Tensor> {
    let (dtype, shape) = cx.terms().static_tensor(ty)?;
    let shape: Vec<usize> =
        shape.into_iter().map(|extent| usize::try_from(extent).ok()).collect::<Option<_>>()?;
    let count = shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent))?;
    if count > MAX_ELEMENTS {
        return None;
    }
    let is_extreme = |random: &mut fastrand::Rng| {
        numbers != Numbers::Ordinary && random.usize(0..EXTREME_EVERY) == 0
    };
    macro_rules! elements {
        ($ordinary:expr, $extremes:expr) => {{
            let extremes = $extremes;
            let mut element = || match is_extreme(random) {
                true => extremes[random.usize(0..extremes.len())],
                false => $ordinary(random),
            };
            let values = (0..count).map(|_| element()).collect();
            Tensor::from_vec_as(dtype, shape, values)
        }};
    }
    macro_rules! floats {
        ($t:ident, $of:expr) => {{
            let ordinary = |random: &mut fastrand::Rng| $of(random.f64() * 2.0 - 1.0);
            let zeros = [$of(0.0), $of(-0.0)];
            let extremes: &[$t] = match numbers {
                Numbers::Infinite => &[$t::INFINITY, $t::NEG_INFINITY],
                _ => &[$t::NAN, $t::MIN_POSITIVE, -$t::MIN_POSITIVE, zeros[0], zeros[1]],
            };
            elements!(ordinary, extremes)
        }};
    }
    macro_rules! integers {
        ($signed:ident) => {{
            let extremes = match dtype.is_signed() {
                true => [$signed::MIN, $signed::MIN + 1, -1, $signed::MAX],
                // The bits of the unsigned ones.
                false => [0, $signed::MIN, -2, -1],
            };
            elements!(|random: &mut fastrand::Rng| random.$signed(0..4), extremes)
        }};
    }
    Some(match dtype {
        DType::F64 => floats!(f64, |x: f64| x),
        DType::F32 => floats!(f32, |x: f64| x as f32),
        DType::F16 => floats!(f16, f16::from_f64),
        DType::BF16 => floats!(bf16, bf16::from_f64),
        DType::I64 | DType::U64 => integers!(i64),
        DType::I32 | DType::U32 => integers!(i32),
        DType::I16 | DType::U16 => integers!(i16),
        DType::I8 | DType::U8 => integers!(i8),
        DType::BOOL => elements!(|random: &mut fastrand::Rng| random.u8(0..2), [0, 1]),
        _ => return None,
    })
}
