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
//! value: the sum of what its readers contribute, each by the rule of its operator, of the facet `gradient`. Bindings that the
//! loss does not read, or that read no parameter which is asked for, have none. Tuples, however they stand in each
//! other, are looked through ([`places`]). The function itself stays.
//!
//! The loss is a scalar float: the result, or one field of it. Parameters are those named, or all. A call of a
//! function, a choice and a tensor program have no gradient: inline them or differentiate before
//! `relax.LegalizeOps`. A function that writes memory is refused. Where the derivative jumps, as that of `nn.relu` at
//! 0, one of its sides is taken.
//!
//! After A. Griewank and A. Walther, "Evaluating Derivatives", 2008, chapter 3.

use std::collections::HashSet;

use tenon_plugin_api::ir::Terms;
use tenon_plugin_api::prelude::*;
use tenon_plugin_api::rule::Gradient;

mod adjoints;
mod places;

use adjoints::Adjoints;
use places::Places;

/// Adds the function that computes a loss and its gradient.
#[pass(
    name = "relax.Gradient",
    aliases = ["relax.transform.Gradient", "raf.pass_.AutoDiff"],
    opt_level = 0,
    phase = "optimize",
    requires = ["relax.Normalize"],
    asks = ["gradient"]
)]
fn gradient(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let name = options.func_name.as_str();
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
    let effects = ModuleEffects::of(&module).of_function(&func, cx);
    if effects.first_write().is_some() {
        let text = format!("@{name} may write memory, which has no gradient; differentiate before");
        return Err(PassError::new(text));
    }
    let adjoint = adjoint_of(&func, cx, &options)?;
    let name = module.fresh_name(&format!("{name}_adjoint"));
    module.insert(name, &adjoint);
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// the function that computes the loss
    #[option(default = "main")]
    func_name: String,
    /// the parameters to differentiate by; all when empty
    #[option(default = [])]
    require_grads: Vec<String>,
    /// which field of the result is the loss, where it is a tuple
    #[option(default = 0)]
    target_index: usize,
}

fn adjoint_of(func: &Function, cx: &PassContext, options: &Options) -> Result<Function> {
    let body = func.view();
    let root = body.root();
    let View::Function { params, body: list, attrs, .. } = body.view(root) else {
        return Err(PassError::new("the function has no body"));
    };
    let params = params.to_vec();
    let wanted = wanted_params(body, &params, options)?;
    let (bindings, result) = match body.view(list) {
        View::Let(bindings) => (bindings.bindings().collect(), bindings.result()),
        _ => (Vec::new(), list),
    };
    let places = Places::of_body(body, &bindings, &wanted);
    let target = target_of(body, &places, result, options)?;
    // For a value the first variable that is bound to it.
    let mut holders: Vec<Option<Expr>> = vec![None; body.len()];
    for &(var, value) in bindings.iter().rev() {
        holders[value.index()] = Some(var);
    }

    let mut adjoints = Adjoints::new(body, places, func.edit(), cx.rules::<Gradient>());
    let dtype = adjoints.rw.tensor(target).map_or(DType::F32, |(dtype, _)| dtype);
    let one = adjoints.rw.number(dtype, 1.0).ok_or_else(|| PassError::new("the loss has no 1"))?;
    adjoints.add(target, one);
    // Readers stand behind what they read, and behind the variables that are bound to it.
    for expr in body.post_order().rev() {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        adjoints.rw.set_source(body.source(expr));
        adjoints.propagate(expr, holders[expr.index()].unwrap_or(expr))?;
    }
    let grads: Result<Vec<Expr>> = wanted.iter().map(|&param| adjoints.of_param(param)).collect();
    let mut rw = adjoints.rw;
    rw.set_source(NodeSource::NONE);
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

/// The parameters to differentiate by.
fn wanted_params(body: BodyView<'_>, params: &[Expr], options: &Options) -> Result<Vec<Expr>> {
    let name_of = |param: Expr| match body.view(param) {
        View::Var { name } => body.terms().str(name),
        _ => "",
    };
    let mut wanted = Vec::new();
    for name in &options.require_grads {
        match params.iter().find(|&&param| name_of(param) == name.as_str()) {
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

/// Whether a type is a tensor of floats, or a tuple of such types.
fn is_float(terms: Terms<'_>, ty: Type) -> bool {
    let mut seen = HashSet::from([ty]);
    let mut open = vec![ty];
    while let Some(ty) = open.pop() {
        match terms.ty(ty) {
            TypeView::Tuple(fields) => {
                open.extend(fields.iter().filter(|&&field| seen.insert(field)));
            }
            TypeView::Tensor { dtype, .. } if dtype.is_float() => {}
            _ => return false,
        }
    }
    true
}

/// The variable that holds the loss.
fn target_of(
    body: BodyView<'_>,
    places: &Places<'_>,
    result: Expr,
    options: &Options,
) -> Result<Expr> {
    let index = options.target_index;
    let target = match places.tuple(places.of(result)) {
        Some(fields) => fields.get(index).ok_or_else(|| {
            let text =
                format!("`target_index` is {index}, and the result has {} fields", fields.len());
            PassError::new(text)
        })?,
        None if index > 0 => {
            let text = format!("`target_index` is {index}, and the result is no tuple");
            return Err(PassError::new(text));
        }
        None => result,
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
