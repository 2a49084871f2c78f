//! Families of processors.

use std::fmt;

/// A family of processors that code can be made for: the head of a triple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Architecture {
    X86_64,
    Aarch64,
    Riscv64,
    Wasm32,
    Nvptx64,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Architecture; 5] = [
        Architecture::X86_64,
        Architecture::Aarch64,
        Architecture::Riscv64,
        Architecture::Wasm32,
        Architecture::Nvptx64,
    ];

    /// The architecture of a triple.
    pub fn of(triple: &str) -> Option<Architecture> {
        let head = triple.split('-').next()?;
        Architecture::ALL.into_iter().find(|architecture| architecture.name() == head)
    }

    /// As it stands at the head of a triple.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
            Architecture::Riscv64 => "riscv64",
            Architecture::Wasm32 => "wasm32",
            Architecture::Nvptx64 => "nvptx64",
        }
    }

    /// The processor that every machine of the architecture is at least, and the features that
    /// every operating system on it asks for.
    pub(super) fn baseline(self) -> (&'static str, &'static str) {
        match self {
            Architecture::X86_64 => ("x86-64", ""),
            Architecture::Aarch64 => ("generic", ""),
            Architecture::Riscv64 => ("generic-rv64", "+m,+a,+f,+d,+c"),
            Architecture::Wasm32 => ("generic", "+simd128"),
            Architecture::Nvptx64 => ("sm_80", "+ptx70"),
        }
    }

    /// Bytes of an address.
    pub fn pointer_bytes(self) -> u32 {
        match self {
            Architecture::X86_64
            | Architecture::Aarch64
            | Architecture::Riscv64
            | Architecture::Nvptx64 => 8,
            Architecture::Wasm32 => 4,
        }
    }

    /// Whether its objects are ELF.
    pub fn has_elf(self) -> bool {
        !matches!(self, Architecture::Wasm32 | Architecture::Nvptx64)
    }

    /// What there is of a device whose threads a program is bound to; none of a processor that runs loops.
    pub fn device(self) -> Option<Device> {
        match self {
            Architecture::Nvptx64 => {
                Some(Device { shared_bytes: 48 << 10, block_threads: 1024, warp: 32 })
            }
            Architecture::X86_64
            | Architecture::Aarch64
            | Architecture::Riscv64
            | Architecture::Wasm32 => None,
        }
    }

    /// How many vector registers of `bits` bits there are. A virtual machine has as many as it
    /// likes; those that it runs on have sixteen at least.
    pub(super) fn vector_registers(self, bits: u32) -> u32 {
        match self {
            Architecture::X86_64 if bits < 512 => 16,
            Architecture::X86_64 | Architecture::Aarch64 | Architecture::Riscv64 => 32,
            Architecture::Wasm32 => 16,
            // The registers of a thread.
            Architecture::Nvptx64 => 255,
        }
    }
}

/// A device that runs blocks of threads, what every one of its family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// Bytes of memory that the threads of a block share, made when the program is compiled.
    pub shared_bytes: u32,
    /// The most threads of a block.
    pub block_threads: u32,
    /// Threads that run in step.
    pub warp: u32,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
