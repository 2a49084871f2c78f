//! A plugin that is built with every version of the API. What it finds it tells as a note.

use tenon_plugin_api::prelude::*;

plugin! { id = "compat.plugin", summary = "Works in every host" }

mod read {
    use super::*;

    /// Reads everything there is to read, and counts what it does not know.
    #[pass(name = "compat.Read")]
    fn read(func: Function, module: &Module, cx: &PassContext) -> Result<Function> {
        let body = func.view();
        let (mut operands, mut unknown, mut attrs) = (0, 0, 0);
        for expr in body.post_order() {
            operands += body.operands(expr).iter().filter(|operand| operand.0 < expr.0).count();
            unknown += matches!(body.view(expr), View::Unknown { .. }) as usize;
            attrs += body.terms().attrs(body.attrs(expr)).len();
        }
        let functions = module.functions().len();
        cx.note(&format!(
            "{functions} functions, {} nodes, {operands} operands, {attrs} attributes, {unknown} unknown",
            body.len()
        ));
        Ok(func)
    }
}

mod types {
    use super::*;

    /// Takes the types of a function's values apart, and counts what it does not know.
    #[pass(name = "compat.Types")]
    fn types(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
        let body = func.view();
        let terms = body.terms();
        let (mut tensors, mut dimensions, mut unknown) = (0, 0, 0);
        for ty in body.post_order().filter_map(|expr| body.ty(expr)) {
            match terms.ty(ty) {
                TypeView::Tensor { dims, .. } => {
                    tensors += 1;
                    dimensions += dims.map_or(0, <[Dim]>::len);
                }
                TypeView::Unknown(_) => unknown += 1,
                _ => {}
            }
        }
        cx.note(&format!("{tensors} tensors of {dimensions} dimensions, {unknown} unknown"));
        Ok(func)
    }
}

mod rewrite {
    use super::*;

    /// Calls `negative` where `exp` is called, and rebuilds every node of a kind that it does not know.
    #[pass(name = "compat.Rewrite")]
    fn rewrite(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let mut rw = func.edit();
        for expr in rw.post_order() {
            match body.view(expr) {
                View::Call { callee, args, attrs } if body.op_name(callee) == Some("exp") => {
                    let call = rw.call_op("negative", &args.to_vec(), attrs);
                    rw.replace(expr, call);
                }
                View::Unknown { children, .. } => {
                    let copy = rw.rebuild(expr, &children.to_vec());
                    rw.replace(expr, copy);
                }
                _ => {}
            }
        }
        rw.finish()
    }
}

mod fails {
    use super::*;

    /// Fails.
    #[pass(name = "compat.Fail")]
    fn fails(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        Err(PassError::new("as it should").at(func.view().root()))
    }
}

mod panics {
    use super::*;

    /// Panics.
    #[pass(name = "compat.Panic")]
    fn panics(_: Function, _: &Module, _: &PassContext) -> Result<Function> {
        panic!("as it should")
    }
}

#[cfg(feature = "next")]
mod make_later {
    use super::*;

    /// Puts what a function evaluates into a node of a kind of the next version, with a field of it.
    #[pass(name = "compat.MakeLater")]
    fn make_later(func: Function, _: &Module, _: &PassContext) -> Result<Function> {
        let body = func.view();
        let Some(mut value) = func.result() else { return Ok(func) };
        if let View::Let(bindings) = body.view(value) {
            value = bindings.result();
        }
        let mut rw = func.edit();
        let spec = NodeSpec { ty: body.ty(value), origin: 42, ..NodeSpec::new(Kind::LATER) };
        let later = rw.push(spec, &[value]);
        rw.replace(value, later);
        rw.finish()
    }
}

#[cfg(feature = "next")]
mod read_later {
    use super::*;

    /// Reads the field of the next version, and asks for its service.
    #[pass(name = "compat.ReadLater")]
    fn read_later(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
        let body = func.view();
        let origins: u32 = body.post_order().map(|expr| body.raw_node(expr).origin).sum();
        let service = match cx.term_count() {
            Some(0) => "it counts no terms",
            Some(_) => "it counts terms",
            None => "this host does not count terms",
        };
        cx.note(&format!("origins {origins}, {service}"));
        Ok(func)
    }
}
