//! Makes tensor programs of calls of external functions, as code is compiled of programs alone.
//!
//! ```ir
//! fn @main(%x: f32[n, 4]) -> f32[n, 4] {
//!   %a: f32[n, 4] = extern "vendor_scale"(%x)
//!   ret %a
//! }
//! ```
//! becomes
//! ```ir
//! fn @main(%x: f32[n, 4]) -> f32[n, 4] {
//!   %a: f32[n, 4] = call_tir(@vendor_scale, %x) { out = f32[n, 4] }
//!   ret %a
//! }
//!
//! private prim @vendor_scale(%a: f32[n, 4], out %result0: f32[n, 4]) {
//!   eval extern "vendor_scale"(%a, %result0)
//! }
//! ```
//!
//! Calls of the same function with the same types share a program; a tuple that the function gives is written field by
//! field. Blocks are plain by then and calls that promise to have no effect are plain calls, so nothing behind this pass
//! drops a call or changes the order of two.
//!
//! What is neither a tensor nor a tuple of tensors cannot be handed to a function of C, and a function that gives nothing
//! would have to say which of its arguments it writes: those calls are errors.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

/// Makes tensor programs of calls of external functions.
#[pass(
    name = "tenon.LowerExternalCalls",
    phase = "plan",
    requires = ["relax.RemovePurityChecking"],
    before = ["relax.CallTIRRewrite"],
    preserves = ["no_dataflow", "no_call_pure"],
    idempotent = true
)]
fn lower_external_calls(mut module: Module, cx: &PassContext) -> Result<Module> {
    let mut programs: HashMap<(Symbol, Vec<Type>, Type), Symbol> = HashMap::new();
    for (name, func) in module.functions() {
        if func.is_prim() {
            continue;
        }
        let mut rw = func.edit();
        let mut is_changed = false;
        for expr in rw.post_order() {
            let Some(call) = External::of(&rw, expr) else { continue };
            let call = call.map_err(|error| error.in_function(func.clone(), expr))?;
            let key = (call.name, call.types, call.result);
            let program = match programs.get(&key) {
                Some(&program) => program,
                None => {
                    let (made, function) = program_of(&key, &module, cx)?;
                    module.insert(made, &function);
                    programs.insert(key.clone(), made);
                    made
                }
            };
            let program = rw.global(cx.terms().str(program));
            let operands: Vec<Expr> = [program].into_iter().chain(call.args).collect();
            let attrs = cx.attrs(&[("out", Term::from(key.2).into())]);
            rw.set_source(rw.body().source(expr));
            let op = rw.op("call_tir");
            let new = rw.call(op, &operands, attrs, Some(key.2));
            rw.replace(expr, new);
            is_changed = true;
        }
        if is_changed {
            module.insert(name, &rw.finish()?);
        }
    }
    Ok(module)
}

/// A call of an external function.
struct External {
    name: Symbol,
    args: Vec<Expr>,
    types: Vec<Type>,
    result: Type,
}

impl External {
    fn of(rw: &Rewriter, expr: Expr) -> Option<Result<Self>> {
        let View::Call { callee, args, .. } = rw.view(expr) else { return None };
        let View::Extern { name } = rw.view(callee) else { return None };
        let args = args.to_vec();
        Some(Self::read(rw, name, args, expr))
    }

    fn read(rw: &Rewriter, name: Symbol, args: Vec<Expr>, expr: Expr) -> Result<Self> {
        let (body, terms) = (rw.body(), rw.terms());
        let text = terms.str(name);
        let is_tensor = |ty: &Type| terms.tensor(*ty).is_some();
        let mut types = Vec::with_capacity(args.len());
        for (number, &arg) in args.iter().enumerate() {
            let Some(ty) = body.ty(arg).filter(is_tensor) else {
                let message = format!(
                    "the external function `{text}` is called with {}, and takes tensors: argument {} is none",
                    body.ty(arg)
                        .map_or("something without a type".to_owned(), |ty| terms.type_text(ty)),
                    number + 1
                );
                return Err(PassError::new(message));
            };
            types.push(ty);
        }
        let Some(result) = body.ty(expr) else {
            return Err(PassError::new(format!("a call of `{text}` has no type")));
        };
        let is_given = match terms.ty(result) {
            TypeView::Tuple(fields) => !fields.is_empty() && fields.iter().all(is_tensor),
            _ => is_tensor(&result),
        };
        match is_given {
            true => Ok(Self { name, args, types, result }),
            false => Err(PassError::new(format!(
                "the external function `{text}` gives {}, and code is made of functions that give tensors: say what it \
                 gives as its result, or write a tensor program that calls it with `eval extern`",
                terms.type_text(result)
            ))),
        }
    }
}

/// The program that calls a function of C: its name, and what it is.
fn program_of(
    (name, types, result): &(Symbol, Vec<Type>, Type),
    module: &Module,
    cx: &PassContext,
) -> Result<(Symbol, Function)> {
    let terms = cx.terms();
    let results = match terms.ty(*result) {
        TypeView::Tuple(fields) => fields.to_vec(),
        _ => vec![*result],
    };
    let mut rw = Rewriter::new(cx);
    let names = (0..types.len()).map(|number| format!("arg{number}"));
    let results = results.iter().enumerate().map(|(number, &ty)| (format!("result{number}"), ty));
    let outputs = results.len();
    let all: Vec<(String, Type)> = names.zip(types.iter().copied()).chain(results).collect();
    let params: Vec<Expr> = all.iter().map(|(name, ty)| rw.buffer(name, *ty, "")).collect();
    let callee = rw.named(Kind::EXTERN, *name);
    let call = rw.call(callee, &params, Attrs::NONE, None);
    let body = rw.push(NodeSpec::new(Kind::EVALUATE), &[call]);
    let program = rw.prim_func(&params, outputs as u32, body, Attrs::NONE);
    let program = rw.private(program);
    rw.set_root(program);
    Ok((module.fresh_name(terms.str(*name)), rw.finish()?))
}
