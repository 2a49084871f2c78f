//! The `tenon` program.

use std::ffi::c_int;

use tenon_host::registry::exit_at_once;

/// What plugins call that call `_exit`: the program's own function stands before that of the C library.
// SAFETY: it does what the function of that name does in every C library.
#[unsafe(no_mangle)]
extern "C" fn _exit(code: c_int) -> ! {
    exit_at_once(code)
}

fn main() -> std::process::ExitCode {
    tenon_host::cli::main()
}
