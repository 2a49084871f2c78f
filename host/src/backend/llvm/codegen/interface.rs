//! What the functions that users call have in common: checks of tensors, and the numbers that follow from their extents.
//!
//! A check that fails ends the function with a status. Numbers are computed once, behind the checks of the inputs; one
//! that does not fit into 64 bits fails too, so that no memory is taken for smaller than it is.

use inkwell::{
    AddressSpace, IntPredicate,
    basic_block::BasicBlock,
    module::Linkage,
    values::{
        BasicValueEnum, FunctionValue, GlobalValue, InstructionOpcode as Op, IntValue, PhiValue,
        PointerValue,
    },
};

use super::{
    assembler::Assembler,
    check::TensorLayout,
    error::{Problem, Result},
    statement::scalar,
    value::Value,
};
use crate::{
    backend::llvm::attributes::decorate,
    ir::{BinaryOp, DType},
    plan::{Agreement, Entry, LARGEST_EXTENT, Size, SizeStep},
    runtime::{
        dlpack::DataType,
        signature::{TensorSpec, data_type},
        status::Failure,
    },
    target::Target,
};

/// A function that users call, while it is emitted.
pub(super) struct Interface<'cx, 'a> {
    pub(super) asm: &'a Assembler<'cx, 'a>,
    pub(super) entry: &'a Entry,
    pub(super) func: FunctionValue<'cx>,
    check: FunctionValue<'cx>,
    /// Where failures end, and their statuses.
    failed: BasicBlock<'cx>,
    status: PhiValue<'cx>,
    /// The numbers of the entry's steps.
    numbers: Vec<IntValue<'cx>>,
}

/// A tensor that was checked.
pub(super) struct Given<'cx> {
    /// Its first element.
    pub(super) data: PointerValue<'cx>,
    /// Its extents.
    shape: PointerValue<'cx>,
}

/// Where things lie in a `DLTensor` of the target.
pub(super) fn layout(target: &Target) -> TensorLayout {
    TensorLayout::new(target.architecture().pointer_bytes())
}

impl<'cx, 'a> Interface<'cx, 'a> {
    /// The function `symbol` of `params` pointers.
    pub(super) fn new(
        asm: &'a Assembler<'cx, 'a>,
        entry: &'a Entry,
        symbol: &str,
        params: usize,
    ) -> Result<Self> {
        let pointer = asm.cx.ptr_type(AddressSpace::default());
        let ty = asm.cx.i32_type().fn_type(&vec![pointer.into(); params], false);
        let func = asm.module.add_function(symbol, ty, None);
        decorate(func, asm.target);
        let Some(check) = asm.module.get_function("tenon.check") else {
            return Problem::malformed("the check of arguments is missing");
        };
        decorate(check, asm.target);
        let begin = asm.cx.append_basic_block(func, "entry");
        let failed = asm.cx.append_basic_block(func, "failed");
        asm.builder.position_at_end(failed);
        let status = asm.builder.build_phi(asm.cx.i32_type(), "status")?;
        asm.builder.build_return(Some(&status.as_basic_value()))?;
        asm.builder.position_at_end(begin);
        Ok(Interface { asm, entry, func, check, failed, status, numbers: Vec::new() })
    }

    pub(super) fn param(&self, index: u32) -> Result<PointerValue<'cx>> {
        match self.func.get_nth_param(index) {
            Some(BasicValueEnum::PointerValue(pointer)) => Ok(pointer),
            _ => Problem::malformed("a parameter is missing"),
        }
    }

    /// Checks the inputs, and computes all numbers.
    pub(super) fn inputs(&mut self, array: PointerValue<'cx>) -> Result<Vec<Given<'cx>>> {
        let inputs = self.tensors(array, &self.entry.inputs, 0)?;
        self.compute(&inputs)?;
        for given in &self.entry.extents {
            let (found, expected) =
                (self.extent(&inputs[given.input], given.axis)?, self.size(given.expected)?);
            self.differ(found, expected, Failure::Shape.of_argument(given.input))?;
        }
        self.entry.agreements.iter().try_for_each(|&agreement| self.agree(agreement))?;
        Ok(inputs)
    }

    /// Fails where numbers are not what they must be.
    pub(super) fn agree(&self, agreement: Agreement) -> Result<()> {
        let (predicate, a, b) = match agreement {
            Agreement::Equal(a, b) => (IntPredicate::NE, a, b),
            Agreement::AtMost(a, b) => (IntPredicate::SGT, a, b),
        };
        let (a, b) = (self.size(a)?, self.size(b)?);
        let is_bad = self.asm.builder.build_int_compare(predicate, a, b, "")?;
        self.fail_if(is_bad, self.code(Failure::Extents as i32))
    }

    /// Writes numbers one after the other, as i64.
    pub(super) fn write(&self, place: PointerValue<'cx>, numbers: &[Size]) -> Result<()> {
        let asm = self.asm;
        for (index, &number) in numbers.iter().enumerate() {
            let place = asm.element(place, asm.cx.i64_type().into(), asm.index(index as i64))?;
            asm.store(place, self.size(number)?.into(), 8)?;
        }
        Ok(())
    }

    /// Checks the outputs.
    pub(super) fn outputs(&self, array: PointerValue<'cx>) -> Result<Vec<Given<'cx>>> {
        let first = self.entry.inputs.len();
        let outputs = self.tensors(array, &self.entry.outputs, first)?;
        let shapes = outputs.iter().zip(&self.entry.output_shapes);
        for (index, (output, shape)) in shapes.enumerate() {
            for (axis, &expected) in shape.iter().enumerate() {
                if let Size::Computed(_) = expected {
                    let found = self.extent(output, axis)?;
                    let status = Failure::Shape.of_argument(first + index);
                    self.differ(found, self.size(expected)?, status)?;
                }
            }
        }
        Ok(outputs)
    }

    /// Checks an array of `DLTensor`, but for extents that are not known.
    fn tensors(
        &self,
        array: PointerValue<'cx>,
        specs: &[TensorSpec],
        first: usize,
    ) -> Result<Vec<Given<'cx>>> {
        if specs.is_empty() {
            return Ok(Vec::new());
        }
        let is_null = self.asm.builder.build_is_null(array, "")?;
        self.fail_if(is_null, self.code(Failure::Null as i32))?;
        let byte = self.asm.cx.i8_type().into();
        let pointer = self.asm.cx.ptr_type(AddressSpace::default());
        let layout = layout(self.asm.target);
        let mut given = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let at = |offset: u32| {
                let offset = index as i64 * i64::from(layout.size()) + i64::from(offset);
                self.asm.element(array, byte, self.asm.index(offset))
            };
            let tensor = at(0)?;
            let spec = self.spec(spec)?.as_pointer_value();
            let call =
                self.asm.builder.build_call(self.check, &[tensor.into(), spec.into()], "")?;
            let Some(BasicValueEnum::IntValue(code)) = call.try_as_basic_value().basic() else {
                return Problem::malformed("the check has no result");
            };
            let zero = self.asm.cx.i32_type().const_zero();
            let is_bad = self.asm.builder.build_int_compare(IntPredicate::NE, code, zero, "")?;
            let argument = self.code((first + index + 1) as i32 * 256);
            let status = self.asm.builder.build_or(code, argument, "")?;
            self.fail_if(is_bad, status)?;
            let data = self.asm.load(pointer.into(), tensor, 8)?.into_pointer_value();
            let offset = self.asm.load(self.asm.cx.i64_type().into(), at(layout.offset())?, 8)?;
            let data = self.asm.element(data, byte, offset.into_int_value())?;
            let shape = self.asm.load(pointer.into(), at(layout.shape())?, 4)?;
            given.push(Given { data, shape: shape.into_pointer_value() });
        }
        Ok(given)
    }

    /// What `check` compares a tensor with.
    fn spec(&self, spec: &TensorSpec) -> Result<GlobalValue<'cx>> {
        let cx = self.asm.cx;
        let (short, long) = (cx.i32_type(), cx.i64_type());
        let Some(DataType { code, bits, lanes }) = data_type(spec.dtype) else {
            let what = format!("argument {spec}");
            return Problem::unsupported(what, "DLPack has no such type");
        };
        let dtype = u32::from(code) | u32::from(bits) << 8 | u32::from(lanes) << 16;
        let extents = spec.shape.iter().map(|extent| extent.known().unwrap_or(-1));
        let shape: Vec<IntValue<'cx>> = extents.map(|extent| self.asm.index(extent)).collect();
        let value = cx.const_struct(
            &[
                short.const_int(spec.shape.len() as u64, false).into(),
                short.const_int(u64::from(dtype), false).into(),
                long.const_int(u64::from(bits.div_ceil(8)), false).into(),
                long.const_array(&shape).into(),
            ],
            false,
        );
        let global = self.asm.module.add_global(value.get_type(), None, "spec");
        global.set_initializer(&value);
        global.set_constant(true);
        global.set_linkage(Linkage::Private);
        Ok(global)
    }

    /// The extent of an axis as the caller gave it.
    fn extent(&self, tensor: &Given<'cx>, axis: usize) -> Result<IntValue<'cx>> {
        let int = self.asm.cx.i64_type().into();
        let place = self.asm.element(tensor.shape, int, self.asm.index(axis as i64))?;
        Ok(self.asm.load(int, place, 8)?.into_int_value())
    }

    /// Computes the numbers of all steps.
    fn compute(&mut self, inputs: &[Given<'cx>]) -> Result<()> {
        let mut overflows: Option<BasicValueEnum<'cx>> = None;
        for step in &self.entry.steps {
            let number = match *step {
                SizeStep::Extent { input, axis } => self.extent(&inputs[input], axis)?,
                SizeStep::Binary { op, a, b } => {
                    let (number, overflow) = self.binary(op, self.size(a)?, self.size(b)?)?;
                    overflows = match (overflows, overflow) {
                        (Some(before), Some(now)) => Some(self.asm.int_op(Op::Or, before, now)?),
                        (one, other) => one.or(other),
                    };
                    number
                }
            };
            self.numbers.push(number);
        }
        if let Some(overflows) = overflows {
            self.fail_if(overflows.into_int_value(), self.code(Failure::Size as i32))?;
        }
        Ok(())
    }

    /// `a op b`, and whether it does not fit into 64 bits.
    fn binary(
        &self,
        op: BinaryOp,
        a: IntValue<'cx>,
        b: IntValue<'cx>,
    ) -> Result<(IntValue<'cx>, Option<BasicValueEnum<'cx>>)> {
        let name = match op {
            BinaryOp::Add => "llvm.sadd.with.overflow",
            BinaryOp::Sub => "llvm.ssub.with.overflow",
            BinaryOp::Mul => "llvm.smul.with.overflow",
            _ => {
                let [a, b] = [a, b].map(|value| Value::scalar(DType::I64, value));
                return Ok((scalar(self.asm.binary(op, a, b)?)?, None));
            }
        };
        let pair = self.asm.intrinsic(name, &[a.get_type().into()], &[a.into(), b.into()])?;
        let part =
            |index| self.asm.builder.build_extract_value(pair.into_struct_value(), index, "");
        Ok((part(0)?.into_int_value(), Some(part(1)?)))
    }

    /// The number that a size is, once the inputs are checked.
    pub(super) fn size(&self, size: Size) -> Result<IntValue<'cx>> {
        match size {
            Size::Known(value) => Ok(self.asm.index(value)),
            Size::Computed(step) => match self.numbers.get(step) {
                Some(&number) => Ok(number),
                None => Problem::malformed("a number is used before it is computed"),
            },
        }
    }

    /// Fails where a size that is not known is none of memory.
    pub(super) fn check_memory(&self, size: Size) -> Result<()> {
        if let Size::Computed(_) = size {
            let (size, most) = (self.size(size)?, self.asm.index(LARGEST_EXTENT));
            let is_bad = self.asm.builder.build_int_compare(IntPredicate::UGT, size, most, "")?;
            self.fail_if(is_bad, self.code(Failure::Size as i32))?;
        }
        Ok(())
    }

    pub(super) fn code(&self, status: i32) -> IntValue<'cx> {
        self.asm.cx.i32_type().const_int(status as u64, true)
    }

    fn differ(&self, a: IntValue<'cx>, b: IntValue<'cx>, status: i32) -> Result<()> {
        let differ = self.asm.builder.build_int_compare(IntPredicate::NE, a, b, "")?;
        self.fail_if(differ, self.code(status))
    }

    /// Ends the function with `status` when `cond` is true.
    pub(super) fn fail_if(&self, cond: IntValue<'cx>, status: IntValue<'cx>) -> Result<()> {
        let b = &self.asm.builder;
        let Some(here) = b.get_insert_block() else {
            return Problem::malformed("no block to emit into");
        };
        let go_on = self.asm.cx.append_basic_block(self.func, "");
        b.build_conditional_branch(cond, self.failed, go_on)?;
        self.status.add_incoming(&[(&status, here)]);
        b.position_at_end(go_on);
        Ok(())
    }

    /// Ends the function well.
    pub(super) fn succeed(&self) -> Result<()> {
        let success = self.asm.cx.i32_type().const_zero();
        self.asm.builder.build_return(Some(&success))?;
        Ok(())
    }
}
