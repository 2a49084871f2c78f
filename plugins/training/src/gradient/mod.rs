//! Adds the function that computes a loss and its gradient, by reverse accumulation.
//!
//! ```ir
//! fn @main(%x: f32[3]) -> f32[] {        fn @main_adjoint(%x: f32[3]) {
//!   %s = sum(%x)                           %s = sum(%x)
//!   ret %s                           =>    %g = broadcast_to(const(f32[], 1), shape(3))
//! }                                        ret (%s, (%g,))
//!                                        }
//! ```
//!
//! The bindings are walked from the last to the first. Each has an adjoint, the derivative of the loss by its
//! value: the sum of what its readers contribute, each by the rule of its operator ([`rules`]). Bindings that the
//! loss does not read, or that read no parameter which is asked for, have none. The function itself stays.
//!
//! The loss is a scalar float: the result, or one field of it. Parameters are those named, or all. A call of a
//! function, a choice and a tensor program have no rule: inline them or differentiate before
//! `relax.LegalizeOps`. Where the derivative jumps, as that of `nn.relu` at 0, one of its sides is taken.
//!
//! After A. Griewank and A. Walther, "Evaluating Derivatives", 2008, chapter 3.

use tenon_plugin_api::ir::Terms;
use tenon_plugin_api::prelude::*;

mod rules;
mod step;

use step::{Grad, Step};

/// Adds the function that computes a loss and its gradient.
#[pass(
    name = "relax.Gradient",
    aliases = ["relax.transform.Gradient", "raf.pass_.AutoDiff"],
    opt_level = 0,
    phase = "optimize",
    requires = ["relax.Normalize"],
    options(func_name(str, default = "main", help = "the function that computes the loss"),
        require_grads([str], default = [],
            help = "the parameters to differentiate by; all when empty"),
        target_index(int, default = 0, min = 0,
            help = "which field of the result is the loss, where it is a tuple"))
)]
fn gradient(mut module: Module, cx: &PassContext) -> Result<Module> {
    let name = cx.option_str("func_name");
    let Some(func) = module.get(cx.symbol(name)) else {
        let names = module.functions();
        let names: Vec<&str> = names.iter().map(|(name, _)| cx.terms().str(*name)).collect();
        let known = match names.is_empty() {
            true => "the module is empty".to_owned(),
            false => format!("there is @{}", names.join(", @")),
        };
        return Err(PassError::new(format!("there is no function @{name}; {known}")));
    };
    if func.is_prim() {
        let text = format!("@{name} is a tensor program; gradients are those of graph functions");
        return Err(PassError::new(text));
    }
    let adjoint = adjoint_of(&func, cx)?;
    let name = module.fresh_name(&format!("{name}_adjoint"));
    module.insert(name, &adjoint);
    Ok(module)
}

fn adjoint_of(func: &Function, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let root = body.root();
    let View::Function { params, body: list, attrs, .. } = body.view(root) else {
        return Err(PassError::new("the function has no body"));
    };
    let params = params.to_vec();
    let wanted = wanted_params(body, &params, cx)?;
    let (bindings, result) = match body.view(list) {
        View::Let(bindings) => (bindings.bindings().collect(), bindings.result()),
        _ => (Vec::new(), list),
    };
    let target = target_of(body, &bindings, result, cx)?;

    // For a value the first variable that is bound to it, for that the next one; for a variable that is bound to
    // another one, that.
    let mut next_var: Vec<Option<Expr>> = vec![None; body.len()];
    let mut renames: Vec<Option<Expr>> = vec![None; body.len()];
    for &(var, value) in bindings.iter().rev() {
        match body.kind(value) {
            Kind::VAR => renames[var.index()] = Some(value),
            _ => next_var[var.index()] = next_var[value.index()].replace(var),
        }
    }
    let is_active = active(body, &bindings, &wanted);
    let mut adjoints = Adjoints { rw: func.edit(), is_active, grads: vec![Vec::new(); body.len()] };
    let dtype = adjoints.rw.tensor(target).map_or(DType::F32, |(dtype, _)| dtype);
    let one = adjoints.rw.number(dtype, 1.0).ok_or_else(|| PassError::new("the loss has no 1"))?;
    adjoints.add(target, None, one);
    // Readers stand behind what they read, and behind the variables that are bound to it.
    for expr in body.post_order().rev() {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        if body.kind(expr) == Kind::VAR {
            if let Some(renamed) = renames[expr.index()] {
                adjoints.hand_on(expr, renamed);
            }
            continue;
        }
        let mut next = next_var[expr.index()];
        while let Some(var) = next {
            adjoints.hand_on(var, expr);
            next = next_var[var.index()];
        }
        let grads = std::mem::take(&mut adjoints.grads[expr.index()]);
        if !grads.is_empty() {
            let value = next_var[expr.index()].unwrap_or(expr);
            adjoints.propagate(body, expr, value, grads)?;
        }
    }
    let grads: Result<Vec<Expr>> =
        wanted.iter().map(|&param| adjoints.of_param(body, param)).collect();
    let mut rw = adjoints.rw;
    let grads = rw.tuple(&grads?);
    let result = rw.tuple(&[result, grads]);
    let list = match body.view(list) {
        View::Let(bindings) => {
            let blocks = bindings.blocks().into_iter().map(|block| {
                let own = (block.first..block.first + block.len).map(|at| bindings.binding(at));
                (block.is_dataflow, own.collect())
            });
            let blocks: Vec<(bool, Vec<(Expr, Expr)>)> = blocks.collect();
            rw.let_blocks(&blocks, result)
        }
        _ => rw.let_blocks(&[], result),
    };
    let adjoint = rw.function(&params, list, None, attrs);
    rw.set_root(adjoint);
    rw.finish()
}

/// A variable as it is written; a value that has no name as what it is.
fn name_of(body: BodyView<'_>, expr: Expr) -> String {
    match body.view(expr) {
        View::Var { name } => format!("%{}", body.terms().str(name)),
        _ => "a value without a name".to_owned(),
    }
}

/// The parameters to differentiate by.
fn wanted_params(body: BodyView<'_>, params: &[Expr], cx: &PassContext) -> Result<Vec<Expr>> {
    let name_of = |param: Expr| match body.view(param) {
        View::Var { name } => body.terms().str(name),
        _ => "",
    };
    let mut wanted = Vec::new();
    for name in cx.option_list("require_grads") {
        let TermView::Str(name) = name else { continue };
        match params.iter().find(|&&param| name_of(param) == name) {
            Some(&param) => wanted.push(param),
            None => {
                let known: Vec<&str> = params.iter().map(|&param| name_of(param)).collect();
                let known = known.join(", %");
                let text = format!("`require_grads` names %{name}; the parameters are %{known}");
                return Err(PassError::new(text));
            }
        }
    }
    if wanted.is_empty() {
        wanted = params.to_vec();
    }
    for &param in &wanted {
        if !body.ty(param).is_some_and(|ty| is_float(body.terms(), ty)) {
            let ty =
                body.ty(param).map_or("of unknown type".into(), |ty| body.terms().type_text(ty));
            let name = name_of(param);
            let text = format!(
                "%{name} is {ty}; only tensors of floats and tuples of them have gradients: \
                 `require_grads` can leave it out"
            );
            return Err(PassError::new(text));
        }
    }
    Ok(wanted)
}

/// Whether a type is a tensor of floats, or a tuple of them.
fn is_float(terms: Terms<'_>, ty: Type) -> bool {
    let is_tensor =
        |ty: Type| matches!(terms.ty(ty), TypeView::Tensor { dtype, .. } if dtype.is_float());
    match terms.ty(ty) {
        TypeView::Tuple(fields) => fields.iter().all(|&field| is_tensor(field)),
        _ => is_tensor(ty),
    }
}

/// The variable that holds the loss.
fn target_of(
    body: BodyView<'_>,
    bindings: &[(Expr, Expr)],
    result: Expr,
    cx: &PassContext,
) -> Result<Expr> {
    let index = cx.option_int("target_index") as usize;
    let bound = bindings.iter().find(|&&(var, _)| var == result).map(|&(_, value)| value);
    let target = match body.view(bound.unwrap_or(result)) {
        View::Tuple(fields) => fields.get(index).ok_or_else(|| {
            let text =
                format!("`target_index` is {index}, and the result has {} fields", fields.len());
            PassError::new(text)
        })?,
        _ if index > 0 => {
            let text = format!("`target_index` is {index}, and the result is no tuple");
            return Err(PassError::new(text));
        }
        _ => result,
    };
    if body.kind(target) != Kind::VAR {
        return Err(PassError::new("the loss is not computed: it is no variable"));
    }
    let terms = body.terms();
    let ty = body.ty(target).ok_or_else(|| PassError::new("the loss has no type"))?;
    match terms.tensor(ty) {
        Some((dtype, [])) if dtype.is_float() => Ok(target),
        _ => {
            let text =
                format!("the loss is {}, and not a float without dimensions", terms.type_text(ty));
            Err(PassError::new(text))
        }
    }
}

/// For each node, whether it depends on a parameter that is asked for.
fn active(body: BodyView<'_>, bindings: &[(Expr, Expr)], wanted: &[Expr]) -> Vec<bool> {
    let mut is_active = vec![false; body.len()];
    for &param in wanted {
        is_active[param.index()] = true;
    }
    // Bindings stand in the order of their values.
    let mut bindings = bindings.iter().peekable();
    for expr in body.post_order() {
        if body.kind(expr) != Kind::VAR {
            is_active[expr.index()] =
                body.operands(expr).iter().any(|operand| is_active[operand.index()]);
        }
        while let Some(&(var, value)) = bindings.next_if(|(_, value)| *value <= expr) {
            is_active[var.index()] |= is_active[value.index()];
        }
    }
    is_active
}

/// The derivatives of the loss by the values of the function.
struct Adjoints {
    rw: Rewriter,
    is_active: Vec<bool>,
    /// By node, the sum so far; of a tuple one for each field.
    grads: Vec<Vec<Option<Expr>>>,
}

impl Adjoints {
    /// Adds to the adjoint of a value; of a tuple, to that of field `field`.
    fn add(&mut self, value: Expr, field: Option<usize>, grad: Expr) {
        let is_active = self.is_active.get(value.index()).copied().unwrap_or(false);
        if !is_active {
            return;
        }
        let place = field.unwrap_or(0);
        let grads = &mut self.grads[value.index()];
        if grads.len() <= place {
            grads.resize(place + 1, None);
        }
        grads[place] = Some(match grads[place] {
            Some(sum) => self.rw.apply("add", &[sum, grad]),
            None => grad,
        });
    }

    /// Adds the adjoint of a variable to that of the value it is bound to.
    fn hand_on(&mut self, var: Expr, value: Expr) {
        let grads = std::mem::take(&mut self.grads[var.index()]);
        for (field, grad) in grads.into_iter().enumerate() {
            if let Some(grad) = grad {
                self.add(value, Some(field), grad);
            }
        }
    }

    /// Hands the adjoint of a node on to what it reads; `value` is what holds its result.
    fn propagate(
        &mut self,
        body: BodyView<'_>,
        expr: Expr,
        value: Expr,
        grads: Vec<Option<Expr>>,
    ) -> Result<()> {
        let is_active = self.is_active[expr.index()];
        match body.view(expr) {
            View::Tuple(fields) => {
                for (field, grad) in fields.iter().zip(grads) {
                    if let Some(grad) = grad {
                        self.add(field, None, grad);
                    }
                }
            }
            View::TupleGetItem { tuple, index } => {
                if let Some(grad) = grads.into_iter().flatten().next() {
                    self.add(tuple, Some(index), grad);
                }
            }
            View::Call { callee, args, attrs } if is_active => {
                let failed =
                    |text: &str| Err(PassError::new(format!("{}: {text}", name_of(body, value))));
                let Some(op) = body.op_name(callee) else {
                    return failed("a call of a function has no gradient; inline it first");
                };
                let Some(rule) = rules::find(op) else {
                    return failed(&format!("`{op}` has no gradient"));
                };
                let call = Call { expr, args: args.to_vec(), attrs, ty: body.ty(expr) };
                let mut step = Step { rw: &mut self.rw, call, value, grads };
                let found = match rule(&mut step) {
                    Ok(found) => found,
                    Err(reason) => {
                        let reason = reason.message();
                        return failed(&format!("`{op}` has no gradient here, since {reason}"));
                    }
                };
                for (arg, grad) in args.iter().zip(found) {
                    self.add_grad(body, arg, grad);
                }
            }
            View::If { .. } if is_active => {
                let name = name_of(body, value);
                return Err(PassError::new(format!("{name}: a choice has no gradient")));
            }
            _ => {}
        }
        Ok(())
    }

    fn add_grad(&mut self, body: BodyView<'_>, arg: Expr, grad: Grad) {
        match (grad, body.view(arg)) {
            (Grad::Zero, _) => {}
            (Grad::Of(grad), _) => self.add(arg, None, grad),
            (Grad::Fields(grads), View::Tuple(fields)) => {
                for (field, grad) in fields.iter().zip(grads) {
                    self.add(field, None, grad);
                }
            }
            (Grad::Fields(grads), _) => {
                for (field, grad) in grads.into_iter().enumerate() {
                    self.add(arg, Some(field), grad);
                }
            }
        }
    }

    /// The gradient by a parameter: zeros where the loss does not depend on it.
    fn of_param(&mut self, body: BodyView<'_>, param: Expr) -> Result<Expr> {
        let grads = std::mem::take(&mut self.grads[param.index()]);
        let ty = body.ty(param).ok_or_else(|| PassError::new("a parameter has no type"))?;
        let fields: &[Type] = match body.terms().ty(ty) {
            TypeView::Tuple(fields) => fields,
            _ => &[ty],
        };
        let mut values = Vec::with_capacity(fields.len());
        for (place, &field) in fields.iter().enumerate() {
            let grad = grads.get(place).copied().flatten();
            let grad = grad.or_else(|| step::zeros(&mut self.rw, field));
            values.push(grad.ok_or_else(|| {
                PassError::new("the loss does not depend on a tensor of unknown rank")
            })?);
        }
        Ok(match body.terms().ty(ty) {
            TypeView::Tuple(_) => self.rw.tuple(&values),
            _ => values[0],
        })
    }
}
