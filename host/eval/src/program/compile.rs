//! From a tensor program to instructions: the statements.

use tenon_ir::{
    Args, BARRIER, BOUND, BinaryOp, BodyView, DType, Expr, Function, Kind, LoopKind, PrimBlockView,
    Symbol, TermView, View,
};

use super::code::{Access, Instr, Reg};
use super::expr::{Compiler, Operand};
use super::flatten::{Item, flatten};
use super::{Buffer, Index, Param, Program, ProgramError, Stmt};
use crate::Tensor;

/// Who runs what is being compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// The program is not bound to a device: its loops run one step after the other.
    None,
    /// The program is bound, and no loop over an axis is open.
    Ready,
    /// A block.
    Block,
    /// The threads of a block, of which each becomes several where the loop begins that is all that they do.
    Threads(Option<Expr>),
    /// A thread within a loop over an axis that has its threads already: not all of them come by.
    Thread,
}

impl Device {
    /// Who runs a loop over an axis.
    fn entered(self, axis: &str, stmt: Expr) -> Self {
        match (self, axis.starts_with("blockIdx.")) {
            (Self::None, _) => Self::None,
            (Self::Ready | Self::Block, true) => Self::Block,
            (Self::Ready | Self::Block, false) => Self::Threads(None),
            (Self::Threads(Some(next)), false) if next == stmt => Self::Threads(None),
            (Self::Threads(_) | Self::Thread, _) => Self::Thread,
        }
    }
}

/// What is to be compiled next.
enum Work {
    Stmt(Expr),
    /// A block whose predicate is true.
    Block(Expr),
    EndLoop {
        var: Reg,
        min: Reg,
        extent: Reg,
        stmt: u32,
    },
    EndThen {
        cond: Reg,
        otherwise: Option<Expr>,
        stmt: u32,
    },
    EndElse {
        cond: Reg,
        then: usize,
        stmt: u32,
    },
    EndThreads {
        var: Reg,
        min: Reg,
        extent: Reg,
        stmt: u32,
        outer: Device,
    },
    /// A loop that may be bound to an axis is done; what ran it.
    EndDevice(Device),
    /// What a condition of several lanes is around is done; the one outside of it.
    EndMask(Option<Operand>),
}

impl Program {
    /// Compiles a tensor program.
    pub(crate) fn compile(func: &Function) -> Result<Self, ProgramError> {
        let body = func.view();
        let View::PrimFunc { params, outputs, body: root, .. } = body.view(body.root()) else {
            let what = body.kind(body.root()).name().to_owned();
            return Err(ProgramError::Unsupported { what, node: body.root().0 });
        };
        let mut compiler = Compiler::new(body);
        let params = params
            .iter()
            .map(|param| match body.view(param) {
                View::Buffer { .. } => compiler.define_buffer(param, None).map(Param::Buffer),
                _ => compiler.define_param(param),
            })
            .collect::<Result<Vec<Param>, _>>()?;
        let attrs = body.terms().attrs(body.attrs(body.root()));
        compiler.device = match attrs.bool(BOUND) == Some(true) {
            true => Device::Ready,
            false => Device::None,
        };
        let mut work = vec![Work::Stmt(root)];
        while let Some(next) = work.pop() {
            match next {
                Work::Stmt(stmt) => compiler.stmt(stmt, &mut work)?,
                Work::Block(stmt) => {
                    if let View::Block(block) = body.view(stmt) {
                        compiler.block(block, stmt, &mut work)?;
                    }
                }
                Work::EndLoop { var, min, extent, stmt } => {
                    let body = compiler.close_scope();
                    let limit = compiler.int_reg(1);
                    compiler.push(Item::Loop { var, min, extent, limit, body }, stmt)?;
                }
                Work::EndThreads { var, min, extent, stmt, outer } => {
                    let body = compiler.close_scope();
                    compiler.push(Item::Threads { var, min, extent, body }, stmt)?;
                    compiler.device = outer;
                }
                Work::EndDevice(outer) => compiler.device = outer,
                Work::EndThen { cond, otherwise, stmt } => {
                    let then = compiler.close_scope();
                    match otherwise {
                        Some(otherwise) => {
                            compiler.open_scope();
                            work.push(Work::EndElse { cond, then, stmt });
                            work.push(Work::Stmt(otherwise));
                        }
                        None => compiler.push(Item::If { cond, then, otherwise: None }, stmt)?,
                    }
                }
                Work::EndMask(outer) => compiler.mask = outer,
                Work::EndElse { cond, then, stmt } => {
                    let otherwise = Some(compiler.close_scope());
                    compiler.push(Item::If { cond, then, otherwise }, stmt)?;
                }
            }
        }
        let root = compiler.close_scope();
        let (code, origins) = flatten(compiler.pieces, root);
        Ok(Program {
            code,
            origins,
            stmts: compiler.stmts,
            ints: compiler.ints,
            floats: compiler.floats,
            dims: compiler.dims,
            indices: compiler.indices,
            params,
            outputs,
            buffers: compiler.buffers,
        })
    }
}

impl Compiler<'_> {
    fn stmt(&mut self, stmt: Expr, work: &mut Vec<Work>) -> Result<(), ProgramError> {
        let body = self.body;
        match body.view(stmt) {
            View::Seq(stmts) => {
                work.extend(stmts.iter().rev().map(Work::Stmt));
                return Ok(());
            }
            View::For { .. } => return self.for_loop(stmt, work),
            View::IfStmt { cond, then, otherwise } => {
                let number = self.begin("the condition", stmt, stmt);
                let mut cond = self.int(cond)?;
                if cond.lanes > 1 {
                    work.push(Work::EndMask(self.mask));
                    cond = self.mask_with(cond, otherwise, stmt)?;
                }
                self.end_stmt();
                self.open_scope();
                work.push(Work::EndThen { cond: cond.reg, otherwise, stmt: number });
                work.push(Work::Stmt(then));
            }
            View::Block(block) => match block.predicate {
                None => self.block(block, stmt, work)?,
                Some(predicate) => {
                    let number = self.begin("the predicate of the block", stmt, stmt);
                    let cond = self.int(predicate)?;
                    self.end_stmt();
                    self.open_scope();
                    work.push(Work::EndThen { cond: cond.reg, otherwise: None, stmt: number });
                    work.push(Work::Block(stmt));
                    return Ok(());
                }
            },
            View::Store { buffer, value, indices } => {
                let number = self.begin("the store to", buffer, stmt);
                let value = self.emit(value)?;
                let access = self.access(buffer, indices)?;
                if value.lanes != access.lanes || value.is_float != access.dtype.is_float() {
                    let what = "a store of a value that does not fit the buffer".to_owned();
                    return Err(ProgramError::Unsupported { what, node: stmt.0 });
                }
                self.push(Item::Instr(Instr::Store { src: value.reg, access }), number)?;
            }
            View::LetStmt { var, value } => {
                self.begin("the let of", var, stmt);
                let value = self.emit(value)?;
                self.end_stmt();
                self.bind(var, value);
            }
            View::Alloc { buffer } => {
                let number = self.begin("the allocation of", buffer, stmt);
                let buffer = self.define_buffer(buffer, None)?;
                let is_thread = matches!(self.device, Device::Threads(_) | Device::Thread);
                if is_thread && self.buffers[buffer as usize].is_shared {
                    let what = "a shared buffer that each thread makes".to_owned();
                    return Err(ProgramError::Unsupported { what, node: stmt.0 });
                }
                self.push(Item::Instr(Instr::Alloc { buffer }), number)?;
            }
            View::Evaluate { value } => {
                if let View::Call { callee, .. } = body.view(value)
                    && let View::Extern { name } = body.view(callee)
                {
                    return Err(ProgramError::Extern(body.terms().str(name).to_owned()));
                }
                if let View::Intrinsic { name, .. } = body.view(value)
                    && body.terms().str(name) == BARRIER
                {
                    return self.barrier(stmt);
                }
                self.begin("the evaluation", stmt, stmt);
                self.emit(value)?;
            }
            _ => {
                let what = format!("a statement of kind {}", body.kind(stmt).name());
                return Err(ProgramError::Unsupported { what, node: stmt.0 });
            }
        }
        self.end_stmt();
        Ok(())
    }

    /// A loop, run by whom its kind says.
    fn for_loop(&mut self, stmt: Expr, work: &mut Vec<Work>) -> Result<(), ProgramError> {
        let body = self.body;
        let View::For { var, min, extent, body: inner, kind, thread, .. } = body.view(stmt) else {
            return Ok(());
        };
        let number = self.begin("the loop over", var, stmt);
        let (min, extent) = (self.int(min)?.reg, self.int(extent)?.reg);
        self.end_stmt();
        let (outer, is_bound) = (self.device, kind == LoopKind::ThreadBound);
        let run_by = match is_bound {
            true => outer.entered(body.terms().str(thread), stmt),
            false => outer,
        };
        if matches!((outer, run_by), (Device::Ready, Device::Block | Device::Threads(_))) {
            self.push(Item::Instr(Instr::Launch), number)?;
        }
        self.open_scope();
        let var = self.define_var(var)?;
        if matches!(run_by, Device::Threads(_)) && run_by != outer {
            work.push(Work::EndThreads { var, min, extent, stmt: number, outer });
            self.device = Device::Threads(only_inside(body, inner));
        } else {
            work.push(Work::EndDevice(outer));
            work.push(Work::EndLoop { var, min, extent, stmt: number });
            self.device = run_by;
        }
        if is_bound && run_by == Device::Block {
            self.push(Item::Instr(Instr::NextBlock), number)?;
        }
        work.push(Work::Stmt(inner));
        Ok(())
    }

    fn barrier(&mut self, stmt: Expr) -> Result<(), ProgramError> {
        let number = self.begin("the barrier", stmt, stmt);
        match self.device {
            Device::Threads(_) => self.push(Item::Instr(Instr::Barrier), number)?,
            Device::None | Device::Ready | Device::Block | Device::Thread => {
                let what = "a barrier to which not all threads of a block come".to_owned();
                return Err(ProgramError::Unsupported { what, node: stmt.0 });
            }
        }
        self.end_stmt();
        Ok(())
    }

    /// Leaves out the lanes for which a condition is false; whether any is left.
    fn mask_with(
        &mut self,
        cond: Operand,
        otherwise: Option<Expr>,
        stmt: Expr,
    ) -> Result<Operand, ProgramError> {
        let outer = self.mask.unwrap_or(cond);
        if otherwise.is_some() || outer.lanes != cond.lanes {
            let what = "a condition of several lanes with two branches, or within one of others";
            return Err(ProgramError::Unsupported { what: what.to_owned(), node: stmt.0 });
        }
        let mask = self.each_truth(BinaryOp::And, outer, cond)?;
        self.mask = Some(mask);
        (1..mask.lanes).try_fold(mask.lane(0), |any, lane| {
            self.binary_int(BinaryOp::Or, DType::BOOL, any, mask.lane(lane))
        })
    }

    /// A block: its iterators are names for what they are bound to; its initial statement runs when all
    /// reduction iterators are at the first value of their domain. It runs where its predicate is true.
    fn block(
        &mut self,
        block: PrimBlockView<'_>,
        stmt: Expr,
        work: &mut Vec<Work>,
    ) -> Result<(), ProgramError> {
        let number = self.begin("the block", stmt, stmt);
        let mut is_first: Option<Operand> = None;
        for iter in block.iterators() {
            let value = self.int(iter.binding)?;
            self.bind(iter.var, value);
            if block.init.is_some() && self.body.terms().view(iter.kind) == TermView::Str("reduce")
            {
                let first = match iter.domain {
                    Some([first, _]) => self.int(first)?,
                    None => self.literal_int(0),
                };
                let here = self.binary_int(BinaryOp::Eq, DType::I64, value, first)?;
                is_first = Some(match is_first {
                    None => here,
                    Some(others) => self.binary_int(BinaryOp::And, DType::BOOL, others, here)?,
                });
            }
        }
        self.end_stmt();
        work.push(Work::Stmt(block.body));
        match (block.init, is_first) {
            (Some(init), None) => work.push(Work::Stmt(init)),
            (Some(init), Some(cond)) => {
                self.open_scope();
                work.push(Work::EndThen { cond: cond.reg, otherwise: None, stmt: number });
                work.push(Work::Stmt(init));
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Starts a statement: what is emitted from here on belongs to it.
    fn begin(&mut self, what: &'static str, named: Expr, stmt: Expr) -> u32 {
        let raw = self.body.raw_node(named);
        let is_named = matches!(Kind(raw.kind), Kind::VAR | Kind::BUFFER | Kind::BLOCK);
        let name = Symbol(if is_named { raw.data } else { 0 });
        self.stmts.push(Stmt { what, name, node: stmt.0 });
        self.stmt = self.stmts.len() as u32 - 1;
        self.stmt
    }

    fn access(&mut self, buffer: Expr, indices: Args<'_>) -> Result<Access, ProgramError> {
        let operands =
            indices.iter().map(|index| self.int(index)).collect::<Result<Vec<Operand>, _>>()?;
        self.access_of(buffer, &operands)
    }

    /// An access at indices that were emitted.
    pub(super) fn access_of(
        &mut self,
        buffer: Expr,
        operands: &[Operand],
    ) -> Result<Access, ProgramError> {
        let number = self.buffer_number(buffer)?;
        let terms = self.body.terms();
        let (dtype, dims) = terms
            .tensor(self.buffers[number as usize].ty)
            .ok_or(ProgramError::Untyped(buffer.0))?;
        if operands.len() != dims.len() && operands.len() != 1 {
            let what = format!("{} indices into {} dimensions", operands.len(), dims.len());
            return Err(ProgramError::Unsupported { what, node: buffer.0 });
        }
        let lanes = operands.iter().map(|index| index.lanes).max().unwrap_or(1);
        if operands.iter().any(|index| index.lanes != 1 && index.lanes != lanes) {
            let what = "indices of different lanes".to_owned();
            return Err(ProgramError::Unsupported { what, node: buffer.0 });
        }
        let first = self.indices.len() as u32;
        let index = |index: &Operand| Index { reg: index.reg, is_vector: index.lanes > 1 };
        self.indices.extend(operands.iter().map(index));
        let mask = self.mask.filter(|mask| lanes > 1 && mask.lanes == lanes).map(|mask| mask.reg);
        Ok(Access { buffer: number, dtype, first, count: operands.len() as u16, lanes, mask })
    }

    /// The number of a buffer that is used: a parameter, one that was made before, or a constant.
    fn buffer_number(&mut self, buffer: Expr) -> Result<u32, ProgramError> {
        if let Some(&number) = self.buffer_numbers.get(&buffer) {
            return Ok(number);
        }
        let name = Symbol(self.body.raw_node(buffer).data);
        let View::Constant(constant) = self.body.view(buffer) else {
            let name = self.body.terms().str(name).to_owned();
            return Err(ProgramError::Undefined { name, node: buffer.0 });
        };
        let tensor = self
            .body
            .terms()
            .static_tensor(constant.ty)
            .and_then(|(dtype, shape)| {
                let shape = shape.iter().map(|&dim| dim as usize).collect();
                Tensor::new(dtype, shape, tenon_ir::Bytes::new(constant.bytes.to_vec()))
            })
            .ok_or(ProgramError::Untyped(buffer.0))?;
        self.define_buffer(buffer, Some(tensor))
    }

    fn define_buffer(
        &mut self,
        buffer: Expr,
        constant: Option<Tensor>,
    ) -> Result<u32, ProgramError> {
        let ty = self.body.ty(buffer).ok_or(ProgramError::Untyped(buffer.0))?;
        let terms = self.body.terms();
        let (name, is_shared) = match self.body.view(buffer) {
            View::Buffer { name, scope } => (name, terms.str(scope) == "shared"),
            View::Constant(constant) => (constant.name, false),
            _ => return Err(ProgramError::Untyped(buffer.0)),
        };
        if let Some(&number) = self.buffer_numbers.get(&buffer) {
            return Ok(number);
        }
        let number = self.buffers.len() as u32;
        self.buffers.push(Buffer { name, ty, is_shared, constant });
        self.buffer_numbers.insert(buffer, number);
        Ok(number)
    }
}

/// The statement that is all of another one, through lists of one.
fn only_inside(body: BodyView<'_>, stmt: Expr) -> Option<Expr> {
    let mut only = stmt;
    while let View::Seq(stmts) = body.view(only) {
        if stmts.len() != 1 {
            return None;
        }
        only = stmts.at(0);
    }
    Some(only)
}
