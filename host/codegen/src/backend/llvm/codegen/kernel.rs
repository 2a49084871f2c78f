//! A tensor program as a function.
//!
//! ```c
//! int32_t k(const float *a, float *b, int64_t n, void *scratch,
//!           const struct tenon_parallel *parallel);
//! ```
//!
//! The parameters of the program in their order, buffers as pointers to their first element,
//! scalars as they are; then the symbols of their types ([`Kernel::symbols`]), `scratch`, which must be as large as
//! [`scratch_of`] says and lie on a boundary of 64, and the threads, or null for none. No two buffers may overlap unless both are
//! only read. The result is 0, or what `parallel_for` failed with, or an external function.

use std::rc::Rc;

use inkwell::{
    AddressSpace,
    context::Context,
    module::Module,
    types::BasicMetadataTypeEnum,
    values::{BasicValueEnum, FunctionValue},
};

use super::{
    access::{Buffer, BufferLayout},
    assembler::Assembler,
    dim::SYMBOL,
    error::{BackendError, Problem, Result},
    expression::{Memo, Scope},
    external::called,
    parallel::facts,
    scratch::{ALIGN, ScratchPlan},
    statement::{Emitter, Frame, Lent},
    value::{Class, Value},
};
use crate::{
    backend::{
        Kernel, Scratch,
        llvm::{
            attributes::{Pointer, decorate, decorate_pointer},
            units::Pipeline,
        },
    },
    target::Target,
};
use tenon_ir::{BodyView, DType, Expr, Function, Kind, View};

/// What the caller of the program must lend it.
pub fn scratch_of(kernel: &Kernel<'_>) -> std::result::Result<Scratch, BackendError> {
    let plan = || {
        let view = kernel.function.view();
        let program = Program::of(view)?;
        Ok(ScratchPlan::of(kernel.function.cx(), view, program.stmt)?.lent)
    };
    plan().map_err(|problem: Problem| problem.of(kernel.name))
}

/// What LLVM should do with it: programs that come vectorized need little, loops over scalars need
/// LLVM's own vectorizer.
pub fn pipeline_for(function: &Function) -> Pipeline {
    let body = function.view();
    let has_vectors =
        body.post_order().any(|expr| matches!(body.kind(expr), Kind::RAMP | Kind::BROADCAST));
    if has_vectors { Pipeline::Lean } else { Pipeline::Default(3) }
}

/// The module that holds the function of `kernel`.
pub fn build_kernel<'cx>(
    cx: &'cx Context,
    target: &Target,
    kernel: &Kernel<'_>,
) -> std::result::Result<Module<'cx>, BackendError> {
    let module = cx.create_module(kernel.name);
    emit(cx, &module, target, kernel).map_err(|problem| problem.of(kernel.name))?;
    Ok(module)
}

fn emit<'cx>(
    cx: &'cx Context,
    module: &Module<'cx>,
    target: &Target,
    kernel: &Kernel<'_>,
) -> Result<()> {
    let body = kernel.function.view();
    let program = Program::of(body)?;
    let scratch = ScratchPlan::of(kernel.function.cx(), body, program.stmt)?;
    let symbols = kernel.symbols();
    let func = declare(cx, module, kernel, &program, symbols.len())?;
    decorate(func, target);
    let mut scope = parameters(func, body, &program)?;
    for (index, &param) in program.params.iter().enumerate() {
        if let Some(buffer) = scope.buffers.get(&param) {
            decorate_pointer(func, index as u32, facts(buffer, true)?);
        }
    }
    let first_symbol = program.params.len() as u32;
    for (&symbol, index) in symbols.iter().zip(first_symbol..) {
        let Some(value) = func.get_nth_param(index) else {
            return Problem::malformed("a symbol is missing");
        };
        let value = Value::scalar(DType::I64, value).with_range(Some(SYMBOL));
        scope.symbols.insert(symbol, value);
    }
    let count = first_symbol + symbols.len() as u32;
    let lent = &scratch.lent;
    let facts = Pointer { noalias: true, align: ALIGN as u32, ..Pointer::default() };
    let facts = Pointer { dereferenceable: lent.bytes, ..facts };
    if lent.bytes > 0 || !lent.regions.is_empty() {
        decorate_pointer(func, count, facts);
    }
    let (Some(lent_scratch), Some(parallel)) =
        (func.get_nth_param(count), func.get_nth_param(count + 1))
    else {
        return Problem::malformed("a kernel without its last parameters");
    };
    let lent = Lent {
        scratch: lent_scratch.into_pointer_value(),
        parallel: parallel.into_pointer_value(),
    };
    let entry = cx.append_basic_block(func, "entry");
    let asm = Assembler { cx, module, builder: cx.create_builder(), target, mask: None };
    asm.builder.position_at_end(cx.append_basic_block(func, "code"));
    let mut emitter = Emitter {
        asm,
        body,
        symbol: kernel.symbol,
        scratch,
        scope,
        frame: Frame { func, entry, lent: Some(lent) },
        tasks: Vec::new(),
        parallel_loops: 0,
        memo: Memo::new(body),
        intrinsics: kernel.intrinsics,
        regions: Vec::new(),
    };
    emitter.begin_regions()?;
    emitter.return_if_nothing_is_written(program.outputs())?;
    match called(body, &program) {
        Some(symbol) => emitter.call_external(symbol, &program)?,
        None => {
            emitter.run(program.stmt)?;
            emitter.asm.builder.build_return(Some(&cx.i32_type().const_zero()))?;
        }
    }
    emitter.close_entry()
}

impl Emitter<'_, '_> {
    /// Everything is on the stack that will be: the entry block goes on to the code.
    pub(super) fn close_entry(&mut self) -> Result<()> {
        let Some(code) = self.frame.entry.get_next_basic_block() else {
            return Problem::malformed("a function without code");
        };
        self.asm.builder.position_at_end(self.frame.entry);
        self.asm.builder.build_unconditional_branch(code)?;
        Ok(())
    }
}

/// A tensor program, taken apart.
pub(super) struct Program {
    pub(super) params: Vec<Expr>,
    outputs: usize,
    pub(super) stmt: Expr,
}

impl Program {
    pub(super) fn of(body: BodyView<'_>) -> Result<Program> {
        match body.view(body.root()) {
            View::PrimFunc { params, outputs, body: stmt, .. } => {
                Ok(Program { params: params.to_vec(), outputs, stmt })
            }
            _ => Problem::malformed("it is not a tensor program but a graph function"),
        }
    }

    /// The parameters that are written.
    pub(super) fn outputs(&self) -> &[Expr] {
        &self.params[self.params.len() - self.outputs..]
    }
}

fn declare<'cx>(
    cx: &'cx Context,
    module: &Module<'cx>,
    kernel: &Kernel<'_>,
    program: &Program,
    symbols: usize,
) -> Result<FunctionValue<'cx>> {
    let (pointer, body) = (cx.ptr_type(AddressSpace::default()), kernel.function.view());
    let count = program.params.len() + symbols + 2;
    let mut types: Vec<BasicMetadataTypeEnum<'cx>> = Vec::with_capacity(count);
    for &param in &program.params {
        types.push(match body.scalar_ty(param) {
            Some((dtype, 1)) => Class::of(dtype)?.register(cx).into(),
            Some(_) => return Problem::malformed("a parameter is a vector"),
            None => pointer.into(),
        });
    }
    types.extend(std::iter::repeat_n(BasicMetadataTypeEnum::from(cx.i64_type()), symbols));
    types.extend([BasicMetadataTypeEnum::from(pointer), pointer.into()]);
    let ty = cx.i32_type().fn_type(&types, false);
    Ok(module.add_function(kernel.symbol, ty, None))
}

/// What the names of the parameters mean in the function.
pub(super) fn parameters<'cx>(
    func: FunctionValue<'cx>,
    body: BodyView<'_>,
    program: &Program,
) -> Result<Scope<'cx>> {
    let mut scope = Scope::default();
    let inputs = program.params.len() - program.outputs;
    for (index, &param) in program.params.iter().enumerate() {
        match func.get_nth_param(index as u32) {
            Some(BasicValueEnum::PointerValue(pointer)) => {
                let layout = BufferLayout::of(body, param)?;
                let buffer = Buffer { pointer, layout, is_writable: index >= inputs };
                scope.buffers.insert(param, Rc::new(buffer));
            }
            Some(value) => {
                let Some((dtype, _)) = body.scalar_ty(param) else {
                    return Problem::malformed("a parameter has no type");
                };
                scope.vars.insert(param, Value::scalar(dtype, value));
            }
            None => return Problem::malformed("a parameter is missing"),
        }
    }
    Ok(scope)
}
