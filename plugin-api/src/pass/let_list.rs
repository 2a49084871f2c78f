//! Writing bindings.

use crate::ir::{Build, Expr};
use crate::pass::Rewriter;

/// Bindings in the order in which they are evaluated. Those that follow each other form a block, of the kind
/// that they are said to be; so blocks of one kind that meet become one.
#[derive(Clone, Default, Debug)]
pub struct LetList {
    blocks: Vec<(bool, Vec<(Expr, Expr)>)>,
}

impl LetList {
    /// No bindings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable that exists already. In a dataflow block nothing has effects or is a choice.
    pub fn bind(&mut self, is_dataflow: bool, var: Expr, value: Expr) {
        match self.blocks.last_mut() {
            Some((kind, bindings)) if *kind == is_dataflow => bindings.push((var, value)),
            _ => self.blocks.push((is_dataflow, vec![(var, value)])),
        }
    }

    /// Binds a new variable called `name`, of the value's type, and returns it.
    pub fn bind_new(
        &mut self,
        rw: &mut Rewriter,
        is_dataflow: bool,
        name: &str,
        value: Expr,
    ) -> Expr {
        let ty = rw.body().ty(value);
        let var = rw.var(name, ty);
        self.bind(is_dataflow, var, value);
        var
    }

    /// The bindings in order: whether the block is a dataflow block, variable, value.
    pub fn iter(&self) -> impl Iterator<Item = (bool, Expr, Expr)> + '_ {
        self.blocks.iter().flat_map(|(is_dataflow, bindings)| {
            bindings.iter().map(move |&(var, value)| (*is_dataflow, var, value))
        })
    }

    /// Whether nothing is bound.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The `let` of these bindings and `result`.
    pub fn finish(self, rw: &mut Rewriter, result: Expr) -> Expr {
        rw.let_blocks(&self.blocks, result)
    }
}
