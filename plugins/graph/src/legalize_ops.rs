//! Turns operator calls into calls of tensor programs.
//!
//! ```ir
//! fn @main(%x: f32[4]) {           fn @main(%x: f32[4]) {
//!   %a = exp(%x)             =>      %a = call_tir(@exp, %x) { out = f32[4] }
//!   ret %a                           ret %a
//! }                                }
//!                                  private prim @exp(%A: f32[4], out %B: f32[4]) { … }
//! ```
//!
//! The rules of the facet `compute` know the tensor programs; the host asks them for the types of the call and the target of the function around it. Calls
//! with the same operator, attributes and types share one program, found by one look-up. Tuples are passed field by
//! field, since a program takes buffers. What the facet `view` knows as a reshape of its argument moves no data: it becomes
//! that reshape, which memory planning makes a view. Of memory that the function writes it is a copy, and a program. Dimensions may be symbols where the operator has a program for that; `docs/vm.md` says
//! which. Programs are for the target that their function names. What an operator takes for granted of dimensions, and only a call
//! can tell, is checked when it runs.
//!
//! The programs of a module are made before its calls are rewritten, on several threads where they are many.

mod fits;

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::Fit;
use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::TARGET;
use tenon_plugin_api::rule::{AsView, Compute, Rules};

/// Turns operator calls into calls of tensor programs.
#[pass(
    name = "relax.LegalizeOps",
    aliases = ["relax.transform.LegalizeOps"],
    opt_level = 0,
    phase = "legalize",
    requires = ["relax.Normalize"],
    establishes = ["legal", "compute_form"],
    asks = ["compute", "view"],
    idempotent = true
)]
fn legalize_ops(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let mut programs = Programs::new(&options.skip, cx);
    programs.make(&module, cx)?;
    module
        .map_functions(cx, |module, _, func| legalize_function(&func, module, &mut programs, cx))?;
    if !programs.fits.is_empty() {
        module.map_functions(cx, |_, _, func| fits::leave_dataflow(&func))?;
    }
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// operators that are left alone
    #[option(default = [])]
    skip: Vec<Symbol>,
}

/// What a program computes, and what its code is for: an operator with attributes, and the
/// types of its arguments and its result.
type Key = (Symbol, Attrs, Vec<Type>, Type, For);

/// What code is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct For {
    /// As the function says it, none where it does not.
    name: Term,
    /// As rules read it.
    target: Attrs,
}

/// The programs, by what they compute, and what is known of operators.
struct Programs {
    /// Those that no function calls yet.
    made: HashMap<Key, Result<Function>>,
    by_call: HashMap<Key, Program>,
    /// What calls of a program must find of dimensions, where that is anything.
    fits: HashMap<Symbol, Vec<Fit>>,
    roles: HashMap<Symbol, Role>,
    views: Rules<AsView>,
    computed: Rules<Compute>,
}

impl Programs {
    fn new(skipped: &[Symbol], cx: &PassContext) -> Self {
        Self {
            made: HashMap::new(),
            by_call: HashMap::new(),
            fits: HashMap::new(),
            roles: skipped.iter().map(|&op| (op, Role::Stays)).collect(),
            views: cx.rules(),
            computed: cx.rules(),
        }
    }

    /// Makes the programs of all calls, on several threads where they are many.
    fn make(&mut self, module: &Module, cx: &PassContext) -> Result<()> {
        let mut seen = HashSet::new();
        let mut keys: Vec<Key> = Vec::new();
        for (_, func) in module.functions().iter().filter(|(_, func)| !func.is_prim()) {
            let (body, target) = (func.view(), target_of(func, cx));
            for expr in body.post_order() {
                let View::Call { callee, args, attrs } = body.view(expr) else { continue };
                let View::Op { name: op } = body.view(callee) else { continue };
                if self.role(op, cx)? != Role::Program || is_given_function(body, args.get(0)) {
                    continue;
                }
                if let (Some(types), Some(out)) = (types_of_args(body, expr), body.ty(expr)) {
                    let key = (op, attrs, types, out, target);
                    if !seen.contains(&key) {
                        seen.insert(key.clone());
                        keys.push(key);
                    }
                }
            }
        }
        let shares: Vec<&[Key]> = keys.chunks(SHARE).collect();
        let make = |key: &Key| make(key, cx);
        let made = cx.parallel_for(shares.len(), |share| {
            shares[share].iter().map(make).collect::<Vec<Result<Function>>>()
        })?;
        self.made = keys.into_iter().zip(made.into_iter().flatten()).collect();
        Ok(())
    }

    fn role(&mut self, op: Symbol, cx: &PassContext) -> Result<Role> {
        if let Some(&role) = self.roles.get(&op) {
            return Ok(role);
        }
        let role = match cx.is_pure_op(op) {
            false => Role::Stays,
            true if self.views.has(op)? => Role::View,
            true => Role::Program,
        };
        self.roles.insert(op, role);
        Ok(role)
    }

    /// The program of a call, which stands in the module.
    fn of_call(
        &mut self,
        body: BodyView<'_>,
        call: Expr,
        (op, attrs, target): (Symbol, Attrs, For),
        module: &mut Module,
        cx: &PassContext,
    ) -> Result<Program> {
        let (Some(types), Some(out)) = (types_of_args(body, call), body.ty(call)) else {
            let what = format!("`{}`, or an argument of it, has no type", cx.terms().str(op));
            return Err(PassError::new(what).at(call));
        };
        let key = (op, attrs, types, out, target);
        if let Some(&program) = self.by_call.get(&key) {
            return Ok(program);
        }
        let made = self.made.remove(&key);
        let made = made.unwrap_or_else(|| make(&key, cx));
        let made = made.map_err(|error| PassError::new(error.message().to_owned()).at(call))?;
        let (made, fits) = fits::taken_out(made, cx)?;
        let name = module.fresh_name(&cx.terms().str(op).replace('.', "_"));
        module.insert(name, &made);
        if !fits.is_empty() {
            self.fits.insert(name, fits);
        }
        let program = Program { name, attrs: cx.attrs(&[("out", out.into())]) };
        self.by_call.insert(key, program);
        Ok(program)
    }
}

/// The program of a key.
fn make((op, attrs, types, out, target): &Key, cx: &PassContext) -> Result<Function> {
    let made = cx.legalize(*op, *attrs, types, *out, target.target)?;
    if target.name.is_none() {
        return Ok(made);
    }
    let mut rw = made.edit();
    let attrs = cx.with_attr(made.attrs(), TARGET, AttrValue::Term(target.name));
    let root = rw.with_attrs(made.view().root(), attrs);
    rw.set_root(root);
    rw.finish()
}

/// What the code of a function is for.
fn target_of(func: &Function, cx: &PassContext) -> For {
    let name = cx.terms().attrs(func.attrs()).term(TARGET).unwrap_or(Term(0));
    For { name, target: cx.target_of(func) }
}

/// So many programs are made in one go: fewer are not worth a thread.
const SHARE: usize = 256;

/// A program of the module.
#[derive(Clone, Copy)]
struct Program {
    name: Symbol,
    /// The attributes of its calls: `{ out = type }`.
    attrs: Attrs,
}

/// What becomes of an operator's calls.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// They stay: they have an effect.
    Stays,
    /// They become what a rule of `view` says.
    View,
    /// They become calls of a tensor program.
    Program,
}

/// The types of the arguments of a call.
fn types_of_args(body: BodyView<'_>, call: Expr) -> Option<Vec<Type>> {
    body.operands(call).skip(1).iter().map(|arg| body.ty(arg)).collect()
}

/// Whether a call is given a function to call, or to make a closure of: that is below operators already.
fn is_given_function(body: BodyView<'_>, first: Option<Expr>) -> bool {
    first.is_some_and(|first| match body.view(first) {
        View::Global { .. } | View::Extern { .. } => true,
        _ => {
            let ty = body.ty(first).map(|ty| body.terms().ty(ty));
            matches!(ty, Some(TypeView::Func { .. } | TypeView::Object(_)))
        }
    })
}

fn legalize_function(
    func: &Function,
    module: &mut Module,
    programs: &mut Programs,
    cx: &PassContext,
) -> Result<Function> {
    let body = func.view();
    let (effects, target) = (Effects::of(func, cx), target_of(func, cx));
    let mut rw = func.edit();
    let call_op = cx.symbol("call_tir");
    let mut needed = HashMap::new();
    for expr in body.post_order() {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let View::Op { name: op } = body.view(callee) else { continue };
        let role = programs.role(op, cx)?;
        if role == Role::Stays || is_given_function(body, args.get(0)) {
            continue;
        }
        let is_copied =
            args.get(0).is_some_and(|x| effects.is_own_memory(x)) && programs.computed.has(op)?;
        if role == Role::View
            && !is_copied
            && let Some(view) = programs.views.rewritten(&mut rw, op, expr)?
        {
            if view != expr {
                rw.replace(expr, view);
            }
            continue;
        }
        let program = programs.of_call(body, expr, (op, attrs, target), module, cx)?;
        if let Some(fits) = programs.fits.get(&program.name) {
            needed.insert(expr, fits.clone());
        }
        let operands = rw.body().operands(expr).skip(1).to_vec();
        let tensors = flatten(&mut rw, &operands);
        let call = call_tir(&mut rw, call_op, program, &tensors, body.ty(expr));
        rw.replace(expr, call);
    }
    if !needed.is_empty() {
        fits::check(func, &mut rw, &needed)?;
    }
    rw.finish()
}

/// `call_tir(@program, tensors…) { out = type }`.
fn call_tir(
    rw: &mut Rewriter,
    call_op: Symbol,
    program: Program,
    tensors: &[Expr],
    out: Option<Type>,
) -> Expr {
    let callee = rw.named(Kind::OP, call_op);
    let global = rw.named(Kind::GLOBAL, program.name);
    let args: Vec<Expr> = [global].iter().chain(tensors).copied().collect();
    rw.call(callee, &args, program.attrs, out)
}

/// The tensors among arguments: tuples field by field, shapes and scalars left out.
fn flatten(rw: &mut Rewriter, args: &[Expr]) -> Vec<Expr> {
    let mut tensors = Vec::with_capacity(args.len());
    let mut pending: Vec<Expr> = args.iter().rev().copied().collect();
    while let Some(arg) = pending.pop() {
        let Some(ty) = rw.body().ty(arg) else { continue };
        let count = match rw.terms().ty(ty) {
            TypeView::Tensor { .. } => {
                tensors.push(arg);
                continue;
            }
            TypeView::Tuple(fields) => fields.len() as u32,
            _ => continue,
        };
        let definition = rw.definition(arg);
        let fields = match rw.view(definition) {
            View::Tuple(fields) => fields.to_vec(),
            _ => (0..count).map(|index| rw.tuple_get_item(arg, index)).collect(),
        };
        pending.extend(fields.into_iter().rev());
    }
    tensors
}
