//! What a library exports around its functions.
//!
//! ```c
//! int32_t     <function>_run(const DLTensor *, DLTensor *, void *, const struct tenon_parallel *);
//! int32_t     <function>_run_<interface>(…);             the same for who knows inputs and outputs
//! int32_t     <function>_run_until(…, const volatile uint8_t *);  the same, until a byte is not 0
//! int32_t     <function>_run_in(…, const struct tenon_arena *);   the same, where it takes memory while it runs
//! int32_t     <function>_sizes(const DLTensor *, int64_t *, uint64_t *);
//! uint64_t    <function>_workspace_size(void);           where it is the same for all inputs
//! const char *<prefix>_info(void);                       what it says of itself, as JSON
//! const struct tenon_library *tenon_library_info(void);  all of it under a fixed name, of a library
//! ```
//!
//! Where the constants lie in a file, it exports what takes them as well ([`taking`](super::taking)), and nothing runs before.
//! Where not every processor runs the code, each call goes to that for the one at hand ([`processors`](super::processors)).

use inkwell::{
    AddressSpace, AtomicOrdering, GlobalVisibility, IntPredicate,
    builder::Builder,
    context::Context,
    module::{Linkage, Module},
    types::{FunctionType, PointerType},
    values::{
        BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue,
        GlobalValue, IntValue, PointerValue,
    },
};

use super::error::{BackendError, Problem, Result};
use super::processors::{Chooser, shared};
use super::taking::{address_type, names_of, taking};
use crate::{
    backend::{ConstantPlaces, Front, FrontFunction, WEIGHTS, llvm::attributes::decorate},
    target::Target,
};
use tenon_runtime::describe::INFO_SECTION;
use tenon_runtime::functions::{
    ARENA_VERSION, LIBRARY_INFO, LIBRARY_VERSION, PROCESSORS_VERSION, WEIGHTS_VERSION,
};
use tenon_runtime::status::Failure;

/// The module that holds the functions.
pub fn build_front<'cx>(
    cx: &'cx Context,
    target: &Target,
    front: &Front<'_>,
) -> std::result::Result<Module<'cx>, BackendError> {
    let module = match front.weights {
        None => cx.create_module(front.prefix),
        Some(weights) => taking(cx, target, front.prefix, weights)?,
    };
    let made = Building::new(cx, &module, target, front);
    made.build().map_err(|problem| problem.of(front.prefix))?;
    Ok(module)
}

/// The functions of a module that is being built.
struct Building<'cx, 'a> {
    cx: &'cx Context,
    module: &'a Module<'cx>,
    b: Builder<'cx>,
    target: &'a Target,
    front: &'a Front<'a>,
    /// The types of what runs, of the same with a byte more, and with an arena behind that, and of what says sizes.
    run_type: FunctionType<'cx>,
    until_type: FunctionType<'cx>,
    in_type: FunctionType<'cx>,
    sizes_type: FunctionType<'cx>,
    pointer: PointerType<'cx>,
    /// The byte that nobody sets, for those who do not cancel.
    never: PointerValue<'cx>,
}

/// What a function of the front calls.
enum To<'cx> {
    Code(FunctionValue<'cx>),
    /// An entry of the table of whatever processor is at hand.
    Chosen(u64),
}

/// A function of the library: its name, `run`, `sizes` and `run_until`.
type Row<'cx> = [PointerValue<'cx>; 4];

impl<'cx, 'a> Building<'cx, 'a> {
    fn new(
        cx: &'cx Context,
        module: &'a Module<'cx>,
        target: &'a Target,
        front: &'a Front<'a>,
    ) -> Self {
        let pointer = cx.ptr_type(AddressSpace::default());
        let status = |count| cx.i32_type().fn_type(&vec![pointer.into(); count], false);
        Building {
            cx,
            module,
            b: cx.create_builder(),
            target,
            front,
            run_type: status(4),
            until_type: status(5),
            in_type: status(6),
            sizes_type: status(3),
            pointer,
            never: constant(module, &cx.i8_type().const_zero()).as_pointer_value(),
        }
    }

    fn build(&self) -> Result<()> {
        let front = self.front;
        let chooser = match front.processors {
            [] => None,
            processors => {
                let code = self.code_of_processors()?;
                Some(Chooser::build(self.cx, self.module, self.target, processors, &code)?)
            }
        };
        self.constants()?;
        let choose = chooser.as_ref().map(|it| it.choose);
        let mut rows: Vec<Row<'cx>> = Vec::with_capacity(front.functions.len());
        let mut taking: Vec<PointerValue<'cx>> = Vec::with_capacity(front.functions.len());
        for (at, function) in front.functions.iter().enumerate() {
            let prefix = &function.prefix;
            let [run_to, sizes_to] = match choose {
                Some(_) => [0, 1].map(|part| To::Chosen(2 * at as u64 + part)),
                None => self.code(function, 0)?.map(To::Code),
            };
            let forward = |name, ty, to: &To<'cx>| {
                self.forward(format!("{prefix}_{name}"), ty, to, choose, function.takes)
            };
            forward("run", self.run_type, &run_to)?;
            let exact = format!("run_{}", function.interface);
            let run = forward(&exact, self.run_type, &run_to)?;
            let until = forward("run_until", self.until_type, &run_to)?;
            let sizes = forward("sizes", self.sizes_type, &sizes_to)?;
            if let Some(workspace) = function.workspace {
                let long = self.cx.i64_type();
                self.begin(&format!("{prefix}_workspace_size"), long.fn_type(&[], false));
                self.b.build_return(Some(&long.const_int(workspace, false)))?;
            }
            rows.push(self.row(function, [run, sizes, until]));
            taking.push(match function.takes {
                true => address(forward("run_in", self.in_type, &run_to)?),
                false => self.pointer.const_null(),
            });
        }
        for processor in 0..front.processors.len() {
            for function in front.functions {
                taking.push(match function.takes {
                    true => address(self.code(function, processor)?[0]),
                    false => self.pointer.const_null(),
                });
            }
        }
        let text = constant(self.module, &self.cx.const_string(front.info.as_bytes(), true));
        if self.target.architecture().has_elf() {
            text.set_section(Some(INFO_SECTION));
        }
        self.gives(&format!("{}_info", front.prefix), text)?;
        if front.is_library {
            self.library(text, &rows, &taking, chooser.as_ref())?;
        }
        Ok(())
    }

    fn begin(&self, name: &str, ty: FunctionType<'cx>) -> FunctionValue<'cx> {
        let func = self.module.add_function(name, ty, None);
        decorate(func, self.target);
        self.b.position_at_end(self.cx.append_basic_block(func, "entry"));
        func
    }

    /// A function that gives the address of a constant.
    fn gives(&self, name: &str, constant: GlobalValue<'cx>) -> Result<()> {
        self.begin(name, self.pointer.fn_type(&[], false));
        self.b.build_return(Some(&constant.as_pointer_value()))?;
        Ok(())
    }

    /// What runs a function, and says its sizes, of the code for one of the processors.
    fn code(&self, function: &FrontFunction, processor: usize) -> Result<[FunctionValue<'cx>; 2]> {
        let Some(code) = function.code.get(processor) else {
            return Problem::malformed(format!("`{}` has no code", function.name));
        };
        let declared = |name: &str, ty| {
            let known = self.module.get_function(name);
            known.unwrap_or_else(|| self.module.add_function(name, ty, None))
        };
        let run_type = if function.takes { self.in_type } else { self.until_type };
        Ok([declared(&code.run, run_type), declared(&code.sizes, self.sizes_type)])
    }

    /// For each processor the table of what runs each function and says its sizes.
    fn code_of_processors(&self) -> Result<Vec<PointerValue<'cx>>> {
        let table = |processor| {
            let mut code = Vec::with_capacity(2 * self.front.functions.len());
            for function in self.front.functions {
                code.extend(self.code(function, processor)?.map(address));
            }
            let table = constant(self.module, &self.pointer.const_array(&code));
            Ok(table.as_pointer_value())
        };
        (0..self.front.processors.len()).map(table).collect()
    }

    /// A function that calls another with its own arguments, or one of what is chosen. Where that `takes` memory and it is given
    /// nothing to take it from, it is told so.
    fn forward(
        &self,
        name: String,
        ty: FunctionType<'cx>,
        to: &To<'cx>,
        choose: Option<FunctionValue<'cx>>,
        takes: bool,
    ) -> Result<FunctionValue<'cx>> {
        let (b, func) = (&self.b, self.begin(&name, ty));
        let run_type = if takes { self.in_type } else { self.until_type };
        let mut args: Vec<BasicMetadataValueEnum<'cx>> =
            func.get_param_iter().map(BasicMetadataValueEnum::from).collect();
        if args.len() == self.run_type.count_param_types() as usize {
            args.push(self.never.into());
        }
        if self.front.weights.is_some() && ty != self.sizes_type {
            self.check_weights(func)?;
        }
        if takes && ty == self.in_type {
            // What is given for the byte may be nothing.
            if let Some(given) = func.get_nth_param(4).map(BasicValueEnum::into_pointer_value) {
                let is_null = b.build_is_null(given, "")?;
                args[4] = b.build_select(is_null, self.never, given, "")?.into();
            }
        } else if takes && ty != self.sizes_type {
            args.push(self.pointer.const_null().into());
        }
        let call = match (to, choose) {
            (To::Chosen(at), Some(choose)) => {
                let ty = if ty == self.sizes_type { ty } else { run_type };
                b.build_indirect_call(ty, self.chosen(func, *at, choose)?, &args, "")?
            }
            (To::Code(to), _) => b.build_call(*to, &args, "")?,
            (To::Chosen(_), None) => return Problem::malformed("there is nothing to choose from"),
        };
        call.set_tail_call(true);
        b.build_return(Some(&result_of(call)?))?;
        Ok(func)
    }

    /// Ends the function that is being built with a status where the library has no weights.
    fn check_weights(&self, func: FunctionValue<'cx>) -> Result<()> {
        let (b, int) = (&self.b, address_type(self.cx, self.target));
        let Some(weights) = self.module.get_global(WEIGHTS) else {
            return Problem::malformed("what takes weights is missing");
        };
        let [none, some] = ["none", "some"].map(|name| self.cx.append_basic_block(func, name));
        let found = b.build_load(int, weights.as_pointer_value(), "")?.into_int_value();
        let Some(load) = found.as_instruction() else {
            return Problem::malformed("an access is none");
        };
        load.set_alignment(int.get_bit_width() / 8)
            .or_else(|error| Problem::malformed(error.to_string()))?;
        shared(Some(load), AtomicOrdering::Acquire)?;
        let is_none = b.build_int_compare(IntPredicate::EQ, found, int.const_zero(), "")?;
        b.build_conditional_branch(is_none, none, some)?;
        b.position_at_end(none);
        let status = self.cx.i32_type().const_int(Failure::Weights as u64, false);
        b.build_return(Some(&status))?;
        b.position_at_end(some);
        Ok(())
    }

    /// The tables of constants, and from where these are counted.
    fn constants(&self) -> Result<()> {
        let int = address_type(self.cx, self.target);
        if self.front.weights.is_none() {
            let weights = self.module.add_global(int, None, WEIGHTS);
            weights.set_initializer(&int.const_zero());
            weights.set_constant(true);
            weights.set_alignment(int.get_bit_width() / 8);
            weights.set_visibility(GlobalVisibility::Hidden);
        }
        for table in self.front.constants {
            let places: Vec<IntValue<'cx>> = match &table.places {
                ConstantPlaces::Symbols(symbols) => {
                    let address = |symbol: &String| {
                        let byte = self.cx.i8_type();
                        let known = self.module.get_global(symbol);
                        let it =
                            known.unwrap_or_else(|| self.module.add_global(byte, None, symbol));
                        it.as_pointer_value().const_to_int(int)
                    };
                    symbols.iter().map(address).collect()
                }
                ConstantPlaces::Offsets(offsets) => {
                    offsets.iter().map(|&offset| int.const_int(offset, false)).collect()
                }
            };
            let value = int.const_array(&places);
            let global = self.module.add_global(value.get_type(), None, &table.symbol);
            global.set_initializer(&value);
            global.set_constant(true);
            global.set_alignment(int.get_bit_width() / 8);
            global.set_visibility(GlobalVisibility::Hidden);
        }
        Ok(())
    }

    /// The function at a place of what is chosen. Where nothing can be, the function that is being built ends with a status.
    fn chosen(
        &self,
        func: FunctionValue<'cx>,
        at: u64,
        choose: FunctionValue<'cx>,
    ) -> Result<PointerValue<'cx>> {
        let b = &self.b;
        let [none, some] = ["none", "some"].map(|name| self.cx.append_basic_block(func, name));
        let code = result_of(b.build_call(choose, &[], "")?)?.into_pointer_value();
        b.build_conditional_branch(b.build_is_null(code, "")?, none, some)?;
        b.position_at_end(none);
        let status = self.cx.i32_type().const_int(Failure::Processor as u64, false);
        b.build_return(Some(&status))?;
        b.position_at_end(some);
        let ty = self.pointer.array_type(2 * self.front.functions.len() as u32);
        // The first index steps over the pointer itself.
        let [zero, at] = [0, at].map(|at| self.cx.i64_type().const_int(at, false));
        // SAFETY: a table has as many elements as its type says.
        let place = unsafe { b.build_in_bounds_gep(ty, code, &[zero, at], "") }?;
        Ok(b.build_load(self.pointer, place, "")?.into_pointer_value())
    }

    fn row(&self, function: &FrontFunction, code: [FunctionValue<'cx>; 3]) -> Row<'cx> {
        let name = constant(self.module, &self.cx.const_string(function.name.as_bytes(), true));
        let [run, sizes, until] = code.map(address);
        [name.as_pointer_value(), run, sizes, until]
    }

    /// The table of all functions.
    fn functions(&self, rows: &[Row<'cx>]) -> PointerValue<'cx> {
        let entry = |it: &Row<'cx>| self.cx.const_struct(&it.map(Into::into), false);
        let entries: Vec<_> = rows.iter().map(entry).collect();
        let ty = self.cx.struct_type(&[self.pointer.into(); 4], false);
        constant(self.module, &ty.const_array(&entries)).as_pointer_value()
    }

    /// What is under the name that all libraries share.
    fn library(
        &self,
        text: GlobalValue<'cx>,
        rows: &[Row<'cx>],
        taking: &[PointerValue<'cx>],
        chooser: Option<&Chooser<'cx>>,
    ) -> Result<()> {
        let [_, run, sizes, _] = match rows.first() {
            Some(&first) if self.front.has_default => first,
            _ => [self.pointer.const_null(); 4],
        };
        let takes = self.front.functions.iter().any(|function| function.takes);
        let version = match (self.front.weights, chooser) {
            _ if takes => ARENA_VERSION,
            (Some(_), _) => WEIGHTS_VERSION,
            (None, Some(_)) => PROCESSORS_VERSION,
            (None, None) => LIBRARY_VERSION,
        };
        let int = self.cx.i32_type();
        let mut fields: Vec<BasicValueEnum<'cx>> = vec![
            int.const_int(u64::from(version), false).into(),
            int.const_int(rows.len() as u64, false).into(),
            text.as_pointer_value().into(),
            run.into(),
            sizes.into(),
            self.functions(rows).into(),
        ];
        let (null, long) = (self.pointer.const_null(), self.cx.i64_type());
        if let Some(chooser) = chooser {
            let count = self.front.processors.len() as u64;
            fields.push(self.processors()?.into());
            fields.push(address(chooser.runnable).into());
            fields.push(long.const_int(count, false).into());
        } else if takes || self.front.weights.is_some() {
            let none: [BasicValueEnum<'cx>; 3] =
                [null.into(), null.into(), long.const_zero().into()];
            fields.extend(none);
        }
        if let Some(weights) = self.front.weights {
            let file = constant(self.module, &self.cx.const_string(weights.file.as_bytes(), true));
            let [set, get] =
                names_of(self.front.prefix).map(|name| self.module.get_function(&name));
            let (Some(set), Some(get)) = (set, get) else {
                return Problem::malformed("what takes weights is missing");
            };
            fields.push(file.as_pointer_value().into());
            fields.push(long.const_int(weights.bytes, false).into());
            fields.extend([set, get].map(|it| BasicValueEnum::from(address(it))));
        } else if takes {
            let none: [BasicValueEnum<'cx>; 4] =
                [null.into(), long.const_zero().into(), null.into(), null.into()];
            fields.extend(none);
        }
        if takes {
            let table = constant(self.module, &self.pointer.const_array(taking));
            fields.push(table.as_pointer_value().into());
        }
        let library = constant(self.module, &self.cx.const_struct(&fields, false));
        self.gives(LIBRARY_INFO, library)
    }

    /// The table of processors, each with the functions that are made for it.
    fn processors(&self) -> Result<PointerValue<'cx>> {
        let mut entries = Vec::with_capacity(self.front.processors.len());
        for (at, processor) in self.front.processors.iter().enumerate() {
            let mut rows = Vec::with_capacity(self.front.functions.len());
            for function in self.front.functions {
                let [until, sizes] = self.code(function, at)?;
                let name = format!("tenon_run{at}.{}", function.prefix);
                let takes = function.takes;
                let run = self.forward(name, self.run_type, &To::Code(until), None, takes)?;
                run.set_linkage(Linkage::Internal);
                let until = match takes || self.front.weights.is_some() {
                    false => until,
                    true => {
                        let name = format!("tenon_until{at}.{}", function.prefix);
                        let code = &To::Code(until);
                        let checked = self.forward(name, self.until_type, code, None, takes)?;
                        checked.set_linkage(Linkage::Internal);
                        checked
                    }
                };
                rows.push(self.row(function, [run, sizes, until]));
            }
            let text = self.cx.const_string(processor.target.as_bytes(), true);
            let text = constant(self.module, &text).as_pointer_value();
            let fields = [text.into(), self.functions(&rows).into()];
            entries.push(self.cx.const_struct(&fields, false));
        }
        let ty = self.cx.struct_type(&[self.pointer.into(); 2], false);
        Ok(constant(self.module, &ty.const_array(&entries)).as_pointer_value())
    }
}

/// A function of the module's own, without a body.
pub(super) fn internal<'cx>(
    module: &Module<'cx>,
    target: &Target,
    name: &str,
    ty: FunctionType<'cx>,
) -> FunctionValue<'cx> {
    let func = module.add_function(name, ty, Some(Linkage::Internal));
    decorate(func, target);
    func
}

fn address(function: FunctionValue<'_>) -> PointerValue<'_> {
    function.as_global_value().as_pointer_value()
}

/// What a call gives.
pub(super) fn result_of<'cx>(call: CallSiteValue<'cx>) -> Result<BasicValueEnum<'cx>> {
    match call.try_as_basic_value().basic() {
        Some(value) => Ok(value),
        None => Problem::malformed("a function gives nothing"),
    }
}

fn constant<'cx>(module: &Module<'cx>, value: &dyn BasicValue<'cx>) -> GlobalValue<'cx> {
    let value = value.as_basic_value_enum();
    let global = module.add_global(value.get_type(), None, "constant");
    global.set_initializer(&value);
    global.set_constant(true);
    global.set_linkage(Linkage::Private);
    global
}
