//! Programs over tensors that lie in memory with room.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::DimView;
use tenon_plugin_api::prelude::*;

use super::places::room_type;
use crate::inplace_update::program::Append;

/// A parameter that is another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Change {
    /// Its number.
    pub(super) param: usize,
    /// The axis along which it has room.
    pub(super) axis: usize,
    /// Whether it is not there any more.
    pub(super) is_left_out: bool,
}

/// The programs that were made, each once.
#[derive(Default)]
pub(super) struct Programs {
    pub(super) made: HashMap<(Symbol, Vec<Change>), Symbol>,
}

impl Programs {
    /// The program `name` with the changes, which must be sorted. Its first parameter has no elements: its extents behind the first
    /// are those of the axes before.
    pub(super) fn lying(
        &mut self,
        module: &mut Module,
        name: Symbol,
        changes: Vec<Change>,
        appended: &[Append],
    ) -> Result<Symbol> {
        if let Some(&made) = self.made.get(&(name, changes.clone())) {
            return Ok(made);
        }
        let program = module.get(name).ok_or_else(|| PassError::new("a program is missing"))?;
        let mut taken = symbols_of(program.view());
        let mut rw = program.edit();
        let root = program.view().root();
        let mut operands: Vec<Expr> = rw.body().operands_keeping_binders(root).collect();
        let mut dims = Vec::with_capacity(changes.len());
        for change in &changes {
            let param = operands[change.param];
            dims.push(dim_at(&rw, param, change.axis)?);
            if !change.is_left_out {
                let room = fresh_symbol(&mut rw, &mut taken);
                let mut spec = rw.body().spec(param);
                let ty = spec.ty.ok_or_else(|| PassError::new("this tensor has no type"))?;
                spec.ty = Some(room_type(&rw, ty, change.axis, room)?);
                operands[change.param] = rw.push(spec, &[]);
                rw.replace(param, operands[change.param]);
            }
        }
        if let View::PrimFunc { body, .. } = program.view().view(root)
            && let View::Seq(statements) = program.view().view(body)
            && !appended.is_empty()
        {
            let copies: HashSet<usize> = appended.iter().map(|it| it.statement).collect();
            let is_left = |&(at, _): &(usize, Expr)| !copies.contains(&at);
            let rest: Vec<Expr> =
                statements.iter().enumerate().filter(is_left).map(|(_, stmt)| stmt).collect();
            let last = operands.len() - 1;
            operands[last] = match *rest.as_slice() {
                [only] => only,
                _ => rw.rebuild(body, &rest),
            };
        }
        let left_out: HashSet<usize> =
            changes.iter().filter(|it| it.is_left_out).map(|it| it.param).collect();
        let mut number = 0..;
        operands.retain(|_| !number.next().is_some_and(|at| left_out.contains(&at)));
        let ty = extents_type(&rw, &dims);
        let name_of = rw.cx().symbol("extents").0;
        let buffer = rw.body().spec(operands[0]);
        let extents = rw.push(NodeSpec { ty: Some(ty), data: name_of, ..buffer }, &[]);
        operands.insert(0, extents);
        let new_root = rw.rebuild(root, &operands);
        rw.set_root(new_root);
        let new = module.fresh_name(&format!("{}_append", rw.terms().str(name)));
        let made = rw.finish()?;
        module.insert(new, &made);
        self.made.insert((name, changes), new);
        Ok(new)
    }
}

/// The extent of an axis of a tensor.
pub(super) fn dim_at(rw: &Rewriter, tensor: Expr, axis: usize) -> Result<Dim> {
    let dims = rw.body().ty(tensor).and_then(|ty| rw.terms().tensor(ty)).map(|(_, dims)| dims);
    let dim = dims.and_then(|dims| dims.get(axis)).copied();
    dim.ok_or_else(|| PassError::new("this tensor has no such axis").at(tensor))
}

/// The type of a tensor without elements, of these extents besides.
pub(super) fn extents_type(rw: &Rewriter, dims: &[Dim]) -> Type {
    let cx = rw.cx();
    let all: Vec<Dim> = [cx.dim(0)].into_iter().chain(dims.iter().copied()).collect();
    cx.tensor_type(DType::U8, &all)
}

/// The names of all symbols in types and dimensions of a function.
pub(super) fn symbols_of(body: BodyView<'_>) -> HashSet<String> {
    let terms = body.terms();
    let mut seen: HashSet<Term> = HashSet::new();
    let mut found = HashSet::new();
    let mut pending: Vec<Term> = Vec::new();
    for expr in body.post_order() {
        pending.extend(body.ty(expr).map(Term::from));
        if let View::Prim { dim } = body.view(expr) {
            pending.push(dim.into());
        }
        while let Some(term) = pending.pop() {
            if !seen.insert(term) {
                continue;
            }
            match terms.dim(Dim(term.0)) {
                DimView::Symbol(name) => drop(found.insert(terms.str(name).to_owned())),
                _ => pending.extend(terms.children(term)),
            }
        }
    }
    found
}

/// A symbol that stands for nothing else.
pub(super) fn fresh_symbol(rw: &mut Rewriter, taken: &mut HashSet<String>) -> Dim {
    let names = (0..).map(|at| if at == 0 { "room".to_owned() } else { format!("room_{at}") });
    let name = names.into_iter().find(|name| !taken.contains(name)).expect("names do not end");
    let dim = rw.cx().dim_symbol(&name);
    taken.insert(name);
    dim
}
