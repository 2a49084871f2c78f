//! Asks LLVM what a processor can do, by compiling a few instructions and reading the answer.
//!
//! LLVM's C interface has no question like "does `znver4` have AVX-512?", and a table of our own
//! would be wrong with its next release. The registers in the assembly are the fact itself.

use inkwell::{context::Context, memory_buffer::MemoryBuffer, targets::FileType};

use super::{LlvmError, machine::machine};
use crate::target::{Abilities, Architecture, Processor};

/// Integers, because plain AVX has 256-bit vectors for floats alone.
const QUESTIONS: &str = "
define void @width(ptr %p) {
  %a = load <16 x i32>, ptr %p
  %b = add <16 x i32> %a, %a
  store <16 x i32> %b, ptr %p
  ret void
}
define float @fused(float %a, float %b, float %c) {
  %d = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %d
}
define float @widened(half %a) {
  %b = fpext half %a to float
  ret float %b
}
define float @rounded(float %a) {
  %b = call float @llvm.floor.f32(float %a)
  ret float %b
}
define float @scaled(float %a, i32 %b) {
  %c = call float @llvm.ldexp.f32.i32(float %a, i32 %b)
  ret float %c
}
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.floor.f32(float)
declare float @llvm.ldexp.f32.i32(float, i32)
";

/// Compiles for `processor`, whose names must have been checked, and reads the assembly.
pub(super) fn probe(processor: &Processor) -> Result<Abilities, LlvmError> {
    let failed = |message: String| LlvmError::Codegen {
        unit: "the question about the processor".to_owned(),
        action: "compile",
        message,
    };
    let cx = Context::create();
    let text = MemoryBuffer::create_from_memory_range_copy(QUESTIONS.as_bytes(), "probe");
    let module = cx.create_module_from_ir(text).map_err(|error| failed(error.to_string()))?;
    let machine = machine(processor)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let assembly = machine
        .write_to_memory_buffer(&module, FileType::Assembly)
        .map_err(|error| failed(error.to_string()))?;
    let assembly = String::from_utf8_lossy(assembly.as_slice()).into_owned();
    Ok(read(processor.architecture, &assembly))
}

fn read(architecture: Architecture, assembly: &str) -> Abilities {
    let has = |text| assembly.contains(text);
    let vector_bits = match architecture {
        // Threads are its lanes.
        Architecture::Nvptx64 => 32,
        Architecture::X86_64 if has("%zmm") => 512,
        Architecture::X86_64 if has("%ymm") => 256,
        // Registers are grouped until the group holds the 512 bits that were asked for.
        Architecture::Riscv64 if has("e32, m1,") => 512,
        Architecture::Riscv64 if has("e32, m2,") => 256,
        _ => 128,
    };
    // What is not an instruction is a call of these.
    Abilities {
        vector_bits,
        has_fma: !has("fmaf"),
        has_half: !has("__extendhfsf2"),
        has_rounding: !has("floorf"),
        has_scaling: has("vscalef"),
    }
}
