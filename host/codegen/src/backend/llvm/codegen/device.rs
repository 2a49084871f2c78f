//! A tensor program that is bound to a device, as a function that its threads run.
//!
//! ```llvm
//! @k_S = internal addrspace(3) global [1024 x float] undef           alloc %S "shared"
//! define ptx_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b) "nvvm.reqntid"="16,16,1"
//!   %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()                   for %x in 0..16 thread "threadIdx.x"
//!   call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)         eval barrier()
//! ```
//!
//! Loops over axes become reads of which thread it is; all else is emitted as for a processor. The parameters are those of the
//! program in their order, buffers as pointers to their first element. The device starts exactly as many threads as the loops
//! have steps ([`LaunchShape`]).

use inkwell::{
    AddressSpace,
    attributes::AttributeLoc,
    context::Context,
    module::{Linkage, Module},
    types::{BasicMetadataTypeEnum, BasicType},
    values::{FunctionValue, PointerValue},
};

use super::{
    access::BufferLayout,
    assembler::Assembler,
    error::{BackendError, Problem, Result},
    expression::Memo,
    kernel::{Program, parameters},
    parallel::facts,
    range::Range,
    scratch::{ALIGN, Placement, ScratchPlan},
    statement::{Emitter, Frame},
    value::{Class, Value},
};
use crate::{
    backend::{
        Kernel, LaunchShape,
        llvm::attributes::{convergent, decorate, decorate_pointer},
    },
    target::{Device, Target},
};
use tenon_ir::{BARRIER, BOUND, BodyView, DType, Expr, LoopKind, View};

/// The calling convention of what a host starts on a device.
const PTX_KERNEL: u32 = 71;
/// The memory of a device that all blocks see, and that of one block.
const GLOBAL: u16 = 1;
const SHARED: u16 = 3;

/// The module that holds the function of `kernel`, and how many threads run it.
pub fn build_device_kernel<'cx>(
    cx: &'cx Context,
    target: &Target,
    kernel: &Kernel<'_>,
) -> std::result::Result<Module<'cx>, BackendError> {
    let module = cx.create_module(kernel.name);
    emit(cx, &module, target, kernel).map_err(|problem| problem.of(kernel.name))?;
    Ok(module)
}

/// How many threads run a program that is bound to a device.
pub fn launch_shape(
    target: &Target,
    kernel: &Kernel<'_>,
) -> std::result::Result<LaunchShape, BackendError> {
    let shape = || {
        let body = kernel.function.view();
        Program::of(body)?;
        shape_of(device_of(target)?, body)
    };
    shape().map_err(|problem: Problem| problem.of(kernel.name))
}

fn device_of(target: &Target) -> Result<Device> {
    match target.device() {
        Some(device) => Ok(device),
        None => Problem::malformed("a program is bound to a device, and the target has none"),
    }
}

fn emit<'cx>(
    cx: &'cx Context,
    module: &Module<'cx>,
    target: &Target,
    kernel: &Kernel<'_>,
) -> Result<()> {
    let body = kernel.function.view();
    let program = Program::of(body)?;
    if let Some(&symbol) = kernel.symbols().first() {
        let (what, shape) = ("the program".to_owned(), body.terms().str(symbol).to_owned());
        return Err(Problem::Symbolic { what, shape });
    }
    let shape = shape_of(device_of(target)?, body)?;
    let func = declare(cx, module, kernel.symbol, body, &program)?;
    decorate(func, target);
    convergent(func);
    let threads = shape.block.map(|extent| extent.to_string()).join(",");
    func.add_attribute(
        AttributeLoc::Function,
        cx.create_string_attribute("nvvm.reqntid", &threads),
    );
    let scope = parameters(func, body, &program)?;
    for (index, &param) in program.params.iter().enumerate() {
        if let Some(buffer) = scope.buffers.get(&param) {
            decorate_pointer(func, index as u32, facts(buffer, true)?);
        }
    }
    let entry = cx.append_basic_block(func, "entry");
    let asm = Assembler { cx, module, builder: cx.create_builder(), target, mask: None };
    asm.builder.position_at_end(cx.append_basic_block(func, "code"));
    let mut emitter = Emitter {
        asm,
        body,
        symbol: kernel.symbol,
        scratch: ScratchPlan::of(kernel.function.cx(), body, program.stmt)?,
        scope,
        frame: Frame { func, entry, lent: None },
        tasks: Vec::new(),
        parallel_loops: 0,
        memo: Memo::new(body),
        intrinsics: kernel.intrinsics,
        regions: Vec::new(),
    };
    emitter.run(program.stmt)?;
    emitter.asm.builder.build_return(None)?;
    emitter.close_entry()
}

fn declare<'cx>(
    cx: &'cx Context,
    module: &Module<'cx>,
    symbol: &str,
    body: BodyView<'_>,
    program: &Program,
) -> Result<FunctionValue<'cx>> {
    let pointer = cx.ptr_type(AddressSpace::from(GLOBAL));
    let mut types: Vec<BasicMetadataTypeEnum<'cx>> = Vec::with_capacity(program.params.len());
    for &param in &program.params {
        types.push(match body.scalar_ty(param) {
            Some((dtype, 1)) => Class::of(dtype)?.register(cx).into(),
            Some(_) => return Problem::malformed("a parameter is a vector"),
            None => pointer.into(),
        });
    }
    let func = module.add_function(symbol, cx.void_type().fn_type(&types, false), None);
    func.set_call_conventions(PTX_KERNEL);
    Ok(func)
}

/// Counts the threads, and what they share; a program is one that threads can run.
fn shape_of(device: Device, body: BodyView<'_>) -> Result<LaunchShape> {
    let attrs = body.terms().attrs(body.attrs(body.root()));
    if attrs.bool(BOUND) != Some(true) {
        let reason = "it is bound to no threads: no rule has scheduled it for this target";
        return Problem::unsupported("the program", reason);
    }
    let mut shape = LaunchShape { grid: [1; 3], block: [1; 3], shared_bytes: 0 };
    let mut seen = Vec::new();
    let mut shared = Vec::new();
    for expr in body.post_order() {
        match body.view(expr) {
            View::For { kind: LoopKind::ThreadBound, thread, min, extent, .. } => {
                let axis = body.terms().str(thread);
                if seen.contains(&axis) {
                    let reason = "it has several such loops, so it is no single kernel";
                    return Problem::unsupported(format!("a loop over `{axis}`"), reason);
                }
                seen.push(axis);
                *place_of(&mut shape, axis)? = constant_extent(body, axis, min, extent)?;
            }
            View::Alloc { buffer } if is_shared(body, buffer) => {
                let layout = BufferLayout::of(body, buffer)?;
                shape.shared_bytes += layout.bytes()?.next_multiple_of(ALIGN);
                shared.push(layout.name);
            }
            _ => {}
        }
    }
    let threads: u64 = shape.block.iter().map(|&extent| u64::from(extent)).product();
    if threads > u64::from(device.block_threads) {
        let reason = format!("the device has {}", device.block_threads);
        return Problem::unsupported(format!("a block of {threads} threads"), reason);
    }
    if shape.shared_bytes > u64::from(device.shared_bytes) {
        let what =
            format!("{} bytes of shared memory for {}", shape.shared_bytes, shared.join(", "));
        return Problem::unsupported(what, format!("a block has {}", device.shared_bytes));
    }
    Ok(shape)
}

fn place_of<'s>(shape: &'s mut LaunchShape, axis: &str) -> Result<&'s mut u32> {
    let (sides, along) = match axis.split_once('.') {
        Some(("blockIdx", along)) => (&mut shape.grid, along),
        Some(("threadIdx", along)) => (&mut shape.block, along),
        _ => return Problem::malformed(format!("there is no axis `{axis}`")),
    };
    match ["x", "y", "z"].iter().position(|&name| name == along) {
        Some(at) => Ok(&mut sides[at]),
        None => Problem::malformed(format!("there is no axis `{axis}`")),
    }
}

fn constant_extent(body: BodyView<'_>, axis: &str, min: Expr, extent: Expr) -> Result<u32> {
    match (body.view(min), body.view(extent)) {
        (View::Int(0), View::Int(extent)) if extent > 0 && extent <= i64::from(i32::MAX) => {
            Ok(extent as u32)
        }
        _ => Problem::unsupported(
            format!("the loop over `{axis}`"),
            "its extent is no constant, or has no steps",
        ),
    }
}

fn is_shared(body: BodyView<'_>, buffer: Expr) -> bool {
    matches!(body.view(buffer), View::Buffer { scope, .. } if body.terms().str(scope) == "shared")
}

impl<'cx> Emitter<'cx, '_> {
    /// A loop over an axis: its variable is which of the threads this one is.
    pub(super) fn axis(&mut self, var: Expr, extent: Expr, axis: &str) -> Result<()> {
        let register = match axis.split_once('.') {
            Some(("blockIdx", along)) => format!("ctaid.{along}"),
            Some((_, along)) => format!("tid.{along}"),
            None => return Problem::malformed(format!("there is no axis `{axis}`")),
        };
        let name = format!("llvm.nvvm.read.ptx.sreg.{register}");
        let (cx, module) = (self.asm.cx, self.asm.module);
        let func = module
            .get_function(&name)
            .unwrap_or_else(|| module.add_function(&name, cx.i32_type().fn_type(&[], false), None));
        let number = self.asm.builder.build_call(func, &[], "")?.try_as_basic_value().basic();
        let (Some(number), View::Int(extent)) = (number, self.body.view(extent)) else {
            return Problem::malformed("an axis has no number");
        };
        let range = Range { low: 0, high: extent - 1 };
        let number = Value::scalar(DType::I32, number).with_range(Some(range));
        let dtype = self.body.scalar_ty(var).map_or(DType::I64, |(dtype, _)| dtype);
        let number = self.asm.cast(number, dtype)?.with_range(Some(range));
        self.scope.vars.insert(var, number);
        Ok(())
    }

    /// The threads of a block wait for each other.
    pub(super) fn barrier(&mut self) -> Result<()> {
        if self.asm.target.device().is_none() {
            return Problem::unsupported("a barrier", "a processor has no threads that wait");
        }
        let name = "llvm.nvvm.barrier.cta.sync.aligned.all";
        let (cx, module) = (self.asm.cx, self.asm.module);
        let int = cx.i32_type();
        let func = module.get_function(name).unwrap_or_else(|| {
            module.add_function(name, cx.void_type().fn_type(&[int.into()], false), None)
        });
        self.asm.builder.build_call(func, &[int.const_zero().into()], "")?;
        Ok(())
    }

    /// Whether a value is waiting for the others.
    pub(super) fn is_barrier(&self, value: Expr) -> bool {
        let name_is = |name| self.body.terms().str(name) == BARRIER;
        matches!(self.body.view(value), View::Intrinsic { name, .. } if name_is(name))
    }

    /// Memory for a buffer on a device: of the block where it is shared, of the thread otherwise.
    pub(super) fn on_device(
        &mut self,
        expr: Expr,
        layout: &BufferLayout,
    ) -> Result<PointerValue<'cx>> {
        if is_shared(self.body, expr) {
            let element = Class::of(layout.dtype)?.memory(self.asm.cx);
            let Ok(count) = u32::try_from(layout.len()?.max(1)) else {
                return Problem::malformed("a large buffer in shared memory");
            };
            let ty = element.array_type(count).as_basic_type_enum();
            let name = format!("{}_{}", self.symbol, plain(&layout.name));
            let global = self.asm.module.add_global(ty, Some(AddressSpace::from(SHARED)), &name);
            global.set_linkage(Linkage::Internal);
            global.set_initializer(&element.array_type(count).get_undef());
            global.set_alignment(ALIGN as u32);
            return Ok(global.as_pointer_value());
        }
        match self.scratch.place(expr)? {
            Placement::Stack => self.on_stack(layout),
            Placement::Scratch(_) | Placement::Region(_) | Placement::Piece { .. } => {
                Problem::unsupported(
                    format!("buffer `{}` of {} bytes", layout.name, layout.bytes()?),
                    "it is too large for a thread, and not shared by a block",
                )
            }
        }
    }
}

/// The characters of a name that may stand in a symbol of PTX.
pub(super) fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}
