//! What a database keeps, and what it does with what it cannot read.

use std::collections::BTreeMap;
use std::io::Write;

use super::*;
use crate::digest::digest;

fn keys(program: &str) -> Keys {
    Keys { program: digest(program.as_bytes()), anchor: digest(b"a"), sizes: digest(b"s") }
}

fn target() -> String {
    digest(b"target")
}

fn best(schedule: &str, ms: f64) -> Best {
    Best {
        schedule: digest(schedule.as_bytes()),
        op: "matmul".to_owned(),
        rule: "acme::product".to_owned(),
        knobs: BTreeMap::from([("rows".to_owned(), 6)]),
        trace: schedule.to_owned(),
        ms,
        default_ms: 2.0,
        judge: "evaluator".to_owned(),
        cpu: "znver4".to_owned(),
        tenon: "1.0.0".to_owned(),
    }
}

fn line(program: &str, found: Found) -> Line {
    Line::new(&keys(program), &target(), found)
}

fn text(lines: &[Line]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.to_text().into_bytes()).collect()
}

#[test]
fn the_fastest_of_a_program_is_found() {
    let times = [("x", 1.5), ("y", 1.0), ("z", 1.2)];
    let lines = times.map(|(name, ms)| line("p", Found::Best(best(name, ms))));
    let database = Database::of(text(&lines));
    let (fit, found) = database.best(&keys("p"), &target()).expect("it is known");
    assert_eq!((fit, found.trace.as_str()), (Fit::Program, "y"));
    assert!(database.best(&keys("p"), &digest(b"another target")).is_none());
}

/// S058: files merge by being joined, and the fastest of both is the answer.
#[test]
fn joined_files_are_one() {
    let mut both = text(&[line("p", Found::Best(best("x", 1.0)))]);
    both.extend(text(&[line("p", Found::Best(best("y", 0.5)))]));
    let (_, found) = Database::of(both).best(&keys("p"), &target()).expect("it is known");
    assert_eq!(found.trace, "y");
}

#[test]
fn another_program_with_the_same_anchor_gets_knobs() {
    let database = Database::of(text(&[line("p", Found::Best(best("x", 1.0)))]));
    let (fit, _) = database.best(&keys("q"), &target()).expect("the anchor is known");
    assert_eq!(fit, Fit::Anchor);
    let other = Keys { anchor: digest(b"b"), ..keys("q") };
    let (fit, _) = database.best(&other, &target()).expect("the sizes are known");
    assert_eq!(fit, Fit::Sizes);
    let without = Best { knobs: BTreeMap::new(), ..best("x", 1.0) };
    let database = Database::of(text(&[line("p", Found::Best(without))]));
    assert!(database.best(&keys("q"), &target()).is_none(), "a trace is of its program");
}

#[test]
fn of_one_schedule_the_last_time_counts() {
    let times = [("x", 1.0), ("y", 1.2), ("x", 1.5)];
    let lines = times.map(|(name, ms)| line("p", Found::Best(best(name, ms))));
    let (_, found) = Database::of(text(&lines)).best(&keys("p"), &target()).expect("it is known");
    assert_eq!(found.trace, "y");
}

/// A torn line, one of a newer version, and what is no line at all cost nothing but themselves.
#[test]
fn what_cannot_be_read_is_passed_over_and_counted() {
    let good = line("p", Found::Best(best("x", 1.0))).to_text();
    let newer = good.replacen("\"v\":1", "\"v\":2", 1);
    let torn = &good[..good.len() / 2];
    let file = format!("{newer}\n\nhello\n\u{0}\u{1}\n{good}{torn}");
    let database = Database::of(file.into_bytes());
    assert_eq!(database.passed_over(), 4);
    assert!(database.best(&keys("p"), &target()).is_some());
}

/// Lines whose keys stand where they should and that say nonsense behind them are no answers.
#[test]
fn lines_that_say_nonsense_are_no_answers() {
    let good = line("p", Found::Best(best("x", 1.0))).to_text();
    for (from, to) in [
        ("\"ms\":1.0", "\"ms\":-1.0"),
        ("\"ms\":1.0", "\"ms\":0.0"),
        ("\"ms\":1.0", "\"ms\":\"fast\""),
        ("\"ms\":1.0", "\"ms\":1e999"),
        ("\"found\":\"best\"", "\"found\":\"better\""),
        ("\"rows\":6", "\"rows\":6.5"),
        ("\"rows\":6", "\"rows\":99999999999999999999"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from} stands in the line");
        let database = Database::of(bad.into_bytes());
        assert!(database.best(&keys("p"), &target()).is_none(), "{to}");
    }
}

#[test]
fn what_another_writer_left_half_done_ends_before_what_is_appended() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tuned.jsonl");
    let good = line("p", Found::Best(best("x", 1.0)));
    let torn = good.to_text();
    std::fs::write(&path, &torn[..torn.len() - 10]).expect("written");
    Appender::open(&path).and_then(|mut file| file.append([&good])).expect("appended");
    let database = Database::read(&path).expect("read");
    assert_eq!(database.passed_over(), 1);
    assert_eq!(database.found(&keys("p").program, &target()), [good]);
}

/// Eight writers at once: no line is lost, none is mixed with another.
#[test]
fn several_writers_lose_nothing() {
    const LINES: usize = 200;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tuned.jsonl");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let mut file = Appender::open(path).expect("opened");
                for number in 0..LINES {
                    let schedule = digest(format!("{writer} {number}").as_bytes());
                    let tried = Found::Tried { schedule, ms: 1.0 };
                    file.append([&line("p", tried)]).expect("appended");
                }
            });
        }
    });
    let database = Database::read(&path).expect("read");
    assert_eq!(
        (database.passed_over(), database.found(&keys("p").program, &target()).len()),
        (0, 8 * LINES)
    );
}

/// A folder, a file without permission to write, a full disk are errors and no panics.
#[test]
fn what_cannot_be_opened_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(Appender::open(folder.path()).is_err());
    assert!(Database::read(&folder.path().join("none")).is_err());
    if let Ok(mut full) = File::options().append(true).open("/dev/full") {
        assert!(full.write_all(b"x").is_err());
    }
}
