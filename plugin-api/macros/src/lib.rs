//! The attribute macros of `tenon-plugin-api`.

mod attr;
mod codegen;
mod instrument;
mod op;
mod option;
mod options;
mod pass;
mod plugin;
mod record;
mod rule;

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

/// Makes a struct an operator: its fields are the attributes of a call.
///
/// ```ignore
/// /// Exponentials along an axis, divided by their sum.
/// #[op(name = "nn.softmax", pattern = "out_fusable")]
/// pub struct Softmax {
///     /// The axis whose elements sum to one.
///     #[attr(default = -1)]
///     axis: i64,
/// }
///
/// impl Operator for Softmax {}
/// ```
///
/// The first line of the doc comment is the summary, and the doc comments of the fields say what the attributes mean.
/// `args` is the number of arguments, `2`, `0..=1` or `1..`, 1 where nothing is said; `effect` is `none`, `shares`, `makes`
/// or `any`; `pattern` is `elementwise`, `broadcast`, `injective`, `reduction`, `out_fusable`, `tuple` or `opaque`, which
/// is what stands where nothing is said; `aliases` are other names.
///
/// A field is an `i64`, `f64`, `bool`, `String`, `Vec<i64>`, `[i64; N]`, `DType`, `Layout`, `Type` or `Term`, or an `Option` of
/// one, which may be absent. One that is no `Option` and has no `default` must be given. `min`, `max` and `one_of` bound it.
#[proc_macro_attribute]
pub fn op(attributes: TokenStream, item: TokenStream) -> TokenStream {
    op::expand(attributes.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function a rule: what is known of an operator besides its meaning.
///
/// ```ignore
/// #[rule(gradient)]
/// fn gradient(op: &Softmax, at: &mut Adjoint<'_>) -> Result<Grads>
///
/// #[rule(simplify, key = "nn.relu", benefit = 2)]
/// fn twice(at: &mut Site<'_>) -> Option<Expr>
/// ```
///
/// First stands the facet: `gradient`, `precision`, `layout`, `simplify`, `approximate`, `canonicalize`,
/// `decompose.inference`, `decompose.training`, `compute`, `import.onnx`, `cost`, `view`, `intrinsic`, `reducer`, `interpreter`, or the type of a facet that a plugin defines. The facet says what the function is given and what it
/// answers. `None` declines: then the rule of the next lower benefit is asked.
///
/// A function with the operator as its first parameter is about calls of it, and is given their attributes. `key` is what
/// another one is about, a text or a list of texts. `benefit` says which of several rules for one key is asked first, 1
/// where nothing is said; `when` names a `fn(&Ask) -> bool` without which the rule declines. `domain`, `since` and `until` are for
/// operators of model formats that have versions.
#[proc_macro_attribute]
pub fn rule(attributes: TokenStream, item: TokenStream) -> TokenStream {
    rule::expand(attributes.into(), item.into())
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
