//! What a library exports around its functions.
//!
//! ```c
//! int32_t     <function>_run(const DLTensor *, DLTensor *, void *, const struct tenon_parallel *);
//! int32_t     <function>_run_<interface>(…);             the same for who knows inputs and outputs
//! int32_t     <function>_run_until(…, const volatile uint8_t *);  the same, until a byte is not 0
//! int32_t     <function>_sizes(const DLTensor *, int64_t *, uint64_t *);
//! uint64_t    <function>_workspace_size(void);           where it is the same for all inputs
//! const char *<prefix>_info(void);                       what it says of itself, as JSON
//! const struct tenon_library *tenon_library_info(void);  all of it under a fixed name, of a library
//! ```

use inkwell::{
    AddressSpace,
    context::Context,
    module::{Linkage, Module},
    types::FunctionType,
    values::{
        BasicMetadataValueEnum, BasicValue, BasicValueEnum, FunctionValue, GlobalValue,
        PointerValue,
    },
};

use super::error::{BackendError, Problem, Result};
use crate::{
    backend::{Front, llvm::attributes::decorate},
    runtime::describe::INFO_SECTION,
    runtime::functions::{LIBRARY_INFO, LIBRARY_VERSION},
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
    let until_type = cx.i32_type().fn_type(&[pointer.into(); 5], false);
    let b = cx.create_builder();
    let begin = |name: String, ty: FunctionType<'cx>| {
        let func = module.add_function(&name, ty, None);
        decorate(func, target);
        b.position_at_end(cx.append_basic_block(func, "entry"));
        func
    };
    let sizes_type = cx.i32_type().fn_type(&[pointer.into(); 3], false);
    // What nobody cancels looks at a byte that stays 0.
    let never = constant(module, &cx.i8_type().const_zero()).as_pointer_value();
    let forward = |name: String,
                   ty: FunctionType<'cx>,
                   to: FunctionValue<'cx>|
     -> Result<FunctionValue<'cx>> {
        let func = begin(name, ty);
        let mut args: Vec<BasicMetadataValueEnum<'cx>> =
            func.get_param_iter().map(BasicMetadataValueEnum::from).collect();
        if args.len() < to.count_params() as usize {
            args.push(never.into());
        }
        let call = b.build_call(to, &args, "")?;
        call.set_tail_call(true);
        match call.try_as_basic_value().basic() {
            Some(status) => b.build_return(Some(&status))?,
            None => return Problem::malformed("the entry has no status"),
        };
        Ok(func)
    };

    let mut functions: Vec<[PointerValue<'cx>; 4]> = Vec::with_capacity(front.functions.len());
    for function in front.functions {
        let prefix = &function.prefix;
        let main = module.add_function(&function.run, until_type, None);
        let sizes = module.add_function(&function.sizes, sizes_type, None);
        forward(format!("{prefix}_run"), run_type, main)?;
        let run = forward(format!("{prefix}_run_{}", function.interface), run_type, main)?;
        let until = forward(format!("{prefix}_run_until"), until_type, main)?;
        let sizes = forward(format!("{prefix}_sizes"), sizes_type, sizes)?;
        if let Some(workspace) = function.workspace {
            let ty = cx.i64_type().fn_type(&[], false);
            begin(format!("{prefix}_workspace_size"), ty);
            b.build_return(Some(&cx.i64_type().const_int(workspace, false)))?;
        }
        let name = constant(module, &cx.const_string(function.name.as_bytes(), true));
        let [run, sizes, until] =
            [run, sizes, until].map(|it| it.as_global_value().as_pointer_value());
        functions.push([name.as_pointer_value(), run, sizes, until]);
    }

    let text = constant(module, &cx.const_string(front.info.as_bytes(), true));
    if target.architecture().has_elf() {
        text.set_section(Some(INFO_SECTION));
    }
    begin(format!("{}_info", front.prefix), pointer.fn_type(&[], false));
    b.build_return(Some(&text.as_pointer_value()))?;

    if !front.is_library {
        return Ok(());
    }
    let null = pointer.const_null();
    let [_, run, sizes, _] = match functions.first() {
        Some(&first) if front.has_default => first,
        _ => [null; 4],
    };
    let entry = |it: &[PointerValue<'cx>; 4]| cx.const_struct(&it.map(Into::into), false);
    let entries: Vec<_> = functions.iter().map(entry).collect();
    let entry = cx.struct_type(&[pointer.into(); 4], false);
    let table = constant(module, &entry.const_array(&entries));
    let fields: [BasicValueEnum<'cx>; 6] = [
        cx.i32_type().const_int(u64::from(LIBRARY_VERSION), false).into(),
        cx.i32_type().const_int(functions.len() as u64, false).into(),
        text.as_pointer_value().into(),
        run.into(),
        sizes.into(),
        table.as_pointer_value().into(),
    ];
    let library = constant(module, &cx.const_struct(&fields, false));
    begin(LIBRARY_INFO.to_owned(), pointer.fn_type(&[], false));
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
