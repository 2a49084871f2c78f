//! The options of a pass: what it declares, what the registry sets, what the pipeline sets.

use std::collections::BTreeMap;

use tenon_plugin_api::ir::{AttrValue, Attrs, Context};

use super::pipeline::OptionValue;
use crate::ir::Cx;
use crate::registry::{OptionRecord, PassRecord};

/// Checks values against a pass's declarations: the last of equal keys stands. Errors say what the pass
/// declares.
pub(super) fn check(
    pass: &PassRecord,
    given: &[(String, OptionValue)],
) -> Result<BTreeMap<String, OptionValue>, String> {
    let mut values: BTreeMap<String, OptionValue> = BTreeMap::new();
    for option in &pass.options {
        values.insert(option.name.clone(), from_json(&option.default));
    }
    for (key, value) in given {
        let Some(option) = pass.options.iter().find(|option| option.name == *key) else {
            let known: Vec<&str> = pass.options.iter().map(|option| option.name.as_str()).collect();
            return Err(match known.is_empty() {
                true => format!("`{}` has no options, and so no `{key}`", pass.name),
                false => {
                    format!("`{}` has no option `{key}`; it has {}", pass.name, known.join(", "))
                }
            });
        };
        values.insert(key.clone(), fit(pass, option, value)?);
    }
    Ok(values)
}

fn fit(
    pass: &PassRecord,
    option: &OptionRecord,
    value: &OptionValue,
) -> Result<OptionValue, String> {
    let fitted = match (option.ty.as_str(), value) {
        ("int", OptionValue::Int(_))
        | ("float", OptionValue::Float(_))
        | ("bool", OptionValue::Bool(_))
        | ("str", OptionValue::Str(_)) => value.clone(),
        ("float", OptionValue::Int(value)) => OptionValue::Float(*value as f64),
        (ty, value) => {
            return Err(format!(
                "option `{}` of `{}` is of type {ty}, and {value} is not",
                option.name, pass.name
            ));
        }
    };
    let number = |value: &OptionValue| match value {
        OptionValue::Int(value) => Some(*value as f64),
        OptionValue::Float(value) => Some(*value),
        OptionValue::Bool(_) | OptionValue::Str(_) => None,
    };
    let limit = |json: &Option<serde_json::Value>| json.as_ref().and_then(|json| json.as_f64());
    if let Some(number) = number(&fitted) {
        if let Some(min) = limit(&option.min).filter(|&min| number < min) {
            return Err(format!(
                "option `{}` of `{}` is at least {min}, not {fitted}",
                option.name, pass.name
            ));
        }
        if let Some(max) = limit(&option.max).filter(|&max| number > max) {
            return Err(format!(
                "option `{}` of `{}` is at most {max}, not {fitted}",
                option.name, pass.name
            ));
        }
    }
    Ok(fitted)
}

/// The options as the dictionary that a pass reads.
pub(super) fn to_attrs(cx: &Cx, values: &BTreeMap<String, OptionValue>) -> Attrs {
    let entries: Vec<(&str, AttrValue)> = values
        .iter()
        .map(|(key, value)| {
            let value = match value {
                OptionValue::Int(value) => AttrValue::Int(*value),
                OptionValue::Float(value) => AttrValue::Float(*value),
                OptionValue::Bool(value) => AttrValue::Bool(*value),
                OptionValue::Str(value) => AttrValue::Str(value.clone()),
            };
            (key.as_str(), value)
        })
        .collect();
    cx.attrs(&entries)
}

/// A default as it stands in a manifest.
fn from_json(json: &serde_json::Value) -> OptionValue {
    match json {
        serde_json::Value::Bool(value) => OptionValue::Bool(*value),
        serde_json::Value::Number(value) => match value.as_i64() {
            Some(value) => OptionValue::Int(value),
            None => OptionValue::Float(value.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(value) => OptionValue::Str(value.clone()),
        other => OptionValue::Str(other.to_string()),
    }
}

/// A value of the registry's file.
pub(super) fn from_toml(value: &toml::Value) -> OptionValue {
    match value {
        toml::Value::Integer(value) => OptionValue::Int(*value),
        toml::Value::Float(value) => OptionValue::Float(*value),
        toml::Value::Boolean(value) => OptionValue::Bool(*value),
        toml::Value::String(value) => OptionValue::Str(value.clone()),
        other => OptionValue::Str(other.to_string()),
    }
}
