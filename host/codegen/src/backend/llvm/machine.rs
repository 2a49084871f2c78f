//! LLVM's target machines.
//!
//! A target is plain data and may go to other threads. LLVM's target machine is not, so one is made
//! for each thread.

use std::ffi::CStr;
use std::sync::Once;

use inkwell::{
    OptimizationLevel,
    targets::{
        CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetMachineOptions,
        TargetTriple,
    },
};

use llvm_sys::support::LLVMParseCommandLineOptions;

use super::LlvmError;
use crate::target::{Architecture, Processor, normalized};

/// A target machine for the calling thread: position-independent code, full optimization. WebAssembly has no
/// addresses that could depend on a position.
pub fn machine(processor: &Processor) -> Result<TargetMachine, LlvmError> {
    machine_of(processor, OptimizationLevel::Aggressive)
}

/// The same without optimization.
pub(super) fn plain_machine(processor: &Processor) -> Result<TargetMachine, LlvmError> {
    machine_of(processor, OptimizationLevel::None)
}

fn machine_of(processor: &Processor, level: OptimizationLevel) -> Result<TargetMachine, LlvmError> {
    initialize();
    let triple = TargetTriple::create(&processor.triple);
    let no_machine = |message| LlvmError::NoMachine { triple: processor.triple.clone(), message };
    let target = Target::from_triple(&triple)
        .map_err(|error| no_machine(error.to_string_lossy().into_owned()))?;
    let options = TargetMachineOptions::default()
        .set_cpu(&processor.cpu)
        .set_features(&processor.features)
        .set_level(level)
        .set_reloc_mode(match processor.architecture {
            Architecture::Wasm32 => RelocMode::Static,
            _ => RelocMode::PIC,
        })
        .set_code_model(CodeModel::Small);
    target
        .create_target_machine_from_options(&triple, options)
        .ok_or_else(|| no_machine("LLVM says no more".to_owned()))
}

/// The processor that runs this.
pub(super) fn this_machine() -> Result<Processor, LlvmError> {
    let text = |text: &inkwell::support::LLVMString| text.to_string_lossy().into_owned();
    let triple = TargetMachine::get_default_triple();
    let triple = normalized(&triple.as_str().to_string_lossy());
    let Some(architecture) = Architecture::of(&triple) else {
        let message = "no code is made for this machine".to_owned();
        return Err(LlvmError::NoMachine { triple, message });
    };
    Ok(Processor {
        triple,
        architecture,
        cpu: text(&TargetMachine::get_host_cpu_name()),
        features: text(&TargetMachine::get_host_cpu_features()),
    })
}

/// Makes LLVM's code generators known to LLVM, once in a process.
pub fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let config = InitializationConfig::default();
        Target::initialize_x86(&config);
        Target::initialize_aarch64(&config);
        Target::initialize_riscv(&config);
        Target::initialize_webassembly(&config);
        Target::initialize_nvptx(&config);
        forbid_straight_line_vectors();
    });
}

/// Turns LLVM's vectorizer of straight lines off: it gathers what lies apart, which takes longer than to load it one by one, and it
/// narrows integers that it must not: of `uitofp (sext x)` in four lanes it makes `uitofp x`. LLVM's pipelines have it whatever
/// [`PassBuilderOptions`](inkwell::passes::PassBuilderOptions) say.
fn forbid_straight_line_vectors() {
    let arguments = [c"tenon", c"-vectorize-slp=false"].map(CStr::as_ptr);
    // SAFETY: both arguments are strings that last as long as the process. No other thread is in LLVM yet that could read the option.
    unsafe {
        LLVMParseCommandLineOptions(arguments.len() as i32, arguments.as_ptr(), std::ptr::null());
    }
}
