//! An operator as lists show it. A registry may lead to tens of thousands, of which a command uses a few, so the rest of
//! a record is read when it is asked for, and what is read at once is not copied.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};

use super::manifest::read;
use super::{OpRecord, Reason};
use crate::ops::is_own;

/// What a plugin says of one of its operators.
#[derive(Clone, Debug)]
pub struct OpOffer {
    /// The records of the library.
    records: Arc<String>,
    /// Where among them its own stands.
    place: Place,
    name: Piece,
    summary: Piece,
    aliases: Vec<String>,
    whole: OnceLock<Result<Box<OpRecord>, Reason>>,
}

/// A part of the records, in bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    length: u32,
}

/// A text of a record.
#[derive(Clone, Debug)]
enum Piece {
    /// It stands there as it is.
    At(Place),
    /// It is written there in another way.
    Decoded(Box<str>),
}

/// What is read of a record at once. The rest is no more than JSON.
#[derive(Deserialize)]
struct Head<'r> {
    #[serde(rename = "op", borrow)]
    name: Cow<'r, str>,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default, borrow)]
    doc: Cow<'r, str>,
}

impl OpOffer {
    /// Reads the head of `record`, a line of `records`.
    pub(super) fn read(record: &str, records: &Arc<String>) -> Result<Self, Reason> {
        let Head { name, aliases, doc } = read(record, KIND, |_| None)?;
        let first_line = |text: &str| text.lines().next().unwrap_or("").len();
        let summary = match doc {
            Cow::Borrowed(doc) => Cow::Borrowed(&doc[..first_line(doc)]),
            Cow::Owned(doc) => Cow::Owned(doc[..first_line(&doc)].to_owned()),
        };
        Ok(Self {
            records: Arc::clone(records),
            place: Place::of(record, records),
            name: Piece::of(name, records),
            summary: Piece::of(summary, records),
            aliases,
            whole: OnceLock::new(),
        })
    }

    /// What is wrong with the names of these, which are those of one plugin in the order of their names.
    pub(super) fn clash(offers: &[Self]) -> Option<String> {
        let twice = |name: &str| format!("two operators are called `{name}`");
        if let Some(pair) = offers.windows(2).find(|pair| pair[0].name() == pair[1].name()) {
            return Some(twice(pair[0].name()));
        }
        let mut aliases: Vec<&str> =
            offers.iter().flat_map(Self::aliases).map(String::as_str).collect();
        aliases.sort_unstable();
        let is_name = |alias: &str| offers.binary_search_by(|it| it.name().cmp(alias)).is_ok();
        let repeated = aliases.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        if let Some(alias) = repeated.or_else(|| aliases.iter().copied().find(|it| is_name(it))) {
            return Some(twice(alias));
        }
        let mut all = offers.iter().map(Self::name).chain(aliases);
        let own = all.find(|name| is_own(name))?;
        Some(format!("an operator is called `{own}`, as one of the host's own is"))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.name.text(&self.records)
    }

    /// Other names.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// The first line of its documentation.
    pub fn summary(&self) -> &str {
        self.summary.text(&self.records)
    }

    /// All that is said of it.
    pub fn record(&self) -> Result<&OpRecord, &Reason> {
        let whole = self.whole.get_or_init(|| {
            read(self.place.text(&self.records), KIND, OpRecord::contradiction).map(Box::new)
        });
        whole.as_deref()
    }
}

/// What messages call it.
const KIND: &str = "operator";

impl Place {
    /// That of a text which is a part of another one. Those of a library are no longer than its notes may be.
    fn of(part: &str, whole: &str) -> Self {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        Self { start: start as u32, length: part.len() as u32 }
    }

    fn text(self, whole: &str) -> &str {
        &whole[self.start as usize..][..self.length as usize]
    }
}

impl Piece {
    fn of(text: Cow<'_, str>, records: &str) -> Self {
        match text {
            // A text that is left out is a part of nothing.
            Cow::Borrowed("") => Piece::At(Place { start: 0, length: 0 }),
            Cow::Borrowed(text) => Piece::At(Place::of(text, records)),
            Cow::Owned(text) => Piece::Decoded(text.into()),
        }
    }

    fn text<'t>(&'t self, records: &'t str) -> &'t str {
        match self {
            Piece::At(place) => place.text(records),
            Piece::Decoded(text) => text,
        }
    }
}

impl PartialEq for OpOffer {
    fn eq(&self, other: &Self) -> bool {
        self.record() == other.record()
    }
}

impl Serialize for OpOffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.record().map_err(S::Error::custom)?.serialize(serializer)
    }
}
