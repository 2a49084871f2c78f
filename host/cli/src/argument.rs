//! Arguments that are more than one text.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use tenon_compiler::plan::{DimRange, DimRanges};
use tenon_compiler::session::{Dims, Validation};

/// What is wrong with an argument, and how it is written.
#[derive(Debug, Error)]
pub(super) enum ArgumentError {
    #[error("expected NAME=VALUE, such as batch=1")]
    NoDim,
    #[error("`{0}` is no integer that is not negative")]
    NotADim(String),
    #[error("`{0}` is no range: expected 1..512, both ends included, or 1.. without an end")]
    NotARange(String),
    #[error("expected a time, such as 90s, 10m or 2h")]
    NoTime,
    #[error("`{0}` is no part: expected a number such as 0.001")]
    NotAPart(String),
    #[error("expected NAME=FILE.npy")]
    NoInput,
    #[error("a seed is an integer that is not negative; `compiled` compares compiled code")]
    NoSeed,
}

/// Parses a time: `90s`, `10m`, `2h`; a number alone is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, ArgumentError> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let found = units.into_iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let seconds =
        found.and_then(|(number, scale)| Some(number.trim().parse::<f64>().ok()? * scale));
    let is_time = |seconds: &f64| (0.0..=1e9).contains(seconds);
    seconds.filter(is_time).map(Duration::from_secs_f64).ok_or(ArgumentError::NoTime)
}

/// Parses `-D NAME=VALUE`.
pub(super) fn parse_dim(text: &str) -> Result<(String, i64), ArgumentError> {
    let (name, value) = text.split_once('=').ok_or(ArgumentError::NoDim)?;
    match value.trim().parse() {
        Ok(value) if value >= 0 => Ok((name.trim().to_owned(), value)),
        _ => Err(ArgumentError::NotADim(value.to_owned())),
    }
}

/// Parses a part of something: a number that is finite, and not below zero.
pub(super) fn parse_part(text: &str) -> Result<f64, ArgumentError> {
    let part = text.trim().parse().ok().filter(|part: &f64| part.is_finite() && *part >= 0.0);
    part.ok_or_else(|| ArgumentError::NotAPart(text.to_owned()))
}

/// What a dimension is: a number, or any of a range.
#[derive(Clone, Copy, Debug)]
pub(super) enum DimValue {
    Number(i64),
    Range(DimRange),
}

/// Parses `-D NAME=VALUE` and `-D NAME=LEAST..MOST`.
pub(super) fn parse_dim_or_range(text: &str) -> Result<(String, DimValue), ArgumentError> {
    let (name, value) = text.split_once('=').ok_or(ArgumentError::NoDim)?;
    let Some((least, most)) = value.split_once("..") else {
        return parse_dim(text).map(|(name, value)| (name, DimValue::Number(value)));
    };
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|&number| number >= 0);
    let wrong = || ArgumentError::NotARange(value.to_owned());
    let least = number(least).ok_or_else(wrong)?;
    let most = match most.trim() {
        "" => None,
        most => Some(number(most).filter(|&most| most >= least).ok_or_else(wrong)?),
    };
    Ok((name.trim().to_owned(), DimValue::Range(DimRange { least, most })))
}

/// The numbers and the ranges among the values of dimensions.
pub(super) fn numbers_and_ranges(values: &[(String, DimValue)]) -> (Dims, DimRanges) {
    let (mut numbers, mut ranges) = (Dims::new(), DimRanges::new());
    for (name, value) in values {
        match *value {
            DimValue::Number(number) => drop(numbers.insert(name.clone(), number)),
            DimValue::Range(range) => drop(ranges.insert(name.clone(), range)),
        }
    }
    (numbers, ranges)
}

/// Parses `--input NAME=FILE.npy`.
pub(super) fn parse_input(text: &str) -> Result<(String, PathBuf), ArgumentError> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), file.into()))
        }
        _ => Err(ArgumentError::NoInput),
    }
}

/// What is compared: `compiled`, or a seed.
pub(super) fn parse_validation(text: &str) -> Result<Validation, ArgumentError> {
    match text {
        "compiled" => Ok(Validation::Compiled),
        _ => text.parse().map(Validation::Passes).map_err(|_| ArgumentError::NoSeed),
    }
}
