//! What a target has, as far as it decides how a program runs.

use tenon_plugin_api::ir::AttrsView;

/// Bytes that a core reads in a cycle from its caches, nearest first, and from memory. They are of the order of today's servers; only
/// their ratios matter to a choice.
const BYTES_PER_CYCLE: [f64; 4] = [64.0, 32.0, 12.0, 5.0];
/// What a function such as `exp` costs, in operations.
const FUNCTION: f64 = 16.0;

/// A machine: vectors, caches, threads. What a target does not say has the value that most have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Bits of a vector.
    pub vector_bits: i64,
    /// Registers that hold a vector.
    pub registers: i64,
    /// Multiply-adds of vectors that a core begins in a cycle.
    pub fma_units: i64,
    /// Bytes of the data caches that a core sees, nearest first.
    pub caches: [i64; 3],
    /// Threads that run at once.
    pub threads: i64,
}

/// What a program computes as a whole, as far as its extents are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Arithmetic, comparisons, choices and conversions that are not of indices; a multiply-add is two, with the conversions of its
    /// factors.
    pub operations: f64,
    /// Calls of functions such as `exp`.
    pub functions: f64,
    /// Bytes of what it reads and writes, each once.
    pub bytes: f64,
}

impl Total {
    /// Operations, with each function as many as it costs.
    pub fn weighted(&self) -> f64 {
        self.operations + FUNCTION * self.functions
    }
}

impl Machine {
    /// The machine of a target, as rules read it.
    pub fn of(target: AttrsView<'_>) -> Self {
        let number = |key, usual| target.int(key).unwrap_or(usual).max(1);
        Self {
            vector_bits: number("vector_bits", 128),
            registers: number("vector_registers", 16),
            fma_units: number("fma_units", 2),
            caches: [
                number("l1_bytes", 32 << 10),
                number("l2_bytes", 256 << 10),
                number("l3_bytes", 8 << 20),
            ],
            threads: number("threads", 1),
        }
    }

    /// How many elements of 32 bits a vector holds.
    pub fn lanes(&self) -> i64 {
        (self.vector_bits / 32).max(1)
    }

    /// Operations on elements of 32 bits that a core does in a cycle at most.
    pub fn operations_per_cycle(&self) -> f64 {
        (2 * self.fma_units * self.lanes()) as f64
    }

    /// Cycles for so much work on so many threads, of which either arithmetic or memory is the bound (S. Williams, A. Waterman, D.
    /// Patterson, "Roofline", 2009).
    pub fn cycles(&self, total: &Total, threads: i64) -> f64 {
        let computed = total.weighted() / self.operations_per_cycle();
        (computed / self.at_most(threads)).max(self.memory_cycles(total, threads))
    }

    /// Cycles in which what is read and written comes from the nearest cache that holds it.
    pub(crate) fn memory_cycles(&self, total: &Total, threads: i64) -> f64 {
        let level = self.caches.iter().position(|&bytes| total.bytes <= bytes as f64);
        total.bytes / BYTES_PER_CYCLE[level.unwrap_or(self.caches.len())] / self.at_most(threads)
    }

    /// So many threads, of those that there are.
    fn at_most(&self, threads: i64) -> f64 {
        threads.clamp(1, self.threads) as f64
    }
}
