//! Parts of a long text: the lines around a place.

use std::ops::Range;

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
    1 + text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count()
}

/// The character boundary at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
