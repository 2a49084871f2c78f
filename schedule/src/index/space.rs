//! The atoms of index arithmetic, and what is known of them.

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{Dim, Expr};

use super::Sum;

/// An atom of a [`Space`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct AtomId(u32);

/// What an atom is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Atom {
    /// A variable, or a node that is not understood.
    Node(Expr),
    /// A dimension that is not understood: mostly a symbol, which is at least 1.
    Dim(Dim),
    /// A quotient that is rounded down.
    Div(Sum, Sum),
    /// What such a quotient leaves.
    Mod(Sum, Sum),
    Min(Sum, Sum),
    Max(Sum, Sum),
}

/// The values that a variable goes through: `extent` of them, from `min` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) min: Sum,
    pub(crate) extent: Sum,
}

/// Atoms by what they are, and the ranges of variables.
#[derive(Clone, Default)]
pub(crate) struct Space {
    atoms: Vec<Atom>,
    ids: HashMap<Atom, AtomId>,
    ranges: HashMap<AtomId, Range>,
}

impl Space {
    pub(crate) fn atom(&self, id: AtomId) -> &Atom {
        &self.atoms[id.0 as usize]
    }

    pub(crate) fn intern(&mut self, atom: Atom) -> AtomId {
        if let Some(&id) = self.ids.get(&atom) {
            return id;
        }
        let id = AtomId(self.atoms.len() as u32);
        self.atoms.push(atom.clone());
        self.ids.insert(atom, id);
        id
    }

    pub(super) fn known(&self, atom: &Atom) -> Option<AtomId> {
        self.ids.get(atom).copied()
    }

    /// A node as a sum of one atom.
    pub(crate) fn node(&mut self, node: Expr) -> Sum {
        Sum::atom(self.intern(Atom::Node(node)))
    }

    /// The atom of a node, when it was met.
    pub(crate) fn find(&self, node: Expr) -> Option<AtomId> {
        self.ids.get(&Atom::Node(node)).copied()
    }

    /// The atoms that are nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (AtomId, Expr)> {
        self.atoms.iter().zip(0..).filter_map(|(atom, number)| match atom {
            Atom::Node(node) => Some((AtomId(number), *node)),
            _ => None,
        })
    }

    pub(crate) fn set_range(&mut self, node: Expr, range: Range) {
        let id = self.intern(Atom::Node(node));
        self.ranges.insert(id, range);
    }

    pub(crate) fn range(&self, id: AtomId) -> Option<&Range> {
        self.ranges.get(&id)
    }

    /// Whether a sum holds `node`, within quotients too.
    pub(crate) fn mentions(&self, sum: &Sum, node: Expr) -> bool {
        self.find(node).is_some_and(|id| self.nodes_of(sum).contains(&id))
    }

    /// The atoms that are nodes, within quotients too.
    pub(crate) fn nodes_of(&self, sum: &Sum) -> Vec<AtomId> {
        let mut nodes = Vec::new();
        let mut pending: Vec<AtomId> = sum.atoms().collect();
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            match self.atom(id) {
                Atom::Node(_) => nodes.push(id),
                Atom::Dim(_) => {}
                Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    pending.extend(a.atoms().chain(b.atoms()));
                }
            }
        }
        nodes
    }

    /// A sum with others in the place of atoms.
    pub(crate) fn substitute(&mut self, sum: &Sum, pairs: &HashMap<AtomId, Sum>) -> Sum {
        if pairs.is_empty() || !self.nodes_of(sum).iter().any(|node| pairs.contains_key(node)) {
            return sum.clone();
        }
        let mut total = Sum::default();
        for (atoms, coefficient) in sum.terms() {
            let mut product = Sum::int(*coefficient);
            for &atom in atoms {
                let value = self.substitute_atom(atom, pairs);
                product = match product.mul(&value) {
                    Some(product) => product,
                    None => return sum.clone(),
                };
            }
            total = total.add(&product);
        }
        self.rejoin(total)
    }

    fn substitute_atom(&mut self, atom: AtomId, pairs: &HashMap<AtomId, Sum>) -> Sum {
        if let Some(value) = pairs.get(&atom) {
            return value.clone();
        }
        let pair = |space: &mut Self, a: Sum, b: Sum| {
            [space.substitute(&a, pairs), space.substitute(&b, pairs)]
        };
        match self.atom(atom).clone() {
            Atom::Node(_) | Atom::Dim(_) => Sum::atom(atom),
            Atom::Div(a, b) => {
                let [a, b] = pair(self, a, b);
                self.div(&a, &b)
            }
            Atom::Mod(a, b) => {
                let [a, b] = pair(self, a, b);
                self.modulo(&a, &b)
            }
            Atom::Min(a, b) => {
                let [a, b] = pair(self, a, b);
                self.min(&a, &b)
            }
            Atom::Max(a, b) => {
                let [a, b] = pair(self, a, b);
                self.max(&a, &b)
            }
        }
    }

    /// Whether it is made of numbers and symbols alone.
    pub(crate) fn is_symbolic(&self, sum: &Sum) -> bool {
        self.nodes_of(sum).is_empty()
    }
}
