//! The facet `cost`: how much arithmetic a call does, and how many bytes it reads and writes.
//!
//! A question is a call, an answer a [`Cost`], whose numbers may depend on symbolic dimensions. What is said of an operator
//! without a rule follows from its pattern ([`Cost::by_pattern`]).

use std::collections::BTreeMap;

use crate::ir::{Build, Context, DType, Dim, Expr, Symbol, Term, Terms, Type, TypeView, View};
use crate::pass::{Calls, OpPattern, PassError, Result, Rewriter};

use super::{Facet, Question, Reply, Rules, Site};

/// The facet.
pub struct CostOf;

/// What a call costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Arithmetic operations on elements; a multiplication and an addition are two.
    pub flops: Dim,
    /// Bytes of all tensors that it reads and writes, each once.
    pub bytes: Dim,
}

impl Cost {
    /// So many operations, and the bytes of the arguments and of the result. `None` where a rank is not known.
    pub fn of_call(rw: &impl Calls, call: Expr, flops: Dim) -> Option<Self> {
        let View::Call { args, .. } = rw.view(call) else { return None };
        let types: Option<Vec<Type>> =
            args.iter().chain([call]).map(|expr| rw.body().ty(expr)).collect();
        let bytes = rw.with_cx(|cx| {
            let mut sum = DimSum::default();
            for ty in types? {
                sum.add(cx, total(cx, ty)?.1);
            }
            Some(sum.dim(cx))
        })?;
        Some(Self { flops, bytes })
    }

    /// What a call of an operator with this pattern costs: one operation for each element of the result of an element-wise
    /// one, one for each element of the arguments of a reduction, none of what moves elements. `None` for another.
    pub fn by_pattern(rw: &impl Calls, call: Expr, pattern: OpPattern) -> Option<Self> {
        let View::Call { args, .. } = rw.view(call) else { return None };
        let counted = match pattern {
            OpPattern::Elementwise | OpPattern::Broadcast => Some(call),
            OpPattern::Reduction => Some(args.get(0)?),
            OpPattern::Injective | OpPattern::Tuple => None,
            _ => return None,
        };
        let flops = match counted {
            None => rw.with_cx(|cx| cx.dim(0)),
            Some(expr) => {
                let ty = rw.body().ty(expr)?;
                rw.with_cx(|cx| total(cx, ty)).map(|(elements, _)| elements)?
            }
        };
        Self::of_call(rw, call, flops)
    }
}

/// The elements, and the bytes, of a tensor or of the fields of a tuple. Shapes and numbers have none; a tuple in a tuple is
/// not looked into.
fn total(cx: &impl Context, ty: Type) -> Option<(Dim, Dim)> {
    let terms = cx.terms();
    let one = [ty];
    let fields = match terms.ty(ty) {
        TypeView::Tuple(fields) => fields,
        _ => &one,
    };
    let [mut elements, mut bytes] = [DimSum::default(), DimSum::default()];
    for &field in fields {
        match terms.ty(field) {
            TypeView::Tensor { dtype, dims } => {
                let count = cx.dim_product(dims?);
                elements.add(cx, count);
                bytes.add(cx, cx.dim_mul(count, cx.dim(size_of_element(dtype))));
            }
            TypeView::Tuple(_) => return None,
            _ => {}
        }
    }
    Some((elements.dim(cx), bytes.dim(cx)))
}

/// A sum of many extents, which makes no term of its own for each: terms are never given back.
#[derive(Default)]
pub struct DimSum {
    number: i64,
    /// How often each extent that is no plain number was added, and what the number could not hold.
    others: BTreeMap<Dim, i64>,
}

impl DimSum {
    /// Adds an extent.
    pub fn add(&mut self, cx: &impl Context, dim: Dim) {
        match cx.terms().dim_value(dim).and_then(|value| self.number.checked_add(value)) {
            Some(sum) => self.number = sum,
            None => *self.others.entry(dim).or_default() += 1,
        }
    }

    /// All of them together.
    pub fn dim(&self, cx: &impl Context) -> Dim {
        let add = |sum, (&dim, &times)| cx.dim_add(sum, cx.dim_mul(dim, cx.dim(times)));
        self.others.iter().fold(cx.dim(self.number), add)
    }
}

fn size_of_element(dtype: DType) -> i64 {
    i64::from(dtype.bits().div_ceil(8))
}

impl Facet for CostOf {
    const NAME: &'static str = "cost";
    type Ask<'a> = Site<'a>;
    type Answer = Cost;

    fn ask(question: Question<'_>) -> Result<Site<'_>> {
        question.site()
    }

    fn reply(ask: &mut Site<'_>, answer: Cost) -> Result<Reply> {
        let numbers = [answer.flops, answer.bytes].map(Term::from);
        Ok(Reply { nodes: Vec::new(), data: ask.with_cx(|cx| cx.list(&numbers)) })
    }
}

impl Rules<CostOf> {
    /// What `call`, a call of operator `op`, costs, where a rule says so.
    pub fn cost(&mut self, rw: &mut Rewriter, op: Symbol, call: Expr) -> Result<Option<Cost>> {
        let reply = self.ask(rw, op, &[call], Term::default()).map_err(|error| error.at(call))?;
        let Some(reply) = reply else { return Ok(None) };
        let terms = rw.terms();
        match *terms.children(reply.data) {
            [flops, bytes] if is_count(terms, flops) && is_count(terms, bytes) => {
                Ok(Some(Cost { flops: Dim(flops.0), bytes: Dim(bytes.0) }))
            }
            _ => {
                Err(PassError::new("a rule of `cost` answers what are no two numbers from 0")
                    .at(call))
            }
        }
    }
}

/// Whether a term is a dimension that may be a count.
fn is_count(terms: Terms<'_>, term: Term) -> bool {
    use crate::ir::TermView;
    match terms.view(term) {
        TermView::Dim(_) => true,
        TermView::Int(count) => count >= 0,
        _ => false,
    }
}
