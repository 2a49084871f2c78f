//! Checks of what operators take for granted of dimensions.
//!
//! ```ir
//! dataflow {                                        %fits: () = expect_fit(shape(k), shape(j))
//!   %y: f32[m, n] = matmul(%a, %b)           =>     dataflow {
//! }                                                   %y: f32[m, n] = call_tir(@matmul, %a, %b) { … }
//!                                                   }
//! ```
//!
//! `%a` is an `f32[m, k]` and `%b` an `f32[j, n]`: whether these can be multiplied only a call can tell. The check stands before the
//! block, so that the block stays whole; the dimensions are known there, since a dataflow block binds none. In a plain block
//! it stands right before the call. Each is made once in a list of bindings, and comes from what its call came from: whoever calls with
//! what does not fit is told of it.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::{Callee, FITS, Fit, NodeSource};
use tenon_plugin_api::prelude::*;

/// What a program for a call says of dimensions, and the program without that.
pub(super) fn taken_out(program: Function, cx: &PassContext) -> Result<(Function, Vec<Fit>)> {
    let attrs = cx.terms().attrs(program.attrs());
    let mut fits = Vec::new();
    for (name, may_be_one) in FITS {
        let Some(pairs) = attrs.term(name) else { continue };
        if let TypeView::Shape(Some(dims)) = cx.terms().ty(Type(pairs.0)) {
            let pairs = dims.chunks_exact(2);
            fits.extend(pairs.map(|pair| Fit { extent: pair[0], wanted: pair[1], may_be_one }));
        }
    }
    if fits.is_empty() {
        return Ok((program, fits));
    }
    let attrs = FITS.iter().fold(program.attrs(), |attrs, (name, _)| cx.without_attr(attrs, name));
    let mut rw = program.edit();
    let root = rw.with_attrs(program.view().root(), attrs);
    rw.set_root(root);
    Ok((rw.finish()?, fits))
}

/// Writes the checks before the blocks of the calls that need them.
pub(super) fn check(
    func: &Function,
    rw: &mut Rewriter,
    needed: &HashMap<Expr, Vec<Fit>>,
) -> Result<()> {
    let body = func.view();
    for block in body.post_order() {
        let View::Let(bindings) = body.view(block) else { continue };
        let mut seen = HashSet::new();
        let mut before: HashMap<Expr, Vec<(NodeSource, Vec<Fit>)>> = HashMap::new();
        for part in bindings.blocks() {
            for index in part.first..part.first + part.len {
                let (_, value) = bindings.binding(index);
                let fits = needed.get(&value).into_iter().flatten();
                let new: Vec<Fit> = fits.copied().filter(|&fit| seen.insert(fit)).collect();
                if !new.is_empty() {
                    let place = if part.is_dataflow { part.first } else { index };
                    let new = (body.source(value), new);
                    before.entry(bindings.binding(place).0).or_default().push(new);
                }
            }
        }
        if before.is_empty() {
            continue;
        }
        rw.rewrite_bindings(block, |rw, list, is_dataflow, var, value| {
            for (source, fits) in before.get(&var).into_iter().flatten() {
                rw.set_source(*source);
                expect(rw, list, fits);
            }
            rw.set_source(NodeSource::NONE);
            list.bind(is_dataflow, var, value);
            Ok(())
        })?;
    }
    Ok(())
}

fn expect(rw: &mut Rewriter, list: &mut LetList, fits: &[Fit]) {
    for may_be_one in [false, true] {
        let of = || fits.iter().filter(|fit| fit.may_be_one == may_be_one);
        let extents: Vec<Dim> = of().map(|fit| fit.extent).collect();
        let wanted: Vec<Dim> = of().map(|fit| fit.wanted).collect();
        if extents.is_empty() {
            continue;
        }
        let attrs = match may_be_one {
            true => rw.cx().attrs(&[("may_be_one", true.into())]),
            false => Attrs::NONE,
        };
        let args = [rw.shape(&extents), rw.shape(&wanted)];
        let call = rw.call_op("expect_fit", &args, attrs);
        list.bind_new(rw, false, "fits", call);
    }
}

/// Calls of functions of the module leave dataflow blocks: they may check something now.
pub(super) fn leave_dataflow(func: &Function) -> Result<Function> {
    let body = func.view();
    let mut rw = func.edit();
    let may_check = |value| matches!(body.callee(value), Some(Callee::Function(_)));
    for block in body.post_order() {
        let View::Let(bindings) = body.view(block) else { continue };
        let calls: HashSet<Expr> = bindings
            .bindings()
            .filter(|&(_, value)| may_check(value))
            .map(|(var, _)| var)
            .collect();
        if !calls.is_empty() {
            rw.rewrite_bindings(block, |_, list, is_dataflow, var, value| {
                list.bind(is_dataflow && !calls.contains(&var), var, value);
                Ok(())
            })?;
        }
    }
    rw.finish()
}
