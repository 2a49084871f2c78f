//! Reductions of several numbers, whose blocks name a reducer that knows how two states are joined.
//!
//! ```ir
//! block "best" … { reducer = "argmax" } init {       block "best_rf" … init { %best_rf[%vi, %vr] = … } { … }      parts
//!   %best[%vi] = … ; %place[%vi] = 0            =>
//! } { %best[%vi] = … ; %place[%vi] = … }              block "best" (…, %vr: reduce) … { %best[%vi] = … }           what they are together
//! ```

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{BuildPrim, DType, Expr, View};
use tenon_plugin_api::rule::{Joined, REDUCER};

use crate::exprs::Replacing;
use crate::index::Sum;
use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::Schedule;
use crate::tree::{Id, Iter, Node};

use super::rfactor::Parts;

/// What such a block reduces to: a buffer for each number, all of them at one place.
pub(super) struct State {
    reducer: String,
    pub(super) buffers: Vec<Expr>,
    pub(super) indices: Vec<Expr>,
    /// What the buffers hold at first.
    first: Vec<Expr>,
}

impl State {
    /// That of a block, which is a reduction; none where it names no reducer.
    pub(super) fn of(schedule: &Schedule, id: Id) -> Result<Option<Self>> {
        let Some(block) = schedule.tree.as_block(id) else { return refuse(id, "it is no block") };
        let named = schedule.body().terms().attrs(block.attrs).str(REDUCER).map(str::to_owned);
        let (Some(reducer), Some(init)) = (named, block.init) else { return Ok(None) };
        let mut state =
            Self { reducer, buffers: Vec::new(), indices: Vec::new(), first: Vec::new() };
        let mut space = schedule.space();
        let mut place: Option<Vec<Sum>> = None;
        for stmt in schedule.tree.walk(init) {
            let (buffer, value, indices) = match schedule.tree.get(stmt) {
                Node::Seq(_) => continue,
                Node::Store { buffer, value, indices } => (*buffer, *value, indices),
                _ => return refuse(stmt, "an initial statement of a reducer only stores a state"),
            };
            let own: Vec<Sum> =
                indices.iter().map(|&index| space.read(schedule.body(), index)).collect();
            if place.as_ref().is_some_and(|place| *place != own) || state.buffers.contains(&buffer)
            {
                return refuse(
                    stmt,
                    "the numbers of a state do not lie at one place of their buffers",
                );
            }
            (state.indices, place) = (indices.clone(), Some(own));
            state.buffers.push(buffer);
            state.first.push(value);
        }
        let written = schedule.buffers(id, true);
        match written.iter().find(|buffer| !state.buffers.contains(buffer)) {
            Some(&other) => {
                let name = schedule.var_name(other);
                refuse(id, format!("it writes `{name}`, which its initial statement does not"))
            }
            None => Ok(Some(state)),
        }
    }

    /// The initial statement and the body of the block that joins the parts: from the state of nothing on, each with what is there.
    pub(super) fn join(
        &self,
        schedule: &mut Schedule,
        id: Id,
        partials: &[Expr],
        place: usize,
        own: Expr,
        inside: HashMap<Expr, Expr>,
    ) -> Result<(Id, Id)> {
        let mut replacing = Replacing::of(inside);
        let rw = &mut schedule.rw;
        let indices: Vec<Expr> =
            self.indices.iter().map(|&index| replacing.of_expr(rw, index)).collect();
        let mut from = indices.clone();
        from.insert(place, own);
        let so_far: Vec<Expr> =
            self.buffers.iter().map(|&buffer| rw.load(buffer, &indices)).collect();
        let parts: Vec<Expr> = partials.iter().map(|&buffer| rw.load(buffer, &from)).collect();
        let found = Joined::of(rw, &self.reducer, [&so_far, &parts]);
        let found = found.map_err(|error| Refusal::new(error.to_string()).at(id))?;
        let Some(Joined { identity, joined }) = found else {
            let name = &self.reducer;
            return refuse(
                id,
                format!(
                    "there is no reducer `{name}`; `tenon rules list --facet reducer` shows those that plugins have"
                ),
            );
        };
        if !self.first.iter().zip(&identity).all(|(&first, &none)| is_same(schedule, first, none)) {
            let name = &self.reducer;
            return refuse(id, format!("it does not start from what `{name}` is of nothing"));
        }
        let stores = |schedule: &mut Schedule, values: &[Expr]| -> Vec<Id> {
            let all = self.buffers.iter().zip(values);
            let store = |(&buffer, &value): (&Expr, &Expr)| {
                let indices = indices.clone();
                schedule.tree.add(Node::Store { buffer, value, indices })
            };
            all.map(store).collect()
        };
        let init = stores(schedule, &identity);
        // All of them are computed before any is written.
        let (mut body, mut named) = (Vec::new(), Vec::new());
        for (&buffer, value) in self.buffers.iter().zip(joined) {
            let scalar = schedule.body().scalar_ty(value);
            let dtype = scalar.map_or(DType::F32, |(dtype, _)| dtype);
            let name = schedule.var_name(buffer);
            let var = schedule.rw.scalar_var(&name, dtype);
            body.push(schedule.tree.add(Node::Let { var, value }));
            named.push(var);
        }
        body.extend(stores(schedule, &named));
        Ok((schedule.tree.make(Node::Seq(init)), schedule.tree.make(Node::Seq(body))))
    }

    /// The block reduces into the parts, each from what the whole would start from.
    pub(super) fn reduce_parts(
        &self,
        schedule: &mut Schedule,
        id: Id,
        parts: Parts,
        partials: &[Expr],
        place: usize,
    ) {
        let own = parts.own();
        let mut iters = parts.iters;
        if !parts.has_rest {
            // A part of one step still is started before it.
            let (zero, one) = (schedule.int(0), schedule.int(1));
            let (var, kind) = (schedule.index_var("vpart"), schedule.kind_term(true));
            iters.push(Iter { var, kind, binding: zero, min: zero, extent: one });
        }
        let name = format!("{}_rf", schedule.block_name(id));
        let name = schedule.symbol(&name);
        let node = schedule.tree.block_mut(id);
        (node.name, node.iters) = (name, iters);
        schedule.substitute(id, parts.pairs);
        for (&buffer, &partial) in self.buffers.iter().zip(partials) {
            schedule.redirect(id, buffer, partial, |_, axis, indices| match axis.cmp(&place) {
                std::cmp::Ordering::Less => indices[axis],
                std::cmp::Ordering::Equal => own,
                std::cmp::Ordering::Greater => indices[axis - 1],
            });
        }
    }
}

/// Whether two numbers are the same.
fn is_same(schedule: &Schedule, a: Expr, b: Expr) -> bool {
    let is_equal = match (schedule.view(a), schedule.view(b)) {
        (View::Int(a), View::Int(b)) => a == b,
        (View::Float(a), View::Float(b)) => a.to_bits() == b.to_bits(),
        _ => false,
    };
    is_equal && schedule.body().scalar_ty(a) == schedule.body().scalar_ty(b)
}
