//! Copying parts of a function.

use rustc_hash::FxHashMap;

use crate::ir::{BodyView, BuildPrim, Expr, View};
use crate::pass::{Calls, Rewriter};

/// A part of a function to be copied, once or many times: everything that a node reaches.
///
/// A copy is hygienic: the variables and buffers that the part binds are fresh in it, so two copies may
/// stand in one function. What comes out as it was is shared, not copied, and integer arithmetic that
/// a substitution makes constant is folded.
pub struct Template {
    /// Operands before their users; the root is the last.
    nodes: Vec<Expr>,
    /// Where the operands of all nodes stand among `nodes`, one behind the other, and where those of each end.
    operands: Vec<u32>,
    end: Vec<usize>,
    place: FxHashMap<Expr, u32>,
    bound: Vec<u32>,
}

impl Template {
    /// Everything that `root` reaches, as `body` shows it now.
    pub fn of(body: BodyView<'_>, root: Expr) -> Self {
        let mut template = Self {
            nodes: Vec::new(),
            operands: Vec::new(),
            end: Vec::new(),
            place: FxHashMap::default(),
            bound: Vec::new(),
        };
        let mut stack = vec![(root, false)];
        while let Some((expr, is_ready)) = stack.pop() {
            if template.place.contains_key(&expr) {
                continue;
            }
            let operands = body.operands_keeping_binders(expr);
            if !is_ready {
                stack.push((expr, true));
                let first = stack.len();
                stack.extend(operands.map(|operand| (operand, false)));
                stack[first..].reverse();
                continue;
            }
            for (position, operand) in operands.enumerate() {
                let place = template.place[&operand];
                template.operands.push(place);
                if body.is_binder(expr, position) {
                    template.bound.push(place);
                }
            }
            template.place.insert(expr, template.nodes.len() as u32);
            template.nodes.push(expr);
            template.end.push(template.operands.len());
        }
        template
    }

    /// The nodes of the part, operands before their users; the root is the last.
    pub fn nodes(&self) -> &[Expr] {
        &self.nodes
    }

    /// Copies the part; uses of the first of each pair in `substitution` read the second.
    pub fn copy(&self, rw: &mut Rewriter, substitution: &[(Expr, Expr)]) -> Expr {
        let mut copies = self.nodes.clone();
        let mut is_settled = vec![false; copies.len()];
        for &place in &self.bound {
            if !std::mem::replace(&mut is_settled[place as usize], true) {
                copies[place as usize] = rw.rebuild(self.nodes[place as usize], &[]);
            }
        }
        for (old, new) in substitution {
            if let Some(&place) = self.place.get(old) {
                copies[place as usize] = *new;
                is_settled[place as usize] = true;
            }
        }
        let mut first = 0;
        for (index, &end) in self.end.iter().enumerate() {
            let places = &self.operands[std::mem::replace(&mut first, end)..end];
            let is_same = |&place: &u32| copies[place as usize] == self.nodes[place as usize];
            if is_settled[index] || places.iter().all(is_same) {
                continue;
            }
            let operands: Vec<Expr> = places.iter().map(|&place| copies[place as usize]).collect();
            copies[index] = match (rw.view(self.nodes[index]), operands.as_slice()) {
                (View::Binary { op, .. }, &[a, b]) => rw.binary(op, a, b),
                _ => rw.rebuild(self.nodes[index], &operands),
            };
        }
        copies.pop().expect("a part holds its root")
    }
}
