//! The processors and features that LLVM knows, so that a wrong name is an error.
//!
//! LLVM itself prints a line and goes on with a generic processor, and its C interface has no
//! question to ask. The lists are LLVM's own output, kept beside this file.

use crate::backend::Names;
use crate::target::Architecture;

/// The names of an architecture, sorted.
pub(super) fn names_of(architecture: Architecture) -> Names {
    let text = match architecture {
        Architecture::X86_64 => include_str!("names/x86_64.txt"),
        Architecture::Aarch64 => include_str!("names/aarch64.txt"),
        Architecture::Riscv64 => include_str!("names/riscv64.txt"),
        Architecture::Wasm32 => include_str!("names/wasm32.txt"),
        Architecture::Nvptx64 => include_str!("names/nvptx64.txt"),
    };
    let section = |header: &str| {
        let behind = text.lines().skip_while(|line| *line != header).skip(1);
        behind.take_while(|line| !line.starts_with('[')).collect()
    };
    Names { processors: section("[processors]"), features: section("[features]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_processors_and_features() {
        let x86 = names_of(Architecture::X86_64);
        assert!(x86.processors.contains(&"znver4") && !x86.processors.contains(&"avx512f"));
        assert!(x86.features.contains(&"avx512f"));
        let arm = names_of(Architecture::Aarch64);
        assert!(arm.processors.contains(&"neoverse-n1") && arm.features.contains(&"sve"));
        assert!(names_of(Architecture::Riscv64).features.contains(&"zvl256b"));
        assert!(names_of(Architecture::Wasm32).features.contains(&"simd128"));
        let nvptx = names_of(Architecture::Nvptx64);
        assert!(nvptx.processors.contains(&"sm_80") && nvptx.features.contains(&"ptx70"));
    }
}
