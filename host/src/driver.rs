//! From a model to a lowered module: targets, pipelines, and the run between them.

use tenon_plugin_api::ir::{Attrs, Context};

use crate::ir::{Cx, Module};
use crate::passes::{self, PassContext, PassError, Plan};
use crate::registry::Registry;

#[cfg(feature = "llvm")]
use crate::backend::llvm::{LlvmError, target::CpuTarget};

/// What code is made for.
pub struct Target {
    #[cfg(feature = "llvm")]
    cpu: CpuTarget,
}

impl Target {
    /// Parses a target: `llvm` is this machine.
    #[cfg(feature = "llvm")]
    pub fn parse(text: &str) -> Result<Target, LlvmError> {
        Ok(Target { cpu: text.parse()? })
    }

    /// The CPU.
    #[cfg(feature = "llvm")]
    pub fn cpu(&self) -> &CpuTarget {
        &self.cpu
    }

    /// The description that passes read: `kind`, `vector_bits`, `vector_registers`.
    #[cfg(feature = "llvm")]
    pub fn attrs(&self, cx: &Cx) -> Attrs {
        cx.attrs(&[
            ("kind", "cpu".into()),
            ("vector_bits", (self.cpu.vector_bits() as i64).into()),
            ("vector_registers", (self.cpu.vector_registers() as i64).into()),
        ])
    }

    /// Without a backend there is one target, whose vectors have 128 bits.
    #[cfg(not(feature = "llvm"))]
    pub fn parse(_: &str) -> Result<Target, std::convert::Infallible> {
        Ok(Target {})
    }

    /// The description that passes read: `kind`, `vector_bits`, `vector_registers`.
    #[cfg(not(feature = "llvm"))]
    pub fn attrs(&self, cx: &Cx) -> Attrs {
        cx.attrs(&[
            ("kind", "cpu".into()),
            ("vector_bits", 128i64.into()),
            ("vector_registers", 16i64.into()),
        ])
    }
}

/// Runs a plan over a module.
pub fn run_plan(
    registry: &Registry,
    plan: &Plan,
    module: &Module,
    cx: &mut PassContext,
) -> Result<Module, PassError> {
    passes::run(registry, plan, module, cx)
}
