//! The texts that a context has read, so that a node's place in one can be told as file and line.
//!
//! All texts stand one behind the other in one space of offsets, so a place is a number that needs no text beside it.

use std::sync::{Arc, PoisonError, RwLock};

use tenon_plugin_api::ir::{Context, NodeSource};

use super::Cx;

/// Offsets end here: the next bit says that a source is a term.
const END: u32 = (1 << 31) - 2;

/// The texts of a context.
#[derive(Default)]
pub(super) struct Texts(RwLock<Vec<Text>>);

struct Text {
    /// What messages call it; none where nobody but its reader knows it.
    name: Option<Arc<str>>,
    base: u32,
    len: u32,
    /// Where lines begin; none where there is no name.
    lines: Vec<u32>,
}

/// A place in a text.
#[derive(Clone, Debug)]
struct Place {
    name: Option<Arc<str>>,
    line: usize,
    /// Bytes from the beginning of the text.
    at: u32,
}

impl Texts {
    /// Adds a text; where its offsets begin, and nothing when there is no room for it.
    fn add(&self, name: Option<&str>, text: &str) -> Option<u32> {
        let mut texts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let base = texts.last().map_or(0, |last| last.base + last.len + 1);
        let len = u32::try_from(text.len()).ok()?;
        base.checked_add(len).filter(|&end| end <= END)?;
        let lines = match name {
            Some(_) => std::iter::once(0).chain(line_starts(text)).collect(),
            None => Vec::new(),
        };
        texts.push(Text { name: name.map(Arc::from), base, len, lines });
        Some(base)
    }

    fn place(&self, offset: u32) -> Option<Place> {
        let texts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let number = texts.partition_point(|text| text.base <= offset).checked_sub(1)?;
        let text = &texts[number];
        let at = offset - text.base;
        let line = text.lines.partition_point(|&start| start <= at);
        (at <= text.len).then(|| Place { name: text.name.clone(), line, at })
    }
}

fn line_starts(text: &str) -> impl Iterator<Item = u32> {
    let is_end = |(_, byte): &(usize, u8)| *byte == b'\n';
    text.bytes().enumerate().filter(is_end).map(|(at, _)| at as u32 + 1)
}

impl Cx {
    /// Takes note of a text that is about to be read. Messages call it `name`, where there is one. What is given back
    /// is where its offsets begin in [`NodeSource`]; nothing where too many bytes were read, and then places in it stay unknown.
    pub fn add_text(&self, name: Option<&str>, text: &str) -> Option<u32> {
        self.texts().add(name, text)
    }

    /// The byte of its own text where a node was read; nothing where it came from no text.
    pub fn offset_of(&self, source: NodeSource) -> Option<usize> {
        Some(self.texts().place(source.place()?)?.at as usize)
    }

    /// What a node came from as a person reads it: `/layer1/conv1/Conv`, `model.ir:12`. Empty where nothing is known.
    pub fn source_text(&self, source: NodeSource) -> String {
        source.text(self.terms(), |at| self.place_text(at))
    }

    /// A place as `model.ir:12`.
    pub fn place_text(&self, source: NodeSource) -> Option<String> {
        let place = self.texts().place(source.place()?)?;
        Some(format!("{}:{}", place.name?, place.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_several_texts_are_told_apart() {
        let cx = Cx::new();
        let first = cx.add_text(Some("a.ir"), "one\ntwo\n").unwrap();
        let hidden = cx.add_text(None, "one\n").unwrap();
        let last = cx.add_text(Some("b.ir"), "").unwrap();
        let text = |offset: u32| cx.source_text(NodeSource(offset + 1));
        assert_eq!([text(first), text(first + 4), text(first + 7)], ["a.ir:1", "a.ir:2", "a.ir:2"]);
        assert_eq!(text(hidden + 1), "");
        assert_eq!(cx.offset_of(NodeSource(hidden + 2)), Some(1));
        assert_eq!(text(last), "b.ir:1");
        assert_eq!(text(last + 1), "");
    }

    #[test]
    fn several_sources_are_one_that_is_bounded() {
        let cx = Cx::new();
        let at = cx.add_text(Some("a.ir"), "x").unwrap();
        let named = |number: usize| NodeSource::named(&cx, &format!("n{number}"), "");
        let place = NodeSource(at + 1);
        let two = NodeSource::union(&cx, [named(1), place, named(1), NodeSource::NONE]);
        assert_eq!(cx.source_text(two), "n1, a.ir:1");
        let many = NodeSource::union(&cx, [two].into_iter().chain((0..20).map(named)));
        assert_eq!(cx.source_text(many), "n1, a.ir:1, n0, n2, n3, n4, n5, n6 and 13 more");
        assert_eq!(NodeSource::union(&cx, [many, NodeSource::NONE]), many);
        assert_eq!(NodeSource::union(&cx, [place, place]), place);
        let scoped = NodeSource::named(&cx, "node_conv2d", "layer1.conv1");
        assert_eq!(cx.source_text(scoped), "node_conv2d (layer1.conv1)");
        let long = "é".repeat(1000);
        assert_eq!(cx.source_text(NodeSource::named(&cx, &long, "")).chars().count(), 100);
    }
}
