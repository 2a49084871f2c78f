//! Evaluates what is known at compile time.
//!
//! ```ir
//! %a = add(const(f32[2], [1, 2]), const(f32[2], [3, 4]))       %a = const(f32[2], [4, 6])
//! %b = multiply(%x, %a)                                   =>   %b = multiply(%x, const(f32[2], [4, 6]))
//! ret %b                                                       ret %b
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

use tenon_plugin_api::prelude::*;

/// Results up to this size are folded whatever the size of the arguments.
const SMALL: u64 = 1 << 16;

/// Evaluates calls whose arguments are all known at compile time.
#[pass(
    name = "relax.FoldConstant",
    aliases = ["relay._transform.FoldConstant", "relax.transform.FoldConstant",
               "raf.pass_.FoldConstant", "relay._transform.DynamicToStatic"],
    opt_level = 2,
    phase = "optimize",
    until = "builtin",
    options(max_growth(int, default = 4, min = 1,
        help = "largest ratio of the size of a result to that of its arguments"),
        max_fill(int, default = 1073741824, min = 0,
        help = "largest size in bytes of a result of shapes alone"))
)]
fn fold_constant(func: Function, _: &Module, cx: &PassContext) -> Result<Function> {
    let growth = cx.option_int("max_growth").unsigned_abs();
    let fill = cx.option_int("max_fill").unsigned_abs();
    let limit = |sizes: u64| match sizes {
        0 => fill,
        sizes => SMALL.max(sizes.saturating_mul(growth)),
    };
    let body = func.view();
    let mut rw = func.edit();
    // Bytes of a constant expression; `None` for any other.
    let mut size: SideTable<Option<u64>> = SideTable::new(body, None);
    let binders = Binders::of(body);
    let [call_tir, shape_of] = ["call_tir", "shape_of"].map(|op| cx.symbol(op));
    // Whether a shape whose rank was not known is known now.
    let mut has_new_shape = false;
    for expr in body.post_order() {
        match body.view(expr) {
            View::Constant(constant) => size[expr] = Some(constant.bytes.len() as u64),
            View::Shape { ty } => {
                size[expr] = is_static_shape(body, ty).then_some(0);
            }
            View::Prim { dim } => {
                size[expr] = body.terms().dim_value(dim).map(|_| 0);
            }
            View::Tuple(fields) => {
                size[expr] = fields.iter().map(|field| size[field]).sum();
            }
            View::TupleGetItem { tuple, index } => {
                let tuple = rw.definition(tuple);
                let field = match rw.view(tuple) {
                    View::Tuple(fields) => fields.get(index),
                    _ => None,
                };
                if let Some(field) = field {
                    size[expr] = rw.is_constant(field).then_some(SMALL);
                    rw.replace(expr, field);
                }
            }
            View::If { cond, then, otherwise } => {
                let cond = rw.definition(cond);
                let taken = match rw.view(cond) {
                    View::Constant(cond) => Some(cond.bytes.first().is_some_and(|&bit| bit != 0)),
                    _ => None,
                };
                if let Some(taken) = taken {
                    rw.replace(expr, if taken { then } else { otherwise });
                }
            }
            View::Call { callee, args, .. } => {
                let op = body.op_symbol(callee);
                let values = args.skip((op == Some(call_tir)) as usize);
                let sizes: Option<u64> = values.iter().map(|value| size[value]).sum();
                let is_foldable = || !values.is_empty() && op.is_some_and(|op| cx.is_pure_op(op));
                if sizes.is_some() && cx.is_cancelled() {
                    return Err(PassError::cancelled());
                }
                if let Some(sizes) = sizes.filter(|_| is_foldable())
                    && let Some(result) = result_size(body, expr)
                    && result <= limit(sizes)
                    && let Ok(value) = rw.evaluate(expr)
                {
                    size[expr] = Some(result);
                    has_new_shape |= is_unknown(body, expr);
                    rw.replace(expr, value);
                } else if op == Some(shape_of)
                    && let Some(shape) = body.ty(expr).filter(|&ty| is_static_shape(body, ty))
                {
                    let TypeView::Shape(Some(dims)) = body.terms().ty(shape) else { continue };
                    let dims = dims.to_vec();
                    let value = rw.shape(&dims);
                    size[expr] = Some(0);
                    rw.replace(expr, value);
                } else if has_new_shape && is_unknown(body, expr) {
                    rw.set_type(expr, None);
                }
            }
            _ => {}
        }
        for var in binders.of_value(expr) {
            if has_new_shape && is_unknown(body, var) {
                rw.set_type(var, None);
            }
            size[var] = size[expr];
            if size[expr].is_some() {
                let value = rw.body().resolve(expr);
                rw.replace(var, value);
            }
        }
    }
    rw.finish()
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
