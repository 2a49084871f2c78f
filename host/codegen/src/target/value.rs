//! A target as a value.

use std::{fmt, str::FromStr};

use tenon_plugin_api::ir::{AttrValue, Attrs, Context, Term};

use super::caches::size_text;
use super::list::{caches_of, fma_units_of};
use super::request::{Request, Resolved};
use super::{Architecture, Caches, Device, FloatMode, TargetError, TargetProblem};
use crate::backend::{Backend, backend, backend_for};
use tenon_ir::Cx;

/// What code is made for: a processor, what it can do, and what is around it.
///
/// It is plain data: equal texts give equal targets, and a target's text gives it back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    processor: Processor,
    abilities: Abilities,
    caches: Caches,
    threads: u32,
    fma_units: u32,
    float: FloatMode,
}

/// A processor, by the names that code generators have for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Processor {
    /// The normalized triple.
    pub triple: String,
    /// Its head.
    pub architecture: Architecture,
    /// The name of the processor.
    pub cpu: String,
    /// Features on top of the processor's own: `+avx512f,-sse4a`.
    pub features: String,
}

/// What a processor can do in one instruction, as its code generator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Abilities {
    /// The widest vectors that code should use, in bits.
    pub vector_bits: u32,
    /// A multiplication and an addition, rounded once.
    pub has_fma: bool,
    /// The conversion of f16 to f32 and back.
    pub has_half: bool,
    /// Rounding a float to a whole number.
    pub has_rounding: bool,
    /// Whether it multiplies by powers of two as AVX-512 does.
    pub has_scaling: bool,
}

impl Target {
    /// Parses a target: `native` is this machine.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        Target::asked(text, backend()).map_err(|problem| TargetError::new(text, problem))
    }

    /// The machine that runs this.
    pub fn native() -> Result<Target, TargetError> {
        Target::parse("native")
    }

    fn asked(text: &str, backend: &dyn Backend) -> Result<Target, TargetProblem> {
        if text.contains('/') {
            return Err(TargetProblem::Several);
        }
        let request = Request::parse(text)?;
        let Resolved { processor, caches, threads, fma_units } = request.resolve(backend)?;
        let mut abilities = backend.abilities(&processor)?;
        if let Some(bits) = request.vector_bits {
            let (has, cpu) = (abilities.vector_bits, processor.cpu.clone());
            if bits > has {
                return Err(TargetProblem::WiderThanProcessor { bits, has, cpu });
            }
            abilities.vector_bits = bits;
        }
        let float = request.float;
        Ok(Target { processor, abilities, caches, threads, fma_units, float })
    }

    /// What kind of device it is, as passes read it.
    pub fn kind(&self) -> &'static str {
        match self.device() {
            None => "cpu",
            Some(_) => "cuda",
        }
    }

    /// What there is of a device; none of a processor.
    pub fn device(&self) -> Option<Device> {
        self.architecture().device()
    }

    /// The processor.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// The normalized triple.
    pub fn triple(&self) -> &str {
        &self.processor.triple
    }

    /// The name of the processor.
    pub fn cpu(&self) -> &str {
        &self.processor.cpu
    }

    /// Features on top of the processor's own: `+avx512f,-sse4a`.
    pub fn features(&self) -> &str {
        &self.processor.features
    }

    /// The architecture.
    pub fn architecture(&self) -> Architecture {
        self.processor.architecture
    }

    /// The widest vectors that code should use, in bits.
    pub fn vector_bits(&self) -> u32 {
        self.abilities.vector_bits
    }

    /// How many elements of `bytes` bytes a vector holds.
    pub fn lanes(&self, bytes: u32) -> u32 {
        (self.vector_bits() / (8 * bytes.max(1))).max(1)
    }

    /// How many vector registers there are.
    pub fn vector_registers(&self) -> u32 {
        self.architecture().vector_registers(self.vector_bits())
    }

    /// Whether a fused multiply-add is one instruction. Where it is not, it is a call into the C
    /// library for every lane, and two instructions are what to emit.
    pub fn has_fma(&self) -> bool {
        self.abilities.has_fma
    }

    /// Whether f16 is converted to f32 and back by an instruction; where it is not, it is a call
    /// of a library that is not there.
    pub fn has_half(&self) -> bool {
        self.abilities.has_half
    }

    /// Whether a float is rounded to a whole number by an instruction; likewise.
    pub fn has_rounding(&self) -> bool {
        self.abilities.has_rounding
    }

    /// Whether a float is multiplied by a power of two by an instruction of AVX-512; elsewhere by arithmetic.
    pub fn has_scaling(&self) -> bool {
        self.abilities.has_scaling
    }

    /// The data caches.
    pub fn caches(&self) -> Caches {
        self.caches
    }

    /// All features of the processor, those of its name and those that were asked for, sorted.
    pub fn all_features(&self) -> Vec<&'static str> {
        backend_for(self.architecture()).features(&self.processor)
    }

    /// Whether the processor has a feature.
    pub fn has(&self, feature: &str) -> bool {
        self.all_features().binary_search(&feature).is_ok()
    }

    /// How many threads run at once; 0 where that is not known.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// How many multiply-adds of the widest vectors one core begins in a cycle; 0 where that is not known.
    pub fn fma_units(&self) -> u32 {
        self.fma_units
    }

    /// How far float arithmetic may be rearranged.
    pub fn float(&self) -> FloatMode {
        self.float
    }

    /// Whether this process can run the code: same architecture and system. The processor is
    /// not compared, so that a narrower one of the same family can be tried.
    pub fn runs_here(&self) -> bool {
        let here = (Some(std::env::consts::ARCH), Some(std::env::consts::OS));
        platform(self.triple()) == here
    }

    /// What passes and rules read; docs/targets.md lists the keys.
    pub fn attrs(&self, cx: &Cx) -> Attrs {
        let mut attrs = vec![
            ("kind", self.kind().into()),
            ("triple", self.triple().into()),
            ("cpu", self.cpu().into()),
            ("float", self.float.name().into()),
            ("vector_bits", i64::from(self.vector_bits()).into()),
            ("vector_registers", i64::from(self.vector_registers()).into()),
        ];
        if let Some(Device { shared_bytes, block_threads, warp }) = self.device() {
            let facts =
                [("shared_bytes", shared_bytes), ("block_threads", block_threads), ("warp", warp)];
            attrs.extend(facts.map(|(key, value)| (key, i64::from(value).into())));
        }
        let Caches { l1, l2, l3 } = self.caches;
        let [threads, fma_units] = [self.threads, self.fma_units].map(u64::from);
        let caches = [("l1_bytes", l1), ("l2_bytes", l2), ("l3_bytes", l3)];
        let known = caches.into_iter().chain([("threads", threads), ("fma_units", fma_units)]);
        let known = known.filter(|(_, value)| *value > 0);
        attrs.extend(known.map(|(key, value)| (key, (value as i64).into())));
        let features: Vec<Term> =
            self.all_features().iter().map(|feature| cx.symbol(feature).into()).collect();
        attrs.push(("architecture", self.architecture().name().into()));
        attrs.push(("features", AttrValue::Term(cx.list(&features))));
        cx.attrs(&attrs)
    }
}

/// Its one text, which gives an equal target: what the list says of the processor is left out.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},cpu={}", self.triple(), self.cpu())?;
        if !self.features().is_empty() {
            write!(f, ",features={}", self.features())?;
        }
        if self.device().is_none() {
            write!(f, ",vector-width={}", self.vector_bits())?;
        }
        let listed = caches_of(self.architecture(), self.cpu()).named();
        for ((key, bytes), (_, listed)) in self.caches.named().into_iter().zip(listed) {
            if bytes != listed {
                write!(f, ",{key}={}", size_text(bytes))?;
            }
        }
        if self.threads > 0 {
            write!(f, ",threads={}", self.threads)?;
        }
        if self.fma_units != fma_units_of(self.architecture(), self.cpu()) {
            write!(f, ",fma-units={}", self.fma_units)?;
        }
        if self.float != FloatMode::default() {
            write!(f, ",float={}", self.float)?;
        }
        Ok(())
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        Target::parse(text)
    }
}

/// Systems, and the C libraries and formats on them, for which there is code.
const SYSTEMS: [&str; 5] = ["linux", "none", "wasi", "cuda", "unknown"];
const ENVIRONMENTS: [&str; 3] = ["gnu", "musl", "elf"];

/// Whether a text names a system behind its first part, and nothing that is not known.
pub(super) fn is_triple(text: &str) -> bool {
    let triple = normalized(text);
    match triple.split('-').collect::<Vec<_>>().as_slice() {
        [_, _, system] => SYSTEMS.contains(system) && text.contains('-'),
        [_, _, system, environment] => {
            SYSTEMS.contains(system) && ENVIRONMENTS.contains(environment)
        }
        _ => false,
    }
}

/// A triple with all of its parts: `x86_64-linux-gnu` leaves the vendor out, of whom nothing depends.
pub fn normalized(triple: &str) -> String {
    let parts: Vec<&str> = triple.split('-').collect();
    match parts.as_slice() {
        [architecture] => format!("{architecture}-unknown-unknown"),
        [architecture, rest @ ("linux" | "none" | "wasi"), ..] => {
            let behind: String = parts[2..].iter().map(|part| format!("-{part}")).collect();
            format!("{architecture}-unknown-{rest}{behind}")
        }
        _ => triple.to_owned(),
    }
}

/// Architecture and operating system of a triple: what must agree for code to run.
pub fn platform(triple: &str) -> (Option<&str>, Option<&str>) {
    let mut parts = triple.split('-');
    (parts.next(), parts.nth(1))
}
