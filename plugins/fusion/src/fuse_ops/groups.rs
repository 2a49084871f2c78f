//! Which nodes join which.
//!
//! Two rounds over the nodes in order; each node may join its post-dominator with all nodes between.
//!
//! 1. A heavy program or a reduction takes what follows it element by element, when all that lies between
//!    repeats elements at most: a bias, a residual, an activation. Element-wise work joins what follows it
//!    unless that is heavy: a heavy program reads each element many times, in its innermost loop.
//! 2. Index maps (transposes, slices, concatenations) join where everything up to their post-dominator is at
//!    most an index map. They wait for round one so that element-wise work goes to heavy programs first.
//!
//! A group has at most one heavy program or reduction: once it has one, nothing takes it for a follower.

use tenon_plugin_api::pass::OpPattern;

use super::dominators::PostDominators;
use super::graph::Graph;

/// A partition of the nodes.
pub(super) struct Groups {
    /// A member nearer to the one that stands for the group; itself for that one.
    up: Vec<u32>,
    /// Of the member that stands for a group: its worst pattern that counts, and its size.
    pattern: Vec<OpPattern>,
    size: Vec<u32>,
    has_merged: bool,
}

impl Groups {
    pub(super) fn of(graph: &Graph, tree: &PostDominators, max_size: usize) -> Self {
        let mut groups = Self {
            up: (0..graph.nodes.len() as u32).collect(),
            pattern: graph.nodes.iter().map(|node| node.pattern).collect(),
            size: vec![1; graph.nodes.len()],
            has_merged: false,
        };
        let mut search = Search {
            graph,
            seen: vec![0; graph.nodes.len()],
            round: 0,
            max_size,
            between: Vec::new(),
            roots: Vec::new(),
        };
        for is_second in [false, true] {
            for node in 0..graph.nodes.len() as u32 {
                let Some((sink, edge)) = tree.parent(node) else { continue };
                if groups.find(node) == groups.find(sink) {
                    continue;
                }
                let own = groups.pattern[node as usize];
                if !may_start(own, edge, is_second) {
                    continue;
                }
                let may_pass = |groups: &mut Groups, other: u32| {
                    let group = groups.find(other);
                    may_take(own, groups.pattern[group as usize], other == sink)
                };
                if search.may_join(node, sink, &mut groups, may_pass) {
                    groups.merge(node, &search.between, sink);
                }
            }
        }
        groups
    }

    /// Whether every node stands alone.
    pub(super) fn is_trivial(&self) -> bool {
        !self.has_merged
    }

    /// Whether a node has a group of its own.
    pub(super) fn is_alone(&mut self, node: u32) -> bool {
        let root = self.find(node);
        self.size[root as usize] == 1
    }

    /// The number of members of the group that a node stands for.
    pub(super) fn size(&self, root: u32) -> usize {
        self.size[root as usize] as usize
    }

    /// The member that stands for the group of a node: the one that all others lead to.
    pub(super) fn find(&mut self, node: u32) -> u32 {
        let mut node = node;
        while self.up[node as usize] != node {
            let up = self.up[node as usize];
            self.up[node as usize] = self.up[up as usize];
            node = up;
        }
        node
    }

    fn merge(&mut self, node: u32, between: &[u32], sink: u32) {
        self.has_merged = true;
        let into = self.find(sink);
        for &member in between.iter().chain([&node]) {
            let from = self.find(member);
            if from == into {
                continue;
            }
            self.up[from as usize] = into;
            self.size[into as usize] += self.size[from as usize];
            let pattern = self.pattern[from as usize];
            if pattern >= OpPattern::Reduction {
                self.pattern[into as usize] = self.pattern[into as usize].max(pattern);
            }
        }
    }
}

/// Whether a node whose group has pattern `own` may join over paths of which the worst is `edge`.
fn may_start(own: OpPattern, edge: OpPattern, is_second: bool) -> bool {
    match own {
        OpPattern::OutFusable | OpPattern::Reduction => {
            !is_second && edge == OpPattern::Elementwise
        }
        OpPattern::Elementwise | OpPattern::Broadcast => edge <= OpPattern::Reduction,
        OpPattern::Injective => is_second && edge <= OpPattern::Injective,
        OpPattern::Tuple | OpPattern::Opaque => false,
    }
}

/// Whether a group of pattern `own` may take one of pattern `other` that lies on its way.
fn may_take(own: OpPattern, other: OpPattern, is_sink: bool) -> bool {
    match own {
        OpPattern::OutFusable | OpPattern::Reduction => other <= OpPattern::Broadcast,
        OpPattern::Elementwise | OpPattern::Broadcast if is_sink => other <= OpPattern::OutFusable,
        _ => other <= OpPattern::Injective,
    }
}

/// Finds what lies between a node and its post-dominator.
struct Search<'g> {
    graph: &'g Graph,
    /// The round in which each node was seen last.
    seen: Vec<u32>,
    round: u32,
    max_size: usize,
    /// What was found between, and the groups of all.
    between: Vec<u32>,
    roots: Vec<u32>,
}

impl Search<'_> {
    /// Finds the nodes between; false when one may not be taken or the group would become too large.
    fn may_join(
        &mut self,
        node: u32,
        sink: u32,
        groups: &mut Groups,
        may_pass: impl Fn(&mut Groups, u32) -> bool,
    ) -> bool {
        self.round += 1;
        let Self { between, roots, .. } = self;
        between.clear();
        roots.clear();
        roots.push(groups.find(node));
        let mut next = 0;
        let mut from = node;
        let mut reaches_sink = false;
        loop {
            for &(reader, _) in self.graph.readers(from) {
                if std::mem::replace(&mut self.seen[reader as usize], self.round) == self.round {
                    continue;
                }
                // Every node on the way will be a member, so the search ends early where it is vain.
                if !may_pass(groups, reader) || between.len() + 2 > self.max_size {
                    return false;
                }
                roots.push(groups.find(reader));
                match reader == sink {
                    true => reaches_sink = true,
                    false => between.push(reader),
                }
            }
            let Some(&following) = between.get(next) else { break };
            from = following;
            next += 1;
        }
        debug_assert!(reaches_sink, "all paths lead to the post-dominator");
        roots.sort_unstable();
        roots.dedup();
        let size: usize = roots.iter().map(|&root| groups.size[root as usize] as usize).sum();
        size <= self.max_size
    }
}
