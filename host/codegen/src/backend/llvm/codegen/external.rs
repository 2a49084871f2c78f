//! A program that calls a function of others, and does nothing else.
//!
//! ```ir
//! prim @f(%x: f32[n], out %y: f32[n]) {                int32_t k(const float *x, float *y, int64_t n, void *scratch,
//!   eval extern "vendor_f"(%x, %y)                               const struct tenon_parallel *parallel) {
//! }                                             =>       DLTensor in[] = {…}, out[] = {…};
//!                                                        return vendor_f(in, out, NULL, parallel);
//!                                                      }
//! ```
//!
//! That is how the functions of a compiled model are called too, so one may call those of another. Its type is the same whatever is
//! known of the shapes.

use inkwell::{
    AddressSpace,
    values::{BasicMetadataValueEnum, BasicValueEnum, IntValue, PointerValue},
};

use super::{
    access::Extent,
    error::{Problem, Result},
    interface::layout,
    kernel::Program,
    statement::{Emitter, scalar},
};
use tenon_ir::{BodyView, DType, Expr, View};
use tenon_runtime::{dlpack::DataType, signature::data_type};

/// What DLPack calls the memory of a CPU, of which there is one.
const CPU: u64 = 1;

/// The symbol that a program calls; none where it does anything else, or has code of its own.
pub(super) fn called<'a>(body: BodyView<'a>, program: &Program) -> Option<&'a str> {
    let View::Evaluate { value } = body.view(program.stmt) else { return None };
    let View::Call { callee, args, .. } = body.view(value) else { return None };
    let View::Extern { name } = body.view(callee) else { return None };
    args.iter().eq(program.params.iter().copied()).then(|| body.terms().str(name))
}

impl<'cx> Emitter<'cx, '_> {
    /// The call of `symbol` with the parameters of the program, and the return of its status.
    pub(super) fn call_external(&mut self, symbol: &str, program: &Program) -> Result<()> {
        let count = program.params.len() - program.outputs().len();
        let inputs = self.described(&program.params[..count])?;
        let outputs = self.described(program.outputs())?;
        let cx = self.asm.cx;
        let pointer = cx.ptr_type(AddressSpace::default());
        let ty = cx.i32_type().fn_type(&[pointer.into(); 4], false);
        let func = self.asm.module.add_function(symbol, ty, None);
        let Some(lent) = self.frame.lent else {
            return Problem::malformed("an external function is called within a loop");
        };
        let args: [BasicMetadataValueEnum<'cx>; 4] =
            [inputs, outputs, pointer.const_null(), lent.parallel].map(Into::into);
        let call = self.asm.builder.build_call(func, &args, "")?;
        let Some(status @ BasicValueEnum::IntValue(_)) = call.try_as_basic_value().basic() else {
            return Problem::malformed("an external function without a status");
        };
        self.asm.builder.build_return(Some(&status))?;
        Ok(())
    }

    /// An array of a `DLTensor` for each of some buffers.
    fn described(&mut self, buffers: &[Expr]) -> Result<PointerValue<'cx>> {
        let cx = self.asm.cx;
        let layout = layout(self.asm.target);
        let bytes = layout.size() * buffers.len().max(1) as u32;
        let array = self.stack_slot(cx.i8_type().array_type(bytes).into(), 8)?;
        for (number, &expr) in buffers.iter().enumerate() {
            let buffer = self.scope.buffer(self.body, expr)?;
            let first = layout.size() * number as u32;
            let shape = self.extents(&buffer.layout.shape)?;
            let rank = buffer.layout.shape.len() as u64;
            let (int, short) = (cx.i64_type(), cx.i32_type());
            let null = cx.ptr_type(AddressSpace::default()).const_null();
            let fields: [(u32, BasicValueEnum<'cx>); 7] = [
                (0, buffer.pointer.into()),
                (layout.device(), int.const_int(CPU, false).into()),
                (layout.rank(), short.const_int(rank, false).into()),
                (layout.dtype(), short.const_int(code_of(buffer.layout.dtype)?, false).into()),
                (layout.shape(), shape.into()),
                (layout.strides(), null.into()),
                (layout.offset(), int.const_zero().into()),
            ];
            for (at, value) in fields {
                let place = self.byte(array, self.asm.index(i64::from(first + at)))?;
                self.asm.store(place, value, 4)?;
            }
        }
        Ok(array)
    }

    /// An array of extents.
    fn extents(&mut self, shape: &[Extent]) -> Result<PointerValue<'cx>> {
        let int = self.asm.cx.i64_type();
        let array = self.stack_slot(int.array_type(shape.len().max(1) as u32).into(), 8)?;
        for (axis, &extent) in shape.iter().enumerate() {
            let value: IntValue<'cx> = match extent {
                Extent::Known(extent) => self.asm.index(extent),
                Extent::Symbolic(dim) => {
                    let terms = self.body.terms();
                    let value = self.asm.dim(terms, &self.scope.symbols, dim)?;
                    scalar(value)?
                }
            };
            let place = self.asm.element(array, int.into(), self.asm.index(axis as i64))?;
            self.asm.store(place, value.into(), 8)?;
        }
        Ok(array)
    }

    fn byte(&self, base: PointerValue<'cx>, offset: IntValue<'cx>) -> Result<PointerValue<'cx>> {
        self.asm.element(base, self.asm.cx.i8_type().into(), offset)
    }
}

/// An element type in the 32 bits that a `DLTensor` has for it.
fn code_of(dtype: DType) -> Result<u64> {
    match data_type(dtype) {
        Some(DataType { code, bits, lanes }) => {
            Ok(u64::from(code) | u64::from(bits) << 8 | u64::from(lanes) << 16)
        }
        None => Problem::malformed(format!("DLPack has no {dtype}")),
    }
}
