//! Which results a tensor program can write over which arguments.

use std::collections::HashMap;

use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

use crate::index::{Indices, strides};

/// That a program writes a result over an argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Overwrite {
    /// The number of the parameter that is read.
    pub(super) input: usize,
    /// The number of the parameter that is written.
    pub(super) output: usize,
    /// Whether the program begins with a copy of what is read, and does not read it again.
    pub(super) is_copied: bool,
}

/// What a program can write over what.
pub(super) fn overwrites(body: BodyView<'_>) -> Option<Vec<Overwrite>> {
    let View::PrimFunc { params, outputs, .. } = body.view(body.root()) else { return None };
    let inputs = params.len() - outputs;
    let uses = Uses::of(body, params);
    let mut indices = Indices::of(body)?;
    let mut found = Vec::new();
    for output in inputs..params.len() {
        let written = params.at(output);
        let Some(store) = uses.only_store(written) else { continue };
        let Some((at, strides)) = place_of(body, written, store) else { continue };
        let Some(place) = indices.place(at, &strides) else { continue };
        let Some(loops) = uses.loops_around(body, store) else { continue };
        if !indices.is_injective(&place, &loops) {
            continue;
        }
        let mut is_at_place = |load: &Expr| {
            let at = body.operands(*load).skip(1);
            indices.place(at, &strides).as_ref() == Some(&place)
        };
        found.extend((0..inputs).filter_map(|input| {
            let read = params.at(input);
            let is_same_type = body.ty(read) == body.ty(written);
            let loads = uses.loads_within(read, store).filter(|_| is_same_type)?;
            let is_update = loads.iter().all(&mut is_at_place);
            is_update.then_some(Overwrite { input, output, is_copied: false })
        }));
    }
    found.extend(copy_at_the_beginning(body, params, inputs, &uses));
    Some(found)
}

/// What a program copies in its first statement, all of it, and then never reads.
fn copy_at_the_beginning(
    body: BodyView<'_>,
    params: Args<'_>,
    inputs: usize,
    uses: &Uses,
) -> Option<Overwrite> {
    let statements = statements_of(body)?;
    let first = statements.get(0).filter(|_| statements.len() > 1)?;
    let (input, output) = copied_by(body, params, inputs, uses, first)?;
    let is_same_type = body.ty(params.at(input)) == body.ty(params.at(output));
    is_same_type.then_some(Overwrite { input, output, is_copied: true })
}

/// That a program puts all of an argument at the front of a result, and more behind it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Append {
    /// The number of the parameter that is read.
    pub(crate) input: usize,
    /// The number of the parameter that is written.
    pub(crate) output: usize,
    /// The statement that copies it.
    pub(crate) statement: usize,
}

/// The arguments that a program copies to the front of results, and reads nowhere else. Nothing is written to such a result before.
pub(crate) fn appends(body: BodyView<'_>) -> Vec<Append> {
    let View::PrimFunc { params, outputs, .. } = body.view(body.root()) else { return Vec::new() };
    let Some(statements) = statements_of(body) else { return Vec::new() };
    let inputs = params.len() - outputs;
    let uses = Uses::of(body, params);
    let first = first_uses(body, statements);
    let mut found = Vec::new();
    for (statement, stmt) in statements.iter().enumerate() {
        let Some((input, output)) = copied_by(body, params, inputs, &uses, stmt) else { continue };
        let written = params.at(output);
        let is_known = uses.of[written].as_ref().is_some_and(|written| written.is_known);
        let is_first = first[written] == Some(statement);
        if is_known && is_first && body.ty(params.at(input)) != body.ty(params.at(output)) {
            found.push(Append { input, output, statement });
        }
    }
    found
}

/// The first of the statements in which each node stands, by its number.
fn first_uses(body: BodyView<'_>, statements: Args<'_>) -> SideTable<Option<usize>> {
    let mut first: SideTable<Option<usize>> = SideTable::new(body, None);
    for (number, stmt) in statements.iter().enumerate() {
        first[stmt].get_or_insert(number);
    }
    // What a node stands in comes before it.
    for expr in body.post_order().rev() {
        let Some(number) = first[expr] else { continue };
        for operand in body.operands(expr).iter() {
            first[operand] = Some(first[operand].map_or(number, |known| known.min(number)));
        }
    }
    first
}

/// The statements of a program, where it has several.
fn statements_of(body: BodyView<'_>) -> Option<Args<'_>> {
    let View::PrimFunc { body: root, .. } = body.view(body.root()) else { return None };
    match body.view(root) {
        View::Seq(statements) => Some(statements),
        _ => None,
    }
}

/// The parameter of which a statement copies all elements, which nothing else reads, and the one to which it copies them, each to
/// the same place.
fn copied_by(
    body: BodyView<'_>,
    params: Args<'_>,
    inputs: usize,
    uses: &Uses,
    stmt: Expr,
) -> Option<(usize, usize)> {
    let mut stmt = stmt;
    let mut loops: HashMap<Expr, Expr> = HashMap::new();
    let mut values: HashMap<Expr, Expr> = HashMap::new();
    loop {
        stmt = match body.view(stmt) {
            View::For { var, min, extent, body: inner, .. } => {
                let View::Int(0) = body.view(min) else { return None };
                loops.insert(var, extent);
                inner
            }
            View::Block(block) => {
                let iters = block.iters.to_vec();
                values.extend(iters.chunks_exact(2).map(|iter| (iter[0], iter[1])));
                block.body
            }
            View::Seq(only) if only.len() == 1 => only.at(0),
            View::Store { .. } => break,
            _ => return None,
        };
    }
    let View::Store { buffer: to, value, indices } = body.view(stmt) else { return None };
    let View::Load { buffer: from, indices: places } = body.view(value) else { return None };
    let number = |buffer| params.iter().position(|param| param == buffer);
    let (input, output) = (number(from)?, number(to)?);
    let read = uses.of[from].as_ref()?;
    let is_only = read.is_known && read.stores.is_empty() && read.loads == [value];
    let (_, dims) = body.terms().tensor(body.ty(from)?)?;
    let is_right = input < inputs && output >= inputs && is_only;
    if !is_right || !indices.iter().eq(places.iter()) || indices.len() != dims.len() {
        return None;
    }
    // Each index is a loop of its own over all of its axis, and there are no others.
    for (index, &dim) in indices.iter().zip(dims) {
        let var = values.get(&index).copied().unwrap_or(index);
        let is_all = match body.view(loops.remove(&var)?) {
            View::Int(extent) => body.terms().dim_value(dim) == Some(extent),
            View::Prim { dim: extent } => extent == dim,
            _ => false,
        };
        if !is_all {
            return None;
        }
    }
    loops.is_empty().then_some((input, output))
}

/// The indices of a store to `buffer`, and how far apart neighbours are.
fn place_of<'a>(body: BodyView<'a>, buffer: Expr, store: Expr) -> Option<(Args<'a>, Vec<i64>)> {
    let View::Store { indices, .. } = body.view(store) else { return None };
    let (_, dims) = body.terms().tensor(body.ty(buffer)?)?;
    Some((indices, strides(body.terms(), dims)?))
}

/// How a program uses its parameters.
pub(crate) struct Uses {
    /// By parameter.
    of: SideTable<Option<Use>>,
    /// The statement that each statement stands in, and the statement that evaluates each expression.
    parents: SideTable<Parent>,
}

#[derive(Default)]
struct Use {
    stores: Vec<Expr>,
    loads: Vec<Expr>,
    /// Whether it is used in another way.
    is_known: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    None,
    /// As the value, if it is a store.
    One(Expr),
    Several,
}

impl Uses {
    pub(crate) fn of(body: BodyView<'_>, params: Args<'_>) -> Self {
        let unused = || Use { is_known: true, ..Use::default() };
        let mut of = SideTable::of(body, |_| None);
        params.iter().for_each(|param| of[param] = Some(unused()));
        let mut parents = SideTable::new(body, Parent::None);
        for expr in body.post_order().rev() {
            let (kind, is_stmt) = (body.kind(expr), body.kind(expr).is_stmt());
            for (position, operand) in body.operands(expr).iter().enumerate() {
                if let Some(uses) = &mut of[operand] {
                    match (kind, position) {
                        (Kind::STORE, 0) => uses.stores.push(expr),
                        (Kind::LOAD, 0) => uses.loads.push(expr),
                        (Kind::REGION, 0) | (Kind::PRIM_FUNC, _) => {}
                        _ => uses.is_known = false,
                    }
                }
                let parent = match kind {
                    Kind::STORE if position > 1 => Parent::Several,
                    _ if is_stmt || kind == Kind::PRIM_FUNC => Parent::One(expr),
                    _ => parents[expr],
                };
                let known = &mut parents[operand];
                *known = match *known {
                    Parent::None => parent,
                    same if same == parent => same,
                    _ => Parent::Several,
                };
            }
        }
        Self { of, parents }
    }

    /// The store that is all that happens to `buffer`.
    pub(crate) fn only_store(&self, buffer: Expr) -> Option<Expr> {
        match self.of[buffer].as_ref()? {
            Use { stores, loads, is_known: true } if loads.is_empty() && stores.len() == 1 => {
                stores.first().copied()
            }
            _ => None,
        }
    }

    /// The loads from `buffer`, when all that happens to it is that the value of `store` reads it.
    pub(crate) fn loads_within(&self, buffer: Expr, store: Expr) -> Option<&[Expr]> {
        let Use { stores, loads, is_known: true } = self.of[buffer].as_ref()? else { return None };
        let is_within = |load: &Expr| self.parents[*load] == Parent::One(store);
        (stores.is_empty() && loads.iter().all(is_within)).then_some(loads)
    }

    /// The variables and extents of the loops around a statement; `None` when they are not known.
    pub(crate) fn loops_around(&self, body: BodyView<'_>, stmt: Expr) -> Option<Vec<(Expr, i64)>> {
        let (mut loops, mut stmt) = (Vec::new(), stmt);
        while let Parent::One(parent) = self.parents[stmt] {
            if let View::For { var, extent, .. } = body.view(parent) {
                let View::Int(extent) = body.view(extent) else { return None };
                loops.push((var, extent));
            }
            stmt = parent;
        }
        (stmt == body.root()).then_some(loops)
    }
}
