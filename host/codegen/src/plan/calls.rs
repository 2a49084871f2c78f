//! Calls of tensor programs, checked against what the programs take.

use std::sync::Arc;

use super::memory::Home;
use super::sizes::{Agreement, Bindings, Size};
use super::{
    Arg, Callee, PlanProblem, PlannedAction, PlannedCall, Planner, Shared, Step, malformed,
    unsupported,
};
use tenon_ir::{
    Args, Context, Dim, Function, NodeSource, Symbol, Terms, Type, TypeView, View, symbols_of,
};

impl<'a> Planner<'a> {
    /// The arguments of a call, tuples flattened.
    pub(super) fn arguments(&mut self, args: Args<'a>) -> Step<Vec<Arg>> {
        let mut all = Vec::with_capacity(args.len());
        for arg in args.iter() {
            if let View::Prim { dim } = self.body.view(arg) {
                all.push(Arg::Scalar(self.size(dim)?));
                continue;
            }
            let value = self.resolve(arg)?;
            all.extend(self.flatten(value)?.into_iter().map(Arg::Tensor));
        }
        Ok(all)
    }

    /// Notes a call, whose arguments must be what the program takes.
    pub(super) fn call_program(&mut self, name: Symbol, args: Vec<Arg>) -> Step<()> {
        let terms = self.body.terms();
        let program = terms.str(name).to_owned();
        let function = match self.module.get(name) {
            Some(function) if function.is_prim() => function,
            Some(_) | None => return Err(PlanProblem::NoProgram { name: program }),
        };
        let View::PrimFunc { params, outputs, .. } = function.view().view(function.view().root())
        else {
            return malformed("a tensor program that is none");
        };
        if params.len() != args.len() {
            let (expected, found) = (params.len(), args.len());
            return Err(PlanProblem::Count { program, expected, found });
        }
        let first_output = params.len() - outputs;
        let symbols = self.match_arguments(&program, function, &args)?;
        for (index, &arg) in args.iter().enumerate() {
            if index < first_output {
                continue;
            }
            let Arg::Tensor(written) = arg else { return malformed("a scalar is written") };
            let written = self.tensors[written].memory;
            let what = match written.home {
                Home::Input(_) => Some("an input of the function"),
                Home::Constant(_) => Some("a constant"),
                Home::Storage(_) => None,
            };
            if let Some(what) = what {
                return Err(PlanProblem::ReadOnly { program, index, what });
            }
            let overlaps = |&(_, arg): &(usize, &Arg)| match *arg {
                Arg::Tensor(other) => self.tensors[other].memory.overlaps(&written),
                Arg::Scalar(_) | Arg::Taken(_) => false,
            };
            let others = args.iter().enumerate().filter(|&(other, _)| other != index);
            if let Some((other, _)) = others.clone().find(overlaps) {
                return Err(PlanProblem::Overlap {
                    program,
                    a: other.min(index),
                    b: other.max(index),
                });
            }
        }
        let Shared { programs, program_numbers, .. } = &mut self.shared;
        let number = *program_numbers.entry(name).or_insert_with(|| {
            programs.push((program, Arc::clone(function)));
            programs.len() - 1
        });
        let source = self.source_of_call(function);
        let call = PlannedCall { callee: Callee::Kernel(number), args, symbols, source };
        self.actions.push(PlannedAction::Call(call));
        Ok(())
    }

    /// What the call in work came from; where nobody knows, what its callee did.
    pub(super) fn source_of_call(&self, function: &Function) -> NodeSource {
        let of_call = self.at.map_or(NodeSource::NONE, |at| self.body.source(at));
        match of_call.is_none() {
            true => function.view().source(function.view().root()),
            false => of_call,
        }
    }

    /// Compares the arguments with what the program takes; gives what the symbols of its parameters stand for.
    fn match_arguments(
        &mut self,
        program: &str,
        function: &Function,
        args: &[Arg],
    ) -> Step<Vec<Size>> {
        let (body, terms) = (function.view(), function.cx().terms());
        let mut types = Vec::with_capacity(args.len());
        let mut met: Vec<(Dim, Size)> = Vec::new();
        for (index, (&param, &arg)) in function.params().iter().zip(args).enumerate() {
            let Some(expected) = body.ty(param) else {
                return malformed(format!("parameter {index} of `{program}` has no type"));
            };
            if !self.takes(expected, arg, &mut met)? {
                let found = match arg {
                    Arg::Tensor(tensor) | Arg::Taken(tensor) => {
                        terms.type_text(self.tensors[tensor].ty)
                    }
                    Arg::Scalar(Size::Known(value)) => format!("the integer {value}"),
                    Arg::Scalar(Size::Computed(_)) => "an integer".to_owned(),
                };
                let (program, expected) = (program.to_owned(), terms.type_text(expected));
                return Err(PlanProblem::Argument { program, index, expected, found });
            }
            types.push(expected);
        }
        let names = symbols_of(terms, types);
        let symbols = self.bind_call(program, terms, &names, &met)?;
        Ok(names.iter().map(|symbol| symbols[symbol]).collect())
    }

    /// What the symbols of a callee stand for, which has met these dimensions of its parameters.
    pub(super) fn bind_call(
        &mut self,
        program: &str,
        terms: Terms<'_>,
        names: &[Symbol],
        met: &[(Dim, Size)],
    ) -> Step<Bindings> {
        let mut symbols = Bindings::default();
        let mut expected = self.sizes.bind(terms, met, &mut symbols);
        if expected.contains(&None) {
            // Such as those of `n*m`. What passes wrote for this function has its symbols.
            for &name in names {
                if let Some(&size) = self.symbols.get(&name) {
                    symbols.entry(name).or_insert(size);
                }
            }
            expected = met.iter().map(|&(dim, _)| self.sizes.dim(terms, dim, &symbols)).collect();
        }
        for (&(dim, found), expected) in met.iter().zip(expected) {
            let Some(expected) = expected else { return self.unbound(program, terms, dim) };
            if expected != found {
                let what = format!("`{}` of @{program}", terms.dim_text(dim));
                self.agree(Agreement::Equal(expected, found), Some(what));
            }
        }
        Ok(symbols)
    }

    /// Whether an argument may be what is expected; `met` gets the dimensions that only a call can compare.
    pub(super) fn takes(
        &mut self,
        expected: Type,
        arg: Arg,
        met: &mut Vec<(Dim, Size)>,
    ) -> Step<bool> {
        let terms = self.body.terms();
        let tensor = match arg {
            Arg::Scalar(_) => return Ok(terms.scalar(expected).is_some()),
            Arg::Tensor(tensor) | Arg::Taken(tensor) => self.tensors[tensor],
        };
        if let TypeView::Tensor { dtype, dims: None } = terms.ty(expected) {
            let found = match terms.ty(tensor.ty) {
                TypeView::Tensor { dtype, .. } => Some(dtype),
                _ => None,
            };
            return Ok(found == Some(dtype));
        }
        let (Some((dtype, dims)), Some((found, given))) =
            (terms.tensor(expected), terms.tensor(tensor.ty))
        else {
            return Ok(false);
        };
        if dtype != found {
            return Ok(false);
        }
        let is_known = |dims: &[Dim]| dims.iter().all(|&dim| terms.dim_value(dim).is_some());
        if is_known(dims) && is_known(given) {
            return Ok(self.bytes(expected)? == tensor.memory.bytes);
        }
        if dims.len() != given.len() {
            return Ok(false);
        }
        for (&dim, &given) in dims.iter().zip(given) {
            let found = self.size(given)?;
            if let (Some(dim), Some(found)) = (terms.dim_value(dim), found.known())
                && dim != found
            {
                return Ok(false);
            }
            met.push((dim, found));
        }
        Ok(true)
    }

    /// That a symbol of a program stands for nothing.
    fn unbound<T>(&self, program: &str, terms: Terms<'_>, dim: Dim) -> Step<T> {
        let what =
            format!("`{program}`, whose dimension {} no argument says,", terms.dim_text(dim));
        unsupported(&what, "give a parameter the dimension itself, or a multiple of it")
    }
}
