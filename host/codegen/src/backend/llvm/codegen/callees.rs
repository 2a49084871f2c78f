//! What the functions of a model have in common: kernels, each other, and constants.

use std::collections::HashSet;

use inkwell::{
    AddressSpace,
    module::Linkage,
    types::{BasicMetadataTypeEnum, FunctionType},
    values::{FunctionValue, PointerValue},
};

use super::{
    assembler::Assembler,
    error::{Problem, Result},
    value::Class,
};
use crate::{
    backend::{CONSTANTS, WEIGHTS, llvm::attributes::decorate},
    plan::{Call, Callee, Circle, Code, EntryArgument, Routine},
};
use tenon_runtime::profile::MARK;

/// What is called and read.
pub(super) struct Callees<'cx> {
    kernels: Vec<Option<FunctionValue<'cx>>>,
    routines: Vec<FunctionValue<'cx>>,
    /// The kernels that have code of others.
    external: HashSet<usize>,
    /// The circle that each routine is of.
    circles: Vec<Option<Circle>>,
    constants: Option<Constants<'cx>>,
    /// Whether each routine takes memory.
    takes: Vec<bool>,
    /// What takes note of the time, where it is wanted.
    mark: Option<FunctionValue<'cx>>,
}

impl<'cx> Callees<'cx> {
    /// Declares them all.
    pub(super) fn declare(asm: &Assembler<'cx, '_>, code: &Code) -> Result<Self> {
        let mark = code.is_profiled.then(|| {
            let number = asm.cx.i64_type().into();
            asm.module.add_function(MARK, asm.cx.void_type().fn_type(&[number], false), None)
        });
        Ok(Self {
            kernels: kernels(asm, code)?,
            external: code.external.clone(),
            routines: routines(asm, &code.routines),
            circles: code.routines.iter().map(|routine| routine.circle).collect(),
            constants: Constants::declare(asm, code.constants.len()),
            takes: code.routines.iter().map(|routine| routine.body.takes).collect(),
            mark,
        })
    }

    pub(super) fn get(&self, callee: Callee) -> Result<FunctionValue<'cx>> {
        let found = match callee {
            Callee::Kernel(number) => self.kernels.get(number).copied().flatten(),
            Callee::Routine(number) => self.routines.get(number).copied(),
        };
        found.map_or_else(|| Problem::malformed("a call of nothing"), Ok)
    }

    /// Whether what is called has code of others, whose statuses are the model's.
    pub(super) fn is_external(&self, callee: Callee) -> bool {
        matches!(callee, Callee::Kernel(number) if self.external.contains(&number))
    }

    /// The address of a constant.
    pub(super) fn constant(
        &self,
        asm: &Assembler<'cx, '_>,
        index: usize,
    ) -> Result<PointerValue<'cx>> {
        match &self.constants {
            Some(constants) if index < constants.count => constants.address(asm, index),
            _ => Problem::malformed("a constant that is none"),
        }
    }

    /// The circle of what is called.
    pub(super) fn circle(&self, callee: Callee) -> Option<Circle> {
        match callee {
            Callee::Kernel(_) => None,
            Callee::Routine(number) => self.circles.get(number).copied().flatten(),
        }
    }

    /// Whether what is called takes memory.
    pub(super) fn takes(&self, callee: Callee) -> bool {
        match callee {
            Callee::Kernel(_) => false,
            Callee::Routine(number) => self.takes.get(number).copied().unwrap_or(false),
        }
    }

    /// Takes note of the time behind so many calls of kernels.
    pub(super) fn mark(&self, asm: &Assembler<'cx, '_>, calls: usize) -> Result<()> {
        if let Some(mark) = self.mark {
            asm.builder.build_call(mark, &[asm.index(calls as i64).into()], "")?;
        }
        Ok(())
    }
}

/// The table of the constants, and from where they are counted: the library says both when it is linked, and may lie far away.
struct Constants<'cx> {
    table: PointerValue<'cx>,
    weights: PointerValue<'cx>,
    count: usize,
}

impl<'cx> Constants<'cx> {
    fn declare(asm: &Assembler<'cx, '_>, count: usize) -> Option<Self> {
        let int = asm.address_type();
        let table = asm.module.add_global(int.array_type(count as u32), None, CONSTANTS);
        table.set_constant(true);
        let [table, weights] = [table, asm.module.add_global(int, None, WEIGHTS)];
        let (table, weights) = (table.as_pointer_value(), weights.as_pointer_value());
        Some(Constants { table, weights, count }).filter(|_| count > 0)
    }

    fn address(&self, asm: &Assembler<'cx, '_>, index: usize) -> Result<PointerValue<'cx>> {
        let (b, int) = (&asm.builder, asm.address_type());
        let bytes = int.get_bit_width() / 8;
        let place = asm.element(self.table, int.into(), asm.index(index as i64))?;
        let [begin, offset] = [self.weights, place].map(|at| asm.load(int.into(), at, bytes));
        let address = b.build_int_add(begin?.into_int_value(), offset?.into_int_value(), "")?;
        Ok(b.build_int_to_ptr(address, asm.cx.ptr_type(AddressSpace::default()), "")?)
    }
}

/// The kernels as functions, with the parameters that their calls give them.
fn kernels<'cx>(asm: &Assembler<'cx, '_>, code: &Code) -> Result<Vec<Option<FunctionValue<'cx>>>> {
    let mut kernels = vec![None; code.kernels.len()];
    for (kernel, call) in code.kernel_calls() {
        let (Some(slot), Some(symbol)) = (kernels.get_mut(kernel), code.kernels.get(kernel)) else {
            return Problem::malformed("a call of no kernel");
        };
        if slot.is_none() {
            let func = asm.module.add_function(symbol, type_of(asm, call)?, None);
            decorate(func, asm.target);
            *slot = Some(func);
        }
    }
    Ok(kernels)
}

fn type_of<'cx>(asm: &Assembler<'cx, '_>, call: &Call) -> Result<FunctionType<'cx>> {
    let pointer = asm.cx.ptr_type(AddressSpace::default());
    let mut params: Vec<BasicMetadataTypeEnum<'cx>> = Vec::with_capacity(call.args.len() + 2);
    for arg in &call.args {
        params.push(match arg {
            EntryArgument::Memory(_) | EntryArgument::Taken(_) => pointer.into(),
            EntryArgument::Scalar { dtype, .. } => Class::of(*dtype)?.register(asm.cx).into(),
        });
    }
    let int = BasicMetadataTypeEnum::from(asm.cx.i64_type());
    params.extend(std::iter::repeat_n(int, call.symbols.len()));
    params.extend([BasicMetadataTypeEnum::from(pointer), pointer.into()]);
    Ok(asm.cx.i32_type().fn_type(&params, false))
}

/// The functions that are called: addresses, numbers, the workspace, the threads, whether the call is cancelled; of a circle how many
/// calls may be in work, and where the memory for all of them ends; and what memory is taken from, where it takes any.
fn routines<'cx>(asm: &Assembler<'cx, '_>, routines: &[Routine]) -> Vec<FunctionValue<'cx>> {
    let pointer = BasicMetadataTypeEnum::from(asm.cx.ptr_type(AddressSpace::default()));
    let int = BasicMetadataTypeEnum::from(asm.cx.i64_type());
    let routine = |(number, routine): (usize, &Routine)| {
        let mut params = vec![pointer; routine.inputs + routine.outputs];
        params.extend(std::iter::repeat_n(int, routine.numbers));
        params.extend([pointer; 3]);
        if routine.circle.is_some() {
            params.extend([int, pointer]);
        }
        if routine.body.takes {
            params.push(pointer);
        }
        let ty = asm.cx.i32_type().fn_type(&params, false);
        let name = format!("routine{number}.{}", routine.name);
        asm.module.add_function(&name, ty, Some(Linkage::Internal))
    };
    routines.iter().enumerate().map(routine).collect()
}
