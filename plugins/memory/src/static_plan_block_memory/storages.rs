//! Storages for tensors whose sizes are expressions: reused whole by those that are alive at other times.
//!
//! Which of two sizes is the larger often cannot be told before they are numbers, so tensors get no offsets in one
//! storage. A tensor takes a storage that is free again: one of just its size, else one that is surely as large, else one
//! that it surely exceeds, which grows to its size; not to one that is found behind where the storage is made. Only storages that were free last are looked at for the latter two, so
//! that the work stays linear.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use tenon_plugin_api::ir::{DimView, Term, Terms};
use tenon_plugin_api::prelude::*;

/// Free storages that a tensor of another size looks at.
const MOST_TRIED: usize = 16;

/// A tensor that may share memory with others.
pub(super) struct SymbolicTensor {
    /// The binding that makes it.
    pub(super) birth: usize,
    /// The last binding that may touch it.
    pub(super) death: usize,
    /// Its bytes.
    pub(super) size: Dim,
}

/// Which tensors share a storage.
pub(super) struct Storages {
    /// The storage of each tensor, in their order.
    pub(super) of: Vec<usize>,
    /// The bytes of each storage, which are numbered in the order of their first tensors.
    pub(super) sizes: Vec<Dim>,
}

/// Shares storages among tensors, which are given in the order of their births.
pub(super) fn share(
    cx: &PassContext,
    tensors: &[SymbolicTensor],
    found: &HashSet<Symbol>,
) -> Storages {
    let mut storages = Storages { of: Vec::with_capacity(tensors.len()), sizes: Vec::new() };
    let mut taken: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    let mut free = Free::default();
    for tensor in tensors {
        while let Some(&Reverse((death, storage))) = taken.peek()
            && death < tensor.birth
        {
            taken.pop();
            free.add(storages.sizes[storage], storage);
        }
        let storage = match free.take(cx, &mut storages.sizes, tensor.size, found) {
            Some(storage) => storage,
            None => {
                storages.sizes.push(tensor.size);
                storages.sizes.len() - 1
            }
        };
        storages.of.push(storage);
        taken.push(Reverse((tensor.death, storage)));
    }
    storages
}

/// Storages that nothing lies in, in the order in which they became free.
#[derive(Default)]
struct Free {
    count: usize,
    all: BTreeMap<usize, usize>,
    /// When those of a size became free, the last one last.
    by_size: HashMap<Dim, Vec<usize>>,
}

impl Free {
    fn add(&mut self, size: Dim, storage: usize) {
        self.all.insert(self.count, storage);
        self.by_size.entry(size).or_default().push(self.count);
        self.count += 1;
    }

    /// A storage for `size` bytes, which may grow to have them.
    fn take(
        &mut self,
        cx: &PassContext,
        sizes: &mut [Dim],
        size: Dim,
        found: &HashSet<Symbol>,
    ) -> Option<usize> {
        if let Some(time) = self.by_size.get_mut(&size).and_then(Vec::pop) {
            return self.all.remove(&time);
        }
        let is_within = |small: Dim, large: Dim| {
            let bound = cx.terms().dim_lower_bound(cx.dim_sub(large, small));
            bound.is_some_and(|bound| bound >= 0)
        };
        // Those that are found stand for nothing where an earlier storage is made.
        let is_found = names_any(cx.terms(), size, found);
        let latest = || self.all.iter().rev().take(MOST_TRIED);
        let found = latest().find(|&(_, &storage)| is_within(size, sizes[storage])).or_else(|| {
            latest().find(|&(_, &storage)| !is_found && is_within(sizes[storage], size))
        });
        let (&time, &storage) = found?;
        self.all.remove(&time);
        self.by_size.entry(sizes[storage]).or_default().retain(|&other| other != time);
        if !is_within(size, sizes[storage]) {
            sizes[storage] = size;
        }
        Some(storage)
    }
}

/// Whether a dimension names one of these symbols.
fn names_any(terms: Terms<'_>, dim: Dim, symbols: &HashSet<Symbol>) -> bool {
    let (mut waiting, mut seen) = (vec![Term::from(dim)], HashSet::new());
    while let Some(term) = waiting.pop() {
        if symbols.is_empty() || !seen.insert(term) {
            continue;
        }
        match terms.dim(Dim(term.0)) {
            DimView::Symbol(name) if symbols.contains(&name) => return true,
            _ => waiting.extend(terms.children(term)),
        }
    }
    false
}
