//! What LLVM cannot go on after.
//!
//! An instruction that a processor lacks, which only code of others asks for, ends LLVM in the middle of its work: nothing can be
//! told to a caller. So the message is printed as other errors are, and the program ends with 1 instead of a signal.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::sync::Once;

use inkwell::support::error_handling::install_fatal_error_handler;

thread_local! {
    /// What this thread compiles.
    static UNIT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does `work` on a unit, which a message then names.
pub(super) fn within<T>(unit: &str, work: impl FnOnce() -> T) -> T {
    static ONCE: Once = Once::new();
    // SAFETY: the handler is a plain function that takes what LLVM gives, and lives as long as the program.
    ONCE.call_once(|| unsafe { install_fatal_error_handler(end) });
    UNIT.set(unit.to_owned());
    let result = work();
    UNIT.take();
    result
}

extern "C" fn end(message: *const c_char) {
    // SAFETY: LLVM gives a text that ends with a zero and lives as long as this call.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    // One line; what follows is a dump of LLVM's own.
    let message = message.lines().next().unwrap_or_default();
    let unit = UNIT.take();
    eprintln!(
        "error: LLVM cannot make code of `{unit}`: {message}
  = help: the code of an intrinsic may use what the processor lacks; its rule has to say which features it needs"
    );
    // SAFETY: no destructor runs, and none may, while LLVM is in the middle of its work on this thread and others.
    unsafe { libc::_exit(1) }
}
