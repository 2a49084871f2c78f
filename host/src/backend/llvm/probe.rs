//! Asks LLVM what a processor can do, by compiling a few instructions and reading the answer.
//!
//! LLVM's C interface has no question like "does `znver4` have AVX-512?", and a table of our own
//! would be wrong with its next release. The registers in the assembly are the fact itself.

use inkwell::{context::Context, memory_buffer::MemoryBuffer, targets::FileType};

use super::{LlvmError, target::CpuTarget};

/// What [`probe`] finds out.
pub(super) struct Probed {
    pub(super) vector_bits: u32,
    pub(super) has_fma: bool,
    pub(super) has_half: bool,
    pub(super) has_rounding: bool,
}

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
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.floor.f32(float)
";

/// Compiles for `target`, whose names must have been checked, and reads the assembly.
pub(super) fn probe(target: &CpuTarget) -> Result<Probed, LlvmError> {
    let failed = |message: String| LlvmError::Codegen {
        unit: "the question about the processor".to_owned(),
        action: "compile",
        message,
    };
    let cx = Context::create();
    let text = MemoryBuffer::create_from_memory_range_copy(QUESTIONS.as_bytes(), "probe");
    let module = cx.create_module_from_ir(text).map_err(|error| failed(error.to_string()))?;
    let machine = target.machine()?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let assembly = machine
        .write_to_memory_buffer(&module, FileType::Assembly)
        .map_err(|error| failed(error.to_string()))?;
    let assembly = String::from_utf8_lossy(assembly.as_slice()).into_owned();
    Ok(read(target, &assembly))
}

fn read(target: &CpuTarget, assembly: &str) -> Probed {
    // What is not an instruction is a call of these.
    let has_half = !assembly.contains("__extendhfsf2");
    let has_rounding = !assembly.contains("floorf");
    if target.architecture() != "x86_64" {
        return Probed { vector_bits: 128, has_fma: true, has_half, has_rounding };
    }
    let vector_bits = if assembly.contains("%zmm") {
        512
    } else if assembly.contains("%ymm") {
        256
    } else {
        128
    };
    Probed { vector_bits, has_fma: assembly.contains("vfmadd"), has_half, has_rounding }
}
