//! Makes functions of the module of those that stand within another.
//!
//! ```ir
//! fn @main(%x: f32[4], %y: f32[4]) {             fn @main(%x: f32[4], %y: f32[4]) {
//!   %inner = fn (%a: f32[4]) {                     %b: f32[4] = @main_inner(%x, %y)
//!     %s = add(%a, %y)                             ret %b
//!     ret %s                                =>   }
//!   }                                            private fn @main_inner(%a: f32[4], %y: f32[4]) {
//!   %b = %inner(%x)                                %s = add(%a, %y)
//!   ret %b                                         ret %s
//! }                                              }
//! ```
//!
//! What a closure reads of the functions around it ([`captures`]) becomes its last parameters, and a call of
//! it gives them. One that is a value, because it is returned, chosen or handed on, is made where it stood:
//! `make_closure(@main_inner, %y)` is the function with a value for its last parameter. A symbolic dimension
//! that no parameter's type says comes in a shape. So nothing is evaluated earlier, later or more often.
//!
//! A closure keeps the name that its attribute `global_symbol` gives it; others are named after the function
//! around them and their variable ([`names`]). They are private, for the target that the function around them
//! names, and stand behind the functions of the module.

mod captures;
mod names;

use std::collections::HashMap;

use tenon_plugin_api::prelude::*;
use tenon_plugin_api::program::TARGET;

use captures::Nest;

/// Makes functions of the module of those that stand within another.
#[pass(
    name = "relax.LambdaLift",
    aliases = ["relax.transform.LambdaLift", "relay._transform.LambdaLift", "raf.pass_.LambdaLift"],
    opt_level = 0,
    phase = "ingest",
    requires = ["relax.Normalize"],
    establishes = ["closed"],
    idempotent = true
)]
fn lambda_lift(mut module: Module, cx: &PassContext) -> Result<Module> {
    let functions = module.functions();
    let mut nests: Vec<Nest<'_>> =
        functions.iter().filter_map(|(name, func)| Nest::of(cx.terms().str(*name), func)).collect();
    names::choose(&mut nests, &module, cx)?;
    let mut lifted = Vec::new();
    for nest in &nests {
        for level in 0..nest.levels.len() {
            let func = Copy::new(nest, level, cx).run()?;
            match level == nest.root() {
                true => module.insert(cx.symbol(nest.name), &func),
                false => lifted.push((nest.levels[level].global, func)),
            }
        }
    }
    for (name, func) in lifted {
        module.insert(name, &func);
    }
    Ok(module)
}

/// Copies one function of a nest, without those that stand within it.
struct Copy<'a> {
    nest: &'a Nest<'a>,
    level: usize,
    cx: &'a PassContext,
    rw: Rewriter,
    map: HashMap<Expr, Expr>,
}

impl<'a> Copy<'a> {
    fn new(nest: &'a Nest<'a>, level: usize, cx: &'a PassContext) -> Self {
        Self { nest, level, cx, rw: Rewriter::new(cx), map: HashMap::new() }
    }

    fn run(mut self) -> Result<Function> {
        let own = &self.nest.levels[self.level];
        let body = self.nest.func.view();
        let View::Function { params, body: result, result: declared, attrs } = body.view(own.node)
        else {
            return Err(PassError::new("a function has other parts than it should"));
        };
        let mut all: Vec<Expr> = params.iter().map(|param| self.copy(param)).collect();
        all.extend(own.captures.iter().map(|&var| self.copy(var)));
        let shape = (!own.dims.is_empty()).then(|| {
            let ty = self.cx.shape_type(Some(&own.dims));
            self.rw.var("dims", Some(ty))
        });
        all.extend(shape);
        if let Some(var) = own.var {
            let own = self.reference(self.level);
            self.map.insert(var, own);
        }
        let value = self.copy(result);
        let is_root = self.level == self.nest.root();
        let declared = if is_root { declared } else { declared.or(body.ty(result)) };
        let attrs = match is_root {
            true => attrs,
            false => self.attrs_of_lifted(attrs),
        };
        let mut function = self.rw.function(&all, value, declared, attrs);
        if !is_root || self.nest.func.is_private() {
            function = self.rw.private(function);
        }
        self.rw.set_root(function);
        self.rw.finish()
    }

    /// A closure is for what the function around it is for, unless it says something else.
    fn attrs_of_lifted(&self, attrs: Attrs) -> Attrs {
        let attrs = self.cx.without_attr(attrs, "global_symbol");
        match self.cx.terms().attrs(attrs).get(TARGET) {
            Some(_) => attrs,
            None => self.cx.with_target_of(attrs, self.nest.func),
        }
    }

    /// A copy of a node and of what it needs.
    fn copy(&mut self, root: Expr) -> Expr {
        let mut stack = vec![(root, false)];
        while let Some((expr, is_ready)) = stack.pop() {
            if self.map.contains_key(&expr) {
                continue;
            }
            if !is_ready {
                stack.push((expr, true));
                stack.extend(self.needs(expr).into_iter().rev().map(|need| (need, false)));
                continue;
            }
            let copy = self.copy_node(expr);
            self.map.insert(expr, copy);
        }
        self.map[&root]
    }

    /// What must be copied before a node.
    fn needs(&self, expr: Expr) -> Vec<Expr> {
        let (nest, body) = (self.nest, self.nest.func.view());
        match body.view(expr) {
            View::Function { .. } => nest.levels[nest.level_of[&expr]].captures.clone(),
            View::Call { callee, args, .. } => match nest.direct(self.level, callee) {
                Some(target) => {
                    args.iter().chain(nest.levels[target].captures.iter().copied()).collect()
                }
                None => body.operands(expr).to_vec(),
            },
            View::Let(bindings) => bindings
                .bindings()
                .filter(|&(var, _)| nest.is_kept(var))
                .flat_map(|(var, value)| [var, value])
                .chain([bindings.result()])
                .collect(),
            _ => body.operands(expr).to_vec(),
        }
    }

    fn copy_node(&mut self, expr: Expr) -> Expr {
        let (nest, body) = (self.nest, self.nest.func.view());
        match body.view(expr) {
            View::Function { .. } => self.reference(nest.level_of[&expr]),
            View::Var { .. } if nest.closed(expr).is_some() => {
                let name = nest.closed(expr).expect("it was just asked");
                self.rw.named(Kind::GLOBAL, name)
            }
            View::Call { callee, args, attrs } => match nest.direct(self.level, callee) {
                Some(target) => {
                    let callee = self.rw.named(Kind::GLOBAL, nest.levels[target].global);
                    let mut operands: Vec<Expr> = args.iter().map(|arg| self.map[&arg]).collect();
                    operands.extend(self.captured(target));
                    self.rw.call(callee, &operands, attrs, body.ty(expr))
                }
                None => self.copy_plain(expr),
            },
            View::Let(bindings) => {
                let mut list = LetList::new();
                for block in bindings.blocks() {
                    for at in block.first..block.first + block.len {
                        let (var, value) = bindings.binding(at);
                        if nest.is_kept(var) {
                            list.bind(block.is_dataflow, self.map[&var], self.map[&value]);
                        }
                    }
                }
                let result = self.map[&bindings.result()];
                if list.is_empty() && self.rw.body().kind(result) == Kind::GLOBAL {
                    return result;
                }
                let copy = list.finish(&mut self.rw, result);
                self.rw.set_type(copy, body.ty(expr));
                copy
            }
            _ => self.copy_plain(expr),
        }
    }

    fn copy_plain(&mut self, expr: Expr) -> Expr {
        let body = self.nest.func.view();
        let operands: Vec<Expr> =
            body.operands(expr).iter().map(|operand| self.map[&operand]).collect();
        self.rw.copy_from(self.nest.func, expr, &operands, &mut Substitution::new())
    }

    /// A lifted function as a value.
    fn reference(&mut self, target: usize) -> Expr {
        let level = &self.nest.levels[target];
        let global = self.rw.named(Kind::GLOBAL, level.global);
        let mut operands = vec![global];
        operands.extend(self.captured(target));
        if operands.len() == 1 {
            return global;
        }
        let op = self.rw.op("make_closure");
        let ty = self.nest.func.view().ty(level.node);
        self.rw.call(op, &operands, Attrs::NONE, ty)
    }

    /// What a lifted function is given besides its own arguments.
    fn captured(&mut self, target: usize) -> Vec<Expr> {
        let level = &self.nest.levels[target];
        let mut values: Vec<Expr> = level.captures.iter().map(|var| self.map[var]).collect();
        if !level.dims.is_empty() {
            values.push(self.rw.shape(&level.dims));
        }
        values
    }
}
