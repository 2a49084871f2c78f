//! The `tenon` program.

fn main() -> std::process::ExitCode {
    tenon_host::cli::main()
}
