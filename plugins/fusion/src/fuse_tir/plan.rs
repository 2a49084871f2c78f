//! What becomes of each member's result.
//!
//! Members are settled from the last to the first, so that all that read a result are settled before it. A
//! member that stays is a *root*: it keeps its loops. A result that is an output, or that something reads in
//! a way that is not understood, is written by a root. Otherwise, from the best to the worst:
//!
//! * A nest is *inlined*: its readers compute the element where they read it, if that is no more work than
//!   computing each element once, or if the element is cheap, and all that a root repeats so is.
//! * Any other member takes its only reader as a *tail*, if that is a nest that reads the same element as it
//!   writes: where the member stores an element, it stores the reader's instead.
//! * The result is kept in a buffer of its own.

use super::group::Group;
use super::program::{Axis, MAX_CHEAP, Nest};

/// The most places that an element is computed in.
const MAX_PLACES: usize = 8;

pub(super) struct Plan {
    pub(super) fates: Vec<Fate>,
}

pub(super) enum Fate {
    /// Nothing reads its result.
    Dead,
    Root {
        /// The root that stores the result element by element, if there is one.
        tail: Option<Tail>,
    },
    /// Computed by its readers.
    Inlined {
        /// Whether it is one element for a whole round of the reader's loops.
        is_shared: bool,
        /// In how many places that element is read.
        uses: u32,
    },
    /// The tail of another member.
    Tail,
}

/// What a root does with each element that it computes.
pub(super) struct Tail {
    /// The member whose store it does.
    pub(super) member: usize,
    /// For each axis of the element's tensor, the loop of the member that runs over it.
    pub(super) axes: Vec<Axis>,
    /// In how many places the element is read.
    pub(super) uses: u32,
}

/// A place where a member is computed: all of a root, or an element of what is inlined.
struct Place {
    root: usize,
    /// For each loop of the member, the loop of the root that gives its index.
    axes: Option<Vec<Axis>>,
    /// How often; for a root, its loads know.
    trips: Option<u64>,
}

/// A place where a result is read.
struct Read {
    root: usize,
    /// For each axis of the result, the loop of the root that gives its index.
    axes: Option<Vec<Axis>>,
    trips: u64,
    uses: u32,
}

impl Plan {
    pub(super) fn of(group: &Group) -> Self {
        let mut planner = Planner {
            group,
            readers: readers_of(group),
            is_pinned: pinned(group),
            places: group.members.iter().map(|_| Vec::new()).collect(),
            fates: group.members.iter().map(|_| Fate::Dead).collect(),
            repeated: vec![0; group.members.len()],
        };
        for member in (0..group.members.len()).rev() {
            planner.settle(member);
        }
        Self { fates: planner.fates }
    }
}

struct Planner<'g> {
    group: &'g Group,
    /// For each buffer, the members that read it, and by which of their loads.
    readers: Vec<Vec<(usize, usize)>>,
    is_pinned: Vec<bool>,
    /// For each member that is settled, where it is computed.
    places: Vec<Vec<Place>>,
    fates: Vec<Fate>,
    /// For each root, the work of all that is computed in it more often than once for each element.
    repeated: Vec<usize>,
}

fn readers_of(group: &Group) -> Vec<Vec<(usize, usize)>> {
    let mut readers: Vec<Vec<(usize, usize)>> = group.buffers.iter().map(|_| Vec::new()).collect();
    for (number, member) in group.members.iter().enumerate() {
        for (load, at) in member.program.loads.iter().enumerate() {
            readers[member.buffers[at.param]].push((number, load));
        }
    }
    readers
}

/// For each buffer, whether a member uses it in a way that is not understood.
fn pinned(group: &Group) -> Vec<bool> {
    let mut is_pinned = vec![false; group.buffers.len()];
    for member in &group.members {
        for (&buffer, &pinned) in member.buffers.iter().zip(&member.program.is_pinned) {
            is_pinned[buffer] |= pinned;
        }
    }
    is_pinned
}

impl Planner<'_> {
    fn settle(&mut self, index: usize) {
        let group = self.group;
        let member = &group.members[index];
        let outputs = &member.buffers[member.program.first_output..];
        let is_output = outputs.iter().any(|&output| group.buffers[output].is_output);
        let is_pinned = outputs.iter().any(|&output| self.is_pinned[output]);
        let reads: Vec<Read> = outputs.iter().flat_map(|&output| self.reads(output)).collect();
        if reads.is_empty() && !is_output && !is_pinned {
            return;
        }
        let is_understood = outputs.len() == 1 && !is_output && !is_pinned;
        let fate = match &member.program.nest {
            _ if !is_understood || member.program.reads_outputs() => Fate::Root { tail: None },
            Some(nest) => self.inlined(nest, &reads).unwrap_or(Fate::Root { tail: None }),
            None => Fate::Root { tail: self.tail(outputs[0], &reads) },
        };
        self.places[index] = match (&fate, &member.program.nest) {
            (Fate::Inlined { is_shared, .. }, Some(nest)) => {
                let count = if *is_shared { 1 } else { reads.len() };
                reads.into_iter().take(count).map(|read| element(nest, read)).collect()
            }
            (_, nest) => {
                let own = |nest: &Nest| (0..nest.loops.len()).map(Axis::Loop).collect();
                vec![Place { root: index, axes: nest.as_ref().map(own), trips: None }]
            }
        };
        if let Fate::Root { tail: Some(tail) } = &fate {
            self.fates[tail.member] = Fate::Tail;
        }
        self.fates[index] = fate;
    }

    /// Where a buffer is read, by what is computed somewhere.
    fn reads(&self, buffer: usize) -> Vec<Read> {
        let mut reads = Vec::new();
        for &(reader, load) in &self.readers[buffer] {
            let load = &self.group.members[reader].program.loads[load];
            for place in &self.places[reader] {
                let of_root = |axis: &Axis, outer: &[Axis]| match *axis {
                    Axis::Loop(index) => outer[index],
                    Axis::Zero => Axis::Zero,
                };
                let axes =
                    load.axes.as_ref().zip(place.axes.as_ref()).map(|(axes, outer)| {
                        axes.iter().map(|axis| of_root(axis, outer)).collect()
                    });
                let trips = place.trips.unwrap_or(load.trips);
                reads.push(Read { root: place.root, axes, trips, uses: load.uses });
            }
        }
        reads
    }

    fn nest(&self, member: usize) -> Option<&Nest> {
        self.group.members[member].program.nest.as_ref()
    }

    /// Whether and how the readers of a nest's result may compute it.
    fn inlined(&mut self, nest: &Nest, reads: &[Read]) -> Option<Fate> {
        let is_shared = single(reads).is_some();
        let each = reads.iter().map(|read| read.trips);
        let trips = match is_shared {
            true => each.max().unwrap_or(0),
            false => each.fold(0, u64::saturating_add),
        };
        let repeated = if trips <= nest.elements { Some(0) } else { nest.work };
        let is_cheap = |work| {
            reads.iter().all(|read| work == 0 || self.repeated[read.root] + work <= MAX_CHEAP)
        };
        let repeated = repeated.filter(|&work| is_cheap(work));
        // What defines scalars needs a place among a nest's statements for them.
        let has_place = !nest.has_lets || reads.iter().all(|read| self.nest(read.root).is_some());
        let is_small = is_shared || reads.len() <= MAX_PLACES;
        let uses = reads.iter().map(|read| read.uses).sum();
        if !has_place || !is_small {
            return None;
        }
        let repeated = repeated?;
        let count = if is_shared { 1 } else { reads.len() };
        reads.iter().take(count).for_each(|read| self.repeated[read.root] += repeated);
        Some(Fate::Inlined { is_shared, uses })
    }

    /// The reader of a result that is a nest over exactly its elements, if it is the only one.
    fn tail(&self, output: usize, reads: &[Read]) -> Option<Tail> {
        let (member, axes) = single(reads)?;
        let nest = self.nest(member)?;
        let is_free = matches!(self.fates[member], Fate::Root { .. });
        let is_over = nest.is_over(axes, &self.group.buffers[output].shape);
        let uses = reads.iter().map(|read| read.uses).sum();
        (is_free && is_over).then(|| Tail { member, axes: axes.to_vec(), uses })
    }
}

/// The root and the indices of all reads, if they are the same ones.
fn single(reads: &[Read]) -> Option<(usize, &[Axis])> {
    let (first, others) = reads.split_first()?;
    let axes = first.axes.as_deref()?;
    let is_same = |other: &Read| other.root == first.root && other.axes.as_deref() == Some(axes);
    others.iter().all(is_same).then_some((first.root, axes))
}

/// The element of a nest's result that is read.
fn element(nest: &Nest, read: Read) -> Place {
    let axes = read.axes.map(|indices| {
        let mut axes = vec![Axis::Zero; nest.loops.len()];
        for (&axis, index) in nest.axes.iter().zip(indices) {
            if let Axis::Loop(number) = axis {
                axes[number] = index;
            }
        }
        axes
    });
    Place { root: read.root, axes, trips: Some(read.trips) }
}
