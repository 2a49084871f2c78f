//! A processor to compile for, as a value.
//!
//! ```text
//! llvm                                            this machine
//! cpu,vector-width=256                            this machine, at most 256-bit vectors
//! x86_64-linux-gnu,cpu=znver4                     another one
//! x86_64-linux-gnu,cpu=x86-64-v3,features=+avx512f,+avx512vl
//! ```
//!
//! The head is `llvm`, `cpu` or a triple. With `llvm` or `cpu` the processor is the one that runs
//! this; with a triple it is the architecture's baseline, so that what is compiled for a triple
//! runs on all of its machines. `cpu=native` asks for this machine's.
//!
//! A target is plain data and may go to other threads. LLVM's target machine is not, and
//! [`CpuTarget::machine`] makes one for the calling thread.

use std::{fmt, str::FromStr, sync::Once};

use inkwell::{
    OptimizationLevel,
    targets::{
        CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetMachineOptions,
        TargetTriple,
    },
};

use super::{LlvmError, TargetProblem, names::Names, probe};
use crate::suggest::several_nearest;

/// A processor: triple, name, features, and what follows from them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CpuTarget {
    triple: String,
    cpu: String,
    features: String,
    vector_bits: u32,
    has_fma: bool,
    has_half: bool,
    has_rounding: bool,
}

impl CpuTarget {
    /// The machine that runs this.
    pub fn host() -> Result<CpuTarget, LlvmError> {
        "llvm".parse()
    }

    /// The normalized triple.
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// LLVM's name of the processor.
    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// Features on top of the processor's own: `+avx512f,-sse4a`.
    pub fn features(&self) -> &str {
        &self.features
    }

    /// The architecture: the head of the triple.
    pub fn architecture(&self) -> &str {
        self.triple.split('-').next().unwrap_or_default()
    }

    /// The widest vectors that code should use, in bits.
    pub fn vector_bits(&self) -> u32 {
        self.vector_bits
    }

    /// How many elements of `bytes` bytes a vector holds.
    pub fn lanes(&self, bytes: u32) -> u32 {
        (self.vector_bits / (8 * bytes.max(1))).max(1)
    }

    /// How many vector registers there are.
    pub fn vector_registers(&self) -> u32 {
        match self.architecture() {
            "x86_64" if self.vector_bits < 512 => 16,
            _ => 32,
        }
    }

    /// Whether a fused multiply-add is one instruction. Where it is not, `llvm.fma` is a call
    /// into the C library for every lane, and `llvm.fmuladd` is what to emit.
    pub fn has_fma(&self) -> bool {
        self.has_fma
    }

    /// Whether f16 is converted to f32 and back by an instruction; where it is not, LLVM calls a
    /// library that is not there.
    pub fn has_half(&self) -> bool {
        self.has_half
    }

    /// Whether a float is rounded to a whole number by an instruction; likewise.
    pub fn has_rounding(&self) -> bool {
        self.has_rounding
    }

    /// Bytes in a cache line.
    pub fn cache_line(&self) -> u32 {
        64
    }

    /// Whether this process can run the code: same architecture and system. The processor is
    /// not compared, so that a narrower one of the same family can be tried.
    pub fn runs_here(&self) -> bool {
        let host = normalized(TargetMachine::get_default_triple().as_str().to_str().unwrap_or(""));
        platform(&host) == platform(&self.triple)
    }

    /// A target machine for the calling thread: position-independent code, full optimization.
    pub fn machine(&self) -> Result<TargetMachine, LlvmError> {
        initialize();
        let triple = TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple)
            .map_err(|error| self.error(TargetProblem::Llvm(error.to_string_lossy().into())))?;
        let options = TargetMachineOptions::default()
            .set_cpu(&self.cpu)
            .set_features(&self.features)
            .set_level(OptimizationLevel::Aggressive)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(CodeModel::Small);
        target
            .create_target_machine_from_options(&triple, options)
            .ok_or_else(|| self.error(TargetProblem::NoMachine))
    }

    fn error(&self, problem: TargetProblem) -> LlvmError {
        LlvmError::Target { target: self.to_string(), problem }
    }
}

impl fmt::Display for CpuTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},cpu={}", self.triple, self.cpu)?;
        if !self.features.is_empty() {
            write!(f, ",features={}", self.features)?;
        }
        write!(f, ",vector-width={}", self.vector_bits)
    }
}

impl FromStr for CpuTarget {
    type Err = LlvmError;

    fn from_str(text: &str) -> Result<CpuTarget, LlvmError> {
        let error = |problem| LlvmError::Target { target: text.to_owned(), problem };
        initialize();
        let request = Request::parse(text).map_err(error)?;
        let target = request.resolve().map_err(error)?;
        let probed = probe::probe(&target)?;
        let vector_bits = match request.vector_bits {
            None => probed.vector_bits,
            Some(bits) if bits <= probed.vector_bits => bits,
            Some(bits) => {
                let (has, cpu) = (probed.vector_bits, target.cpu);
                return Err(error(TargetProblem::WiderThanProcessor { bits, has, cpu }));
            }
        };
        Ok(CpuTarget {
            vector_bits,
            has_fma: probed.has_fma,
            has_half: probed.has_half,
            has_rounding: probed.has_rounding,
            ..target
        })
    }
}

/// The target string taken apart, nothing looked up yet.
#[derive(Default)]
struct Request<'a> {
    triple: Option<&'a str>,
    cpu: Option<&'a str>,
    features: Vec<&'a str>,
    vector_bits: Option<u32>,
}

impl<'a> Request<'a> {
    fn parse(text: &'a str) -> Result<Request<'a>, TargetProblem> {
        let mut parts = text.split(',').map(str::trim);
        let mut request = Request::default();
        match parts.next().unwrap_or_default() {
            "" => return Err(TargetProblem::Empty),
            "llvm" | "cpu" => {}
            triple => request.triple = Some(triple),
        }
        for part in parts {
            match part.split_once('=') {
                Some(("cpu", name)) => request.cpu = Some(name),
                Some(("features", first)) => request.features.push(first),
                Some(("vector-width", bits)) => request.vector_bits = Some(vector_width(bits)?),
                // The list of features goes on after its first comma.
                None if part.starts_with(['+', '-']) && !request.features.is_empty() => {
                    request.features.push(part);
                }
                Some((key, _)) => {
                    return Err(TargetProblem::NoKey(key.to_owned()));
                }
                None => return Err(TargetProblem::NoPart(part.to_owned())),
            }
        }
        Ok(request)
    }

    /// Fills in defaults and checks every name. The width is left for the probe.
    fn resolve(&self) -> Result<CpuTarget, TargetProblem> {
        let host_triple = TargetMachine::get_default_triple();
        let host_triple = host_triple.as_str().to_string_lossy();
        let triple = normalized(self.triple.unwrap_or(&host_triple));
        let names = names_of(&triple)?;
        let native = self.cpu == Some("native") || (self.cpu.is_none() && self.triple.is_none());
        if native && platform(&triple) != platform(&normalized(&host_triple)) {
            return Err(TargetProblem::NotThisMachine(host_triple.into_owned()));
        }

        let mut features: Vec<String> = Vec::new();
        if native {
            let host = TargetMachine::get_host_cpu_features();
            features.extend(host.to_string_lossy().split(',').map(str::to_owned));
        }
        for feature in self.features.iter().filter(|feature| !feature.is_empty()) {
            check_feature(feature, names)?;
            features.push((*feature).to_owned());
        }
        let cpu = match self.cpu {
            _ if native => TargetMachine::get_host_cpu_name().to_string_lossy().into_owned(),
            Some(name) => checked_cpu(name, names)?,
            None if triple.starts_with("x86_64") => "x86-64".to_owned(),
            None => "generic".to_owned(),
        };
        Ok(CpuTarget {
            triple,
            cpu,
            features: features.join(","),
            vector_bits: 128,
            has_fma: false,
            has_half: false,
            has_rounding: false,
        })
    }
}

fn vector_width(bits: &str) -> Result<u32, TargetProblem> {
    match bits {
        "128" => Ok(128),
        "256" => Ok(256),
        "512" => Ok(512),
        _ => Err(TargetProblem::NoWidth(bits.to_owned())),
    }
}

fn names_of(triple: &str) -> Result<Names, TargetProblem> {
    let architecture = triple.split('-').next().unwrap_or_default();
    Names::of_architecture(architecture)
        .ok_or_else(|| TargetProblem::NoArchitecture(architecture.to_owned()))
}

fn checked_cpu(name: &str, names: Names) -> Result<String, TargetProblem> {
    if names.processors().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let near = near(name, names.processors());
    Err(TargetProblem::NoProcessor { name: name.to_owned(), near })
}

fn check_feature(feature: &str, names: Names) -> Result<(), TargetProblem> {
    let Some(name) = feature.strip_prefix(['+', '-']) else {
        return Err(TargetProblem::NoSign(feature.to_owned()));
    };
    if names.features().any(|known| known == name) {
        return Ok(());
    }
    let near = near(name, names.features());
    Err(TargetProblem::NoFeature { name: name.to_owned(), near })
}

/// The names that may be meant, as they follow a message.
fn near(name: &str, names: impl Iterator<Item = &'static str>) -> String {
    match several_nearest(name, names, 3) {
        near if near.is_empty() => String::new(),
        near => format!("; the nearest are {}", near.join(", ")),
    }
}

fn normalized(triple: &str) -> String {
    let triple = TargetMachine::normalize_triple(&TargetTriple::create(triple));
    triple.as_str().to_string_lossy().into_owned()
}

/// Architecture and operating system of a triple: what must agree for code to run. The vendor
/// says nothing.
fn platform(triple: &str) -> (Option<&str>, Option<&str>) {
    let mut parts = triple.split('-');
    (parts.next(), parts.nth(1))
}

/// Makes LLVM's code generators known to LLVM, once in a process.
pub(crate) fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        Target::initialize_x86(&InitializationConfig::default());
        Target::initialize_aarch64(&InitializationConfig::default());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> CpuTarget {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn problem(text: &str) -> String {
        text.parse::<CpuTarget>().unwrap_err().to_string()
    }

    #[test]
    fn the_host_is_the_default_and_reads_back() {
        let host = CpuTarget::host().unwrap();
        assert_eq!(host, target("cpu"));
        assert_eq!(host, target(&host.to_string()));
        assert!(host.runs_here());
        assert_ne!(host.cpu(), "generic");
    }

    #[test]
    fn a_processor_has_its_vectors() {
        for (text, bits, registers, fma) in [
            ("x86_64-linux-gnu", 128, 16, false),
            ("x86_64-linux-gnu,cpu=sandybridge", 128, 16, false),
            ("x86_64-linux-gnu,cpu=haswell", 256, 16, true),
            ("x86_64-linux-gnu,cpu=x86-64-v3,features=+avx512f,+avx512vl", 512, 32, true),
            ("x86_64-linux-gnu,cpu=skylake-avx512", 512, 32, true),
            ("x86_64-linux-gnu,cpu=znver4,features=-avx512f", 256, 16, true),
            ("x86_64-linux-gnu,cpu=znver4,vector-width=256", 256, 16, true),
            ("aarch64-linux-gnu,cpu=neoverse-n1", 128, 32, true),
        ] {
            let target = target(text);
            assert_eq!(
                (target.vector_bits(), target.vector_registers(), target.has_fma()),
                (bits, registers, fma),
                "{text}"
            );
            assert_eq!(target.lanes(4), bits / 32);
        }
    }

    #[test]
    fn a_triple_alone_means_all_of_its_machines() {
        let target = target("x86_64-linux-gnu");
        assert_eq!((target.triple(), target.cpu()), ("x86_64-unknown-linux-gnu", "x86-64"));
        assert_eq!(target.features(), "");
    }

    #[test]
    fn wrong_strings_say_what_would_be_right() {
        for (text, hint) in [
            ("", "write `llvm`"),
            ("llvm,cpu=zenver4", "znver4"),
            ("llvm,features=+avx512ff", "avx512f"),
            ("llvm,features=avx2", "needs a `+`"),
            ("llvm,speed=high", "the keys are"),
            ("llvm,+avx2", "no `key=value`"),
            ("llvm,vector-width=100", "128, 256, 512"),
            ("x86_64-linux-gnu,vector-width=512", "wider than the 128 bits"),
            ("sparc-linux-gnu", "there is x86_64 and aarch64"),
            ("riscv64-linux-gnu,cpu=native", "riscv64"),
        ] {
            let problem = problem(text);
            assert!(problem.contains(hint), "{text:?}: {problem}");
        }
    }
}
