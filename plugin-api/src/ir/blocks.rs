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
    /// The regions it reads.
    pub reads: Args<'a>,
    /// The regions it writes.
    pub writes: Args<'a>,
    /// The statement that runs when all reduction iterators are at their first value.
    pub init: Option<Expr>,
    /// The body.
    pub body: Expr,
    /// Its annotations.
    pub attrs: Attrs,
}

impl<'a> PrimBlockView<'a> {
    pub(super) fn new(node: RawNode, args: Args<'a>, terms: Terms<'a>) -> Option<Self> {
        let TermView::List(layout) = terms.view(Term(node.aux)) else { return None };
        let (iter_kinds, &[reads, writes]) = layout.split_last_chunk::<2>()?;
        let count = |term| match terms.view(term) {
            TermView::Int(value) => usize::try_from(value).ok(),
            _ => None,
        };
        let (iters, reads, writes) = (2 * iter_kinds.len(), count(reads)?, count(writes)?);
        let has_init = node.flags & 1 == 1;
        let regions = reads.checked_add(writes)?;
        if args.len() != iters.checked_add(regions)? + has_init as usize + 1 {
            return None;
        }
        Some(Self {
            name: Symbol(node.data),
            iters: args.take(iters),
            iter_kinds,
            reads: args.skip(iters).take(reads),
            writes: args.skip(iters + reads).take(writes),
            init: has_init.then(|| args.at(args.len() - 2)),
            body: args.at(args.len() - 1),
            attrs: Attrs(node.attrs),
        })
    }
}
