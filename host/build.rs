//! Compiles what is asked of LLVM in C++, where its C interface has no question.

use std::{env, error::Error, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_LLVM").is_none() {
        return Ok(());
    }
    let source = "src/backend/llvm/subtarget.cpp";
    println!("cargo::rerun-if-changed={source}");
    // llvm-sys found the library that is linked; its headers have to be of the same version.
    let config = env::var("DEP_LLVM_22_CONFIG_PATH")?;
    let answer = Command::new(&config).arg("--includedir").output()?;
    let include = String::from_utf8(answer.stdout)?;
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file(source)
        // As a system's folder, so that warnings are about our own lines alone.
        .flag(format!("-isystem{}", include.trim()))
        // LLVM is built without, and what is derived from its classes has to be too.
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .warnings(true)
        .try_compile("tenon_llvm")?;
    Ok(())
}
