//! Modules and their parts.

use std::ops::Range;

use super::function::Printer;
use super::marks::Marks;
use super::terms::TermWriter;
use super::weights::WeightsPolicy;
use crate::text::WeightsFile;
use crate::text::names::{is_bare_global, write_name, write_quoted};
use crate::{Context, Cx, Expr, Function, Module, TermKind, Type};

/// The text of a module.
pub fn print_module(module: &Module, weights: &mut WeightsPolicy) -> String {
    let text = ModuleText::new(module, weights);
    let file = weights.file().map(|name| WeightsFile { name: name.to_owned(), sha256: None });
    text.join(file.as_ref())
}

/// The text of a module but for the line that names its weights, which is known when all functions are printed.
pub struct ModuleText {
    attrs: String,
    functions: String,
}

impl ModuleText {
    pub fn new(module: &Module, weights: &mut WeightsPolicy) -> Self {
        let terms = module.cx().terms();
        let mut attrs = String::new();
        if terms.kind(module.attrs) == TermKind::DICT {
            attrs.push_str("module ");
            let mut writer = TermWriter::new(terms);
            writer.attrs(&mut attrs, module.attrs);
            weights.after(&writer);
            attrs.push('\n');
        }
        let mut functions = String::new();
        for (name, function) in module.iter() {
            if !(attrs.is_empty() && functions.is_empty()) {
                functions.push('\n');
            }
            functions.push_str(&print_function(terms.str(name), function, weights));
        }
        Self { attrs, functions }
    }

    pub fn join(self, weights: Option<&WeightsFile>) -> String {
        let Self { attrs: mut out, functions } = self;
        if let Some(WeightsFile { name, sha256 }) = weights {
            let is_first = out.is_empty();
            out.push_str("weights ");
            write_quoted(&mut out, name);
            if let Some(digest) = sha256 {
                out.push_str(" sha256 ");
                write_quoted(&mut out, digest);
            }
            out.push('\n');
            if is_first {
                out.push('\n');
            }
        }
        out.push_str(&functions);
        out
    }
}

/// The text of one function of a module.
pub fn print_function(name: &str, function: &Function, weights: &mut WeightsPolicy) -> String {
    print_function_marking(name, function, weights, &[]).0
}

/// The text of one function, and for each of `nodes` where it is first written: the bytes of a binding's
/// value, an operand, a statement up to its brace, or a variable's name.
pub fn print_function_marking(
    name: &str,
    function: &Function,
    weights: &mut WeightsPolicy,
    nodes: &[Expr],
) -> (String, Vec<Option<Range<usize>>>) {
    // Most nodes are a line.
    let mut out = String::with_capacity(32 * function.view().len());
    if function.is_private() {
        out.push_str("private ");
    }
    out.push_str(if function.is_prim() { "prim @" } else { "fn @" });
    write_name(&mut out, name, is_bare_global(name));
    let marks = Printer::new(function, weights, &mut out, Marks::of(nodes)).function();
    out.push('\n');
    (out, nodes.iter().map(|&node| marks.get(node)).collect())
}

/// The text of a type.
pub fn print_type(cx: &Cx, ty: Type) -> String {
    let mut out = String::new();
    TermWriter::new(cx.terms()).ty(&mut out, ty);
    out
}
