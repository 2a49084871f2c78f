//! Running on a device: what is said where there is none, and what a driver is asked.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};

use crate::program::{run, succeed, tenon};

/// Two blocks of threads, of which the second is not full.
const COUNT: usize = 300;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("runs_where_there_is_a_device", where_there_is_a_device),
        Trial::test("what_a_driver_is_asked", what_a_driver_is_asked),
        Trial::test("what_has_no_kernels_has_no_code", what_has_no_kernels),
        Trial::test("what_a_driver_refuses", what_a_driver_refuses),
    ]
}

/// A model that doubles its input, and numbers for it.
fn prepare(folder: &Path) -> Result<(), Failed> {
    let text = format!("fn @main(%x: f32[{COUNT}]) {{ %y = add(%x, %x) ret %y }}");
    fs::write(folder.join("twice.ir"), text)?;
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({COUNT},), }}");
    header.push_str(&" ".repeat(117 - header.len()));
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{header}\n").bytes());
    file.extend((0..COUNT).flat_map(|number| (number as f32).to_le_bytes()));
    Ok(fs::write(folder.join("x.npy"), file)?)
}

fn run_twice(folder: &Path) -> Command {
    let mut command = tenon();
    command.arg("run").arg(folder.join("twice.ir"));
    command.arg("--input").arg(format!("x={}", folder.join("x.npy").display()));
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// With a device the result is that of a processor; without one the error says what is missing.
fn where_there_is_a_device() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    let output = run(run_twice(folder.path()).args(["--target", "nvptx"]))?;
    if output.status.success() {
        let expected = run(&mut run_twice(folder.path()))?;
        return match output.stdout == expected.stdout {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stdout).into_owned().into()),
        };
    }
    let said = said(&output);
    let is_clear = ["no driver for NVIDIA's devices here", "devices finds none"]
        .iter()
        .any(|reason| said.contains(reason));
    if is_clear && output.status.code() == Some(1) { Ok(()) } else { Err(said.into()) }
}

/// Makes a false driver in a folder.
fn make_driver(folder: &Path) -> Result<(), Failed> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/driver.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
    succeed(compiler.arg(folder.join("libcuda.so")).arg(source))
}

fn with_driver(folder: &Path) -> Command {
    let mut command = run_twice(folder);
    command.args(["--target", "nvptx", "--repeat", "2"]);
    command.env("LD_LIBRARY_PATH", folder).env("LOG", folder.join("log"));
    command.env("COUNT", COUNT.to_string());
    command
}

/// Code is loaded once; each run takes the input there, starts the kernel, and takes the result back.
fn what_a_driver_is_asked() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    make_driver(folder.path())?;
    let output = run(&mut with_driver(folder.path()))?;
    if !output.status.success() {
        return Err(said(&output).into());
    }
    let expected = run(&mut run_twice(folder.path()))?;
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.stdout != expected.stdout || !found.contains("[0, 2, 4, 6") {
        return Err(found.into());
    }
    let log = fs::read_to_string(folder.path().join("log"))?;
    let start = log.lines().find(|line| line.starts_with("start")).unwrap_or("").to_owned();
    let of_run = ["up bytes 1200", &start, "down bytes 1200"];
    let wanted = [&["load 7.0 1"][..], &of_run, &of_run].concat();
    match start.contains("_add_") && start.ends_with(" 512") && log.lines().eq(wanted) {
        true => Ok(()),
        false => Err(log.into()),
    }
}

/// What only copies is run as well: there is no code, which a driver would refuse.
fn what_has_no_kernels() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    make_driver(folder.path())?;
    let text = format!("fn @main(%x: f32[{COUNT}]) {{ ret %x }}");
    fs::write(folder.path().join("twice.ir"), text)?;
    succeed(&mut with_driver(folder.path()))?;
    let log = fs::read_to_string(folder.path().join("log"))?;
    let copies = |line: &str| ["up", "across", "down"].iter().any(|way| line.starts_with(way));
    if log.lines().all(copies) && log.contains("down bytes 1200") {
        Ok(())
    } else {
        Err(log.into())
    }
}

/// What fails is an error that names what was to be done.
fn what_a_driver_refuses() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    make_driver(folder.path())?;
    for (refused, wanted) in [
        ("init", "the driver could not begin"),
        ("devices", "the driver for NVIDIA's devices finds none"),
        ("memory", "the driver could not make 1200 bytes of memory"),
        ("run", "the driver could not run the kernels"),
    ] {
        let output = run(with_driver(folder.path()).env("REFUSE", refused))?;
        let said = said(&output);
        if output.status.code() != Some(1) || !said.contains(wanted) {
            return Err(format!("{refused}: {said}").into());
        }
    }
    Ok(())
}
