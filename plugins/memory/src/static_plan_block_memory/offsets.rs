//! Offsets in one storage: greedy by size (Pisarchyk and Lee, *Efficient Memory Management for Deep Neural
//! Net Inference*, 2020).
//!
//! The largest tensors come first. Each is put into the smallest gap that holds it between those placed
//! already that are alive at the same time, or behind all of them. On networks that are planned once, this
//! comes within a few percent of the most memory that is alive at any moment.
//!
//! Which tensors are alive together is found by one sweep over time. For the work to stay near-linear
//! whatever the program, at most [`MOST_ALIVE`] tensors count as alive: of more, the one that lives longest
//! gets memory that it shares with none, behind everything else.

use std::collections::BTreeSet;

const MOST_ALIVE: usize = 64;

/// A tensor that may share memory with others.
pub(super) struct Tensor {
    /// The binding that makes it.
    pub(super) birth: usize,
    /// The last binding that may touch it.
    pub(super) death: usize,
    /// Its bytes, a multiple of the alignment.
    pub(super) size: u64,
}

/// Where tensors lie.
pub(super) struct Plan {
    /// The offset of each tensor.
    pub(super) offsets: Vec<u64>,
    /// The bytes of the storage.
    pub(super) size: u64,
}

/// Places tensors, which are given in the order of their births.
pub(super) fn place(tensors: &[Tensor]) -> Plan {
    let overlaps = Overlaps::of(tensors);
    let mut order: Vec<usize> =
        (0..tensors.len()).filter(|&index| !overlaps.is_resident[index]).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(tensors[index].size));

    let mut offsets = vec![0; tensors.len()];
    let mut is_placed = vec![false; tensors.len()];
    let mut size = 0;
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for index in order {
        taken.clear();
        let others = overlaps.with(index).iter().map(|&other| other as usize);
        taken.extend(
            others
                .filter(|&other| is_placed[other])
                .map(|other| (offsets[other], offsets[other] + tensors[other].size)),
        );
        taken.sort_unstable();
        offsets[index] = smallest_gap(&taken, tensors[index].size);
        is_placed[index] = true;
        size = size.max(offsets[index] + tensors[index].size);
    }
    for index in (0..tensors.len()).filter(|&index| overlaps.is_resident[index]) {
        offsets[index] = size;
        size += tensors[index].size;
    }
    Plan { offsets, size }
}

/// Where the smallest gap that holds `size` bytes begins among ranges in ascending order.
fn smallest_gap(taken: &[(u64, u64)], size: u64) -> u64 {
    let mut best: Option<(u64, u64)> = None;
    let mut end = 0;
    for &(first, last) in taken {
        let gap = first.saturating_sub(end);
        if gap >= size && first > end && best.is_none_or(|(smallest, _)| gap < smallest) {
            best = Some((gap, end));
        }
        end = end.max(last);
    }
    best.map_or(end, |(_, offset)| offset)
}

/// Which tensors are alive at the same time.
struct Overlaps {
    /// Where each tensor's list begins; one more entry for the end of the last.
    first: Vec<u32>,
    lists: Vec<u32>,
    is_resident: Vec<bool>,
}

impl Overlaps {
    fn of(tensors: &[Tensor]) -> Self {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut is_resident = vec![false; tensors.len()];
        let mut alive: BTreeSet<(usize, u32)> = BTreeSet::new();
        for (index, tensor) in tensors.iter().enumerate() {
            while alive.first().is_some_and(|&(death, _)| death < tensor.birth) {
                alive.pop_first();
            }
            alive.insert((tensor.death, index as u32));
            if alive.len() > MOST_ALIVE
                && let Some((_, longest)) = alive.pop_last()
            {
                is_resident[longest as usize] = true;
            }
            // Those that share with none overlap with none, and there may be as many as there are tensors.
            if !is_resident[index] {
                let index = index as u32;
                let others = alive.iter().map(|&(_, other)| other).filter(|&other| other != index);
                pairs.extend(others.map(|other| (index, other)));
            }
        }
        let mut first = vec![0u32; tensors.len() + 1];
        for &(a, b) in &pairs {
            first[a as usize + 1] += 1;
            first[b as usize + 1] += 1;
        }
        for index in 0..tensors.len() {
            first[index + 1] += first[index];
        }
        let mut next = first.clone();
        let mut lists = vec![0; 2 * pairs.len()];
        for (a, b) in pairs {
            for (from, to) in [(a, b), (b, a)] {
                lists[next[from as usize] as usize] = to;
                next[from as usize] += 1;
            }
        }
        Self { first, lists, is_resident }
    }

    fn with(&self, index: usize) -> &[u32] {
        &self.lists[self.first[index] as usize..self.first[index + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(tensors: &[(usize, usize, u64)]) -> Plan {
        let tensor = |&(birth, death, size)| Tensor { birth, death, size };
        let tensors: Vec<Tensor> = tensors.iter().map(tensor).collect();
        let plan = place(&tensors);
        for (i, a) in tensors.iter().enumerate() {
            for (j, b) in tensors.iter().enumerate().skip(i + 1) {
                let is_apart = plan.offsets[i] + a.size <= plan.offsets[j]
                    || plan.offsets[j] + b.size <= plan.offsets[i];
                assert!(is_apart || a.death < b.birth || b.death < a.birth, "{i} and {j}");
            }
        }
        plan
    }

    #[test]
    fn a_chain_takes_turns() {
        let plan = plan(&[(0, 1, 64), (1, 2, 128), (2, 3, 64), (3, 4, 128)]);
        assert_eq!(plan.size, 192);
    }

    #[test]
    fn small_tensors_lie_in_the_smallest_gap() {
        assert_eq!(plan(&[(0, 9, 192), (0, 2, 128), (4, 9, 64), (5, 6, 64)]).size, 320);
        assert_eq!(smallest_gap(&[(0, 64), (256, 320), (384, 448)], 64), 320);
    }

    #[test]
    fn many_that_live_long_are_placed_apart() {
        let tensors: Vec<(usize, usize, u64)> = (0..1000).map(|i| (i, 2000, 64)).collect();
        assert_eq!(plan(&tensors).size, 64 * 1000);
    }

    #[test]
    fn lifetimes_of_all_kinds_do_not_clash() {
        let mut seed = 1u64;
        let mut next = |bound: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % bound
        };
        let tensors: Vec<(usize, usize, u64)> =
            (0..500).map(|birth| (birth, birth + next(120) as usize, 64 * next(50))).collect();
        plan(&tensors);
    }
}
