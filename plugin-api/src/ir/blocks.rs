//! Nodes that hold lists of several kinds: bindings in blocks, and blocks of tensor programs.

use crate::abi::records::RawNode;
use crate::ir::{Args, Attrs, Expr, Symbol, Term, TermView, Terms};

/// Bindings in blocks, and a result.
#[derive(Clone, Copy, Debug)]
pub struct LetView<'a> {
    pub(super) args: Args<'a>,
    pub(super) blocks: Term,
    pub(super) terms: Terms<'a>,
}

/// A block of bindings of a [`LetView`]: a range of binding numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetBlock {
    /// Number of its first binding.
    pub first: usize,
    /// Number of its bindings.
    pub len: usize,
    /// Whether it is a dataflow block: no side effect, no control flow.
    pub is_dataflow: bool,
}

impl<'a> LetView<'a> {
    /// Number of bindings.
    pub fn len(self) -> usize {
        self.args.len() / 2
    }

    /// Whether there is no binding.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Variable and value of binding `index`.
    pub fn binding(self, index: usize) -> (Expr, Expr) {
        // A binder is a place, not a use: it is never replaced.
        (Expr(self.args.ids[2 * index]), self.args.at(2 * index + 1))
    }

    /// All bindings in order, over all blocks.
    pub fn bindings(self) -> impl DoubleEndedIterator<Item = (Expr, Expr)> + ExactSizeIterator {
        (0..self.len()).map(move |index| self.binding(index))
    }

    /// The blocks in order.
    pub fn blocks(self) -> Vec<LetBlock> {
        let TermView::List(counts) = self.terms.view(self.blocks) else { return Vec::new() };
        let mut first = 0;
        counts
            .iter()
            .map(|&count| {
                let code = match self.terms.view(count) {
                    TermView::Int(code) => code,
                    _ => 0,
                };
                let block =
                    LetBlock { first, len: (code >> 1) as usize, is_dataflow: code & 1 == 1 };
                first = first.saturating_add(block.len);
                block
            })
            .collect()
    }

    /// The result.
    pub fn result(self) -> Expr {
        self.args.at(self.args.len() - 1)
    }
}

/// A block of a tensor program.
#[derive(Clone, Copy, Debug)]
pub struct PrimBlockView<'a> {
    /// Its name.
    pub name: Symbol,
    /// The iterators: variable, binding, variable, binding, ….
    pub iters: Args<'a>,
    /// The kind of each iterator, `spatial` or `reduce`.
    pub iter_kinds: &'a [Term],
    /// The domain of each iterator: first value, number of values, first value, …; empty where the block says none.
    pub domains: Args<'a>,
    /// The block runs where this is true; it is evaluated outside, as the bindings are.
    pub predicate: Option<Expr>,
    /// The regions it reads.
    pub reads: Args<'a>,
    /// The regions it writes.
    pub writes: Args<'a>,
    /// The statement that runs when all reduction iterators are at the first value of their domain, which is 0 where none is said.
    pub init: Option<Expr>,
    /// The body.
    pub body: Expr,
    /// Its annotations.
    pub attrs: Attrs,
}

/// An iterator of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockIter {
    /// Its variable.
    pub var: Expr,
    /// What it is bound to, where the block stands.
    pub binding: Expr,
    /// Its kind, `spatial` or `reduce`.
    pub kind: Term,
    /// The first value and the number of values that it goes through, where the block says so.
    pub domain: Option<[Expr; 2]>,
}

/// A block that is to be made, with [`BuildPrim::block`](crate::ir::BuildPrim::block).
#[derive(Clone, Copy, Debug)]
pub struct NewBlock<'a> {
    /// Its name.
    pub name: Symbol,
    /// Its iterators; all of them have a domain, or none has.
    pub iters: &'a [BlockIter],
    /// It runs where this is true.
    pub predicate: Option<Expr>,
    /// The regions it says that it reads.
    pub reads: &'a [Expr],
    /// The regions it says that it writes.
    pub writes: &'a [Expr],
    /// What runs when all reduction iterators are at their first value.
    pub init: Option<Expr>,
    /// The body.
    pub body: Expr,
    /// Its annotations.
    pub attrs: Attrs,
}

impl<'a> PrimBlockView<'a> {
    /// Its iterators.
    pub fn iterators(self) -> impl Iterator<Item = BlockIter> + 'a {
        self.iter_kinds.iter().enumerate().map(move |(index, &kind)| {
            let pair = |args: Args<'_>| [args.at(2 * index), args.at(2 * index + 1)];
            let [var, binding] = pair(self.iters);
            let domain = (!self.domains.is_empty()).then(|| pair(self.domains));
            BlockIter { var, binding, kind, domain }
        })
    }

    /// How many operands stand before its regions.
    pub fn head_len(self) -> usize {
        self.iters.len() + self.domains.len() + self.predicate.is_some() as usize
    }

    pub(super) fn new(node: RawNode, args: Args<'a>, terms: Terms<'a>) -> Option<Self> {
        let TermView::List(layout) = terms.view(Term(node.aux)) else { return None };
        let (iter_kinds, &[reads, writes]) = layout.split_last_chunk::<2>()?;
        let count = |term| match terms.view(term) {
            TermView::Int(value) => usize::try_from(value).ok(),
            _ => None,
        };
        let (iters, reads, writes) = (2 * iter_kinds.len(), count(reads)?, count(writes)?);
        let [has_init, has_domains, has_predicate] = [1, 2, 4].map(|bit| node.flags & bit != 0);
        let domains = if has_domains { iters } else { 0 };
        let head = iters + domains + has_predicate as usize;
        let regions = reads.checked_add(writes)?;
        if node.flags & !7 != 0 || args.len() != head.checked_add(regions)? + has_init as usize + 1
        {
            return None;
        }
        Some(Self {
            name: Symbol(node.data),
            iters: args.take(iters),
            iter_kinds,
            domains: args.skip(iters).take(domains),
            predicate: has_predicate.then(|| args.at(head - 1)),
            reads: args.skip(head).take(reads),
            writes: args.skip(head + reads).take(writes),
            init: has_init.then(|| args.at(args.len() - 2)),
            body: args.at(args.len() - 1),
            attrs: Attrs(node.attrs),
        })
    }
}
