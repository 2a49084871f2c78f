//! What rewrites of operator calls share: matching calls, reading shapes and numbers, building.

use crate::ir::{
    AttrValue, Attrs, BodyView, Build, Context, DType, Dim, Expr, Kind, Terms, Type, TypeView, View,
};
use crate::pass::Rewriter;

/// A call of an operator, taken apart. The arguments follow the replacements made so far.
#[derive(Clone, Debug)]
pub struct Call {
    /// The call itself; where it was asked for by a variable, what the variable stands for.
    pub expr: Expr,
    /// The arguments, mostly variables.
    pub args: Vec<Expr>,
    /// The attributes.
    pub attrs: Attrs,
    /// The type of the result.
    pub ty: Option<Type>,
}

/// Reads and builds calls of operators in a function that is edited.
pub trait Calls: Build {
    /// The value that a `let`-bound variable stands for, through variables bound to variables; anything
    /// else is itself. A variable whose value reads memory that somebody may write ([`crate::pass::Effects`]) is itself as
    /// well, since the value could be another one where the variable is read.
    fn definition(&mut self, expr: Expr) -> Expr;

    /// Whether a node reads memory and is nested: it may be evaluated before the node that it is read by, and
    /// a write lie between.
    fn is_nested_read(&mut self, expr: Expr) -> bool;

    /// Takes a node apart.
    fn view(&self, expr: Expr) -> View<'_> {
        self.body().view(expr)
    }

    /// The terms that types, names and attributes refer to.
    fn terms(&self) -> Terms<'_> {
        self.body().terms()
    }

    /// Whether a node is a constant tensor, or a variable that stands for one.
    fn is_constant(&mut self, expr: Expr) -> bool {
        let definition = self.definition(expr);
        self.body().kind(definition) == Kind::CONSTANT
    }

    /// The call of operator `op` that an expression is, or a variable stands for; none that would read something
    /// else where it is looked at ([`Rewriter::definition`]).
    fn call_of(&mut self, expr: Expr, op: &str) -> Option<Call> {
        let expr = self.definition(expr);
        if self.is_nested_read(expr) {
            return None;
        }
        let body = self.body();
        match body.view(expr) {
            View::Call { callee, args, attrs } if body.op_name(callee) == Some(op) => {
                Some(Call { expr, args: args.to_vec(), attrs, ty: body.ty(expr) })
            }
            _ => None,
        }
    }

    /// Element type and dimensions of a tensor of known rank.
    fn tensor(&self, expr: Expr) -> Option<(DType, Vec<Dim>)> {
        let (dtype, dims) = self.terms().tensor(self.body().ty(expr)?)?;
        Some((dtype, dims.to_vec()))
    }

    /// The extents of a tensor whose dimensions are all integers.
    fn extents(&self, expr: Expr) -> Option<Vec<i64>> {
        let (_, shape) = self.terms().static_tensor(self.body().ty(expr)?)?;
        Some(shape)
    }

    /// The number of dimensions of a tensor.
    fn rank(&self, expr: Expr) -> Option<usize> {
        let (_, dims) = self.terms().tensor(self.body().ty(expr)?)?;
        Some(dims.len())
    }

    /// The number that every element of a constant, or of a variable that stands for one, is. A constant of
    /// more than 4096 elements is not looked at, so asking at every call takes time in the number of calls.
    fn splat(&mut self, expr: Expr) -> Option<f64> {
        let definition = self.definition(expr);
        let View::Constant(constant) = self.view(definition) else { return None };
        let (dtype, _) = self.terms().tensor(constant.ty)?;
        let width = dtype.bits() as usize / 8;
        if constant.bytes.len() > 4096 * width {
            return None;
        }
        let mut elements = constant.bytes.chunks_exact(width.max(1));
        let first = elements.next()?;
        elements.all(|element| element == first).then(|| dtype.decode(first))?
    }

    /// A constant without dimensions; `None` when the element type has no such number.
    fn number(&mut self, dtype: DType, value: f64) -> Option<Expr> {
        let bytes = dtype.encode(value)?;
        let ty = self.with_cx(|cx| cx.static_tensor_type(dtype, &[]));
        Some(self.constant(ty, &bytes))
    }

    /// A call of an operator without attributes.
    fn apply(&mut self, op: &str, args: &[Expr]) -> Expr {
        self.call_op(op, args, Attrs::NONE)
    }

    /// A call of an operator with these attributes.
    fn apply_with(&mut self, op: &str, args: &[Expr], attrs: &[(&str, AttrValue)]) -> Expr {
        let attrs = self.with_cx(|cx| cx.attrs(attrs));
        self.call_op(op, args, attrs)
    }

    /// The elements of a tensor in another shape; the tensor itself when it has that shape.
    fn reshape(&mut self, x: Expr, dims: &[Dim]) -> Expr {
        if self.tensor(x).is_some_and(|(_, own)| own == dims) {
            return x;
        }
        let shape = self.shape(dims);
        self.apply("reshape", &[x, shape])
    }

    /// The axes of a tensor in another order; the tensor itself when no axis moves.
    fn transpose(&mut self, x: Expr, axes: &[i64]) -> Expr {
        match axes.iter().copied().eq(0..axes.len() as i64) {
            true => x,
            false => self.apply_with("transpose", &[x], &[("axes", axes.into())]),
        }
    }

    /// A tensor with new axes of extent 1, at these places of the result.
    fn expand_dims(&mut self, x: Expr, axes: &[i64]) -> Expr {
        match axes {
            [] => x,
            axes => self.apply_with("expand_dims", &[x], &[("axis", axes.into())]),
        }
    }

    /// A tensor in another element type; the tensor itself when it has that one.
    fn in_dtype(&mut self, x: Expr, dtype: DType) -> Expr {
        let own = self.body().ty(x).map(|ty| self.terms().ty(ty));
        match own {
            Some(TypeView::Tensor { dtype: own, .. }) if own == dtype => x,
            _ => self.apply_with("cast", &[x], &[("dtype", dtype.to_string().into())]),
        }
    }

    /// The indices `begin .. end` along one axis.
    fn slice(&mut self, x: Expr, axis: i64, begin: i64, end: i64) -> Expr {
        let one = |value: i64| AttrValue::Ints(vec![value]);
        let attrs = [("axes", one(axis)), ("begin", one(begin)), ("end", one(end))];
        self.apply_with("strided_slice", &[x], &attrs)
    }
}

/// How often the nodes of a body are read, as it was when the count was made.
pub struct Uses {
    counts: Vec<u32>,
}

impl Uses {
    /// Counts the uses in a body; the place that binds a variable is none.
    pub fn of(body: BodyView<'_>) -> Self {
        let mut counts = vec![0u32; body.len()];
        for expr in body.post_order() {
            for (position, operand) in body.operands(expr).iter().enumerate() {
                if !body.is_binder(expr, position) {
                    counts[operand.index()] += 1;
                }
            }
        }
        Self { counts }
    }

    /// How many places read a node. Nodes that are younger than the count are read once.
    pub fn count(&self, expr: Expr) -> u32 {
        self.counts.get(expr.index()).copied().unwrap_or(1)
    }

    /// Whether one place alone reads a node and, where it is a variable, what the variable stands for.
    pub fn is_single(&self, rw: &mut Rewriter, expr: Expr) -> bool {
        let definition = rw.definition(expr);
        self.count(expr) == 1 && self.count(definition) == 1
    }
}
