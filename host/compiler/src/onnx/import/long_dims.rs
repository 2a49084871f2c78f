//! Dimensions that grow from node to node get names before they are too long.
//!
//! ```text
//! d = Add(a, b)           f32[max(a, b)]            %n: shape[k] = bind_dims(…) { ty = shape[k], most = shape[max(…)] }
//! e = Add(d, Reshape(d))  f32[max(max(a, b), …)]    %e: f32[k] = reshape(…, shape(k))
//! ```
//!
//! A sum of two tensors whose extents nobody can compare is as long as the longer one, and in a model that does so in each layer
//! dimensions are twice as long behind each. A name is a symbol that is found when the model runs, like a size that is found in a tensor;
//! what it stands for is its bound as well, so memory is planned as without it. A dimension that comes again has the name that it had.

use tenon_plugin_api::rule::import::Known;

use crate::ir::{Dim, Term, TermKind, Terms, Type, TypeView};

use super::builder::{Builder, Value};
use super::error::{Problem, unsupported};
use super::node::Node;
use super::shapes::SHAPED;

/// The rule that makes symbols of dimensions.
const NAMED: &str = "tenon::Named";

/// A dimension with more parts is long. What one operator makes of short ones is still looked at part by part without taking time.
const LONGEST: usize = 48;

impl Builder {
    /// The value with names in its type for what is too long there.
    pub(super) fn with_short_dims(&mut self, value: Value) -> Result<Value, Problem> {
        let dims = self.dims_of(self.ty(value));
        let mut long: Vec<Dim> = dims.clone();
        long.retain(|&dim| is_long(self.terms(), dim));
        if long.is_empty() {
            return Ok(value);
        }
        for dim in long {
            if self.name_of(dim).is_none() {
                let name = self.named(dim)?;
                self.set_name(dim, name);
            }
        }
        let dims = dims.iter().map(|&dim| self.name_of(dim).unwrap_or(dim)).collect();
        let dims = self.known(Known::vector(dims));
        self.asked(SHAPED, &[value, dims])
    }

    /// A symbol that stands for a dimension.
    fn named(&mut self, dim: Dim) -> Result<Dim, Problem> {
        let dims = self.known(Known::vector(vec![dim]));
        let symbols = self.asked(NAMED, &[dims])?;
        match self.elements(symbols).as_deref() {
            Some(Known { elements, .. }) if elements.len() == 1 => Ok(elements[0]),
            _ => Err(Problem::Rule(format!("the rule for {NAMED} answers something else"))),
        }
    }

    /// The dimensions of a tensor; none of what is no tensor, or of unknown rank.
    fn dims_of(&self, ty: Type) -> Vec<Dim> {
        match self.terms().ty(ty) {
            TypeView::Tensor { dims: Some(dims), .. } => dims.to_vec(),
            _ => Vec::new(),
        }
    }

    /// What the rule for `key` makes of these.
    fn asked(&mut self, key: &str, inputs: &[Value]) -> Result<Value, Problem> {
        let rules = self.cx().operators().rules(super::FACET, key, 0);
        let rules = rules.map_err(|error| Problem::Rule(error.to_string()))?;
        let inputs: Vec<Option<Value>> = inputs.iter().copied().map(Some).collect();
        match Node::of_importer(self).ask(&rules, key, &inputs)?.as_deref() {
            Some(&[value]) => Ok(value),
            _ => unsupported(format!("dimensions that need a rule for {key}")),
        }
    }
}

fn is_long(terms: Terms<'_>, dim: Dim) -> bool {
    let (mut waiting, mut parts) = (vec![Term::from(dim)], 0);
    while let Some(term) = waiting.pop() {
        parts += 1;
        if parts + waiting.len() > LONGEST {
            return true;
        }
        if terms.kind(term) != TermKind::DIM_SYMBOL {
            waiting.extend(terms.children(term));
        }
    }
    false
}
