//! LLVM's linker, where it is part of the program.
//!
//! It runs in a process of its own, as other linkers do: it ends its process where it cannot go on, and writes through a
//! mapping, so that a full disk does too.

use std::ffi::{CString, OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

/// The word behind which the program is a linker: `tenon linker ld.lld -shared ...`.
pub const WORD: &str = "linker";

unsafe extern "C" {
    fn tenon_lld(words: *const *const c_char, count: usize) -> c_int;
}

/// Is the linker that the first word names, with the words behind it.
pub fn link(words: impl Iterator<Item = OsString>) -> ExitCode {
    // Arguments of a process hold no zeros.
    let words: Vec<CString> = words.filter_map(|it| CString::new(it.into_vec()).ok()).collect();
    let pointers: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    // SAFETY: as many strings as are said, which outlive the call; no other thread runs.
    let code = unsafe { tenon_lld(pointers.as_ptr(), pointers.len()) };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
