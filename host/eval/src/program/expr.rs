//! From a tensor program to instructions: the expressions.
//!
//! An expression is computed in the outermost loop in which all that it depends on is known, and once
//! there, however often it is used. What reads memory or may fail is computed where it stands, once for
//! each statement.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use tenon_ir::{Args, BinaryOp, BodyView, DType, Dim, Expr, Kind, View};

use super::code::{BitOp, Instr, Math, Math2, Reg};
use super::compile::Device;
use super::flatten::{Item, Piece};
use super::{Buffer, Index, Param, ProgramError, Stmt};

/// Programs of more instructions than this are refused.
const MAX_ITEMS: usize = 1 << 27;

/// Where a value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) reg: Reg,
    pub(super) lanes: u16,
    pub(super) is_float: bool,
    /// The scope it is computed in.
    depth: u32,
    /// Whether it holds for one statement only, because it comes from memory.
    is_fleeting: bool,
}

impl Operand {
    /// A scalar that is known everywhere.
    fn fixed(reg: Reg, is_float: bool) -> Self {
        Self { reg, lanes: 1, is_float, depth: 0, is_fleeting: false }
    }

    /// One lane of a vector.
    pub(super) fn lane(self, lane: u16) -> Self {
        Self { reg: self.reg + Reg::from(lane), lanes: 1, ..self }
    }
}

/// A loop body, a branch or the whole program while it is compiled.
struct Scope {
    piece: Piece,
    /// The nodes whose values are forgotten when it ends.
    known: Vec<Expr>,
}

pub(super) struct Compiler<'a> {
    pub(super) body: BodyView<'a>,
    pub(super) pieces: Vec<Piece>,
    scopes: Vec<Scope>,
    pub(super) ints: Vec<i64>,
    pub(super) floats: Vec<f64>,
    pub(super) dims: Vec<(Reg, Dim)>,
    pub(super) indices: Vec<Index>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) buffer_numbers: HashMap<Expr, u32, FxBuildHasher>,
    pub(super) stmts: Vec<Stmt>,
    /// The statement that is being compiled.
    pub(super) stmt: u32,
    /// Who runs it.
    pub(super) device: Device,
    /// The lanes that run, where a condition around may leave out any.
    pub(super) mask: Option<Operand>,
    /// What each node's value is, as long as it is known.
    values: Vec<Option<Operand>>,
    /// The nodes whose values are forgotten with the statement.
    fleeting: Vec<Expr>,
    literals: HashMap<(bool, u64), Reg, FxBuildHasher>,
    count: usize,
}

type Result<T> = std::result::Result<T, ProgramError>;

impl<'a> Compiler<'a> {
    pub(super) fn new(body: BodyView<'a>) -> Self {
        Self {
            body,
            pieces: Vec::new(),
            scopes: vec![Scope { piece: Piece::default(), known: Vec::new() }],
            ints: Vec::new(),
            floats: Vec::new(),
            dims: Vec::new(),
            indices: Vec::new(),
            buffers: Vec::new(),
            buffer_numbers: HashMap::default(),
            stmts: Vec::new(),
            stmt: 0,
            device: Device::None,
            mask: None,
            values: vec![None; body.len()],
            fleeting: Vec::new(),
            literals: HashMap::default(),
            count: 0,
        }
    }

    pub(super) fn open_scope(&mut self) {
        self.scopes.push(Scope { piece: Piece::default(), known: Vec::new() });
    }

    /// Ends the innermost scope; the number of its piece.
    pub(super) fn close_scope(&mut self) -> usize {
        let scope = self.scopes.pop().expect("scopes are opened before they are closed");
        scope.known.iter().for_each(|expr| self.values[expr.index()] = None);
        self.pieces.push(scope.piece);
        self.pieces.len() - 1
    }

    /// Forgets what is known for one statement only.
    pub(super) fn end_stmt(&mut self) {
        self.fleeting.drain(..).for_each(|expr| self.values[expr.index()] = None);
    }

    fn depth(&self) -> u32 {
        self.scopes.len() as u32 - 1
    }

    pub(super) fn push(&mut self, item: Item, stmt: u32) -> Result<()> {
        let depth = self.depth();
        self.push_at(depth, item, stmt)
    }

    fn push_at(&mut self, depth: u32, item: Item, stmt: u32) -> Result<()> {
        self.count += 1;
        if self.count > MAX_ITEMS {
            return Err(ProgramError::TooLarge);
        }
        self.scopes[depth as usize].piece.items.push((item, stmt));
        Ok(())
    }

    pub(super) fn int_reg(&mut self, lanes: u16) -> Reg {
        self.ints.resize(self.ints.len() + lanes as usize, 0);
        (self.ints.len() - lanes as usize) as Reg
    }

    fn float_reg(&mut self, lanes: u16) -> Reg {
        self.floats.resize(self.floats.len() + lanes as usize, 0.0);
        (self.floats.len() - lanes as usize) as Reg
    }

    pub(super) fn literal_int(&mut self, value: i64) -> Operand {
        let next = self.ints.len() as Reg;
        let reg = *self.literals.entry((false, value as u64)).or_insert(next);
        if reg == next {
            self.ints.push(value);
        }
        Operand::fixed(reg, false)
    }

    fn literal_float(&mut self, value: f64) -> Operand {
        let next = self.floats.len() as Reg;
        let reg = *self.literals.entry((true, value.to_bits())).or_insert(next);
        if reg == next {
            self.floats.push(value);
        }
        Operand::fixed(reg, true)
    }

    /// A scalar parameter.
    pub(super) fn define_param(&mut self, param: Expr) -> Result<Param> {
        let (dtype, _) = self.body.scalar_ty(param).ok_or(ProgramError::Untyped(param.0))?;
        let reg = if dtype.is_float() { self.float_reg(1) } else { self.int_reg(1) };
        self.bind(param, Operand::fixed(reg, dtype.is_float()));
        Ok(if dtype.is_float() { Param::Float(reg) } else { Param::Int(reg) })
    }

    /// The variable of the loop whose scope was just opened.
    pub(super) fn define_var(&mut self, var: Expr) -> Result<Reg> {
        let reg = self.int_reg(1);
        let depth = self.depth();
        self.bind(var, Operand { depth, ..Operand::fixed(reg, false) });
        Ok(reg)
    }

    /// Makes a variable a name for a value, until the scope ends.
    pub(super) fn bind(&mut self, var: Expr, value: Operand) {
        let here = self.depth();
        let depth = if value.is_fleeting { here } else { value.depth };
        self.values[var.index()] = Some(Operand { depth, is_fleeting: false, ..value });
        self.scopes[here as usize].known.push(var);
    }

    /// The value of an expression that is an integer or a bool.
    pub(super) fn int(&mut self, expr: Expr) -> Result<Operand> {
        let value = self.emit(expr)?;
        match value.is_float {
            false => Ok(value),
            true => Err(self.unsupported("a float where an integer is expected", expr)),
        }
    }

    fn unsupported(&self, what: impl Into<String>, expr: Expr) -> ProgramError {
        ProgramError::Unsupported { what: what.into(), node: expr.0 }
    }

    /// The value of an expression. Does not recurse.
    pub(super) fn emit(&mut self, expr: Expr) -> Result<Operand> {
        let body = self.body;
        let mut pending = vec![expr];
        while let Some(&next) = pending.last() {
            if self.values[next.index()].is_some() {
                pending.pop();
                continue;
            }
            let operands = body.operands(next);
            // The first operand of a load is the buffer.
            let operands = if body.kind(next) == Kind::LOAD { operands.skip(1) } else { operands };
            let waiting = pending.len();
            pending
                .extend(operands.iter().filter(|operand| self.values[operand.index()].is_none()));
            if pending.len() > waiting {
                continue;
            }
            pending.pop();
            self.emit_one(next)?;
        }
        self.value(expr)
    }

    fn value(&self, expr: Expr) -> Result<Operand> {
        self.values[expr.index()].ok_or(ProgramError::Untyped(expr.0))
    }

    /// Emits a node whose operands are known.
    fn emit_one(&mut self, expr: Expr) -> Result<()> {
        let body = self.body;
        if let View::Var { name } = body.view(expr) {
            let name = body.terms().str(name).to_owned();
            return Err(ProgramError::Undefined { name, node: expr.0 });
        }
        let (dtype, lanes) = body.scalar_ty(expr).ok_or(ProgramError::Untyped(expr.0))?;
        let is_float = dtype.is_float();
        let literal = match body.view(expr) {
            View::Int(value) => Some(self.literal_int(super::scalar::wrap(dtype, value))),
            View::Float(value) => Some(self.literal_float(super::scalar::round(dtype, value))),
            View::Prim { dim } => {
                let reg = self.int_reg(1);
                self.dims.push((reg, dim));
                Some(Operand::fixed(reg, false))
            }
            _ => None,
        };
        if let Some(operand) = literal {
            self.values[expr.index()] = Some(operand);
            self.scopes[0].known.push(expr);
            return Ok(());
        }
        let args = body.operands(expr);
        let args = if body.kind(expr) == Kind::LOAD { args.skip(1) } else { args };
        let (mut depth, mut is_fleeting) = (0, body.kind(expr) == Kind::LOAD);
        for arg in args.iter() {
            let value = self.value(arg)?;
            depth = depth.max(value.depth);
            is_fleeting |= value.is_fleeting;
        }
        if is_fleeting || self.may_fail(expr) {
            depth = self.depth();
        }
        let dst = if is_float { self.float_reg(lanes) } else { self.int_reg(lanes) };
        let instr = self.instr(expr, dst, dtype, lanes)?;
        let stmt = self.stmt;
        self.push_at(depth, Item::Instr(instr), stmt)?;
        self.values[expr.index()] = Some(Operand { reg: dst, lanes, is_float, depth, is_fleeting });
        match is_fleeting {
            true => self.fleeting.push(expr),
            false => self.scopes[depth as usize].known.push(expr),
        }
        Ok(())
    }

    /// Whether an expression that reads no memory may still fail: a division by what may be zero.
    fn may_fail(&self, expr: Expr) -> bool {
        match self.body.view(expr) {
            View::Binary { op: BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::FloorMod, a, b } => {
                let is_safe = matches!(self.body.view(b), View::Int(value) if value != 0);
                let is_float = self.values[a.index()].is_some_and(|value| value.is_float);
                !(is_safe || is_float)
            }
            _ => false,
        }
    }

    fn instr(&mut self, expr: Expr, dst: Reg, ty: DType, lanes: u16) -> Result<Instr> {
        let body = self.body;
        match body.view(expr) {
            View::Load { buffer, indices } => {
                let indices =
                    indices.iter().map(|index| self.value(index)).collect::<Result<Vec<_>>>()?;
                let access = self.access_of(buffer, &indices)?;
                match access.lanes == lanes && access.dtype == ty {
                    true => Ok(Instr::Load { dst, access }),
                    false => Err(self.unsupported("a load of another type than its buffer", expr)),
                }
            }
            View::Binary { op, a, b } => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                if a.lanes != b.lanes || a.lanes != lanes || a.is_float != b.is_float {
                    return Err(self.unsupported("an operation on different types", expr));
                }
                let (operand_ty, _) = body
                    .scalar_ty(body.operands(expr).at(0))
                    .ok_or(ProgramError::Untyped(expr.0))?;
                let (is_float, a, b) = (a.is_float, a.reg, b.reg);
                match op {
                    BinaryOp::And | BinaryOp::Or if is_float => {
                        Err(self.unsupported("logic on floats", expr))
                    }
                    op if is_float && op.is_comparison() => {
                        Ok(Instr::Compare { op, dst, a, b, lanes })
                    }
                    op if is_float => Ok(Instr::Float { op, ty, dst, a, b, lanes }),
                    op => Ok(Instr::Int { op, ty: operand_ty, dst, a, b, lanes }),
                }
            }
            View::Select { cond, then, otherwise } => {
                let (cond, a, b) = (self.value(cond)?, self.value(then)?, self.value(otherwise)?);
                let is_float = ty.is_float();
                let fits = |side: Operand| side.is_float == is_float && side.lanes == lanes;
                if cond.is_float || !fits(a) || !fits(b) || (cond.lanes != 1 && cond.lanes != lanes)
                {
                    return Err(self.unsupported("a selection of different types", expr));
                }
                let is_vector = cond.lanes > 1;
                let operands = [a.reg, b.reg];
                Ok(Instr::Select { is_float, is_vector, dst, cond: cond.reg, operands, lanes })
            }
            View::Cast { value } => {
                let (from, from_lanes) =
                    body.scalar_ty(value).ok_or(ProgramError::Untyped(value.0))?;
                match from_lanes == lanes {
                    true => Ok(Instr::Cast { from, to: ty, dst, a: self.value(value)?.reg, lanes }),
                    false => Err(self.unsupported("a cast that changes the lanes", expr)),
                }
            }
            View::Ramp { base, stride } => {
                let (base, stride) = (self.value(base)?, self.value(stride)?);
                if base.is_float || stride.is_float || base.lanes != 1 || stride.lanes != 1 {
                    return Err(self.unsupported("a ramp that is not of integers", expr));
                }
                Ok(Instr::Ramp { ty, dst, base: base.reg, stride: stride.reg, lanes })
            }
            View::Broadcast { value } => match self.value(value)? {
                Operand { reg: a, lanes: 1, is_float: true, .. } if ty.is_float() => {
                    Ok(Instr::BroadcastFloat { dst, a, lanes })
                }
                Operand { reg: a, lanes: 1, is_float: false, .. } if !ty.is_float() => {
                    Ok(Instr::BroadcastInt { dst, a, lanes })
                }
                _ => Err(self.unsupported("a broadcast of a vector", expr)),
            },
            View::Intrinsic { name, args } => {
                let name = body.terms().str(name);
                self.intrinsic(expr, name, args, dst, ty, lanes)
            }
            _ => {
                let what = format!("an expression of kind {}", body.kind(expr).name());
                Err(self.unsupported(what, expr))
            }
        }
    }

    fn intrinsic(
        &mut self,
        expr: Expr,
        name: &str,
        args: Args<'_>,
        dst: Reg,
        ty: DType,
        lanes: u16,
    ) -> Result<Instr> {
        let operands = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<Operand>>>()?;
        let is_float = ty.is_float();
        if operands.iter().any(|operand| operand.lanes != lanes) {
            return Err(self.unsupported(format!("`{name}` on different lanes"), expr));
        }
        let are_floats = operands.iter().all(|operand| operand.is_float);
        let are_ints = operands.iter().all(|operand| !operand.is_float);
        let regs: Vec<Reg> = operands.iter().map(|operand| operand.reg).collect();
        let instr = match *regs.as_slice() {
            [a] if name == "reinterpret" => {
                let (from, _) =
                    self.body.scalar_ty(args.at(0)).ok_or(ProgramError::Untyped(expr.0))?;
                (from.bits() == ty.bits()).then_some(Instr::Reinterpret {
                    from,
                    to: ty,
                    dst,
                    a,
                    lanes,
                })
            }
            [a] if name == "isnan" && ty.is_bool() && are_floats => {
                Some(Instr::Compare { op: BinaryOp::Ne, dst, a, b: a, lanes })
            }
            [a] if is_float && are_floats => {
                Math::from_name(name).map(|function| Instr::Math { function, ty, dst, a, lanes })
            }
            [a, b] if is_float && are_floats => match name {
                "max" => Some(Instr::Float { op: BinaryOp::Max, ty, dst, a, b, lanes }),
                "min" => Some(Instr::Float { op: BinaryOp::Min, ty, dst, a, b, lanes }),
                _ => Math2::from_name(name).map(|function| Instr::Math2 {
                    function,
                    ty,
                    dst,
                    a,
                    b,
                    lanes,
                }),
            },
            [a, b, c] if is_float && are_floats && name == "fma" => {
                Some(Instr::Fma { ty, dst, operands: [a, b, c], lanes })
            }
            [a] if !is_float && are_ints && matches!(name, "bitnot" | "abs") => {
                BitOp::from_name(name).map(|op| Instr::Bits { op, ty, dst, a, b: a, lanes })
            }
            [a, b] if !is_float && are_ints && !matches!(name, "bitnot" | "abs") => {
                BitOp::from_name(name).map(|op| Instr::Bits { op, ty, dst, a, b, lanes })
            }
            _ => None,
        };
        instr.ok_or_else(|| {
            self.unsupported(format!("`{name}` on {} operands for {ty}", operands.len()), expr)
        })
    }

    /// `a op b` on scalar integers, for what has no node of its own.
    pub(super) fn binary_int(
        &mut self,
        op: BinaryOp,
        ty: DType,
        a: Operand,
        b: Operand,
    ) -> Result<Operand> {
        let dst = self.int_reg(1);
        let depth = a.depth.max(b.depth);
        let instr = Instr::Int { op, ty, dst, a: a.reg, b: b.reg, lanes: 1 };
        let stmt = self.stmt;
        self.push_at(depth, Item::Instr(instr), stmt)?;
        Ok(Operand { depth, ..Operand::fixed(dst, false) })
    }

    /// An operation on the lanes of truth values, where it stands.
    pub(super) fn each_truth(&mut self, op: BinaryOp, a: Operand, b: Operand) -> Result<Operand> {
        let (lanes, depth, stmt) = (a.lanes, self.depth(), self.stmt);
        let dst = self.int_reg(lanes);
        let instr = Instr::Int { op, ty: DType::BOOL, dst, a: a.reg, b: b.reg, lanes };
        self.push_at(depth, Item::Instr(instr), stmt)?;
        Ok(Operand { lanes, depth, ..Operand::fixed(dst, false) })
    }
}
