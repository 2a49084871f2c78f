//! What the passes that combine parallel branches share: finding branches, joining them, taking them apart.
//!
//! Branches are calls of one operator on one value with weights that differ along one axis, in one list of
//! bindings. What follows each branch in the same way, an addition of one number a column or an element-wise
//! call, is joined as well, as long as nothing else reads what is in between. The joined call stands where the
//! first branch stood, so all weights and addends must be known before that branch, and memory must stay as it is
//! between the first branch and the last step ([`Effects`]).

use std::collections::HashMap;
use std::hash::Hash;

use tenon_plugin_api::prelude::*;

/// What is to be known of a call that may be joined with others.
pub(crate) struct Branch<K> {
    /// What branches that may be joined have in common, besides the operator and the shared argument; the axes follow from it.
    pub(crate) key: K,
    /// The axis of the weight, argument 1, along which weights are joined.
    pub(crate) weight_axis: i64,
    /// The axis of the result that this becomes.
    pub(crate) out_axis: usize,
    /// The extent of both axes.
    pub(crate) width: Dim,
}

/// Calls that may be joined.
struct Group {
    shared: Expr,
    attrs: Attrs,
    weight_axis: i64,
    out_axis: usize,
    members: Vec<Member>,
}

struct Member {
    call: Expr,
    weight: Expr,
    width: Dim,
}

/// Joins the branches that `describe` finds, at least `min_branches` of them and up to `max_width` wide.
pub(crate) fn combine<K: Hash + Eq>(
    func: &Function,
    cx: &PassContext,
    op: &str,
    limits: Limits,
    describe: impl Fn(&Rewriter, &Call) -> Option<Branch<K>>,
) -> Result<Function> {
    let body = func.view();
    let calls: Vec<Expr> = body.post_order().filter(|&expr| is_call_of(body, expr, op)).collect();
    let mut count = SideTable::new(body, 0);
    for &call in &calls {
        count[body.operands(call).at(1)] += 1;
    }
    let is_shared = |&call: &Expr| count[body.operands(call).at(1)] >= limits.min_branches;
    let calls: Vec<Expr> = calls.into_iter().filter(is_shared).collect();
    if calls.is_empty() {
        return Ok(func.clone());
    }
    let home = homes(body);
    let effects = Effects::of(func, cx);
    let mut rw = func.edit();
    let mut groups: Vec<Group> = Vec::new();
    let mut open: HashMap<(Option<Expr>, Expr, K), usize> = HashMap::new();
    for expr in calls {
        let Some(call) = rw.call_of(expr, op) else { continue };
        let Some(Branch { key, weight_axis, out_axis, width }) = describe(&rw, &call) else {
            continue;
        };
        let (shared, weight) = (call.args[0], call.args[1]);
        let key = (home[expr], shared, key);
        // A weight that is computed behind the first branch may be computed from it, and what reads memory behind a
        // write reads something else.
        let first_of = |group: &usize| groups[*group].members[0].call;
        let known = open.get(&key).copied();
        let known = known.filter(|group| effects.is_quiet_between(first_of(group), expr));
        let first = known.as_ref().map_or(expr, first_of);
        if is_known_before(&mut rw, weight, first) {
            let group = known.unwrap_or_else(|| {
                let (attrs, members) = (call.attrs, Vec::new());
                groups.push(Group { shared, attrs, weight_axis, out_axis, members });
                open.insert(key, groups.len() - 1);
                groups.len() - 1
            });
            groups[group].members.push(Member { call: call.expr, weight, width });
        }
    }
    groups.retain(|group| group.members.len() >= limits.min_branches);
    if !groups.is_empty() {
        let followers =
            Followers { body, cx, effects, uses: Uses::of(body), reader: readers(body) };
        for group in groups {
            join(&mut rw, &followers, op, limits, group);
        }
    }
    rw.finish()
}

/// Whether a node is a call of an operator with a first argument.
fn is_call_of(body: BodyView<'_>, expr: Expr, op: &str) -> bool {
    match body.view(expr) {
        View::Call { callee, args, .. } => body.op_name(callee) == Some(op) && !args.is_empty(),
        _ => false,
    }
}

/// What groups are joined.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Fewest branches that are joined, two at least.
    pub(crate) min_branches: usize,
    /// The greatest width of what they become; 0 for any.
    pub(crate) max_width: i64,
}

fn join(
    rw: &mut Rewriter,
    followers: &Followers<'_>,
    op: &str,
    limits: Limits,
    Group { shared, attrs, weight_axis, out_axis, members: mut group }: Group,
) {
    let width = |rw: &Rewriter, branch: &Member| rw.terms().dim_value(branch.width);
    // The parts begin at numbers, so only the last one may have a symbolic width.
    group.sort_by_key(|branch| width(rw, branch).is_none());
    let known: Vec<i64> = group.iter().map_while(|branch| width(rw, branch)).collect();
    let total: i64 = known.iter().sum();
    let is_too_wide =
        limits.max_width > 0 && (total > limits.max_width || known.len() < group.len());
    if known.len() + 1 < group.len() || is_too_wide {
        return;
    }
    let first = group.iter().map(|branch| branch.call).min().expect("a group has branches");

    let shared = rw.body().resolve(shared);
    let weights: Vec<Expr> = group.iter().map(|branch| rw.body().resolve(branch.weight)).collect();
    let weight = concatenate(rw, &weights, weight_axis);
    let mut value = rw.call_op(op, &[shared, weight], attrs);
    let mut ends: Vec<Expr> = group.iter().map(|branch| branch.call).collect();
    while let Some(next) = followers.all(rw, &ends) {
        value = match next.follower {
            Follower::Map { op, attrs } => rw.call_op(op, &[value], attrs),
            Follower::Add => {
                let widths: Vec<Dim> = group.iter().map(|branch| branch.width).collect();
                let Some(axis) = column_axis(rw, &next.addends, &widths, first, ends[0], out_axis)
                else {
                    break;
                };
                let addend = concatenate(rw, &next.addends, axis);
                rw.apply("add", &[value, addend])
            }
        };
        ends = next.ends;
    }

    let starts: Vec<i64> = known
        .iter()
        .take(group.len() - 1)
        .scan(0, |start, width| {
            *start += width;
            Some(*start)
        })
        .collect();
    let attrs = [("indices", starts.into()), ("axis", (out_axis as i64).into())];
    let parts = rw.apply_with("split", &[value], &attrs);
    for (index, end) in ends.into_iter().enumerate() {
        let part = rw.tuple_get_item(parts, index as u32);
        rw.replace(end, part);
    }
}

/// Whether a value of the function is known when `call` is evaluated: bindings ascend.
fn is_known_before(rw: &mut Rewriter, expr: Expr, call: Expr) -> bool {
    let definition = rw.original_definition(expr);
    definition < call || rw.body().kind(definition).is_leaf_value()
}

fn concatenate(rw: &mut Rewriter, fields: &[Expr], axis: i64) -> Expr {
    let tuple = rw.tuple(fields);
    rw.apply_with("concatenate", &[tuple], &[("axis", axis.into())])
}

/// The axis along which addends hold one number a column, and 1 along the others; all of them known before
/// the first branch.
fn column_axis(
    rw: &mut Rewriter,
    addends: &[Expr],
    widths: &[Dim],
    first: Expr,
    result: Expr,
    out_axis: usize,
) -> Option<i64> {
    let rank = rw.rank(result)?;
    let own = rw.rank(addends[0])?;
    let axis = (out_axis + own).checked_sub(rank)?;
    for (&addend, &width) in addends.iter().zip(widths) {
        let (_, dims) = rw.tensor(addend)?;
        let one = rw.cx().dim(1);
        let is_column = dims.len() == own
            && dims
                .iter()
                .enumerate()
                .all(|(at, &dim)| dim == if at == axis { width } else { one });
        if !is_column || !is_known_before(rw, addend, first) {
            return None;
        }
    }
    Some(axis as i64)
}

/// What stands behind branches.
struct Followers<'a> {
    body: BodyView<'a>,
    cx: &'a PassContext,
    effects: Effects,
    uses: Uses,
    /// For each node, the last call that reads it.
    reader: SideTable<Option<Expr>>,
}

/// The same step behind every branch.
struct Step<'a> {
    follower: Follower<'a>,
    ends: Vec<Expr>,
    /// For an addition, the other argument of each.
    addends: Vec<Expr>,
}

#[derive(Clone, PartialEq)]
enum Follower<'a> {
    Map { op: &'a str, attrs: Attrs },
    Add,
}

impl<'a> Followers<'a> {
    /// The step that all branches take next; `None` when they part.
    fn all(&self, rw: &mut Rewriter, ends: &[Expr]) -> Option<Step<'a>> {
        let mut step: Option<Step<'a>> = None;
        for &end in ends {
            let (follower, next, addend) = self.behind(rw, end)?;
            let step = step.get_or_insert_with(|| Step {
                follower: follower.clone(),
                ends: Vec::new(),
                addends: Vec::new(),
            });
            if step.follower != follower {
                return None;
            }
            step.ends.push(next);
            step.addends.extend(addend.map(|addend| rw.body().resolve(addend)));
        }
        step
    }

    /// The only reader of a call, when it is one of the steps that can be joined.
    fn behind(&self, rw: &mut Rewriter, end: Expr) -> Option<(Follower<'a>, Expr, Option<Expr>)> {
        let mut reader = self.only_reader(end)?;
        let mut read = end;
        if self.body.kind(reader) == Kind::VAR {
            read = reader;
            reader = self.only_reader(reader)?;
        }
        let View::Call { callee, args, attrs } = self.body.view(reader) else { return None };
        let op = self.body.op_name(callee)?;
        let info = self.cx.op_info(op)?;
        if !self.effects.is_quiet_between(end, reader) {
            return None;
        }
        if args.len() == 1 && info.is_pure && info.pattern == OpPattern::Elementwise {
            return Some((Follower::Map { op, attrs }, reader, None));
        }
        let is_same_shape = rw.body().ty(reader) == rw.body().ty(end);
        if op != "add" || !is_same_shape {
            return None;
        }
        let other = if args.at(0) == read { args.at(1) } else { args.at(0) };
        Some((Follower::Add, reader, Some(other)))
    }

    /// What reads a node, when one place does: the variable that is bound to it, or a call.
    fn only_reader(&self, expr: Expr) -> Option<Expr> {
        (self.uses.count(expr) == 1).then_some(self.reader[expr])?
    }
}

/// For each node that a call reads or a variable is bound to, the last such call or variable.
fn readers(body: BodyView<'_>) -> SideTable<Option<Expr>> {
    let mut reader = SideTable::new(body, None);
    for expr in body.post_order() {
        match body.view(expr) {
            View::Let(bindings) => {
                for (var, value) in bindings.bindings() {
                    reader[value] = Some(var);
                }
            }
            View::Call { args, .. } => {
                for arg in args.iter() {
                    reader[arg] = Some(expr);
                }
            }
            _ => {}
        }
    }
    reader
}

/// For each node that a variable is bound to, the list of bindings that does it.
fn homes(body: BodyView<'_>) -> SideTable<Option<Expr>> {
    let mut home = SideTable::new(body, None);
    for expr in body.post_order() {
        if let View::Let(bindings) = body.view(expr) {
            for (_, value) in bindings.bindings() {
                home[value] = Some(expr);
            }
        }
    }
    home
}
