//! Targets that have names.

use super::Architecture;
use super::caches::{Caches, parse_size};

/// The list, for people to read and to add to.
const TEXT: &str = include_str!("targets.txt");

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NamedTarget {
    pub name: &'static str,
    pub triple: &'static str,
    pub cpu: &'static str,
    /// Empty where the processor has what is meant by itself.
    pub features: &'static str,
    pub caches: Caches,
    /// Multiply-adds of vectors that a core begins in a cycle; 0 where that is not known.
    pub fma_units: u32,
    pub about: &'static str,
}

/// All targets of the list, in its order.
pub fn named() -> impl Iterator<Item = NamedTarget> {
    TEXT.lines().filter(|line| !line.starts_with('#')).filter_map(read)
}

/// The line of a processor, where the list has it.
fn line_of(architecture: Architecture, cpu: &str) -> Option<NamedTarget> {
    let is_it =
        |line: &NamedTarget| line.cpu == cpu && Architecture::of(line.triple) == Some(architecture);
    named().find(is_it)
}

/// The caches of a processor, where the list has it.
pub(super) fn caches_of(architecture: Architecture, cpu: &str) -> Caches {
    line_of(architecture, cpu).map_or(Caches::default(), |line| line.caches)
}

/// How many multiply-adds of vectors a core begins in a cycle; 0 where the list does not say.
pub(super) fn fma_units_of(architecture: Architecture, cpu: &str) -> u32 {
    line_of(architecture, cpu).map_or(0, |line| line.fma_units)
}

fn read(line: &'static str) -> Option<NamedTarget> {
    let mut rest = line;
    let mut word = || {
        let (word, behind) = rest.split_once(' ')?;
        rest = behind.trim_start();
        Some(if word == "-" { "" } else { word })
    };
    let [name, triple, cpu, features] = [word()?, word()?, word()?, word()?];
    let [l1, l2, l3] = [word()?, word()?, word()?].map(|size| parse_size(size).unwrap_or(0));
    let (caches, fma_units) = (Caches { l1, l2, l3 }, word()?.parse().unwrap_or(0));
    Some(NamedTarget { name, triple, cpu, features, caches, fma_units, about: rest })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_line_is_read_and_every_name_is_its_own() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#')).count();
        let names: HashSet<&str> = named().map(|line| line.name).collect();
        assert_eq!((named().count(), names.len()), (lines, lines));
        assert!(named().all(|line| !line.about.is_empty()));
    }

    #[test]
    fn every_architecture_is_there() {
        let of = |line: NamedTarget| Architecture::of(line.triple).expect("an architecture");
        let found: HashSet<Architecture> = named().map(of).collect();
        assert_eq!(found.len(), Architecture::ALL.len());
    }
}
