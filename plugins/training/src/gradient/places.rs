//! Which value an expression stands for, whatever it is called and however many tuples it stands in.
//!
//! ```ir
//! %p = split(%c) { sections = 2 }
//! %t = (%x, %p)
//! %u = (%t, %y)
//! %v = %u.0              // what %t is
//! %a = %v.0              // what %x is
//! %b = %v.1.0            // field 0 of %p
//! ```
//!
//! So a tuple that the function itself builds holds nothing of its own, and what it is built from is found without
//! it. One sweep in the order of the nodes finds all places.

use std::collections::HashMap;

use tenon_plugin_api::ir::Args;
use tenon_plugin_api::prelude::*;

/// A value: a node of the body, or a field of one that is no tuple expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place(u32);

impl Place {
    /// The number as an index into a dense side table.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The values of a body.
pub(super) struct Places<'a> {
    body: BodyView<'a>,
    /// By node, the value it stands for.
    of: Vec<Place>,
    /// Fields of parameters and of results of calls, and fields of those.
    fields: HashMap<(Place, usize), Place>,
    /// By place, the node that it is, or is inside of.
    nodes: Vec<Expr>,
    /// By place, whether it depends on a parameter that is asked for.
    is_active: Vec<bool>,
}

impl<'a> Places<'a> {
    /// Finds the values of a body; `wanted` are the parameters that are asked for.
    pub(super) fn of_body(body: BodyView<'a>, bindings: &[(Expr, Expr)], wanted: &[Expr]) -> Self {
        let mut places = Self {
            body,
            of: body.post_order().map(|expr| Place(expr.0)).collect(),
            fields: HashMap::new(),
            nodes: body.post_order().collect(),
            is_active: vec![false; body.len()],
        };
        for &param in wanted {
            places.is_active[param.index()] = true;
        }
        // Bindings stand in the order of their values.
        let mut bindings = bindings.iter().peekable();
        for expr in body.post_order() {
            match body.view(expr) {
                View::Var { .. } => {}
                View::TupleGetItem { tuple, index } => {
                    places.of[expr.index()] = places.field(places.of(tuple), index);
                }
                _ => {
                    let operands = body.operands(expr);
                    places.is_active[expr.index()] =
                        operands.iter().any(|operand| places.is_active(places.of(operand)));
                }
            }
            while let Some(&(var, value)) = bindings.next_if(|(_, value)| *value <= expr) {
                places.of[var.index()] = places.of(value);
            }
        }
        places
    }

    /// The value that a node of the body stands for.
    pub(super) fn of(&self, expr: Expr) -> Place {
        self.of[expr.index()]
    }

    /// Field `index` of a tuple.
    pub(super) fn field(&mut self, tuple: Place, index: usize) -> Place {
        if let Some(fields) = self.tuple(tuple) {
            return self.of(fields.at(index));
        }
        let (nodes, is_active) = (&mut self.nodes, &mut self.is_active);
        *self.fields.entry((tuple, index)).or_insert_with(|| {
            nodes.push(nodes[tuple.index()]);
            is_active.push(is_active[tuple.index()]);
            Place(nodes.len() as u32 - 1)
        })
    }

    /// Field `index` of a parameter or of the result of a call, where something has asked for it.
    pub(super) fn known_field(&self, tuple: Place, index: usize) -> Option<Place> {
        self.fields.get(&(tuple, index)).copied()
    }

    /// The fields of a tuple that the function builds.
    pub(super) fn tuple(&self, place: Place) -> Option<Args<'a>> {
        let expr = Some(Expr(place.0)).filter(|expr| expr.index() < self.body.len())?;
        match self.body.view(expr) {
            View::Tuple(fields) => Some(fields),
            _ => None,
        }
    }

    /// The node that a place is, or is inside of.
    pub(super) fn node(&self, place: Place) -> Expr {
        self.nodes[place.index()]
    }

    /// Whether a place depends on a parameter that is asked for.
    pub(super) fn is_active(&self, place: Place) -> bool {
        self.is_active[place.index()]
    }
}
