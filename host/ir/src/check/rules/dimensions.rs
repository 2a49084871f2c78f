//! A symbolic dimension comes from a parameter, or is bound to what was computed, and none is negative.

use rustc_hash::FxHashSet;

use crate::check::{Report, Rule, Subject};
use crate::op_names::{BIND_DIMS, MEMORY_ROOM};
use crate::{
    BodyView, Dim, DimView, Expr, Kind, Symbol, Term, TermKind, TermView, Terms, Type, TypeView,
    View,
};

pub(super) const RULE: Rule = Rule {
    name: "dimensions",
    demands: "no dimension is negative, and a symbol in a type stands in the type of a parameter, or is bound once",
    since: None,
    until: None,
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report) {
    not_negative(subject, report);
    symbols_are_known(subject, report);
}

/// Dimensions that are integers are not negative. What a shape that is a value holds is up to who reads it.
fn not_negative(subject: &Subject<'_>, report: &mut Report) {
    let (body, terms) = (subject.body, subject.body.terms());
    let mut seen: FxHashSet<Term> = FxHashSet::default();
    let mut waiting = Vec::new();
    for expr in body.post_order().filter(|&expr| body.kind(expr) != Kind::GLOBAL) {
        waiting.extend(body.ty(expr).map(Term::from));
        while let Some(term) = waiting.pop() {
            if !seen.insert(term) {
                continue;
            }
            let TypeView::Tensor { dims: Some(dims), .. } = terms.ty(Type(term.0)) else {
                waiting.extend(terms.children(term));
                continue;
            };
            if let Some(dim) = dims.iter().find_map(|&dim| terms.dim_value(dim).filter(|&d| d < 0))
            {
                report.at(expr, || {
                    let ty = terms.type_text(Type(term.0));
                    format!("a dimension of {ty} is {dim}, and a tensor has none below 0")
                });
            }
        }
    }
}

fn symbols_are_known(subject: &Subject<'_>, report: &mut Report) {
    let body = subject.body;
    let mut known = Symbols::new(body.terms());
    let mut all_params = FxHashSet::default();
    let is_function = |&expr: &Expr| matches!(body.kind(expr), Kind::FUNCTION | Kind::PRIM_FUNC);
    for expr in body.post_order().filter(is_function) {
        if let View::Function { params, .. } | View::PrimFunc { params, .. } = body.view(expr) {
            all_params.extend(params.iter());
        }
    }
    // A parameter stands before what it is a parameter of, and behind what is bound around that: its type may have such symbols.
    for expr in body.post_order() {
        if all_params.contains(&expr) {
            body.ty(expr).into_iter().for_each(|ty| known.find(ty.into(), |_| {}));
        }
        for dim in bound_dims(body, expr) {
            let DimView::Symbol(symbol) = body.terms().dim(dim) else { continue };
            if !known.found.insert(symbol) {
                report.at(expr, || {
                    format!("the dimension `{}` stands for something else", subject.str(symbol))
                });
            }
        }
    }
    let known = known.found;
    let mut used = Symbols::new(body.terms());
    for expr in body.post_order() {
        let dims = match body.kind(expr) {
            Kind::PRIM => Some(Term(body.raw_node(expr).data)),
            // What stands in the type of a function is its own.
            Kind::GLOBAL | Kind::FUNCTION => continue,
            _ => body.ty(expr).map(Term::from),
        };
        let Some(dims) = dims.filter(|dims| !used.seen.contains(dims)) else { continue };
        used.find(dims, |symbol| {
            if !known.contains(&symbol) {
                report.at(expr, || {
                    format!("the dimension `{}` stands in no parameter's type", subject.str(symbol))
                });
            }
        });
    }
}

/// The symbols that a call binds.
fn bound_dims(body: BodyView<'_>, expr: Expr) -> Vec<Dim> {
    let View::Call { callee, args, attrs } = body.view(expr) else { return Vec::new() };
    let terms = body.terms();
    let Some(TermView::Type(ty)) = terms.attrs(attrs).get("ty") else { return Vec::new() };
    match body.op_name(callee) {
        Some(BIND_DIMS) => terms.children(ty).iter().map(|dim| Dim(dim.0)).collect(),
        Some(MEMORY_ROOM) => {
            // The extent that is another one in the argument.
            let of = |ty| terms.tensor(ty).map_or(&[][..], |(_, dims)| dims);
            let given = args.get(0).and_then(|arg| body.ty(arg)).map_or(&[][..], of);
            let pairs = of(ty).iter().zip(given);
            pairs.filter(|(dim, given)| dim != given).map(|(&dim, _)| dim).collect()
        }
        _ => Vec::new(),
    }
}

/// The symbols in types, each term looked at once.
struct Symbols<'a> {
    terms: Terms<'a>,
    seen: FxHashSet<Term>,
    found: FxHashSet<Symbol>,
    waiting: Vec<Term>,
}

impl<'a> Symbols<'a> {
    fn new(terms: Terms<'a>) -> Self {
        let (seen, found) = (FxHashSet::default(), FxHashSet::default());
        Self { terms, seen, found, waiting: Vec::new() }
    }

    /// Calls `each` with the symbols below `term` that were not found before.
    fn find(&mut self, term: Term, mut each: impl FnMut(Symbol)) {
        self.waiting.push(term);
        while let Some(term) = self.waiting.pop() {
            // A function type binds its own symbols.
            if self.terms.kind(term) == TermKind::FUNC || !self.seen.insert(term) {
                continue;
            }
            match self.terms.dim(Dim(term.0)) {
                DimView::Symbol(name) => {
                    if self.found.insert(name) {
                        each(name);
                    }
                }
                _ => self.waiting.extend(self.terms.children(term)),
            }
        }
    }
}
