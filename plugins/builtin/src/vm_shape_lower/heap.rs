//! The heap of one function: which dimension has which slot, how it gets there, and how it is read.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::{DimView, Terms};
use tenon_plugin_api::prelude::*;

use crate::dims::{scalar, symbols};

/// What is done with a dimension that a value has at run time.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// It is compared with an integer.
    AssertImm(i64),
    /// It is compared with a slot.
    AssertLoad(usize),
    /// It goes into a slot.
    Store(usize),
    /// Nothing.
    NoOp,
}

/// A value whose type is compared at run time.
pub(super) struct Checked {
    pub(super) value: Expr,
    pub(super) ty: Type,
    /// What it is called in messages.
    pub(super) what: String,
}

/// What of a value is compared with its type: a tensor or shape, or each of those in a tuple, which become variables.
/// Of a value whose own type is `known` only that of which more is declared.
pub(super) fn checked(
    rw: &mut Rewriter,
    fields: &mut LetList,
    value: Expr,
    (declared, known): (Type, Option<Type>),
    name: String,
    what: impl Fn(&str) -> String,
) -> Vec<Checked> {
    let cx = rw.cx();
    let terms = cx.terms();
    let mut found = Vec::new();
    let mut pending = vec![(value, declared, known, name)];
    while let Some((value, ty, known, path)) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Tensor { .. } | TypeView::Shape(_) if says_more(terms, ty, known) => {
                found.push(Checked { value, ty, what: what(&path) });
            }
            TypeView::Tuple(types) => {
                let known = known.map(|known| terms.ty(known));
                let first = pending.len();
                for (index, &ty) in types.iter().enumerate() {
                    let known = match known {
                        Some(TypeView::Tuple(known)) => known.get(index).copied(),
                        _ => None,
                    };
                    if compared(terms, ty, known).is_empty() {
                        continue;
                    }
                    let field = match rw.view(value) {
                        View::Tuple(fields) => fields.at(index),
                        _ => {
                            let field = rw.tuple_get_item(value, index as u32);
                            rw.set_type(field, Some(known.unwrap_or(ty)));
                            fields.bind_new(rw, false, "field", field)
                        }
                    };
                    pending.push((field, ty, known, format!("{path}.{index}")));
                }
                pending[first..].reverse();
            }
            _ => {}
        }
    }
    found
}

/// The types of tensors and shapes in a declared type that say more than what is known.
pub(super) fn compared(terms: Terms<'_>, declared: Type, known: Option<Type>) -> Vec<Type> {
    let mut found = Vec::new();
    let mut pending = vec![(declared, known)];
    while let Some((ty, known)) = pending.pop() {
        match (terms.ty(ty), known.map(|known| terms.ty(known))) {
            (TypeView::Tuple(types), Some(TypeView::Tuple(known))) => {
                pending.extend(types.iter().copied().zip(known.iter().copied().map(Some)));
            }
            (TypeView::Tuple(types), _) => pending.extend(types.iter().map(|&ty| (ty, None))),
            (TypeView::Tensor { .. } | TypeView::Shape(_), _) if says_more(terms, ty, known) => {
                found.push(ty);
            }
            _ => {}
        }
    }
    found
}

/// Whether a type says more of a tensor or shape than what is known; of what nothing is known it does.
fn says_more(terms: Terms<'_>, declared: Type, known: Option<Type>) -> bool {
    let has_rank = |ty| {
        matches!(terms.ty(ty), TypeView::Tensor { dims: Some(_), .. } | TypeView::Shape(Some(_)))
    };
    known.is_none_or(|known| known != declared && has_rank(declared))
}

impl Checked {
    /// The dimensions that are declared.
    pub(super) fn dims<'a>(&self, terms: Terms<'a>) -> &'a [Dim] {
        super::dims_of(terms, self.ty)
    }

    /// Binds the comparison.
    pub(super) fn check(
        &self,
        rw: &mut Rewriter,
        list: &mut LetList,
        heap: Option<Expr>,
        steps: &[Step],
    ) {
        let cx = rw.cx();
        let (codes, operands): (Vec<&str>, Vec<i64>) = steps
            .iter()
            .map(|step| match *step {
                Step::AssertImm(value) => ("assert_imm", value),
                Step::AssertLoad(slot) => ("assert_load", slot as i64),
                Step::Store(slot) => ("store", slot as i64),
                Step::NoOp => ("no_op", 0),
            })
            .unzip();
        let attrs = cx.attrs(&[
            ("ty", self.ty.into()),
            ("codes", rw.str_list(&codes).into()),
            ("operands", operands.into()),
            ("what", self.what.as_str().into()),
        ]);
        let needs_heap = |step: &Step| matches!(step, Step::AssertLoad(_) | Step::Store(_));
        let heap = heap.filter(|_| steps.iter().any(needs_heap));
        let args: Vec<Expr> = [self.value].into_iter().chain(heap).collect();
        bind(rw, list, "matched", "vm.match_shape", &args, attrs, cx.tuple_type(&[]));
    }
}

/// Slots for the dimensions of a function.
pub(super) struct Heap<'a> {
    terms: Terms<'a>,
    /// The symbols that a parameter has by themselves.
    given: HashSet<Dim>,
    slots: HashMap<Dim, usize>,
    /// Those that are not read off a parameter, in the order of their slots.
    computed: Vec<Dim>,
}

impl<'a> Heap<'a> {
    pub(super) fn new(terms: Terms<'a>, params: &[Checked]) -> Self {
        let dims = params.iter().flat_map(|param| param.dims(terms));
        let given =
            dims.copied().filter(|&dim| matches!(terms.dim(dim), DimView::Symbol(_))).collect();
        Self { terms, given, slots: HashMap::new(), computed: Vec::new() }
    }

    /// How the dimensions of a parameter are met first: what cannot be computed is stored.
    pub(super) fn read(&mut self, dims: &[Dim]) -> Vec<Step> {
        let mut read = |&dim: &Dim| {
            if let Some(value) = self.terms.dim_value(dim) {
                return Step::AssertImm(value);
            }
            if let Some(&slot) = self.slots.get(&dim) {
                return Step::AssertLoad(slot);
            }
            if self.can_compute(dim) && !self.given.contains(&dim) {
                return Step::NoOp;
            }
            Step::Store(self.new_slot(dim))
        };
        dims.iter().map(&mut read).collect()
    }

    /// Sees to it that each dimension has a slot. All parameters are read by then.
    pub(super) fn place(&mut self, dims: &[Dim], what: &str) -> Result<()> {
        for &dim in dims {
            if self.terms.dim_value(dim).is_some() || self.slots.contains_key(&dim) {
                continue;
            }
            if !self.can_compute(dim) {
                let text = self.terms.dim_text(dim);
                let message = format!(
                    "the dimension `{text}` of {what} cannot be computed: a parameter must have each of its \
                     symbols by itself as a dimension"
                );
                return Err(PassError::new(message));
            }
            self.new_slot(dim);
            self.computed.push(dim);
        }
        Ok(())
    }

    fn can_compute(&self, dim: Dim) -> bool {
        symbols(self.terms, dim).iter().all(|symbol| self.given.contains(symbol))
    }

    fn new_slot(&mut self, dim: Dim) -> usize {
        let slot = self.slots.len();
        self.slots.insert(dim, slot);
        slot
    }

    /// How dimensions are compared when all of them are known.
    pub(super) fn compare(&self, dims: &[Dim]) -> Vec<Step> {
        let step = |dim: &Dim| match self.terms.dim_value(*dim) {
            Some(value) => Step::AssertImm(value),
            None => Step::AssertLoad(self.slots[dim]),
        };
        dims.iter().map(step).collect()
    }

    /// How the dimensions are compared that were not when they were read; `None` where all were.
    pub(super) fn rest(&self, dims: &[Dim], read: &[Step]) -> Option<Vec<Step>> {
        let rest = self.compare(dims).into_iter().zip(read);
        let rest = rest.map(|(step, read)| if *read == Step::NoOp { step } else { Step::NoOp });
        read.contains(&Step::NoOp).then(|| rest.collect())
    }

    /// Binds the heap; `None` when nothing is on it.
    pub(super) fn alloc(&self, rw: &mut Rewriter, list: &mut LetList) -> Option<Expr> {
        let slots = self.slots.len() as i64;
        let cx = rw.cx();
        let attrs = cx.attrs(&[("slots", slots.into())]);
        let ty = cx.static_tensor_type(DType::I64, &[slots]);
        (slots > 0).then(|| bind(rw, list, "heap", "vm.alloc_shape_heap", &[], attrs, ty))
    }

    /// The program that computes what no parameter says; `None` when there is nothing.
    pub(super) fn program(&self, cx: &PassContext) -> Result<Option<Function>> {
        if self.computed.is_empty() {
            return Ok(None);
        }
        let mut rw = Rewriter::new(cx);
        let ty = cx.static_tensor_type(DType::I64, &[self.slots.len() as i64]);
        let heap = rw.buffer("heap", ty, "");
        let mut known: HashMap<Dim, Expr> = HashMap::new();
        let mut stores = Vec::new();
        for &dim in &self.computed {
            for symbol in symbols(self.terms, dim) {
                let slot = rw.index(self.slots[&symbol] as i64);
                known.entry(symbol).or_insert_with(|| rw.load(heap, &[slot]));
            }
            let value = scalar(&mut rw, dim, &mut known)?;
            let slot = rw.index(self.slots[&dim] as i64);
            stores.push(rw.store(heap, value, &[slot]));
        }
        let body = rw.seq(&stores);
        let program = rw.prim_func(&[heap], 1, body, Attrs::NONE);
        let program = rw.private(program);
        rw.set_root(program);
        rw.finish().map(Some)
    }

    /// Binds a shape.
    pub(super) fn shape(
        &self,
        rw: &mut Rewriter,
        list: &mut LetList,
        heap: Option<Expr>,
        ty: Type,
    ) -> Expr {
        let cx = rw.cx();
        let step = |dim: &Dim| match self.terms.dim_value(*dim) {
            Some(value) => ("imm", value),
            None => ("load", self.slots[dim] as i64),
        };
        let steps = super::dims_of(self.terms, ty).iter().map(step);
        let (codes, operands): (Vec<&str>, Vec<i64>) = steps.unzip();
        let attrs = cx.attrs(&[
            ("ty", ty.into()),
            ("codes", rw.str_list(&codes).into()),
            ("operands", operands.into()),
        ]);
        let heap: Vec<Expr> = heap.into_iter().collect();
        bind(rw, list, "shape", "vm.make_shape", &heap, attrs, ty)
    }

    /// Binds a dimension.
    pub(super) fn load(
        &self,
        rw: &mut Rewriter,
        list: &mut LetList,
        heap: Option<Expr>,
        dim: Dim,
    ) -> Expr {
        let cx = rw.cx();
        let attrs = cx.attrs(&[("slot", (self.slots[&dim] as i64).into())]);
        let heap: Vec<Expr> = heap.into_iter().collect();
        bind(rw, list, "dim", "vm.load_dim", &heap, attrs, cx.scalar_type(DType::I64))
    }
}

/// Binds a call of an operator whose result has type `ty`.
fn bind(
    rw: &mut Rewriter,
    list: &mut LetList,
    name: &str,
    op: &str,
    args: &[Expr],
    attrs: Attrs,
    ty: Type,
) -> Expr {
    let op = rw.op(op);
    let call = rw.call(op, args, attrs, Some(ty));
    list.bind_new(rw, false, name, call)
}
