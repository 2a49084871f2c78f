//! A scope that is being written, and what comes next in it.

use super::layout::Layout;
use crate::{Args, Expr, LetBlock, LetView};

/// A scope whose brace is open.
pub(super) struct Open<'a> {
    scope: u32,
    /// Number of its labels that are written.
    labels: usize,
    content: Content<'a>,
    pub(super) after: After,
}

/// What stands between the braces besides labels.
pub(super) enum Content<'a> {
    /// Bindings, then a result.
    Let(LetView<'a>, Box<Bindings>),
    /// A result.
    Result(Expr),
    /// Statements.
    Seq(Args<'a>, usize),
    /// One statement that is still to come.
    Stmt(Option<Expr>),
    Nothing,
}

/// What follows the closing brace.
#[derive(Clone, Copy)]
pub(super) enum After {
    Nothing,
    /// The else-branch of a graph's `if`.
    Else(Expr),
    /// The else-branch of an `if` statement, when it has one.
    ElseStmt(Expr),
    /// The regions of a block.
    Regions(Expr),
    /// The body of a block.
    BlockBody(Expr),
}

/// How far the bindings of a `let` are written.
pub(super) struct Bindings {
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
    Stmt(Expr),
    /// The result, if there is one, and the closing brace.
    Close(Option<Expr>),
}

impl<'a> Content<'a> {
    pub(super) fn bindings(view: LetView<'a>) -> Self {
        let blocks = view.blocks().into_iter();
        let bindings = Bindings { blocks, block: None, is_after_plain: false, next: 0 };
        Content::Let(view, Box::new(bindings))
    }
}

impl<'a> Open<'a> {
    pub(super) fn new(scope: u32, content: Content<'a>, after: After) -> Self {
        Self { scope, labels: 0, content, after }
    }

    /// Whether the next statement stands in the braces of a block of bindings.
    pub(super) fn has_block_braces(&self) -> bool {
        match &self.content {
            Content::Let(_, bindings) => {
                bindings.block.as_ref().is_some_and(|block| block.has_braces)
            }
            _ => false,
        }
    }

    pub(super) fn step(&mut self, layout: &Layout) -> Step {
        let (labels, scope) = (&mut self.labels, self.scope);
        // In post-order, what a statement needs first stands before it, and behind the one before.
        let mut label = |up_to: Expr| {
            let label = layout.labelled(scope).get(*labels).copied()?;
            (label <= up_to).then(|| {
                *labels += 1;
                Step::Label(label)
            })
        };
        let step = match &mut self.content {
            Content::Let(view, bindings) => bindings.step(*view, &mut label),
            Content::Seq(stmts, next) => stmts.get(*next).map(|stmt| {
                label(stmt).unwrap_or_else(|| {
                    *next += 1;
                    Step::Stmt(stmt)
                })
            }),
            Content::Stmt(stmt) => stmt.map(|next| {
                label(next).unwrap_or_else(|| {
                    *stmt = None;
                    Step::Stmt(next)
                })
            }),
            Content::Result(_) | Content::Nothing => None,
        };
        let result = match &self.content {
            Content::Let(view, _) => Some(view.result()),
            Content::Result(result) => Some(*result),
            Content::Seq(..) | Content::Stmt(_) | Content::Nothing => None,
        };
        step.or_else(|| label(Expr(u32::MAX))).unwrap_or(Step::Close(result))
    }
}

impl Bindings {
    fn step(
        &mut self,
        view: LetView<'_>,
        label: &mut impl FnMut(Expr) -> Option<Step>,
    ) -> Option<Step> {
        if let Some(step) = self.block_step() {
            return Some(step);
        }
        self.block.as_ref()?;
        let (var, value) = view.binding(self.next);
        // What the value needs stands between the variable and the value.
        label(var.max(value)).or_else(|| {
            self.next += 1;
            Some(Step::Bind(var, value))
        })
    }

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
