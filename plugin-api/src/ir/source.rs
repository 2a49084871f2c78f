//! What a node came from: a node of a model, a place in a text, or several of them.

use std::fmt::Write;

use rustc_hash::FxHashSet;

use crate::ir::{Attrs, Context, Kind, Term, TermKind, TermView, Terms};

/// What a node came from, as the `span` of its record says it.
///
/// Zero is nothing known. A number without the highest bit is a place in a text that the context has read. With it, the
/// rest is a term: a name, a dictionary of a `name` and a `scope`, a place (a positive integer), or a list of
/// these, whose last item may be a negative integer: how many more there were.
///
/// Copies of nodes keep it, also those in other functions. What a pass builds gets its own when the function is published: that
/// of what it replaced, else that of what reads it, else that of what it reads. [`crate::pass::Rewriter::set_source`] says more
/// where a pass knows more.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NodeSource(pub u32);

/// One of the things that a node came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourcePart<'a> {
    /// A node of a model: its name, and the scope that whoever wrote the model says it is in; may be empty.
    Name {
        /// Its name.
        name: &'a str,
        /// Where it stands in the program that the model was written from.
        scope: &'a str,
    },
    /// A place in a text that the context has read, a source of its own.
    Place(NodeSource),
}

const TERM: u32 = 1 << 31;

impl NodeSource {
    /// Nothing known.
    pub const NONE: Self = Self(0);

    /// So many parts are kept.
    pub const MOST_PARTS: usize = 8;

    /// So many bytes of a name are kept.
    pub const LONGEST_NAME: usize = 200;

    /// A node of a model, and its scope there, which may be empty.
    pub fn named(cx: &(impl Context + ?Sized), name: &str, scope: &str) -> Self {
        let (name, scope) = (cut(name), cut(scope));
        match scope {
            "" => Self::of_term(cx.symbol(name).into()),
            _ => {
                let entries = [("name", name.into()), ("scope", scope.into())];
                Self::of_term(Term(cx.attrs(&entries).0))
            }
        }
    }

    /// All that several nodes came from, each once, in order. Linear, and bounded: of what is beyond
    /// [`NodeSource::MOST_PARTS`] the number is kept.
    pub fn union(
        cx: &(impl Context + ?Sized),
        sources: impl IntoIterator<Item = NodeSource>,
    ) -> Self {
        let mut union = Union::default();
        for source in sources {
            union.add(cx, source);
        }
        union.finish(cx)
    }

    /// The same with `more` that are not named.
    pub fn and_more(self, cx: &(impl Context + ?Sized), more: u32) -> Self {
        let mut union = Union { more: more.into(), ..Union::default() };
        union.add(cx, self);
        union.finish(cx)
    }

    /// Whether nothing is known.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The term, where it is no place.
    pub fn term(self) -> Option<Term> {
        (self.0 & TERM != 0).then_some(Term(self.0 & !TERM))
    }

    /// The byte offset in the texts of the context, where it is a place.
    pub fn place(self) -> Option<u32> {
        self.0.checked_sub(1).filter(|_| self.0 & TERM == 0)
    }

    /// What it consists of, and how many more there were.
    pub fn parts(self, terms: Terms<'_>) -> (Vec<SourcePart<'_>>, u64) {
        let Some(term) = self.term() else {
            let place = self.place().map(|_| SourcePart::Place(self));
            return (place.into_iter().collect(), 0);
        };
        let list = [term];
        let items = match terms.kind(term) {
            TermKind::LIST => terms.children(term),
            _ => &list,
        };
        let more = items.iter().filter_map(|&item| more_of(terms, item)).sum();
        (items.iter().filter_map(|&item| part_of(terms, item)).collect(), more)
    }

    /// Writes it for a person, bounded; `place` says where a place is, such as `model.ir:12`.
    pub fn text(self, terms: Terms<'_>, place: impl Fn(NodeSource) -> Option<String>) -> String {
        let (parts, more) = self.parts(terms);
        let texts = parts.iter().filter_map(|part| match *part {
            SourcePart::Name { name, scope: "" } => Some(name.to_owned()),
            SourcePart::Name { name, scope } => Some(format!("{name} ({scope})")),
            SourcePart::Place(at) => place(at),
        });
        let mut text = texts.collect::<Vec<_>>().join(", ");
        if more > 0 && !text.is_empty() {
            let _ = write!(text, " and {more} more");
        }
        text
    }

    fn of_term(term: Term) -> Self {
        if term.0 & TERM == 0 { Self(term.0 | TERM) } else { Self::NONE }
    }

    fn of_part(terms: Terms<'_>, part: Term) -> Self {
        match terms.view(part) {
            TermView::Int(at) => Self(u32::try_from(at).unwrap_or(0)),
            _ => Self::of_term(part),
        }
    }

    fn to_part(self, cx: &(impl Context + ?Sized)) -> Term {
        self.term().unwrap_or_else(|| cx.int(self.0.into()))
    }
}

impl Kind {
    /// Whether a node of this kind is computed in a graph function, so that it came from somewhere: calls, tuples and
    /// their items, choices.
    #[inline]
    pub fn has_source(self) -> bool {
        matches!(self, Self::CALL | Self::TUPLE | Self::TUPLE_GET_ITEM | Self::IF)
    }
}

/// Parts as they are collected.
#[derive(Default)]
struct Union {
    /// Those that are kept, so few that a part is soon looked for among them.
    parts: Vec<NodeSource>,
    /// Those that are only counted.
    beyond: FxHashSet<NodeSource>,
    last: NodeSource,
    /// How many more there were of those that came without them.
    more: u64,
}

impl Union {
    fn add(&mut self, cx: &(impl Context + ?Sized), source: NodeSource) {
        // Nodes of one source often follow each other.
        if source.is_none() || std::mem::replace(&mut self.last, source) == source {
            return;
        }
        let terms = cx.terms();
        let Some(list) = source.term().filter(|&term| terms.kind(term) == TermKind::LIST) else {
            return self.add_part(source);
        };
        for &item in terms.children(list) {
            match more_of(terms, item) {
                Some(more) => self.more = self.more.saturating_add(more),
                None => self.add_part(NodeSource::of_part(terms, item)),
            }
        }
    }

    fn add_part(&mut self, part: NodeSource) {
        if self.parts.contains(&part) {
            return;
        }
        match self.parts.len() < NodeSource::MOST_PARTS {
            true => self.parts.push(part),
            false => _ = self.beyond.insert(part),
        }
    }

    fn finish(self, cx: &(impl Context + ?Sized)) -> NodeSource {
        let more = self.more.saturating_add(self.beyond.len() as u64);
        match self.parts[..] {
            [] => NodeSource::NONE,
            [part] if more == 0 => part,
            _ => {
                let mut parts: Vec<Term> = self.parts.iter().map(|part| part.to_part(cx)).collect();
                if more > 0 {
                    parts.push(cx.int(-i64::try_from(more).unwrap_or(i64::MAX)));
                }
                NodeSource::of_term(cx.list(&parts))
            }
        }
    }
}

fn more_of(terms: Terms<'_>, item: Term) -> Option<u64> {
    match terms.view(item) {
        TermView::Int(more) if more < 0 => Some(more.unsigned_abs()),
        _ => None,
    }
}

fn part_of(terms: Terms<'_>, item: Term) -> Option<SourcePart<'_>> {
    match terms.kind(item) {
        TermKind::STR => Some(SourcePart::Name { name: terms.str(item), scope: "" }),
        TermKind::DICT => {
            let parts = terms.attrs(Attrs(item.0));
            let scope = parts.str("scope").unwrap_or("");
            Some(SourcePart::Name { name: parts.str("name")?, scope })
        }
        TermKind::INT => {
            let place = NodeSource::of_part(terms, item);
            place.place().map(|_| SourcePart::Place(place))
        }
        _ => None,
    }
}

/// As much of a name as is kept.
fn cut(name: &str) -> &str {
    let ends = (0..=NodeSource::LONGEST_NAME.min(name.len())).rev();
    let end = ends.into_iter().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}
