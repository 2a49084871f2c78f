//! How code of x86-64 finds out on which processor it runs: what instructions a target needs, as bits of what `cpuid` says.
//!
//! ```text
//! avx2, fma     =>     leaf 7 ebx has bit 5, leaf 1 ecx has bits 12 and 27, xcr0 has bits 1 and 2
//! ```
//!
//! Only instructions that code of ours may have are asked for. A machine may hide others, such as protection keys, which a
//! processor of the same name has, and runs the code as well.

use std::collections::BTreeMap;

use super::{Target, TargetError, TargetProblem};

/// A word of 32 bits that a processor says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuWord {
    /// A register behind `cpuid` of a leaf and a part of it. A processor that has no such leaf has no bit of it.
    Leaf { leaf: u32, part: u32, register: CpuRegister },
    /// What the system keeps of the registers of its processes. Processors without the instruction have no bit of it.
    SavedRegisters,
}

/// The registers that `cpuid` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CpuRegister {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

/// Bits of a word that all have to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CpuNeed {
    pub word: CpuWord,
    pub mask: u32,
}

const fn leaf(leaf: u32, part: u32, register: CpuRegister) -> CpuWord {
    CpuWord::Leaf { leaf, part, register }
}

impl CpuWord {
    /// The one that says, in [`CpuWord::KEEPS_REGISTERS`], whether there are saved registers to ask for.
    pub const FIRST: CpuWord = leaf(1, 0, CpuRegister::Ecx);
    /// That bit.
    pub const KEEPS_REGISTERS: u32 = 1 << 27;
}

const FIRST: CpuWord = CpuWord::FIRST;
const EXTENDED: CpuWord = leaf(7, 0, CpuRegister::Ebx);
const EXTENDED_C: CpuWord = leaf(7, 0, CpuRegister::Ecx);
const EXTENDED_D: CpuWord = leaf(7, 0, CpuRegister::Edx);
const LATER_A: CpuWord = leaf(7, 1, CpuRegister::Eax);
const LATER_D: CpuWord = leaf(7, 1, CpuRegister::Edx);
const OF_AMD: CpuWord = leaf(0x8000_0001, 0, CpuRegister::Ecx);

/// The wider registers that the system has to keep, besides those that every one keeps.
const YMM: u32 = 0x6;
const ZMM: u32 = 0xe6;
const TILES: u32 = 0x6_0000;
const MORE: u32 = 0x8_0000;

/// Features by the bit that says each, with the registers that it uses.
const ASKED: &[(&str, CpuWord, u32, u32)] = &[
    ("sse3", FIRST, 0, 0),
    ("pclmul", FIRST, 1, 0),
    ("ssse3", FIRST, 9, 0),
    ("fma", FIRST, 12, YMM),
    ("cx16", FIRST, 13, 0),
    ("sse4.1", FIRST, 19, 0),
    ("sse4.2", FIRST, 20, 0),
    ("crc32", FIRST, 20, 0),
    ("movbe", FIRST, 22, 0),
    ("popcnt", FIRST, 23, 0),
    ("aes", FIRST, 25, 0),
    ("avx", FIRST, 28, YMM),
    ("f16c", FIRST, 29, YMM),
    ("bmi", EXTENDED, 3, 0),
    ("avx2", EXTENDED, 5, YMM),
    ("bmi2", EXTENDED, 8, 0),
    ("avx512f", EXTENDED, 16, ZMM),
    ("avx512dq", EXTENDED, 17, ZMM),
    ("adx", EXTENDED, 19, 0),
    ("avx512ifma", EXTENDED, 21, ZMM),
    ("avx512cd", EXTENDED, 28, ZMM),
    ("sha", EXTENDED, 29, 0),
    ("avx512bw", EXTENDED, 30, ZMM),
    ("avx512vl", EXTENDED, 31, ZMM),
    ("avx512vbmi", EXTENDED_C, 1, ZMM),
    ("avx512vbmi2", EXTENDED_C, 6, ZMM),
    ("gfni", EXTENDED_C, 8, 0),
    ("vaes", EXTENDED_C, 9, YMM),
    ("vpclmulqdq", EXTENDED_C, 10, YMM),
    ("avx512vnni", EXTENDED_C, 11, ZMM),
    ("avx512bitalg", EXTENDED_C, 12, ZMM),
    ("avx512vpopcntdq", EXTENDED_C, 14, ZMM),
    ("avx512vp2intersect", EXTENDED_D, 8, ZMM),
    ("amx-bf16", EXTENDED_D, 22, TILES),
    ("avx512fp16", EXTENDED_D, 23, ZMM),
    ("amx-tile", EXTENDED_D, 24, TILES),
    ("amx-int8", EXTENDED_D, 25, TILES),
    ("sha512", LATER_A, 0, YMM),
    ("sm3", LATER_A, 1, YMM),
    ("sm4", LATER_A, 2, YMM),
    ("avxvnni", LATER_A, 4, YMM),
    ("avx512bf16", LATER_A, 5, ZMM),
    ("cmpccxadd", LATER_A, 7, 0),
    ("amx-fp16", LATER_A, 21, TILES),
    ("avxifma", LATER_A, 23, YMM),
    ("avxvnniint8", LATER_D, 4, YMM),
    ("avxneconvert", LATER_D, 5, YMM),
    ("amx-complex", LATER_D, 8, TILES),
    ("avxvnniint16", LATER_D, 10, YMM),
    ("egpr", LATER_D, 21, MORE),
    ("push2pop2", LATER_D, 21, MORE),
    ("ppx", LATER_D, 21, MORE),
    ("ndd", LATER_D, 21, MORE),
    ("ccmp", LATER_D, 21, MORE),
    ("nf", LATER_D, 21, MORE),
    ("cf", LATER_D, 21, MORE),
    ("zu", LATER_D, 21, MORE),
    ("sahf", OF_AMD, 0, 0),
    ("lzcnt", OF_AMD, 5, 0),
    ("sse4a", OF_AMD, 6, 0),
    ("xop", OF_AMD, 11, YMM),
    ("fma4", OF_AMD, 16, YMM),
    ("tbm", OF_AMD, 21, 0),
];

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
    let mut needs: BTreeMap<CpuWord, u32> = BTreeMap::new();
    for feature in target.all_features() {
        match ASKED.iter().find(|(name, ..)| *name == feature) {
            Some(&(_, word, bit, registers)) => {
                *needs.entry(word).or_default() |= 1 << bit;
                if registers > 0 {
                    *needs.entry(FIRST).or_default() |= CpuWord::KEEPS_REGISTERS;
                    *needs.entry(CpuWord::SavedRegisters).or_default() |= registers;
                }
            }
            None if NOT_ASKED.contains(&feature) => {}
            None => {
                let problem = TargetProblem::NotAsked(feature.to_owned());
                return Err(TargetError::new(&target.to_string(), problem));
            }
        }
    }
    Ok(needs.into_iter().map(|(word, mask)| CpuNeed { word, mask }).collect())
}

/// Whether code of a processor with a feature needs it.
pub(super) fn is_asked(feature: &str) -> bool {
    !NOT_ASKED.contains(&feature)
}

/// How many of its features a machine may lack.
pub(super) fn demand(target: &Target) -> usize {
    target.all_features().into_iter().filter(|feature| is_asked(feature)).count()
}
