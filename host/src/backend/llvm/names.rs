//! The processors and features that LLVM knows, so that a wrong name is an error.
//!
//! LLVM itself prints a line and goes on with a generic processor, and its C interface has no
//! question to ask. The lists are LLVM's own output, kept beside this file.

use inkwell::targets::TargetTriple;

/// The names of one architecture.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    text: &'static str,
}

impl Names {
    /// The lists for the architecture of `triple`; `None` for one that this build does not know.
    pub fn of_triple(triple: &TargetTriple) -> Option<Names> {
        let triple = triple.as_str().to_string_lossy();
        Names::of_architecture(triple.split('-').next().unwrap_or_default())
    }

    /// The lists for an architecture as it stands at the head of a triple.
    pub fn of_architecture(architecture: &str) -> Option<Names> {
        match architecture {
            "x86_64" => Some(Names { text: include_str!("names/x86_64.txt") }),
            "aarch64" | "arm64" => Some(Names { text: include_str!("names/aarch64.txt") }),
            _ => None,
        }
    }

    /// Every processor, sorted.
    pub fn processors(&self) -> impl Iterator<Item = &'static str> {
        self.section("[processors]")
    }

    /// Every feature, sorted, without its sign.
    pub fn features(&self) -> impl Iterator<Item = &'static str> {
        self.section("[features]")
    }

    fn section(&self, header: &'static str) -> impl Iterator<Item = &'static str> {
        self.text
            .lines()
            .skip_while(move |line| *line != header)
            .skip(1)
            .take_while(|line| !line.starts_with('['))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_processors_and_features() {
        let names = Names::of_architecture("x86_64").unwrap();
        assert!(names.processors().any(|name| name == "znver4"));
        assert!(!names.processors().any(|name| name == "avx512f"));
        assert!(names.features().any(|name| name == "avx512f"));
        let arm = Names::of_architecture("aarch64").unwrap();
        assert!(arm.processors().any(|name| name == "neoverse-n1"));
        assert!(arm.features().any(|name| name == "sve"));
        assert!(Names::of_architecture("pdp11").is_none());
    }
}
