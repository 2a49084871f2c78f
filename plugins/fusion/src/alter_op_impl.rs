//! Puts other tensor programs into the place of those that compute an operator.
//!
//! ```ir
//! %c = call_tir(@add, %a, %b) { out = … }        %0 = call_tir(@layout_transform, %a) { out = … }
//!                                          =>    %1 = call_tir(@layout_transform, %b) { out = … }
//!                                                %2 = call_tir(@acme_add, %0, %1) { out = … }
//!                                                %c = call_tir(@layout_transform_1, %2) { out = … }
//! ```
//!
//! A program says in `op_name` which operator it computes. The replacement is another program of the module; what
//! it takes and gives may have other layouts, and then transformations stand around its calls, as tensor
//! programs. A call is left alone when types do not agree with those of the replacement: an operator is computed
//! for many shapes, and a replacement is written for some.

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;

/// Puts other tensor programs into the place of those that compute an operator.
#[pass(
    name = "relax.AlterOpImpl",
    aliases = ["relax.transform.AlterOpImpl"],
    phase = "legalize",
    after = ["relax.LegalizeOps"],
    asks = ["compute"]
)]
fn alter_op_impl(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let kernels = Kernels::read(&options, &module, cx)?;
    if kernels.0.is_empty() {
        return Ok(module);
    }
    let mut transforms = Transforms::default();
    module
        .map_functions(cx, |module, _, func| alter(&func, module, &kernels, &mut transforms, cx))?;
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// `operator = function`: what computes it instead
    #[option(default = [])]
    kernels: Vec<String>,
    /// `function: NCHW->NCHW8c, -, NCHW8c->NCHW`: what is done to each argument and result, `-` for nothing
    #[option(default = [])]
    layouts: Vec<String>,
}

/// A function with calls of the replacements.
fn alter(
    func: &Function,
    module: &mut Module,
    kernels: &Kernels,
    transforms: &mut Transforms,
    cx: &PassContext,
) -> Result<Function> {
    let mut rw = func.edit();
    let body = func.view();
    for expr in rw.post_order() {
        let View::Call { callee, args, .. } = body.view(expr) else { continue };
        if body.op_name(callee) != Some("call_tir") {
            continue;
        }
        let Some(View::Global { name }) = args.get(0).map(|program| body.view(program)) else {
            continue;
        };
        let op = module.get(name).and_then(|program| {
            cx.terms().attrs(program.attrs()).str("op_name").map(str::to_owned)
        });
        let Some(kernel) = op.and_then(|op| kernels.0.get(&op)).filter(|it| it.name != name) else {
            continue;
        };
        let Some(types) = kernel.types(func, expr, cx) else { continue };
        let mut inputs = vec![rw.named(Kind::GLOBAL, kernel.name)];
        for ((arg, layout), ty) in args.skip(1).iter().zip(&kernel.layouts).zip(&types) {
            inputs.push(match layout {
                None => arg,
                Some(layout) => transforms.call(&mut rw, module, layout, arg, *ty, (func, cx))?,
            });
        }
        let results = &types[args.len() - 1..];
        let out = match results {
            [(_, ty)] => *ty,
            _ => cx.tuple_type(&results.iter().map(|&(_, ty)| ty).collect::<Vec<_>>()),
        };
        let attrs = cx.attrs(&[("out", AttrValue::Term(out.into()))]);
        let call = rw.call_op("call_tir", &inputs, attrs);
        let layouts = &kernel.layouts[args.len() - 1..];
        let new = match (results, layouts) {
            (_, layouts) if layouts.iter().all(Option::is_none) => call,
            (&[(outer, inner)], [Some(layout)]) => {
                transforms.call(&mut rw, module, layout, call, (inner, outer), (func, cx))?
            }
            _ => {
                let mut fields = Vec::with_capacity(results.len());
                for (index, (&(outer, inner), layout)) in results.iter().zip(layouts).enumerate() {
                    let field = rw.tuple_get_item(call, index as u32);
                    fields.push(match layout {
                        None => field,
                        Some(layout) => transforms.call(
                            &mut rw,
                            module,
                            layout,
                            field,
                            (inner, outer),
                            (func, cx),
                        )?,
                    });
                }
                rw.tuple(&fields)
            }
        };
        rw.replace(expr, new);
    }
    rw.finish()
}

/// From one layout to another.
type Change = (String, String);

/// The replacements, by the operators that they compute.
struct Kernels(HashMap<String, Kernel>);

struct Kernel {
    name: Symbol,
    /// Of its parameters, results last.
    params: Vec<Type>,
    results: usize,
    /// What is done to each of them.
    layouts: Vec<Option<Change>>,
}

impl Kernels {
    fn read(options: &Options, module: &Module, cx: &PassContext) -> Result<Self> {
        let mut layouts: HashMap<&str, Vec<Option<Change>>> = HashMap::new();
        for text in &options.layouts {
            let wrong = || PassError::new(format!("`{text}` is no `function: layout->layout, -`"));
            let (function, list) = text.split_once(':').ok_or_else(wrong)?;
            let change = |part: &str| match part.trim() {
                "-" => Ok(None),
                part => {
                    let (from, to) = part.split_once("->").ok_or_else(wrong)?;
                    Ok(Some((from.trim().to_owned(), to.trim().to_owned())))
                }
            };
            layouts.insert(function.trim(), list.split(',').map(change).collect::<Result<_>>()?);
        }
        let mut kernels = HashMap::new();
        for text in &options.kernels {
            let Some((op, function)) = text.split_once('=') else {
                return Err(PassError::new(format!("`{text}` is no `operator = function`")));
            };
            let (op, function) = (op.trim(), function.trim());
            let name = cx.symbol(function);
            let Some(program) = module.get(name).filter(|program| program.is_prim()) else {
                return Err(PassError::new(format!("there is no tensor program `{function}`")));
            };
            let Some(params) = program.param_types().into_iter().collect::<Option<Vec<Type>>>()
            else {
                return Err(PassError::new(format!("a parameter of `{function}` has no type")));
            };
            let body = program.view();
            let View::PrimFunc { outputs: results, .. } = body.view(body.root()) else { continue };
            let layouts = layouts.remove(function).unwrap_or_else(|| vec![None; params.len()]);
            if layouts.len() != params.len() {
                return Err(PassError::new(format!(
                    "`{function}` has {} parameters and results, and {} layouts",
                    params.len(),
                    layouts.len()
                )));
            }
            kernels.insert(op.to_owned(), Kernel { name, params, results, layouts });
        }
        match layouts.into_keys().next() {
            Some(function) => {
                Err(PassError::new(format!("`{function}` has layouts, but replaces nothing")))
            }
            None => Ok(Self(kernels)),
        }
    }
}

impl Kernel {
    /// The types of a call's arguments and results, each as it is and as the replacement has it; `None` where
    /// they cannot be made to agree.
    fn types(&self, func: &Function, call: Expr, cx: &PassContext) -> Option<Vec<(Type, Type)>> {
        let body = func.view();
        let out = body.ty(call)?;
        let results = match cx.terms().ty(out) {
            TypeView::Tuple(fields) => fields.to_vec(),
            _ => vec![out],
        };
        let args = body.operands(call).skip(2);
        let found: Vec<Type> = args
            .iter()
            .map(|arg| body.ty(arg))
            .chain(results.into_iter().map(Some))
            .collect::<Option<_>>()?;
        let agrees = |((found, wanted), layout): ((&Type, &Type), &Option<Change>)| {
            layout.is_some() || found == wanted
        };
        let is_right = found.len() == self.params.len()
            && args.len() + self.results == self.params.len()
            && found.iter().zip(&self.params).zip(&self.layouts).all(agrees);
        is_right.then(|| found.into_iter().zip(self.params.iter().copied()).collect())
    }
}

/// The programs that change layouts, one for each change, type and target.
#[derive(Default)]
struct Transforms(HashMap<(Change, Type, Attrs), Symbol>);

impl Transforms {
    /// A call that brings `value` from the first type to the second.
    fn call(
        &mut self,
        rw: &mut Rewriter,
        module: &mut Module,
        change: &Change,
        value: Expr,
        (from, to): (Type, Type),
        (func, cx): (&Function, &PassContext),
    ) -> Result<Expr> {
        let target = cx.target_of(func);
        let key = (change.clone(), from, target);
        let program = match self.0.get(&key) {
            Some(&program) => program,
            None => {
                let attrs = cx.attrs(&[
                    ("src_layout", change.0.as_str().into()),
                    ("dst_layout", change.1.as_str().into()),
                ]);
                let op = cx.symbol("layout_transform");
                let program = cx.legalize(op, attrs, &[from], to, target)?;
                let mut own = program.edit();
                let attrs = cx.with_target_of(program.attrs(), func);
                let root = own.with_attrs(program.view().root(), attrs);
                own.set_root(root);
                let name = module.fresh_name("layout_transform");
                module.insert(name, &own.finish()?);
                *self.0.entry(key).or_insert(name)
            }
        };
        let program = rw.named(Kind::GLOBAL, program);
        let attrs = cx.attrs(&[("out", AttrValue::Term(to.into()))]);
        Ok(rw.call_op("call_tir", &[program, value], attrs))
    }
}
