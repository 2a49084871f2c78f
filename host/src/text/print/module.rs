//! Modules and their parts.

use super::function::Printer;
use super::terms::TermWriter;
use super::weights::WeightsPolicy;
use crate::ir::{Context, Cx, Function, Module, TermKind, Type};
use crate::text::names::{is_bare_global, write_name, write_quoted};

/// The text of a module.
pub fn print_module(module: &Module, weights: &mut WeightsPolicy) -> String {
    let terms = module.cx().terms();
    let mut out = String::new();
    if terms.kind(module.attrs) == TermKind::DICT {
        out.push_str("module ");
        TermWriter::new(terms).attrs(&mut out, module.attrs);
        out.push('\n');
    }
    let header_end = out.len();
    let mut body = String::new();
    for (name, function) in module.iter() {
        if !(out.is_empty() && body.is_empty()) {
            body.push('\n');
        }
        body.push_str(&print_function(terms.str(name), function, weights));
    }
    if let Some(file) = weights.file() {
        out.push_str("weights ");
        write_quoted(&mut out, file);
        out.push('\n');
        if header_end == 0 {
            out.push('\n');
        }
    }
    out.push_str(&body);
    out
}

/// The text of one function of a module.
pub fn print_function(name: &str, function: &Function, weights: &mut WeightsPolicy) -> String {
    // Most nodes are a line.
    let mut out = String::with_capacity(32 * function.view().len());
    if function.is_private() {
        out.push_str("private ");
    }
    out.push_str(if function.is_prim() { "prim @" } else { "fn @" });
    write_name(&mut out, name, is_bare_global(name));
    Printer::new(function, weights, &mut out).function();
    out.push('\n');
    out
}

/// The text of a type.
pub fn print_type(cx: &Cx, ty: Type) -> String {
    let mut out = String::new();
    TermWriter::new(cx.terms()).ty(&mut out, ty);
    out
}
