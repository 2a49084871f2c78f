//! Threads of a device around all that they run, with barriers between what they run one after the other.
//!
//! ```ir
//! for %b … thread "blockIdx.x" {                     for %b … thread "blockIdx.x" {
//!   for %k in 0..8 {                                   alloc %S: … "shared"
//!     alloc %S: … "shared"                             for %t … thread "threadIdx.x" {
//!     for %t … thread "threadIdx.x" { %S[…] = … }        for %k in 0..8 {
//!     for %u … thread "threadIdx.x" { … %S[…] … }  =>      { %S[…] = … }
//!   } }                                                    eval barrier()
//!                                                          { … %S[…] … }
//!                                                          eval barrier() } } }
//! ```
//!
//! A schedule leaves loops over threads one after the other, each of which is done before the next begins. A device starts its
//! threads once: they run all of it, and wait for each other where one of them may read what another one writes, or the other
//! way round. What a loop over threads keeps for a later one in a buffer that is not shared must be of the same thread, and
//! becomes a buffer of each thread.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap as HashMap;

use tenon_plugin_api::ir::{Attrs, BARRIER, BOUND, BuildPrim, Expr, LoopKind, Symbol, View};
use tenon_plugin_api::pass::{PassError, PrimFunc};

use crate::compact::compact_own;
use crate::refusal::{Refusal, Result, refuse};
use crate::schedule::{Loop, Schedule};
use crate::tree::{For, Id, Node};

/// The memory that the threads of a block share.
const SHARED: &str = "shared";

/// A program whose loops over threads of a device are one nest around all that they run.
///
/// # Errors
/// When not everything is run by all threads, or a thread would need what another one keeps for itself.
pub fn bind_threads(program: &PrimFunc) -> std::result::Result<PrimFunc, PassError> {
    let mut schedule = Schedule::of(program)?;
    match bind(&mut schedule) {
        Ok(()) => schedule.finish_with(BOUND),
        Err(refusal) => Err(schedule.explain(&refusal)),
    }
}

fn bind(schedule: &mut Schedule) -> Result<()> {
    let loops = loops_over(schedule, schedule.tree.root, "threadIdx.");
    let body = inside_of_blocks(schedule);
    if let Some(&inner) = loops_over(schedule, body, "blockIdx.").first() {
        return refuse(
            inner,
            "blocks do not wait for each other: this loop has to be around everything",
        );
    }
    let axes = axes(schedule, &loops)?;
    if is_one_nest(schedule, body, &loops) {
        return Ok(());
    }
    check_runners(schedule, body, axes.len())?;
    let shared = shared_buffers(schedule, body, &loops)?;
    let own = own_buffers(schedule, body, &loops);
    add_barriers(schedule, body, &loops);
    let nest = one_nest(schedule, body, &loops, &axes, &shared);
    for (alloc, buffer) in own {
        if !compact_own(schedule, alloc, buffer) {
            let name = schedule.var_name(buffer);
            let why = format!("`{name}` is not known to hold what the thread itself has written");
            return Err(Refusal { place: Some(nest), ..Refusal::new(why) });
        }
    }
    Ok(())
}

/// The loops below a statement that are bound to axes whose names begin so, in order.
fn loops_over(schedule: &Schedule, root: Id, axes: &str) -> Vec<Id> {
    let all = schedule.tree.walk(root).into_iter();
    all.filter(|&id| axis_of(schedule, id).is_some_and(|axis| axis.starts_with(axes))).collect()
}

/// The axis to which a loop is bound.
fn axis_of(schedule: &Schedule, id: Id) -> Option<&str> {
    let each = schedule.tree.as_for(id).filter(|each| each.kind == LoopKind::ThreadBound)?;
    Some(schedule.body().terms().str(each.thread))
}

/// What the loops over blocks are around.
fn inside_of_blocks(schedule: &Schedule) -> Id {
    let is_of_blocks =
        |id: Id| axis_of(schedule, id).is_some_and(|axis| axis.starts_with("blockIdx."));
    let mut at = schedule.tree.root;
    loop {
        let stmts = match schedule.tree.get(at) {
            Node::Seq(stmts) => stmts.clone(),
            _ => vec![at],
        };
        let is_alloc = |id: &Id| matches!(schedule.tree.get(*id), Node::Alloc(_));
        let rest: Vec<Id> = stmts.into_iter().filter(|id| !is_alloc(id)).collect();
        match rest.as_slice() {
            &[only] if is_of_blocks(only) => at = schedule.tree.body_of(only),
            _ => return at,
        }
    }
}

/// Whether loops stand directly in one another, with nothing beside them but buffers that are shared.
fn is_one_nest(schedule: &Schedule, body: Id, loops: &[Id]) -> bool {
    let is_made_before = |stmt: &Id| matches!(schedule.tree.get(*stmt), Node::Alloc(buffer) if is_shared(schedule, *buffer));
    let rest: Vec<Id> = match schedule.tree.get(body) {
        Node::Seq(stmts) => stmts.iter().copied().filter(|stmt| !is_made_before(stmt)).collect(),
        _ => vec![body],
    };
    let &[mut at] = rest.as_slice() else { return false };
    let mut found = 0;
    while loops.contains(&at) {
        found += 1;
        at = schedule.tree.body_of(at);
    }
    found == loops.len()
}

fn is_shared(schedule: &Schedule, buffer: Expr) -> bool {
    scope_of(schedule, buffer) == SHARED
}

/// The memory in which a buffer is made.
pub(crate) fn scope_of(schedule: &Schedule, buffer: Expr) -> &str {
    match schedule.view(buffer) {
        View::Buffer { scope, .. } => schedule.body().terms().str(scope),
        _ => "",
    }
}

/// Whether a loop is one over the threads of a block.
pub(crate) fn is_over_threads(schedule: &Schedule, id: Id) -> bool {
    axis_of(schedule, id).is_some_and(|axis| axis.starts_with("threadIdx."))
}

/// The axes of loops with their extents, `threadIdx.x` first.
fn axes(schedule: &Schedule, loops: &[Id]) -> Result<Vec<(Symbol, Expr)>> {
    let mut space = schedule.space();
    let mut axes: BTreeMap<String, (Symbol, Expr, i64)> = BTreeMap::new();
    for &id in loops {
        let Some(each) = schedule.tree.as_for(id) else { continue };
        let axis = schedule.body().terms().str(each.thread).to_owned();
        let body = schedule.body();
        let (min, extent) = (space.read(body, each.min), space.read(body, each.extent));
        let (Some(0), Some(extent)) = (min.value(), extent.value()) else {
            return refuse(id, "the threads of a block are a constant number, counted from zero");
        };
        let known = axes.entry(axis).or_insert((each.thread, each.extent, extent));
        if known.2 != extent {
            let why = format!("another loop over this axis has {} steps", known.2);
            return refuse(id, why);
        }
    }
    Ok(axes.into_values().map(|(thread, extent, _)| (thread, extent)).collect())
}

/// Everything that has an effect is run by every thread once.
fn check_runners(schedule: &Schedule, body: Id, axes: usize) -> Result<()> {
    for id in schedule.tree.walk(body) {
        let has_effect = matches!(
            schedule.tree.get(id),
            Node::Store { .. } | Node::Evaluate(_) | Node::Block(_)
        );
        if !has_effect {
            continue;
        }
        let around = schedule.tree.ancestors(id).filter(|&outer| is_over_threads(schedule, outer));
        if around.count() != axes {
            return refuse(id, "it is not in a loop over each axis of the threads");
        }
    }
    Ok(())
}

/// The statements that make what a block shares.
fn shared_buffers(schedule: &Schedule, body: Id, loops: &[Id]) -> Result<Vec<Id>> {
    let mut shared = Vec::new();
    for id in schedule.tree.walk(body) {
        let Node::Alloc(buffer) = schedule.tree.get(id) else { continue };
        if !is_shared(schedule, *buffer) {
            continue;
        }
        if schedule.tree.ancestors(id).any(|outer| loops.contains(&outer)) {
            return refuse(id, "each thread would make what all of them share");
        }
        shared.push(id);
    }
    Ok(shared)
}

/// The buffers that are not shared, and live from one loop over threads to a later one.
fn own_buffers(schedule: &Schedule, body: Id, loops: &[Id]) -> Vec<(Id, Expr)> {
    let all = schedule.tree.walk(body).into_iter();
    let own = all.filter_map(|id| match schedule.tree.get(id) {
        Node::Alloc(buffer) if !is_shared(schedule, *buffer) => Some((id, *buffer)),
        _ => None,
    });
    own.filter(|(id, _)| !schedule.tree.ancestors(*id).any(|outer| loops.contains(&outer)))
        .collect()
}

/// What is read and written where other threads may be.
#[derive(Clone, Default)]
struct Touched {
    read: BTreeSet<Expr>,
    written: BTreeSet<Expr>,
}

impl Touched {
    fn meets(&self, other: &Self) -> bool {
        !self.written.is_disjoint(&other.written)
            || !self.written.is_disjoint(&other.read)
            || !self.read.is_disjoint(&other.written)
    }

    fn extend(&mut self, other: &Self) {
        self.read.extend(&other.read);
        self.written.extend(&other.written);
    }
}

/// What a statement touches before its first barrier, and behind its last one.
#[derive(Clone, Default)]
struct Span {
    first: Touched,
    last: Touched,
    has_barrier: bool,
}

impl Span {
    /// Goes on with what stands behind; whether a barrier has to be in between.
    fn then(&mut self, next: &Self) -> bool {
        let waits = self.last.meets(&next.first);
        if !self.has_barrier && !waits {
            self.first.extend(&next.first);
        }
        if next.has_barrier || waits {
            self.last = next.last.clone();
        } else {
            self.last.extend(&next.last);
        }
        self.has_barrier |= waits || next.has_barrier;
        waits
    }
}

/// Puts barriers where a thread may touch what another one wrote, or write what another one touches.
fn add_barriers(schedule: &mut Schedule, body: Id, loops: &[Id]) {
    let inside = schedule.tree.walk(body);
    let mut own = schedule.allocated(&inside);
    own.retain(|&buffer| !is_shared(schedule, buffer));
    let mut spans: HashMap<Id, Span> = HashMap::default();
    // From the inside out: what stands in a loop over threads is one step of all of them.
    for id in inside.into_iter().rev() {
        if schedule.tree.ancestors(id).any(|outer| loops.contains(&outer)) {
            continue;
        }
        let children = schedule.tree.children(id);
        let mut span = Span::default();
        if loops.contains(&id) {
            let of = |is_store| schedule.buffers(id, is_store).into_iter();
            let is_seen = |buffer: &Expr| !own.contains(buffer);
            let touched = Touched {
                read: of(false).filter(is_seen).collect(),
                written: of(true).filter(is_seen).collect(),
            };
            span = Span { first: touched.clone(), last: touched, has_barrier: false };
        } else {
            for child in children {
                if span.then(&spans.remove(&child).unwrap_or_default()) {
                    let barrier = barrier(schedule);
                    schedule.tree.insert(child, false, vec![barrier]);
                }
            }
        }
        // What is done once does not meet itself.
        let is_repeated = !loops.contains(&id)
            && schedule.tree.as_for(id).is_some()
            && schedule.extent(Loop(id)) != Some(1);
        if is_repeated && span.last.meets(&span.first) {
            let barrier = barrier(schedule);
            let last = match schedule.tree.get(schedule.tree.body_of(id)) {
                Node::Seq(stmts) => stmts.last().copied(),
                _ => None,
            };
            let last = last.unwrap_or(schedule.tree.body_of(id));
            schedule.tree.insert(last, true, vec![barrier]);
            span.last = Touched::default();
            span.has_barrier = true;
        }
        spans.insert(id, span);
    }
}

fn barrier(schedule: &mut Schedule) -> Id {
    let call = schedule.rw.intrinsic(BARRIER, &[]);
    schedule.tree.add(Node::Evaluate(call))
}

/// Puts one nest of loops over the axes around the body, in the place of those in it; the outermost of the nest.
fn one_nest(
    schedule: &mut Schedule,
    body: Id,
    loops: &[Id],
    axes: &[(Symbol, Expr)],
    shared: &[Id],
) -> Id {
    let vars: Vec<Expr> = axes
        .iter()
        .map(|&(thread, _)| {
            let name = schedule.body().terms().str(thread).replace('.', "_");
            schedule.index_var(&name)
        })
        .collect();
    let pairs: Vec<(Expr, Expr)> = loops
        .iter()
        .filter_map(|&id| {
            let each = schedule.tree.as_for(id)?;
            let at = axes.iter().position(|&(thread, _)| thread == each.thread)?;
            Some((each.var, vars[at]))
        })
        .collect();
    schedule.substitute(body, pairs);
    let hole = schedule.tree.add(Node::Seq(Vec::new()));
    let top = around(schedule, body);
    schedule.tree.replace(top, hole);
    let mut nest = schedule.tree.make(Node::Seq(vec![top]));
    for &id in loops {
        let inner = schedule.tree.body_of(id);
        schedule.tree.replace(id, inner);
        *schedule.tree.get_mut(id) = Node::Gone;
    }
    let made: Vec<Node> = shared.iter().map(|&id| schedule.tree.get(id).clone()).collect();
    for &id in shared {
        schedule.tree.remove(id);
    }
    for (&var, &(thread, extent)) in vars.iter().zip(axes) {
        let (min, kind, attrs) = (schedule.int(0), LoopKind::ThreadBound, Attrs::NONE);
        nest = schedule.tree.make(Node::For(For {
            var,
            min,
            extent,
            kind,
            thread,
            attrs,
            body: nest,
        }));
    }
    let mut stmts: Vec<Id> = made.into_iter().map(|node| schedule.tree.add(node)).collect();
    stmts.push(nest);
    *schedule.tree.get_mut(hole) = Node::Seq(stmts);
    schedule.tree.adopt(hole);
    nest
}

/// A statement, or what was put around it to hold a barrier.
fn around(schedule: &Schedule, body: Id) -> Id {
    let is_body_of_loop = |&id: &Id| {
        schedule.tree.parent(id).is_none_or(|parent| schedule.tree.as_for(parent).is_some())
    };
    let mut path = std::iter::once(body).chain(schedule.tree.ancestors(body));
    path.find(is_body_of_loop).unwrap_or(body)
}
