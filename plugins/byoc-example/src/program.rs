//! What is computed for each element: operations on numbered values.

use tenon_plugin_api::prelude::*;

/// The work of a function, for each element of its results.
#[derive(Default)]
pub(crate) struct Program {
    /// How many tensors it takes.
    pub(crate) inputs: usize,
    /// Each makes the value of its number.
    pub(crate) steps: Vec<Step>,
    /// How many elements each value has: as many as its operands, or more than a single one.
    pub(crate) lens: Vec<i64>,
    /// The values that are written, in the order of the results.
    pub(crate) results: Vec<usize>,
}

/// How a value comes to be; others by their numbers.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The input of this number.
    Input(usize),
    Constant(Vec<f32>),
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unary {
    Negative,
    Abs,
    Sqrt,
    Relu,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
}

/// What an expression stands for.
#[derive(Clone)]
enum Meaning {
    Value(usize),
    Tuple(Vec<usize>),
}

impl Program {
    /// The work of a function of the module, whose calls are of functions that a pattern matched.
    pub(crate) fn of(module: &Module, name: Symbol) -> Result<Self> {
        let Some(function) = module.get(name) else {
            return Err(PassError::new("the function is not there"));
        };
        let mut this = Self::taking(&function)?;
        let inputs = (0..this.inputs).map(Meaning::Value).collect();
        let result = this.run(&function, inputs, Some(module))?;
        this.finish(result)
    }

    /// The work of a function that a pattern matched.
    pub(crate) fn of_composite(function: &Function) -> Result<Self> {
        let mut this = Self::taking(function)?;
        let inputs = (0..this.inputs).map(Meaning::Value).collect();
        let result = this.run(function, inputs, None)?;
        this.finish(result)
    }

    /// No work yet, with the inputs of a function.
    fn taking(function: &Function) -> Result<Self> {
        let body = function.view();
        let View::Function { params, .. } = body.view(body.root()) else {
            return Err(PassError::new("it is no function"));
        };
        let mut this = Self::default();
        for (index, param) in params.iter().enumerate() {
            this.push(Step::Input(index), elements(body, body.ty(param))?);
        }
        this.inputs = this.steps.len();
        Ok(this)
    }

    fn push(&mut self, step: Step, len: i64) -> usize {
        self.steps.push(step);
        self.lens.push(len);
        self.steps.len() - 1
    }

    fn finish(mut self, result: Meaning) -> Result<Self> {
        self.results = match result {
            Meaning::Value(value) => vec![value],
            Meaning::Tuple(fields) => fields,
        };
        Ok(self)
    }

    /// Adds what a function does; its calls are of functions of `module`, or of operators where there is none.
    fn run(
        &mut self,
        function: &Function,
        inputs: Vec<Meaning>,
        module: Option<&Module>,
    ) -> Result<Meaning> {
        let body = function.view();
        let mut meanings: SideTable<Option<Meaning>> = SideTable::new(body, None);
        let View::Function { params, body: result, .. } = body.view(body.root()) else {
            return Err(PassError::new("it is no function"));
        };
        for (param, meaning) in params.iter().zip(inputs) {
            meanings[param] = Some(meaning);
        }
        // Ids ascend from operands to users, but a variable has its meaning from the block that binds it.
        let View::Let(bindings) = body.view(result) else {
            return self.meaning(body, result, &mut meanings, module);
        };
        for (var, value) in bindings.bindings() {
            let meaning = self.meaning(body, value, &mut meanings, module)?;
            meanings[var] = Some(meaning);
        }
        self.meaning(body, bindings.result(), &mut meanings, module)
    }

    /// What one expression stands for, whose operands are variables, constants or tuples of them.
    fn meaning(
        &mut self,
        body: BodyView<'_>,
        expr: Expr,
        meanings: &mut SideTable<Option<Meaning>>,
        module: Option<&Module>,
    ) -> Result<Meaning> {
        if let Some(known) = &meanings[expr] {
            return Ok(known.clone());
        }
        let operand = |this: &mut Self, expr: Expr| match (&meanings[expr], body.view(expr)) {
            (Some(known), _) => Ok(known.clone()),
            (None, View::Constant(constant)) => {
                let len = elements(body, Some(constant.ty))?;
                let values = constant.bytes.chunks_exact(4).map(|four| {
                    f32::from_le_bytes(four.try_into().expect("chunks have four bytes"))
                });
                Ok(Meaning::Value(this.push(Step::Constant(values.collect()), len)))
            }
            _ => Err(PassError::new("an operand is neither a variable nor a constant").at(expr)),
        };
        let value = |meaning: Meaning| match meaning {
            Meaning::Value(value) => Ok(value),
            Meaning::Tuple(_) => Err(PassError::new("a tuple is no operand")),
        };
        match body.view(expr) {
            View::Tuple(fields) => {
                let fields = fields.iter().map(|field| value(operand(self, field)?));
                Ok(Meaning::Tuple(fields.collect::<Result<_>>()?))
            }
            View::TupleGetItem { tuple, index } => match operand(self, tuple)? {
                Meaning::Tuple(fields) if index < fields.len() => Ok(Meaning::Value(fields[index])),
                _ => Err(PassError::new("there is no such field").at(expr)),
            },
            View::Call { callee, args, .. } => {
                let args: Vec<Meaning> =
                    args.iter().map(|arg| operand(self, arg)).collect::<Result<_>>()?;
                match (body.view(callee), module) {
                    (View::Global { name }, Some(module)) => {
                        let Some(callee) = module.get(name) else {
                            return Err(PassError::new("a function is not there").at(expr));
                        };
                        self.run(&callee, args, None)
                    }
                    (View::Op { name }, _) => {
                        let len = elements(body, body.ty(expr))?;
                        let args: Vec<usize> =
                            args.into_iter().map(value).collect::<Result<_>>()?;
                        if args.iter().any(|&arg| self.lens[arg] != 1 && self.lens[arg] != len) {
                            return Err(
                                PassError::new("an operand is repeated along an axis").at(expr)
                            );
                        }
                        let step = operation(body.terms().str(name), &args)?;
                        Ok(Meaning::Value(self.push(step, len)))
                    }
                    _ => Err(PassError::new("a call of something else").at(expr)),
                }
            }
            _ => operand(self, expr),
        }
    }
}

fn operation(op: &str, args: &[usize]) -> Result<Step> {
    Ok(match (op, args) {
        ("negative", &[a]) => Step::Unary(Unary::Negative, a),
        ("abs", &[a]) => Step::Unary(Unary::Abs, a),
        ("sqrt", &[a]) => Step::Unary(Unary::Sqrt, a),
        ("nn.relu", &[a]) => Step::Unary(Unary::Relu, a),
        ("add", &[a, b]) => Step::Binary(Binary::Add, a, b),
        ("subtract", &[a, b]) => Step::Binary(Binary::Subtract, a, b),
        ("multiply", &[a, b]) => Step::Binary(Binary::Multiply, a, b),
        ("divide", &[a, b]) => Step::Binary(Binary::Divide, a, b),
        ("maximum", &[a, b]) => Step::Binary(Binary::Maximum, a, b),
        ("minimum", &[a, b]) => Step::Binary(Binary::Minimum, a, b),
        _ => return Err(PassError::new(format!("the operator `{op}` is none of those it takes"))),
    })
}

/// How many elements a tensor of f32 has.
fn elements(body: BodyView<'_>, ty: Option<Type>) -> Result<i64> {
    match ty.and_then(|ty| body.terms().static_tensor(ty)) {
        Some((DType::F32, shape)) => Ok(shape.iter().product()),
        _ => Err(PassError::new("it takes tensors of f32 of known size")),
    }
}
