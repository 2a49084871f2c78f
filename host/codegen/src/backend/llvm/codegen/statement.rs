//! Statements: loops, branches and stores, from an explicit stack of what is still to do.

use std::rc::Rc;

use inkwell::{
    IntPredicate,
    basic_block::BasicBlock,
    types::BasicType,
    values::{
        BasicValueEnum, FunctionValue, InstructionOpcode as Op, IntValue, PhiValue, PointerValue,
        VectorValue,
    },
};

use tenon_plugin_api::rule::{INTRINSIC, TensorIntrinsic};

use super::{
    access::{Buffer, BufferLayout},
    assembler::Assembler,
    error::{Problem, Result},
    expression::{Memo, Scope},
    parallel::Suspended,
    range::Range,
    scratch::{ALIGN, Placement, ScratchPlan},
    value::{Class, Form, Value},
};
use tenon_ir::{Attrs, BodyView, DType, Expr, LoopKind, PrimBlockView, STREAMS, View};

/// Emits the statements of one program.
pub(super) struct Emitter<'cx, 'a> {
    pub(super) asm: Assembler<'cx, 'a>,
    pub(super) body: BodyView<'a>,
    /// Of the function; those of the bodies of parallel loops are made from it.
    pub(super) symbol: &'a str,
    pub(super) scratch: ScratchPlan,
    pub(super) scope: Scope<'cx>,
    pub(super) frame: Frame<'cx>,
    pub(super) tasks: Vec<Task<'cx>>,
    /// Number of parallel loops so far.
    pub(super) parallel_loops: usize,
    pub(super) memo: Memo<'cx>,
    /// Those that loops of the program name.
    pub(super) intrinsics: &'a [TensorIntrinsic],
    /// Where the regions of what the caller lends begin.
    pub(super) regions: Vec<PointerValue<'cx>>,
}

/// The LLVM function that is being filled.
#[derive(Clone, Copy)]
pub(super) struct Frame<'cx> {
    pub(super) func: FunctionValue<'cx>,
    /// Holds nothing but what is on the stack; ends with a branch to the code once that is done.
    pub(super) entry: BasicBlock<'cx>,
    /// Memory lent by the caller and `struct tenon_parallel *`; none in the body of a parallel loop.
    pub(super) lent: Option<Lent<'cx>>,
}

/// What a kernel is given besides its tensors.
#[derive(Clone, Copy)]
pub(super) struct Lent<'cx> {
    pub(super) scratch: PointerValue<'cx>,
    pub(super) parallel: PointerValue<'cx>,
}

/// What is still to do, the next on top.
pub(super) enum Task<'cx> {
    Stmt(Expr),
    EndLoop(OpenLoop<'cx>),
    /// The then-branch is done.
    Else {
        otherwise: Option<Expr>,
        begin: BasicBlock<'cx>,
        after: BasicBlock<'cx>,
    },
    /// The last branch is done.
    EndIf {
        after: BasicBlock<'cx>,
    },
    /// What a condition of several lanes is around is done for all of them; what runs for a part is next.
    Part {
        mask: VectorValue<'cx>,
        then: Expr,
        begin: BasicBlock<'cx>,
        after: BasicBlock<'cx>,
    },
    /// What a condition of several lanes is around is done.
    EndMask {
        outer: Option<VectorValue<'cx>>,
    },
    /// The body of a parallel loop is done.
    EndParallel(Box<Suspended<'cx>>),
}

/// A loop whose body is being filled.
pub(super) struct OpenLoop<'cx> {
    var: PhiValue<'cx>,
    head: BasicBlock<'cx>,
    after: BasicBlock<'cx>,
    end: IntValue<'cx>,
}

impl<'cx, 'a> Emitter<'cx, 'a> {
    /// Emits `root` and all in it, at the end of the current block.
    pub(super) fn run(&mut self, root: Expr) -> Result<()> {
        self.tasks.push(Task::Stmt(root));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Stmt(stmt) => self.statement(stmt)?,
                Task::EndLoop(open) => self.end_loop(open)?,
                Task::Else { otherwise, begin, after } => {
                    self.asm.builder.build_unconditional_branch(after)?;
                    self.asm.builder.position_at_end(begin);
                    self.tasks.push(Task::EndIf { after });
                    self.tasks.extend(otherwise.map(Task::Stmt));
                }
                Task::EndIf { after } => {
                    self.asm.builder.build_unconditional_branch(after)?;
                    self.asm.builder.position_at_end(after);
                }
                Task::Part { mask, then, begin, after } => {
                    self.asm.builder.build_unconditional_branch(after)?;
                    self.asm.builder.position_at_end(begin);
                    self.tasks.push(Task::EndIf { after });
                    self.begin_mask(mask, then)?;
                }
                Task::EndMask { outer } => self.asm.mask = outer,
                Task::EndParallel(suspended) => self.end_parallel(*suspended)?,
            }
        }
        Ok(())
    }

    fn statement(&mut self, stmt: Expr) -> Result<()> {
        self.memo.clear();
        match self.body.view(stmt) {
            View::Seq(stmts) => {
                self.tasks.extend(stmts.iter().rev().map(Task::Stmt));
                Ok(())
            }
            View::For { var, extent, body, kind: LoopKind::ThreadBound, thread, .. }
                if self.asm.target.device().is_some() =>
            {
                let axis = self.body.terms().str(thread);
                self.axis(var, extent, axis)?;
                self.tasks.push(Task::Stmt(body));
                Ok(())
            }
            View::For { attrs, .. } if let Some(name) = self.intrinsic_of(attrs) => {
                self.tile(stmt, name)
            }
            View::For { var, min, extent, body, kind, attrs, .. } => {
                self.for_loop(var, min, extent, body, kind)?;
                match self.body.terms().attrs(attrs).bool(STREAMS) {
                    Some(true) => self.ask_ahead(var, body),
                    _ => Ok(()),
                }
            }
            View::Block(block) => self.block(block),
            View::Store { buffer, value, indices } => {
                let value = self.value(value)?;
                let indices: Vec<Value<'cx>> =
                    indices.iter().map(|index| self.value(index)).collect::<Result<_>>()?;
                let buffer = self.scope.buffer(self.body, buffer)?;
                self.asm.write(&buffer, value, &indices)
            }
            View::Alloc { buffer } => self.alloc(buffer),
            View::LetStmt { var, value } => {
                let value = self.value(value)?;
                self.bind(var, value)
            }
            View::IfStmt { cond, then, otherwise } => self.branch(cond, then, otherwise),
            View::Evaluate { value } if self.is_barrier(value) => self.barrier(),
            View::Evaluate { value } => self.value(value).map(drop),
            View::Constant(_)
            | View::Var { .. }
            | View::Global { .. }
            | View::Op { .. }
            | View::Extern { .. }
            | View::Tuple(_)
            | View::TupleGetItem { .. }
            | View::Call { .. }
            | View::If { .. }
            | View::Let(_)
            | View::Function { .. }
            | View::Shape { .. }
            | View::Prim { .. }
            | View::PrimFunc { .. }
            | View::Buffer { .. }
            | View::Region { .. }
            | View::Load { .. }
            | View::Int(_)
            | View::Float(_)
            | View::Binary { .. }
            | View::Select { .. }
            | View::Cast { .. }
            | View::Intrinsic { .. }
            | View::Ramp { .. }
            | View::Broadcast { .. }
            | View::Unknown { .. } => {
                let kind = self.body.kind(stmt).name();
                Problem::malformed(format!("a {kind} stands where a statement is expected"))
            }
        }
    }

    /// The intrinsic that a loop says computes it.
    fn intrinsic_of(&self, attrs: Attrs) -> Option<&'a str> {
        self.body.terms().attrs(attrs).str(INTRINSIC)
    }

    /// The value of an expression; within one statement every node is evaluated once.
    pub(super) fn value(&mut self, expr: Expr) -> Result<Value<'cx>> {
        self.asm.evaluate(self.body, &self.scope, &mut self.memo, expr)
    }

    fn bind(&mut self, var: Expr, value: Value<'cx>) -> Result<()> {
        if let Some((dtype, _)) = self.body.scalar_ty(var)
            && dtype != value.dtype
        {
            let (name, found) = (self.name_of(var), value.dtype);
            return Problem::malformed(format!("`{name}` of {dtype} is bound to {found}"));
        }
        self.scope.vars.insert(var, value);
        Ok(())
    }

    pub(super) fn name_of(&self, var: Expr) -> String {
        match self.body.view(var) {
            View::Var { name } => self.body.terms().str(name).to_owned(),
            _ => self.body.kind(var).name().to_owned(),
        }
    }

    fn for_loop(
        &mut self,
        var: Expr,
        min: Expr,
        extent: Expr,
        body: Expr,
        kind: LoopKind,
    ) -> Result<()> {
        let fact = match kind {
            LoopKind::Serial => None,
            LoopKind::Parallel => None,
            LoopKind::Vectorized => Some("no_vectorized_loop"),
            LoopKind::Unrolled => Some("no_unrolled_loop"),
            LoopKind::ThreadBound => {
                let what = format!("the thread-bound loop over `{}`", self.name_of(var));
                return Problem::unsupported(what, "a processor has no such threads");
            }
        };
        if let Some(fact) = fact {
            let what = format!("the {} loop over `{}`", kind.text(), self.name_of(var));
            return Err(Problem::Left { what, fact });
        }
        let (min, extent) = (self.value(min)?, self.value(extent)?);
        let dtype = self.body.scalar_ty(var).map_or(DType::I64, |(dtype, _)| dtype);
        if min.dtype != dtype || extent.dtype != dtype {
            let name = self.name_of(var);
            return Problem::malformed(format!(
                "the bounds of the loop over `{name}` are no {dtype}"
            ));
        }
        match extent.range.and_then(Range::value) {
            Some(..=0) => Ok(()),
            Some(1) => {
                self.tasks.push(Task::Stmt(body));
                self.bind(var, min)
            }
            // Threads do not take the lanes that are left out along.
            _ if kind == LoopKind::Parallel
                && self.frame.lent.is_some()
                && self.asm.mask.is_none() =>
            {
                self.parallel_loop(var, min, extent, body)
            }
            _ => self.serial_loop(var, min, extent, body),
        }
    }

    fn serial_loop(
        &mut self,
        var: Expr,
        min: Value<'cx>,
        extent: Value<'cx>,
        body: Expr,
    ) -> Result<()> {
        let range = loop_range(min, extent);
        let runs = extent.range.is_some_and(|extent| extent.low > 0);
        let (begin, extent) = (scalar(min)?, scalar(extent)?);
        let end = match range {
            Some(_) => self.asm.exact_int_op(Op::Add, begin.into(), extent.into())?,
            None => self.asm.int_op(Op::Add, begin.into(), extent.into())?,
        };
        self.loop_between(var, begin, end.into_int_value(), range, runs)?;
        self.tasks.push(Task::Stmt(body));
        Ok(())
    }

    /// Opens a loop from `begin` up to but not including `end`; its body is to be emitted next.
    /// `runs`: it is known that it runs at all.
    pub(super) fn loop_between(
        &mut self,
        var: Expr,
        begin: IntValue<'cx>,
        end: IntValue<'cx>,
        range: Option<Range>,
        runs: bool,
    ) -> Result<()> {
        let dtype = self.body.scalar_ty(var).map_or(DType::I64, |(dtype, _)| dtype);
        let signed = Class::of(dtype)?.is_signed();
        let builder = &self.asm.builder;
        let Some(before) = builder.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let head = self.asm.cx.append_basic_block(self.frame.func, "loop");
        let after = self.asm.cx.append_basic_block(self.frame.func, "done");
        if runs {
            builder.build_unconditional_branch(head)?;
        } else {
            let more = builder.build_int_compare(less(signed), begin, end, "")?;
            builder.build_conditional_branch(more, head, after)?;
        }
        builder.position_at_end(head);
        let phi = builder.build_phi(begin.get_type(), &self.name_of(var))?;
        phi.add_incoming(&[(&begin, before)]);
        let value = Value::scalar(dtype, phi.as_basic_value()).with_range(range);
        self.tasks.push(Task::EndLoop(OpenLoop { var: phi, head, after, end }));
        self.scope.vars.insert(var, value);
        Ok(())
    }

    fn end_loop(&mut self, open: OpenLoop<'cx>) -> Result<()> {
        let builder = &self.asm.builder;
        let value = open.var.as_basic_value().into_int_value();
        // It stays below the end, so it cannot overflow.
        let one = value.get_type().const_int(1, false);
        let next = builder.build_int_nsw_add(value, one, "")?;
        let more = builder.build_int_compare(IntPredicate::NE, next, open.end, "")?;
        let Some(last) = builder.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        builder.build_conditional_branch(more, open.head, open.after)?;
        open.var.add_incoming(&[(&next, last)]);
        builder.position_at_end(open.after);
        Ok(())
    }

    /// Binds the iterators; the initial statement runs when all reductions are at their first value, 0.
    fn block(&mut self, block: PrimBlockView<'_>) -> Result<()> {
        if block.predicate.is_some() || !block.domains.is_empty() {
            let text = "a block has a predicate or domains, which are to be conditions before this";
            return Problem::malformed(text);
        }
        let terms = self.body.terms();
        let mut is_first: Option<BasicValueEnum<'cx>> = None;
        for (index, &kind) in block.iter_kinds.iter().enumerate() {
            let (var, binding) = (block.iters.at(2 * index), block.iters.at(2 * index + 1));
            let value = self.value(binding)?;
            self.bind(var, value)?;
            if block.init.is_some() && terms.str(kind) == "reduce" {
                let is_start = self.asm.equals(value, 0)?;
                is_first = Some(match is_first {
                    Some(others) => self.asm.int_op(Op::And, others, is_start)?,
                    None => is_start,
                });
            }
        }
        self.tasks.push(Task::Stmt(block.body));
        match (block.init, is_first) {
            (Some(init), Some(is_first)) => {
                let cond = is_first.into_int_value();
                self.open_branch(cond, init, None)
            }
            (Some(init), None) => {
                self.tasks.push(Task::Stmt(init));
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    fn branch(&mut self, cond: Expr, then: Expr, otherwise: Option<Expr>) -> Result<()> {
        let cond = self.value(cond)?;
        if cond.lanes > 1 {
            return self.masked_branch(cond, then, otherwise);
        }
        let cond = self.asm.truth(cond)?;
        self.open_branch(cond, then, otherwise)
    }

    pub(super) fn open_branch(
        &mut self,
        cond: IntValue<'cx>,
        then: Expr,
        otherwise: Option<Expr>,
    ) -> Result<()> {
        match (cond.get_zero_extended_constant(), otherwise) {
            (Some(0), otherwise) => {
                self.tasks.extend(otherwise.map(Task::Stmt));
                return Ok(());
            }
            (Some(_), _) => {
                self.tasks.push(Task::Stmt(then));
                return Ok(());
            }
            (None, _) => {}
        }
        let cx = self.asm.cx;
        let [yes, no] = ["then", "else"].map(|name| cx.append_basic_block(self.frame.func, name));
        self.asm.builder.build_conditional_branch(cond, yes, no)?;
        self.asm.builder.position_at_end(yes);
        match otherwise {
            Some(_) => {
                let after = cx.append_basic_block(self.frame.func, "endif");
                self.tasks.push(Task::Else { otherwise, begin: no, after });
            }
            None => self.tasks.push(Task::EndIf { after: no }),
        }
        self.tasks.push(Task::Stmt(then));
        Ok(())
    }

    fn alloc(&mut self, expr: Expr) -> Result<()> {
        let layout = BufferLayout::of(self.body, expr)?;
        let pointer = match self.asm.target.device() {
            Some(_) => self.on_device(expr, &layout)?,
            None => self.on_processor(expr, &layout)?,
        };
        let buffer = Buffer { pointer, layout, is_writable: true };
        self.scope.buffers.insert(expr, Rc::new(buffer));
        Ok(())
    }

    fn on_processor(&mut self, expr: Expr, layout: &BufferLayout) -> Result<PointerValue<'cx>> {
        match self.scratch.place(expr)? {
            Placement::Stack => self.on_stack(layout),
            Placement::Scratch(offset) => match self.frame.lent {
                Some(lent) => {
                    let offset = self.asm.index(offset as i64);
                    self.asm.element(lent.scratch, self.asm.cx.i8_type().into(), offset)
                }
                None => Problem::malformed("a large buffer in a parallel loop"),
            },
            Placement::Region(region) => self.region(region),
            Placement::Piece { region, stride } => self.piece(expr, region, stride),
        }
    }

    /// Memory in the entry block, where LLVM looks for what it can keep in registers.
    pub(super) fn on_stack(&mut self, layout: &BufferLayout) -> Result<PointerValue<'cx>> {
        let element = Class::of(layout.dtype)?.memory(self.asm.cx);
        let Ok(count) = u32::try_from(layout.len()?.max(1)) else {
            return Problem::malformed("a large buffer on the stack");
        };
        self.stack_slot(element.array_type(count).into(), ALIGN as u32)
    }

    pub(super) fn stack_slot(
        &mut self,
        ty: inkwell::types::BasicTypeEnum<'cx>,
        align: u32,
    ) -> Result<PointerValue<'cx>> {
        let builder = &self.asm.builder;
        let here = builder.get_insert_block();
        builder.position_at_end(self.frame.entry);
        let slot = builder.build_alloca(ty, "")?;
        if let Some(instruction) = slot.as_instruction()
            && let Err(error) = instruction.set_alignment(align)
        {
            return Problem::malformed(error.to_string());
        }
        if let Some(here) = here {
            builder.position_at_end(here);
        }
        Ok(slot)
    }
}

/// The values that the variable of a loop takes.
pub(super) fn loop_range(min: Value<'_>, extent: Value<'_>) -> Option<Range> {
    let (min, extent) = (min.range?, extent.range?);
    let high = min.high.checked_add(extent.high)?.checked_sub(1)?;
    Some(Range { low: min.low, high: high.max(min.low) })
}

pub(super) fn scalar<'cx>(value: Value<'cx>) -> Result<IntValue<'cx>> {
    match value.form {
        Form::Uniform(BasicValueEnum::IntValue(scalar)) => Ok(scalar),
        _ => Problem::malformed("the bound of a loop is not an integer"),
    }
}

fn less(signed: bool) -> IntPredicate {
    if signed { IntPredicate::SLT } else { IntPredicate::ULT }
}
