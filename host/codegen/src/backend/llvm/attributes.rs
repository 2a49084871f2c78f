//! What LLVM must be told about a function or a parameter.
//!
//! Left alone, LLVM uses 256-bit vectors on a machine with 512-bit ones, and assumes that any two
//! pointers may overlap.

use inkwell::{
    attributes::{Attribute, AttributeLoc},
    context::{Context, ContextRef},
    values::{CallSiteValue, FunctionValue},
};

use crate::target::Target;

/// What may be assumed about a pointer parameter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pointer {
    /// No other pointer of this call reaches the same memory, unless both only read it.
    pub noalias: bool,
    /// The function reads through it and does not write.
    pub readonly: bool,
    /// Its alignment in bytes; 0 or 1 when unknown.
    pub align: u32,
    /// This many bytes behind it may be read at any time; 0 when unknown.
    pub dereferenceable: u64,
}

/// Ties `func` to the processor and says what holds for all generated code: it does not unwind,
/// always returns, and nobody looks at float exception flags.
///
/// Needed on every function of a unit, because LLVM decides per function.
pub fn decorate(func: FunctionValue<'_>, target: &Target) {
    let cx = func.get_type().get_context();
    let width = target.vector_bits().to_string();
    let texts = [
        ("target-cpu", target.cpu()),
        ("target-features", target.features()),
        ("prefer-vector-width", width.as_str()),
        ("no-trapping-math", "true"),
    ];
    for (key, value) in texts {
        func.add_attribute(AttributeLoc::Function, cx.create_string_attribute(key, value));
    }
    for name in ["nounwind", "willreturn", "mustprogress"] {
        func.add_attribute(AttributeLoc::Function, flag(cx, name, 0));
    }
}

/// States `facts` about the pointer parameter `index` of `func`.
pub fn decorate_pointer(func: FunctionValue<'_>, index: u32, facts: Pointer) {
    let cx = func.get_type().get_context();
    let add = |name, value| func.add_attribute(AttributeLoc::Param(index), flag(cx, name, value));
    add("noundef", 0);
    if facts.noalias {
        add("noalias", 0);
    }
    if facts.readonly {
        add("readonly", 0);
    }
    if facts.align > 1 {
        add("align", u64::from(facts.align));
    }
    if facts.dereferenceable > 0 {
        add("dereferenceable", facts.dereferenceable);
    }
}

/// Says that threads run `func` together: what they all come to must not be moved to where only some do.
pub fn convergent(func: FunctionValue<'_>) {
    let cx = func.get_type().get_context();
    func.add_attribute(AttributeLoc::Function, flag(cx, "convergent", 0));
}

/// Asks for `func` to be inlined wherever it is called.
pub fn always_inline(func: FunctionValue<'_>) {
    let cx = func.get_type().get_context();
    func.add_attribute(AttributeLoc::Function, flag(cx, "alwaysinline", 0));
}

/// Says of a call that its result is all there is to it, so that it is made once, outside of loops.
pub fn pure<'cx>(cx: &'cx Context, call: CallSiteValue<'cx>) {
    for name in ["memory", "nounwind", "willreturn"] {
        let kind = Attribute::get_named_enum_kind_id(name);
        call.add_attribute(AttributeLoc::Function, cx.create_enum_attribute(kind, 0));
    }
}

fn flag(cx: ContextRef<'_>, name: &str, value: u64) -> Attribute {
    cx.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value)
}
