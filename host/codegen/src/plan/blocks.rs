//! Bindings in their order, and choices among them.
//!
//! ```ir
//! %y: f32[4] = if %c {              memory for %y;  if the byte of %c is not 0:
//!   %a: f32[4] = …                    what makes %a, in the memory of %y
//!   ret %a                      =>
//! } else {                          otherwise:
//!   ret %x                            copy %x there
//! }
//! ```
//!
//! What the branches give in different shapes is memory that they take ([`super::taken`]), of which they say the extents besides.
//!
//! What a branch makes lies in an area of its own ([`super::memory`]). Nothing recurses, however deep choices are nested.

use super::{PlanProblem, PlannedAction, Planner, Step, Value, malformed};
use tenon_ir::{DType, Expr, LetView, Type, TypeView, View};

/// A body that is being read.
struct Block<'a> {
    bindings: Option<LetView<'a>>,
    /// The number of the next binding.
    next: usize,
    result: Expr,
    branch: Option<Branch>,
}

/// The choice that a body is a branch of.
struct Branch {
    /// What is bound to it.
    var: Expr,
    /// The tensors that it gives, in order.
    joined: Vec<usize>,
    value: Value,
    /// The branch that comes next.
    otherwise: Option<Expr>,
}

impl<'a> Planner<'a> {
    /// What a body stands for, after it has been noted what is to be done for it.
    pub(super) fn body_of(&mut self, body: Expr) -> Step<Value> {
        let mut blocks = vec![self.block(body, None)];
        loop {
            let Some(block) = blocks.last_mut() else { return malformed("a body is missing") };
            if let Some((var, value)) = block.next_binding() {
                (self.place, self.at) = (self.describe(var), Some(value));
                match self.body.view(value) {
                    View::If { cond, then, otherwise } => {
                        let branch = self.choose(var, value, cond, otherwise)?;
                        blocks.push(self.block(then, Some(branch)));
                    }
                    _ => {
                        let value = self.bound(var, value)?;
                        self.values[var.index()] = Some(value);
                    }
                }
                continue;
            }
            let result = block.result;
            if block.branch.is_none() {
                (self.place, self.at) = ("its result".to_owned(), None);
                return self.resolve(result);
            }
            let branch = blocks.pop().and_then(|block| block.branch);
            let Some(branch) = branch else { return malformed("a branch of nothing") };
            if let Some((otherwise, branch)) = self.end_branch(result, branch)? {
                blocks.push(self.block(otherwise, Some(branch)));
            }
        }
    }

    fn block(&self, body: Expr, branch: Option<Branch>) -> Block<'a> {
        match self.body.view(body) {
            View::Let(bindings) => {
                let result = bindings.result();
                Block { bindings: Some(bindings), next: 0, result, branch }
            }
            _ => Block { bindings: None, next: 0, result: body, branch },
        }
    }

    /// Begins the choice that is bound to `var`: makes memory for what it gives.
    fn choose(&mut self, var: Expr, choice: Expr, cond: Expr, otherwise: Expr) -> Step<Branch> {
        let condition = self.condition(cond)?;
        let ty = self.body.ty(choice).or(self.body.ty(var));
        let Some(ty) = ty else { return malformed("a choice has no type") };
        let (value, joined) = self.joined(ty)?;
        self.actions.push(PlannedAction::Choose(condition));
        self.memory.enter();
        self.depth += 1;
        Ok(Branch { var, joined, value, otherwise: Some(otherwise) })
    }

    /// Ends a branch with its result; gives the other branch of its choice, if it comes next.
    fn end_branch(&mut self, result: Expr, mut branch: Branch) -> Step<Option<(Expr, Branch)>> {
        let value = self.resolve(result)?;
        let given = self.flatten(value)?;
        if given.len() != branch.joined.len() {
            return malformed("a branch gives other values than its choice");
        }
        for (&given, &joined) in given.iter().zip(&branch.joined) {
            let (from, to) = (self.tensors[given].memory, self.tensors[joined].memory);
            if self.is_unsized(self.tensors[joined].ty) {
                self.give_unsized(given, joined)?;
            } else if !self.memory.give_to_choice(&self.sizes, from, to) {
                self.actions.push(PlannedAction::Copy(given, joined));
            }
        }
        self.memory.leave();
        self.depth -= 1;
        match branch.otherwise.take() {
            Some(otherwise) => {
                self.actions.push(PlannedAction::Otherwise);
                self.memory.enter();
                self.depth += 1;
                Ok(Some((otherwise, branch)))
            }
            None => {
                self.actions.push(PlannedAction::End);
                let joined = branch.joined.iter();
                let taken = joined.filter(|&&joined| self.is_unsized(self.tensors[joined].ty));
                let kept: Vec<_> = taken.map(|&joined| PlannedAction::Keep(joined)).collect();
                self.actions.extend(kept);
                self.values[branch.var.index()] = Some(branch.value);
                Ok(None)
            }
        }
    }

    /// The tensor of one boolean that a choice or a loop reads.
    pub(super) fn condition(&mut self, cond: Expr) -> Step<usize> {
        let value = self.resolve(cond)?;
        let terms = self.body.terms();
        match value {
            Value::Tensor(tensor)
                if terms.tensor(self.tensors[tensor].ty) == Some((DType::BOOL, &[])) =>
            {
                Ok(tensor)
            }
            _ => malformed("a condition is no boolean"),
        }
    }

    /// New memory for a value of type `ty`, and the tensors in it.
    pub(super) fn joined(&mut self, ty: Type) -> Step<(Value, Vec<usize>)> {
        let mut tensors = Vec::new();
        let value = self.build(ty, &mut |planner, ty| {
            let tensor = planner.fresh_tensor(ty)?;
            tensors.push(tensor);
            Ok(tensor)
        })?;
        Ok((value, tensors))
    }

    /// A value of type `ty`, with tensors that `make` gives, in their order.
    pub(super) fn build(
        &mut self,
        ty: Type,
        make: &mut dyn FnMut(&mut Self, Type) -> Step<usize>,
    ) -> Step<Value> {
        enum Part {
            Type(Type),
            Tuple(usize),
        }
        let terms = self.body.terms();
        let (mut parts, mut done) = (vec![Part::Type(ty)], Vec::new());
        while let Some(part) = parts.pop() {
            match part {
                Part::Tuple(count) => {
                    let fields = done.split_off(done.len() - count);
                    done.push(self.tuple(fields));
                }
                Part::Type(ty) => match terms.ty(ty) {
                    TypeView::Tuple(fields) => {
                        parts.push(Part::Tuple(fields.len()));
                        parts.extend(fields.iter().rev().map(|&field| Part::Type(field)));
                    }
                    TypeView::Tensor { .. } => {
                        let tensor = make(self, ty)?;
                        done.push(Value::Tensor(tensor));
                    }
                    // Its numbers are those of its type.
                    TypeView::Shape(Some(_)) => done.push(self.tuple(Vec::new())),
                    _ => {
                        let (what, ty) = ("a value".to_owned(), terms.type_text(ty));
                        return Err(PlanProblem::NotATensor { what, ty });
                    }
                },
            }
        }
        match done.pop() {
            Some(value) => Ok(value),
            None => malformed("a type without a value"),
        }
    }
}

impl Block<'_> {
    fn next_binding(&mut self) -> Option<(Expr, Expr)> {
        let bindings = self.bindings.filter(|bindings| self.next < bindings.len())?;
        self.next += 1;
        Some(bindings.binding(self.next - 1))
    }
}
