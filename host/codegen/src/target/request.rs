//! The text of a target taken apart, and its names looked up.

use super::caches::parse_size;
use super::list::{NamedTarget, caches_of, fma_units_of, named};
use super::value::{is_triple, normalized, platform};
use super::{Architecture, Caches, FloatMode, Processor, TargetProblem};
use crate::backend::{Backend, Names};
use tenon_ir::suggest::several_nearest;

/// What may stand behind the head.
const KEYS: [&str; 9] =
    ["cpu", "features", "vector-width", "l1", "l2", "l3", "threads", "fma-units", "float"];

/// The text taken apart, nothing looked up yet.
#[derive(Default)]
pub(super) struct Request<'a> {
    head: Head<'a>,
    cpu: Option<&'a str>,
    features: Vec<&'a str>,
    pub(super) vector_bits: Option<u32>,
    caches: [Option<u64>; 3],
    threads: Option<u32>,
    fma_units: Option<u32>,
    pub(super) float: FloatMode,
}

/// What a text begins with.
#[derive(Default)]
enum Head<'a> {
    /// This machine.
    #[default]
    Native,
    Named(NamedTarget),
    Triple(&'a str, Architecture),
}

/// A request with everything that no code generator has to be asked for.
pub(super) struct Resolved {
    pub(super) processor: Processor,
    pub(super) caches: Caches,
    /// 0 where that is not known.
    pub(super) threads: u32,
    /// 0 where that is not known.
    pub(super) fma_units: u32,
}

impl<'a> Request<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Request<'a>, TargetProblem> {
        let mut parts = text.split(',').map(str::trim);
        let mut request =
            Request { head: Head::parse(parts.next().unwrap_or_default())?, ..Request::default() };
        for part in parts {
            match part.split_once('=') {
                Some((key, value)) => request.set(key, value)?,
                // The list of features goes on after its first comma.
                None if part.starts_with(['+', '-']) && !request.features.is_empty() => {
                    request.features.push(part);
                }
                None => return Err(TargetProblem::NoPart(part.to_owned())),
            }
        }
        Ok(request)
    }

    fn set(&mut self, key: &str, value: &'a str) -> Result<(), TargetProblem> {
        let size = || {
            let problem = || TargetProblem::NoSize { key: key.to_owned(), value: value.to_owned() };
            parse_size(value).ok_or_else(problem)
        };
        match key {
            "cpu" => self.cpu = Some(value),
            "features" => self.features.push(value),
            "vector-width" => self.vector_bits = Some(vector_width(value)?),
            "l1" => self.caches[0] = Some(size()?),
            "l2" => self.caches[1] = Some(size()?),
            "l3" => self.caches[2] = Some(size()?),
            "threads" => self.threads = Some(count(key, value)?),
            "float" => {
                let problem = || TargetProblem::NoFloatMode(value.to_owned());
                self.float = FloatMode::of(value).ok_or_else(problem)?;
            }
            "fma-units" => self.fma_units = Some(count(key, value)?),
            key => {
                let (near, keys) = (near(key, KEYS.into_iter()), KEYS.join(", "));
                return Err(TargetProblem::NoKey { key: key.to_owned(), near, keys });
            }
        }
        Ok(())
    }

    /// Fills in defaults and checks every name.
    pub(super) fn resolve(&self, backend: &dyn Backend) -> Result<Resolved, TargetProblem> {
        let here = backend.machine()?;
        let (triple, architecture) = match &self.head {
            Head::Native => (here.triple.clone(), here.architecture),
            Head::Named(line) => known_triple(line.triple)?,
            Head::Triple(triple, architecture) => (normalized(triple), *architecture),
        };
        let is_native =
            self.cpu == Some("native") || (self.cpu.is_none() && matches!(self.head, Head::Native));
        if is_native && platform(&triple) != platform(&here.triple) {
            return Err(TargetProblem::NotThisMachine(here.triple));
        }
        let names = backend.names(architecture);
        let names = names.ok_or(TargetProblem::NoBackend(architecture))?;
        let (baseline, always) = architecture.baseline();
        let (cpu, own_features) = match (&self.head, self.cpu) {
            _ if is_native => (here.cpu, here.features.as_str()),
            (Head::Named(line), None) => (line.cpu.to_owned(), line.features),
            (_, Some(cpu)) => (checked_processor(cpu, architecture, &names)?, ""),
            (_, None) => (baseline.to_owned(), ""),
        };
        let given = self.features.iter().copied().filter(|feature| !feature.is_empty());
        given.clone().try_for_each(|feature| check_feature(feature, architecture, &names))?;
        // A processor that was asked for by name has what it has.
        let always = if is_native || cpu != baseline { "" } else { always };
        let mut features: Vec<&str> = Vec::new();
        for feature in [always, own_features].iter().flat_map(|list| list.split(',')).chain(given) {
            if !feature.is_empty() && !features.contains(&feature) {
                features.push(feature);
            }
        }
        let caches = match is_native {
            true => Caches::of_this_machine(),
            false => caches_of(architecture, &cpu),
        };
        let threads = if is_native { threads_here() } else { 0 };
        let [l1, l2, l3] = self.caches;
        Ok(Resolved {
            caches: Caches {
                l1: l1.unwrap_or(caches.l1),
                l2: l2.unwrap_or(caches.l2),
                l3: l3.unwrap_or(caches.l3),
            },
            threads: self.threads.unwrap_or(threads),
            fma_units: self.fma_units.unwrap_or(fma_units_of(architecture, &cpu)),
            processor: Processor { triple, architecture, cpu, features: features.join(",") },
        })
    }
}

impl<'a> Head<'a> {
    fn parse(text: &'a str) -> Result<Head<'a>, TargetProblem> {
        match text {
            "" => return Err(TargetProblem::Empty),
            "native" | "llvm" | "cpu" => return Ok(Head::Native),
            _ => {}
        }
        if let Some(line) = named().find(|line| line.name == text) {
            return Ok(Head::Named(line));
        }
        if let Some(architecture) = Architecture::of(text).filter(|_| is_triple(text)) {
            return Ok(Head::Triple(text, architecture));
        }
        let names = named().map(|line| line.name).chain(["native"]);
        Err(TargetProblem::NoTarget { name: text.to_owned(), near: near(text, names) })
    }
}

fn known_triple(triple: &str) -> Result<(String, Architecture), TargetProblem> {
    let no_target = || TargetProblem::NoTarget { name: triple.to_owned(), near: String::new() };
    Ok((normalized(triple), Architecture::of(triple).ok_or_else(no_target)?))
}

fn vector_width(bits: &str) -> Result<u32, TargetProblem> {
    match bits {
        "128" => Ok(128),
        "256" => Ok(256),
        "512" => Ok(512),
        _ => Err(TargetProblem::NoWidth(bits.to_owned())),
    }
}

fn count(key: &str, value: &str) -> Result<u32, TargetProblem> {
    let count = value.parse().ok().filter(|&count| count > 0);
    let problem = || TargetProblem::NoCount { key: key.to_owned(), value: value.to_owned() };
    count.ok_or_else(problem)
}

fn threads_here() -> u32 {
    std::thread::available_parallelism().map_or(0, |threads| threads.get() as u32)
}

fn checked_processor(
    name: &str,
    architecture: Architecture,
    names: &Names,
) -> Result<String, TargetProblem> {
    if names.processors.contains(&name) {
        return Ok(name.to_owned());
    }
    let near = near(name, names.processors.iter().copied());
    Err(TargetProblem::NoProcessor { architecture, name: name.to_owned(), near })
}

fn check_feature(
    feature: &str,
    architecture: Architecture,
    names: &Names,
) -> Result<(), TargetProblem> {
    let Some(name) = feature.strip_prefix(['+', '-']) else {
        return Err(TargetProblem::NoSign(feature.to_owned()));
    };
    if names.features.contains(&name) {
        return Ok(());
    }
    let near = near(name, names.features.iter().copied());
    Err(TargetProblem::NoFeature { architecture, name: name.to_owned(), near })
}

/// The names that may be meant, as they follow a message.
fn near<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> String {
    match several_nearest(name, names, 3).as_slice() {
        [] => String::new(),
        [nearest] => format!("; did you mean `{nearest}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
