//! Parts of a long text: the lines around a place.

use std::ops::Range;
use std::sync::OnceLock;

/// How much of a text goes with a place, on either side of it.
#[derive(Clone, Copy)]
pub(super) struct Margin {
    /// Whole lines besides the place's own.
    pub(super) lines: usize,
    /// Bytes, which is less where lines are very long.
    pub(super) bytes: usize,
}

/// Bytes of a place that are underlined.
const LONGEST_PLACE: usize = 400;

/// The place inside the text, on character boundaries, and not too long.
pub(super) fn clamp(text: &str, place: &Range<usize>) -> Range<usize> {
    let start = floor(text, place.start.min(text.len()));
    let end = place.end.min(start + LONGEST_PLACE).min(text.len());
    start..floor(text, end).max(start)
}

/// The whole lines around a place, less what is far away on a very long line.
pub(super) fn around(text: &str, place: Range<usize>, margin: Margin) -> Range<usize> {
    let bytes = text.as_bytes();
    let limit = floor(text, place.start.saturating_sub(margin.bytes));
    let newlines = bytes[limit..place.start].iter().enumerate().rev();
    let start = newlines
        .filter(|&(_, &byte)| byte == b'\n')
        .nth(margin.lines)
        .map_or(limit, |(offset, _)| limit + offset + 1);
    let limit = floor(text, (place.end + margin.bytes).min(text.len()));
    let newlines = bytes[place.end..limit].iter().enumerate();
    let end = newlines
        .filter(|&(_, &byte)| byte == b'\n')
        .nth(margin.lines)
        .map_or(limit, |(offset, _)| place.end + offset);
    start..end
}

/// The number of the line that holds a byte, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    Place::default().then(text, 0..at).line
}

/// A place as people say it, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    /// In characters.
    pub(super) column: usize,
}

impl Default for Place {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

impl Place {
    /// The place behind a part of a text that begins here. The part may end within a character, which then counts.
    fn then(mut self, text: &str, part: Range<usize>) -> Self {
        for &byte in &text.as_bytes()[part] {
            match byte {
                b'\n' => self = Self { line: self.line + 1, column: 1 },
                // Those that go on with a character count for nothing.
                _ => self.column += usize::from(byte & 0xc0 != 0x80),
            }
        }
        self
    }
}

/// Places of a text, so that many can be found of a long one, on long lines as well: of every so many bytes the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(OnceLock<Vec<Place>>);

/// From one place that is known to the next.
const BLOCK: usize = 1 << 10;

impl Places {
    /// The place of a byte that begins a character.
    pub(super) fn find(&self, text: &str, at: usize) -> Place {
        let known = self.0.get_or_init(|| {
            let blocks = (0..text.len() / BLOCK).map(|block| block * BLOCK..(block + 1) * BLOCK);
            let ends = blocks.scan(Place::default(), |place, block| {
                *place = place.then(text, block);
                Some(*place)
            });
            [Place::default()].into_iter().chain(ends).collect()
        });
        known[at / BLOCK].then(text, at - at % BLOCK..at)
    }
}

/// They follow from the text.
impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Places {}

/// The character boundary at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{Place, Places};

    #[test]
    fn places_are_those_that_counting_finds() {
        let text = "a\nüb€c\n\n🦀 x".repeat(300) + &"é".repeat(3000) + "\nend";
        let places = Places::default();
        for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
            let before = &text[..at];
            let line = 1 + before.matches('\n').count();
            let column = 1 + before.rsplit('\n').next().map_or(0, |line| line.chars().count());
            assert_eq!(places.find(&text, at), Place { line, column }, "{at}");
        }
        assert_eq!(Places::default().find("", 0), Place { line: 1, column: 1 });
    }
}
