//! The file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use crate::record::{Best, Found, Keys, Line};

/// A longer line is none of ours: a trace has some thousand bytes.
const LONGEST_LINE: usize = 1 << 20;

/// A database that was read. What was appended since is not seen.
#[derive(Debug, Default)]
pub struct Database {
    bytes: Vec<u8>,
    /// Lines by the program that they are of, its anchor, and its sizes.
    places: [HashMap<Box<str>, Vec<Range<usize>>>; 3],
    passed_over: usize,
}

/// How well what was found fits a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is of the very program: its trace applies.
    Program,
    /// It is of one with the same anchor: a rule may take its knobs.
    Anchor,
    /// It is of one whose anchor has sizes of the same order; likewise.
    Sizes,
}

impl Database {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read. Lines that say nothing are counted, see [`Database::passed_over`].
    pub fn read(path: &Path) -> io::Result<Self> {
        // A device or a pipe may have no end.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        Ok(Self::of(std::fs::read(path)?))
    }

    /// What a file with this content is.
    pub fn of(bytes: Vec<u8>) -> Self {
        let mut database = Self { bytes: Vec::new(), ..Self::default() };
        let mut start = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let range = start..start + line.len();
            start = range.end;
            database.place(&bytes, range);
        }
        Self { bytes, ..database }
    }

    /// Notes a line by its keys.
    fn place(&mut self, bytes: &[u8], range: Range<usize>) {
        let line = &bytes[range.clone()];
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let keys = (line.len() <= LONGEST_LINE && line.ends_with(b"}\n")).then(|| keys_of(line));
        let Some(keys) = keys.flatten() else {
            self.passed_over += 1;
            return;
        };
        for (places, key) in self.places.iter_mut().zip(keys) {
            if !key.is_empty() {
                places.entry(key.into()).or_default().push(range.clone());
            }
        }
    }

    /// How many lines are none of this version: of a newer one, torn, or something else.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// The fastest schedule that is known of a program on a target, or of one that is near it, and how well it fits.
    pub fn best(&self, keys: &Keys, target: &str) -> Option<(Fit, Best)> {
        let wanted =
            [(Fit::Program, &keys.program), (Fit::Anchor, &keys.anchor), (Fit::Sizes, &keys.sizes)];
        wanted.into_iter().zip(&self.places).find_map(|((fit, key), places)| {
            let best = best_of(self.lines(places.get(key.as_str())?, target));
            // Knobs are all that another program can use.
            let best = best.filter(|best| fit == Fit::Program || !best.knobs.is_empty())?;
            Some((fit, best))
        })
    }

    /// What was found of a program on a target, in the order of the file.
    pub fn found(&self, program: &str, target: &str) -> Vec<Line> {
        let places = self.places[0].get(program).map_or(&[][..], Vec::as_slice);
        self.lines(places, target).collect()
    }

    fn lines(&self, places: &[Range<usize>], target: &str) -> impl Iterator<Item = Line> {
        let lines = places.iter().filter_map(|range| Line::parse(&self.bytes[range.clone()]));
        lines.filter(move |line| line.target == target)
    }
}

/// The fastest of schedules. Of one schedule the last time counts.
fn best_of(lines: impl Iterator<Item = Line>) -> Option<Best> {
    let mut known: HashMap<(String, String), Best> = HashMap::new();
    for line in lines {
        if let Found::Best(best) = line.found {
            known.insert((line.keys.program, best.schedule.clone()), best);
        }
    }
    // By what it gains: programs of one anchor take different times.
    let gain = |best: &Best| best.ms / best.default_ms;
    let is_before = |a: &Best, b: &Best| (gain(a), &a.schedule) < (gain(b), &b.schedule);
    known.into_values().reduce(|a, b| if is_before(&b, &a) { b } else { a })
}

/// Program, anchor and sizes of a line, by where they stand; nothing is parsed.
fn keys_of(line: &[u8]) -> Option<[&str; 3]> {
    let mut rest = std::str::from_utf8(line).ok()?.strip_prefix("{\"v\":1,")?;
    let mut keys = [""; 3];
    for (key, name) in keys.iter_mut().zip(["program", "anchor", "sizes"]) {
        let value = rest.strip_prefix('"')?.strip_prefix(name)?.strip_prefix("\":\"")?;
        (*key, rest) = value.split_once("\",")?;
    }
    Some(keys)
}

/// Appends to a database. Several may append to one file at a time.
#[derive(Debug)]
pub struct Appender {
    file: File,
}

impl Appender {
    /// Opens a file, or makes an empty one.
    ///
    /// # Errors
    /// When it can be neither read nor written, or is something else: a model, say, that was named by mistake.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut first = [0];
        match file.read(&mut first)? {
            1 if !matches!(first[0], b'{' | b'\n') => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "it holds something else"))
            }
            _ => Ok(Self { file }),
        }
    }

    /// Appends lines, all in one write. What another writer left half done ends before them.
    ///
    /// # Errors
    /// When they cannot be written whole.
    pub fn append<'a>(&mut self, lines: impl IntoIterator<Item = &'a Line>) -> io::Result<()> {
        let mut text: String = lines.into_iter().map(Line::to_text).collect();
        self.file.lock()?;
        let appended = self.is_torn().and_then(|is_torn| {
            if is_torn {
                text.insert(0, '\n');
            }
            self.file.write_all(text.as_bytes())
        });
        self.file.unlock()?;
        appended
    }

    /// Whether the last line has no end.
    fn is_torn(&mut self) -> io::Result<bool> {
        if self.file.seek(SeekFrom::End(0))? == 0 {
            return Ok(false);
        }
        self.file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        self.file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }
}

#[cfg(test)]
mod tests;
