//! Parallel loops.
//!
//! ```text
//! parallel i in 0..64 { … A … x … }
//! =>
//! void k.body0(ptr A, i64 x, i64 begin, i64 end)     the loop, from begin to end
//! i32  k.task0(ptr data, i64 begin, i64 end)         takes A and x out of data, calls k.body0
//!
//! if parallel == null { k.body0(A, x, 0, 64) }
//! else { data = {A, x}; status = parallel->parallel_for(parallel->pool, k.task0, &data, 0, 64) }
//! ```
//!
//! The body has parameters, and not only the structure, because what is known of a pointer (that no
//! other reaches its memory) can be said of parameters alone. A parallel loop inside of another is
//! a serial one, as the threads are busy.

use std::rc::Rc;

use inkwell::{
    AddressSpace,
    module::Linkage,
    types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, StructType},
    values::{
        BasicMetadataValueEnum, BasicValueEnum, FunctionValue, InstructionOpcode as Op, IntValue,
        PointerValue,
    },
};

use super::{
    access::Buffer,
    error::{Problem, Result},
    expression::Scope,
    range::Range,
    statement::{Emitter, Frame, Task, loop_range, scalar},
    value::{Class, Form, Value},
};
use crate::backend::llvm::attributes::{Pointer, decorate, decorate_pointer};
use tenon_ir::{DType, Expr, Kind, Symbol};

/// The function that is left alone while the body of a parallel loop is emitted.
pub(super) struct Suspended<'cx> {
    frame: Frame<'cx>,
    scope: Scope<'cx>,
    block: inkwell::basic_block::BasicBlock<'cx>,
    captured: Vec<BasicValueEnum<'cx>>,
    body: FunctionValue<'cx>,
    begin: IntValue<'cx>,
    end: IntValue<'cx>,
}

impl<'cx> Emitter<'cx, '_> {
    /// Starts the function that is the loop's body; the statements of it are emitted next.
    pub(super) fn parallel_loop(
        &mut self,
        var: Expr,
        min: Value<'cx>,
        extent: Value<'cx>,
        body: Expr,
    ) -> Result<()> {
        let range = loop_range(min, extent);
        let dtype = self.body.scalar_ty(var).map_or(DType::I64, |(dtype, _)| dtype);
        let (first, count) = (self.asm.cast(min, DType::I64)?, self.asm.cast(extent, DType::I64)?);
        let (begin, count) = (scalar(first)?, scalar(count)?);
        let end = self.asm.int_op(Op::Add, begin.into(), count.into())?.into_int_value();

        let names = self.names_in(body);
        let mut captured = Captured::default();
        names.iter().for_each(|&name| captured.add(&self.scope, name));
        captured.add_symbols(&self.scope);
        for &name in &names {
            if let Some(begin) = self.pieces_from(name, begin)? {
                captured.add_pieces(name, begin);
            }
        }
        let func = self.body_function(&captured)?;
        let scope = captured.scope_in(func, &self.scope)?;
        let Some(block) = self.asm.builder.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let entry = self.asm.cx.append_basic_block(func, "entry");
        let frame = Frame { func, entry, lent: None };
        let suspended = Suspended {
            frame: std::mem::replace(&mut self.frame, frame),
            scope: std::mem::replace(&mut self.scope, scope),
            block,
            captured: captured.values,
            body: func,
            begin,
            end,
        };
        self.tasks.push(Task::EndParallel(Box::new(suspended)));
        self.begin_body(var, dtype, range)?;
        self.tasks.push(Task::Stmt(body));
        Ok(())
    }

    /// `k.body0`, empty.
    fn body_function(&mut self, captured: &Captured<'cx>) -> Result<FunctionValue<'cx>> {
        let int = self.asm.cx.i64_type();
        let params: Vec<BasicMetadataTypeEnum<'cx>> = captured
            .values
            .iter()
            .map(|value| value.get_type().into())
            .chain([int.into(), int.into()])
            .collect();
        let name = format!("{}.body{}", self.symbol, self.parallel_loops);
        let ty = self.asm.cx.void_type().fn_type(&params, false);
        let func = self.asm.module.add_function(&name, ty, Some(Linkage::Internal));
        decorate(func, self.asm.target);
        for (&index, buffer) in captured.buffers.iter().map(|(_, index, buffer)| (index, buffer)) {
            decorate_pointer(func, index, facts(buffer, true)?);
        }
        Ok(func)
    }

    /// The loop over the piece that the body is given.
    fn begin_body(&mut self, var: Expr, dtype: DType, range: Option<Range>) -> Result<()> {
        let func = self.frame.func;
        let code = self.asm.cx.append_basic_block(func, "code");
        self.asm.builder.position_at_end(code);
        let count = func.count_params();
        let bound = |index| match func.get_nth_param(index) {
            Some(BasicValueEnum::IntValue(bound)) => {
                let whole = Value::scalar(DType::I64, bound).with_range(range);
                scalar(self.asm.cast(whole, dtype)?)
            }
            _ => Problem::malformed("a parallel body without bounds"),
        };
        let (begin, end) = (bound(count - 2)?, bound(count - 1)?);
        self.loop_between(var, begin, end, range, false)
    }

    /// The body is complete: closes it, goes back, and calls it.
    pub(super) fn end_parallel(&mut self, suspended: Suspended<'cx>) -> Result<()> {
        self.asm.builder.build_return(None)?;
        self.close_entry()?;
        let Suspended { frame, scope, block, captured, body, begin, end } = suspended;
        let (types, data) = self.closure_type(&captured);
        let task = self.task_function(body, &types, data)?;
        self.frame = frame;
        self.scope = scope;
        self.asm.builder.position_at_end(block);
        self.parallel_loops += 1;
        let Some(lent) = self.frame.lent else {
            return Problem::malformed("a parallel loop within another became one of its own");
        };

        let cx = self.asm.cx;
        let [alone, threads, failed, after] = ["alone", "threads", "failed", "after"]
            .map(|name| cx.append_basic_block(self.frame.func, name));
        let closure = self.stack_slot(data.into(), 64)?;
        let b = &self.asm.builder;
        let none = b.build_is_null(lent.parallel, "")?;
        b.build_conditional_branch(none, alone, threads)?;

        b.position_at_end(alone);
        let args: Vec<BasicMetadataValueEnum<'cx>> =
            captured.iter().map(|&value| value.into()).chain([begin.into(), end.into()]).collect();
        b.build_call(body, &args, "")?;
        b.build_unconditional_branch(after)?;

        b.position_at_end(threads);
        for (index, &value) in captured.iter().enumerate() {
            b.build_store(b.build_struct_gep(data, closure, index as u32, "")?, value)?;
        }
        let status = self.dispatch(lent.parallel, task, closure, begin, end)?;
        let b = &self.asm.builder;
        let is_good =
            b.build_int_compare(inkwell::IntPredicate::EQ, status, cx.i32_type().const_zero(), "")?;
        b.build_conditional_branch(is_good, after, failed)?;
        b.position_at_end(failed);
        b.build_return(Some(&status))?;
        b.position_at_end(after);
        Ok(())
    }

    /// The call through `struct tenon_parallel`.
    fn dispatch(
        &self,
        parallel: PointerValue<'cx>,
        task: FunctionValue<'cx>,
        closure: PointerValue<'cx>,
        begin: IntValue<'cx>,
        end: IntValue<'cx>,
    ) -> Result<IntValue<'cx>> {
        let (cx, b) = (self.asm.cx, &self.asm.builder);
        let (pointer, int) = (cx.ptr_type(AddressSpace::default()), cx.i64_type());
        let table = cx.struct_type(&[pointer.into(), cx.i32_type().into(), pointer.into()], false);
        let field = |index| -> Result<PointerValue<'cx>> {
            let place = b.build_struct_gep(table, parallel, index, "")?;
            Ok(b.build_load(pointer, place, "")?.into_pointer_value())
        };
        let (pool, parallel_for) = (field(0)?, field(2)?);
        let params = [pointer.into(), pointer.into(), pointer.into(), int.into(), int.into()];
        let ty = cx.i32_type().fn_type(&params, false);
        let task = task.as_global_value().as_pointer_value();
        let args = [pool.into(), task.into(), closure.into(), begin.into(), end.into()];
        let call = b.build_indirect_call(ty, parallel_for, &args, "")?;
        match call.try_as_basic_value().basic() {
            Some(BasicValueEnum::IntValue(status)) => Ok(status),
            _ => Problem::malformed("a dispatch without a status"),
        }
    }

    fn closure_type(
        &self,
        captured: &[BasicValueEnum<'cx>],
    ) -> (Vec<BasicTypeEnum<'cx>>, StructType<'cx>) {
        let types: Vec<BasicTypeEnum<'cx>> =
            captured.iter().map(|value| value.get_type()).collect();
        let data = self.asm.cx.struct_type(&types, false);
        (types, data)
    }

    /// `k.task0`: what the threads call.
    fn task_function(
        &self,
        body: FunctionValue<'cx>,
        types: &[BasicTypeEnum<'cx>],
        data: StructType<'cx>,
    ) -> Result<FunctionValue<'cx>> {
        let (cx, b) = (self.asm.cx, &self.asm.builder);
        let (pointer, int) = (cx.ptr_type(AddressSpace::default()), cx.i64_type());
        let ty = cx.i32_type().fn_type(&[pointer.into(), int.into(), int.into()], false);
        let name = format!("{}.task{}", self.symbol, self.parallel_loops);
        let func = self.asm.module.add_function(&name, ty, Some(Linkage::Internal));
        decorate(func, self.asm.target);
        let [Some(closure), Some(begin), Some(end)] = [0, 1, 2].map(|n| func.get_nth_param(n))
        else {
            return Problem::malformed("a task without parameters");
        };
        b.position_at_end(cx.append_basic_block(func, "entry"));
        let mut args: Vec<BasicMetadataValueEnum<'cx>> = Vec::with_capacity(types.len() + 2);
        for (index, &ty) in types.iter().enumerate() {
            let place = b.build_struct_gep(data, closure.into_pointer_value(), index as u32, "")?;
            args.push(b.build_load(ty.as_basic_type_enum(), place, "")?.into());
        }
        args.extend([BasicMetadataValueEnum::from(begin), end.into()]);
        b.build_call(body, &args, "")?;
        b.build_return(Some(&cx.i32_type().const_zero()))?;
        Ok(func)
    }

    /// The variables and buffers that a statement names, each once, in the order of the body.
    fn names_in(&self, stmt: Expr) -> Vec<Expr> {
        let mut is_seen = vec![false; self.body.len()];
        let mut pending = vec![stmt];
        let mut names = Vec::new();
        while let Some(expr) = pending.pop() {
            if std::mem::replace(&mut is_seen[expr.index()], true) {
                continue;
            }
            match self.body.kind(expr) {
                Kind::VAR | Kind::BUFFER => names.push(expr),
                _ => pending.extend(self.body.operands(expr).iter()),
            }
        }
        names.sort_unstable();
        names
    }
}

/// What the body of a parallel loop takes along.
#[derive(Default)]
struct Captured<'cx> {
    values: Vec<BasicValueEnum<'cx>>,
    vars: Vec<(Expr, u32)>,
    buffers: Vec<(Expr, u32, Rc<Buffer<'cx>>)>,
    symbols: Vec<(Symbol, u32)>,
    pieces: Vec<(Expr, u32)>,
}

impl<'cx> Captured<'cx> {
    fn add(&mut self, scope: &Scope<'cx>, name: Expr) {
        let index = self.values.len() as u32;
        if let Some(value) = scope.vars.get(&name) {
            self.values.push(match value.form {
                Form::Uniform(value) | Form::Vector(value) => value,
                Form::Ramp { base, .. } => base.into(),
            });
            self.vars.push((name, index));
        }
        if let Some(buffer) = scope.buffers.get(&name) {
            self.values.push(buffer.pointer.into());
            self.buffers.push((name, index, Rc::clone(buffer)));
        }
    }

    /// All symbols: few, and those that nothing uses are gone when the code is optimized.
    fn add_symbols(&mut self, scope: &Scope<'cx>) {
        let mut symbols: Vec<_> = scope.symbols.iter().collect();
        symbols.sort_unstable_by_key(|(symbol, _)| **symbol);
        for (&symbol, value) in symbols {
            if let Form::Uniform(value) = value.form {
                self.symbols.push((symbol, self.values.len() as u32));
                self.values.push(value);
            }
        }
    }

    /// Where the region of a buffer begins that is made in the loop.
    fn add_pieces(&mut self, buffer: Expr, begin: PointerValue<'cx>) {
        self.pieces.push((buffer, self.values.len() as u32));
        self.values.push(begin.into());
    }

    /// The same names, meaning the parameters of `func`.
    fn scope_in(&self, func: FunctionValue<'cx>, outer: &Scope<'cx>) -> Result<Scope<'cx>> {
        let mut scope = Scope::default();
        let param = |index| {
            func.get_nth_param(index).map_or_else(|| Problem::malformed("no such parameter"), Ok)
        };
        for &(name, index) in &self.vars {
            let (value, param) = (outer.vars[&name], param(index)?);
            let form = match value.form {
                Form::Uniform(_) => Form::Uniform(param),
                Form::Vector(_) => Form::Vector(param),
                Form::Ramp { stride, .. } => Form::Ramp { base: param.into_int_value(), stride },
            };
            scope.vars.insert(name, Value { form, ..value });
        }
        for (name, index, buffer) in &self.buffers {
            let pointer = param(*index)?.into_pointer_value();
            let buffer = Buffer { pointer, layout: buffer.layout.clone(), ..**buffer };
            scope.buffers.insert(*name, Rc::new(buffer));
        }
        for &(symbol, index) in &self.symbols {
            let form = Form::Uniform(param(index)?);
            scope.symbols.insert(symbol, Value { form, ..outer.symbols[&symbol] });
        }
        for &(buffer, index) in &self.pieces {
            scope.pieces.insert(buffer, param(index)?.into_pointer_value());
        }
        Ok(scope)
    }
}

/// What is known of the memory of a buffer that is a parameter.
pub(super) fn facts(buffer: &Buffer<'_>, noalias: bool) -> Result<Pointer> {
    Ok(Pointer {
        noalias,
        readonly: !buffer.is_writable,
        align: Class::of(buffer.layout.dtype)?.bytes(),
        dereferenceable: match buffer.layout.is_static() {
            true => buffer.layout.bytes()?,
            false => 0,
        },
    })
}
