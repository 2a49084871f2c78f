//! On which device what an operator makes lies.
//!
//! ```text
//! f32[4] on "cuda:0", f32[4]               an operator of both gives     f32[4] on "cuda:0"
//! f32[4] on "cuda:0"                       one that moves it gives       f32[4] on "cpu:0"
//! f32[4] on "cuda:0", f32[4] on "cpu:0"    an operator of both is refused
//! ```
//!
//! An operator runs where its arguments lie; its own inference sees types without devices, so it knows of none. What says no device may
//! lie on any. A value only goes to another device by an operator of one argument whose own inference says so.

use tenon_plugin_api::op::OpError;

use crate::{Attrs, Context, Cx, OpDef, Symbol, Type, TypeView};

/// The type of a call of an operator whose arguments lie on one device.
pub(super) fn on_one_device(
    cx: &Cx,
    op: &OpDef,
    args: &[Type],
    attrs: Attrs,
) -> Result<Type, OpError> {
    let terms = cx.terms();
    // Most types are of tensors, and say no device.
    let may_say =
        |&arg: &Type| matches!(terms.ty(arg), TypeView::Tuple(_)) || terms.device(arg).is_some();
    if !args.iter().any(may_say) {
        return op.infer(cx, args, attrs);
    }
    let devices: Vec<Symbol> = args.iter().flat_map(|&arg| terms.devices(arg)).collect();
    if devices.is_empty() {
        return op.infer(cx, args, attrs);
    }
    let plain: Vec<Type> = args.iter().map(|&arg| cx.on_device(arg, None)).collect();
    let own = op.infer(cx, &plain, attrs)?;
    let given = terms.devices(own);
    if args.len() == 1 && !given.is_empty() {
        return Ok(own);
    }
    let Some(&first) = devices.iter().chain(&given).next() else { return Ok(own) };
    match devices.iter().chain(&given).find(|&&device| device != first) {
        None => Ok(cx.on_device(own, Some(first))),
        Some(&second) => Err(OpError::Unsupported(format!(
            "it would run on {} and on {} at once: what moves a value to another device has to come first",
            terms.str(first),
            terms.str(second)
        ))),
    }
}
