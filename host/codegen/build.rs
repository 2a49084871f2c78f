//! Compiles what is asked of LLVM in C++, where its C interface has no question.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{env, error::Error, fs, process::Command};

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
    if env::var_os("CARGO_FEATURE_STATIC_LLVM").is_some() {
        link_statically(&["ffi", "zstd", "z"])?;
        build_linker(&config, include.trim())?;
    }
    Ok(())
}

/// LLVM's linker becomes part of the program.
fn build_linker(config: &str, include: &str) -> Result<(), Box<dyn Error>> {
    let source = "src/object/lld.cpp";
    println!("cargo::rerun-if-changed={source}");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file(source).flag(format!("-isystem{include}"));
    build.flag("-fno-rtti").flag("-fno-exceptions").try_compile("tenon_lld")?;
    let folder = Command::new(config).arg("--libdir").output()?;
    println!("cargo::rustc-link-search=native={}", String::from_utf8(folder.stdout)?.trim());
    for library in ["lldELF", "lldWasm", "lldCommon"] {
        println!("cargo::rustc-link-lib=static={library}");
    }
    Ok(())
}

/// What LLVM needs of the system, and not every system has, goes into the program as well. Its crate asks for shared
/// libraries by name; the linker takes an archive of that name, if it stands in a folder that is searched before.
fn link_statically(names: &[&str]) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("OUT_DIR")?).join("archives");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    for name in names {
        let file = format!("lib{name}.a");
        let answer = Command::new("cc").arg(format!("-print-file-name={file}")).output()?;
        let found = PathBuf::from(String::from_utf8(answer.stdout)?.trim());
        if !found.is_absolute() {
            return Err(format!("{file} is missing, which a program with LLVM inside needs").into());
        }
        symlink(found, folder.join(file))?;
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
    Ok(())
}
