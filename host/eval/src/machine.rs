//! The evaluation of graph functions, with stacks of its own.
//!
//! Each node is evaluated when it is first needed and at most once in its function's environment; of a
//! choice only the branch taken, and bindings in their order.

mod programs;
mod trips;

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use tenon_ir::op_names::vm::{INVOKE_CLOSURE, MATCHES_PARAMETERS};
use tenon_ir::op_names::{CALL_PURE, LOOP};
use tenon_ir::{
    BodyView, Constant, Context, Cx, Dim, Expr, Function, Module, Symbol, Type, View, substitute,
};

use super::budget::Budget;
use super::env::{Env, Envs, matches, mismatch};
use super::program::Program;
use super::value::{Callee, FunctionValue};
use super::{EvalError, EvalProblem, Limits, Tuple, Value};
use trips::Trips;

/// A body that is evaluated.
#[derive(Clone, Copy)]
pub(super) struct Code<'a> {
    pub(super) body: BodyView<'a>,
    constants: &'a [Arc<Constant>],
    name: Option<Symbol>,
}

impl<'a> Code<'a> {
    fn of(func: &'a Function, name: Symbol) -> Self {
        Self { body: func.view(), constants: func.constants(), name: Some(name) }
    }
}

/// A function that runs.
struct Frame<'a> {
    code: Code<'a>,
    env: usize,
    tasks: Vec<Task>,
    /// The node whose value is the result.
    result: Expr,
    /// The declared type of the result.
    declared: Option<Type>,
    /// Whether values are compared with types. A function that matches its parameters itself does that with what it
    /// is made of, and what stands alone may have types of its time.
    is_typed: bool,
    /// Whose value it is; nobody's at the bottom.
    caller: Option<Caller>,
}

/// What a result is for, in the frame below.
#[derive(Clone, Copy)]
pub(super) enum Caller {
    /// It is the value of a node.
    Node(Expr),
    /// It is that of a trip of a loop.
    Trip,
}

enum Task {
    /// Evaluate a node.
    Need(Expr),
    /// Evaluate the bindings of a `let` from this one on, then its result.
    Bindings(Expr, usize),
    /// Make the next trip of a loop.
    Trip(Box<Trips>),
}

pub(super) struct Machine<'a, 'p> {
    pub(super) cx: &'a Cx,
    module: Option<&'a Module>,
    programs: &'p mut HashMap<Symbol, Arc<Program>, FxBuildHasher>,
    envs: Envs,
    frames: Vec<Frame<'a>>,
    /// The result of the last function that ended at the bottom.
    result: Option<Value>,
    /// What the trip of a loop that was made last gave.
    trip: Option<Value>,
    /// The bodies that closures belong to, by the environment they were made in.
    codes: HashMap<usize, Code<'a>, FxBuildHasher>,
    pub(super) budget: Budget,
}

type Step<T = ()> = Result<T, EvalProblem>;

impl<'a, 'p> Machine<'a, 'p> {
    pub(super) fn new(
        cx: &'a Cx,
        module: Option<&'a Module>,
        programs: &'p mut HashMap<Symbol, Arc<Program>, FxBuildHasher>,
        limits: Limits,
    ) -> Self {
        Self {
            cx,
            module,
            programs,
            envs: Envs::default(),
            frames: Vec::new(),
            result: None,
            trip: None,
            codes: HashMap::default(),
            budget: Budget::new(limits),
        }
    }

    /// The value of an expression that stands alone.
    pub(super) fn run_alone(
        &mut self,
        body: BodyView<'a>,
        constants: &'a [Arc<Constant>],
        expr: Expr,
    ) -> Result<Value, EvalError> {
        let env = self.envs.add(Env::default());
        self.frames.push(Frame {
            code: Code { body, constants, name: None },
            env,
            tasks: vec![Task::Need(expr)],
            result: expr,
            declared: None,
            is_typed: false,
            caller: None,
        });
        self.run()
    }

    /// The value of what was called.
    pub(super) fn run(&mut self) -> Result<Value, EvalError> {
        while let Some(frame) = self.frames.last_mut() {
            let (code, result) = (frame.code, frame.result);
            let next = frame.tasks.pop();
            let (node, step) = match next {
                Some(Task::Need(expr)) => (expr, self.evaluate(expr)),
                Some(Task::Bindings(expr, next)) => (expr, self.bind(expr, next)),
                Some(Task::Trip(trips)) => (trips.node, self.make_trip(trips)),
                None => (result, self.leave()),
            };
            step.map_err(|problem| EvalError {
                function: code.name.map(|name| code.body.terms().str(name).to_owned()),
                node,
                span: code.body.raw_node(node).span,
                problem: Box::new(problem),
            })?;
        }
        Ok(settle(self.result.take().unwrap_or_else(Value::unit)))
    }

    fn frame(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("a step belongs to a frame")
    }

    pub(super) fn code(&self) -> Code<'a> {
        self.frames.last().expect("a step belongs to a frame").code
    }

    fn env(&self) -> usize {
        self.frames.last().expect("a step belongs to a frame").env
    }

    /// Says what a symbol stands for from here on.
    pub(super) fn bind_symbol(&mut self, name: Symbol, value: i64) {
        let (env, dim) = (self.env(), self.cx.dim(value));
        self.envs.get_mut(env).dims.insert(name, dim);
    }

    /// The value of a node, if it is known or known at once.
    fn known(&mut self, expr: Expr) -> Step<Option<Value>> {
        let (code, env) = (self.code(), self.env());
        Ok(Some(match code.body.view(expr) {
            View::Var { name } => match self.envs.variable(env, expr) {
                Some(value) => value,
                None => return Err(EvalProblem::Unbound(code.body.terms().str(name).to_owned())),
            },
            View::Constant(constant) => {
                let tensor = code
                    .constants
                    .get(constant.index as usize)
                    .and_then(|constant| constant.to_tensor(self.cx.terms()));
                Value::Tensor(tensor.ok_or(EvalProblem::UnknownNode("a broken constant"))?)
            }
            View::Shape { ty } => self.shape(self.substituted(ty))?,
            View::Prim { dim } => {
                let dims = &self.envs.get(env).dims;
                let dim = Dim(substitute(self.cx, dim.into(), dims).0);
                let text = || EvalProblem::UnknownDim(self.cx.terms().dim_text(dim));
                Value::Scalar(self.cx.terms().dim_value(dim).ok_or_else(text)?)
            }
            View::Global { name } => Value::Function(FunctionValue(Callee::Global(name))),
            // What is called directly; a call looks at the node itself.
            View::Op { .. } | View::Extern { .. } => Value::unit(),
            _ => return Ok(self.envs.get(env).values.get(&expr).cloned()),
        }))
    }

    fn shape(&self, ty: Type) -> Step<Value> {
        let terms = self.cx.terms();
        let dims: Option<Vec<i64>> =
            terms.children(ty).iter().map(|&dim| terms.dim_value(Dim(dim.0))).collect();
        dims.map(Value::Shape).ok_or_else(|| EvalProblem::UnknownDim(terms.type_text(ty)))
    }

    /// A type with the dimensions that its symbols stand for.
    pub(super) fn substituted(&self, ty: Type) -> Type {
        Type(substitute(self.cx, ty.into(), &self.envs.get(self.env()).dims).0)
    }

    /// The attributes of a node with the dimensions that symbols stand for.
    pub(super) fn attrs(&self, expr: Expr) -> tenon_ir::Attrs {
        let attrs = self.code().body.attrs(expr);
        tenon_ir::Attrs(substitute(self.cx, attrs.into(), &self.envs.get(self.env()).dims).0)
    }

    /// The value of an operand that was evaluated before.
    fn operand(&mut self, expr: Expr) -> Step<Value> {
        self.known(expr)?.ok_or(EvalProblem::UnknownNode("an operand behind its user"))
    }

    pub(super) fn set(&mut self, expr: Expr, value: Value) {
        let env = self.env();
        self.envs.get_mut(env).values.insert(expr, value);
    }

    /// Evaluates a node, or puts what it needs onto the stack and comes again.
    fn evaluate(&mut self, expr: Expr) -> Step {
        let body = self.code().body;
        match body.view(expr) {
            View::If { cond, then, otherwise } => return self.choose(expr, cond, then, otherwise),
            View::Let(_) => {
                self.frame().tasks.push(Task::Bindings(expr, 0));
                return Ok(());
            }
            View::Function { .. } => {
                let env = self.env();
                self.envs.get_mut(env).is_captured = true;
                self.codes.insert(env, self.code());
                let closure = Callee::Closure { function: expr, env };
                self.set(expr, Value::Function(FunctionValue(closure)));
                return Ok(());
            }
            _ => {}
        }
        if self.known(expr)?.is_some() || !self.has_operands(expr)? {
            return Ok(());
        }
        match body.view(expr) {
            View::Tuple(fields) => {
                let fields = fields.iter().map(|field| self.operand(field)).collect::<Step<_>>()?;
                self.set(expr, Value::Tuple(Tuple::new(fields)));
                Ok(())
            }
            View::TupleGetItem { tuple, index } => {
                let Value::Tuple(tuple) = self.operand(tuple)? else {
                    return Err(EvalProblem::UnknownNode("a field of what is no tuple"));
                };
                let count = tuple.fields().len();
                let field = tuple.fields().get(index).cloned();
                self.set(expr, field.ok_or(EvalProblem::NoField { index, count })?);
                Ok(())
            }
            View::Call { callee, args, .. } => {
                let (callee, args) = match body.op_name(callee) {
                    Some(CALL_PURE | INVOKE_CLOSURE) if !args.is_empty() => {
                        (args.at(0), args.skip(1))
                    }
                    _ => (callee, args),
                };
                let values = args.iter().map(|arg| self.operand(arg)).collect::<Step<Vec<_>>>()?;
                match body.view(callee) {
                    View::Op { .. } if body.op_name(callee) == Some(LOOP) => {
                        self.begin_loop(expr, values)
                    }
                    View::Op { name } => {
                        let value = self.call_op(expr, name, values)?;
                        self.set(expr, value);
                        Ok(())
                    }
                    View::Extern { name } => {
                        Err(EvalProblem::Extern(body.terms().str(name).to_owned()))
                    }
                    _ => match self.operand(callee)? {
                        Value::Function(function) => {
                            self.call(function.0, values, Some(Caller::Node(expr)))
                        }
                        other => Err(EvalProblem::WrongValue("a function", other.kind())),
                    },
                }
            }
            _ => Err(EvalProblem::UnknownNode(body.kind(expr).name())),
        }
    }

    /// Whether all operands have values. If not, they go onto the stack, and the node below them.
    fn has_operands(&mut self, expr: Expr) -> Step<bool> {
        let body = self.code().body;
        let mut missing = Vec::new();
        for operand in body.operands(expr).iter() {
            if self.known(operand)?.is_none() {
                missing.push(operand);
            }
        }
        if missing.is_empty() {
            return Ok(true);
        }
        let tasks = &mut self.frame().tasks;
        tasks.push(Task::Need(expr));
        tasks.extend(missing.into_iter().rev().map(Task::Need));
        Ok(false)
    }

    fn choose(&mut self, expr: Expr, cond: Expr, then: Expr, otherwise: Expr) -> Step {
        if self.known(expr)?.is_some() {
            return Ok(());
        }
        let needed = match self.known(cond)? {
            None => cond,
            Some(value) => {
                let is_true = value
                    .to_tensor()
                    .and_then(|tensor| tensor.bytes().first().map(|&byte| byte != 0))
                    .ok_or(EvalProblem::WrongValue("a condition", value.kind()))?;
                let taken = if is_true { then } else { otherwise };
                match self.known(taken)? {
                    None => taken,
                    Some(value) => {
                        self.set(expr, value);
                        return Ok(());
                    }
                }
            }
        };
        self.frame().tasks.extend([Task::Need(expr), Task::Need(needed)]);
        Ok(())
    }

    /// Goes on with the bindings of a `let`.
    fn bind(&mut self, expr: Expr, mut next: usize) -> Step {
        let View::Let(view) = self.code().body.view(expr) else {
            return Err(EvalProblem::UnknownNode("a broken let"));
        };
        while next < view.len() {
            let (var, value) = view.binding(next);
            let Some(known) = self.known(value)? else {
                self.frame().tasks.extend([Task::Bindings(expr, next), Task::Need(value)]);
                return Ok(());
            };
            self.compare_variable(var, value, &known)?;
            self.set(var, known);
            next += 1;
        }
        match self.known(view.result())? {
            Some(value) => self.set(expr, value),
            None => {
                let tasks = [Task::Bindings(expr, next), Task::Need(view.result())];
                self.frame().tasks.extend(tasks);
            }
        }
        Ok(())
    }

    fn call(&mut self, mut callee: Callee, mut args: Vec<Value>, caller: Option<Caller>) -> Step {
        if let Callee::Partial { function, captured } = callee {
            args.extend_from_slice(captured.fields());
            callee = *function;
        }
        match callee {
            Callee::Partial { .. } => Err(EvalProblem::UnknownNode("a closure of a closure")),
            Callee::Global(name) => self.call_global(name, args, caller),
            Callee::Closure { function, env } => {
                let dims = self.envs.get(env).dims.clone();
                let code = self.codes[&env];
                self.enter(
                    code,
                    function,
                    Env { parent: Some(env), dims, ..Env::default() },
                    args,
                    caller,
                )
            }
        }
    }

    pub(super) fn call_global(
        &mut self,
        name: Symbol,
        args: Vec<Value>,
        caller: Option<Caller>,
    ) -> Step {
        let func = self.module.and_then(|module| module.get(name));
        let Some(func) = func else {
            return Err(EvalProblem::UnknownFunction(self.cx.terms().str(name).to_owned()));
        };
        if func.is_prim() {
            let result = match caller {
                Some(_) => self.run_program(name, func, &args).map(|()| Value::unit())?,
                None => self.run_with_outputs(name, func, args)?,
            };
            match caller {
                Some(Caller::Node(expr)) => self.set(expr, result),
                Some(Caller::Trip) => self.trip = Some(result),
                None => self.result = Some(result),
            }
            return Ok(());
        }
        let code = Code::of(func, name);
        self.enter(code, code.body.root(), Env::default(), args, caller)
    }

    /// Starts a function: checks the arguments and binds the parameters.
    fn enter(
        &mut self,
        code: Code<'a>,
        function: Expr,
        mut env: Env,
        args: Vec<Value>,
        caller: Option<Caller>,
    ) -> Step {
        let View::Function { params, body: result, result: declared, .. } =
            code.body.view(function)
        else {
            return Err(EvalProblem::UnknownNode(code.body.kind(function).name()));
        };
        if params.len() != args.len() {
            return Err(EvalProblem::WrongArgCount { expected: params.len(), found: args.len() });
        }
        let attrs = self.cx.terms().attrs(code.body.attrs(function));
        let matches_itself = attrs.bool(MATCHES_PARAMETERS) == Some(true);
        self.budget.enter(self.frames.len())?;
        self.budget.step(1)?;
        // The parameters' own symbols hide those around.
        let mut dims = tenon_ir::DimBindings::default();
        if !matches_itself {
            let declared: Option<Vec<(Type, &Value)>> = params
                .iter()
                .zip(&args)
                .map(|(param, arg)| Some((code.body.ty(param)?, arg)))
                .collect();
            let declared = declared.unwrap_or_default();
            if let Some(index) = mismatch(self.cx, &declared, &mut dims) {
                let ty = Type(substitute(self.cx, declared[index].0.into(), &dims).0);
                let expected = self.cx.terms().type_text(ty);
                let found = self.text_of(declared[index].1);
                return Err(EvalProblem::WrongArg { index, expected, found });
            }
        }
        env.values.extend(params.iter().zip(args));
        env.dims.extend(dims);
        let env = self.envs.add(env);
        let (tasks, is_typed) = (vec![Task::Need(result)], !matches_itself);
        self.frames.push(Frame { code, env, tasks, result, declared, is_typed, caller });
        Ok(())
    }

    fn text_of(&self, value: &Value) -> String {
        let text = |ty| self.cx.terms().type_text(ty);
        value.ty(self.cx).map_or_else(|| value.kind().to_owned(), text)
    }

    /// Compares a value with the type that is declared of it, where types are looked at.
    fn compare(&mut self, declared: Type, value: &Value, what: impl Fn() -> String) -> Step {
        if !self.frame().is_typed {
            return Ok(());
        }
        let env = self.env();
        let mut dims = std::mem::take(&mut self.envs.get_mut(env).dims);
        let is_right = matches(self.cx, declared, value, &mut dims);
        self.envs.get_mut(env).dims = dims;
        match is_right {
            true => Ok(()),
            false => Err(EvalProblem::WrongType {
                what: what(),
                found: self.text_of(value),
                declared: self.cx.terms().type_text(self.substituted(declared)),
            }),
        }
    }

    /// Compares a value with the type of its variable, where that says more than the value's own type.
    fn compare_variable(&mut self, var: Expr, value: Expr, known: &Value) -> Step {
        let body = self.code().body;
        match (body.ty(var), body.view(var)) {
            (Some(declared), View::Var { name }) if body.ty(value) != Some(declared) => {
                self.compare(declared, known, || format!("`%{}`", body.terms().str(name)))
            }
            _ => Ok(()),
        }
    }

    /// Ends a function: its result goes to the caller.
    fn leave(&mut self) -> Step {
        let Frame { result, declared, .. } = *self.frame();
        let value = self.operand(result)?;
        if let Some(declared) = declared {
            self.compare(declared, &value, || "the result".to_owned())?;
        }
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        self.envs.end(frame.env);
        let expr = match frame.caller.filter(|_| !self.frames.is_empty()) {
            Some(Caller::Node(expr)) => expr,
            Some(Caller::Trip) => {
                self.trip = Some(value);
                return Ok(());
            }
            None => {
                self.result = Some(value);
                return Ok(());
            }
        };
        // What the type of a closure says of its result is checked here: it may be any function.
        if let Some(ty) = self.code().body.ty(expr) {
            self.compare(ty, &value, || "the result for its caller".to_owned())?;
        }
        self.set(expr, value);
        Ok(())
    }
}

/// A value with tensors of its own in the place of those in storages.
fn settle(value: Value) -> Value {
    enum Step {
        Value(Value),
        Tuple(usize),
    }
    let mut steps = vec![Step::Value(value)];
    let mut done: Vec<Value> = Vec::new();
    while let Some(step) = steps.pop() {
        match step {
            Step::Tuple(count) => {
                let fields = done.split_off(done.len() - count);
                done.push(Value::Tuple(Tuple::new(fields)));
            }
            Step::Value(Value::Tuple(tuple)) => {
                steps.push(Step::Tuple(tuple.fields().len()));
                steps.extend(tuple.fields().iter().rev().cloned().map(Step::Value));
            }
            Step::Value(Value::Place(place)) => {
                let tensor = place.to_tensor().map(Value::Tensor);
                done.push(tensor.unwrap_or(Value::Place(place)));
            }
            Step::Value(value) => done.push(value),
        }
    }
    done.pop().unwrap_or_else(Value::unit)
}
