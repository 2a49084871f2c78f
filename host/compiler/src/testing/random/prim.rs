//! Random tensor programs.

use std::sync::Arc;

use super::{Random, random_attrs};
use crate::ir::{
    BinaryOp, Build, BuildPrim, Context, Cx, DType, Expr, Function, Kind, LoopKind, NodeSpec,
    Transaction, Type,
};

const NAMES: &[&str] = &["i", "j", "i_1", "ax 0", "k"];
/// Statements within each other.
const DEEPEST: usize = 4;
/// The extent of each axis of each buffer.
const EXTENT: i64 = 8;

/// A tensor program.
pub(super) fn function(cx: &Cx, random: &mut Random, size: usize) -> Arc<Function> {
    let mut writer = Writer {
        cx,
        random,
        tx: Transaction::new(cx.clone()),
        indices: Vec::new(),
        buffers: Vec::new(),
        inputs: 0,
        budget: size,
    };
    let root = writer.root();
    writer.tx.set_root(root);
    writer.tx.publish().expect("all operands are nodes of this body, and none uses itself")
}

/// A program that writes a tensor to another one, or what is a little more.
pub(super) fn write(cx: &Cx, random: &mut Random, ty: Type) -> Arc<Function> {
    let mut tx = Transaction::new(cx.clone());
    let (from, to) = (tx.buffer("A", ty, ""), tx.buffer("B", ty, ""));
    let shape = cx.terms().static_tensor(ty).map_or(Vec::new(), |(_, shape)| shape);
    let vars: Vec<Expr> = shape.iter().map(|_| tx.scalar_var("i", DType::I64)).collect();
    let mut value = tx.load(from, &vars);
    if random.chance(50) {
        let step = tx.float_of(DType::F32, 0.5);
        value = tx.binary(BinaryOp::Add, value, step);
    }
    let mut body = tx.store(to, value, &vars);
    for (&var, extent) in vars.iter().zip(shape).rev() {
        body = tx.for_range(var, extent, LoopKind::Serial, body);
    }
    let root = NodeSpec { data: 1, ..NodeSpec::new(Kind::PRIM_FUNC) };
    let root = tx.push(root, &[from, to, body]);
    tx.set_root(root);
    tx.publish().expect("all operands are nodes of this body, and none uses itself")
}

struct Writer<'a> {
    cx: &'a Cx,
    random: &'a mut Random,
    tx: Transaction,
    /// Visible variables of type i64.
    indices: Vec<Expr>,
    /// Visible buffers with their ranks; all are of type f32.
    buffers: Vec<(Expr, usize)>,
    /// How many of the buffers, the first, are only read.
    inputs: usize,
    budget: usize,
}

impl Writer<'_> {
    fn root(&mut self) -> Expr {
        let mut params = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            params.push(self.buffer(""));
        }
        self.inputs = params.len() - 1;
        if self.random.chance(50) {
            let n = self.tx.scalar_var("n", DType::I64);
            self.indices.push(n);
            params.insert(0, n);
        }
        let sizes = self.tx.var("sizes", Some(super::sizes(self.cx)));
        params.insert(0, sizes);
        let body = self.body(0);
        let spec = NodeSpec {
            flags: self.random.chance(30) as u16,
            data: 1,
            attrs: random_attrs(self.cx, self.random),
            ..NodeSpec::new(Kind::PRIM_FUNC)
        };
        params.push(body);
        self.tx.push(spec, &params)
    }

    fn buffer(&mut self, scope: &str) -> Expr {
        let rank = self.random.below(4);
        let ty = self.cx.static_tensor_type(DType::F32, &vec![EXTENT; rank]);
        let name = self.random.pick(&["A", "B", "A_1", "C"]);
        let buffer = self.tx.buffer(name, ty, scope);
        self.buffers.push((buffer, rank));
        buffer
    }

    /// What stands between two braces: none, one or several statements.
    fn body(&mut self, depth: usize) -> Expr {
        let visible = (self.indices.len(), self.buffers.len());
        let count = self.random.below(4);
        let stmts: Vec<Expr> = (0..count).map(|_| self.stmt(depth)).collect();
        self.indices.truncate(visible.0);
        self.buffers.truncate(visible.1);
        match stmts.as_slice() {
            &[stmt] if self.random.chance(80) => stmt,
            stmts => self.tx.push(NodeSpec::new(Kind::SEQ), stmts),
        }
    }

    fn stmt(&mut self, depth: usize) -> Expr {
        let is_flat = depth == DEEPEST || self.budget == 0;
        self.budget = self.budget.saturating_sub(1);
        match self.random.below(if is_flat { 6 } else { 11 }) {
            0 => {
                let scope = self.random.pick(&["local", "shared", ""]);
                let buffer = self.buffer(scope);
                self.tx.alloc(buffer)
            }
            1 => {
                let value = self.index(3);
                let name = self.random.pick(NAMES);
                let var = self.tx.scalar_var(name, DType::I64);
                self.indices.push(var);
                self.tx.let_stmt(var, value)
            }
            2 => {
                let value = self.float(2);
                let call = self.tx.intrinsic("exp", &[value]);
                self.tx.push(NodeSpec::new(Kind::EVALUATE), &[call])
            }
            3..6 => self.store(),
            6 => {
                let cond = self.cond();
                let then = self.body(depth + 1);
                let otherwise = self.random.chance(60).then(|| self.body(depth + 1));
                self.tx.if_stmt(cond, then, otherwise)
            }
            7 => {
                // A sequence of its own.
                let visible = (self.indices.len(), self.buffers.len());
                let stmts: Vec<Expr> =
                    (0..self.random.below(3)).map(|_| self.stmt(depth + 1)).collect();
                self.indices.truncate(visible.0);
                self.buffers.truncate(visible.1);
                self.tx.push(NodeSpec::new(Kind::SEQ), &stmts)
            }
            8 => self.block(depth),
            _ => self.for_loop(depth),
        }
    }

    fn store(&mut self) -> Expr {
        let (buffer, rank) = self.random.pick(&self.buffers[self.inputs..]);
        let mut indices: Vec<Expr> = (0..rank).map(|_| self.in_bounds()).collect();
        let value = self.float(4);
        if rank > 0 && self.random.chance(15) {
            let zero = self.tx.index(0);
            indices[rank - 1] = self.vector(Kind::RAMP, zero);
            let value = self.vector(Kind::BROADCAST, value);
            return self.tx.store(buffer, value, &indices);
        }
        self.tx.store(buffer, value, &indices)
    }

    /// A vector of four lanes.
    fn vector(&mut self, kind: Kind, first: Expr) -> Expr {
        match kind == Kind::RAMP {
            true => {
                let one = self.tx.index(1);
                self.tx.ramp(first, one, 4)
            }
            false => self.tx.broadcast(first, 4),
        }
    }

    fn for_loop(&mut self, depth: usize) -> Expr {
        let name = self.random.pick(NAMES);
        let var = self.tx.scalar_var(name, DType::I64);
        let min = match self.random.below(3) {
            0 => self.index(1),
            _ => {
                let first = self.random.pick(&[0, 0, 2]);
                self.tx.index(first)
            }
        };
        let extent = match self.random.chance(20) {
            true => self.in_bounds(),
            false => self.tx.index(1 + self.random.below(4) as i64),
        };
        self.indices.push(var);
        let body = self.body(depth + 1);
        self.indices.pop();
        let kind = self.random.pick(LoopKind::ALL);
        let aux = match kind {
            LoopKind::ThreadBound => self.cx.symbol("threadIdx.x").0,
            _ => 0,
        };
        let attrs = random_attrs(self.cx, self.random);
        let spec = NodeSpec { data: kind as u32, aux, attrs, ..NodeSpec::new(Kind::FOR) };
        self.tx.push(spec, &[var, min, extent, body])
    }

    fn block(&mut self, depth: usize) -> Expr {
        let visible = self.indices.len();
        let mut operands = Vec::new();
        let mut layout = Vec::new();
        for _ in 0..self.random.below(3) {
            let value = self.index(2);
            let var = self.tx.scalar_var("v", DType::I64);
            operands.extend([var, value]);
            layout.push(self.cx.symbol(self.random.pick(&["spatial", "reduce"])).into());
        }
        let vars: Vec<Expr> = operands.iter().copied().step_by(2).collect();
        let has_domains = !vars.is_empty() && self.random.chance(40);
        if has_domains {
            for _ in &vars {
                let first = self.tx.index(0);
                let count = self.tx.index(EXTENT);
                operands.extend([first, count]);
            }
        }
        let has_predicate = self.random.chance(30);
        if has_predicate {
            let (a, b) = (self.index(2), self.index(2));
            operands.push(self.raw_binary(BinaryOp::Le, a, b));
        }
        self.indices.extend(vars);
        for _ in 0..2 {
            let count = self.random.below(3);
            for _ in 0..count {
                let region = self.region();
                operands.push(region);
            }
            layout.push(self.cx.int(count as i64));
        }
        let has_init = self.random.chance(40);
        if has_init {
            let init = self.body(depth + 1);
            operands.push(init);
        }
        let body = self.body(depth + 1);
        operands.push(body);
        self.indices.truncate(visible);
        let spec = NodeSpec {
            flags: has_init as u16 | (has_domains as u16) << 1 | (has_predicate as u16) << 2,
            data: self.cx.symbol(self.random.pick(&["", "conv", "a \"b\""])).0,
            aux: self.cx.list(&layout).0,
            attrs: random_attrs(self.cx, self.random),
            ..NodeSpec::new(Kind::BLOCK)
        };
        self.tx.push(spec, &operands)
    }

    fn region(&mut self) -> Expr {
        let (buffer, rank) = self.random.pick(&self.buffers.clone());
        let mut operands = vec![buffer];
        for _ in 0..rank {
            let first = self.index(3);
            let extent = self.tx.index(1);
            operands.extend([first, extent]);
        }
        self.tx.push(NodeSpec::new(Kind::REGION), &operands)
    }

    /// An index within every axis.
    fn in_bounds(&mut self) -> Expr {
        let index = self.index(2);
        let extent = self.tx.index(EXTENT);
        self.raw_binary(BinaryOp::FloorMod, index, extent)
    }

    /// An integer expression.
    fn index(&mut self, depth: usize) -> Expr {
        if depth == 0 || self.random.chance(40) {
            return match self.indices.is_empty() || self.random.chance(40) {
                true => self.tx.index(self.random.below(9) as i64 - 2),
                false => self.random.pick(&self.indices.clone()),
            };
        }
        let a = self.index(depth - 1);
        // Shared now and then.
        let b = if self.random.chance(20) { a } else { self.index(depth - 1) };
        match self.random.below(8) {
            0 => {
                let four = self.tx.index(4);
                self.raw_binary(BinaryOp::FloorDiv, a, four)
            }
            1 => {
                let narrow = self.tx.cast(a, DType::I32);
                let two = self.tx.int_of(DType::I32, 2);
                let sum = self.raw_binary(BinaryOp::Add, narrow, two);
                self.tx.cast(sum, DType::I64)
            }
            2 => {
                let cond = self.raw_binary(BinaryOp::Lt, a, b);
                self.tx.select(cond, a, b)
            }
            3 => {
                let dim = self.cx.dim_symbol("n");
                self.tx.prim(dim)
            }
            _ => {
                let op = self.random.pick(&[
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::Min,
                    BinaryOp::Max,
                ]);
                self.raw_binary(op, a, b)
            }
        }
    }

    /// Without folding.
    fn raw_binary(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let ty = match op.is_comparison() {
            true => Some(self.cx.scalar_type(DType::BOOL)),
            false => self.tx.body().ty(a),
        };
        self.tx.push(NodeSpec { ty, data: op as u32, ..NodeSpec::new(Kind::BINARY) }, &[a, b])
    }

    fn cond(&mut self) -> Expr {
        let ops =
            [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
        let (op, a, b) = (self.random.pick(&ops), self.index(2), self.index(1));
        let cond = self.raw_binary(op, a, b);
        match self.random.below(5) {
            0 => {
                let other = self.cond();
                let op = self.random.pick(&[BinaryOp::And, BinaryOp::Or]);
                self.raw_binary(op, cond, other)
            }
            1 => self.tx.int_of(DType::BOOL, 1),
            _ => cond,
        }
    }

    /// A float expression.
    fn float(&mut self, depth: usize) -> Expr {
        if depth == 0 || self.random.chance(30) {
            let value = self.random.pick(&[0.0, -0.0, 1.0, -1.5, 0.1, 1e30, 1e-40]);
            return match self.random.chance(50) {
                true => self.tx.float_of(DType::F32, value),
                false => {
                    let (buffer, rank) = self.random.pick(&self.buffers.clone());
                    let indices: Vec<Expr> = (0..rank).map(|_| self.in_bounds()).collect();
                    self.tx.load(buffer, &indices)
                }
            };
        }
        let a = self.float(depth - 1);
        match self.random.below(8) {
            0 => self.tx.intrinsic("exp", &[a]),
            1 => {
                let half = self.tx.cast(a, DType::F16);
                self.tx.cast(half, DType::F32)
            }
            2 => {
                let index = self.index(2);
                self.tx.cast(index, DType::F32)
            }
            3 => {
                let (cond, b) = (self.cond(), self.float(depth - 1));
                self.tx.select(cond, a, b)
            }
            4 => {
                let int = Some(self.cx.scalar_type(DType::I32));
                let float = Some(self.cx.scalar_type(DType::F32));
                let bits = self.tx.intrinsic_of("reinterpret", &[a], int);
                self.tx.intrinsic_of("reinterpret", &[bits], float)
            }
            _ => {
                let b = if self.random.chance(20) { a } else { self.float(depth - 1) };
                let op = self.random.pick(&[
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::Div,
                    BinaryOp::Max,
                ]);
                self.raw_binary(op, a, b)
            }
        }
    }
}
