//! Calls of tensor programs, checked against what the programs take.

use std::sync::Arc;

use super::memory::Home;
use super::{Arg, PlanProblem, Planner, Step, malformed, unsupported};
use crate::ir::{Args, BodyView, Expr, NodeSource, Symbol, View};

impl<'a> Planner<'a> {
    /// The arguments of a call, tuples flattened.
    pub(super) fn arguments(&mut self, args: Args<'a>) -> Step<Vec<Arg>> {
        let mut all = Vec::with_capacity(args.len());
        for arg in args.iter() {
            if let View::Prim { dim } = self.body.view(arg) {
                let terms = self.body.terms();
                let value = terms.dim_value(dim).ok_or_else(|| self.symbolic(dim))?;
                all.push(Arg::Scalar(value));
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
            Some(_) => {
                let what = format!("a call of the graph function `{program}`");
                return unsupported(
                    &what,
                    "a private function that does not call itself is inlined",
                );
            }
            None => return Err(PlanProblem::NoProgram { name: program }),
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
        for (index, (param, &arg)) in params.iter().zip(&args).enumerate() {
            self.check_argument(&program, index, function.view(), param, arg)?;
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
                Arg::Scalar(_) => false,
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
        let number = *self.program_numbers.entry(name).or_insert_with(|| {
            self.programs.push((program, Arc::clone(function)));
            self.programs.len() - 1
        });
        self.calls.push((number, args));
        let of_program = function.view().source(function.view().root());
        let of_call = self.at.map_or(NodeSource::NONE, |at| self.body.source(at));
        self.sources.push(if of_call.is_none() { of_program } else { of_call });
        Ok(())
    }

    fn check_argument(
        &self,
        program: &str,
        index: usize,
        body: BodyView<'_>,
        param: Expr,
        arg: Arg,
    ) -> Step<()> {
        let terms = body.terms();
        let Some(expected) = body.ty(param) else {
            return malformed(format!("parameter {index} of `{program}` has no type"));
        };
        let agrees = match (arg, terms.static_tensor(expected)) {
            (Arg::Tensor(tensor), Some((dtype, _))) => {
                let found = self.tensors[tensor];
                let found_dtype = terms.static_tensor(found.ty).map(|(dtype, _)| dtype);
                found_dtype == Some(dtype) && self.bytes(expected)? == found.memory.bytes
            }
            (Arg::Scalar(_), None) => terms.scalar(expected).is_some(),
            _ => false,
        };
        if agrees {
            return Ok(());
        }
        let found = match arg {
            Arg::Tensor(tensor) => terms.type_text(self.tensors[tensor].ty),
            Arg::Scalar(value) => format!("the integer {value}"),
        };
        let (program, expected) = (program.to_owned(), terms.type_text(expected));
        Err(PlanProblem::Argument { program, index, expected, found })
    }
}
