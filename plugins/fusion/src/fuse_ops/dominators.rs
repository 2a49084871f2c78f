//! Post-dominators: for each node, the first node that all paths from it lead to.
//!
//! Readers come after what they read, so the nodes are taken from the last to the first, and the
//! post-dominator of a node is the common ancestor of its readers in the tree made so far. Each node also
//! points at an ancestor further up (the skew-binary jump pointers of Myers), which makes finding a common
//! ancestor logarithmic, whatever the shape of the tree.

use tenon_plugin_api::pass::OpPattern;

use super::graph::Graph;

pub(super) struct PostDominators {
    nodes: Vec<TreeNode>,
}

#[derive(Clone, Copy)]
struct TreeNode {
    depth: u32,
    parent: u32,
    /// The worst pattern on any path to the parent.
    pattern: OpPattern,
    jump: u32,
    /// The worst pattern on the way to the jump's target.
    jump_pattern: OpPattern,
}

impl PostDominators {
    pub(super) fn of(graph: &Graph) -> Self {
        // The last tree node is the outside.
        let outside = graph.nodes.len() as u32;
        let root = TreeNode {
            depth: 0,
            parent: outside,
            pattern: OpPattern::Opaque,
            jump: outside,
            jump_pattern: OpPattern::Opaque,
        };
        let mut tree = Self { nodes: vec![root; graph.nodes.len() + 1] };
        for node in (0..outside).rev() {
            let (mut parent, mut pattern) = match graph.readers(node).first() {
                Some(&first) if !graph.nodes[node as usize].is_seen_outside => first,
                _ => (outside, OpPattern::Opaque),
            };
            for &(reader, edge) in graph.readers(node) {
                let (ancestor, worst) = tree.common_ancestor(parent, reader);
                parent = ancestor;
                pattern = pattern.max(worst).max(edge);
            }
            tree.insert(node, parent, pattern);
        }
        tree
    }

    /// The post-dominator of a node and the worst pattern on any path to it; `None` when paths only meet
    /// outside.
    pub(super) fn parent(&self, node: u32) -> Option<(u32, OpPattern)> {
        let TreeNode { parent, pattern, .. } = self.nodes[node as usize];
        (parent as usize + 1 < self.nodes.len()).then_some((parent, pattern))
    }

    fn insert(&mut self, node: u32, parent: u32, pattern: OpPattern) {
        let up = self.nodes[parent as usize];
        let far = self.nodes[up.jump as usize];
        let near_gap = up.depth - far.depth;
        let far_gap = far.depth - self.nodes[far.jump as usize].depth;
        let (jump, jump_pattern) = match near_gap == far_gap {
            true => (far.jump, pattern.max(up.jump_pattern).max(far.jump_pattern)),
            false => (parent, pattern),
        };
        self.nodes[node as usize] =
            TreeNode { depth: up.depth + 1, parent, pattern, jump, jump_pattern };
    }

    /// The nearest common ancestor of two nodes, and the worst pattern on the way from both to it.
    fn common_ancestor(&self, mut a: u32, mut b: u32) -> (u32, OpPattern) {
        let mut worst = OpPattern::Elementwise;
        while a != b {
            let (mut deep, mut other) = (self.nodes[a as usize], self.nodes[b as usize]);
            if deep.depth < other.depth {
                b = a;
                (deep, other) = (other, deep);
            }
            let is_level = deep.depth == other.depth;
            let may_jump = match is_level {
                true => deep.jump != other.jump,
                false => self.nodes[deep.jump as usize].depth >= other.depth,
            };
            let step = |node: TreeNode| match may_jump {
                true => (node.jump, node.jump_pattern),
                false => (node.parent, node.pattern),
            };
            let (up, pattern) = step(deep);
            a = up;
            worst = worst.max(pattern);
            if is_level {
                let (up, pattern) = step(other);
                b = up;
                worst = worst.max(pattern);
            }
        }
        (a, worst)
    }
}
