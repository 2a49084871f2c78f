//! The functions that run a whole model, and that say how large what it needs is.
//!
//! ```c
//! int32_t tenon_main(const DLTensor *inputs, DLTensor *outputs, void *workspace,
//!                    const struct tenon_parallel *parallel);
//! int32_t tenon_sizes(const DLTensor *inputs, int64_t *extents, uint64_t *workspace);
//! ```
//!
//! `tenon_main` checks its arguments (`interface`) and does what the plan says (`actions`). It allocates nothing and may run
//! on several threads at once.
//!
//! `tenon_sizes` checks the inputs alone. It writes the extents of all outputs, one after the other, and the bytes of the
//! workspace; either place may be null.

use inkwell::{
    IntPredicate, context::Context, memory_buffer::MemoryBuffer, module::Module,
    values::PointerValue,
};

use super::{
    actions::Actions,
    assembler::Assembler,
    error::{BackendError, Result},
    interface::{Given, Interface, layout},
    scratch::ALIGN,
};
use crate::{
    backend::llvm::{
        LlvmError,
        attributes::{Pointer, decorate_pointer},
    },
    plan::{ENTRY_SYMBOL, Entry, SIZES_SYMBOL, Size},
    runtime::status::Failure,
    target::Target,
};

/// The module that holds the functions.
pub fn build_entry<'cx>(
    cx: &'cx Context,
    target: &Target,
    entry: &Entry,
) -> std::result::Result<Module<'cx>, BackendError> {
    let check = layout(target).check();
    let text = MemoryBuffer::create_from_memory_range_copy(check.as_bytes(), "check");
    let module = cx.create_module_from_ir(text).map_err(|error| LlvmError::InvalidModule {
        unit: ENTRY_SYMBOL.to_owned(),
        message: error.to_string(),
    })?;
    module.set_name(ENTRY_SYMBOL);
    let asm = Assembler { cx, module: &module, builder: cx.create_builder(), target, mask: None };
    build_sizes(&asm, entry)
        .and_then(|()| build_main(&asm, entry))
        .map_err(|problem| problem.of(ENTRY_SYMBOL))?;
    Ok(module)
}

fn build_sizes<'cx>(asm: &Assembler<'cx, '_>, entry: &Entry) -> Result<()> {
    let mut interface = Interface::new(asm, entry, SIZES_SYMBOL, 3)?;
    let [inputs, extents, workspace] = [0, 1, 2].map(|index| interface.param(index));
    interface.inputs(inputs?)?;
    interface.check_memory(entry.workspace)?;
    let shapes: Vec<Size> = entry.output_shapes.iter().flatten().copied().collect();
    write_numbers(&interface, extents?, &shapes)?;
    write_numbers(&interface, workspace?, &[entry.workspace])?;
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

/// The function that runs the model.
fn build_main<'cx>(asm: &Assembler<'cx, '_>, entry: &Entry) -> Result<()> {
    let mut interface = Interface::new(asm, entry, ENTRY_SYMBOL, 4)?;
    let [workspace, parallel] = [interface.param(2)?, interface.param(3)?];
    let inputs = interface.inputs(interface.param(0)?)?;
    let outputs = interface.outputs(interface.param(1)?)?;
    if entry.workspace != Size::Known(0) {
        let facts = Pointer { noalias: true, ..Pointer::default() };
        decorate_pointer(interface.func, 2, facts);
        check_workspace(&interface, workspace)?;
    }
    let data = |given: &[Given<'cx>]| given.iter().map(|given| given.data).collect();
    let (inputs, outputs) = (data(&inputs), data(&outputs));
    Actions::new(&interface, inputs, outputs, workspace, parallel)?.emit(&entry.actions)?;
    interface.succeed()
}

fn check_workspace<'cx>(
    interface: &Interface<'cx, '_>,
    workspace: PointerValue<'cx>,
) -> Result<()> {
    let asm = interface.asm;
    let b = &asm.builder;
    interface.check_memory(interface.entry.workspace)?;
    let address = b.build_ptr_to_int(workspace, asm.cx.i64_type(), "")?;
    let rest = b.build_and(address, asm.index(ALIGN as i64 - 1), "")?;
    let is_askew = b.build_int_compare(IntPredicate::NE, rest, asm.index(0), "")?;
    let is_null = b.build_is_null(workspace, "")?;
    let is_bad = b.build_or(is_askew, is_null, "")?;
    interface.fail_if(is_bad, interface.code(Failure::Workspace as i32))
}
