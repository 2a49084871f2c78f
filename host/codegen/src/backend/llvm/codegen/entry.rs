//! The functions that run whole models, and that say how large what they need is.
//!
//! ```c
//! int32_t tenon_main(const DLTensor *inputs, DLTensor *outputs, void *workspace,
//!                    const struct tenon_parallel *parallel, const volatile uint8_t *cancelled);
//! int32_t tenon_sizes(const DLTensor *inputs, int64_t *extents, uint64_t *workspace);
//! ```
//!
//! `tenon_main` checks its arguments (`interface`) and does what the plan says (`actions`). It may run on several threads at
//! once. Between programs it looks whether it is cancelled. Where it takes memory it has one more parameter, from which
//! (`arena`); else it allocates nothing.
//!
//! `tenon_sizes` checks the inputs alone. It writes the extents of all outputs, one after the other, and the bytes of the
//! workspace; either place may be null. An extent that is found by `tenon_main` is the largest that it may be, or -1 where nobody
//! knows; `tenon_main` writes what it is into the shape of the output.
//!
//! Each function that callers call is such a pair, of names of its own. What they call is there once for all.

use std::ops::Range;

use inkwell::{
    IntPredicate,
    context::Context,
    memory_buffer::MemoryBuffer,
    module::Module,
    values::{FunctionValue, PointerValue},
};

use super::{
    actions::{Actions, Depth, Lent},
    assembler::Assembler,
    callees::Callees,
    error::{BackendError, Problem, Result},
    frame::Frame,
    interface::{Given, Interface, layout},
    scratch::ALIGN,
};
use crate::{
    backend::llvm::{
        LlvmError,
        attributes::{Pointer, decorate_pointer},
    },
    plan::{Action, Body, Call, Callee, Code, Entry, Routine, Size, SizeStep},
    target::Target,
};
use tenon_runtime::status::Failure;

/// What the module is called.
const NAME: &str = "tenon_main";

/// The module that holds the functions.
pub fn build_code<'cx>(
    cx: &'cx Context,
    target: &Target,
    code: &Code,
) -> std::result::Result<Module<'cx>, BackendError> {
    let check = layout(target).check();
    let text = MemoryBuffer::create_from_memory_range_copy(check.as_bytes(), "check");
    let module = cx.create_module_from_ir(text).map_err(|error| LlvmError::InvalidModule {
        unit: NAME.to_owned(),
        message: error.to_string(),
    })?;
    module.set_name(NAME);
    let asm = Assembler { cx, module: &module, builder: cx.create_builder(), target, mask: None };
    code.entries
        .iter()
        .try_for_each(|entry| build_sizes(&asm, entry))
        .and_then(|()| build_functions(&asm, code))
        .map_err(|problem| problem.of(NAME))?;
    Ok(module)
}

fn build_sizes<'cx>(asm: &Assembler<'cx, '_>, entry: &Entry) -> Result<()> {
    // It takes no memory.
    let body = Body { takes: false, ..entry.body.clone() };
    let mut interface = Interface::new(asm, entry, &body, &entry.sizes_symbol, 3)?;
    let [inputs, extents, workspace] = [0, 1, 2].map(|index| interface.param(index));
    interface.inputs(inputs?)?;
    interface.check_memory(entry.body.workspace)?;
    let shapes: Vec<Size> = entry.output_shapes.iter().flatten().copied().collect();
    write_numbers(&interface, extents?, &shapes)?;
    write_numbers(&interface, workspace?, &[entry.body.workspace])?;
    interface.succeed()
}

/// Writes numbers one after the other, unless the place is null.
fn write_numbers<'cx>(
    interface: &Interface<'cx, '_>,
    place: PointerValue<'cx>,
    numbers: &[Size],
) -> Result<()> {
    let (asm, b) = (interface.asm, &interface.asm.builder);
    let [write, after] =
        ["write", "after"].map(|name| asm.cx.append_basic_block(interface.func, name));
    b.build_conditional_branch(b.build_is_null(place, "")?, after, write)?;
    b.position_at_end(write);
    interface.write(place, numbers)?;
    b.build_unconditional_branch(after)?;
    b.position_at_end(after);
    Ok(())
}

/// The functions that are called, and those that callers call.
fn build_functions<'cx>(asm: &Assembler<'cx, '_>, code: &Code) -> Result<()> {
    let callees = Callees::declare(asm, code)?;
    let mut calls = 0;
    for (number, routine) in code.routines.iter().enumerate() {
        let func = callees.get(Callee::Routine(number))?;
        build_routine(asm, &callees, routine, func, calls)?;
        calls += kernel_calls(&routine.body);
    }
    for entry in &code.entries {
        build_main(asm, &callees, entry, calls)?;
        calls += kernel_calls(&entry.body);
    }
    Ok(())
}

fn kernel_calls(body: &Body) -> usize {
    let is_kernel =
        |action: &&Action| matches!(action, Action::Call(Call { callee: Callee::Kernel(_), .. }));
    body.actions.iter().filter(is_kernel).count()
}

fn build_routine<'cx>(
    asm: &Assembler<'cx, '_>,
    callees: &Callees<'cx>,
    routine: &Routine,
    func: FunctionValue<'cx>,
    calls: usize,
) -> Result<()> {
    let mut frame = Frame::new(asm, &routine.body, func)?;
    let Routine { inputs, outputs, numbers, .. } = *routine;
    let pointers = |range: Range<usize>| -> Result<Vec<_>> {
        range.map(|at| frame.param(at as u32)).collect()
    };
    let first_number = inputs + outputs;
    let behind = first_number + numbers;
    let (inputs, outputs) = (pointers(0..inputs)?, pointers(inputs..first_number)?);
    let [workspace, parallel, cancelled] = [0, 1, 2].map(|at| frame.param((behind + at) as u32));
    let depth = match routine.circle {
        None => None,
        Some(circle) => {
            let left = frame.number_param((behind + 3) as u32)?;
            Some(Depth { circle, left, end: frame.param((behind + 4) as u32)? })
        }
    };
    let (workspace, parallel, cancelled) = (workspace?, parallel?, cancelled?);
    let lent = Lent { workspace, parallel, cancelled, depth };
    frame.compute(&|frame, step| match *step {
        SizeStep::Given(at) => frame.number_param((first_number + at) as u32),
        _ => Problem::malformed("a routine is given no extents"),
    })?;
    if let Some(depth) = depth {
        check_depth(&frame, &depth, workspace)?;
    }
    Actions::new(&frame, callees, inputs, outputs.clone(), lent).emit(calls)?;
    for it in &routine.taken {
        let Some(arena) = &frame.arena else { return Problem::malformed("there is no arena") };
        asm.builder.build_store(outputs[it.output], arena.taken(asm, it.slot)?)?;
    }
    frame.succeed()
}

/// Fails where as many calls of a circle are in work as may be, or this one needs more memory than is left.
fn check_depth<'cx>(
    frame: &Frame<'cx, '_>,
    depth: &Depth<'cx>,
    workspace: PointerValue<'cx>,
) -> Result<()> {
    let (asm, b) = (frame.asm, &frame.asm.builder);
    let int = asm.cx.i64_type();
    frame.check_memory(frame.body.workspace)?;
    let none = b.build_int_compare(IntPredicate::SLT, depth.left, asm.index(1), "")?;
    let [begin, end] = [workspace, depth.end].map(|it| b.build_ptr_to_int(it, int, ""));
    let room = b.build_int_sub(end?, begin?, "")?;
    let needed = frame.size(frame.body.workspace)?;
    let short = b.build_int_compare(IntPredicate::SGT, needed, room, "")?;
    frame.fail_if(b.build_or(none, short, "")?, frame.code(Failure::Depth as i32))
}

/// The function that runs the model.
fn build_main<'cx>(
    asm: &Assembler<'cx, '_>,
    callees: &Callees<'cx>,
    entry: &Entry,
    calls: usize,
) -> Result<()> {
    let params = if entry.body.takes { 6 } else { 5 };
    let mut interface = Interface::new(asm, entry, &entry.body, &entry.symbol, params)?;
    let workspace = interface.param(2)?;
    let [parallel, cancelled] = [interface.param(3)?, interface.param(4)?];
    let inputs = interface.inputs(interface.param(0)?)?;
    let outputs = interface.outputs(interface.param(1)?)?;
    interface.check_arena()?;
    if !entry.in_place.is_empty() {
        interface.check_apart(&inputs, &outputs)?;
        interface.check_rooms(&inputs, &outputs)?;
    }
    if entry.body.workspace != Size::Known(0) {
        let facts = Pointer { noalias: true, ..Pointer::default() };
        decorate_pointer(interface.func, 2, facts);
        check_workspace(&interface, workspace)?;
    }
    let data = |given: &[Given<'cx>]| given.iter().map(|given| given.data).collect();
    callees.mark(asm, 0)?;
    let lent = Lent { workspace, parallel, cancelled, depth: None };
    let actions = Actions::new(&interface.frame, callees, data(&inputs), data(&outputs), lent);
    actions.emit(calls)?;
    interface.tell(&outputs)?;
    interface.give_taken(interface.param(1)?, &outputs)?;
    interface.succeed()
}

fn check_workspace<'cx>(
    interface: &Interface<'cx, '_>,
    workspace: PointerValue<'cx>,
) -> Result<()> {
    let asm = interface.asm;
    let b = &asm.builder;
    interface.check_memory(interface.body.workspace)?;
    let address = b.build_ptr_to_int(workspace, asm.cx.i64_type(), "")?;
    let rest = b.build_and(address, asm.index(ALIGN as i64 - 1), "")?;
    let is_askew = b.build_int_compare(IntPredicate::NE, rest, asm.index(0), "")?;
    let is_null = b.build_is_null(workspace, "")?;
    let is_bad = b.build_or(is_askew, is_null, "")?;
    interface.fail_if(is_bad, interface.code(Failure::Workspace as i32))
}
