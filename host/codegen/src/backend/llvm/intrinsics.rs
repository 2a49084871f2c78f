//! The intrinsics that a module may call.
//!
//! An intrinsic that a code generator cannot select ends the process; LLVM gives no way to turn
//! that into a value. So the ones known to work are listed, by name without the type suffix, and
//! any other is an error before code generation. `exp`, `log`, `tanh` and their like are missing
//! on purpose: they would become scalar calls into the math library.

use inkwell::module::Module;
use thiserror::Error;

/// Known to be selected on every processor we compile for, scalar and vector.
const ALLOWED: [&str; 67] = [
    "abs",
    "assume",
    "bitreverse",
    "bswap",
    "canonicalize",
    "ceil",
    "copysign",
    "ctlz",
    "ctpop",
    "cttz",
    "dbg",
    "expect",
    "experimental.noalias.scope.decl",
    "fabs",
    "floor",
    "fma",
    "fmuladd",
    "fptosi.sat",
    "fptoui.sat",
    "fshl",
    "fshr",
    "invariant.end",
    "invariant.start",
    "is.fpclass",
    // Where there is an instruction for it.
    "ldexp",
    "lifetime.end",
    "lifetime.start",
    "masked.compressstore",
    "masked.expandload",
    "masked.gather",
    "masked.load",
    "masked.scatter",
    "masked.store",
    "maximum",
    "maximumnum",
    "maxnum",
    "memcpy",
    "memmove",
    "memset",
    "minimum",
    "minimumnum",
    "minnum",
    "nearbyint",
    // Where the target is a device.
    "nvvm.barrier.cta.sync.aligned.all",
    "nvvm.read.ptx.sreg",
    "prefetch",
    "ptrmask",
    "rint",
    "round",
    "roundeven",
    "sadd",
    "smax",
    "smin",
    "smul",
    "sqrt",
    "ssub",
    "trap",
    "trunc",
    "uadd",
    "umax",
    "umin",
    "umul",
    "usub",
    "vector.extract",
    "vector.insert",
    "vector.reduce",
    "vector.splice",
];

/// Intrinsics outside the list.
#[derive(Debug, Error)]
#[error("intrinsics that are not known to compile: {}", .0.join(", "))]
pub(super) struct UnknownIntrinsics(Vec<String>);

/// Says which intrinsics outside the list the module declares.
pub(super) fn check(module: &Module<'_>) -> Result<(), UnknownIntrinsics> {
    let mut refused = Vec::new();
    for func in module.get_functions() {
        let name = func.get_name().to_string_lossy();
        if let Some(intrinsic) = name.strip_prefix("llvm.")
            && !is_allowed(intrinsic)
            && !is_of_machine(intrinsic)
        {
            refused.push(name.into_owned());
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(UnknownIntrinsics(refused)),
    }
}

/// Whether it is of one architecture. Only tensor intrinsics bring such, and say which features of a processor these need.
fn is_of_machine(name: &str) -> bool {
    ["x86.", "aarch64.", "arm.", "riscv.", "wasm.", "nvvm."]
        .iter()
        .any(|head| name.starts_with(head))
}

/// Whether `name`, or `name` up to one of its dots, stands in the list.
fn is_allowed(name: &str) -> bool {
    let prefixes = name.match_indices('.').map(|(at, _)| &name[..at]);
    prefixes.chain([name]).any(|prefix| ALLOWED.binary_search(&prefix).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(ALLOWED.is_sorted());
    }

    #[test]
    fn suffixes_do_not_matter_and_prefixes_do() {
        assert!(is_allowed("fma.v16f32"));
        assert!(is_allowed("vector.reduce.fadd.v8f32"));
        assert!(is_allowed("assume"));
        assert!(!is_allowed("exp.f32"));
        assert!(!is_allowed("tanh.v4f32"));
        assert!(!is_allowed("fmax"));
    }
}
