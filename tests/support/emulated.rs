//! Modules compiled for other processors, and run by an emulator as a program of their own.
//!
//! The program is the objects of some models and a start that needs no C library: inputs and outputs are arrays in it, it runs the
//! models, writes the outputs to standard output, and ends with the first status that is no success.

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
        let model = self.compile(module)?;
        Ok(self.results(&[(&model, inputs)])?.remove(0))
    }

    /// Compiles `main` of a module.
    pub(crate) fn compile(&self, module: &Module) -> Result<Executable, String> {
        compiled::executable(module, &self.target()?)
    }

    /// What each of the models gives, those that could be compiled: all as one program, or where that fails each as its own. One
    /// that fails although each succeeds is an error of the last: models are told to link into one program.
    pub(crate) fn run_all(
        &self,
        models: &[Result<Executable, String>],
        inputs: &[&[Tensor]],
    ) -> Vec<Result<Vec<Tensor>, String>> {
        let jobs: Vec<Job<'_>> = models
            .iter()
            .zip(inputs)
            .filter_map(|(model, inputs)| Some((model.as_ref().ok()?, *inputs)))
            .collect();
        let each = |job: &Job<'_>| Ok(self.results(&[*job])?.remove(0));
        let mut results: Vec<Result<Vec<Tensor>, String>> = match self.results(&jobs) {
            Ok(together) => together.into_iter().map(Ok).collect(),
            Err(said) => {
                let mut alone: Vec<_> = jobs.iter().map(each).collect();
                if !said.contains(FAULT)
                    && alone.iter().all(Result::is_ok)
                    && let Some(last) = alone.last_mut()
                {
                    *last = Err(format!("each is right alone, and all as one program: {said}"));
                }
                alone
            }
        };
        results.reverse();
        let result = |model: &Result<Executable, String>| {
            model.as_ref().map_err(String::clone)?;
            results.pop().expect("a result for each that was compiled")
        };
        models.iter().map(result).collect()
    }

    fn target(&self) -> Result<Target, String> {
        Target::parse(self.target).map_err(|error| error.to_string())
    }

    /// What models give in one program.
    fn results(&self, jobs: &[Job<'_>]) -> Result<Vec<Vec<Tensor>>, String> {
        let target = self.target()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut objects = self.objects(jobs, &target, folder.path())?;
        let mut done = self.done(&target, &objects, folder.path())?;
        if String::from_utf8_lossy(&done.stderr).contains(FAULT) {
            objects.reverse();
            done = self.done(&target, &objects, folder.path())?;
        }
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            return Err(format!("{}: {said}", done.status));
        }
        let mut bytes = &done.stdout[..];
        jobs.iter().map(|(model, _)| outputs(model, &mut bytes)).collect()
    }

    /// What a program of these objects, in this order, does.
    fn done(&self, target: &Target, objects: &[PathBuf], folder: &Path) -> Result<Output, String> {
        let program = folder.join("program");
        let linker = Linker::find_for(target, None).map_err(|error| error.to_string())?;
        let words = ["-static", "-e", "_start", "-o"].map(OsString::from).into_iter();
        let files = [&program].into_iter().chain(objects).map(|path| path.as_os_str().to_owned());
        let words: Vec<_> = words.chain(files).collect();
        let linked = Command::new(linker.program()).args(linker.arguments(&words)).output();
        let linked = linked.map_err(|error| error.to_string())?;
        if !linked.status.success() {
            return Err(String::from_utf8_lossy(&linked.stderr).into_owned());
        }
        let mut command = Command::new(self.program);
        command.args(self.arguments).arg(program).output().map_err(|error| error.to_string())
    }

    /// The objects of the models and of a start.
    fn objects(
        &self,
        jobs: &[Job<'_>],
        target: &Target,
        folder: &Path,
    ) -> Result<Vec<PathBuf>, String> {
        let mut objects = Vec::with_capacity(jobs.len() + 1);
        for (number, (model, _)) in jobs.iter().enumerate() {
            let (file, prefix) = (folder.join(format!("{number}.o")), format!("model{number}"));
            model
                .export(&file, LinkForm::Object, Some(&prefix), Outputs::default())
                .map_err(|error| error.to_string())?;
            objects.push(file);
        }
        let options =
            CompileOptions { pipeline: Pipeline::None, threads: 1, ..CompileOptions::default() };
        let text = self.start(jobs)?;
        let object = compile_units(target, &options, &[text], |cx, text| start_module(cx, text));
        let object = object.map_err(|error: LlvmError| error.to_string())?.remove(0);
        objects.push(folder.join("start.o"));
        fs::write(folder.join("start.o"), object).map_err(|error| error.to_string())?;
        Ok(objects)
    }

    /// The start as LLVM's text.
    fn start(&self, jobs: &[Job<'_>]) -> Result<String, String> {
        let mut text = LIBRARY.to_owned();
        let mut run = "define void @_start() noreturn {\n".to_owned();
        let mut workspace = 0;
        for (number, (model, inputs)) in jobs.iter().enumerate() {
            let signature = model.signature();
            let given: Vec<&[u8]> = inputs.iter().map(|input| &input.bytes()[..]).collect();
            let [from, to] = ["input", "output"].map(|name| format!("{name}{number}."));
            write_tensors(&mut text, &from, &signature.inputs, |index| escaped(given[index]))?;
            write_tensors(&mut text, &to, &signature.outputs, |_| "zeroinitializer".to_owned())?;
            let known = || "an emulated model has known shapes".to_owned();
            workspace = workspace.max(signature.workspace_size.ok_or_else(known)?);
            writeln!(text, "declare i32 @model{number}_run(ptr, ptr, ptr, ptr)").expect(TAKEN);
            self.write_run(&mut run, number, (&from, &to), &signature.outputs);
        }
        writeln!(text, "@workspace = global [{workspace} x i8] zeroinitializer, align 64\n{run}")
            .expect(TAKEN);
        writeln!(text, "{}\n  unreachable\n}}", self.call(EXIT, "i64 0", "ptr null", 0))
            .expect(TAKEN);
        Ok(text)
    }

    /// Runs a model, and ends the program unless it succeeds.
    fn write_run(
        &self,
        run: &mut String,
        number: usize,
        (from, to): (&str, &str),
        outputs: &[TensorSpec],
    ) {
        let exit = self.call(EXIT, &format!("i64 %code{number}"), "ptr null", 0);
        writeln!(
            run,
            "  %status{number} = call i32 @model{number}_run(ptr @{from}s, ptr @{to}s, ptr @workspace, ptr null)\n  \
             %code{number} = zext i32 %status{number} to i64\n  \
             %is.wrong{number} = icmp ne i32 %status{number}, 0\n  \
             br i1 %is.wrong{number}, label %wrong{number}, label %right{number}\n\
             wrong{number}:\n{exit}\n  unreachable\nright{number}:"
        )
        .expect(TAKEN);
        for (index, output) in outputs.iter().enumerate() {
            let from = format!("ptr @{to}{index}");
            writeln!(run, "{}", self.call(WRITE, "i64 1", &from, bytes_of(output))).expect(TAKEN);
        }
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

/// A model and what it is given.
type Job<'a> = (&'a Executable, &'a [Tensor]);

const TAKEN: &str = "a string takes all";

/// What the C library would have, byte by byte.
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
        .expect(TAKEN);
        tensors.push(format!(
            "%tensor {{ ptr @{name}{index}, i32 1, i32 0, i32 {rank}, i32 {dtype}, \
             ptr @{name}{index}.shape, ptr null, i64 0 }}"
        ));
    }
    let (count, tensors) = (tensors.len(), tensors.join(", "));
    writeln!(text, "@{name}s = global [{count} x %tensor] [{tensors}]").expect(TAKEN);
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
    bytes.iter().for_each(|byte| write!(text, "\\{byte:02X}").expect(TAKEN));
    text.push('"');
    text
}

/// The outputs of a model, which stand first in the bytes, and the bytes behind them.
fn outputs(executable: &Executable, bytes: &mut &[u8]) -> Result<Vec<Tensor>, String> {
    let take = |spec: &TensorSpec| {
        let short = || format!("{spec} was not written");
        let (own, rest) = bytes.split_at_checked(bytes_of(spec) as usize).ok_or_else(short)?;
        *bytes = rest;
        let shape = spec.static_shape().unwrap_or_default();
        let shape = shape.iter().map(|&extent| extent as usize).collect();
        Tensor::new(spec.dtype, shape, Bytes::new(own.to_vec())).ok_or_else(short)
    };
    executable.signature().outputs.iter().map(take).collect()
}
