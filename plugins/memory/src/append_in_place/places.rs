//! Which results of a function may lie where parameters do.

use std::collections::{HashMap, HashSet};

use tenon_plugin_api::ir::{Callee, LetView};
use tenon_plugin_api::prelude::*;

use crate::found_symbols::{depends_on, found_symbols};
use crate::inplace_update::program::Append;

/// A result that lies in memory with room.
pub(super) struct Made {
    /// The parameter that is its front.
    pub(super) past: Expr,
    pub(super) axis: usize,
}

/// What lies in memory with room.
#[derive(Default)]
pub(super) struct Places {
    /// Results, by the variables that their memory is bound to.
    pub(super) made: HashMap<Expr, Made>,
    /// Views of them, each with what it is a view of and the axis.
    pub(super) views: HashMap<Expr, (Expr, usize)>,
    /// The calls that put parameters to their fronts.
    pub(super) appended: HashMap<Expr, Vec<Append>>,
}

impl Places {
    /// Those of a function; `appends` says what a program puts to the front of what.
    pub(super) fn of(
        body: BodyView<'_>,
        (bindings, is_known): (LetView<'_>, bool),
        mut appends: impl FnMut(Symbol) -> Vec<Append>,
    ) -> Places {
        let View::Function { params, .. } = body.view(body.root()) else {
            return Places::default();
        };
        // Most functions call no program that puts anything to the front, and are left after one look at the calls.
        let mut calls = bindings.bindings().filter_map(|(_, value)| body.callee(value));
        if !calls.any(|it| matches!(it, Callee::Function(name) if !appends(name).is_empty())) {
            return Places::default();
        }
        let params: HashSet<Expr> = params.iter().collect();
        let mut uses: SideTable<u32> = SideTable::new(body, 0);
        for expr in body.post_order().filter(|&expr| expr != body.root()) {
            body.operands(expr).iter().for_each(|operand| uses[operand] += 1);
        }
        let mut results: HashMap<Expr, usize> = HashMap::new();
        results_of(body, bindings.result()).into_iter().for_each(|it| {
            *results.entry(it).or_default() += 1;
        });
        // Where an extent is found on the way, the caller has no buffer for the result yet.
        let found = found_symbols(body);
        let is_found = |var| {
            let tensor = body.ty(var).and_then(|ty| body.terms().tensor(ty));
            tensor.is_some_and(|(_, dims)| depends_on(body.terms(), dims, &found))
        };
        let mut places = Places::default();
        let mut made = SideTable::new(body, false);
        let mut touched = SideTable::new(body, false);
        for (var, value) in bindings.bindings() {
            let View::Call { callee, args, .. } = body.view(value) else {
                body.operands(value).iter().for_each(|operand| touched[operand] = true);
                continue;
            };
            if body.op_name(callee) == Some("builtin.alloc_tensor") {
                made[var] = true;
            }
            if let Some(Callee::Function(name)) = body.callee(value) {
                let appends = appends(name);
                let mut given: HashMap<Expr, usize> = HashMap::new();
                if !appends.is_empty() {
                    args.iter().for_each(|arg| *given.entry(arg).or_default() += 1);
                }
                for append in appends {
                    let (Some(past), Some(new)) = (args.get(append.input), args.get(append.output))
                    else {
                        continue;
                    };
                    let is_state = params.contains(&past) && uses[past] == 1;
                    let is_new = made[new]
                        && results.get(&new) == Some(&1)
                        && !touched[new]
                        && given.get(&new) == Some(&1)
                        && !is_found(new);
                    let axis = longer_axis(body, past, new, is_known);
                    let (true, true, Some(axis)) = (is_state, is_new, axis) else { continue };
                    places.made.insert(new, Made { past, axis });
                    places.appended.entry(value).or_default().push(append);
                }
            }
            args.iter().for_each(|arg| touched[arg] = true);
        }
        places.keep_what_programs_touch(body, bindings);
        places
    }

    pub(super) fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Leaves out what something else than a program touches, and finds the views of the others.
    fn keep_what_programs_touch(&mut self, body: BodyView<'_>, bindings: LetView<'_>) {
        // The result that each variable is memory of.
        let mut root_of: HashMap<Expr, Expr> = self.made.keys().map(|&var| (var, var)).collect();
        let mut bound: HashSet<Expr> = HashSet::new();
        let mut bad: HashSet<Expr> = HashSet::new();
        // Those of branches behind what is around them.
        for (var, value) in all_bindings(body, bindings) {
            bound.insert(value);
            let operands = body.operands(value);
            let of: Vec<Expr> = operands.iter().filter(|it| root_of.contains_key(it)).collect();
            let View::Call { callee, args, .. } = body.view(value) else {
                bad.extend(of.iter().map(|it| root_of[it]));
                continue;
            };
            match (body.view(callee), body.op_name(callee)) {
                (View::Global { .. }, _)
                    if body.ty(value).is_some_and(|ty| is_nothing(body, ty)) => {}
                (_, Some("memory.view")) if args.len() == 1 && of.len() == 1 => {
                    let root = root_of[&of[0]];
                    let axis =
                        self.axis_of(of[0]).and_then(|axis| axis_in_view(body, of[0], var, axis));
                    match axis {
                        Some(axis) => {
                            self.views.insert(var, (of[0], axis));
                            root_of.insert(var, root);
                        }
                        None => bad.extend([root]),
                    }
                }
                (_, Some("memory.kill")) => {}
                _ => bad.extend(of.iter().map(|it| root_of[it])),
            }
        }
        // Whatever is no binding here, but for the result itself, which may be a tuple.
        let (root, result) = (body.root(), bindings.result());
        let View::Function { body: block, .. } = body.view(root) else { return };
        let branches: HashSet<Expr> = branches_of(body, bindings).into_iter().collect();
        for expr in body.post_order().filter(|expr| !bound.contains(expr)) {
            if expr == root || expr == block {
                continue;
            }
            let is_result = |operand: &Expr| expr == result && self.made.contains_key(operand);
            // Of a branch that has bindings, what it gives.
            let operands: Vec<Expr> = match body.view(expr) {
                View::Let(inner) if branches.contains(&expr) => vec![inner.result()],
                _ => body.operands(expr).iter().collect(),
            };
            let inside = operands.into_iter().filter(|operand| !is_result(operand));
            bad.extend(inside.filter_map(|operand| root_of.get(&operand).copied()));
        }
        self.made.retain(|var, _| !bad.contains(var));
        self.views.retain(|var, _| !bad.contains(&root_of[var]));
        let made = &self.made;
        for (call, appends) in &mut self.appended {
            let args = body.operands(*call);
            appends.retain(|append| {
                args.get(1 + append.output).is_some_and(|it| made.contains_key(&it))
            });
        }
    }

    fn axis_of(&self, var: Expr) -> Option<usize> {
        let made = self.made.get(&var).map(|made| made.axis);
        made.or_else(|| self.views.get(&var).map(|&(_, axis)| axis))
    }
}

/// The bindings of a block and of the branches in it, each behind what it sees.
fn all_bindings(body: BodyView<'_>, bindings: LetView<'_>) -> Vec<(Expr, Expr)> {
    let mut all: Vec<(Expr, Expr)> = bindings.bindings().collect();
    for branch in branches_of(body, bindings) {
        if let View::Let(inner) = body.view(branch) {
            all.extend(inner.bindings());
        }
    }
    all
}

/// The branches of the choices that a block binds, and of those in them, outer ones first.
pub(super) fn branches_of(body: BodyView<'_>, bindings: LetView<'_>) -> Vec<Expr> {
    let mut branches = Vec::new();
    let mut blocks = vec![bindings];
    while let Some(bindings) = blocks.pop() {
        for (_, value) in bindings.bindings() {
            let View::If { then, otherwise, .. } = body.view(value) else { continue };
            for branch in [then, otherwise] {
                branches.push(branch);
                if let View::Let(inner) = body.view(branch) {
                    blocks.push(inner);
                }
            }
        }
    }
    branches
}

fn is_nothing(body: BodyView<'_>, ty: Type) -> bool {
    matches!(body.terms().ty(ty), TypeView::Tuple([]))
}

/// What a function gives, fields of tuples one after the other.
fn results_of(body: BodyView<'_>, result: Expr) -> Vec<Expr> {
    match body.view(result) {
        View::Tuple(fields) => fields.iter().collect(),
        _ => vec![result],
    }
}

/// The only axis along which a tensor is longer than another one; how long that is depends on symbols, or `is_known` as well.
fn longer_axis(body: BodyView<'_>, past: Expr, new: Expr, is_known: bool) -> Option<usize> {
    let terms = body.terms();
    let ((dtype, dims), (other, longer)) =
        (terms.tensor(body.ty(past)?)?, terms.tensor(body.ty(new)?)?);
    if dtype != other || dims.len() != longer.len() || !dtype.bits().is_multiple_of(8) {
        return None;
    }
    let mut axes = (0..dims.len()).filter(|&axis| dims[axis] != longer[axis]);
    let (axis, None) = (axes.next()?, axes.next()) else { return None };
    (is_known || terms.dim_value(dims[axis]).is_none()).then_some(axis)
}

/// The axis of a view that is an axis of what it is a view of, with as much before it and behind it.
fn axis_in_view(body: BodyView<'_>, tensor: Expr, view: Expr, axis: usize) -> Option<usize> {
    let terms = body.terms();
    let ((_, dims), (_, viewed)) = (terms.tensor(body.ty(tensor)?)?, terms.tensor(body.ty(view)?)?);
    let sorted = |dims: &[Dim]| {
        // Products of the same extents, apart from those that are 1.
        let mut known = 1i64;
        let mut open: Vec<Dim> = Vec::new();
        for &dim in dims {
            match terms.dim_value(dim) {
                Some(value) => known = known.saturating_mul(value),
                None => open.push(dim),
            }
        }
        open.sort_unstable();
        (known, open)
    };
    (0..viewed.len()).find(|&at| {
        viewed[at] == dims[axis]
            && sorted(&viewed[..at]) == sorted(&dims[..axis])
            && sorted(&viewed[at + 1..]) == sorted(&dims[axis + 1..])
    })
}

/// A type of which one extent is the room.
pub(super) fn room_type(rw: &Rewriter, ty: Type, axis: usize, room: Dim) -> Result<Type> {
    let (dtype, dims) = rw.terms().tensor(ty).ok_or_else(|| PassError::new("this is no tensor"))?;
    let mut dims = dims.to_vec();
    dims[axis] = room;
    Ok(rw.cx().tensor_type(dtype, &dims))
}
