//! The targets of one library: code for each, of which the best is taken that a machine can run.

use std::fmt;
use std::str::FromStr;

use super::cpuid::{demand, is_asked};
use super::value::platform;
use super::{Architecture, Target, TargetError, TargetProblem, cpu_needs};

/// How many there may be at most.
const MOST: usize = 16;

/// What stands between targets.
const OR: char = '/';

/// One target, or several processors of x86-64 and one system, the best first.
///
/// Of those that a machine can run the one is best that asks for most instructions, and where two ask for as many, the one with
/// wider vectors, or else the one that was named first. `x86-64-v2/x86-64-v3` is the text of two.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Targets(Vec<Target>);

impl Targets {
    /// Parses targets: one, or several with a `/` between.
    pub fn parse(text: &str) -> Result<Targets, TargetError> {
        let all = text.split(OR).map(|part| Target::parse(part.trim()));
        Targets::of(all.collect::<Result<_, _>>()?)
    }

    /// Those of a list.
    ///
    /// # Errors
    /// When it is empty, when one is there twice, or when one is none that code can ask for when a library is loaded.
    pub fn of(mut all: Vec<Target>) -> Result<Targets, TargetError> {
        if let [_, _, ..] = all.as_slice() {
            check(&all)?;
            // Those that are equal in this stay in their order.
            all.sort_by_key(|target| std::cmp::Reverse((demand(target), target.vector_bits())));
        }
        match all.is_empty() {
            true => Err(TargetError::new("", TargetProblem::Empty)),
            false => Ok(Targets(all)),
        }
    }

    /// All, the best first.
    pub fn all(&self) -> &[Target] {
        &self.0
    }

    /// The only one.
    ///
    /// # Errors
    /// When there are several.
    pub fn one(&self) -> Result<&Target, TargetError> {
        match self.all() {
            [target] => Ok(target),
            _ => Err(TargetError::new(&self.to_string(), TargetProblem::Several)),
        }
    }

    /// The best that this machine runs; the only one, whatever it is.
    ///
    /// # Errors
    /// When it runs none of several.
    pub fn here(&self) -> Result<&Target, TargetError> {
        if let [target] = self.all() {
            return Ok(target);
        }
        let here = Target::native()?.all_features();
        let runs = |target: &&Target| {
            let asked = target.all_features().into_iter().filter(|feature| is_asked(feature));
            target.runs_here() && asked.into_iter().all(|feature| here.contains(&feature))
        };
        let none = || TargetError::new(&self.to_string(), TargetProblem::NoneRunsHere);
        self.all().iter().find(runs).ok_or_else(none)
    }
}

/// Whether code can find out which of several targets a machine can run.
fn check(all: &[Target]) -> Result<(), TargetError> {
    if all.len() > MOST {
        let text = Targets(all.to_vec()).to_string();
        return Err(TargetError::new(&text, TargetProblem::TooMany(MOST)));
    }
    for (at, target) in all.iter().enumerate() {
        let error = |problem| Err(TargetError::new(&target.to_string(), problem));
        if target.architecture() != Architecture::X86_64 {
            return error(TargetProblem::NoChoice(target.architecture()));
        }
        if platform(target.triple()) != platform(all[0].triple()) {
            return error(TargetProblem::OtherSystem(all[0].triple().to_owned()));
        }
        if all[..at].contains(target) {
            return error(TargetProblem::Twice);
        }
        cpu_needs(target)?;
    }
    Ok(())
}

impl From<Target> for Targets {
    fn from(target: Target) -> Targets {
        Targets(vec![target])
    }
}

impl From<&Target> for Targets {
    fn from(target: &Target) -> Targets {
        target.clone().into()
    }
}

impl From<&Targets> for Targets {
    fn from(targets: &Targets) -> Targets {
        targets.clone()
    }
}

/// Its text, which gives equal targets.
impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, target) in self.0.iter().enumerate() {
            if at > 0 {
                write!(f, "{OR}")?;
            }
            write!(f, "{target}")?;
        }
        Ok(())
    }
}

impl FromStr for Targets {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Targets, TargetError> {
        Targets::parse(text)
    }
}
