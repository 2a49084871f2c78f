//! Decision trees, and the leaves that rows come to in them.
//!
//! ```text
//! x < s     =>   x <= p, where p is the number before s
//! x > s     =>   x <= s, and the ways change places
//! x == s    =>   x <= s, and behind that x <= p
//! x in s    =>   a tree that looks for the numbers before the elements of s and for these, by halves
//! ```
//!
//! So all nodes compare in one way. Leaves are nodes that lead to themselves, so that trees need not be equally deep.

use tenon_plugin_api::rule::prelude::*;

use crate::onnx::steps::{cast_to, wide};

use super::attributes::table;
use super::votes::Vote;

/// The operators that nodes compare an element by, in the order of `TreeEnsemble`.
pub(super) const MODES: [&str; 6] =
    ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"];
const LEQ: i64 = 0;
const LT: i64 = 1;
const GTE: i64 = 2;
const GT: i64 = 3;
const EQ: i64 = 4;
const NEQ: i64 = 5;
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
        let &[_, columns] = node.dims(x)?.as_slice() else {
            return invalid("its input is no matrix");
        };
        self.check(node, columns)?;
        let dtype = wide(dtype);
        let nodes = Nodes::of(node, self, dtype)?;
        let Some(depth) = nodes.depth(&self.roots) else {
            return invalid("its trees lead in a circle");
        };
        let x = cast_to(node, x, dtype)?;
        let [features, trues, falses] =
            [&nodes.features, &nodes.trues, &nodes.falses].map(|list| places(node, list));
        let splits = table(node, &nodes.splits, &[nodes.splits.len() as i64], dtype)?;
        let mut args = vec![x, places(node, &self.roots)?, features?, splits, trues?, falses?];
        if nodes.missing != nodes.falses {
            args.push(places(node, &nodes.missing)?);
        }
        let leaves = node.call("trees.leaves", &args, &[("depth", depth.into())])?;
        cast_to(node, leaves, DType::I32)
    }

    /// An error where a number is none of a node, a column or a target.
    fn check(&self, node: &Node<'_>, columns: Dim) -> Result<(), Problem> {
        let count = self.modes.len();
        let is_node = |&place: &i64| usize::try_from(place).is_ok_and(|place| place < count);
        let links = [&self.roots, &self.trues, &self.falses].into_iter();
        if self.roots.is_empty() || !links.flatten().all(is_node) {
            return invalid("its trees lead to nodes that are not there");
        }
        let leads_back = |at: usize| [self.trues[at], self.falses[at]].contains(&(at as i64));
        if (0..count).any(|at| self.modes[at] != LEAF && leads_back(at)) {
            return invalid("its trees lead in a circle");
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
        Ok(())
    }
}

/// Nodes that all go to `trues` where an element is at most the split, and to `falses` otherwise, or to `missing` where it is no number.
/// Those of the forest come first.
struct Nodes {
    dtype: DType,
    features: Vec<i64>,
    splits: Vec<f64>,
    trues: Vec<i64>,
    falses: Vec<i64>,
    missing: Vec<i64>,
}

impl Nodes {
    fn of(node: &mut Node<'_>, forest: &Forest, dtype: DType) -> Result<Self, Problem> {
        let mut nodes = Self {
            dtype,
            features: forest.features.clone(),
            splits: forest.splits.iter().map(|&split| rounded(split, dtype)).collect(),
            trues: forest.trues.clone(),
            falses: forest.falses.clone(),
            missing: forest.falses.clone(),
        };
        let mut sets = forest.sets.iter();
        for (at, &mode) in forest.modes.iter().enumerate() {
            let (split, [yes, no]) = (nodes.splits[at], [forest.trues[at], forest.falses[at]]);
            // Nothing compares with what is no number, and so it is not equal to anything.
            let goes_on = forest.tracks[at] == 1 || mode == NEQ;
            nodes.missing[at] = if goes_on { yes } else { no };
            match mode {
                LEQ | LEAF => {}
                LT => nodes.splits[at] = before(split, dtype),
                GT | GTE if split.is_nan() => nodes.trues[at] = no,
                GT => [nodes.trues[at], nodes.falses[at]] = [no, yes],
                GTE => {
                    nodes.splits[at] = before(split, dtype);
                    [nodes.trues[at], nodes.falses[at]] = [no, yes];
                }
                EQ => nodes.among(node, at, &[split], [yes, no])?,
                NEQ => nodes.among(node, at, &[split], [no, yes])?,
                MEMBER => match sets.next() {
                    Some(set) => nodes.among(node, at, set, [yes, no])?,
                    None => return invalid("its lists do not fit together"),
                },
                other => return invalid(format!("it has a node of mode {other}")),
            }
        }
        Ok(nodes)
    }

    /// Makes a node, and others behind the last, lead to `yes` for the elements of a set, and to `no` for all else.
    fn among(
        &mut self,
        node: &mut Node<'_>,
        at: usize,
        set: &[f64],
        [yes, no]: [i64; 2],
    ) -> Result<(), Problem> {
        let mut set: Vec<f64> = set.iter().map(|&each| rounded(each, self.dtype)).collect();
        set.retain(|each| !each.is_nan());
        set.sort_by(f64::total_cmp);
        set.dedup();
        if !node.spend(set.len().saturating_mul(2 * NODE)) {
            return unsupported(format!("a set of {} elements", set.len()));
        }
        // Up to the first bound it is no, up to the second yes, and so on.
        let bounds: Vec<f64> =
            set.iter().flat_map(|&each| [before(each, self.dtype), each]).collect();
        [self.trues[at], self.falses[at]] = [no; 2];
        let (start, mut open) = (at, vec![(at, 0, bounds.len())]);
        while let Some((at, first, last)) = open.pop() {
            let middle = (first + last) / 2;
            let Some(&bound) = bounds.get(middle).filter(|_| first < last) else { continue };
            self.splits[at] = bound;
            for (is_true, first, last) in [(true, first, middle), (false, middle + 1, last)] {
                let link = match first == last {
                    true if first % 2 == 1 => yes,
                    true => no,
                    false => {
                        open.push((self.splits.len(), first, last));
                        self.push(self.features[at], no)
                    }
                };
                let links = if is_true { &mut self.trues } else { &mut self.falses };
                links[at] = link;
            }
            if at != start {
                // What is no number has left before.
                self.missing[at] = self.falses[at];
            }
        }
        Ok(())
    }

    fn push(&mut self, feature: i64, to: i64) -> i64 {
        self.features.push(feature);
        self.splits.push(0.0);
        for links in [&mut self.trues, &mut self.falses, &mut self.missing] {
            links.push(to);
        }
        self.splits.len() as i64 - 1
    }

    /// How many steps lead from roots to leaves at most; none where some lead in a circle.
    fn depth(&self, roots: &[i64]) -> Option<i64> {
        let ways = |at: usize| {
            let ways = [self.trues[at], self.falses[at], self.missing[at]].map(|way| way as usize);
            ways.into_iter().filter(move |&way| way != at)
        };
        let (mut led_to, mut seen) = (vec![0; self.splits.len()], vec![false; self.splits.len()]);
        let mut open: Vec<usize> = roots.iter().map(|&root| root as usize).collect();
        let mut reached = 0;
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            reached += 1;
            ways(at).for_each(|way| led_to[way] += 1);
            open.extend(ways(at));
        }
        let mut depths = vec![0; self.splits.len()];
        open.extend((0..seen.len()).filter(|&at| seen[at] && led_to[at] == 0));
        let mut deepest = 0;
        while let Some(at) = open.pop() {
            (reached, deepest) = (reached - 1, deepest.max(depths[at]));
            for way in ways(at) {
                depths[way] = depths[way].max(depths[at] + 1);
                led_to[way] -= 1;
                if led_to[way] == 0 {
                    open.push(way);
                }
            }
        }
        (reached == 0).then_some(deepest)
    }
}

/// Bytes of a node.
const NODE: usize = 5 * size_of::<i64>();

fn rounded(number: f64, dtype: DType) -> f64 {
    if dtype == DType::F64 { number } else { f64::from(number as f32) }
}

/// What an element is at most that is less than a number; nothing is at most what is no number.
fn before(number: f64, dtype: DType) -> f64 {
    match number == f64::NEG_INFINITY {
        true => f64::NAN,
        false if dtype == DType::F64 => number.next_down(),
        false => f64::from((number as f32).next_down()),
    }
}

/// Numbers of nodes or of columns.
fn places(node: &mut Node<'_>, list: &[i64]) -> Result<Value, Problem> {
    let bytes: Option<Vec<[u8; 4]>> =
        list.iter().map(|&number| u32::try_from(number).ok().map(u32::to_le_bytes)).collect();
    match bytes {
        Some(bytes) => node.constant(DType::U32, &[list.len() as i64], bytes.as_flattened()),
        None => unsupported("numbers of nodes or columns beyond 32 bits"),
    }
}

/// Rows of a table.
pub(super) fn looked_up(node: &mut Node<'_>, table: Value, at: Value) -> Result<Value, Problem> {
    node.call("take", &[table, at], &[("axis", 0.into())])
}
