//! The attribute macros of `tenon-plugin-api`.

mod codegen;
mod instrument;
mod option;
mod options;
mod pass;
mod plugin;
mod record;

use proc_macro::TokenStream;

/// Makes a function a pass.
///
/// ```ignore
/// /// Removes bindings that nothing reads.
/// #[pass(name = "relax.DeadCodeElimination", aliases = ["relay._transform.DeadCodeElimination"],
///        opt_level = 1, phase = "optimize", requires = ["relax.Normalize"])]
/// fn dead_code_elimination(func: Function, module: &Module, cx: &PassContext) -> Result<Function>
/// ```
///
/// The signature decides the kind: a `Module` is a module pass, a `Function` a pass over the graph
/// functions, a `PrimFunc` one over the tensor programs. A last parameter holds its options, a struct under
/// `#[derive(Options)]`. The doc comment is the pass's documentation, and so is
/// the `//!` comment at the top of the file, which shows it before and after.
///
/// A requirement may have options, and versions of the plugin that it is from:
/// `requires = ["relax.Normalize ^1.2", "relax.FuseOps{max_depth=8}"]`.
#[proc_macro_attribute]
pub fn pass(attributes: TokenStream, item: TokenStream) -> TokenStream {
    pass::expand(attributes.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a struct the options of a pass, which takes it as its last parameter.
///
/// ```ignore
/// #[derive(Options)]
/// struct Options {
///     /// most calls in one group
///     #[option(default = 256, min = 1)]
///     max_depth: usize,
///     /// operators that are left alone
///     #[option(default = [])]
///     skip: Vec<Symbol>,
/// }
/// ```
///
/// An option is an `i64`, `u64`, `usize`, `f64`, `bool` or `String`, a `Symbol`, which is an operator, or a `Vec` of one of
/// these. It has a `default`, and may have a range (`min`, `max`; a `u64` or `usize` has the `min` 0 by itself) and texts
/// of which it is `one_of`. Its doc comment says what it does.
#[proc_macro_derive(Options, attributes(option))]
pub fn options(item: TokenStream) -> TokenStream {
    options::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function a code generator.
///
/// ```ignore
/// /// Code for element-wise operators.
/// #[codegen(name = "acme", patterns = ["add = add(*, *)", "relu = nn.relu(*)"])]
/// fn acme(module: &Module, names: &[Symbol], cx: &PassContext) -> Result<Vec<u8>>
/// ```
///
/// The patterns say what it takes; `tenon_plugin_api::pattern` has their language. What more it demands says
/// `accepts = function`, a `fn(&Function, &PassContext) -> bool` over what a pattern matched. It compiles functions of a
/// module, those called `names`, into one relocatable object; `docs/byoc.md` says what that must define.
#[proc_macro_attribute]
pub fn codegen(attributes: TokenStream, item: TokenStream) -> TokenStream {
    codegen::expand(attributes.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a struct an instrument: something that watches passes.
///
/// ```ignore
/// /// Counts how often each pass ran.
/// #[instrument(name = "acme.Count")]
/// #[derive(Default)]
/// struct Count(u64);
///
/// impl Instrument for Count {}
/// ```
///
/// It is made by `Default`, once for each context. The doc comment is its documentation.
#[proc_macro_attribute]
pub fn instrument(attributes: TokenStream, item: TokenStream) -> TokenStream {
    instrument::expand(attributes.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Names the plugin, once, in `lib.rs`: `plugin! { id = "tenon.graph", summary = "…" }`.
#[proc_macro]
pub fn plugin(input: TokenStream) -> TokenStream {
    plugin::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
