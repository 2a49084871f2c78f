//! A scope that is being written, and what comes next in it.

use super::layout::Layout;
use crate::ir::{Expr, LetBlock, LetView};

/// A scope whose brace is open.
pub(super) struct Open<'a> {
    scope: u32,
    /// Number of its labels that are written.
    labels: usize,
    /// Bindings, when its braces are those of a `let`.
    bindings: Option<Bindings<'a>>,
    pub(super) result: Expr,
    /// The `if` whose else-branch follows.
    pub(super) otherwise: Option<Expr>,
}

struct Bindings<'a> {
    view: LetView<'a>,
    blocks: std::vec::IntoIter<LetBlock>,
    block: Option<Block>,
    /// Whether the last block was plain and written without braces.
    is_after_plain: bool,
    next: usize,
}

/// The block of bindings that is being written.
struct Block {
    end: usize,
    has_braces: bool,
}

/// What is to be written next.
pub(super) enum Step {
    Label(Expr),
    Bind(Expr, Expr),
    OpenBlock {
        is_dataflow: bool,
    },
    CloseBlock,
    /// The result, and the closing brace.
    Close,
}

impl<'a> Open<'a> {
    pub(super) fn new(
        scope: u32,
        result: Expr,
        bindings: Option<LetView<'a>>,
        otherwise: Option<Expr>,
    ) -> Self {
        let bindings = bindings.map(|view| Bindings {
            view,
            blocks: view.blocks().into_iter(),
            block: None,
            is_after_plain: false,
            next: 0,
        });
        Self { scope, labels: 0, bindings, result, otherwise }
    }

    /// Whether the next statement stands in the braces of a block.
    pub(super) fn has_block_braces(&self) -> bool {
        let block = self.bindings.as_ref().and_then(|bindings| bindings.block.as_ref());
        block.is_some_and(|block| block.has_braces)
    }

    pub(super) fn step(&mut self, layout: &Layout) -> Step {
        if let Some(bindings) = &mut self.bindings {
            if let Some(step) = bindings.block_step() {
                return step;
            }
            if bindings.block.is_some() {
                let (var, value) = bindings.view.binding(bindings.next);
                // In post-order, what this binding needs first stands between its variable and its
                // value.
                if let Some(label) = self.next_label(layout, var.max(value)) {
                    return Step::Label(label);
                }
                if let Some(bindings) = &mut self.bindings {
                    bindings.next += 1;
                }
                return Step::Bind(var, value);
            }
        }
        match self.next_label(layout, Expr(u32::MAX)) {
            Some(label) => Step::Label(label),
            None => Step::Close,
        }
    }

    /// The next label up to a node.
    fn next_label(&mut self, layout: &Layout, up_to: Expr) -> Option<Expr> {
        let label = layout.labelled(self.scope).get(self.labels).copied()?;
        (label <= up_to).then(|| {
            self.labels += 1;
            label
        })
    }
}

impl Bindings<'_> {
    /// Opens or closes a block when one begins or ends here.
    fn block_step(&mut self) -> Option<Step> {
        loop {
            match &self.block {
                Some(block) if self.next < block.end => return None,
                Some(block) => {
                    let has_braces = block.has_braces;
                    self.block = None;
                    if has_braces {
                        return Some(Step::CloseBlock);
                    }
                }
                None => {
                    let LetBlock { first, len, is_dataflow } = self.blocks.next()?;
                    // Without braces, two plain blocks would be one, and an empty one would be none.
                    let has_braces = is_dataflow || len == 0 || self.is_after_plain;
                    self.is_after_plain = !has_braces;
                    self.block = Some(Block { end: first + len, has_braces });
                    if has_braces {
                        return Some(Step::OpenBlock { is_dataflow });
                    }
                }
            }
        }
    }
}
