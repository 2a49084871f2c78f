//! What statements read and write.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use tenon_plugin_api::ir::{Build, BuildPrim, DType, Expr, Kind, NodeSpec, View};
use tenon_plugin_api::rule::TileElement;

use crate::exprs::loads;
use crate::index::{AtomId, Range, Space, Sum};
use crate::schedule::Schedule;
use crate::tree::{Id, Node};

/// An element that a statement reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) buffer: Expr,
    pub(crate) is_store: bool,
    /// In terms of the loops, and of the iterators of what is around. `None` where it is a vector, or one index for all axes.
    pub(crate) indices: Option<Vec<Sum>>,
    pub(crate) stmt: Id,
}

impl Schedule {
    /// What a statement and those inside it access. The iterators of blocks inside are told by what they are bound to; those of
    /// `root` itself stay.
    pub(crate) fn accesses(&self, space: &mut Space, root: Id) -> Vec<Access> {
        self.accesses_of(space, root, Some(root))
    }

    /// The same with the iterators of every block told by what they are bound to.
    pub(crate) fn bound_accesses(&self, space: &mut Space, root: Id) -> Vec<Access> {
        self.accesses_of(space, root, None)
    }

    fn accesses_of(&self, space: &mut Space, root: Id, kept: Option<Id>) -> Vec<Access> {
        let mut accesses = Vec::new();
        let mut bound: HashMap<AtomId, Sum> = HashMap::default();
        for id in self.tree.walk(root) {
            match self.tree.get(id) {
                Node::Block(block) => {
                    for iter in block.iters.iter().filter(|_| Some(id) != kept) {
                        let binding = space.read(self.body(), iter.binding);
                        let binding = space.substitute(&binding, &bound);
                        if let Some(var) = space.node(iter.var).as_atom() {
                            bound.insert(var, binding);
                        }
                    }
                }
                Node::Let { var, value }
                    if self.body().scalar_ty(*value) == Some((DType::I64, 1))
                        && loads(&self.rw, *value).is_empty() =>
                {
                    let value = space.read(self.body(), *value);
                    let value = space.substitute(&value, &bound);
                    if let Some(var) = space.node(*var).as_atom().filter(|_| !space.is_deep(&value))
                    {
                        bound.insert(var, value);
                    }
                }
                Node::Store { buffer, indices, .. } => {
                    let indices = self.indices_of(space, &bound, *buffer, indices);
                    accesses.push(Access { buffer: *buffer, is_store: true, indices, stmt: id });
                }
                _ => {}
            }
            let values = self.tree.get(id).scalars();
            for load in values.into_iter().flat_map(|value| loads(&self.rw, value)) {
                let View::Load { buffer, indices } = self.view(load) else { continue };
                let indices = indices.to_vec();
                let indices = self.indices_of(space, &bound, buffer, &indices);
                accesses.push(Access { buffer, is_store: false, indices, stmt: id });
            }
        }
        accesses
    }

    /// The buffers of what a statement itself reads, or writes, without asking where.
    pub(crate) fn each_buffer(&self, id: Id, is_store: bool, mut found: impl FnMut(Expr)) {
        let node = self.tree.get(id);
        if is_store {
            if let Node::Store { buffer, .. } = node {
                found(*buffer);
            }
            return;
        }
        for value in node.scalars() {
            for load in loads(&self.rw, value) {
                if let View::Load { buffer, .. } = self.view(load) {
                    found(buffer);
                }
            }
        }
    }

    /// An element that a block reads or writes, told by what the iterators of the block are bound to.
    pub(crate) fn access_of(&self, space: &mut Space, block: Id, element: TileElement) -> Access {
        let iters = self.tree.as_block(block).map_or(&[][..], |block| &block.iters);
        let mut bound: HashMap<AtomId, Sum> = HashMap::default();
        for iter in iters {
            let binding = space.read(self.body(), iter.binding);
            bound.extend(space.node(iter.var).as_atom().map(|var| (var, binding)));
        }
        let TileElement { buffer, indices } = element;
        let indices = self.indices_of(space, &bound, buffer, &indices);
        Access { buffer, is_store: false, indices, stmt: block }
    }

    fn indices_of(
        &self,
        space: &mut Space,
        bound: &HashMap<AtomId, Sum>,
        buffer: Expr,
        indices: &[Expr],
    ) -> Option<Vec<Sum>> {
        let is_index = |&index: &Expr| self.body().scalar_ty(index) == Some((DType::I64, 1));
        if indices.len() != self.shape(buffer).len() || !indices.iter().all(is_index) {
            return None;
        }
        let read = |&index: &Expr| {
            let sum = space.read(self.body(), index);
            space.substitute(&sum, bound)
        };
        Some(indices.iter().map(read).collect())
    }

    /// The extents of a buffer.
    pub(crate) fn shape(&self, buffer: Expr) -> Vec<tenon_plugin_api::ir::Dim> {
        let body = self.body();
        let tensor = body.ty(buffer).and_then(|ty| body.terms().tensor(ty));
        tensor.map_or(Vec::new(), |(_, dims)| dims.to_vec())
    }

    /// The whole of a buffer.
    pub(crate) fn whole(&self, space: &mut Space, buffer: Expr) -> Vec<Range> {
        let shape = self.shape(buffer);
        shape
            .into_iter()
            .map(|dim| {
                let extent = space.read_dim(self.body().terms(), dim);
                Range { min: Sum::default(), extent }
            })
            .collect()
    }

    /// The smallest part of a buffer that is known to hold all these accesses to it, while `is_fixed` stays what it is.
    pub(crate) fn region(
        &self,
        space: &mut Space,
        buffer: Expr,
        accesses: &[&Access],
        is_fixed: &dyn Fn(AtomId) -> bool,
    ) -> Vec<Range> {
        let whole = self.whole(space, buffer);
        let mut region: Option<Vec<[Sum; 2]>> = None;
        for access in accesses {
            let Some(indices) = &access.indices else { return whole };
            let own: Option<Vec<[Sum; 2]>> =
                indices.iter().map(|index| space.extremes(index, is_fixed)).collect();
            // Axis by axis: one that is not known is the whole axis.
            let own: Vec<[Sum; 2]> = match own {
                Some(own) => own,
                None => indices
                    .iter()
                    .zip(&whole)
                    .map(|(index, axis)| {
                        space.extremes(index, is_fixed).unwrap_or_else(|| ends(axis))
                    })
                    .collect(),
            };
            region = Some(match region {
                None => own,
                Some(region) => region
                    .into_iter()
                    .zip(own)
                    .zip(&whole)
                    .map(|((a, b), axis)| hull(space, a, b).unwrap_or_else(|| ends(axis)))
                    .collect(),
            });
        }
        let Some(region) = region else { return whole };
        region
            .into_iter()
            .map(|[low, high]| Range { extent: high.sub(&low).add_int(1), min: low })
            .collect()
    }

    /// The part of a buffer that blocks access, within the buffer: a predicate may keep them from what their loops reach.
    pub(crate) fn region_inside(
        &self,
        space: &mut Space,
        buffer: Expr,
        accesses: &[&Access],
    ) -> Vec<Range> {
        let whole = self.whole(space, buffer);
        let region = self.region(space, buffer, accesses, &|_| false);
        let axis = |(own, whole): (Range, Range)| {
            let left = whole.extent.sub(&own.min.add(&own.extent));
            let is_inside = space.is_natural(&own.min) && space.is_natural(&left);
            if is_inside { own } else { whole }
        };
        region.into_iter().zip(whole).map(axis).collect()
    }

    /// The regions that a block reads and writes, in terms of its iterators, as nodes.
    pub(crate) fn regions(&mut self, id: Id) -> (Vec<Expr>, Vec<Expr>) {
        let mut space = self.space();
        let accesses = self.accesses(&mut space, id);
        let inside: Vec<Id> = self.tree.walk(id);
        let own = self.allocated(&inside);
        let has_init = self.tree.as_block(id).is_some_and(|block| block.init.is_some());
        let in_init: Vec<Id> = match self.tree.as_block(id).and_then(|block| block.init) {
            Some(init) => self.tree.walk(init),
            None => Vec::new(),
        };
        let iters: Vec<Expr> = self
            .tree
            .as_block(id)
            .map_or(Vec::new(), |block| block.iters.iter().map(|iter| iter.var).collect());
        let written_here = accesses.iter().filter(|access| access.is_store).map(|it| it.buffer);
        let changing: Vec<Expr> = own.iter().copied().chain(written_here).collect();
        let moving = self.moving(&space, &inside, &iters, &changing);
        let is_fixed = |atom: AtomId| !moving.contains(&atom);
        let mut written: Vec<Expr> = Vec::new();
        let mut read: Vec<Expr> = Vec::new();
        for access in &accesses {
            let list = if access.is_store { &mut written } else { &mut read };
            // What bindings and predicate read is read outside.
            let is_outside = access.stmt == id;
            if !own.contains(&access.buffer) && !list.contains(&access.buffer) && !is_outside {
                list.push(access.buffer);
            }
        }
        read.retain(|buffer| !(has_init && written.contains(buffer)));
        let mut of = |schedule: &mut Self, buffers: &[Expr], is_store: bool| -> Vec<Expr> {
            buffers
                .iter()
                .map(|&buffer| {
                    let own: Vec<&Access> = accesses
                        .iter()
                        .filter(|access| (access.buffer, access.is_store) == (buffer, is_store))
                        .filter(|access| is_store || !in_init.contains(&access.stmt))
                        .collect();
                    let region = schedule.region(&mut space, buffer, &own, &is_fixed);
                    schedule.region_node(&space, buffer, &region)
                })
                .collect()
        };
        let reads = of(self, &read, false);
        let writes = of(self, &written, true);
        (reads, writes)
    }

    /// What a region does not know: the variables that statements bind, not the iterators of the block itself, elements of
    /// buffers that are `changing`, and what is computed of both.
    fn moving(
        &self,
        space: &Space,
        inside: &[Id],
        iters: &[Expr],
        changing: &[Expr],
    ) -> HashSet<AtomId> {
        // Of a node, whether it is computed of such a variable or buffer.
        let mut moves: HashMap<Expr, bool> = changing.iter().map(|it| (*it, true)).collect();
        for &id in inside {
            match self.tree.get(id) {
                Node::For(each) => moves.extend([(each.var, true)]),
                Node::Block(block) => moves.extend(block.iters.iter().map(|it| (it.var, true))),
                Node::Let { var, .. } => moves.extend([(*var, true)]),
                _ => {}
            }
        }
        moves.extend(iters.iter().map(|var| (*var, false)));
        let mut moving = HashSet::default();
        for (atom, node) in space.nodes() {
            let mut waiting = vec![(node, false)];
            while let Some((expr, is_ready)) = waiting.pop() {
                if moves.contains_key(&expr) {
                    continue;
                }
                let operands = self.body().operands(expr);
                if is_ready {
                    let moved = operands.iter().any(|it| moves.get(&it) == Some(&true));
                    moves.insert(expr, moved);
                } else {
                    waiting.push((expr, true));
                    waiting.extend(operands.iter().map(|operand| (operand, false)));
                }
            }
            if moves[&node] {
                moving.insert(atom);
            }
        }
        moving
    }

    fn region_node(&mut self, space: &Space, buffer: Expr, region: &[Range]) -> Expr {
        let mut operands = vec![buffer];
        for range in region {
            operands.push(space.build(&mut self.rw, &range.min));
            operands.push(space.build(&mut self.rw, &range.extent));
        }
        self.rw.push(NodeSpec::new(Kind::REGION), &operands)
    }

    /// The buffers that statements make.
    pub(crate) fn allocated(&self, stmts: &[Id]) -> Vec<Expr> {
        let made = |&id: &Id| match self.tree.get(id) {
            Node::Alloc(buffer) => Some(*buffer),
            _ => None,
        };
        stmts.iter().filter_map(made).collect()
    }

    /// The buffers that the program makes.
    pub(crate) fn all_allocated(&self) -> Vec<Expr> {
        self.allocated(&self.tree.all())
    }

    /// A literal index.
    pub(crate) fn int(&mut self, value: i64) -> Expr {
        self.rw.index(value)
    }
}

fn ends(range: &Range) -> [Sum; 2] {
    [range.min.clone(), range.min.add(&range.extent).add_int(-1)]
}

/// What holds both, where the bounds can be told apart.
fn hull(space: &Space, a: [Sum; 2], b: [Sum; 2]) -> Option<[Sum; 2]> {
    let lesser = |a: &Sum, b: &Sum| match space.is_natural(&b.sub(a)) {
        true => Some(a.clone()),
        false => space.is_natural(&a.sub(b)).then(|| b.clone()),
    };
    let low = lesser(&a[0], &b[0])?;
    let high = if lesser(&a[1], &b[1])? == a[1] { b[1].clone() } else { a[1].clone() };
    Some([low, high])
}
