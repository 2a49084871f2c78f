//! Tensor programs as the machine runs them: each is compiled once.

use std::sync::Arc;

use super::super::program::{Program, ProgramError};
use super::super::value::Place;
use super::super::{EvalProblem, Tuple, Value};
use super::{Machine, Step};
use tenon_ir::{Context, Function, Symbol};

impl<'a> Machine<'a, '_> {
    /// Runs a tensor program on values for its parameters, outputs included.
    pub(crate) fn run_program(&mut self, name: Symbol, func: &Function, args: &[Value]) -> Step {
        let program = self.compiled(name, func)?;
        program.run(self.cx, args, &mut self.budget).map_err(of_program)
    }

    /// Runs a tensor program on its inputs; the result is its outputs.
    pub(super) fn run_with_outputs(
        &mut self,
        name: Symbol,
        func: &Function,
        mut args: Vec<Value>,
    ) -> Step<Value> {
        let program = self.compiled(name, func)?;
        let types = program.output_types(self.cx, &args).map_err(of_program)?;
        let mut outputs = Vec::with_capacity(types.len());
        for ty in types {
            outputs.push(Value::Place(Place::alloc(self.cx, ty, &self.budget)?));
        }
        args.extend(outputs.iter().cloned());
        program.run(self.cx, &args, &mut self.budget).map_err(of_program)?;
        match outputs.len() {
            1 => Ok(outputs.remove(0)),
            _ => Ok(Value::Tuple(Tuple::new(outputs))),
        }
    }

    fn compiled(&mut self, name: Symbol, func: &Function) -> Step<Arc<Program>> {
        if let Some(program) = self.programs.get(&name) {
            return Ok(program.clone());
        }
        let program = Arc::new(Program::compile(func).map_err(EvalProblem::Program)?);
        self.programs.insert(name, program.clone());
        Ok(program)
    }

    /// The tensor program called `name`.
    pub(crate) fn program(&self, name: Symbol) -> Step<&'a Function> {
        match self.module.and_then(|module| module.get(name)) {
            Some(func) if func.is_prim() => Ok(func),
            _ => Err(EvalProblem::UnknownFunction(self.cx.terms().str(name).to_owned())),
        }
    }
}

/// A limit is the same one inside of a program.
fn of_program(error: ProgramError) -> EvalProblem {
    match error {
        ProgramError::Limit(limit) => EvalProblem::Limit(limit),
        error => EvalProblem::Program(error),
    }
}
