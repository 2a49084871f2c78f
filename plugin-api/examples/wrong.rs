//! A plugin whose passes make mistakes of the kind that compiler engineers look for.

use tenon_plugin_api::prelude::*;

plugin! { id = "test.wrong", summary = "Passes that make mistakes" }

/// The operator that a node calls.
fn called<'a>(body: BodyView<'a>, expr: Expr) -> Option<&'a str> {
    match body.view(expr) {
        View::Call { callee, .. } => body.op_name(callee),
        _ => None,
    }
}

mod miscompile {
    use super::*;

    /// Takes `exp` for `tanh`, and `test.double` for `test.triple`.
    #[pass(name = "test.Miscompile")]
    fn miscompile(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let mut rw = func.edit();
        for expr in rw.post_order() {
            let mistaken = match called(body, expr) {
                Some("exp") => "tanh",
                Some("test.double") => "test.triple",
                _ => continue,
            };
            if let View::Call { args, .. } = body.view(expr) {
                let args: Vec<Expr> = args.iter().map(|arg| rw.body().resolve(arg)).collect();
                let wrong = rw.call_op(mistaken, &args, Attrs::NONE);
                rw.replace(expr, wrong);
            }
        }
        rw.finish()
    }
}

mod miscompile_program {
    use super::*;

    /// Takes the intrinsic `exp` for `tanh`.
    #[pass(name = "test.MiscompileProgram")]
    fn miscompile_program(func: PrimFunc, _: &Module, cx: &PassContext) -> Result<PrimFunc> {
        let body = func.view();
        let mut rw = func.edit();
        for expr in body.post_order() {
            let View::Intrinsic { name, args } = body.view(expr) else { continue };
            if body.terms().str(name) == "exp" {
                let data = cx.symbol("tanh").0;
                let args: Vec<Expr> = args.iter().map(|arg| rw.body().resolve(arg)).collect();
                let wrong = rw.push(NodeSpec { data, ..body.spec(expr) }, &args);
                rw.replace(expr, wrong);
            }
        }
        Ok(rw.finish()?.into())
    }
}

mod refuse {
    use super::*;

    /// Fails at the first `tanh`.
    #[pass(name = "test.RefuseTanh")]
    fn refuse(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        match body.post_order().find(|&expr| called(body, expr) == Some("tanh")) {
            Some(expr) => Err(PassError::new("tanh is not to my taste").at(expr)),
            None => Ok(func),
        }
    }
}
