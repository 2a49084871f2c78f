//! `plugins test`: the conformance kit, and its report.

use std::path::PathBuf;

use clap::Args;

use super::complete;
use super::output::{Failure, print, print_json, table};
use super::{Global, this_program};
use tenon_compiler::conformance::{Check, Effort, Outcome, Report, examine};
use tenon_compiler::target::Target;

#[derive(Args)]
pub(super) struct TestArgs {
    /// A shared library, or the id of a plugin
    #[arg(value_name = "FILE|ID")]
    plugin: PathBuf,
    /// Where random modules and inputs come from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many random modules each pass is tried on
    #[arg(long, default_value_t = 20, value_name = "N")]
    modules: usize,
    /// Seconds that a pass may run over one of them, or an operator or rule over a call
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// The target that passes are told of
    #[arg(long, default_value = "native", add = complete::targets())]
    target: String,
}

pub(super) fn test(global: &Global, args: &TestArgs) -> Result<(), Failure> {
    let library = super::plugins::file_of(global, &args.plugin)?;
    let config = global.config_if_any()?;
    let target = Target::parse(&args.target)?;
    let effort = Effort { seed: args.seed, modules: args.modules, time_limit: args.time_limit };
    let report = examine(&config, &library, &this_program()?, &target, effort)?;
    match global.json {
        true => print_json(&report)?,
        false => print(text(&report))?,
    }
    match report.count(Outcome::Failed) {
        0 => Ok(()),
        1 => Err(Failure::new("a check failed")),
        count => Err(Failure::new(format!("{count} checks failed"))),
    }
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{} {}\nfile    {}\nsha256  {}\ntenon   {}, seed {}\n",
        report.plugin, report.version, report.file, report.sha256, report.tenon, report.seed
    );
    for part in report.checks.chunk_by(|one, other| one.pass == other.pass) {
        text.push('\n');
        text.extend(part[0].pass.iter().map(|pass| format!("{pass}\n")));
        text.push_str(&table(&part.iter().flat_map(rows).collect::<Vec<_>>()));
    }
    let [passed, failed, skipped] =
        [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(|outcome| report.count(outcome));
    text + &format!("\n{passed} passed, {failed} failed, {skipped} skipped\n")
}

/// A line of the report, and one more for each further detail.
fn rows(check: &Check) -> Vec<Vec<String>> {
    let word = match check.outcome {
        Outcome::Passed => "  ok",
        Outcome::Failed => "  FAILED",
        Outcome::Skipped => "  skipped",
    };
    let mut details = check.details.iter();
    let first = details.next().cloned().unwrap_or_default();
    let first = vec![word.to_owned(), check.check.to_owned(), first];
    let more = details.map(|detail| vec![String::new(), String::new(), detail.clone()]);
    [first].into_iter().chain(more).collect()
}
