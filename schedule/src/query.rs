//! What a rule decides by: how loops move through memory, and how much is computed.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use tenon_plugin_api::ir::{BinaryOp, DType, Expr, Kind, LoopKind, Term, View};

use crate::access::Access;
use crate::index::{Atom, Space, Sum};
use crate::machine::Total;
use crate::refusal::Result;
use crate::schedule::{Block, Loop, Schedule};
use crate::tree::{Id, Node};

/// How far apart the elements are that an access touches in neighbouring steps of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stride {
    /// Whether it writes.
    pub is_store: bool,
    /// Whether it is of a buffer that is written there, as that of the sum that a reduction adds to.
    pub is_written: bool,
    /// The number of elements; none where it is no constant.
    pub elements: Option<i64>,
}

/// What a step of a block computes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Work {
    /// Arithmetic, comparisons, choices and conversions that are not of indices, nor of factors.
    pub operations: usize,
    /// Calls of functions such as `exp`.
    pub functions: usize,
    /// Choices by where an element lies, as those of padding.
    pub choices: usize,
}

impl Schedule {
    /// How each access of the blocks inside a loop moves with it; what is of one step of it alone is left out.
    pub fn strides(&self, each: Loop) -> Vec<Stride> {
        if let Some(known) = self.strides.borrow().get(&each.0) {
            return known.clone();
        }
        let mut space = self.space();
        let accesses = self.bound_accesses(&mut space, each.0);
        let own = self.allocated(&self.tree.walk(each.0));
        let written: Vec<Expr> =
            accesses.iter().filter(|access| access.is_store).map(|access| access.buffer).collect();
        let moved = accesses.iter().filter(|access| !own.contains(&access.buffer));
        let strides: Vec<Stride> = moved
            .map(|access| {
                let factor = self.factor(&mut space, access, each);
                Stride {
                    is_store: access.is_store,
                    is_written: written.contains(&access.buffer),
                    elements: factor.and_then(|factor| factor.value()),
                }
            })
            .collect();
        self.strides.borrow_mut().insert(each.0, strides.clone());
        strides
    }

    /// Whether two loops, the second directly inside the first, go through memory as one loop would: each access moves as far in one
    /// step of the outer loop as in all steps of the inner one.
    pub fn are_one_row(&self, outer: Loop, inner: Loop) -> bool {
        let mut space = self.space();
        let Some(extent) = self.tree.as_for(inner.0).map(|each| each.extent) else { return false };
        let extent = space.read(self.body(), extent);
        if extent.value() == Some(1) || self.extent(outer) == Some(1) {
            return true;
        }
        self.bound_accesses(&mut space, outer.0).iter().all(|access| {
            let far = self.factor(&mut space, access, outer);
            let near = self.factor(&mut space, access, inner);
            far.is_some()
                && far == near.and_then(|near| near.mul(&extent))
                && !self.is_chosen(&space, access)
        })
    }

    /// Whether an index is a choice by iterators, whose quotients in one row each element would have to compute; none that reads what
    /// lies in such a row.
    fn is_chosen(&self, space: &Space, access: &Access) -> bool {
        let body = self.body();
        let by_iterators = |root: Expr| {
            let (mut stack, mut seen) = (vec![root], HashSet::default());
            while let Some(expr) = stack.pop() {
                if body.kind(expr) == Kind::VAR {
                    return true;
                }
                if body.kind(expr) != Kind::LOAD && seen.insert(expr) {
                    stack.extend(body.operands(expr).iter());
                }
            }
            false
        };
        let atoms = access.indices.iter().flatten().flat_map(|index| space.nodes_of(index));
        atoms.into_iter().any(|atom| match *space.atom(atom) {
            Atom::Node(expr) => body.kind(expr) == Kind::SELECT && by_iterators(expr),
            _ => false,
        })
    }

    /// How far an access moves in one step of a loop, in elements.
    pub(crate) fn factor(&self, space: &mut Space, access: &Access, each: Loop) -> Option<Sum> {
        let var = self.tree.as_for(each.0)?.var;
        let whole = self.whole(space, access.buffer);
        let indices = access.indices.as_ref()?;
        let mut place = Sum::default();
        for (index, axis) in indices.iter().zip(&whole) {
            place = place.mul(&axis.extent)?.add(index);
        }
        // Quotient and remainder of what was fused are one again.
        let place = space.rejoin(place);
        let atom = space.node(var).as_atom()?;
        let (factor, rest) = place.linear_in(atom)?;
        let is_hidden = |sum: &Sum| space.holds(sum, atom);
        (!is_hidden(&factor) && !is_hidden(&rest)).then_some(factor)
    }

    /// Whether a block reduces.
    pub fn is_reduction(&self, block: Block) -> bool {
        let iters = self.tree.as_block(block.0).map_or(&[][..], |block| &block.iters);
        iters.iter().any(|iter| !self.is_spatial(iter.kind))
    }

    /// The names of the buffers that a block reads and does not write.
    pub fn reads(&self, block: Block) -> Vec<String> {
        let written = self.buffers(block.0, true);
        let read = self.buffers(block.0, false).into_iter();
        read.filter(|buffer| !written.contains(buffer))
            .map(|buffer| self.var_name(buffer))
            .collect()
    }

    /// The dtypes of what a block reads.
    pub fn dtypes_read(&self, block: Block) -> Vec<DType> {
        self.dtypes(block, false).collect()
    }

    fn dtypes(&self, block: Block, is_store: bool) -> impl Iterator<Item = DType> + use<'_> {
        let body = self.body();
        let buffers = self.buffers(block.0, is_store).into_iter();
        buffers.filter_map(move |buffer| Some(body.terms().tensor(body.ty(buffer)?)?.0))
    }

    /// The name of the buffer that a block writes, where it writes one.
    pub fn written(&self, block: Block) -> Option<String> {
        match self.buffers(block.0, true).as_slice() {
            &[buffer] => Some(self.var_name(buffer)),
            _ => None,
        }
    }

    /// Whether a block has an initial statement.
    pub fn has_init(&self, block: Block) -> bool {
        self.tree.as_block(block.0).is_some_and(|block| block.init.is_some())
    }

    /// Whether a loop moves an iterator of a block that is not spatial.
    pub fn is_reduced(&self, block: Block, each: Loop) -> bool {
        self.reducing(block)(each)
    }

    /// Whether a loop moves an iterator of a block. One that moves none runs all of the block at each of its steps.
    pub fn moves(&self, block: Block, each: Loop) -> bool {
        self.moving_iterators(block, |_| true)(each)
    }

    /// Of these loops those for which [`Schedule::is_reduced`] holds, and the others.
    pub fn reduced_and_kept(&self, block: Block, loops: &[Loop]) -> (Vec<Loop>, Vec<Loop>) {
        let is_reduced = self.reducing(block);
        loops.iter().partition(|&&each| is_reduced(each))
    }

    /// [`Schedule::is_reduced`] of one block, to be asked of many loops.
    pub(crate) fn reducing(&self, block: Block) -> impl Fn(Loop) -> bool + '_ {
        self.moving_iterators(block, |kind| !self.is_spatial(kind))
    }

    /// Whether a loop moves an iterator of a block whose kind is among these.
    fn moving_iterators(
        &self,
        block: Block,
        is_meant: impl Fn(Term) -> bool,
    ) -> impl Fn(Loop) -> bool + '_ {
        let mut space = self.space();
        let iters = self.tree.as_block(block.0).map_or(&[][..], |block| &block.iters);
        let meant = iters.iter().filter(|iter| is_meant(iter.kind));
        let bindings: Vec<Sum> = meant.map(|iter| space.read(self.body(), iter.binding)).collect();
        move |each| {
            let var = self.tree.as_for(each.0).map(|each| each.var);
            var.is_some_and(|var| bindings.iter().any(|binding| space.mentions(binding, var)))
        }
    }

    /// Whether a loop says which elements of what `producer` writes are read inside it.
    pub fn says_what_is_read(&self, each: Loop, producer: Block) -> bool {
        let Some(var) = self.tree.as_for(each.0).map(|each| each.var) else { return false };
        let written = self.buffers(producer.0, true);
        let mut space = self.space();
        let accesses = self.bound_accesses(&mut space, each.0);
        accesses.iter().filter(|access| !access.is_store && written.contains(&access.buffer)).any(
            |access| match &access.indices {
                Some(indices) => indices.iter().any(|index| space.mentions(index, var)),
                None => true,
            },
        )
    }

    /// How often each element of what `producer` writes would be computed if each step of a loop computed what is read in it: 1 where
    /// steps read elements of their own, or nobody can tell.
    pub fn overlap(&self, each: Loop, producer: Block) -> f64 {
        let mut space = self.space();
        let Some(var) = self.tree.as_for(each.0).map(|each| each.var) else { return 1.0 };
        let around = self.tree.ancestors(each.0).filter_map(|id| self.tree.as_for(id));
        let outer: Vec<Expr> = around.map(|each| each.var).chain([var]).collect();
        let fixed: Vec<_> = outer.iter().filter_map(|&var| space.node(var).as_atom()).collect();
        let accesses = self.bound_accesses(&mut space, each.0);
        let Some(var) = space.find(var) else { return 1.0 };
        let mut overlap: f64 = 1.0;
        for buffer in self.buffers(producer.0, true) {
            let is_read = |access: &&Access| !access.is_store && access.buffer == buffer;
            let read: Vec<&Access> = accesses.iter().filter(is_read).collect();
            let region = self.region(&mut space, buffer, &read, &|atom| fixed.contains(&atom));
            let ratios = region.iter().filter_map(|range| {
                let step = range.min.linear_in(var)?.0.value().filter(|&step| step != 0)?;
                Some(range.extent.value()? as f64 / step.abs() as f64)
            });
            overlap = overlap.max(ratios.map(|ratio| ratio.max(1.0)).product());
        }
        overlap
    }

    /// The bits of the widest elements that a block writes.
    pub fn bits(&self, block: Block) -> i64 {
        self.dtypes(block, true).map(|dtype| dtype.bits() as i64).max().unwrap_or(32)
    }

    /// The bits of the narrowest elements that a block reads.
    pub fn bits_read(&self, block: Block) -> i64 {
        self.dtypes(block, false).map(|dtype| dtype.bits() as i64).min().unwrap_or(32)
    }

    /// Whether a block writes what is read outside of the program.
    pub fn writes_result(&self, block: Block) -> bool {
        self.is_output(block.0)
    }

    /// What one step of a block computes. A loop inside of it counts as often as it runs, or once where that is not known.
    pub fn work(&self, block: Block) -> Work {
        let (mut work, mut space) = (Work::default(), Space::default());
        let mut times: HashMap<Id, usize> = HashMap::default();
        // What is around a statement comes before it.
        for id in self.tree.walk(block.0) {
            let around = self.tree.parent(id).filter(|_| id != block.0);
            let mut count = around.and_then(|id| times.get(&id).copied()).unwrap_or(1);
            if let Node::For(each) = self.tree.get(id) {
                let steps = space.read(self.body(), each.extent).value().unwrap_or(1);
                count = count.saturating_mul(usize::try_from(steps).unwrap_or(0));
            }
            times.insert(id, count);
            if let Node::Store { value, .. } | Node::Let { value, .. } = self.tree.get(id) {
                let mut own = Work::default();
                self.count(*value, &mut own);
                work.operations =
                    work.operations.saturating_add(own.operations.saturating_mul(count));
                work.functions = work.functions.saturating_add(own.functions.saturating_mul(count));
                work.choices += own.choices;
            }
        }
        work
    }

    /// What the program computes as a whole; nothing where an extent is not known.
    pub fn total(&self) -> Option<Total> {
        let (mut total, mut space) = (Total::default(), Space::default());
        for id in self.tree.blocks_of(None) {
            let iters = self.tree.as_block(id).map_or(&[][..], |block| &block.iters);
            let extents = iters.iter().map(|iter| space.read(self.body(), iter.extent).value());
            let steps = extents.map(|it| it.map(|it| it as f64)).product::<Option<f64>>()?;
            let mut work = self.work(Block(id));
            if let Some(term) = self.term_unless_zero(Block(id)) {
                // What is added, and its sum: what is asked is asked once for many steps.
                work = Work { operations: 1, ..Work::default() };
                self.count(term, &mut work);
            }
            total.operations += steps * work.operations as f64;
            total.functions += steps * work.functions as f64;
        }
        for &param in &self.params {
            let body = self.body();
            let Some((dtype, dims)) = body.ty(param).and_then(|ty| body.terms().tensor(ty)) else {
                continue;
            };
            let extents = dims.iter().map(|&dim| body.terms().dim_value(dim));
            let elements = extents.map(|it| it.map(|it| it as f64)).product::<Option<f64>>()?;
            total.bytes += elements * dtype.bits() as f64 / 8.0;
        }
        Some(total)
    }

    /// Whether a loop in a block is as long as a value says that is computed or read in the same block, so that it may be of another
    /// length in each of its steps.
    pub fn has_uneven_loops(&self, block: Block) -> bool {
        let inside = self.tree.walk(block.0);
        let own = |id: &Id| match self.tree.get(*id) {
            Node::Let { var, .. } => Some(*var),
            _ => None,
        };
        let own: HashSet<Expr> = inside.iter().filter_map(own).collect();
        let mut seen = HashSet::default();
        let extents = inside.iter().filter_map(|&id| self.tree.as_for(id)).map(|each| each.extent);
        let mut stack: Vec<Expr> = extents.collect();
        while let Some(expr) = stack.pop() {
            if own.contains(&expr) || matches!(self.view(expr), View::Load { .. }) {
                return true;
            }
            if seen.insert(expr) {
                stack.extend(self.body().operands(expr).iter());
            }
        }
        false
    }

    /// Counts what a value is computed by; what is shared counts once, and indices do not, nor do conversions of factors, which belong to
    /// an instruction where that matters. Of a choice by the number of a step, as
    /// between the points of a short convolution, one side is computed.
    fn count(&self, value: Expr, work: &mut Work) {
        let (mut seen, mut stack) = (HashSet::default(), vec![value]);
        while let Some(expr) = stack.pop() {
            if !seen.insert(expr) {
                continue;
            }
            match self.view(expr) {
                View::Load { .. } => continue,
                View::Intrinsic { .. } => work.functions += 1,
                View::Select { cond, then, .. } if self.is_by_number(cond) => {
                    stack.push(then);
                    continue;
                }
                View::Select { cond, .. } => {
                    work.operations += 1;
                    let is_place = |&part: &Expr| self.slack(&mut self.space(), part).is_some();
                    work.choices += usize::from(self.conjuncts(cond).iter().any(is_place));
                }
                View::Binary { op: BinaryOp::Mul, a, b } => {
                    work.operations += 1;
                    stack.extend([a, b].map(|factor| match self.view(factor) {
                        View::Cast { value, .. } => value,
                        _ => factor,
                    }));
                    continue;
                }
                _ if matches!(self.body().kind(expr), Kind::BINARY | Kind::SELECT | Kind::CAST) => {
                    work.operations += 1;
                }
                _ => {}
            }
            stack.extend(self.body().operands(expr).iter());
        }
    }

    /// Whether a condition compares an index with a number.
    fn is_by_number(&self, cond: Expr) -> bool {
        let is_index = |expr: Expr| self.body().scalar_ty(expr) == Some((DType::I64, 1));
        match self.view(cond) {
            View::Binary { op: BinaryOp::Eq, a, b } => {
                is_index(a) && matches!(self.view(b), View::Int(_))
            }
            _ => false,
        }
    }

    /// Whether there are statements that stand in no block.
    pub fn has_loose_statements(&self) -> bool {
        self.only_blocks(self.tree.root).is_err()
    }

    /// The loops around a block that hold nothing else, outermost first.
    pub fn own_loops(&mut self, block: Block) -> Result<Vec<Loop>> {
        let mut loops = self.loops(block)?;
        let mut id = block.0;
        let mut count = 0;
        while let Some(parent) = self.tree.parent(id)
            && self.tree.as_for(parent).is_some()
        {
            (id, count) = (parent, count + 1);
        }
        Ok(loops.split_off(loops.len() - count))
    }

    /// Whether the steps of a loop run one after the other, as those of every loop do at first.
    pub fn is_serial(&self, each: Loop) -> bool {
        self.tree.as_for(each.0).is_some_and(|each| each.kind == LoopKind::Serial)
    }
}
