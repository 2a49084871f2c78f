//! Calls of graph functions.
//!
//! ```ir
//! fn @main(%x: f32[m, 4]) {         @f is given: the address of %x, one for what it gives, the number m,
//!   %y: f32[m, 4] = @f(%x)          and the part of the workspace behind what @main has itself
//!   ret %y
//! }
//! fn @f(%a: f32[n, 4]) -> f32[n, 4] { … }
//! ```
//!
//! A function is planned once, with its symbols as numbers that it is given, before those that call it; so a caller knows
//! how much memory it needs. Those that call themselves go as deep as they say ([`super::circles`]). What is a function is known
//! where it is called: a function of the module, or a closure of one.

use std::sync::Arc;

use super::circles::{Circle, Needed, depth_of, needed};
use super::memory::Home;
use super::sizes::{Bindings, Size, SizeStep};
use super::{
    Arg, Callee, Closure, PlanError, PlanProblem, PlannedAction, PlannedCall, Planner, Routine,
    Shared, Step, Value, malformed, unsupported,
};
use tenon_ir::symbols_in;
use tenon_ir::{Args, Context, Dim, Expr, Function, Module, Symbol, Terms, Type, TypeView, View};

/// Plans the functions that `name` needs, each behind those that it needs itself, but for those that are planned. Those of a circle have
/// their numbers before they are planned.
pub(super) fn add_routines(module: &Module, name: Symbol, shared: &mut Shared) {
    for Needed { members, is_circle } in needed(module, name, shared) {
        let first = shared.routines.len();
        let mut planned = Ok(None);
        if is_circle {
            planned = circle_of(module, &members, first);
            for (at, &member) in members.iter().enumerate() {
                shared.routine_numbers.insert(member, Ok(first + at));
            }
        }
        for &member in &members {
            planned = planned.and_then(|circle| {
                add_routine(module, member, circle, shared)?;
                Ok(circle)
            });
        }
        match planned {
            Ok(_) if is_circle => {}
            Ok(_) => {
                shared.routine_numbers.insert(members[0], Ok(first));
            }
            Err(error) => {
                shared.routines.truncate(first);
                for member in members {
                    shared.routine_numbers.insert(member, Err(error.clone()));
                }
            }
        }
    }
}

/// The circle of some functions.
fn circle_of(
    module: &Module,
    members: &[Symbol],
    number: usize,
) -> Result<Option<Circle>, PlanError> {
    let functions = members.iter().filter_map(|&member| module.get(member));
    let depth = depth_of(functions.map(|function| &**function));
    let depth = depth.map_err(|problem| PlanError::Binding {
        function: module.cx().terms().str(members[0]).to_owned(),
        place: "its attributes".to_owned(),
        problem: Box::new(problem),
    })?;
    Ok(Some(Circle { number, depth }))
}

/// Plans a function behind those that are planned.
fn add_routine(
    module: &Module,
    name: Symbol,
    circle: Option<Circle>,
    shared: &mut Shared,
) -> Result<(), PlanError> {
    let text = module.cx().terms().str(name);
    let Some(function) = module.get(name) else {
        return Err(PlanError::NoEntry { name: text.to_owned(), found: Vec::new() });
    };
    let mut planner = Planner::new(module, function, std::mem::take(shared));
    let planned = planner.run_routine(text).map_err(|problem| planner.error(text, problem));
    let sizes = std::mem::take(&mut planner.sizes);
    *shared = std::mem::take(&mut planner.shared);
    shared.routines.push((Routine { circle, ..planned? }, sizes));
    Ok(())
}

/// What a call gives to a graph function.
pub(super) struct Given {
    pub(super) args: Vec<Arg>,
    /// What the symbols of the parameters stand for.
    pub(super) symbols: Vec<(Symbol, Size)>,
}

impl<'a> Planner<'a> {
    /// Whether `name` is a graph function.
    pub(super) fn is_graph(&self, name: Symbol) -> bool {
        self.module.get(name).is_some_and(|function| !function.is_prim())
    }

    /// The plan of a function that others call.
    fn run_routine(&mut self, name: &str) -> Step<Routine> {
        let View::Function { params, body: result, .. } = self.body.view(self.body.root()) else {
            return malformed("it is no graph function");
        };
        let names = symbols_of_params(self.function, self.body.terms());
        for (at, &name) in names.iter().enumerate() {
            let number = self.sizes.step(SizeStep::Given(at));
            self.symbols.insert(name, number);
        }
        // What it asks of numbers is asked where it runs.
        self.depth = 1;
        let mut inputs = 0;
        for param in params.iter() {
            let Some(ty) = self.body.ty(param) else { return malformed("a parameter has no type") };
            let value = self.parameter(ty, &mut inputs)?;
            self.values[param.index()] = Some(value);
        }
        let result = self.body_of(result)?;
        let results = self.flatten(result)?;
        let types = results_of(self.function, self.body.terms());
        for (at, &result) in results.iter().enumerate() {
            let is_said = types.get(at).is_some_and(|&ty| !self.is_unsized(ty));
            if is_said && self.is_open_tensor(result) {
                let what = format!("result {at}, whose size only the call of the function finds,");
                let help = "a function gives what its arguments say the size of, or a tensor of unknown rank";
                return unsupported(&what, help);
            }
        }
        let (body, taken) = self.finish_body(&results, Some(&types))?;
        let (outputs, numbers) = (results.len(), names.len());
        Ok(Routine { name: name.to_owned(), inputs, outputs, numbers, body, taken, circle: None })
    }

    /// What a parameter of a type stands for; `inputs` counts the tensors.
    fn parameter(&mut self, ty: Type, inputs: &mut usize) -> Step<Value> {
        self.build(ty, &mut |planner, ty| {
            *inputs += 1;
            planner.tensor(Home::Input(*inputs - 1), 0, ty)
        })
    }

    /// A function with values for its last parameters.
    pub(super) fn closure(&mut self, args: Args<'a>) -> Step<Value> {
        let Some(function) = args.get(0) else { return malformed("a closure of nothing") };
        let Value::Closure(number) = self.resolve(function)? else {
            return malformed("a closure of no function");
        };
        let Closure { function, captured } = self.closures[number].clone();
        let captured = self.typed(args.skip(1))?.into_iter().chain(captured).collect();
        self.closures.push(Closure { function, captured });
        Ok(Value::Closure(self.closures.len() - 1))
    }

    /// Values with their types.
    pub(super) fn typed(&mut self, args: Args<'a>) -> Step<Vec<(Value, Type)>> {
        let mut typed = Vec::with_capacity(args.len());
        for arg in args.iter() {
            let Some(ty) = self.body.ty(arg) else { return malformed("an argument has no type") };
            let value = match self.is_known_shape(arg) {
                true => self.tuple(Vec::new()),
                false => self.resolve(arg)?,
            };
            typed.push((value, ty));
        }
        Ok(typed)
    }

    /// Calls what a value is.
    pub(super) fn call_value(
        &mut self,
        callee: Expr,
        args: Args<'a>,
        result: Option<Type>,
    ) -> Step<Value> {
        if let View::Extern { name } = self.body.view(callee) {
            let what = format!("a call of the external function `{}`", self.body.terms().str(name));
            return unsupported(&what, "only functions of the module can be called");
        }
        let Value::Closure(closure) = self.resolve(callee)? else {
            let help = "which function it is must be known where it is called";
            return unsupported("a call of a function that is chosen at run time", help);
        };
        let Closure { function: name, captured } = self.closures[closure].clone();
        let mut given = self.typed(args)?;
        given.extend(captured);
        let (number, function) = self.routine(name)?;
        let Given { mut args, symbols } = self.give(name, &function, &given)?;
        let Some(ty) = result else { return malformed("a call has no type") };
        let (value, results) = self.joined(ty)?;
        let taken: Vec<usize> =
            results.iter().copied().filter(|&it| self.is_unsized(self.tensors[it].ty)).collect();
        self.check_taken(number, &results)?;
        args.extend(results.into_iter().map(|it| match taken.contains(&it) {
            true => Arg::Taken(it),
            false => Arg::Tensor(it),
        }));
        let source = self.source_of_call(&function);
        let symbols = symbols.into_iter().map(|(_, size)| size).collect();
        let call = PlannedCall { callee: Callee::Routine(number), args, symbols, source };
        self.actions.push(PlannedAction::Call(call));
        self.actions.extend(taken.into_iter().map(PlannedAction::Keep));
        Ok(value)
    }

    /// That a routine takes the memory of those results whose types here say nothing of their sizes.
    pub(super) fn check_taken(&self, number: usize, results: &[usize]) -> Step<()> {
        // Of a circle one may be planned later, whose results have the sizes that its types say.
        let taken = self.shared.routines.get(number).map_or(&[][..], |it| &it.0.taken);
        let taken: Vec<usize> = taken.iter().map(|it| it.output).collect();
        let is_unsized = |&at: &usize| self.is_unsized(self.tensors[results[at]].ty);
        match (0..results.len()).filter(is_unsized).eq(taken) {
            true => Ok(()),
            false => malformed("a function gives results of other sizes than where it is called"),
        }
    }

    /// The number of the routine of a graph function.
    pub(super) fn routine(&self, name: Symbol) -> Step<(usize, Arc<Function>)> {
        let text = self.body.terms().str(name);
        let Some(function) = self.module.get(name).filter(|function| !function.is_prim()) else {
            return Err(PlanProblem::NoProgram { name: text.to_owned() });
        };
        match self.shared.routine_numbers.get(&name) {
            Some(Ok(number)) => Ok((*number, Arc::clone(function))),
            // Of a chain of calls, the one that is wrong.
            Some(Err(PlanError::Binding { problem, .. }))
                if matches!(**problem, PlanProblem::Callee(_)) =>
            {
                Err((**problem).clone())
            }
            Some(Err(error)) => Err(PlanProblem::Callee(Box::new(error.clone()))),
            None => malformed(format!("`{text}` is not planned before what calls it")),
        }
    }

    /// The arguments of a call of a graph function, and what the symbols of its parameters stand for.
    pub(super) fn give(
        &mut self,
        name: Symbol,
        function: &Function,
        given: &[(Value, Type)],
    ) -> Step<Given> {
        let program = self.body.terms().str(name).to_owned();
        let params = function.params();
        if params.len() != given.len() {
            let (expected, found) = (params.len(), given.len());
            return Err(PlanProblem::Count { program, expected, found });
        }
        let (mut args, mut met) = (Vec::new(), Vec::new());
        for (index, (&param, &given)) in params.iter().zip(given).enumerate() {
            let expected = function.view().ty(param);
            let fits = match expected {
                Some(expected) => self.give_one(expected, given, &mut args, &mut met)?,
                None => return malformed(format!("parameter {index} of `{program}` has no type")),
            };
            if !fits {
                let terms = self.body.terms();
                let expected = expected.map_or(String::new(), |ty| terms.type_text(ty));
                let found = terms.type_text(given.1);
                return Err(PlanProblem::Argument { program, index, expected, found });
            }
        }
        let terms = function.cx().terms();
        let names = symbols_of_params(function, terms);
        let symbols: Bindings = self.bind_call(&program, terms, &names, &met)?;
        let symbols = names.into_iter().map(|name| (name, symbols[&name])).collect();
        Ok(Given { args, symbols })
    }

    /// The arguments that a value is for a parameter of type `expected`; false where it does not fit.
    fn give_one(
        &mut self,
        expected: Type,
        given: (Value, Type),
        args: &mut Vec<Arg>,
        met: &mut Vec<(Dim, Size)>,
    ) -> Step<bool> {
        let terms = self.body.terms();
        let mut pending = vec![(expected, given)];
        while let Some((expected, (value, ty))) = pending.pop() {
            match (terms.ty(expected), terms.ty(ty), value) {
                (TypeView::Tuple(types), TypeView::Tuple(of), Value::Tuple(tuple))
                    if types.len() == of.len() && of.len() == self.tuples[tuple].len() =>
                {
                    let fields = self.tuples[tuple].iter().copied().zip(of.iter().copied());
                    pending.extend(types.iter().copied().zip(fields).rev());
                }
                (TypeView::Shape(Some(expected)), TypeView::Shape(Some(found)), _)
                    if expected.len() == found.len() =>
                {
                    for (&expected, &found) in expected.iter().zip(found) {
                        met.push((expected, self.size(found)?));
                    }
                }
                (_, _, Value::Tensor(tensor)) => {
                    if !self.takes(expected, Arg::Tensor(tensor), met)? {
                        return Ok(false);
                    }
                    args.push(Arg::Tensor(tensor));
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The types of the tensors that a graph function gives, in its own symbols.
pub(super) fn results_of(function: &Function, terms: Terms<'_>) -> Vec<Type> {
    let body = function.view();
    let result = match body.view(body.root()) {
        View::Function { body: value, result, .. } => result.or(body.ty(value)),
        _ => None,
    };
    let (mut pending, mut tensors) = (Vec::from_iter(result), Vec::new());
    while let Some(ty) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Tuple(fields) => pending.extend(fields.iter().rev()),
            TypeView::Tensor { .. } => tensors.push(ty),
            _ => {}
        }
    }
    tensors
}

/// The symbols of the types of a graph function's parameters, in the order in which they are met.
fn symbols_of_params(function: &Function, terms: Terms<'_>) -> Vec<Symbol> {
    let params = function.params();
    let types = params.iter().filter_map(|&param| function.view().ty(param));
    let mut pending: Vec<Type> = types.collect();
    pending.reverse();
    let mut dims = Vec::new();
    while let Some(ty) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Tensor { dims: Some(own), .. } | TypeView::Shape(Some(own)) => {
                dims.extend_from_slice(own);
            }
            TypeView::Tuple(fields) => pending.extend(fields.iter().rev()),
            _ => {}
        }
    }
    symbols_in(terms, dims).collect()
}
