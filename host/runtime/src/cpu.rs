//! What a processor of x86-64 says of itself: instructions, as bits of what `cpuid` says.
//!
//! ```text
//! avx2, fma     =>     leaf 7 ebx has bit 5, leaf 1 ecx has bits 12 and 27, xcr0 has bits 1 and 2
//! ```
//!
//! Libraries ask for these bits when they are called; [`lacking`] says which of some features this machine does not have, for messages.

use std::collections::BTreeMap;

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

/// The bits that say that a processor has some features, those of a word together. What has no bit here is left out.
pub fn needs_of<'a>(features: impl IntoIterator<Item = &'a str>) -> Vec<CpuNeed> {
    let mut needs: BTreeMap<CpuWord, u32> = BTreeMap::new();
    for feature in features {
        let Some(&(_, word, bit, registers)) = asked(feature) else { continue };
        *needs.entry(word).or_default() |= 1 << bit;
        if registers > 0 {
            *needs.entry(FIRST).or_default() |= CpuWord::KEEPS_REGISTERS;
            *needs.entry(CpuWord::SavedRegisters).or_default() |= registers;
        }
    }
    needs.into_iter().map(|(word, mask)| CpuNeed { word, mask }).collect()
}

/// Whether there is a bit that says that a processor has a feature.
pub fn has_bit(feature: &str) -> bool {
    asked(feature).is_some()
}

fn asked(feature: &str) -> Option<&'static (&'static str, CpuWord, u32, u32)> {
    ASKED.iter().find(|(name, ..)| *name == feature)
}

/// Which of some features this machine lacks. On other architectures, and of features without a bit, that is not known, and none is.
pub fn lacking<'a>(features: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lacks = |feature: &&str| {
        needs_of([*feature])
            .iter()
            .any(|need| word(need.word).is_some_and(|it| it & need.mask != need.mask))
    };
    features.into_iter().filter(lacks).collect()
}

/// A word as this machine has it.
#[cfg(target_arch = "x86_64")]
fn word(word: CpuWord) -> Option<u32> {
    use std::arch::x86_64::{__cpuid_count, _xgetbv};

    Some(match word {
        CpuWord::Leaf { leaf, part, register } => {
            let last = __cpuid_count(leaf & 0x8000_0000, 0).eax;
            let answer = __cpuid_count(leaf, part);
            match register {
                _ if leaf > last => 0,
                CpuRegister::Eax => answer.eax,
                CpuRegister::Ebx => answer.ebx,
                CpuRegister::Ecx => answer.ecx,
                CpuRegister::Edx => answer.edx,
            }
        }
        CpuWord::SavedRegisters if __cpuid_count(1, 0).ecx & CpuWord::KEEPS_REGISTERS == 0 => 0,
        // SAFETY: the processor and the system have the instruction, as the bit says.
        CpuWord::SavedRegisters => unsafe { _xgetbv(0) as u32 },
    })
}

/// A word as this machine has it.
#[cfg(not(target_arch = "x86_64"))]
fn word(_word: CpuWord) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_bits_of_words() {
        let needs = needs_of(["avx2", "fma", "no such feature"]);
        let of = |word| needs.iter().find(|need| need.word == word).map(|need| need.mask);
        assert_eq!(needs.len(), 3);
        assert_eq!(of(EXTENDED), Some(1 << 5));
        assert_eq!(of(FIRST), Some(1 << 12 | 1 << 27));
        assert_eq!(of(CpuWord::SavedRegisters), Some(6));
        assert!(has_bit("amx-tile") && !has_bit("sse2"));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_this_machine_lacks_is_what_the_standard_library_does_not_find() {
        let found = [
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("lzcnt", is_x86_feature_detected!("lzcnt")),
            ("avx512vl", is_x86_feature_detected!("avx512vl")),
            ("sha512", is_x86_feature_detected!("sha512")),
            ("tbm", is_x86_feature_detected!("tbm")),
        ];
        let lacks: Vec<&str> =
            found.iter().filter(|(_, has)| !has).map(|(name, _)| *name).collect();
        assert_eq!(lacking(found.map(|(name, _)| name)), lacks);
        assert_eq!(lacking(["pku", "sse2"]), [""; 0]);
    }
}
