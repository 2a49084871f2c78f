//! Decision trees, and the leaves that rows come to in them.
//!
//! ```text
//! at[n, t] = the root of tree t
//! at = x[n, feature[at]] <= split[at] ? true[at] : false[at]      as often as the deepest tree is deep
//! ```
//!
//! Leaves are nodes that lead to themselves, so that trees need not be equally deep.

use std::collections::BTreeSet;

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::cast_to;

use super::attributes::table;
use super::votes::Vote;

/// How deep trees may be, since each step is written out.
const DEEPEST: usize = 128;

/// What a node compares an element with: by the numbers of `TreeEnsemble`, and by those names and operators.
pub(super) const MODES: [(&str, &str); 6] = [
    ("BRANCH_LEQ", "less_equal"),
    ("BRANCH_LT", "less"),
    ("BRANCH_GTE", "greater_equal"),
    ("BRANCH_GT", "greater"),
    ("BRANCH_EQ", "equal"),
    ("BRANCH_NEQ", "not_equal"),
];
/// Whether the element is in a set.
pub(super) const MEMBER: i64 = 6;
pub(super) const LEAF: i64 = 7;

/// Trees, as lists with an entry for each node, leaves among them.
pub(super) struct Forest {
    pub(super) roots: Vec<i64>,
    pub(super) features: Vec<i64>,
    pub(super) splits: Vec<f64>,
    pub(super) modes: Vec<i64>,
    /// Whether what is no number goes where a comparison that holds leads.
    pub(super) tracks: Vec<i64>,
    pub(super) trues: Vec<i64>,
    pub(super) falses: Vec<i64>,
    /// What nodes of the mode `MEMBER` look for, in the order of these.
    pub(super) sets: Vec<Vec<f64>>,
    pub(super) votes: Vec<Vote>,
    pub(super) targets: i64,
    /// What is added to each target.
    pub(super) base: Vec<f64>,
}

impl Forest {
    /// Appends leaves behind the nodes.
    pub(super) fn add_leaves(&mut self, count: usize) {
        let nodes = self.modes.len();
        let own = (nodes..nodes + count).map(|place| place as i64);
        self.trues.extend(own.clone());
        self.falses.extend(own);
        self.modes.resize(nodes + count, LEAF);
        self.features.resize(nodes + count, 0);
        self.tracks.resize(nodes + count, 0);
        self.splits.resize(nodes + count, 0.0);
    }

    /// The leaves that the rows of `x`, whose elements have this type, come to: one for each tree.
    pub(super) fn leaves(
        &self,
        node: &mut Node<'_>,
        x: Value,
        dtype: DType,
    ) -> Result<Value, Problem> {
        let &[rows, columns] = node.dims(x)?.as_slice() else {
            return invalid("its input is no matrix");
        };
        let depth = self.checked_depth(node, columns)?;
        let modes: BTreeSet<i64> =
            self.modes.iter().copied().filter(|&mode| mode != LEAF).collect();
        let tables = Tables::of(node, self, dtype, &modes)?;
        let count = self.roots.len();
        let roots = places(node, &self.roots, &[1, count as i64])?;
        let whole = node.shape(&[rows, node.cx().dim(count as i64)])?;
        let mut at = node.apply("broadcast_to", &[roots, whole])?;
        for _ in 0..depth {
            at = tables.step(node, x, at, &modes)?;
        }
        Ok(at)
    }

    /// How many steps lead from the roots to leaves at most; an error where a number is none of a node, a column or a target.
    fn checked_depth(&self, node: &Node<'_>, columns: Dim) -> Result<usize, Problem> {
        let count = self.modes.len();
        let is_node = |&place: &i64| usize::try_from(place).is_ok_and(|place| place < count);
        let links = [&self.roots, &self.trues, &self.falses].into_iter();
        if self.roots.is_empty() || !links.flatten().all(is_node) {
            return invalid("its trees lead to nodes that are not there");
        }
        let most = node.terms().dim_value(columns).unwrap_or(i64::MAX);
        if !self.features.iter().all(|feature| (0..most).contains(feature)) {
            return invalid("it compares a column that is not there");
        }
        let is_target = |vote: &Vote| (0..self.targets).contains(&vote.target);
        let has_base = self.base.is_empty() || self.base.len() as i64 == self.targets;
        let has_all = self.splits.len() == count && has_base;
        let members = self.modes.iter().filter(|&&mode| mode == MEMBER).count();
        if !has_all || !self.votes.iter().all(is_target) || members != self.sets.len() {
            return invalid("its lists do not fit together");
        }
        let mut level: BTreeSet<i64> = self.roots.iter().copied().collect();
        for depth in 0..=DEEPEST {
            let inner = level.iter().map(|&place| place as usize);
            let inner = inner.filter(|&place| self.modes[place] != LEAF);
            let next: BTreeSet<i64> =
                inner.flat_map(|place| [self.trues[place], self.falses[place]]).collect();
            if next.is_empty() {
                return Ok(depth);
            }
            level = next;
        }
        unsupported(format!("trees that are deeper than {DEEPEST}"))
    }
}

/// The lists of a forest, as constants.
struct Tables {
    features: Value,
    splits: Value,
    trues: Value,
    falses: Value,
    /// Where nodes compare in several ways.
    modes: Option<Value>,
    /// Where some nodes go their way of what is no number.
    tracks: Option<Value>,
    /// Which set each node looks into, and the sets.
    sets: Option<[Value; 2]>,
}

impl Tables {
    fn of(
        node: &mut Node<'_>,
        forest: &Forest,
        dtype: DType,
        modes: &BTreeSet<i64>,
    ) -> Result<Self, Problem> {
        let shape = [forest.modes.len() as i64];
        let mut list = |list: &[i64]| places(node, list, &shape);
        let (features, trues) = (list(&forest.features)?, list(&forest.trues)?);
        let falses = list(&forest.falses)?;
        let has_modes = modes.len() > 1;
        let modes = if has_modes { Some(list(&forest.modes)?) } else { None };
        let has_tracks = forest.tracks.contains(&1);
        let tracks = if has_tracks { Some(list(&forest.tracks)?) } else { None };
        let splits = table(node, &forest.splits, &shape, dtype)?;
        let sets = match forest.sets.as_slice() {
            [] => None,
            sets => Some(set_tables(node, &forest.modes, sets, dtype)?),
        };
        Ok(Self { features, splits, trues, falses, modes, tracks, sets })
    }

    /// The nodes that come behind these.
    fn step(
        &self,
        node: &mut Node<'_>,
        x: Value,
        at: Value,
        modes: &BTreeSet<i64>,
    ) -> Result<Value, Problem> {
        let feature = looked_up(node, self.features, at)?;
        let x = node.call("gather_elements", &[x, feature], &[("axis", 1.into())])?;
        let mut holds = None;
        for &mode in modes {
            let own = self.compared(node, x, at, mode)?;
            holds = Some(match (holds, self.modes) {
                (Some(before), Some(modes)) => {
                    let (found, mode) =
                        (looked_up(node, modes, at)?, node.scalar(DType::I32, mode as f64)?);
                    let is_own = node.apply("equal", &[found, mode])?;
                    node.apply("where", &[is_own, own, before])?
                }
                _ => own,
            });
        }
        let Some(mut holds) = holds else { return Ok(at) };
        if let Some(tracks) = self.tracks {
            let goes = looked_up(node, tracks, at)?;
            let goes = cast_to(node, goes, DType::BOOL)?;
            let is_missing = node.apply("not_equal", &[x, x])?;
            let goes = node.apply("logical_and", &[goes, is_missing])?;
            holds = node.apply("logical_or", &[holds, goes])?;
        }
        let (yes, no) = (looked_up(node, self.trues, at)?, looked_up(node, self.falses, at)?);
        node.apply("where", &[holds, yes, no])
    }

    /// Whether the elements of `x` are what nodes of a mode look for.
    fn compared(
        &self,
        node: &mut Node<'_>,
        x: Value,
        at: Value,
        mode: i64,
    ) -> Result<Value, Problem> {
        let by = usize::try_from(mode).ok().and_then(|mode| MODES.get(mode));
        if let Some((_, by)) = by {
            let split = looked_up(node, self.splits, at)?;
            return node.apply(by, &[x, split]);
        }
        let (MEMBER, Some([set_of, sets])) = (mode, self.sets) else {
            return invalid(format!("it has a node of mode {mode}"));
        };
        let set = looked_up(node, set_of, at)?;
        let elements = looked_up(node, sets, set)?;
        let x = node.call("expand_dims", &[x], &[("axis", vec![2].into())])?;
        let is_one = node.apply("equal", &[x, elements])?;
        let is_one = cast_to(node, is_one, DType::I64)?;
        let attrs = [("axis", vec![2].into()), ("keepdims", false.into())];
        let is_one = node.call("max", &[is_one], &attrs)?;
        cast_to(node, is_one, DType::BOOL)
    }
}

/// For each node which set it looks into, and a matrix of the sets, whose rows end in what equals nothing.
fn set_tables(
    node: &mut Node<'_>,
    modes: &[i64],
    sets: &[Vec<f64>],
    dtype: DType,
) -> Result<[Value; 2], Problem> {
    let (mut set_of, mut next) = (Vec::with_capacity(modes.len()), 0);
    for &mode in modes {
        set_of.push(if mode == MEMBER { next } else { 0 });
        next += i64::from(mode == MEMBER);
    }
    let longest = sets.iter().map(Vec::len).max().unwrap_or(0).max(1);
    if !node.spend(sets.len().saturating_mul(longest).saturating_mul(size_of::<f64>())) {
        return unsupported(format!("{} sets of {longest} elements", sets.len()));
    }
    let mut elements = vec![f64::NAN; sets.len() * longest];
    for (row, set) in elements.chunks_exact_mut(longest).zip(sets) {
        row[..set.len()].copy_from_slice(set);
    }
    let set_of = places(node, &set_of, &[modes.len() as i64])?;
    let shape = [sets.len() as i64, longest as i64];
    Ok([set_of, table(node, &elements, &shape, dtype)?])
}

/// Numbers of nodes, of columns and the like in half of the bytes: what steps lead through is mostly these.
fn places(node: &mut Node<'_>, list: &[i64], shape: &[i64]) -> Result<Value, Problem> {
    let bytes: Option<Vec<[u8; 4]>> =
        list.iter().map(|&number| i32::try_from(number).ok().map(i32::to_le_bytes)).collect();
    match bytes {
        Some(bytes) => node.constant(DType::I32, shape, bytes.as_flattened()),
        None => unsupported("numbers of nodes or columns beyond 32 bits"),
    }
}

/// Rows of a table.
pub(super) fn looked_up(node: &mut Node<'_>, table: Value, at: Value) -> Result<Value, Problem> {
    node.call("take", &[table, at], &[("axis", 0.into())])
}
