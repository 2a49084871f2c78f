//! What an instruction for tiles computes, as whoever adds it writes it down.

use std::cell::RefCell;

use crate::abi::host::{Host, TransactionHandle};
use crate::ir::{AttrValue, Attrs, BuildPrim, Context, DType, Expr, LoopKind};
use crate::pass::{PassError, Result};

use super::{Buffer, Program, Scalar, Stmt};

/// A tensor intrinsic that is being described: what it computes, where it can be used, and the code that computes it.
///
/// Its operands are small tensors; the last one is written, and mostly read as well. What it computes is one assignment in loops
/// of constant extents, or of any that [`Intrinsic::any_extent`] allows.
pub struct Intrinsic {
    program: Program,
    operands: RefCell<Vec<Expr>>,
    nest: RefCell<Option<Expr>>,
    facts: RefCell<Vec<(&'static str, AttrValue)>>,
}

impl Intrinsic {
    pub(crate) fn new(transaction: TransactionHandle, name: &'static str) -> Self {
        Self {
            program: Program::without_call(transaction, name),
            operands: RefCell::default(),
            nest: RefCell::default(),
            facts: RefCell::default(),
        }
    }

    /// The context of the terms.
    pub fn cx(&self) -> Host {
        self.program.cx()
    }

    /// Its next operand: elements of `dtype`, row by row.
    pub fn operand(&self, name: &str, dtype: DType, shape: &[i64]) -> Buffer<'_> {
        let buffer = self.program.new_buffer(name, dtype, shape, "");
        self.operands.borrow_mut().push(buffer.expr());
        buffer
    }

    /// What it computes: `assign` sets an element of the last operand, given where each of the loops stands.
    pub fn computes<'p>(
        &'p self,
        loops: &[(&str, i64)],
        assign: impl FnOnce(&[Scalar<'p>]) -> Stmt,
    ) {
        let var = |&(name, _): &(&str, i64)| {
            self.program.scalar(|writer| writer.scalar_var(name, DType::I64))
        };
        let vars: Vec<Scalar<'p>> = loops.iter().map(var).collect();
        let body = assign(&vars);
        let nest = vars.iter().zip(loops).rev().fold(body, |body, (var, &(_, extent))| {
            self.program
                .stmt(|writer| writer.for_range(var.expr(), extent, LoopKind::Serial, body.0))
        });
        *self.nest.borrow_mut() = Some(nest.0);
    }

    /// The architecture that has it, such as `x86-64`, and the features of a processor, as the code generator calls them.
    pub fn needs(&self, architecture: &str, features: &[&str]) {
        let list = self
            .cx()
            .list(&features.iter().map(|it| self.cx().symbol(it).into()).collect::<Vec<_>>());
        self.fact(ARCHITECTURE, architecture.into());
        self.fact(FEATURES, AttrValue::Term(list));
    }

    /// The operands whose rows may lie any number of elements apart, which the code is given.
    pub fn strides(&self, operands: &[&str]) {
        let list = self
            .cx()
            .list(&operands.iter().map(|it| self.cx().symbol(it).into()).collect::<Vec<_>>());
        self.fact(STRIDED, AttrValue::Term(list));
    }

    /// The loops of which a nest may have other numbers of steps than are described, which the code is given. Behind each name come two
    /// numbers: multiples of the first are allowed up to the second, but 1 is not.
    pub fn any_extent(&self, loops: &[(&str, i64, i64)]) {
        let cx = self.cx();
        let numbers = |&(name, step, most): &(&str, i64, i64)| {
            cx.list(&[cx.symbol(name).into(), cx.int(step), cx.int(most)])
        };
        let list = cx.list(&loops.iter().map(numbers).collect::<Vec<_>>());
        self.fact(OPEN, AttrValue::Term(list));
    }

    /// Says that it adds in another order than the loops do, or rounds otherwise: where floats are strict it is not used.
    pub fn rounds_differently(&self) {
        self.fact(ROUNDS, true.into());
    }

    /// The code that computes it: a text of LLVM that defines `void @tile(…)`. It is given a pointer to the first element of each
    /// operand, in their order, each of those of [`Intrinsic::strides`] followed by an `i64`: the elements from one row to the next; then
    /// an `i64` for each loop of [`Intrinsic::any_extent`]: its steps.
    pub fn llvm(&self, text: &str) {
        self.fact(LLVM, text.into());
    }

    fn fact(&self, key: &'static str, value: AttrValue) {
        self.facts.borrow_mut().push((key, value));
    }

    /// The program, and what is said of it.
    pub(crate) fn finish(&self) -> Result<(Expr, Attrs)> {
        let missing = |what: &str| PassError::new(format!("the intrinsic does not say {what}"));
        let nest = self.nest.borrow().ok_or_else(|| missing("what it computes"))?;
        let facts = self.facts.borrow();
        for (key, what) in [(ARCHITECTURE, "what it needs"), (LLVM, "which code computes it")] {
            if !facts.iter().any(|(given, _)| *given == key) {
                return Err(missing(what));
            }
        }
        let operands = self.operands.borrow();
        let root = self.program.stmt(|writer| writer.prim_func(&operands, 1, nest, Attrs::NONE));
        Ok((root.0, self.cx().attrs(&facts)))
    }
}

/// Keys of what is said of an intrinsic.
pub(crate) const ARCHITECTURE: &str = "architecture";
pub(crate) const FEATURES: &str = "features";
pub(crate) const STRIDED: &str = "strided";
pub(crate) const OPEN: &str = "any_extent";
pub(crate) const ROUNDS: &str = "rounds_differently";
pub(crate) const LLVM: &str = "llvm";
