//! Numbers in the place of others: `LabelEncoder`.
//!
//! ```text
//! keys = [7, 3, 9], values = [0.5, 1.5, 2.5]   =>   keys in order [3, 7, 9, 9], values in that order [1.5, 0.5, 2.5, 2.5]
//! at = 0
//! at = keys[at + 2] <= x ? at + 2 : at      and with 1: where the last key stands that is not above x
//! y = keys[at] == x ? values[at] : default
//! ```
//!
//! Of equal keys the first one counts. What is no number is a key like others, and stands in no order.

use std::cmp::Ordering;

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

use super::attributes::{constant, no_strings, numbers_if_any, table};

const REMEDY: &str = "encode labels as numbers before the model";

/// `LabelEncoder`: in lists, and since version 4 in tensors as well.
#[rule(import.onnx, domain = "ai.onnx.ml", key = "LabelEncoder", since = 1)]
fn label_encoder(node: &mut Node<'_>) -> Outputs {
    for name in ["classes_strings", "keys_strings", "values_strings"] {
        no_strings(node, name, REMEDY)?;
    }
    let (keys, values) = (Numbers::of(node, "keys")?, Numbers::of(node, "values")?);
    if keys.list.len() != values.list.len() || keys.list.is_empty() {
        let (values, keys) = (values.list.len(), keys.list.len());
        return invalid(format!("it has {values} values for {keys} keys"));
    }
    let default = default_of(node, values.dtype)?;
    let default = values.with([default]).constant(node, &[])?;
    let x = node.input(0)?;
    let x = cast_to(node, x, keys.dtype)?;
    let mut y = default;
    let order = keys.order();
    if !order.is_empty() {
        let (is_key, at) = keys.with(order.iter().map(|&at| keys.list[at])).searched(node, x)?;
        let found = values.with(order.iter().map(|&at| values.list[at]));
        let found = found.constant(node, &[order.len() as i64])?;
        let found = node.call("take", &[found, at], &[("axis", 0.into())])?;
        y = node.apply("where", &[is_key, found, default])?;
    }
    if let Some(missing) = keys.list.iter().position(|key| key.is_missing()) {
        let value = values.with([values.list[missing]]).constant(node, &[])?;
        let is_missing = node.apply("not_equal", &[x, x])?;
        y = node.apply("where", &[is_missing, value, y])?;
    }
    Ok(vec![y])
}

/// What stands for a number that is no key.
fn default_of(node: &mut Node<'_>, dtype: DType) -> Result<Number, Problem> {
    for other in ["default_string", "default_float", "default_int64"] {
        node.ignore(other);
    }
    if node.has("default_tensor") {
        let default = Numbers::of_tensor(node, "default_tensor")?;
        return match default.and_then(|it| it.list.first().copied()) {
            Some(default) => Ok(default),
            None => invalid("its attribute `default_tensor` is empty"),
        };
    }
    match dtype.is_float() {
        true => Ok(Number::Float(node.float_or("default_float", -0.0)?)),
        false => Ok(Number::Int(node.int_or("default_int64", -1)?)),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn is_missing(self) -> bool {
        matches!(self, Self::Float(number) if number.is_nan())
    }

    /// Numbers of one kind are in this order, both zeros at one place.
    fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(&b),
            (a, b) => (a.as_float() + 0.0).total_cmp(&(b.as_float() + 0.0)),
        }
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

/// Numbers of one kind.
struct Numbers {
    dtype: DType,
    list: Vec<Number>,
}

impl Numbers {
    /// Those in a list or a tensor of this name.
    fn of(node: &mut Node<'_>, name: &str) -> Result<Self, Problem> {
        if let Some(ints) = node.ints(&format!("{name}_int64s"))? {
            let list = ints.into_iter().map(Number::Int).collect();
            return Ok(Self { dtype: DType::I64, list });
        }
        if let Some(floats) = node.floats(&format!("{name}_floats"))? {
            let list = floats.into_iter().map(|it| Number::Float(f64::from(it))).collect();
            return Ok(Self { dtype: DType::F32, list });
        }
        match Self::of_tensor(node, &format!("{name}_tensor"))? {
            Some(numbers) => Ok(numbers),
            None => invalid(format!("it has no {name}")),
        }
    }

    fn of_tensor(node: &mut Node<'_>, name: &str) -> Result<Option<Self>, Problem> {
        let Some(value) = node.tensor(name)? else { return Ok(None) };
        let dtype = node.dtype(value)?;
        let numbers = numbers_if_any(node, name)?.unwrap_or_default();
        let number = |it: f64| match dtype.is_float() {
            true => Number::Float(it),
            false => Number::Int(it as i64),
        };
        Ok(Some(Self { dtype, list: numbers.into_iter().map(number).collect() }))
    }

    /// Others of this kind.
    fn with(&self, list: impl IntoIterator<Item = Number>) -> Self {
        Self { dtype: self.dtype, list: list.into_iter().collect() }
    }

    /// The places of the numbers from the least to the greatest, of equal ones the first, and the last again and again: as many as a
    /// power of two.
    fn order(&self) -> Vec<usize> {
        let mut places: Vec<usize> =
            (0..self.list.len()).filter(|&at| !self.list[at].is_missing()).collect();
        places.sort_by(|&a, &b| self.list[a].order(self.list[b]));
        places.dedup_by(|later, first| self.list[*later] == self.list[*first]);
        if let Some(&last) = places.last() {
            places.resize(places.len().next_power_of_two(), last);
        }
        places
    }

    /// Whether each element is one of these numbers, which are in order, and where.
    fn searched(&self, node: &mut Node<'_>, x: Value) -> Result<(Value, Value), Problem> {
        let count = self.list.len();
        let numbers = self.constant(node, &[count as i64])?;
        let mut at = constant(node, &[0], &[])?;
        for step in (0..count.ilog2()).rev().map(|bit| 1i64 << bit) {
            let step = constant(node, &[step], &[])?;
            let behind = node.apply("add", &[at, step])?;
            let number = node.call("take", &[numbers, behind], &[("axis", 0.into())])?;
            let is_reached = node.apply("less_equal", &[number, x])?;
            at = node.apply("where", &[is_reached, behind, at])?;
        }
        let number = node.call("take", &[numbers, at], &[("axis", 0.into())])?;
        Ok((node.apply("equal", &[number, x])?, at))
    }

    fn constant(&self, node: &mut Node<'_>, shape: &[i64]) -> Result<Value, Problem> {
        let value = match self.dtype.is_float() {
            true => {
                let floats: Vec<f64> = self.list.iter().map(|it| it.as_float()).collect();
                table(node, &floats, shape, self.dtype)?
            }
            false => {
                let bytes = self.list.iter().flat_map(|it| match *it {
                    Number::Int(number) => number.to_le_bytes(),
                    Number::Float(number) => (number as i64).to_le_bytes(),
                });
                let bytes: Vec<u8> = bytes.collect();
                node.constant(DType::I64, shape, &bytes)?
            }
        };
        cast_to(node, value, self.dtype)
    }
}
