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
//! The rules of the facet `compute` know the tensor programs; the host asks them for the types of the call and the target. Calls
//! with the same operator, attributes and types share one program, found by one look-up. Tuples are passed field by
//! field, since a program takes buffers. Reshapes stay as they are: they move no data, and memory planning
//! makes them views; expanding and squeezing axes become reshapes here. Of memory that the function writes they
//! are copies, and programs. Dimensions may be symbols where the operator has a program for that; `docs/vm.md` says
//! which.
//!
//! The programs of a module are made before its calls are rewritten, on several threads where they are many.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::prelude::*;

/// Turns operator calls into calls of tensor programs.
#[pass(
    name = "relax.LegalizeOps",
    aliases = ["relax.transform.LegalizeOps"],
    opt_level = 0,
    phase = "legalize",
    requires = ["relax.Normalize"],
    establishes = ["legal"],
    asks = ["compute"],
    idempotent = true
)]
fn legalize_ops(mut module: Module, cx: &PassContext, options: Options) -> Result<Module> {
    let mut programs = Programs::default();
    for op in options.skip {
        programs.roles.insert(op, Role::Stays);
    }
    programs.make(&module, cx)?;
    module
        .map_functions(cx, |module, _, func| legalize_function(&func, module, &mut programs, cx))?;
    Ok(module)
}

#[derive(Options)]
struct Options {
    /// operators that are left alone
    #[option(default = [])]
    skip: Vec<Symbol>,
}

/// What a program computes: an operator with attributes, and the types of its arguments and its result.
type Key = (Symbol, Attrs, Vec<Type>, Type);

/// The programs, by what they compute, and what is known of operators.
#[derive(Default)]
struct Programs {
    /// Those that no function calls yet.
    made: HashMap<Key, Result<Function>>,
    by_call: HashMap<Key, Program>,
    roles: HashMap<Symbol, Role>,
}

impl Programs {
    /// Makes the programs of all calls, on several threads where they are many.
    fn make(&mut self, module: &Module, cx: &PassContext) -> Result<()> {
        let mut seen = HashSet::new();
        let mut keys: Vec<Key> = Vec::new();
        for (_, func) in module.functions().iter().filter(|(_, func)| !func.is_prim()) {
            let body = func.view();
            for expr in body.post_order() {
                let View::Call { callee, args, attrs } = body.view(expr) else { continue };
                let View::Op { name: op } = body.view(callee) else { continue };
                let types = args.iter().map(|arg| body.ty(arg)).collect();
                if let (Role::Program, Some(types), Some(out)) =
                    (self.role(op, cx), types, body.ty(expr))
                {
                    let key = (op, attrs, types, out);
                    if !seen.contains(&key) {
                        seen.insert(key.clone());
                        keys.push(key);
                    }
                }
            }
        }
        let shares: Vec<&[Key]> = keys.chunks(SHARE).collect();
        let make = |(op, attrs, types, out): &Key| cx.legalize(*op, *attrs, types, *out);
        let made = cx.parallel_for(shares.len(), |share| {
            shares[share].iter().map(make).collect::<Vec<Result<Function>>>()
        })?;
        self.made = keys.into_iter().zip(made.into_iter().flatten()).collect();
        Ok(())
    }

    fn role(&mut self, op: Symbol, cx: &PassContext) -> Role {
        *self.roles.entry(op).or_insert_with(|| Role::of(cx.terms().str(op), cx))
    }
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
    /// They stay: views, which memory planning handles, effects, and what is below operators already.
    Stays,
    /// They become reshapes.
    Reshape,
    /// They become calls of a tensor program.
    Program,
}

impl Role {
    fn of(op: &str, cx: &PassContext) -> Self {
        match op {
            "call_tir" | "call_scalar" | "call_pure" | "make_closure" => Self::Stays,
            "reshape" | "shape_of" | "shape_to_tensor" | "tensor_to_shape" => Self::Stays,
            _ if !cx.is_pure(op) => Self::Stays,
            "expand_dims" | "squeeze" => Self::Reshape,
            _ => Self::Program,
        }
    }
}

fn legalize_function(
    func: &Function,
    module: &mut Module,
    programs: &mut Programs,
    cx: &PassContext,
) -> Result<Function> {
    let body = func.view();
    let effects = Effects::of(func, cx);
    let mut rw = func.edit();
    let call_op = cx.symbol("call_tir");
    for expr in body.post_order() {
        if cx.is_cancelled() {
            return Err(PassError::cancelled());
        }
        let View::Call { callee, args, attrs } = body.view(expr) else { continue };
        let View::Op { name: op } = body.view(callee) else { continue };
        let op_name = body.terms().str(op);
        let role = match programs.role(op, cx) {
            role if !args.get(0).is_some_and(|x| effects.is_own_memory(x)) => role,
            Role::Reshape => Role::Program,
            Role::Stays if op_name == "reshape" => Role::Program,
            role => role,
        };
        if role == Role::Stays {
            continue;
        }
        let Some(out) = body.ty(expr) else {
            return Err(PassError::new(format!("`{op_name}` has no type")).at(expr));
        };
        if role == Role::Reshape {
            let view = as_reshape(&mut rw, body, args.at(0), out)
                .ok_or_else(|| PassError::new(format!("`{op_name}` has no known rank")).at(expr))?;
            rw.replace(expr, view);
            continue;
        }
        let types: Option<Vec<Type>> = args.iter().map(|arg| body.ty(arg)).collect();
        let types = types.ok_or_else(|| PassError::new("an argument has no type").at(expr))?;
        let key = (op, attrs, types, out);
        let program = match programs.by_call.get(&key) {
            Some(&program) => program,
            None => {
                let made = programs.made.remove(&key);
                let made = made.unwrap_or_else(|| cx.legalize(op, attrs, &key.2, out));
                let made =
                    made.map_err(|error| PassError::new(error.message().to_owned()).at(expr))?;
                let name = module.fresh_name(&op_name.replace('.', "_"));
                module.insert(name, &made);
                let program = Program { name, attrs: cx.attrs(&[("out", out.into())]) };
                programs.by_call.insert(key, program);
                program
            }
        };
        let operands = rw.body().operands(expr).skip(1).to_vec();
        let tensors = flatten(&mut rw, &operands);
        let call = call_tir(&mut rw, call_op, program, &tensors, out);
        rw.replace(expr, call);
    }
    rw.finish()
}

/// `call_tir(@program, tensors…) { out = type }`.
fn call_tir(
    rw: &mut Rewriter,
    call_op: Symbol,
    program: Program,
    tensors: &[Expr],
    out: Type,
) -> Expr {
    let callee = rw.named(Kind::OP, call_op);
    let global = rw.named(Kind::GLOBAL, program.name);
    let args: Vec<Expr> = [global].iter().chain(tensors).copied().collect();
    rw.call(callee, &args, program.attrs, Some(out))
}

fn as_reshape(rw: &mut Rewriter, body: BodyView<'_>, x: Expr, out: Type) -> Option<Expr> {
    let (_, dims) = body.terms().tensor(out)?;
    let x = rw.body().resolve(x);
    let shape = rw.shape(dims);
    let callee = rw.op("reshape");
    Some(rw.call(callee, &[x, shape], Attrs::NONE, Some(out)))
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
