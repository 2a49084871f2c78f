//! Files that were mangled: whatever reads them says what is wrong, or reads them; nothing panics.
//!
//! Each kind of files has right ones, and a seed mangles one of them: bytes change, pieces go, come twice, or come from
//! another file; numbers become extremes, words change places with words, and fields and headers change in messages that
//! are otherwise whole. `TENON_CAMPAIGN=SECONDS` mangles more, from the seed that `TENON_SEED` says, and prints how many it
//! were; the test alone does some hundreds of each. `fuzz/` has libFuzzer look for files with the same properties.

#![allow(unreachable_pub, reason = "the modules are those of the fuzzers as well")]

mod files;
mod kinds;
mod mangle;
mod readers;

use std::env;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kinds::{KINDS, Kind};
use libtest_mimic::{Arguments, Failed, Trial};
use tenon_operators as _;

/// Files that a trial mangles.
const FILES: u64 = 400;

fn main() -> ExitCode {
    if let Some(seconds) = env::var("TENON_CAMPAIGN").ok().and_then(|text| text.parse().ok()) {
        return campaign(Duration::from_secs(seconds));
    }
    let trial = |kind: &'static Kind| {
        Trial::test(kind.name, move || {
            let files = right(kind);
            (0..FILES).try_for_each(|seed| run(kind, &files, seed))
        })
    };
    libtest_mimic::run(&Arguments::from_args(), KINDS.iter().map(trial).collect()).exit_code()
}

/// Goes on until the time is over, with each kind in turn.
fn campaign(time: Duration) -> ExitCode {
    let first = env::var("TENON_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(FILES);
    let corpora: Vec<Vec<Vec<u8>>> = KINDS.iter().map(right).collect();
    let (begin, mut seed, mut failures) = (Instant::now(), first, 0);
    while begin.elapsed() < time {
        for (kind, files) in KINDS.iter().zip(&corpora) {
            if let Err(problem) = run(kind, files, seed) {
                failures += 1;
                println!("{}", problem.message().unwrap_or("it fails"));
            }
        }
        seed += 1;
    }
    println!(
        "{} files, seeds {first} to {seed}; {failures} fail",
        (seed - first) * KINDS.len() as u64
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Right files; but of those that lie in folders some are wrong, so that messages can be seen.
fn right(kind: &Kind) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_right =
        |(at, file): (usize, &Vec<u8>)| assert!((kind.read)(file), "{}: {at}", kind.name);
    (kind.made)(root).iter().enumerate().for_each(is_right);
    kind.files(root)
}

fn run(kind: &Kind, files: &[Vec<u8>], seed: u64) -> Result<(), Failed> {
    let bytes = mangle::mangled(files, seed, kind.change);
    catch_unwind(|| (kind.read)(&bytes))
        .map(drop)
        .map_err(|_| format!("{}: seed {seed}: it panics", kind.name).into())
}
