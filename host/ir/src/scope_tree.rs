//! Scopes within scopes, and the innermost one that encloses two.

/// A tree that grows from its root, scope 0. Each scope knows its parent and one ancestor further up,
/// placed so that finding a common scope takes logarithmic time however deep the tree is.
pub(crate) struct ScopeTree {
    parent: Vec<u32>,
    jump: Vec<u32>,
    depth: Vec<u32>,
}

impl ScopeTree {
    /// The root.
    pub(crate) const ROOT: u32 = 0;

    pub(crate) fn new() -> Self {
        Self { parent: vec![0], jump: vec![0], depth: vec![0] }
    }

    pub(crate) fn len(&self) -> usize {
        self.parent.len()
    }

    /// A new scope in `parent`.
    pub(crate) fn add(&mut self, parent: u32) -> u32 {
        let near = self.jump[parent as usize];
        let far = self.jump[near as usize];
        let depth = |scope: u32| self.depth[scope as usize];
        let is_even = depth(parent) - depth(near) == depth(near) - depth(far);
        self.jump.push(if is_even { far } else { parent });
        self.depth.push(depth(parent) + 1);
        self.parent.push(parent);
        self.parent.len() as u32 - 1
    }

    /// The innermost scope that encloses both.
    pub(crate) fn common(&self, mut a: u32, mut b: u32) -> u32 {
        if a == b {
            return a;
        }
        if self.depth[a as usize] < self.depth[b as usize] {
            std::mem::swap(&mut a, &mut b);
        }
        let target = self.depth[b as usize];
        while self.depth[a as usize] > target {
            let jump = self.jump[a as usize];
            let is_short = self.depth[jump as usize] >= target;
            a = if is_short { jump } else { self.parent[a as usize] };
        }
        while a != b {
            // At equal depth both jump equally far.
            let (jump_a, jump_b) = (self.jump[a as usize], self.jump[b as usize]);
            (a, b) = match jump_a == jump_b {
                true => (self.parent[a as usize], self.parent[b as usize]),
                false => (jump_a, jump_b),
            };
        }
        a
    }
}

#[cfg(test)]
mod tests {
    use super::ScopeTree;

    #[test]
    fn common_scopes_are_those_found_step_by_step() {
        let size = if cfg!(miri) { 100 } else { 2000 };
        let mut tree = ScopeTree::new();
        for child in 1..size {
            // A deep trunk with branches.
            tree.add(if child % 3 == 0 { child / 2 } else { child - 1 });
        }
        let ancestors = |mut scope: u32| {
            let mut all = vec![scope];
            while scope != 0 {
                scope = tree.parent[scope as usize];
                all.push(scope);
            }
            all
        };
        let pairs = (0..size).step_by(37).flat_map(|a| (0..size).step_by(41).map(move |b| (a, b)));
        for (a, b) in pairs {
            let of_b = ancestors(b);
            let expected = ancestors(a).into_iter().find(|scope| of_b.contains(scope));
            assert_eq!(Some(tree.common(a, b)), expected);
        }
    }
}
