//! Blocks among one another: who reads what another writes, and what their iterators may be done with.
//!
//! A block is *complete* when it is a function of its spatial iterators: its instances may run in any order, several times, or
//! inside of what reads them. It is a *reduction* when its instances may run in any order once each, the first of each element
//! before the others. Dominance goes by region: a block is dominant when no other block of the scope writes elements that it
//! may write.

use tenon_plugin_api::ir::Expr;

use crate::access::Access;
use crate::index::{AtomId, Fit, Range, Space, Sum, is_injective};
use crate::refusal::{Result, refuse};
use crate::schedule::Schedule;
use crate::tree::{Id, Node};

impl Schedule {
    /// The buffers from outside that a statement reads, or writes.
    pub(crate) fn buffers(&self, id: Id, is_store: bool) -> Vec<Expr> {
        let inside = self.tree.walk(id);
        let own = self.allocated(&inside);
        let mut buffers = Vec::new();
        for id in inside {
            self.each_buffer(id, is_store, |buffer| {
                if !buffers.contains(&buffer) && !own.contains(&buffer) {
                    buffers.push(buffer);
                }
            });
        }
        buffers
    }

    /// The blocks that write what a block reads, in order.
    pub(crate) fn producers_of(&self, block: Id) -> Vec<Id> {
        let among = self.tree.blocks_of(self.tree.scope(block));
        let read = self.buffers(block, false);
        let place = among.iter().position(|&other| other == block).unwrap_or(0);
        let writes = |&&other: &&Id| {
            let written = self.buffers(other, true);
            let mut both = written.into_iter().filter(|buffer| read.contains(buffer));
            both.any(|buffer| self.meet(other, block, buffer, &among))
        };
        among[..place].iter().filter(writes).copied().collect()
    }

    /// The blocks that read what a block writes.
    pub(crate) fn consumers_of(&self, block: Id) -> Vec<Id> {
        let among = self.tree.blocks_of(self.tree.scope(block));
        let written = self.buffers(block, true);
        let place = among.iter().position(|&other| other == block).unwrap_or(0);
        let reads = |&&other: &&Id| {
            let read = self.buffers(other, false);
            let mut both = read.into_iter().filter(|buffer| written.contains(buffer));
            other != block && both.any(|buffer| self.meet(block, other, buffer, &among))
        };
        among[place..].iter().filter(reads).copied().collect()
    }

    /// Whether `reader` may read elements of a buffer that `writer` writes. Of the only writer everybody does.
    fn meet(&self, writer: Id, reader: Id, buffer: Expr, among: &[Id]) -> bool {
        let writes = |&other: &Id| self.buffers(other, true).contains(&buffer);
        let has_others = among.iter().filter(|&other| *other != writer).any(writes);
        !has_others || !self.are_apart((writer, true), (reader, false), buffer)
    }

    /// Whether a block writes what the program, or the block around it, does not make itself.
    pub(crate) fn is_output(&self, block: Id) -> bool {
        let made = match self.tree.scope(block) {
            Some(scope) => self.allocated(&self.tree.walk(scope)),
            None => self.all_allocated(),
        };
        self.buffers(block, true).iter().any(|buffer| !made.contains(buffer))
    }

    /// Why a block is not complete among others.
    pub(crate) fn why_incomplete(&self, block: Id, among: &[Id]) -> Option<String> {
        let node = self.tree.as_block(block)?;
        if !node.iters.iter().all(|iter| self.is_spatial(iter.kind)) {
            return Some("it has an iterator that is not spatial".into());
        }
        if node.init.is_some() {
            return Some("it has an initial statement".into());
        }
        let (read, written) = (self.buffers(block, false), self.buffers(block, true));
        if let Some(&both) = written.iter().find(|buffer| read.contains(buffer)) {
            return Some(format!("it reads and writes `{}`", self.var_name(both)));
        }
        self.why_not_dominant(block, among)
    }

    /// Why a block is no reduction among others. It may be a part of one, which leaves out what other blocks compute.
    pub(crate) fn why_no_reduction(&self, block: Id, among: &[Id]) -> Option<String> {
        let is_affine = || self.why_not_affine(block, Fit::Gaps);
        self.why_not_reducing(block, among).or_else(is_affine)
    }

    /// The same, but for the order in which the loops around go through its iterators.
    pub(crate) fn why_not_reducing(&self, block: Id, among: &[Id]) -> Option<String> {
        let node = self.tree.as_block(block)?;
        if node.init.is_none() {
            return Some("it has no initial statement".into());
        }
        if !node.iters.iter().all(|iter| self.is_spatial(iter.kind) || self.is_reduce(iter.kind)) {
            return Some("it has an iterator that is neither spatial nor of a reduction".into());
        }
        let reduce: Vec<Expr> = node
            .iters
            .iter()
            .filter(|iter| self.is_reduce(iter.kind))
            .map(|iter| iter.var)
            .collect();
        let mut space = self.space();
        let own = self.allocated(&self.tree.walk(block));
        let accesses = self.accesses(&mut space, block);
        let is_elsewhere = |access: &Access, store: &Access| {
            access.buffer == store.buffer && access.indices != store.indices
        };
        for store in accesses.iter().filter(|access| access.is_store) {
            if accesses.iter().any(|access| is_elsewhere(access, store)) {
                return Some("it accesses several elements of what it writes".into());
            }
        }
        for access in accesses {
            if !access.is_store || own.contains(&access.buffer) {
                continue;
            }
            let varies = match &access.indices {
                None => true,
                Some(indices) => {
                    indices.iter().any(|index| reduce.iter().any(|&var| space.mentions(index, var)))
                }
            };
            if varies {
                return Some("an iterator of the reduction says where it writes".into());
            }
        }
        self.why_not_dominant(block, among)
    }

    fn why_not_dominant(&self, block: Id, among: &[Id]) -> Option<String> {
        let written = self.buffers(block, true);
        for &other in among.iter().filter(|&&other| other != block) {
            let shared =
                self.buffers(other, true).into_iter().find(|buffer| written.contains(buffer));
            if let Some(shared) = shared
                && !self.are_apart((block, true), (other, true), shared)
            {
                let (name, buffer) = (self.block_name(other), self.var_name(shared));
                return Some(format!("block \"{name}\" writes `{buffer}` as well"));
            }
        }
        None
    }

    /// Whether two blocks touch different elements of a buffer, each where it writes or where it reads: along some axis one ends before
    /// the other begins, or they are apart in some [view](are_apart_in_views).
    fn are_apart(&self, a: (Id, bool), b: (Id, bool), buffer: Expr) -> bool {
        let mut space = self.space();
        let [a, b] = [a, b].map(|(id, is_store)| {
            let mut touched = self.bound_accesses(&mut space, id);
            touched.retain(|access| access.is_store == is_store && access.buffer == buffer);
            touched
        });
        let [of_a, of_b] = [&a, &b].map(|touched| {
            let touched: Vec<&Access> = touched.iter().collect();
            self.region(&mut space, buffer, &touched, &|_| false)
        });
        let are_apart = of_a.iter().zip(&of_b).any(|(a, b)| {
            let ends = [a.min.add(&a.extent), b.min.add(&b.extent)];
            space.is_natural(&b.min.sub(&ends[0])) || space.is_natural(&a.min.sub(&ends[1]))
        });
        let whole = self.whole(&mut space, buffer);
        are_apart || are_apart_in_views(&mut space, &whole, a, b)
    }

    /// The loops around a block within its scope, as atoms.
    pub(crate) fn loop_atoms(&self, space: &mut Space, block: Id) -> Vec<AtomId> {
        let loops = self.tree.loops_around(block);
        let vars = loops.iter().filter_map(|&each| self.tree.as_for(each)).map(|each| each.var);
        vars.filter_map(|var| space.node(var).as_atom()).collect()
    }

    /// The variables of a loop or a block, and of those around it, as atoms: they stay what they are while its body runs.
    pub(crate) fn outside(&self, space: &Space, around: Id) -> Vec<AtomId> {
        let mut atoms = Vec::new();
        for id in std::iter::once(around).chain(self.tree.ancestors(around)) {
            let vars: Vec<Expr> = match self.tree.get(id) {
                Node::For(each) => vec![each.var],
                Node::Block(block) => block.iters.iter().map(|iter| iter.var).collect(),
                _ => Vec::new(),
            };
            atoms.extend(vars.into_iter().filter_map(|var| space.find(var)));
        }
        atoms
    }

    /// What the iterators of a block are bound to.
    pub(crate) fn bindings(&self, space: &mut Space, block: Id) -> Vec<Sum> {
        let iters = self.tree.as_block(block).map_or(&[][..], |block| &block.iters);
        iters.iter().map(|iter| space.read(self.body(), iter.binding)).collect()
    }

    /// Why the bindings of a block are not affine, with pieces that fit so.
    pub(crate) fn why_not_affine(&self, block: Id, fit: Fit) -> Option<String> {
        let mut space = self.space();
        let vars = self.loop_atoms(&mut space, block);
        let bindings = self.bindings(&mut space, block);
        if space.coverage_with(&bindings, &vars, fit).is_none() {
            return Some("its bindings are not affine in the loops around it".into());
        }
        let predicate = self.tree.as_block(block)?.predicate?;
        match self.is_domain_predicate(&mut space, block, predicate) {
            true => None,
            false => Some("its predicate couples loops in a way that is not affine".into()),
        }
    }

    /// Whether in one step of a loop the loops inside of it take each value of a block's iterators once.
    pub(crate) fn takes_each_once(&self, space: &mut Space, block: Id, at: Id) -> bool {
        let outside = self.outside(space, at);
        let mut vars = self.loop_atoms(space, block);
        vars.retain(|var| !outside.contains(var));
        let moved = |space: &Space, binding: &Sum| {
            let terms =
                binding.terms().iter().map(|(atoms, factor)| Sum::product(atoms.clone(), *factor));
            let is_moved = |term: &Sum| space.nodes_of(term).iter().any(|atom| vars.contains(atom));
            terms.filter(is_moved).fold(Sum::default(), |sum, term| sum.add(&term))
        };
        let bindings = self.bindings(space, block);
        let parts: Vec<Sum> = bindings.iter().map(|binding| moved(space, binding)).collect();
        space.coverage(&parts, &vars).is_some()
    }

    /// Whether a predicate says no more than that iterators stay in their domains.
    pub(crate) fn is_domain_predicate(
        &self,
        space: &mut Space,
        block: Id,
        predicate: Expr,
    ) -> bool {
        self.conjuncts(predicate).into_iter().all(|part| {
            self.slack(space, part).is_some_and(|slack| self.is_domain_bound(space, block, &slack))
        })
    }

    /// Whether `slack >= 0` follows from an iterator being in its domain.
    pub(crate) fn is_domain_bound(&self, space: &mut Space, block: Id, slack: &Sum) -> bool {
        let Some(node) = self.tree.as_block(block) else { return false };
        let body = self.body();
        node.iters.iter().any(|iter| {
            let [binding, min, extent] =
                [iter.binding, iter.min, iter.extent].map(|expr| space.read(body, expr));
            let below = min.add(&extent).add_int(-1).sub(&binding);
            let above = binding.sub(&min);
            space.is_natural(&slack.sub(&below)) || space.is_natural(&slack.sub(&above))
        })
    }

    /// Refuses a statement below which there is anything that is not in a block.
    pub(crate) fn only_blocks(&self, root: Id) -> Result<()> {
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            match self.tree.get(id) {
                Node::Block(_) => {}
                Node::Store { .. } | Node::Evaluate(_) | Node::Let { .. } => {
                    return refuse(
                        id,
                        "this statement is in no block, so nobody says what may be done with it",
                    );
                }
                Node::If { .. } => {
                    return refuse(
                        id,
                        "this condition is around blocks; a predicate of the block says it",
                    );
                }
                _ => stack.extend(self.tree.children(id)),
            }
        }
        Ok(())
    }

    /// Refuses a scope in which a block may read what is written after it, or in part only.
    pub(crate) fn stage_pipeline(&self, scope: Option<Id>) -> Result<()> {
        let root = match scope {
            Some(scope) => self.tree.as_block(scope).map_or(scope, |block| block.body),
            None => self.tree.root,
        };
        self.only_blocks(root)?;
        let blocks = self.tree.blocks_of(scope);
        for (at, &block) in blocks.iter().enumerate() {
            let written = self.buffers(block, true);
            for &earlier in &blocks[..at] {
                let read = self.buffers(earlier, false);
                let mut both = written.iter().filter(|buffer| read.contains(buffer));
                let met = both.find(|&&buffer| self.meet(block, earlier, buffer, &blocks));
                if let Some(&buffer) = met {
                    let (name, buffer) = (self.block_name(earlier), self.var_name(buffer));
                    return refuse(
                        block,
                        format!("it writes `{buffer}`, which block \"{name}\" reads before"),
                    );
                }
            }
        }
        Ok(())
    }

    /// The one block that is directly inside a loop nest, when there is nothing else.
    pub(crate) fn only_block(&self, root: Id) -> Option<Id> {
        match self.tree.blocks_below(root).as_slice() {
            &[block] => Some(block),
            _ => None,
        }
    }
}

impl Schedule {
    /// Whether a block updates elements in place, each instance of its spatial iterators its own: a reduction whose initial
    /// statement is a block of its own.
    pub(crate) fn is_update(&self, block: Id, among: &[Id]) -> bool {
        let Some(node) = self.tree.as_block(block) else { return false };
        let is_known = |kind| self.is_spatial(kind) || self.is_reduce(kind);
        if !node.iters.iter().all(|iter| is_known(iter.kind))
            || self.why_not_affine(block, Fit::Gaps).is_some()
        {
            return false;
        }
        let written = self.buffers(block, true);
        let mut space = self.space();
        let accesses = self.accesses(&mut space, block);
        let spatial: Vec<Expr> = node
            .iters
            .iter()
            .filter(|iter| self.is_spatial(iter.kind))
            .map(|iter| iter.var)
            .collect();
        written.iter().all(|&buffer| {
            let own: Vec<&Access> =
                accesses.iter().filter(|access| access.buffer == buffer).collect();
            let indices: Vec<_> = own.iter().map(|access| access.indices.as_ref()).collect();
            let is_one = indices.windows(2).all(|pair| pair[0] == pair[1]);
            let Some(Some(first)) = indices.first() else { return false };
            // Each spatial iterator of more than one value says where it writes, or all of them together do.
            let atoms: Vec<_> = spatial.iter().filter_map(|&var| space.find(var)).collect();
            let is_alone = |&atom: &AtomId| {
                let extent = space.range(atom).and_then(|range| range.extent.value());
                extent == Some(1) || first.iter().any(|index| index.as_atom() == Some(atom))
            };
            let is_own = atoms.len() == spatial.len()
                && (atoms.iter().all(is_alone) || is_injective(&mut space, first, &atoms));
            let others = among.iter().filter(|&&other| other != block);
            is_one
                && is_own
                && others.clone().all(|&other| {
                    !self.buffers(other, false).contains(&buffer)
                        || !self.buffers(other, true).contains(&buffer)
                        || self.are_apart((block, true), (other, true), buffer)
                })
        })
    }
}

/// Whether elements of two lists have indices that leave other remainders along some axis, as `68 * g + i` does for `i` in 0..54 and in
/// 54..68, or lie apart along several axes taken together, as `f // 14, f % 14` does for parts of `f`.
fn are_apart_in_views(space: &mut Space, whole: &[Range], a: Vec<Access>, b: Vec<Access>) -> bool {
    let mut all_views = |touched: Vec<Access>| -> Option<Vec<Vec<Sum>>> {
        touched.into_iter().map(|access| views(space, whole, access.indices?)).collect()
    };
    let (Some(a), Some(b)) = (all_views(a), all_views(b)) else { return false };
    (0..2 * whole.len()).any(|view| {
        let [a, b] = [&a, &b].map(|all| all.iter().map(|it| &it[view]).collect::<Vec<_>>());
        are_in_order(space, &a, &b)
            || are_in_order(space, &b, &a)
            || differ_by_remainders(space, &a, &b)
    })
}

/// The indices of an element along each axis, and along each axis with those inside of it taken together.
fn views(space: &mut Space, whole: &[Range], indices: Vec<Sum>) -> Option<Vec<Sum>> {
    let mut views = indices.clone();
    for first in 0..whole.len() {
        let mut place = Sum::default();
        for (index, axis) in indices.iter().zip(whole).skip(first) {
            place = place.mul(&axis.extent)?.add(index);
        }
        views.push(space.rejoin(place));
    }
    Some(views)
}

/// Whether all of one list of indices are below all of another.
fn are_in_order(space: &Space, low: &[&Sum], high: &[&Sum]) -> bool {
    let is_below = |low: &Sum, high: &Sum| match (space.highest(low), space.lowest(high)) {
        (Some(last), Some(first)) => space.is_natural(&first.sub(&last).add_int(-1)),
        _ => false,
    };
    low.iter().all(|low| high.iter().all(|high| is_below(low, high)))
}

/// Whether two lists of indices leave remainders of some number in ranges that are apart.
fn differ_by_remainders(space: &mut Space, a: &[&Sum], b: &[&Sum]) -> bool {
    let terms = a.iter().chain(b).flat_map(|index| index.terms());
    let mut moduli: Vec<i64> = terms.map(|(_, scale)| scale.abs()).filter(|&it| it > 1).collect();
    moduli.sort_unstable();
    moduli.dedup();
    moduli.into_iter().any(|modulus| {
        let mut remainders = |indices: &[&Sum]| -> Vec<Sum> {
            indices.iter().map(|index| space.modulo(index, &Sum::int(modulus))).collect()
        };
        let (a, b) = (remainders(a), remainders(b));
        let [a, b] = [&a, &b].map(|all| all.iter().collect::<Vec<_>>());
        are_in_order(space, &a, &b) || are_in_order(space, &b, &a)
    })
}
