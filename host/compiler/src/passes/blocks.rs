//! Passes over blocks: what they are given is one dataflow block of a function.
//!
//! ```text
//! dataflow {
//!   %a = exp(%x)         the block's own: may be replaced
//!   %b = two(%a, %a)     read behind the block: its value may be replaced, the variable stays
//! }
//! ret %b
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use super::pass::Pass;
use crate::border::{PassFailure, Run};
use crate::ir::{BodyView, Build, Expr, Function, Kind, Module, Transaction, View};

impl Pass {
    /// A pass over each dataflow block of each graph function. A block is edited as [`Block`] lets it be: what is
    /// read outside of it stays.
    pub fn blocks(
        name: impl Into<String>,
        body: impl Fn(&mut Block<'_>, &Module, &Run) -> Result<(), PassFailure> + Send + Sync + 'static,
    ) -> Self {
        Self::function(name, move |function, module, run| {
            let mut transaction = Transaction::edit(function);
            for (bindings, outputs) in blocks(function) {
                body(&mut Block { transaction: &mut transaction, bindings, outputs }, module, run)?;
            }
            transaction.finish().map_err(|error| PassFailure::error(error.to_string()))
        })
    }
}

/// A dataflow block that is edited.
pub struct Block<'a> {
    transaction: &'a mut Transaction,
    bindings: Vec<(Expr, Expr)>,
    outputs: FxHashSet<Expr>,
}

impl Block<'_> {
    /// Variables and values, in order.
    pub fn bindings(&self) -> &[(Expr, Expr)] {
        &self.bindings
    }

    /// Whether a variable of the block is read outside of it.
    pub fn is_output(&self, var: Expr) -> bool {
        self.outputs.contains(&var)
    }

    /// Reads the function, and adds nodes to it.
    pub fn build(&mut self) -> &mut impl Build {
        self.transaction
    }

    /// Makes every use of a variable or a value of the block read another expression.
    ///
    /// # Errors
    /// It is not of the block, or a variable that is read outside of it.
    pub fn replace(&mut self, old: Expr, new: Expr) -> Result<(), PassFailure> {
        let binding = self.bindings.iter().find(|(var, value)| *var == old || *value == old);
        let Some(&(var, _)) = binding else {
            return Err(fail("a pass over blocks replaces what a block binds", old));
        };
        if old == var && self.outputs.contains(&var) {
            let message =
                "a pass over blocks keeps the variables that are read outside of the block";
            return Err(fail(message, var));
        }
        self.transaction.replace(old, new);
        Ok(())
    }
}

fn fail(message: &str, node: Expr) -> PassFailure {
    PassFailure { node: Some(node), ..PassFailure::error(message) }
}

/// A block's bindings, and its variables that are read elsewhere.
type Found = (Vec<(Expr, Expr)>, FxHashSet<Expr>);

/// The dataflow blocks of a function: their bindings, and those of their variables that are read elsewhere.
fn blocks(function: &Function) -> Vec<Found> {
    let body = function.view();
    let mut uses: FxHashMap<Expr, usize> = FxHashMap::default();
    let mut found = Vec::new();
    for expr in body.post_order() {
        count(body, expr, &mut uses);
        let View::Let(bindings) = body.view(expr) else { continue };
        for block in bindings.blocks().into_iter().filter(|block| block.is_dataflow) {
            let range = block.first..block.first + block.len;
            found.push(range.map(|index| bindings.binding(index)).collect::<Vec<_>>());
        }
    }
    let with_outputs = |bindings: Vec<(Expr, Expr)>| {
        let mut inside: FxHashMap<Expr, usize> = FxHashMap::default();
        let mut seen: FxHashSet<Expr> = FxHashSet::default();
        let mut work: Vec<Expr> = bindings.iter().map(|&(_, value)| value).collect();
        for &(var, value) in &bindings {
            // A value that is a variable itself is a use of it by its `let`.
            if body.kind(value) == Kind::VAR {
                *inside.entry(value).or_default() += 1;
            }
            seen.insert(var);
        }
        while let Some(expr) = work.pop() {
            if body.kind(expr) != Kind::VAR && seen.insert(expr) {
                count(body, expr, &mut inside);
                work.extend(body.operands(expr).iter());
            }
        }
        let number = |uses: &FxHashMap<Expr, usize>, var| uses.get(&var).copied().unwrap_or(0);
        let is_read = |var: &Expr| number(&uses, *var) > number(&inside, *var);
        let outputs = bindings.iter().map(|&(var, _)| var).filter(is_read).collect();
        (bindings, outputs)
    };
    found.into_iter().map(with_outputs).collect()
}

/// Counts the variables that a node reads.
fn count(body: BodyView<'_>, expr: Expr, uses: &mut FxHashMap<Expr, usize>) {
    let mut read = |operand: Expr| {
        if body.kind(operand) == Kind::VAR {
            *uses.entry(operand).or_default() += 1;
        }
    };
    match body.view(expr) {
        // Its variables are bound, not read.
        View::Let(bindings) => {
            bindings.bindings().for_each(|(_, value)| read(value));
            read(bindings.result());
        }
        View::Function { body, .. } => read(body),
        _ => body.operands(expr).iter().for_each(read),
    }
}
