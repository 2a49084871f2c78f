//! The processors and features that LLVM knows, so that a wrong name is an error.
//!
//! LLVM itself prints a line and goes on with a generic processor, and its C interface has no question to ask:
//! `subtarget.cpp` asks in C++.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Mutex, PoisonError};

use super::machine::initialize;
use crate::backend::Names;
use crate::target::{Architecture, Processor};

type List = Vec<&'static str>;
type Push = unsafe extern "C" fn(*mut c_void, *const c_char);

unsafe extern "C" {
    fn tenon_llvm_names(
        triple: *const c_char,
        of_features: bool,
        list: *mut c_void,
        push: Push,
    ) -> bool;
    fn tenon_llvm_features(
        triple: *const c_char,
        cpu: *const c_char,
        features: *const c_char,
        list: *mut c_void,
        push: Push,
    ) -> bool;
}

/// # Safety
/// `list` is the list that was handed in, and `name` a string of LLVM's own tables.
unsafe extern "C" fn push(list: *mut c_void, name: *const c_char) {
    // SAFETY: by the contract above; LLVM's tables are constants of its library, which is never unloaded.
    let (list, name) = unsafe { (&mut *list.cast::<List>(), CStr::from_ptr(name)) };
    list.extend(name.to_str());
}

/// The names of an architecture, sorted.
pub(super) fn names_of(architecture: Architecture) -> Names {
    static KNOWN: Mutex<Vec<(Architecture, Names)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, names)) = known.iter().find(|(of, _)| *of == architecture) {
        return names.clone();
    }
    let triple = c_text(architecture.name());
    let listed = |of_features| {
        // SAFETY: the text ends with a zero and, as the list, lives as long as the call.
        sorted(|list| unsafe { tenon_llvm_names(triple.as_ptr(), of_features, list, push) })
    };
    let names = Names { processors: listed(false), features: listed(true) };
    known.push((architecture, names.clone()));
    names
}

/// The features of a processor, those of its name and those that were asked for, sorted. What only says how to order
/// instructions is none.
pub(super) fn features(processor: &Processor) -> List {
    let [triple, cpu, features] =
        [&processor.triple, &processor.cpu, &processor.features].map(|text| c_text(text));
    // SAFETY: the texts end with a zero and, as the list, live as long as the call.
    sorted(|list| unsafe {
        tenon_llvm_features(triple.as_ptr(), cpu.as_ptr(), features.as_ptr(), list, push)
    })
}

fn sorted(fill: impl FnOnce(*mut c_void) -> bool) -> List {
    initialize();
    let mut list = List::new();
    // An architecture that LLVM lacks has no names.
    let _ = fill((&raw mut list).cast());
    list.sort_unstable();
    list.dedup();
    list
}

/// A name as C has it; what follows a zero, which no name has, is left out.
fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
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
        assert!(arm.processors.contains(&"apple-m1") && arm.processors.contains(&"cobalt-100"));
        assert!(names_of(Architecture::Riscv64).features.contains(&"zvl256b"));
        assert!(names_of(Architecture::Wasm32).features.contains(&"simd128"));
        let nvptx = names_of(Architecture::Nvptx64);
        assert!(nvptx.processors.contains(&"sm_80") && nvptx.features.contains(&"ptx70"));
    }

    fn features_of(triple: &str, cpu: &str, features: &str) -> List {
        let architecture = Architecture::of(triple).expect("an architecture");
        let [triple, cpu, features] = [triple, cpu, features].map(str::to_owned);
        super::features(&Processor { triple, architecture, cpu, features })
    }

    #[test]
    fn a_processor_has_the_features_of_its_name_and_those_that_are_asked_for() {
        let v3 = features_of("x86_64-unknown-linux-gnu", "x86-64-v3", "");
        assert!(v3.contains(&"avx2") && v3.contains(&"fma") && !v3.contains(&"avx512f"));
        let more = features_of("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni,-avx512vl");
        assert!(more.contains(&"avx512vnni") && !more.contains(&"avx512vl"));
        let amx = features_of("x86_64-unknown-linux-gnu", "sapphirerapids", "");
        assert!(amx.contains(&"amx-bf16") && amx.contains(&"avx512bf16"));
        assert!(!amx.iter().any(|feature| feature.contains("fast")));
        let arm = features_of("aarch64-unknown-linux-gnu", "neoverse-n1", "");
        assert!(arm.contains(&"neon") && arm.contains(&"dotprod") && !arm.contains(&"sve"));
        // A name of the same that LLVM's list of processors has not.
        let apple = features_of("aarch64-unknown-linux-gnu", "apple-m1", "");
        assert!(apple.contains(&"dotprod") && !apple.contains(&"i8mm"));
        let riscv = features_of("riscv64-unknown-linux-gnu", "generic-rv64", "+v");
        assert!(riscv.contains(&"v") && !riscv.contains(&"zvl256b"));
    }
}
