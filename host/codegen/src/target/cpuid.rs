//! What instructions a target needs that code of x86-64 asks the processor for, as bits ([`tenon_runtime::cpu`]).
//!
//! Only instructions that code of ours may have are asked for. A machine may hide others, such as protection keys, which a
//! processor of the same name has, and runs the code as well.

use tenon_runtime::cpu::{CpuNeed, has_bit, needs_of};

use super::{Architecture, Target, TargetError, TargetProblem};

/// What every processor of x86-64 has, and what only systems and programs that name an instruction use.
const NOT_ASKED: &[&str] = &[
    "64bit",
    "cldemote",
    "clflushopt",
    "clwb",
    "clzero",
    "cmov",
    "cx8",
    "enqcmd",
    "ermsb",
    "fsgsbase",
    "fsrm",
    "fxsr",
    "hreset",
    "invpcid",
    "kl",
    "lwp",
    "mmx",
    "movdir64b",
    "movdiri",
    "movrs",
    "mwaitx",
    "nopl",
    "pconfig",
    "pku",
    "prefetchi",
    "prfchw",
    "ptwrite",
    "raoint",
    "rdpid",
    "rdpru",
    "rdrnd",
    "rdseed",
    "rtm",
    "serialize",
    "sgx",
    "shstk",
    "sse",
    "sse2",
    "tsxldtrk",
    "uintr",
    "usermsr",
    "waitpkg",
    "wbnoinvd",
    "widekl",
    "x87",
    "xsave",
    "xsavec",
    "xsaveopt",
    "xsaves",
];

/// The bits that a processor has to have for code of a target.
pub fn cpu_needs(target: &Target) -> Result<Vec<CpuNeed>, TargetError> {
    let features = target.all_features();
    match features.iter().find(|feature| !has_bit(feature) && is_asked(feature)) {
        None => Ok(needs_of(features)),
        Some(unknown) => {
            let problem = TargetProblem::NotAsked((*unknown).to_owned());
            Err(TargetError::new(&target.to_string(), problem))
        }
    }
}

/// The features of a target that its code asks the processor for; none where it runs on every processor of the architecture, or there
/// is no way to ask. What a processor has and nobody has a name for is not asked.
pub fn asked_features(target: &Target) -> Vec<&'static str> {
    match target.architecture() {
        Architecture::X86_64 => {
            target.all_features().into_iter().filter(|it| has_bit(it)).collect()
        }
        Architecture::Aarch64
        | Architecture::Riscv64
        | Architecture::Wasm32
        | Architecture::Nvptx64 => Vec::new(),
    }
}

/// Whether code of a processor with a feature needs it.
pub(super) fn is_asked(feature: &str) -> bool {
    !NOT_ASKED.contains(&feature)
}

/// How many of its features a machine may lack.
pub(super) fn demand(target: &Target) -> usize {
    target.all_features().into_iter().filter(|feature| is_asked(feature)).count()
}
