//! The options of a pass: what its manifest declares, and which values fit.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::suggest::nearest;

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the kind of value it holds")]
pub enum OptionValue {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    List(Vec<OptionValue>),
}

/// An option of a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptionRecord {
    /// Its name.
    pub name: String,
    /// What values it has.
    #[serde(rename = "type")]
    pub ty: OptionType,
    /// Its value when nothing is said.
    pub default: Value,
    /// The least value, of each element where it is a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Value>,
    /// The greatest value, of each element where it is a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Value>,
    /// The texts it may be, of each element where it is a list; any text where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// What it does.
    #[serde(default)]
    pub help: String,
}

/// The type of an option: `int`, or `[int]` for a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum OptionType {
    /// One value.
    One(Scalar),
    /// A list of values.
    List(Scalar),
    /// A type of a newer host's. Its default stands, and no value can be set.
    Unknown(String),
}

/// The type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the kind of value it stands for")]
pub enum Scalar {
    Int,
    Float,
    Bool,
    Str,
}

/// Why a value does not fit an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What is wrong, as it follows the option's name: `is at most 100, not 101`.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl OptionRecord {
    /// An integer in a range.
    pub(crate) fn new_int(name: &str, default: i64, min: i64, max: i64) -> Self {
        let (min, max) = (Some(min.into()), Some(max.into()));
        Self { ty: OptionType::One(Scalar::Int), min, max, ..Self::new_str(name, default) }
    }

    /// A text.
    pub(crate) fn new_str(name: &str, default: impl Into<Value>) -> Self {
        Self {
            name: name.to_owned(),
            ty: OptionType::One(Scalar::Str),
            default: default.into(),
            min: None,
            max: None,
            one_of: Vec::new(),
            help: String::new(),
        }
    }

    /// The value as the pass reads it, when it is of the type and in the range that is declared.
    pub fn fit(&self, value: &OptionValue) -> Result<OptionValue, Misfit> {
        match (&self.ty, value) {
            (OptionType::One(scalar), value) => self.fit_scalar(*scalar, value),
            (OptionType::List(scalar), OptionValue::List(items)) => {
                let items = items.iter().map(|item| self.fit_scalar(*scalar, item));
                Ok(OptionValue::List(items.collect::<Result<_, _>>()?))
            }
            (OptionType::List(_), other) => Err(Misfit {
                message: format!("is of type {}, and {other} is not", self.ty),
                help: Some(format!("write `[{other}]`")),
            }),
            (OptionType::Unknown(ty), _) => Err(Misfit {
                message: format!("is of type {ty}, which this version of Tenon does not know"),
                help: Some("leave it out, or use a newer Tenon".to_owned()),
            }),
        }
    }

    fn fit_scalar(&self, scalar: Scalar, value: &OptionValue) -> Result<OptionValue, Misfit> {
        let wrong = |message: String| Err(Misfit { message, help: None });
        let fitted = match (scalar, value) {
            (Scalar::Int, OptionValue::Int(_))
            | (Scalar::Float, OptionValue::Float(_))
            | (Scalar::Bool, OptionValue::Bool(_))
            | (Scalar::Str, OptionValue::Str(_)) => value.clone(),
            (Scalar::Float, OptionValue::Int(value)) => OptionValue::Float(*value as f64),
            _ => return wrong(format!("is of type {}, and {value} is not", self.ty)),
        };
        if let Some(min) = self.min.as_ref().filter(|min| !is_ordered(*min, &fitted)) {
            return wrong(format!("is at least {min}, not {fitted}"));
        }
        if let Some(max) = self.max.as_ref().filter(|max| !is_ordered(&fitted, *max)) {
            return wrong(format!("is at most {max}, not {fitted}"));
        }
        match &fitted {
            OptionValue::Str(text) if !self.one_of.is_empty() && !self.one_of.contains(text) => {
                let near = nearest(text, self.one_of.iter().map(String::as_str));
                Err(Misfit {
                    message: format!("is one of {}, not {text}", self.one_of.join(", ")),
                    help: near.map(|near| format!("did you mean `{near}`?")),
                })
            }
            _ => Ok(fitted),
        }
    }

    /// The declared default. A manifest whose default does not fit its own declaration is refused when
    /// it is read, and one of an unknown type reads as its text.
    pub fn default_value(&self) -> OptionValue {
        let value = OptionValue::from(&self.default);
        self.fit(&value).unwrap_or(value)
    }

    /// What the declaration contradicts in itself.
    pub(super) fn contradiction(&self) -> Option<String> {
        match self.ty {
            OptionType::Unknown(_) => None,
            _ => self
                .fit(&OptionValue::from(&self.default))
                .err()
                .map(|misfit| format!("the default of option `{}` {}", self.name, misfit.message)),
        }
    }
}

/// Something with the value of a number.
trait Number {
    fn int(&self) -> Option<i64>;
    fn float(&self) -> Option<f64>;
}

impl Number for Value {
    fn int(&self) -> Option<i64> {
        self.as_i64()
    }

    fn float(&self) -> Option<f64> {
        self.as_f64()
    }
}

impl Number for OptionValue {
    fn int(&self) -> Option<i64> {
        match self {
            OptionValue::Int(value) => Some(*value),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            OptionValue::Int(value) => Some(*value as f64),
            OptionValue::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// Whether `less <= more`, exactly where both are integers; a NaN is in no range, and what is no number
/// is in every one.
fn is_ordered(less: &impl Number, more: &impl Number) -> bool {
    match (less.int(), more.int()) {
        (Some(less), Some(more)) => less <= more,
        _ => match (less.float(), more.float()) {
            (Some(less), Some(more)) => less <= more,
            _ => true,
        },
    }
}

/// A value as it stands in a manifest.
impl From<&Value> for OptionValue {
    fn from(json: &Value) -> Self {
        let scalar = |json: &Value| match json {
            Value::Bool(value) => OptionValue::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(value) => OptionValue::Int(value),
                None => OptionValue::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => OptionValue::Str(text.clone()),
            other => OptionValue::Str(other.to_string()),
        };
        match json {
            Value::Array(items) => OptionValue::List(items.iter().map(scalar).collect()),
            other => scalar(other),
        }
    }
}

impl From<&OptionValue> for Value {
    fn from(value: &OptionValue) -> Self {
        match value {
            OptionValue::Int(value) => (*value).into(),
            OptionValue::Float(value) => (*value).into(),
            OptionValue::Bool(value) => (*value).into(),
            OptionValue::Str(text) => text.as_str().into(),
            OptionValue::List(items) => items.iter().map(Value::from).collect(),
        }
    }
}

/// As a textual pipeline writes it.
impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Int(value) => write!(f, "{value}"),
            OptionValue::Float(value) => write!(f, "{value:?}"),
            OptionValue::Bool(value) => write!(f, "{value}"),
            OptionValue::Str(text) => {
                write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
            OptionValue::List(items) => {
                let items: Vec<String> = items.iter().map(OptionValue::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

impl From<String> for OptionType {
    fn from(text: String) -> Self {
        let element = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let scalar = match element.unwrap_or(&text) {
            "int" => Scalar::Int,
            "float" => Scalar::Float,
            "bool" => Scalar::Bool,
            "str" => Scalar::Str,
            _ => return OptionType::Unknown(text),
        };
        if element.is_some() { OptionType::List(scalar) } else { OptionType::One(scalar) }
    }
}

impl From<OptionType> for String {
    fn from(ty: OptionType) -> Self {
        ty.to_string()
    }
}

impl fmt::Display for OptionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |scalar: &Scalar| match scalar {
            Scalar::Int => "int",
            Scalar::Float => "float",
            Scalar::Bool => "bool",
            Scalar::Str => "str",
        };
        match self {
            OptionType::One(scalar) => f.write_str(name(scalar)),
            OptionType::List(scalar) => write!(f, "[{}]", name(scalar)),
            OptionType::Unknown(text) => f.write_str(text),
        }
    }
}
