//! Puts private functions in the place of their calls.
//!
//! ```ir
//! fn @main(%x: f32[4]) {              fn @main(%x: f32[4]) {
//!   %a = @f(%x)                         %y = exp(%x)
//!   ret %a                       =>     %a = %y
//! }                                     ret %a
//! private fn @f(%p: f32[4]) {         }
//!   %y = exp(%p)
//!   ret %y
//! }
//! ```
//!
//! Callees come before their callers, so that what is put into a function has nothing left to be put into it.
//! The bindings of the callee stand where its call stood and effects keep their order; symbolic dimensions
//! become those of the arguments. A function that nobody names any more is removed. One that calls itself,
//! directly or over others, is kept, and one that is a value is kept for those who do not call it by its name. So is one that binds
//! dimensions: they stand for one thing in a function.
//!
//! A function of many calls is copied as often; the nodes that copies add are limited. What is called once is moved,
//! whatever its size, though of a long chain of such functions the inner ones are moved again and again: that is
//! limited too, in proportion to the module. Calls behind the limits stay calls, and so do those of functions for another target.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::TARGET;

/// How often a node may be moved, on average.
const MOVES: u64 = 16;

/// Puts private functions in the place of their calls.
#[pass(
    name = "relax.InlinePrivateFunctions",
    aliases = ["relax.transform.InlinePrivateFunctions", "relay._transform.Inline",
               "raf.pass_.InlineClosure"],
    phase = "ingest",
    until = "builtin",
    requires = ["relax.Normalize"],
    idempotent = false
)]
fn inline_private_functions(
    mut module: Module,
    cx: &PassContext,
    options: Options,
) -> Result<Module> {
    let graph = CallGraph::of(&module);
    let nodes: usize = module.functions().iter().map(|(_, func)| func.view().len()).sum();
    let mut bodies = Bodies {
        functions: HashMap::new(),
        copies_left: options.max_copied,
        moves_left: MOVES * nodes as u64,
        target: None,
    };
    for name in graph.callees_first() {
        let Some(func) = module.get(name).filter(|func| !func.is_prim()) else { continue };
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        let is_called = graph.named_by(name).any(|name| bodies.functions.contains_key(&name));
        let func = match is_called {
            true => bodies.put_into(func)?,
            false => func,
        };
        module.insert(name, &func);
        let is_kept = graph.is_recursive(name) || binds_dims(&func);
        if func.is_private() && !is_kept && !func.view().is_empty() {
            bodies.functions.insert(name, (func, graph.uses(name) == 1));
        }
    }
    let mut named: HashSet<Symbol> = HashSet::new();
    for (_, func) in module.functions() {
        named.extend(func.view().globals().map(|(_, name)| name));
    }
    for name in graph.callees_first() {
        if bodies.functions.contains_key(&name) && graph.uses(name) > 0 && !named.contains(&name) {
            module.remove(name);
        }
    }
    Ok(module)
}

/// Whether a function has symbols that stand for what it finds.
fn binds_dims(func: &Function) -> bool {
    let body = func.view();
    body.post_order().any(|expr| match body.view(expr) {
        View::Call { callee, .. } => body.op_name(callee) == Some("bind_dims"),
        _ => false,
    })
}

#[derive(Options)]
struct Options {
    /// nodes that copies add at most
    #[option(default = 1000000)]
    max_copied: u64,
}

/// The functions that may be put in the place of calls.
struct Bodies {
    /// Each with whether it is named once.
    functions: HashMap<Symbol, (Function, bool)>,
    /// Nodes that copies may still add.
    copies_left: u64,
    /// Nodes that may still be moved.
    moves_left: u64,
    /// What the code of the function that they are put into is for, where it says that.
    target: Option<Term>,
}

impl Bodies {
    /// A function with bodies in the place of its calls.
    fn put_into(&mut self, func: Function) -> Result<Function> {
        let mut rw = func.edit();
        self.target = rw.terms().attrs(func.attrs()).term(TARGET);
        for expr in rw.post_order().filter(|&expr| func.view().kind(expr) == Kind::LET) {
            rw.rewrite_bindings(expr, |rw, list, is_dataflow, var, value| {
                if !self.put(rw, list, is_dataflow, var, value) {
                    list.bind(is_dataflow, var, value);
                }
                Ok(())
            })?;
        }
        rw.finish()
    }

    /// Binds `var` to what the call `value` gives, without the call; false when it is to stay.
    fn put(
        &mut self,
        rw: &mut Rewriter,
        list: &mut LetList,
        is_dataflow: bool,
        var: Expr,
        value: Expr,
    ) -> bool {
        let View::Call { callee, args, .. } = rw.view(value) else { return false };
        let View::Global { name } = rw.view(callee) else { return false };
        let Some((func, is_single)) = self.functions.get(&name) else { return false };
        let body = func.view();
        let View::Function { params, body: result, .. } = body.view(body.root()) else {
            return false;
        };
        // What its code is for would be forgotten.
        let own = rw.terms().attrs(func.attrs()).term(TARGET);
        if own.is_some() && own != self.target {
            return false;
        }
        let size = body.len() as u64;
        let left = if *is_single { &mut self.moves_left } else { &mut self.copies_left };
        if params.len() != args.len() || size > *left {
            return false;
        }
        let args = args.to_vec();
        let mut dims = Substitution::new();
        for (param, &arg) in params.iter().zip(&args) {
            let (Some(declared), Some(given)) = (body.ty(param), rw.body().ty(arg)) else {
                return false;
            };
            if !dims.match_type(&rw.cx(), declared, given) {
                return false;
            }
        }
        *left -= size;
        let mut map: HashMap<Expr, Expr> = params.iter().zip(args).collect();
        let result = match body.view(result) {
            View::Let(bindings) => {
                for block in bindings.blocks() {
                    for at in block.first..block.first + block.len {
                        let (var, value) = bindings.binding(at);
                        let var = rw.import_with(func, var, &mut map, &mut dims);
                        let value = rw.import_with(func, value, &mut map, &mut dims);
                        // A dataflow block stays one where no effect and no choice comes into it.
                        list.bind(
                            block.is_dataflow || (is_dataflow && is_flow(rw, value)),
                            var,
                            value,
                        );
                    }
                }
                bindings.result()
            }
            _ => result,
        };
        let result = rw.import_with(func, result, &mut map, &mut dims);
        list.bind(is_dataflow, var, result);
        true
    }
}

/// Whether a value may stand in a dataflow block that its caller stood in.
fn is_flow(rw: &Rewriter, value: Expr) -> bool {
    !matches!(rw.view(value), View::If { .. })
}
