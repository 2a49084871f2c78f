//! Modules compiled for other processors, and run by an emulator as a program of their own.
//!
//! The program is the model's object and a start that needs no C library: inputs and outputs are arrays in it, it runs the
//! model, writes the outputs to standard output, and ends with the model's status.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tenon_compiler::backend::llvm::LlvmError;
use tenon_compiler::backend::llvm::units::{CompileOptions, Pipeline, compile_units};
use tenon_compiler::eval::Tensor;
use tenon_compiler::executable::{Executable, LinkForm};
use tenon_compiler::io::Outputs;
use tenon_compiler::ir::{Bytes, Module};
use tenon_compiler::object::linker::Linker;
use tenon_compiler::runtime::signature::{TensorSpec, data_type};
use tenon_compiler::target::Target;

use super::compiled;

/// A processor that this machine may be able to pretend.
pub(crate) struct Emulator {
    pub(crate) target: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The instruction that asks the system for something: its text, and the registers of its result, of the number and
    /// of three arguments.
    system_call: [&'static str; 6],
}

pub(crate) const AARCH64: Emulator = Emulator {
    target: "aarch64",
    program: "qemu-aarch64",
    arguments: &[],
    system_call: ["svc #0", "x0", "x8", "x0", "x1", "x2"],
};

pub(crate) const RISCV64: Emulator = Emulator {
    target: "riscv64-v",
    program: "qemu-riscv64",
    arguments: &["-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"],
    system_call: ["ecall", "x10", "x17", "x10", "x11", "x12"],
};

/// The numbers of Linux's system calls on both.
const WRITE: u32 = 64;
const EXIT: u32 = 93;

/// What QEMU 7.2 says of RISC-V where an instruction that widens and converts is the first of a page: the same code elsewhere runs.
const FAULT: &str = "insn_start != NULL";

impl Emulator {
    /// The same machine, for another target.
    pub(crate) const fn with(self, target: &'static str) -> Self {
        Self { target, ..self }
    }

    /// Why nothing can be run; `None` when it can.
    pub(crate) fn missing(&self) -> Option<String> {
        let found = Command::new(self.program).arg("--version").stdout(Stdio::null()).status();
        found.err().map(|_| {
            format!("{} is not here; scripts/setup.sh --emulators installs it", self.program)
        })
    }

    /// Compiles `main` of a module and runs it.
    pub(crate) fn run(&self, module: &Module, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let target = Target::parse(self.target).map_err(|error| error.to_string())?;
        let executable = compiled::executable(module, &target)?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let objects = self.objects(&executable, &target, inputs, folder.path())?;
        let mut done = self.done(&target, &objects, folder.path())?;
        if String::from_utf8_lossy(&done.stderr).contains(FAULT) {
            let [model, start] = objects;
            done = self.done(&target, &[start, model], folder.path())?;
        }
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(format!("{}: {said}", done.status));
        }
        outputs(&executable, &done.stdout)
    }

    /// What a program of these objects, in this order, does.
    fn done(
        &self,
        target: &Target,
        objects: &[PathBuf; 2],
        folder: &Path,
    ) -> Result<Output, String> {
        let program = folder.join("program");
        let linker = Linker::find_for(target, None).map_err(|error| error.to_string())?;
        let words = ["-static", "-e", "_start", "-o"].map(OsString::from);
        let files = [&program, &objects[0], &objects[1]].map(|path| path.as_os_str().to_owned());
        let words: Vec<_> = words.into_iter().chain(files).collect();
        let linked = Command::new(linker.program()).args(linker.arguments(&words)).output();
        let linked = linked.map_err(|error| error.to_string())?;
        if !linked.status.success() {
            return Err(String::from_utf8_lossy(&linked.stderr).into_owned());
        }
        let mut command = Command::new(self.program);
        command.args(self.arguments).arg(program).output().map_err(|error| error.to_string())
    }

    /// The objects of the model and of a start.
    fn objects(
        &self,
        executable: &Executable,
        target: &Target,
        inputs: &[Tensor],
        folder: &Path,
    ) -> Result<[PathBuf; 2], String> {
        let [model, start] = ["model.o", "start.o"].map(|name| folder.join(name));
        executable
            .export(&model, LinkForm::Object, Some("model"), Outputs::default())
            .map_err(|error| error.to_string())?;
        let text = self.start(executable, inputs)?;
        let options =
            CompileOptions { pipeline: Pipeline::None, threads: 1, ..CompileOptions::default() };
        let object = compile_units(target, &options, &[text], |cx, text| start_module(cx, text));
        let object = object.map_err(|error: LlvmError| error.to_string())?.remove(0);
        fs::write(&start, object).map_err(|error| error.to_string())?;
        Ok([model, start])
    }

    /// The start as LLVM's text.
    fn start(&self, executable: &Executable, inputs: &[Tensor]) -> Result<String, String> {
        let signature = executable.signature();
        let mut text = LIBRARY.to_owned();
        let given: Vec<&[u8]> = inputs.iter().map(|input| &input.bytes()[..]).collect();
        write_tensors(&mut text, "input", &signature.inputs, |index| escaped(given[index]))?;
        write_tensors(&mut text, "output", &signature.outputs, |_| "zeroinitializer".to_owned())?;
        let known = || "an emulated model has known shapes".to_owned();
        let workspace = signature.workspace_size.ok_or_else(known)?;
        let mut line = |line: String| writeln!(text, "{line}").expect("a string takes all");
        line(format!("@workspace = global [{workspace} x i8] zeroinitializer, align 64"));
        line("define void @_start() noreturn {".to_owned());
        line(
            "  %status = call i32 @model_run(ptr @inputs, ptr @outputs, ptr @workspace, ptr null)"
                .to_owned(),
        );
        for (index, output) in signature.outputs.iter().enumerate() {
            line(self.call(WRITE, "i64 1", &format!("ptr @output{index}"), bytes_of(output)));
        }
        line("  %code = zext i32 %status to i64".to_owned());
        line(self.call(EXIT, "i64 %code", "ptr null", 0));
        line("  unreachable\n}".to_owned());
        Ok(text)
    }

    fn call(&self, number: u32, first: &str, second: &str, third: u64) -> String {
        let [text, result, registers @ ..] = self.system_call;
        let registers = registers.map(|register| format!("{{{register}}}")).join(",");
        format!(
            "  call i64 asm sideeffect \"{text}\", \"={{{result}}},{registers},~{{memory}}\"\
             (i64 {number}, {first}, {second}, i64 {third})"
        )
    }
}

/// What the C library would have, byte by byte, and what is declared of the model.
const LIBRARY: &str = include_str!("emulated.ll");

fn start_module<'cx>(
    cx: &'cx tenon_compiler::backend::llvm::inkwell::context::Context,
    text: &str,
) -> Result<tenon_compiler::backend::llvm::inkwell::module::Module<'cx>, LlvmError> {
    use tenon_compiler::backend::llvm::inkwell::memory_buffer::MemoryBuffer;
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "start");
    cx.create_module_from_ir(buffer).map_err(|error| LlvmError::InvalidModule {
        unit: "start".to_owned(),
        message: error.to_string(),
    })
}

/// An array of `DLTensor` with what it points to, named `{name}s`.
fn write_tensors(
    text: &mut String,
    name: &str,
    specs: &[TensorSpec],
    bytes: impl Fn(usize) -> String,
) -> Result<(), String> {
    let mut tensors = Vec::with_capacity(specs.len());
    for (index, spec) in specs.iter().enumerate() {
        let (size, rank) = (bytes_of(spec), spec.shape.len());
        let dtype = data_type(spec.dtype).ok_or_else(|| format!("{spec} cannot be an argument"))?;
        let dtype =
            u32::from(dtype.code) | u32::from(dtype.bits) << 8 | u32::from(dtype.lanes) << 16;
        let shape: Vec<String> = spec.shape.iter().map(|extent| format!("i64 {extent}")).collect();
        let (shape, value) = (shape.join(", "), bytes(index));
        write!(
            text,
            "@{name}{index} = global [{size} x i8] {value}, align 64\n\
             @{name}{index}.shape = global [{rank} x i64] [{shape}]\n"
        )
        .expect("a string takes all");
        tensors.push(format!(
            "%tensor {{ ptr @{name}{index}, i32 1, i32 0, i32 {rank}, i32 {dtype}, \
             ptr @{name}{index}.shape, ptr null, i64 0 }}"
        ));
    }
    let (count, tensors) = (tensors.len(), tensors.join(", "));
    writeln!(text, "@{name}s = global [{count} x %tensor] [{tensors}]")
        .expect("a string takes all");
    Ok(())
}

/// The bytes of a tensor of known shape.
fn bytes_of(spec: &TensorSpec) -> u64 {
    spec.bytes().unwrap_or(0)
}

/// Bytes as an array of LLVM's text.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(3 * bytes.len() + 3);
    text.push_str("c\"");
    bytes.iter().for_each(|byte| write!(text, "\\{byte:02X}").expect("a string takes all"));
    text.push('"');
    text
}

fn outputs(executable: &Executable, mut bytes: &[u8]) -> Result<Vec<Tensor>, String> {
    let take = |spec: &TensorSpec| {
        let short = || format!("{spec} was not written");
        let (own, rest) = bytes.split_at_checked(bytes_of(spec) as usize).ok_or_else(short)?;
        bytes = rest;
        let shape = spec.static_shape().unwrap_or_default();
        let shape = shape.iter().map(|&extent| extent as usize).collect();
        Tensor::new(spec.dtype, shape, Bytes::new(own.to_vec())).ok_or_else(short)
    };
    executable.signature().outputs.iter().map(take).collect()
}
