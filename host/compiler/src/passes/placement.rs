//! Where the passes go that find their own place: between the passes that the registry lists for a phase.
//!
//! The list stays as it is. What manifests say of two passes of the list is left alone; of any other two it
//! is kept, whichever of them says it. A pass comes right behind what it must follow, else right before
//! what it must precede, else at the end, and passes that would stand at one place are in the order of
//! their names, then of their plugins. So the order depends on nothing but the files.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::diagnostics::Diagnostic;
use crate::registry::{PassId, Place, Registry};

/// A phase with its passes.
pub(super) struct Phase<'a> {
    pub(super) registry: &'a Registry,
    pub(super) name: &'a str,
    /// The registry's list, in order.
    pub(super) listed: &'a [Listed],
    /// The passes to place, in the order of their names and plugins, and where they are enabled.
    pub(super) placed: &'a [(PassId, Place)],
}

/// An element of the registry's list.
pub(super) struct Listed {
    /// The pass, or those of a group, at least one.
    pub(super) passes: Vec<PassId>,
    /// Where it stands.
    pub(super) place: Place,
}

/// One pass of a phase that is in order.
pub(super) enum Placed {
    /// The pass of this number in the list.
    Listed(usize),
    /// The pass of this number among those to place, and what it stands beside.
    Found(usize, String),
}

/// "`from` comes before `to`", by numbers: the listed passes, then those to place.
struct Edge {
    from: usize,
    to: usize,
    /// The pass whose manifest says so, and whether it says `after`.
    said_by: PassId,
    is_after: bool,
}

impl Phase<'_> {
    /// The passes in order.
    pub(super) fn order(&self) -> Result<Vec<Placed>, Box<Diagnostic>> {
        if self.placed.is_empty() {
            return Ok((0..self.listed.len()).map(Placed::Listed).collect());
        }
        let edges = self.edges();
        let order = self.sort(&edges)?;
        let gaps = self.gaps(&edges, &order);
        let mut in_gap: Vec<Vec<usize>> = vec![Vec::new(); self.listed.len() + 1];
        for pass in order.into_iter().filter(|&pass| !self.is_listed(pass)) {
            in_gap[gaps[pass]].push(pass);
        }
        let beside = self.beside(&edges);
        let mut passes = Vec::with_capacity(self.len());
        for (gap, found) in in_gap.into_iter().enumerate() {
            let found = found.into_iter().map(|pass| pass - self.listed.len());
            passes.extend(found.map(|pass| Placed::Found(pass, beside[pass].join(", "))));
            passes.extend((gap < self.listed.len()).then_some(Placed::Listed(gap)));
        }
        Ok(passes)
    }

    fn len(&self) -> usize {
        self.listed.len() + self.placed.len()
    }

    fn is_listed(&self, pass: usize) -> bool {
        pass < self.listed.len()
    }

    fn ids(&self, pass: usize) -> &[PassId] {
        match self.listed.get(pass) {
            Some(listed) => &listed.passes,
            None => std::slice::from_ref(&self.placed[pass - self.listed.len()].0),
        }
    }

    /// The name of a pass, or of the first one of a group.
    fn name(&self, pass: usize) -> &str {
        &self.registry.record(self.ids(pass)[0]).name
    }

    /// What manifests say of two passes of which one is to be placed. A pass may be listed more than once:
    /// what follows it follows all of that, and what precedes it precedes all.
    fn edges(&self) -> Vec<Edge> {
        let mut places: HashMap<PassId, (usize, usize)> = HashMap::new();
        for pass in 0..self.len() {
            for &id in self.ids(pass) {
                places.entry(id).and_modify(|(_, last)| *last = pass).or_insert((pass, pass));
            }
        }
        let mut edges = Vec::new();
        for (&id, &(first, last)) in &places {
            let record = self.registry.record(id);
            let others = |names: &[String]| -> Vec<(usize, usize)> {
                let found = names.iter().filter_map(|name| self.registry.find(name).ok());
                let present = found.filter_map(|other| places.get(&other).copied());
                present.filter(|&(at, _)| !self.is_listed(first) || !self.is_listed(at)).collect()
            };
            for (_, from) in others(&record.after) {
                edges.push(Edge { from, to: first, said_by: id, is_after: true });
            }
            for (to, _) in others(&record.before) {
                edges.push(Edge { from: last, to, said_by: id, is_after: false });
            }
        }
        edges.sort_by_key(|edge| (edge.to, edge.from, edge.said_by));
        edges
    }

    /// All passes so that each edge leads forward; of those that may come next the first of the list, then
    /// the first by number.
    fn sort(&self, edges: &[Edge]) -> Result<Vec<usize>, Box<Diagnostic>> {
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.len()];
        let mut waits_for = vec![0; self.len()];
        let in_the_list = (1..self.listed.len()).map(|pass| (pass - 1, pass));
        for (from, to) in in_the_list.chain(edges.iter().map(|edge| (edge.from, edge.to))) {
            next[from].push(to);
            waits_for[to] += 1;
        }
        let ready = (0..self.len()).filter(|&pass| waits_for[pass] == 0).map(Reverse);
        let mut ready: BinaryHeap<Reverse<usize>> = ready.collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(Reverse(pass)) = ready.pop() {
            order.push(pass);
            for &to in &next[pass] {
                waits_for[to] -= 1;
                if waits_for[to] == 0 {
                    ready.push(Reverse(to));
                }
            }
        }
        match order.len() == self.len() {
            true => Ok(order),
            false => Err(self.contradiction(edges, &waits_for).into()),
        }
    }

    /// For each pass the number of the listed pass that it stands before.
    fn gaps(&self, edges: &[Edge], order: &[usize]) -> Vec<usize> {
        let end = self.listed.len();
        let (mut before, mut after) = (vec![Vec::new(); self.len()], vec![Vec::new(); self.len()]);
        for edge in edges {
            before[edge.to].push(edge.from);
            after[edge.from].push(edge.to);
        }
        // The last gap in which each may stand.
        let mut latest: Vec<usize> = (0..self.len()).map(|pass| pass.min(end)).collect();
        for &pass in order.iter().rev().filter(|&&pass| !self.is_listed(pass)) {
            latest[pass] = after[pass].iter().map(|&to| latest[to]).min().unwrap_or(end);
        }
        // The first one, where something comes before it.
        let mut earliest: Vec<Option<usize>> = (0..self.len()).map(|pass| Some(pass + 1)).collect();
        let mut gaps: Vec<usize> = (0..self.len()).collect();
        for &pass in order.iter().filter(|&&pass| !self.is_listed(pass)) {
            earliest[pass] = before[pass].iter().filter_map(|&from| earliest[from]).max();
            let behind = before[pass].iter().filter(|&&from| !self.is_listed(from));
            let behind = behind.map(|&from| gaps[from]).max().unwrap_or(0);
            gaps[pass] = earliest[pass].unwrap_or(latest[pass]).max(behind);
        }
        gaps
    }

    /// What each placed pass stands beside, in words.
    fn beside(&self, edges: &[Edge]) -> Vec<Vec<String>> {
        let mut beside: Vec<Vec<String>> = vec![Vec::new(); self.placed.len()];
        for edge in edges {
            for (pass, word, other) in
                [(edge.to, "after", edge.from), (edge.from, "before", edge.to)]
            {
                if self.is_listed(pass) {
                    continue;
                }
                let said_by = match self.ids(pass)[0] == edge.said_by {
                    true => String::new(),
                    false => format!(" as `{}` says", self.registry.record(edge.said_by).name),
                };
                beside[pass - self.listed.len()]
                    .push(format!("{word} {}{said_by}", self.name(other)));
            }
        }
        beside
    }

    /// The error for passes that wait for each other: the ring of them, and who says each part of it.
    fn contradiction(&self, edges: &[Edge], waits_for: &[usize]) -> Diagnostic {
        let is_stuck = |pass: usize| waits_for[pass] > 0;
        // Something that is stuck waits for something stuck: going back from one ends in a ring.
        let mut reason: Vec<Option<&Edge>> = vec![None; self.len()];
        for edge in edges.iter().filter(|edge| is_stuck(edge.from)) {
            reason[edge.to] = Some(edge);
        }
        let back = |pass: usize| match reason[pass] {
            Some(edge) => edge.from,
            None => pass - 1,
        };
        let mut seen = vec![false; self.len()];
        let mut at = (0..self.len()).find(|&pass| is_stuck(pass)).expect("a pass is stuck");
        while !seen[at] {
            seen[at] = true;
            at = back(at);
        }
        let mut ring = vec![at];
        while back(*ring.last().expect("it has a first")) != at {
            ring.push(back(*ring.last().expect("it has a first")));
        }
        ring.reverse();
        // It starts at a placed pass, of which there is one: the list alone has no ring.
        let start = ring.iter().position(|&pass| !self.is_listed(pass)).expect("one is placed");
        ring.rotate_left(start);

        let name = |pass: usize| self.name(pass);
        let message = format!(
            "the passes of phase `{}` cannot be put in order: `{}` would come before itself",
            self.name,
            name(ring[0])
        );
        let place = &self.placed[ring[0] - self.listed.len()].1;
        let mut error = place.error(message, "enabled here");
        let mut number = 0;
        while number < ring.len() {
            let from = ring[number];
            let mut to = ring[(number + 1) % ring.len()];
            number += 1;
            let Some(edge) = reason[to] else {
                // Steps along the list are one reason.
                while number < ring.len() && reason[ring[(number + 1) % ring.len()]].is_none() {
                    number += 1;
                    to = ring[number % ring.len()];
                }
                let place = &self.listed[to].place;
                error = error.note(format!(
                    "`{}` comes before `{}`: {place} lists them so",
                    name(from),
                    name(to)
                ));
                continue;
            };
            let (word, other) = if edge.is_after { ("after", from) } else { ("before", to) };
            let plugin = self.registry.plugin_of(edge.said_by);
            error = error.note(format!(
                "`{}` comes before `{}`: the manifest of `{}` says `{word} = [\"{}\"]` ({})",
                name(from),
                name(to),
                self.registry.record(edge.said_by).name,
                name(other),
                plugin.path.display()
            ));
        }
        error.help(format!(
            "list `{}` in [phases.{}] where it is to run, or disable one of these",
            name(ring[0]),
            self.name
        ))
    }
}
