//! Has values lie where their function runs, as what they are said to lie on.
//!
//! ```ir
//! fn @main(%x: f32[4] on "cpu:0") {                     fn @main(%x: f32[4]) {
//!   %a: f32[4] on "cpu:0" = exp(%x)                       %a: f32[4] = exp(%x)
//!   %b = to_vdevice(%a) { dst = "cpu:0" }      =>         ret %a
//!   ret %b                                              }
//! }
//! ```
//!
//! A function runs on the first device of its target: `cpu:0` on a processor, `cuda:0` on one of NVIDIA's. What lies there needs no
//! type that says so, and no move to it. A value that is to lie elsewhere is an error, since code is made for one device; in a pass
//! that is tried without a target it is a processor.

use tenon_plugin_api::prelude::*;

/// The operator that moves a value to another device, by its names.
pub(crate) const MOVES: [&str; 4] =
    ["to_vdevice", "relax.to_vdevice", "hint_on_device", "relax.hint_on_device"];
/// Attribute of a call: the type of its result.
const OUT: &str = "out";

/// Has values lie where their function runs, as what they are said to lie on.
#[pass(
    name = "relax.RealizeVDevice",
    aliases = ["relax.transform.RealizeVDevice"],
    opt_level = 0,
    phase = "ingest",
    requires = ["relax.LambdaLift"],
    establishes = ["placed"],
    idempotent = true
)]
fn realize_vdevice(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let body = func.view();
    let terms = body.terms();
    let said = |expr: Expr| body.ty(expr).map_or(Vec::new(), |ty| terms.devices(ty));
    let placed: Vec<Expr> = body.post_order().filter(|&expr| !said(expr).is_empty()).collect();
    let declared = match body.view(body.root()) {
        View::Function { result: Some(result), .. } if !terms.devices(result).is_empty() => {
            Some(result)
        }
        _ => None,
    };
    if placed.is_empty() && declared.is_none() {
        return Ok(func);
    }
    let own = format!("{}:0", cx.target().str("kind").unwrap_or("cpu"));
    let is_other = |device: &Symbol| terms.str(*device) != own;
    for &expr in &placed {
        if let Some(other) = said(expr).into_iter().find(is_other) {
            let other = terms.str(other);
            return Err(PassError::new(format!(
                "it is to lie on {other}, and the code of its function has {own} alone; a function says by its attribute `target` what its code is for"
            ))
            .at(expr));
        }
    }
    let plain = |ty: Type| cx.on_device(ty, None);
    let mut rw = func.edit();
    for &expr in &placed {
        rw.set_type(expr, body.ty(expr).map(plain));
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let out = terms.attrs(attrs).term(OUT).map(|out| Type(out.0));
        if body.op_name(callee).is_some_and(|op| MOVES.contains(&op))
            && let Some(x) = args.get(0)
        {
            rw.replace(expr, x);
        } else if let Some(out) = out.filter(|&out| !terms.devices(out).is_empty()) {
            let out = AttrValue::Term(plain(out).into());
            let attrs = cx.with_attr(attrs, OUT, out);
            let call = rw.with_attrs(expr, attrs);
            rw.replace(expr, call);
        }
    }
    if let Some(declared) = declared {
        let operands: Vec<Expr> = body.operands_keeping_binders(body.root()).collect();
        let spec = body.spec(body.root());
        let root = rw.push(NodeSpec { ty: None, data: plain(declared).0, ..spec }, &operands);
        rw.set_root(root);
    }
    rw.finish()
}
