//! Makes the memory of results explicit: a tensor is made, then a program writes to it.
//!
//! ```ir
//! %a: f32[2, 3] = call_tir(@exp, %x) { out = f32[2, 3] }
//! %b: f32[6] = reshape(%a, shape(6))
//! ```
//! becomes
//! ```ir
//! %a: f32[2, 3] = builtin.alloc_tensor() { ty = f32[2, 3] }
//! %done: () = @exp(%x, %a)
//! %b: f32[6] = memory.view(%a) { ty = f32[6] }
//! ```
//!
//! A program that writes several tensors gets one for each, and the variable stands for the tuple of them.
//! A tensor of a shape is the numbers of that, which are known before any program runs (`vm.shape_to_tensor`).
//!
//! The program writes all of its outputs and nothing else, so the tensors hold from then on what the call
//! returned. A reshape moves no data: its result is the same memory under another type, or in a shape that is
//! found out at run time; and so is that of all else that is memory of its argument. One of memory that the function
//! made before and writes would not be what it was: that has to be a program by then, which copies.
//!
//! Blocks are plain by then, because what is made here has effects; and every call is bound to a variable,
//! so that there is a place for what comes before it.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::op::OpEffect;
use tenon_plugin_api::prelude::*;

/// Makes the memory of results explicit.
#[pass(
    name = "relax.CallTIRRewrite",
    aliases = ["relax.transform.CallTIRRewrite"],
    phase = "plan",
    requires = ["relax.ToNonDataflow"],
    establishes = ["explicit_memory"],
    idempotent = true
)]
fn call_tir_rewrite(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let effects = Effects::of(&func, cx);
    let mut ops = Ops::new(sharing(&func, cx), cx);
    let mut rw = func.edit();
    let mut is_bound = SideTable::new(func.view(), false);
    for expr in rw.post_order() {
        let View::Let(bindings) = rw.view(expr) else { continue };
        let (blocks, result) = (bindings.blocks(), bindings.result());
        let old: Vec<(Expr, Expr)> = bindings.bindings().collect();
        if old.iter().all(|&(_, value)| ops.lowering(&rw, value).is_none()) {
            continue;
        }
        let mut new_blocks = Vec::with_capacity(blocks.len());
        for block in blocks {
            let mut new = Vec::with_capacity(2 * block.len);
            for &(var, value) in &old[block.first..block.first + block.len] {
                let Some(lowering) = ops.lowering(&rw, value) else {
                    new.push((var, value));
                    continue;
                };
                is_bound[value] = true;
                rw.set_source(rw.body().source(value));
                match lowering {
                    Lowering::Program => ops.call_into(&mut rw, var, value, &mut new)?,
                    Lowering::View => new.push((var, ops.view(&mut rw, value)?)),
                    Lowering::Numbers => new.push((var, ops.numbers(&mut rw, value)?)),
                }
            }
            new_blocks.push((block.is_dataflow, new));
        }
        rw.set_source(NodeSource::NONE);
        let ty = rw.body().ty(expr);
        let new_let = rw.let_blocks(&new_blocks, result);
        rw.set_type(new_let, ty);
        rw.replace(expr, new_let);
    }
    let is_view_of_memory = |&expr: &Expr| {
        matches!(ops.lowering(&rw, expr), Some(Lowering::View))
            && effects.is_own_memory(func.view().operands(expr).at(1))
    };
    if let Some(expr) = func.view().post_order().find(is_view_of_memory) {
        let message =
            "this reshape is a copy, since its argument is written; run relax.LegalizeOps first";
        return Err(PassError::new(message).at(expr));
    }
    let nested = |&expr: &Expr| !is_bound[expr] && ops.lowering(&rw, expr).is_some();
    if let Some(expr) = rw.post_order().find(nested) {
        let message = "this call is not bound to a variable; run relax.Normalize first";
        return Err(PassError::new(message).at(expr));
    }
    rw.finish()
}

/// The operators of a function whose results are memory of their arguments.
fn sharing(func: &Function, cx: &PassContext) -> HashSet<Symbol> {
    let body = func.view();
    let name = |expr| match body.view(expr) {
        View::Op { name } => Some(name),
        _ => None,
    };
    let shares =
        |op: &Symbol| cx.op_info_of(*op).is_some_and(|info| info.effect == OpEffect::Shares);
    body.post_order().filter_map(name).filter(shares).collect()
}

/// The operators that do not survive, and what takes their place. Names and attributes are looked up once,
/// not for each call.
struct Ops {
    call_tir: Symbol,
    /// Those whose results are memory of their arguments.
    sharing: HashSet<Symbol>,
    shape_to_tensor: Symbol,
    numbers: Symbol,
    alloc_tensor: Symbol,
    view: Symbol,
    out: Symbol,
    done: Symbol,
    /// The type of a call that returns nothing.
    nothing: Type,
    /// `{ ty = … }` for each type.
    attrs: HashMap<Type, Attrs>,
}

#[derive(Clone, Copy)]
enum Lowering {
    Program,
    View,
    /// A shape as a tensor.
    Numbers,
}

impl Ops {
    fn new(sharing: HashSet<Symbol>, cx: &PassContext) -> Self {
        Self {
            sharing,
            call_tir: cx.symbol("call_tir"),
            shape_to_tensor: cx.symbol("shape_to_tensor"),
            numbers: cx.symbol("vm.shape_to_tensor"),
            alloc_tensor: cx.symbol("builtin.alloc_tensor"),
            view: cx.symbol("memory.view"),
            out: cx.symbol("out"),
            done: cx.symbol("done"),
            nothing: cx.tuple_type(&[]),
            attrs: HashMap::new(),
        }
    }

    fn lowering(&self, rw: &Rewriter, value: Expr) -> Option<Lowering> {
        let View::Call { callee, .. } = rw.view(value) else { return None };
        match rw.view(callee) {
            View::Op { name } if name == self.call_tir => Some(Lowering::Program),
            View::Op { name } if name == self.shape_to_tensor => Some(Lowering::Numbers),
            View::Op { name } if self.sharing.contains(&name) && is_view(rw, value) => {
                Some(Lowering::View)
            }
            _ => None,
        }
    }

    /// Binds the tensors that a program writes, the call of it, and `var` to the result.
    fn call_into(
        &mut self,
        rw: &mut Rewriter,
        var: Expr,
        call: Expr,
        bindings: &mut Vec<(Expr, Expr)>,
    ) -> Result<()> {
        let ty = type_of(rw, call)?;
        let mut operands = rw.body().operands(call).skip(1).to_vec();
        let program = operands.remove(0);
        let fields = match rw.terms().ty(ty) {
            TypeView::Tuple(fields) => Some(fields.to_vec()),
            _ => None,
        };
        match &fields {
            None => {
                bindings.push((var, self.alloc_tensor(rw, ty)));
                operands.push(var);
            }
            Some(fields) => {
                for &field in fields {
                    let tensor = variable(rw, self.out, field);
                    bindings.push((tensor, self.alloc_tensor(rw, field)));
                    operands.push(tensor);
                }
            }
        }
        let done = variable(rw, self.done, self.nothing);
        let call = rw.call(program, &operands, Attrs::NONE, Some(self.nothing));
        bindings.push((done, call));
        if let Some(fields) = fields {
            let first = operands.len() - fields.len();
            bindings.push((var, rw.tuple(&operands[first..])));
        }
        Ok(())
    }

    fn alloc_tensor(&mut self, rw: &mut Rewriter, ty: Type) -> Expr {
        self.typed_call(rw, self.alloc_tensor, &[], ty)
    }

    fn view(&mut self, rw: &mut Rewriter, reshape: Expr) -> Result<Expr> {
        let ty = type_of(rw, reshape)?;
        let mut args = rw.body().operands(reshape).skip(1).to_vec();
        if rw.terms().tensor(ty).is_some() {
            args.truncate(1);
        }
        Ok(self.typed_call(rw, self.view, &args, ty))
    }

    fn numbers(&self, rw: &mut Rewriter, call: Expr) -> Result<Expr> {
        let ty = type_of(rw, call)?;
        let args = rw.body().operands(call).skip(1).to_vec();
        let op = rw.named(Kind::OP, self.numbers);
        Ok(rw.call(op, &args, Attrs::NONE, Some(ty)))
    }

    /// A call of an operator that is told the type of its result.
    fn typed_call(&mut self, rw: &mut Rewriter, op: Symbol, args: &[Expr], ty: Type) -> Expr {
        let attrs = self.attrs.entry(ty).or_insert_with(|| rw.cx().attrs(&[("ty", ty.into())]));
        let op = rw.named(Kind::OP, op);
        rw.call(op, args, *attrs, Some(ty))
    }
}

/// Whether a call makes a tensor of a tensor, and not of a function that it calls.
fn is_view(rw: &Rewriter, call: Expr) -> bool {
    let is_tensor = |expr| {
        let ty = rw.body().ty(expr).map(|ty| rw.terms().ty(ty));
        matches!(ty, Some(TypeView::Tensor { .. }))
    };
    is_tensor(call) && rw.body().operands(call).get(1).is_some_and(is_tensor)
}

fn variable(rw: &mut Rewriter, name: Symbol, ty: Type) -> Expr {
    rw.push(NodeSpec { ty: Some(ty), data: name.0, ..NodeSpec::new(Kind::VAR) }, &[])
}

fn type_of(rw: &Rewriter, call: Expr) -> Result<Type> {
    rw.body().ty(call).ok_or_else(|| PassError::new("this call has no type").at(call))
}
