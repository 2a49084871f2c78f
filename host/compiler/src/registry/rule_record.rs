//! What a manifest says of a rule.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Reason;
use super::manifest::read;

/// The record of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleRecord {
    /// Its facet: what kind of knowledge it is.
    #[serde(rename = "rule", serialize_with = "as_text", deserialize_with = "as_shared")]
    pub facet: Arc<str>,
    /// What it is about, mostly an operator.
    pub key: String,
    /// Of several rules for one key the one with the greatest benefit is asked first.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub benefit: u32,
    /// The first version of what it is about in which it holds, where that has versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// The last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// What it lets others choose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<KnobRecord>,
    /// Its documentation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// What a newer version of the format says besides.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// A choice of a rule between whole numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobRecord {
    /// Its name, of this rule.
    pub name: String,
    /// The least value.
    pub least: i64,
    /// The greatest.
    pub most: i64,
}

/// A record that says nothing besides, as nearly all do: they are read without a detour through a map.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain<'r> {
    #[serde(borrow)]
    rule: Cow<'r, str>,
    key: String,
    #[serde(default = "one")]
    benefit: u32,
    since: Option<u64>,
    until: Option<u64>,
    #[serde(default)]
    knobs: Vec<KnobRecord>,
    #[serde(default)]
    doc: String,
}

fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn as_shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Arc::from)
}

fn one() -> u32 {
    1
}

fn is_one(benefit: &u32) -> bool {
    *benefit == 1
}

impl RuleRecord {
    /// Reads a record. Many in a row are of one facet: `last` is that of the one in front.
    pub(super) fn read(record: &str, last: Option<&Arc<str>>) -> Result<Self, Reason> {
        let read = match serde_json::from_str(record) {
            Ok(Plain { rule, key, benefit, since, until, knobs, doc }) => {
                let facet = last.filter(|last| ***last == *rule).cloned();
                let facet = facet.unwrap_or_else(|| rule.into());
                let more = BTreeMap::new();
                Ok(Self { facet, key, benefit, since, until, knobs, doc, more })
            }
            Err(_) => read(record, "rule of", |_| None),
        }?;
        match read.contradiction() {
            Some(what) => Err(format!("rule `{}`: {what}", read.name()).into()),
            None => Ok(read),
        }
    }

    fn contradiction(&self) -> Option<String> {
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since > until
        {
            return Some(format!("it holds since version {since} and until {until}, so in none"));
        }
        let knob = self.knobs.iter().find(|knob| knob.least > knob.most)?;
        let KnobRecord { name, least, most } = knob;
        Some(format!("its knob `{name}` has no value from {least} to {most}"))
    }

    /// Whether it holds in a version.
    pub fn holds_in(&self, version: u64) -> bool {
        self.since.is_none_or(|since| since <= version)
            && self.until.is_none_or(|until| version <= until)
    }

    /// Whether there is a version in which both hold, and nothing says which is asked first.
    pub(super) fn ties_with(&self, other: &Self) -> bool {
        let least = self.since.max(other.since).unwrap_or(0);
        let both = self.holds_in(least) && other.holds_in(least);
        (&self.facet, &self.key, self.benefit) == (&other.facet, &other.key, other.benefit) && both
    }

    /// Its facet and its key as a registry names them.
    pub fn name(&self) -> String {
        format!("{}:{}", self.facet, self.key)
    }

    /// What tells it from the other rules of its plugin.
    pub(super) fn identity(&self) -> (&str, &str, u32, Option<u64>, Option<u64>) {
        (&self.facet, &self.key, self.benefit, self.since, self.until)
    }

    /// Those among the records of a library, in their order.
    pub(super) fn all_of(records: &str) -> Vec<Self> {
        records.lines().filter_map(|record| serde_json::from_str(record).ok()).collect()
    }

    /// The first line of its documentation.
    pub fn summary(&self) -> &str {
        self.doc.lines().next().unwrap_or("")
    }
}
