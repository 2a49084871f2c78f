//! What others ask of the evaluator.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use tenon_ir::{BodyView, Constant, Context, Cx, DType, Expr, Module, Symbol, TypeView};

use super::machine::Machine;
use super::program::Program;
use super::{EvalError, Limits, Value};

/// Evaluates functions of a module.
///
/// ```ignore
/// let result = Evaluator::new(&module).call("main", vec![Value::Tensor(x)])?;
/// ```
#[derive(Debug)]
pub struct Evaluator<'m> {
    module: &'m Module,
    programs: HashMap<Symbol, Arc<Program>, FxBuildHasher>,
    limits: Limits,
    has_memory: bool,
}

impl<'m> Evaluator<'m> {
    /// An evaluator of the functions of `module`.
    pub fn new(module: &'m Module) -> Self {
        Self { module, programs: HashMap::default(), limits: Limits::default(), has_memory: false }
    }

    /// Sets how much an evaluation may take.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The result of function `name` on these arguments. For a tensor program they are the inputs, and the
    /// result is its outputs: a tensor, or a tuple if there are several. A shape may be given as a tensor of its extents.
    pub fn call(&mut self, name: &str, args: Vec<Value>) -> Result<Value, EvalError> {
        let args = self.as_declared(name, args);
        let mut machine =
            Machine::new(self.module.cx(), Some(self.module), &mut self.programs, self.limits);
        let result = machine
            .call_global(self.module.cx().symbol(name), args, None)
            .map_err(|problem| EvalError {
                function: None,
                node: Expr(0),
                span: 0,
                problem: Box::new(problem),
            })
            .and_then(|()| machine.run());
        self.has_memory |= machine.budget.has_memory();
        result
    }

    /// Arguments as the function declares them: a parameter that is a shape may be given as a tensor of its extents.
    fn as_declared(&self, name: &str, args: Vec<Value>) -> Vec<Value> {
        let Some(function) = self.module.get_str(name) else { return args };
        let terms = self.module.cx().terms();
        let is_shape = |param: Expr| {
            let ty = function.view().ty(param).map(|ty| terms.ty(ty));
            matches!(ty, Some(TypeView::Shape(_)))
        };
        let shapes: Vec<bool> = function.params().into_iter().map(is_shape).collect();
        let given = args.into_iter().enumerate().map(|(at, arg)| match &arg {
            Value::Tensor(tensor)
                if shapes.get(at) == Some(&true) && tensor.dtype() == DType::I64 =>
            {
                Value::Shape(tensor.elements::<i64>().to_vec())
            }
            _ => arg,
        });
        given.collect()
    }

    /// Whether something that was evaluated made memory, whose contents count only where they were written.
    pub fn has_memory(&self) -> bool {
        self.has_memory
    }
}

/// The value of one expression without variables, such as a call with constant operands. `constants` are
/// those of the body; a module is needed only when the expression calls functions of it.
pub fn evaluate_expr(
    cx: &Cx,
    body: BodyView<'_>,
    constants: &[Arc<Constant>],
    module: Option<&Module>,
    expr: Expr,
) -> Result<Value, EvalError> {
    let mut programs = HashMap::default();
    let mut machine = Machine::new(cx, module, &mut programs, Limits::default());
    machine.run_alone(body, constants, expr)
}
