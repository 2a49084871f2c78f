//! What a manifest says of an operator.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenon_plugin_api::op::{
    Arity, AttrBounds, AttrDef, AttrDefault, AttrKind, OpEffect, OpPattern, OpSchema,
};

use super::Reason;
use super::spelling::misspelled_among;

/// The record of an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpRecord {
    /// Its name.
    #[serde(rename = "op")]
    pub name: String,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The least number of arguments.
    pub min_args: usize,
    /// The greatest one; any number where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_args: Option<usize>,
    /// Its attributes.
    #[serde(default)]
    pub attrs: Vec<AttrRecord>,
    /// What a call does besides computing: `none`, `shares`, `makes` or `any`.
    pub effect: Effect,
    /// How it may be fused.
    pub pattern: Pattern,
    /// Its documentation.
    #[serde(default)]
    pub doc: String,
    /// How it works, with an example: what the file says at its top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// What a newer version of the format says besides.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// The record of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttrRecord {
    /// Its name.
    pub name: String,
    /// The kind of its value.
    pub kind: Kind,
    /// Its value where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether it may be absent, which has a meaning of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The least number that it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The greatest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The texts of which it is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// What it means.
    #[serde(default)]
    pub help: String,
}

macro_rules! names {
    ($($(#[doc = $doc:literal])* $name:ident of $ty:ident { $($variant:ident,)* })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "they are those of the type that it stands for")]
        pub enum $name { $($variant,)* }

        impl From<$name> for $ty {
            fn from(name: $name) -> Self {
                match name { $($name::$variant => $ty::$variant,)* }
            }
        }
    )*};
}

names! {
    /// An effect as a manifest spells it.
    Effect of OpEffect { None, Shares, Makes, Any, }
    /// A fusion pattern as a manifest spells it.
    Pattern of OpPattern { Elementwise, Broadcast, Injective, Reduction, OutFusable, Tuple, Opaque, }
    /// The kind of an attribute as a manifest spells it.
    Kind of AttrKind { Int, Float, Bool, Str, Ints, Type, Any, }
}

impl OpRecord {
    /// The first line of its documentation.
    pub fn summary(&self) -> &str {
        self.doc.lines().next().unwrap_or("")
    }

    /// What is wrong with it.
    pub(super) fn contradiction(&self) -> Option<String> {
        if self.max_args.is_some_and(|max| max < self.min_args) {
            return Some("it takes fewer arguments at most than at least".to_owned());
        }
        let mut names = std::collections::HashSet::new();
        if let Some(twice) = self.attrs.iter().find(|attr| !names.insert(&attr.name)) {
            return Some(format!("two attributes are called `{}`", twice.name));
        }
        let names = self.attrs.iter().map(|attr| ("an attribute", attr.name.as_str()));
        misspelled_among(names).or_else(|| self.attrs.iter().find_map(AttrRecord::contradiction))
    }

    /// Reads a record as a manifest has it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<OpRecord, Reason> {
        super::manifest::read(text, "operator", OpRecord::contradiction)
    }

    /// The schema that it states. It lives for as long as the process, as the library does; equal ones are one.
    pub fn to_schema(&self) -> &'static OpSchema {
        static SCHEMAS: LazyLock<Mutex<HashMap<String, &'static OpSchema>>> =
            LazyLock::new(Mutex::default);
        let text = serde_json::to_string(self).expect("a record is text and numbers");
        let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
        schemas.entry(text).or_insert_with(|| Box::leak(Box::new(self.new_schema())))
    }

    fn new_schema(&self) -> OpSchema {
        let attrs: Vec<AttrDef> = self.attrs.iter().map(AttrRecord::to_def).collect();
        OpSchema {
            name: kept(&self.name),
            aliases: kept_all(&self.aliases),
            summary: kept(self.summary()),
            args: Arity { min: self.min_args, max: self.max_args },
            attrs: Vec::leak(attrs),
            effect: self.effect.into(),
            pattern: self.pattern.into(),
        }
    }
}

impl AttrRecord {
    fn contradiction(&self) -> Option<String> {
        let Self { name, min, max, one_of, kind, .. } = self;
        if min.zip(*max).is_some_and(|(min, max)| min > max) {
            return Some(format!("`{name}` has a least value above its greatest one"));
        }
        let is_number = matches!(kind, Kind::Int | Kind::Float | Kind::Ints);
        if !is_number && (min.is_some() || max.is_some()) {
            return Some(format!("`{name}` is no number, and has a least or a greatest value"));
        }
        if !one_of.is_empty() && !matches!(kind, Kind::Str) {
            return Some(format!("`{name}` is no text, and is one of some texts"));
        }
        let default = self.default.as_ref()?;
        let fits = self.to_default().is_some_and(|default| self.is_within(&default));
        (!fits).then(|| format!("`{name}` cannot be {default} by default"))
    }

    /// Whether a default is within the bounds.
    fn is_within(&self, default: &AttrDefault) -> bool {
        let is_between = |number: f64| {
            self.min.is_none_or(|min| min <= number) && self.max.is_none_or(|max| number <= max)
        };
        match default {
            AttrDefault::Int(int) => is_between(*int as f64),
            AttrDefault::Float(float) => is_between(*float),
            AttrDefault::Ints(ints) => ints.iter().all(|&int| is_between(int as f64)),
            AttrDefault::Str(text) => {
                self.one_of.is_empty() || self.one_of.iter().any(|one| one == text)
            }
            AttrDefault::Bool(_) | AttrDefault::Absent | AttrDefault::Required => true,
        }
    }

    /// What a call without it has; none where the kind has no such value.
    fn to_default(&self) -> Option<AttrDefault> {
        let Some(default) = &self.default else {
            return Some(if self.optional { AttrDefault::Absent } else { AttrDefault::Required });
        };
        match (self.kind, default) {
            (Kind::Int, value) => value.as_i64().map(AttrDefault::Int),
            (Kind::Float, Value::String(text)) if text == "inf" => {
                Some(AttrDefault::Float(f64::INFINITY))
            }
            (Kind::Float, Value::String(text)) if text == "-inf" => {
                Some(AttrDefault::Float(f64::NEG_INFINITY))
            }
            (Kind::Float, value) => value.as_f64().map(AttrDefault::Float),
            (Kind::Bool, value) => value.as_bool().map(AttrDefault::Bool),
            (Kind::Str, value) => value.as_str().map(|text| AttrDefault::Str(kept(text))),
            (Kind::Ints, Value::Array(values)) => {
                let values: Option<Vec<i64>> = values.iter().map(Value::as_i64).collect();
                values.map(|values| AttrDefault::Ints(Vec::leak(values)))
            }
            (Kind::Ints | Kind::Type | Kind::Any, _) => None,
        }
    }

    fn to_def(&self) -> AttrDef {
        AttrDef {
            name: kept(&self.name),
            kind: self.kind.into(),
            default: self.to_default().unwrap_or(AttrDefault::Required),
            bounds: AttrBounds { min: self.min, max: self.max, one_of: kept_all(&self.one_of) },
            help: kept(&self.help),
        }
    }
}

/// A text that lives for as long as the process.
fn kept(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn kept_all(texts: &[String]) -> &'static [&'static str] {
    Vec::leak(texts.iter().map(|text| kept(text)).collect())
}
