//! How a library takes the constants that lie in a file.
//!
//! ```c
//! int32_t     PREFIX_set_weights(const void *data, uint64_t bytes);   from here on they are these; with NULL and 0 there are none
//! const void *PREFIX_weights(void);                                   those that there are, or NULL
//! ```
//!
//! Weights are of the size that the library knows, and begin with the bytes that it knows, among them a digest. The first that fit
//! are taken, whichever thread brings them; they are there as a whole for each call that begins afterwards.

use inkwell::{context::Context, memory_buffer::MemoryBuffer, module::Module, types::IntType};

use super::error::BackendError;
use crate::{
    backend::{
        WEIGHTS,
        llvm::{LlvmError, attributes::decorate},
    },
    target::Target,
};
use tenon_runtime::{
    status::Failure,
    weights::{ALIGN, WeightsInfo},
};

/// The names of both functions.
pub(super) fn names_of(prefix: &str) -> [String; 2] {
    ["set_weights", "weights"].map(|name| format!("{prefix}_{name}"))
}

/// Numbers as wide as an address.
pub(super) fn address_type<'cx>(cx: &'cx Context, target: &Target) -> IntType<'cx> {
    match target.architecture().pointer_bytes() {
        4 => cx.i32_type(),
        _ => cx.i64_type(),
    }
}

/// A module with the functions.
pub(super) fn taking<'cx>(
    cx: &'cx Context,
    target: &Target,
    prefix: &str,
    weights: &WeightsInfo,
) -> Result<Module<'cx>, BackendError> {
    let head: String = weights.head().0.iter().map(|byte| format!("\\{byte:02X}")).collect();
    let [set, get] = names_of(prefix);
    let text = [
        ("{set}", set.clone()),
        ("{get}", get.clone()),
        ("{head}", head),
        ("{int}", format!("i{}", address_type(cx, target).get_bit_width())),
        ("{weights}", WEIGHTS.to_owned()),
        ("{bytes}", weights.bytes.to_string()),
        ("{rest}", (ALIGN - 1).to_string()),
        ("{null}", (Failure::Null as i32).to_string()),
        ("{refused}", (Failure::Weights as i32).to_string()),
    ]
    .into_iter()
    .fold(TEXT.to_owned(), |text, (field, value)| text.replace(field, &value));
    let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "taking");
    let module = cx.create_module_from_ir(text).map_err(|error| LlvmError::InvalidModule {
        unit: prefix.to_owned(),
        message: error.to_string(),
    })?;
    module.set_name(prefix);
    for name in [set, get] {
        if let Some(function) = module.get_function(&name) {
            decorate(function, target);
        }
    }
    Ok(module)
}

const TEXT: &str = r#"
@{weights} = hidden global {int} 0, align 8
@head = private constant [64 x i8] c"{head}", align 8

define ptr @{get}() {
  %data = load atomic {int}, ptr @{weights} acquire, align 8
  %pointer = inttoptr {int} %data to ptr
  ret ptr %pointer
}

define i32 @{set}(ptr %data, i64 %bytes) {
entry:
  %is.null = icmp eq ptr %data, null
  br i1 %is.null, label %nothing, label %size

nothing:
  %is.meant = icmp eq i64 %bytes, 0
  br i1 %is.meant, label %clear, label %null

null:
  ret i32 {null}

clear:
  store atomic {int} 0, ptr @{weights} release, align 8
  ret i32 0

size:
  %address = ptrtoint ptr %data to {int}
  %is.size = icmp eq i64 %bytes, {bytes}
  %rest = and {int} %address, {rest}
  %is.aligned = icmp eq {int} %rest, 0
  %fits = and i1 %is.size, %is.aligned
  br i1 %fits, label %word, label %refused

word:
  %at = phi i64 [ 0, %size ], [ %next, %same ]
  %found.at = getelementptr i8, ptr %data, i64 %at
  %expected.at = getelementptr i8, ptr @head, i64 %at
  %found = load i64, ptr %found.at, align 8
  %expected = load i64, ptr %expected.at, align 8
  %is.same = icmp eq i64 %found, %expected
  br i1 %is.same, label %same, label %refused

same:
  %next = add i64 %at, 8
  %is.all = icmp eq i64 %next, 64
  br i1 %is.all, label %take, label %word

take:
  %before = cmpxchg ptr @{weights}, {int} 0, {int} %address acq_rel monotonic, align 8
  ret i32 0

refused:
  ret i32 {refused}
}
"#;
