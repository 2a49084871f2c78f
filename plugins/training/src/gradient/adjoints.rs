//! Adjoints: the derivatives of the loss by the values of a function.

use std::collections::HashMap;

use tenon_plugin_api::pass::Arithmetic;
use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::{Grad, Gradient, Rules};

use super::places::{Place, Places};

/// What has been found of the adjoints. Tensors alone have them; that of a tuple are those of its fields.
pub(super) struct Adjoints<'a> {
    body: BodyView<'a>,
    places: Places<'a>,
    pub(super) rw: Rewriter,
    rules: Rules<Gradient>,
    /// By place, the sum so far.
    sums: Vec<Option<Expr>>,
    /// By node, whether it or a field of it has an adjoint.
    is_reached: Vec<bool>,
    /// Zeros, by their type.
    zeros: HashMap<Type, Expr>,
}

impl<'a> Adjoints<'a> {
    /// None yet.
    pub(super) fn new(
        body: BodyView<'a>,
        places: Places<'a>,
        rw: Rewriter,
        rules: Rules<Gradient>,
    ) -> Self {
        let is_reached = vec![false; body.len()];
        Self { body, places, rw, rules, sums: Vec::new(), is_reached, zeros: HashMap::new() }
    }

    /// Adds to the adjoint of a tensor.
    pub(super) fn add(&mut self, tensor: Expr, grad: Expr) {
        self.add_at(self.places.of(tensor), grad);
    }

    fn add_at(&mut self, place: Place, grad: Expr) {
        if !self.places.is_active(place) {
            return;
        }
        let ty = self.rw.body().ty(grad).map(|ty| self.rw.terms().ty(ty));
        if let Some(TypeView::Tuple(fields)) = ty {
            for index in 0..fields.len() {
                let field = self.rw.tuple_get_item(grad, index as u32);
                let place = self.places.field(place, index);
                self.add_at(place, field);
            }
            return;
        }
        self.is_reached[self.places.node(place).index()] = true;
        if self.sums.len() <= place.index() {
            self.sums.resize(place.index() + 1, None);
        }
        let sum = self.sums[place.index()];
        self.sums[place.index()] = Some(match sum {
            Some(sum) => Arithmetic::add(&mut self.rw, sum, grad),
            None => grad,
        });
    }

    fn sum(&self, place: Place) -> Option<Expr> {
        self.sums.get(place.index()).copied().flatten()
    }

    /// Hands the adjoint of a node on to what it reads; `value` is what holds its result.
    pub(super) fn propagate(&mut self, expr: Expr, value: Expr) -> Result<()> {
        if !self.is_reached[expr.index()] {
            return Ok(());
        }
        let name = || name_of(self.body, value);
        match self.body.view(expr) {
            View::Call { callee, args, .. } => {
                let failed = |text: &str| Err(PassError::new(format!("{}: {text}", name())));
                let View::Op { name: op } = self.body.view(callee) else {
                    return failed("a call of a function has no gradient; inline it first");
                };
                let grads = self.of_result(expr);
                let found = self.rules.gradients(&mut self.rw, op, expr, value, &grads);
                let op = self.body.terms().str(op);
                let found = match found {
                    Ok(Some(found)) => found,
                    Ok(None) => return failed(&format!("`{op}` has no gradient")),
                    Err(reason) => {
                        let reason = reason.message();
                        return failed(&format!("`{op}` has no gradient here, since {reason}"));
                    }
                };
                for (arg, grad) in args.iter().zip(found) {
                    self.add_grad(arg, grad);
                }
                Ok(())
            }
            View::If { .. } => Err(PassError::new(format!("{}: a choice has no gradient", name()))),
            // Parameters; a tuple and a field of one are the places of others.
            _ => Ok(()),
        }
    }

    /// The adjoint of each tensor of the result of a call, in order.
    fn of_result(&self, call: Expr) -> Vec<Option<Expr>> {
        let terms = self.body.terms();
        let mut open = vec![(Some(self.places.of(call)), self.body.ty(call))];
        let mut grads = Vec::new();
        while let Some((place, ty)) = open.pop() {
            match ty.map(|ty| terms.ty(ty)) {
                Some(TypeView::Tuple(fields)) => {
                    let place_of = |index| self.places.known_field(place?, index);
                    let field = |(index, &ty)| (place_of(index), Some(ty));
                    open.extend(fields.iter().enumerate().map(field).rev());
                }
                _ => grads.push(place.and_then(|place| self.sum(place))),
            }
        }
        grads
    }

    fn add_grad(&mut self, arg: Expr, grad: Grad) {
        match grad {
            Grad::Zero => {}
            Grad::Of(grad) => self.add(arg, grad),
            Grad::Fields(grads) => {
                let tuple = self.places.of(arg);
                for (index, grad) in grads.into_iter().enumerate() {
                    let field = self.places.field(tuple, index);
                    self.add_at(field, grad);
                }
            }
        }
    }

    /// The gradient by a parameter, of its type: zeros where the loss does not depend on it.
    pub(super) fn of_param(&mut self, param: Expr) -> Result<Expr> {
        let ty = self.body.ty(param).ok_or_else(|| PassError::new("a parameter has no type"))?;
        let terms = self.body.terms();
        let mut steps = vec![Part::Value(Some(self.places.of(param)), ty)];
        let mut values = Vec::new();
        while let Some(step) = steps.pop() {
            match step {
                Part::Value(place, ty) => {
                    let known = match place {
                        Some(place) => self.sum(place),
                        None => self.zeros.get(&ty).copied(),
                    };
                    match (known, terms.ty(ty)) {
                        (Some(known), _) => values.push(known),
                        (None, TypeView::Tuple(fields)) => {
                            steps.push(Part::Tuple(place, ty));
                            let field = |(index, &ty)| {
                                let field =
                                    place.and_then(|place| self.places.known_field(place, index));
                                Part::Value(field, ty)
                            };
                            steps.extend(fields.iter().enumerate().map(field).rev());
                        }
                        (None, _) => values.push(self.zeros(ty)?),
                    }
                }
                Part::Tuple(place, ty) => {
                    let TypeView::Tuple(fields) = terms.ty(ty) else { continue };
                    let fields = values.split_off(values.len() - fields.len());
                    let tuple = self.rw.tuple(&fields);
                    if place.is_none() {
                        self.zeros.insert(ty, tuple);
                    }
                    values.push(tuple);
                }
            }
        }
        Ok(values.pop().expect("each type has a value"))
    }

    fn zeros(&mut self, ty: Type) -> Result<Expr> {
        if let Some(&zeros) = self.zeros.get(&ty) {
            return Ok(zeros);
        }
        let zeros = self.rw.zeros(ty).ok_or_else(|| {
            PassError::new("the loss does not depend on a tensor of unknown rank")
        })?;
        self.zeros.insert(ty, zeros);
        Ok(zeros)
    }
}

/// A step of building a gradient; without a place, the loss does not depend on it.
enum Part {
    /// The value of a type.
    Value(Option<Place>, Type),
    /// A tuple of the values made last.
    Tuple(Option<Place>, Type),
}

/// A variable as it is written; a value that has no name as what it is.
fn name_of(body: BodyView<'_>, expr: Expr) -> String {
    match body.view(expr) {
        View::Var { name } => format!("%{}", body.terms().str(name)),
        _ => "a value without a name".to_owned(),
    }
}
