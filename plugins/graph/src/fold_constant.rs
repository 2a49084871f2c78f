//! Evaluates what is known at compile time.
//!
//! ```ir
//! %a = add(const(f32[2], [1, 2]), const(f32[2], [3, 4]))       %b = multiply(%x, const(f32[2], [4, 6]))
//! %b = multiply(%x, %a)                                   =>   ret %b
//! ret %b
//! ```
//!
//! An expression is constant if it is a constant tensor, a tuple of constants, or a variable bound to one.
//! A call folds when it has arguments, all of them are constant, and its operator is pure, as a call of a tensor
//! program is; the host's reference evaluator computes the value. Operands come before their users, so one sweep settles whole
//! chains, and nothing is looked at twice. A field of a tuple that is spelled out is the field, a choice whose
//! condition is constant is the branch taken, and the shape of a tensor whose extents are known is that shape.
//! Where a shape becomes known, the types of what is made with it are inferred anew.
//!
//! Kept as they are: calls that fail when they are evaluated, which may stand where nobody comes by, calls without
//! arguments, and calls whose result is much larger than their arguments,
//! such as a broadcast, since they cost memory and save no work. A tensor that is filled from a shape alone
//! is folded up to a limit of its own: it is how some models write down their weights.
//!
//! A variable that is bound to a constant goes, and with it what nobody reads any more: each link of a chain over weights
//! is as large as the weights. An edit gives that back when it ends, so it ends when it has made enough, and the next goes on.

use tenon_plugin_api::prelude::*;

/// Results up to this size are folded whatever the size of the arguments.
const SMALL: u64 = 1 << 16;

/// Bytes of results after which an edit ends, and for each node of the function, so that the time of another sweep is
/// little beside that of making them.
const ENOUGH: u64 = 32 << 20;
const ENOUGH_PER_NODE: u64 = 1 << 10;

/// Evaluates calls whose arguments are all known at compile time.
#[pass(
    name = "relax.FoldConstant",
    aliases = ["relay._transform.FoldConstant", "relax.transform.FoldConstant",
               "raf.pass_.FoldConstant", "relay._transform.DynamicToStatic"],
    opt_level = 2,
    phase = "optimize",
    until = "builtin"
)]
fn fold_constant(
    mut func: Function,
    _: &Module,
    cx: &PassContext,
    options: Options,
) -> Result<Function> {
    let mut has_new_shape = false;
    loop {
        let mut fold = Fold::of(&func, cx, &options, has_new_shape);
        let is_done = fold.sweep()?;
        fold.drop_bindings()?;
        has_new_shape = fold.has_new_shape;
        func = fold.rw.finish()?;
        if is_done {
            return Ok(func);
        }
    }
}

#[derive(Options)]
struct Options {
    /// largest ratio of the size of a result to that of its arguments
    #[option(default = 4, min = 1)]
    max_growth: u64,
    /// largest size in bytes of a result of shapes alone
    #[option(default = 1073741824)]
    max_fill: u64,
}

/// By the kind of expression they look at, the rules in the order they are tried.
const RULES: &[(Kind, Rule)] = &[
    // (x, y).0 => x
    (Kind::TUPLE_GET_ITEM, field_of_tuple),
    // if true { x } else { y } => x
    (Kind::IF, branch_taken),
    // add(1, 2) => 3
    (Kind::CALL, value_of_call),
    // shape_of(%x) => shape(2, 3), where %x is f32[2, 3]
    (Kind::CALL, shape_of_tensor),
];

type Rule = fn(&mut Fold<'_>, Expr) -> Option<Folded>;

/// What an expression folds to, and how many bytes that has; `None` where it is not constant.
struct Folded {
    value: Expr,
    size: Option<u64>,
}

/// The function, as far as it is folded.
struct Fold<'a> {
    body: BodyView<'a>,
    rw: Rewriter,
    cx: &'a PassContext,
    options: &'a Options,
    call_tir: Symbol,
    shape_of: Symbol,
    /// Bytes of a constant expression; `None` for any other.
    sizes: SideTable<Option<u64>>,
    /// Whether a shape whose rank was not known is known now.
    has_new_shape: bool,
    /// Variables that nothing reads, since all read the constant.
    gone: SideTable<bool>,
    /// Bytes of what this edit has made.
    made: u64,
}

fn field_of_tuple(fold: &mut Fold<'_>, expr: Expr) -> Option<Folded> {
    let View::TupleGetItem { tuple, index } = fold.body.view(expr) else { return None };
    let tuple = fold.rw.definition(tuple);
    let View::Tuple(fields) = fold.rw.view(tuple) else { return None };
    let value = fields.get(index)?;
    Some(Folded { value, size: fold.rw.is_constant(value).then_some(SMALL) })
}

fn branch_taken(fold: &mut Fold<'_>, expr: Expr) -> Option<Folded> {
    let View::If { cond, then, otherwise } = fold.body.view(expr) else { return None };
    let cond = fold.rw.definition(cond);
    let View::Constant(cond) = fold.rw.view(cond) else { return None };
    let is_true = cond.bytes.first().is_some_and(|&bit| bit != 0);
    Some(Folded { value: if is_true { then } else { otherwise }, size: None })
}

fn value_of_call(fold: &mut Fold<'_>, expr: Expr) -> Option<Folded> {
    let View::Call { callee, args, .. } = fold.body.view(expr) else { return None };
    let op = fold.body.op_symbol(callee)?;
    let values = args.skip((op == fold.call_tir) as usize);
    let sizes: Option<u64> = values.iter().map(|value| fold.sizes[value]).sum();
    let sizes = sizes.filter(|_| !values.is_empty() && fold.cx.is_pure_op(op))?;
    let size = result_size(fold.body, expr).filter(|&size| size <= fold.limit(sizes))?;
    let value = fold.rw.evaluate(expr).ok()?;
    fold.made += size;
    fold.has_new_shape |= is_unknown(fold.body, expr);
    Some(Folded { value, size: Some(size) })
}

fn shape_of_tensor(fold: &mut Fold<'_>, expr: Expr) -> Option<Folded> {
    let View::Call { callee, .. } = fold.body.view(expr) else { return None };
    if fold.body.op_symbol(callee) != Some(fold.shape_of) {
        return None;
    }
    let ty = fold.body.ty(expr).filter(|&ty| is_static_shape(fold.body, ty))?;
    let TypeView::Shape(Some(dims)) = fold.body.terms().ty(ty) else { return None };
    Some(Folded { value: fold.rw.shape(dims), size: Some(0) })
}

impl<'a> Fold<'a> {
    fn of(
        func: &'a Function,
        cx: &'a PassContext,
        options: &'a Options,
        has_new_shape: bool,
    ) -> Self {
        let body = func.view();
        Self {
            body,
            rw: func.edit(),
            cx,
            options,
            call_tir: cx.symbol("call_tir"),
            shape_of: cx.symbol("shape_of"),
            sizes: SideTable::new(body, None),
            has_new_shape,
            gone: SideTable::new(body, false),
            made: 0,
        }
    }

    /// Folds what is constant, from the beginning; false where enough was made before the end.
    fn sweep(&mut self) -> Result<bool> {
        let body = self.body;
        let binders = Binders::of(body);
        let enough = ENOUGH.max(ENOUGH_PER_NODE * body.len() as u64);
        for expr in body.post_order() {
            self.sizes[expr] = self.size_of_leaf(expr);
            let mut rules = RULES.iter().filter(|(kind, _)| *kind == body.kind(expr));
            let folded = rules.find_map(|(_, rule)| rule(self, expr));
            if let Some(Folded { value, size }) = folded {
                if self.cx.is_cancelled() {
                    return Err(PassError::cancelled());
                }
                self.sizes[expr] = size;
                self.rw.replace(expr, value);
            } else if body.kind(expr) == Kind::CALL {
                self.infer_anew(expr);
            }
            for var in binders.of_value(expr) {
                self.bind(var, expr);
            }
            if self.made >= enough {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Bytes of what is constant by itself, or because what it is made of is.
    fn size_of_leaf(&self, expr: Expr) -> Option<u64> {
        match self.body.view(expr) {
            View::Constant(constant) => Some(constant.bytes.len() as u64),
            View::Shape { ty } => is_static_shape(self.body, ty).then_some(0),
            View::Prim { dim } => self.body.terms().dim_value(dim).map(|_| 0),
            View::Tuple(fields) => fields.iter().map(|field| self.sizes[field]).sum(),
            // A variable has the size of what it is bound to.
            _ => self.sizes[expr],
        }
    }

    /// The largest result that is folded of arguments of so many bytes.
    fn limit(&self, sizes: u64) -> u64 {
        match sizes {
            0 => self.options.max_fill,
            sizes => SMALL.max(sizes.saturating_mul(self.options.max_growth)),
        }
    }

    /// Has a type that says too little inferred again, where a shape has become known.
    fn infer_anew(&mut self, expr: Expr) {
        if self.has_new_shape && is_unknown(self.body, expr) {
            self.rw.set_type(expr, None);
        }
    }

    /// Has the readers of a variable that is bound to a constant read the constant.
    fn bind(&mut self, var: Expr, value: Expr) {
        self.infer_anew(var);
        self.sizes[var] = self.sizes[value];
        if self.sizes[value].is_some() {
            let value = self.rw.body().resolve(value);
            self.rw.replace(var, value);
            self.gone[var] = true;
        }
    }

    /// Leaves out the bindings that nothing reads any more.
    fn drop_bindings(&mut self) -> Result<()> {
        let body = self.body;
        let blocks = body.post_order().filter(|&expr| body.kind(expr) == Kind::LET);
        for block in blocks.collect::<Vec<_>>() {
            let gone = &self.gone;
            self.rw.rewrite_bindings(block, |_, list, is_dataflow, var, value| {
                if !gone[var] {
                    list.bind(is_dataflow, var, value);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Whether all extents of a shape type are known.
fn is_static_shape(body: BodyView<'_>, ty: Type) -> bool {
    let terms = body.terms();
    let is_known = |&dim: &Dim| terms.dim_value(dim).is_some();
    matches!(terms.ty(ty), TypeView::Shape(Some(dims)) if dims.iter().all(is_known))
}

/// Whether a node is a tensor or shape of unknown rank.
fn is_unknown(body: BodyView<'_>, expr: Expr) -> bool {
    body.ty(expr).is_some_and(|ty| {
        matches!(body.terms().ty(ty), TypeView::Tensor { dims: None, .. } | TypeView::Shape(None))
    })
}

/// Bytes of a call's result; `None` when they are not known.
fn result_size(body: BodyView<'_>, expr: Expr) -> Option<u64> {
    let terms = body.terms();
    let mut total = 0u64;
    let mut pending = vec![body.ty(expr)?];
    while let Some(ty) = pending.pop() {
        match terms.ty(ty) {
            TypeView::Tuple(fields) => pending.extend(fields),
            TypeView::Shape(_) => {}
            _ => {
                let (dtype, shape) = terms.static_tensor(ty)?;
                let count = shape.iter().try_fold(1u64, |count, &extent| {
                    count.checked_mul(u64::try_from(extent).ok()?)
                })?;
                total = total.checked_add(dtype.bytes(count)?)?;
            }
        }
    }
    Some(total)
}

/// For each node, the variables that a `let` binds it to.
struct Binders {
    vars: Vec<(Expr, Expr)>,
}

impl Binders {
    fn of(body: BodyView<'_>) -> Self {
        let mut vars: Vec<(Expr, Expr)> = body
            .post_order()
            .filter_map(|expr| match body.view(expr) {
                View::Let(bindings) => Some(bindings.bindings()),
                _ => None,
            })
            .flatten()
            .map(|(var, value)| (value, var))
            .collect();
        vars.sort_unstable();
        Self { vars }
    }

    fn of_value(&self, value: Expr) -> impl Iterator<Item = Expr> {
        let start = self.vars.partition_point(|&(other, _)| other < value);
        self.vars[start..].iter().take_while(move |pair| pair.0 == value).map(|pair| pair.1)
    }
}
