//! What a library exports around the entry function.
//!
//! ```c
//! int32_t     <prefix>_run(const DLTensor *, DLTensor *, void *, const struct tenon_parallel *);
//! int32_t     <prefix>_run_<interface>(…);               the same for who knows inputs and outputs
//! int32_t     <prefix>_sizes(const DLTensor *, int64_t *, uint64_t *);
//! uint64_t    <prefix>_workspace_size(void);             where it is the same for all inputs
//! const char *<prefix>_info(void);                       the signature as JSON
//! const struct tenon_library *tenon_library_info(void);  both, under a fixed name, of a library
//! ```

use inkwell::{
    AddressSpace,
    context::Context,
    module::{Linkage, Module},
    types::FunctionType,
    values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, FunctionValue, GlobalValue},
};

use super::error::{BackendError, Problem, Result};
use crate::{
    backend::{Front, llvm::attributes::decorate},
    plan::{ENTRY_SYMBOL, SIZES_SYMBOL},
    runtime::describe::INFO_SECTION,
    runtime::model::{LIBRARY_INFO, LIBRARY_VERSION},
    target::Target,
};

/// The module that holds the functions.
pub fn build_front<'cx>(
    cx: &'cx Context,
    target: &Target,
    front: &Front<'_>,
) -> std::result::Result<Module<'cx>, BackendError> {
    let module = cx.create_module(front.prefix);
    build(cx, &module, target, front).map_err(|problem| problem.of(front.prefix))?;
    Ok(module)
}

fn build<'cx>(
    cx: &'cx Context,
    module: &Module<'cx>,
    target: &Target,
    front: &Front<'_>,
) -> Result<()> {
    let pointer = cx.ptr_type(AddressSpace::default());
    let run_type = cx.i32_type().fn_type(&[pointer.into(); 4], false);
    let b = cx.create_builder();
    let begin = |name: &str, ty: FunctionType<'cx>| {
        let func = module.add_function(&format!("{}_{name}", front.prefix), ty, None);
        decorate(func, target);
        b.position_at_end(cx.append_basic_block(func, "entry"));
        func
    };

    let sizes_type = cx.i32_type().fn_type(&[pointer.into(); 3], false);
    let main = module.add_function(ENTRY_SYMBOL, run_type, None);
    let sizes = module.add_function(SIZES_SYMBOL, sizes_type, None);
    let forward = |name: &str, to: FunctionValue<'cx>| -> Result<FunctionValue<'cx>> {
        let func = begin(name, to.get_type());
        let args: Vec<BasicMetadataValueEnum<'cx>> =
            func.get_param_iter().map(BasicMetadataValueEnum::from).collect();
        let call = b.build_call(to, &args, "")?;
        call.set_tail_call(true);
        match call.try_as_basic_value().basic() {
            Some(status) => b.build_return(Some(&status))?,
            None => return Problem::malformed("the entry has no status"),
        };
        Ok(func)
    };
    forward("run", main)?;
    let run = forward(&format!("run_{}", front.interface), main)?;
    let sizes = forward("sizes", sizes)?;

    if let Some(workspace) = front.workspace {
        begin("workspace_size", cx.i64_type().fn_type(&[], false));
        b.build_return(Some(&cx.i64_type().const_int(workspace, false)))?;
    }

    let text = constant(module, &cx.const_string(front.info.as_bytes(), true));
    if target.architecture().has_elf() {
        text.set_section(Some(INFO_SECTION));
    }
    begin("info", pointer.fn_type(&[], false));
    b.build_return(Some(&text.as_pointer_value()))?;

    if !front.is_library {
        return Ok(());
    }
    let fields: [BasicValueEnum<'cx>; 5] = [
        cx.i32_type().const_int(u64::from(LIBRARY_VERSION), false).into(),
        cx.i32_type().const_zero().into(),
        text.as_pointer_value().into(),
        run.as_global_value().as_pointer_value().into(),
        sizes.as_global_value().as_pointer_value().into(),
    ];
    let library = constant(module, &cx.const_struct(&fields, false));
    let func = module.add_function(LIBRARY_INFO, pointer.fn_type(&[], false), None);
    decorate(func, target);
    b.position_at_end(cx.append_basic_block(func, "entry"));
    b.build_return(Some(&library.as_pointer_value()))?;
    Ok(())
}

fn constant<'cx>(module: &Module<'cx>, value: &dyn BasicValue<'cx>) -> GlobalValue<'cx> {
    let value = value.as_basic_value_enum();
    let global = module.add_global(value.get_type(), None, "constant");
    global.set_initializer(&value);
    global.set_constant(true);
    global.set_linkage(Linkage::Private);
    global
}
