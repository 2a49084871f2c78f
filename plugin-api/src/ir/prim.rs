//! Building tensor programs.

use crate::ir::{
    Attrs, BinaryOp, Build, Context, DType, Expr, Kind, LoopKind, NewBlock, NodeSpec, Term, Type,
    View,
};

/// Adds nodes of tensor programs. Integer arithmetic on literals is folded as it is built.
pub trait BuildPrim: Build {
    /// A buffer of a tensor type; `scope` is empty for the global memory.
    fn buffer(&mut self, name: &str, ty: Type, scope: &str) -> Expr {
        let cx = self.cx();
        let aux = if scope.is_empty() { 0 } else { cx.symbol(scope).0 };
        let data = cx.symbol(name).0;
        self.push(NodeSpec { ty: Some(ty), data, aux, ..NodeSpec::new(Kind::BUFFER) }, &[])
    }

    /// A scalar variable.
    fn scalar_var(&mut self, name: &str, dtype: DType) -> Expr {
        let ty = self.with_cx(|cx| cx.scalar_type(dtype));
        self.var(name, Some(ty))
    }

    /// An integer or bool literal.
    fn int_of(&mut self, dtype: DType, value: i64) -> Expr {
        let cx = self.cx();
        let spec = NodeSpec {
            ty: Some(cx.scalar_type(dtype)),
            data: cx.int(value).0,
            ..NodeSpec::new(Kind::INT)
        };
        self.push(spec, &[])
    }

    /// An i64 literal, the type of indices.
    fn index(&mut self, value: i64) -> Expr {
        self.int_of(DType::I64, value)
    }

    /// A float literal.
    fn float_of(&mut self, dtype: DType, value: f64) -> Expr {
        let cx = self.cx();
        let spec = NodeSpec {
            ty: Some(cx.scalar_type(dtype)),
            data: cx.float(value).0,
            ..NodeSpec::new(Kind::FLOAT)
        };
        self.push(spec, &[])
    }

    /// The literal `value` in any dtype.
    fn literal(&mut self, dtype: DType, value: f64) -> Expr {
        if dtype.is_float() {
            self.float_of(dtype, value)
        } else {
            self.int_of(dtype, value as i64)
        }
    }

    /// The value of an integer literal.
    fn int_value(&self, expr: Expr) -> Option<i64> {
        match self.body().view(expr) {
            View::Int(value) => Some(value),
            _ => None,
        }
    }

    /// `a op b`; both must have one type.
    fn binary(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let ty = self.body().ty(a);
        let scalar = self.body().scalar_ty(a);
        if let Some((dtype, 1)) = scalar
            && dtype.is_int()
        {
            let (x, y) = (self.int_value(a), self.int_value(b));
            match fold_int(op, x, y) {
                Some(Folded::Left) => return a,
                Some(Folded::Right) => return b,
                Some(Folded::Int(value)) => return self.int_of(dtype, value),
                Some(Folded::Bool(value)) => return self.int_of(DType::BOOL, value as i64),
                None => {}
            }
        }
        let ty = if op.is_comparison() {
            scalar.map(|(_, lanes)| self.with_cx(|cx| cx.vector_type(DType::BOOL, lanes)))
        } else {
            ty
        };
        self.push(NodeSpec { ty, data: op as u32, ..NodeSpec::new(Kind::BINARY) }, &[a, b])
    }

    /// `a + b`.
    fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.binary(BinaryOp::Add, a, b)
    }

    /// `a - b`.
    fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// `a * b`.
    fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// `a * value + offset` on indices.
    fn scaled(&mut self, a: Expr, value: i64, offset: Expr) -> Expr {
        let value = self.index(value);
        let product = self.mul(a, value);
        self.add(product, offset)
    }

    /// `if cond { then } else { otherwise }` as a value; both sides are evaluated.
    fn select(&mut self, cond: Expr, then: Expr, otherwise: Expr) -> Expr {
        let ty = self.body().ty(then);
        self.push(NodeSpec { ty, ..NodeSpec::new(Kind::SELECT) }, &[cond, then, otherwise])
    }

    /// Conversion to `dtype`, keeping the lanes.
    fn cast(&mut self, value: Expr, dtype: DType) -> Expr {
        let (from, lanes) = self.body().scalar_ty(value).unwrap_or((dtype, 1));
        if from == dtype {
            return value;
        }
        let ty = self.with_cx(|cx| cx.vector_type(dtype, lanes));
        self.push(NodeSpec { ty: Some(ty), ..NodeSpec::new(Kind::CAST) }, &[value])
    }

    /// A call of scalar function `name` whose result has the type of its last argument.
    fn intrinsic(&mut self, name: &str, args: &[Expr]) -> Expr {
        let ty = args.last().and_then(|&arg| self.body().ty(arg));
        self.intrinsic_of(name, args, ty)
    }

    /// A call of scalar function `name` with a result type.
    fn intrinsic_of(&mut self, name: &str, args: &[Expr], ty: Option<Type>) -> Expr {
        let data = self.with_cx(|cx| cx.symbol(name)).0;
        self.push(NodeSpec { ty, data, ..NodeSpec::new(Kind::INTRINSIC) }, args)
    }

    /// Reads an element.
    fn load(&mut self, buffer: Expr, indices: &[Expr]) -> Expr {
        let cx = self.cx();
        let body = self.body();
        let element = body.ty(buffer).and_then(|ty| match body.terms().ty(ty) {
            crate::ir::TypeView::Tensor { dtype, .. } => Some(dtype),
            _ => None,
        });
        let lanes = indices
            .iter()
            .filter_map(|&index| body.scalar_ty(index))
            .map(|(_, lanes)| lanes)
            .max()
            .unwrap_or(1);
        let ty = element.map(|dtype| cx.vector_type(dtype, lanes));
        let operands: Vec<Expr> = [buffer].iter().chain(indices).copied().collect();
        self.push(NodeSpec { ty, ..NodeSpec::new(Kind::LOAD) }, &operands)
    }

    /// Writes an element.
    fn store(&mut self, buffer: Expr, value: Expr, indices: &[Expr]) -> Expr {
        let operands: Vec<Expr> = [buffer, value].iter().chain(indices).copied().collect();
        self.push(NodeSpec::new(Kind::STORE), &operands)
    }

    /// Statements in order; one statement is itself.
    fn seq(&mut self, stmts: &[Expr]) -> Expr {
        match stmts {
            &[stmt] => stmt,
            stmts => self.push(NodeSpec::new(Kind::SEQ), stmts),
        }
    }

    /// Makes a buffer until the end of the enclosing sequence.
    fn alloc(&mut self, buffer: Expr) -> Expr {
        self.push(NodeSpec::new(Kind::ALLOC), &[buffer])
    }

    /// Names a scalar until the end of the enclosing sequence.
    fn let_stmt(&mut self, var: Expr, value: Expr) -> Expr {
        self.push(NodeSpec::new(Kind::LET_STMT), &[var, value])
    }

    /// A conditional statement.
    fn if_stmt(&mut self, cond: Expr, then: Expr, otherwise: Option<Expr>) -> Expr {
        let operands: Vec<Expr> = [cond, then].into_iter().chain(otherwise).collect();
        self.push(NodeSpec::new(Kind::IF_STMT), &operands)
    }

    /// A loop over `min .. min + extent`.
    fn for_loop(
        &mut self,
        var: Expr,
        min: Expr,
        extent: Expr,
        kind: LoopKind,
        body: Expr,
        attrs: Attrs,
    ) -> Expr {
        let spec = NodeSpec { data: kind as u32, attrs, ..NodeSpec::new(Kind::FOR) };
        self.push(spec, &[var, min, extent, body])
    }

    /// A loop over `0 .. extent` without annotations.
    fn for_range(&mut self, var: Expr, extent: i64, kind: LoopKind, body: Expr) -> Expr {
        let (zero, extent) = (self.index(0), self.index(extent));
        self.for_loop(var, zero, extent, kind, body, Attrs::NONE)
    }

    /// The vector `base, base + stride, …`.
    fn ramp(&mut self, base: Expr, stride: Expr, lanes: u16) -> Expr {
        let dtype = self.body().scalar_ty(base).map_or(DType::I64, |(dtype, _)| dtype);
        let ty = self.with_cx(|cx| cx.vector_type(dtype, lanes));
        self.push(NodeSpec { ty: Some(ty), ..NodeSpec::new(Kind::RAMP) }, &[base, stride])
    }

    /// A vector of equal lanes.
    fn broadcast(&mut self, value: Expr, lanes: u16) -> Expr {
        if lanes == 1 {
            return value;
        }
        let dtype = self.body().scalar_ty(value).map_or(DType::I64, |(dtype, _)| dtype);
        let ty = self.with_cx(|cx| cx.vector_type(dtype, lanes));
        self.push(NodeSpec { ty: Some(ty), ..NodeSpec::new(Kind::BROADCAST) }, &[value])
    }

    /// A block of a tensor program.
    fn block(&mut self, block: &NewBlock<'_>) -> Expr {
        let mut operands: Vec<Expr> =
            block.iters.iter().flat_map(|iter| [iter.var, iter.binding]).collect();
        let domains: Vec<Expr> =
            block.iters.iter().filter_map(|iter| iter.domain).flatten().collect();
        let has_domains = !domains.is_empty();
        operands.extend(domains);
        operands.extend(block.predicate);
        operands.extend(block.reads.iter().chain(block.writes));
        operands.extend(block.init);
        operands.push(block.body);
        let flags = block.init.is_some() as u16
            | (has_domains as u16) << 1
            | (block.predicate.is_some() as u16) << 2;
        let aux = self.with_cx(|cx| {
            let counts = [block.reads.len(), block.writes.len()].map(|count| cx.int(count as i64));
            let kinds = block.iters.iter().map(|iter| iter.kind);
            cx.list(&kinds.chain(counts).collect::<Vec<Term>>())
        });
        let spec = NodeSpec {
            data: block.name.0,
            aux: aux.0,
            flags,
            attrs: block.attrs,
            ..NodeSpec::new(Kind::BLOCK)
        };
        self.push(spec, &operands)
    }

    /// A tensor program; the last `outputs` parameters are written.
    fn prim_func(&mut self, params: &[Expr], outputs: u32, body: Expr, attrs: Attrs) -> Expr {
        let operands: Vec<Expr> = params.iter().copied().chain([body]).collect();
        let spec = NodeSpec { data: outputs, attrs, ..NodeSpec::new(Kind::PRIM_FUNC) };
        self.push(spec, &operands)
    }
}

impl<T: Build> BuildPrim for T {}

enum Folded {
    Left,
    Right,
    Int(i64),
    Bool(bool),
}

/// Folds integer arithmetic; overflow and division by zero are left to run time.
fn fold_int(op: BinaryOp, a: Option<i64>, b: Option<i64>) -> Option<Folded> {
    use Folded::{Bool, Int, Left, Right};
    match (op, a, b) {
        (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => Some(Right),
        (BinaryOp::Add | BinaryOp::Sub, _, Some(0)) => Some(Left),
        (BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv, _, Some(1)) => Some(Left),
        (BinaryOp::Mul, Some(0), _) => Some(Left),
        (BinaryOp::Mul, _, Some(0)) => Some(Right),
        (BinaryOp::FloorMod, _, Some(1)) => Some(Int(0)),
        (_, Some(a), Some(b)) => match op {
            BinaryOp::Add => a.checked_add(b).map(Int),
            BinaryOp::Sub => a.checked_sub(b).map(Int),
            BinaryOp::Mul => a.checked_mul(b).map(Int),
            BinaryOp::Div => a.checked_div(b).map(Int),
            BinaryOp::FloorDiv if b > 0 => Some(Int(a.div_euclid(b))),
            BinaryOp::FloorMod if b > 0 => Some(Int(a.rem_euclid(b))),
            BinaryOp::FloorDiv | BinaryOp::FloorMod => None,
            BinaryOp::Min => Some(Int(a.min(b))),
            BinaryOp::Max => Some(Int(a.max(b))),
            BinaryOp::Eq => Some(Bool(a == b)),
            BinaryOp::Ne => Some(Bool(a != b)),
            BinaryOp::Lt => Some(Bool(a < b)),
            BinaryOp::Le => Some(Bool(a <= b)),
            BinaryOp::Gt => Some(Bool(a > b)),
            BinaryOp::Ge => Some(Bool(a >= b)),
            BinaryOp::And => Some(Int((a != 0 && b != 0) as i64)),
            BinaryOp::Or => Some(Int((a != 0 || b != 0) as i64)),
        },
        _ => None,
    }
}
