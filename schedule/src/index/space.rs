//! The atoms of index arithmetic, and what is known of them.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use smallvec::{SmallVec, smallvec};

use tenon_plugin_api::ir::{Dim, Expr};

use super::Sum;
use super::convert::MAX_DEPTH;

/// An atom of a [`Space`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
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

impl Atom {
    /// The atoms of the sums that it is made of.
    fn inner(&self) -> impl Iterator<Item = AtomId> {
        let sums = match self {
            Atom::Node(_) | Atom::Dim(_) => None,
            Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => Some([a, b]),
        };
        sums.into_iter().flatten().flat_map(Sum::atoms)
    }
}

/// The values that a variable goes through: `extent` of them, from `min` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) min: Sum,
    pub(crate) extent: Sum,
}

/// Atoms that are nodes, in order.
pub(crate) type Nodes = SmallVec<[AtomId; 8]>;

/// Of what holds more nodes they are looked for when they are asked for: what is computed from step to step of a long chain holds all that
/// the steps before it hold.
const MOST_NODES: usize = 32;

/// An atom, how many quotients and the like stand within each other in it, the nodes that it holds where these are few, and the values
/// that it goes through.
#[derive(Clone)]
struct Entry {
    atom: Atom,
    depth: u32,
    nodes: Option<Nodes>,
    range: Option<Range>,
}

/// Atoms by what they are, and the ranges of variables.
#[derive(Clone, Default)]
pub(crate) struct Space {
    atoms: Vec<Entry>,
    ids_of_nodes: HashMap<Expr, AtomId>,
    /// Those of all others.
    ids: HashMap<Atom, AtomId>,
}

impl Space {
    pub(crate) fn atom(&self, id: AtomId) -> &Atom {
        &self.entry(id).atom
    }

    fn entry(&self, id: AtomId) -> &Entry {
        &self.atoms[id.0 as usize]
    }

    pub(crate) fn intern(&mut self, atom: Atom) -> AtomId {
        if let Some(id) = self.known(&atom) {
            return id;
        }
        let id = AtomId(self.atoms.len() as u32);
        let nodes = match &atom {
            Atom::Node(_) => Some(smallvec![id]),
            _ => self.few_nodes_among(atom.inner()),
        };
        match &atom {
            Atom::Node(node) => self.ids_of_nodes.insert(*node, id),
            _ => self.ids.insert(atom.clone(), id),
        };
        let depth = atom.inner().map(|inner| self.entry(inner).depth + 1).max().unwrap_or(0);
        self.atoms.push(Entry { atom, depth, nodes, range: None });
        id
    }

    /// Whether as many quotients and the like stand within each other in a sum as one is looked at: what is made of it is not told by it.
    pub(crate) fn is_deep(&self, sum: &Sum) -> bool {
        sum.atoms().any(|atom| self.entry(atom).depth as usize >= MAX_DEPTH)
    }

    pub(super) fn known(&self, atom: &Atom) -> Option<AtomId> {
        match atom {
            Atom::Node(node) => self.find(*node),
            _ => self.ids.get(atom).copied(),
        }
    }

    /// A node as a sum of one atom.
    pub(crate) fn node(&mut self, node: Expr) -> Sum {
        Sum::atom(self.intern(Atom::Node(node)))
    }

    /// The atom of a node, when it was met.
    pub(crate) fn find(&self, node: Expr) -> Option<AtomId> {
        self.ids_of_nodes.get(&node).copied()
    }

    /// The atoms that are nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (AtomId, Expr)> {
        self.atoms.iter().zip(0..).filter_map(|(entry, number)| match entry.atom {
            Atom::Node(node) => Some((AtomId(number), node)),
            _ => None,
        })
    }

    pub(crate) fn set_range(&mut self, node: Expr, range: Range) {
        let id = self.intern(Atom::Node(node));
        self.atoms[id.0 as usize].range = Some(range);
    }

    pub(crate) fn range(&self, id: AtomId) -> Option<&Range> {
        self.entry(id).range.as_ref()
    }

    /// Whether a sum holds `node`, within quotients too.
    pub(crate) fn mentions(&self, sum: &Sum, node: Expr) -> bool {
        self.find(node).is_some_and(|id| self.holds(sum, id))
    }

    /// Whether a sum holds the node that an atom is, within quotients too.
    pub(crate) fn holds(&self, sum: &Sum, node: AtomId) -> bool {
        sum.atoms().any(|atom| self.holds_one(atom, |held| held == node))
    }

    /// Whether an atom is or holds a node for which something is so.
    pub(crate) fn holds_one(&self, atom: AtomId, is_so: impl Fn(AtomId) -> bool) -> bool {
        match &self.entry(atom).nodes {
            Some(nodes) => nodes.iter().any(|&node| is_so(node)),
            None => self.nodes_among([atom]).into_iter().any(is_so),
        }
    }

    /// The atoms that are nodes, within quotients too, each once.
    pub(crate) fn nodes_of(&self, sum: &Sum) -> Nodes {
        self.nodes_among(sum.atoms())
    }

    fn nodes_among(&self, atoms: impl IntoIterator<Item = AtomId>) -> Nodes {
        let mut pending: Vec<AtomId> = atoms.into_iter().collect();
        let (mut nodes, mut seen) = (Nodes::new(), HashSet::default());
        while let Some(atom) = pending.pop() {
            let entry = self.entry(atom);
            match &entry.nodes {
                Some(few) => nodes.extend_from_slice(few),
                None if seen.insert(atom) => pending.extend(entry.atom.inner()),
                None => {}
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn few_nodes_among(&self, atoms: impl Iterator<Item = AtomId>) -> Option<Nodes> {
        let mut nodes = Nodes::new();
        for atom in atoms {
            nodes.extend_from_slice(self.entry(atom).nodes.as_ref()?);
        }
        nodes.sort_unstable();
        nodes.dedup();
        (nodes.len() <= MOST_NODES).then_some(nodes)
    }

    /// A sum with others in the place of atoms.
    pub(crate) fn substitute(&mut self, sum: &Sum, pairs: &HashMap<AtomId, Sum>) -> Sum {
        let is_replaced = |atom| self.holds_one(atom, |node| pairs.contains_key(&node));
        if pairs.is_empty() || !sum.atoms().any(is_replaced) {
            return sum.clone();
        }
        let mut total = Sum::default();
        for (atoms, coefficient) in sum.terms() {
            let mut product = Sum::int(*coefficient);
            for &atom in atoms.iter() {
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
        if !self.holds_one(atom, |node| pairs.contains_key(&node)) {
            return Sum::atom(atom);
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
        !sum.atoms().any(|atom| self.holds_one(atom, |_| true))
    }
}
