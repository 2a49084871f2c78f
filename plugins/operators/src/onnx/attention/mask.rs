//! Which keys a query may look at.

use tenon_plugin_api::rule::prelude::*;

use crate::found::numbers::number;
use crate::onnx::fold::is_less;
use crate::onnx::steps::{cast_to, places_along, reshape_to};

/// Windows that are wider reach over all that there is.
const WIDEST: i64 = 1 << 32;

/// How many queries and keys there are.
pub(super) struct Sequence {
    pub(super) queries: Dim,
    pub(super) keys: Dim,
    /// Keys that are not of the past.
    pub(super) new: Dim,
}

/// What is done to scores.
pub(super) struct Mask {
    /// Whether a key may be looked at.
    allowed: Option<Value>,
    /// What is added.
    bias: Option<Value>,
    /// Whether there may be a query that may not look at any key.
    pub(super) may_leave_nothing: bool,
}

impl Mask {
    /// Of a node of `Attention`, for scores of type `dtype`.
    pub(super) fn of(
        node: &mut Node<'_>,
        sequence: &Sequence,
        dtype: DType,
    ) -> Result<Self, Problem> {
        let padded = node.optional(6);
        if padded.is_some() && node.optional(4).is_some() {
            return invalid("`nonpad_kv_seqlen` and past keys do not go together");
        }
        let is_some = node.terms().dim_value(sequence.keys) != Some(0);
        let may_leave_nothing = is_some && (padded.is_some() || node.optional(3).is_some());
        let mut mask = Self { allowed: None, bias: None, may_leave_nothing };
        mask.given(node, sequence, dtype)?;
        let counts = match padded {
            Some(counts) => Some(mask.unpadded(node, sequence, counts)?),
            None => None,
        };
        let window = Window::of(node)?;
        if window.before.is_some() && is_less(node, sequence.new, sequence.queries) != Some(false) {
            mask.may_leave_nothing = is_some;
        }
        if let Some(allowed) = window.allowed(node, sequence, counts)? {
            mask.restrict(node, allowed)?;
        }
        Ok(mask)
    }

    /// The mask that is an input.
    fn given(
        &mut self,
        node: &mut Node<'_>,
        sequence: &Sequence,
        dtype: DType,
    ) -> Result<(), Problem> {
        let Some(mask) = node.optional(3) else { return Ok(()) };
        let (own, dims) = (node.dtype(mask)?, node.dims(mask)?);
        if dims.len() > 4 {
            return invalid(format!("its mask has {} dimensions", dims.len()));
        }
        let is_bool = own.is_bool();
        if !is_bool && !own.is_float() {
            return unsupported(format!("a mask of {own}"));
        }
        let mut mask = if is_bool { mask } else { cast_to(node, mask, dtype)? };
        let extents = [dims.last().copied().unwrap_or(sequence.keys), sequence.keys];
        if let [Some(own), Some(keys)] = extents.map(|dim| node.terms().dim_value(dim))
            && own < keys
            && node.version() >= 24
        {
            let mut widths = vec![0; 2 * dims.len()];
            widths[2 * dims.len() - 1] = keys - own;
            let value = if is_bool { 0.0 } else { f64::NEG_INFINITY };
            let attrs = [("pad_width", widths.into()), ("value", value.into())];
            mask = node.call("nn.pad", &[mask], &attrs)?;
        }
        match is_bool {
            true => self.allowed = Some(mask),
            false => self.bias = Some(mask),
        }
        Ok(())
    }

    /// Takes away the keys from the count of each sequence of the batch on; these counts, with axes as the scores.
    fn unpadded(
        &mut self,
        node: &mut Node<'_>,
        sequence: &Sequence,
        counts: Value,
    ) -> Result<Value, Problem> {
        let &[batch] = node.dims(counts)?.as_slice() else {
            return invalid("its `nonpad_kv_seqlen` is no vector");
        };
        let counts = cast_to(node, counts, DType::I64)?;
        let one = node.cx().dim(1);
        let counts = reshape_to(node, counts, &[batch, one, one, one])?;
        let places = places_along(node, sequence.keys)?;
        let allowed = node.apply("less", &[places, counts])?;
        self.restrict(node, allowed)?;
        Ok(counts)
    }

    fn restrict(&mut self, node: &mut Node<'_>, allowed: Value) -> Result<(), Problem> {
        self.allowed = Some(match self.allowed {
            Some(already) => node.apply("logical_and", &[already, allowed])?,
            None => allowed,
        });
        Ok(())
    }

    /// Scores with what is added, and minus infinity where a key may not be looked at.
    pub(super) fn apply(&self, node: &mut Node<'_>, scores: Value) -> Result<Value, Problem> {
        let mut masked = scores;
        let least = node.scalar_like(scores, f64::NEG_INFINITY)?;
        if let Some(bias) = self.bias {
            let sum = node.apply("add", &[masked, bias])?;
            // Whatever the score is, infinity among it.
            let is_out = node.apply("equal", &[bias, least])?;
            masked = node.apply("where", &[is_out, least, sum])?;
        }
        match self.allowed {
            Some(allowed) => node.apply("where", &[allowed, masked, least]),
            None => Ok(masked),
        }
    }
}

/// How far a query may look, from the key at its own position.
struct Window {
    before: Option<i64>,
    after: Option<i64>,
}

impl Window {
    fn of(node: &Node<'_>) -> Result<Self, Problem> {
        let bound = |name: &str| match node.version() < 25 {
            true => Ok(None),
            false => match node.int_or(name, -1)? {
                -1 => Ok(None),
                size if size >= 0 => Ok(Some(size.min(WIDEST))),
                size => invalid(format!("its attribute `{name}` is {size}")),
            },
        };
        let (before, after) = (bound("left_window_size")?, bound("right_window_size")?);
        let after = if node.flag("is_causal", false)? { Some(0) } else { after };
        Ok(Self { before, after })
    }

    /// Whether each key may be looked at; `counts` are those of keys that are no padding, where the queries are the
    /// last of them.
    fn allowed(
        &self,
        node: &mut Node<'_>,
        sequence: &Sequence,
        counts: Option<Value>,
    ) -> Result<Option<Value>, Problem> {
        if self.before.is_none() && self.after.is_none() {
            return Ok(None);
        }
        let own = places_along(node, sequence.queries)?;
        let own = reshape_to(node, own, &[sequence.queries, node.cx().dim(1)])?;
        let before = match counts {
            Some(counts) => {
                let queries = number(node, sequence.queries)?;
                node.apply("subtract", &[counts, queries])?
            }
            None => {
                let past = node.cx().dim_sub(sequence.keys, sequence.new);
                number(node, past)?
            }
        };
        let own = node.apply("add", &[own, before])?;
        self.within(node, own, sequence.keys)
    }

    /// Whether each of `keys` keys is in the window around positions.
    fn within(&self, node: &mut Node<'_>, own: Value, keys: Dim) -> Result<Option<Value>, Problem> {
        let places = places_along(node, keys)?;
        let mut found = None;
        let bounds = [(self.after, "less_equal"), (self.before.map(|size| -size), "greater_equal")];
        for (distance, op) in bounds {
            let Some(distance) = distance else { continue };
            let distance = node.cx().dim(distance);
            let distance = number(node, distance)?;
            let bound = node.apply("add", &[own, distance])?;
            let within = node.apply(op, &[places, bound])?;
            found = Some(match found {
                Some(found) => node.apply("logical_and", &[found, within])?,
                None => within,
            });
        }
        Ok(found)
    }
}
