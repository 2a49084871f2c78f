//! What an evaluation may take: memory, time, and calls within calls.
//!
//! Programs may be endless, and types may be of any size, so each of these has a limit that is an error. Time is
//! counted in steps, so that it does not depend on the machine; what an operator of a plugin does has no steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;

use tenon_ir::Bytes;

use super::Tensor;

/// How much an evaluation may take, and what memory holds before it is written.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Functions that run at the same time, one called by the other.
    pub depth: usize,
    /// Bytes of all tensors that exist at the same time, without arguments and constants.
    pub bytes: u64,
    /// Instructions of tensor programs and elements of results.
    pub steps: u64,
    /// What one call of an operator of a plugin may take; without it, it is waited for. One that does not end cannot be stopped:
    /// it goes on until the process ends.
    pub patience: Option<Duration>,
    /// What each byte of new memory is. So much of it that what is read before it is written shows: floats of 0xff
    /// are not numbers.
    pub fill: u8,
}

impl Default for Limits {
    /// Four GiB, and some minutes.
    fn default() -> Self {
        Self { depth: 1 << 18, bytes: 4 << 30, steps: 1 << 34, patience: None, fill: 0xff }
    }
}

/// A limit that was met.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LimitError {
    #[error(
        "more than {0} functions run at the same time, the limit of an evaluation: the recursion may have no end"
    )]
    Depth(usize),
    #[error("it takes more than {0} steps, the limit of an evaluation: it may have no end")]
    Steps(u64),
    #[error(
        "`{op}` has no value after {seconds} seconds, the limit of an evaluation: it may have no end"
    )]
    Patience { op: String, seconds: u64 },
    #[error(
        "{needed} bytes more are needed, and the limit of an evaluation is {limit} bytes at a time"
    )]
    Bytes { needed: u64, limit: u64 },
    #[error("there is no memory for {0} bytes")]
    Memory(u64),
}

/// What is left of the limits.
#[derive(Debug)]
pub(super) struct Budget {
    limits: Limits,
    in_use: Arc<AtomicU64>,
    steps: u64,
    has_memory: AtomicBool,
}

impl Budget {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, in_use: Arc::default(), steps: 0, has_memory: AtomicBool::new(false) }
    }

    /// What each byte of new memory is.
    pub(super) fn fill(&self) -> u8 {
        self.limits.fill
    }

    /// What one call of an operator of a plugin may take.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.limits.patience
    }

    /// Whether memory was made that had no contents.
    pub(super) fn has_memory(&self) -> bool {
        self.has_memory.load(Ordering::Relaxed)
    }

    /// Checks that another function may be entered.
    pub(super) fn enter(&self, depth: usize) -> Result<(), LimitError> {
        match depth < self.limits.depth {
            true => Ok(()),
            false => Err(LimitError::Depth(self.limits.depth)),
        }
    }

    /// Takes so many steps.
    pub(super) fn step(&mut self, steps: u64) -> Result<(), LimitError> {
        self.steps = self.steps.saturating_add(steps);
        match self.steps <= self.limits.steps {
            true => Ok(()),
            false => Err(LimitError::Steps(self.limits.steps)),
        }
    }

    /// Takes memory until the charge is dropped.
    pub(super) fn charge(&self, bytes: u64) -> Result<Charge, LimitError> {
        let before = self.in_use.fetch_add(bytes, Ordering::Relaxed);
        let charge = Charge { in_use: self.in_use.clone(), bytes };
        match before.saturating_add(bytes) <= self.limits.bytes {
            true => Ok(charge),
            false => Err(LimitError::Bytes { needed: bytes, limit: self.limits.bytes }),
        }
    }

    /// New memory, filled; its charge.
    pub(super) fn alloc(&self, bytes: usize) -> Result<(Vec<u8>, Charge), LimitError> {
        self.has_memory.store(true, Ordering::Relaxed);
        let charge = self.charge(bytes as u64)?;
        let mut memory = Vec::new();
        if memory.try_reserve_exact(bytes).is_err() {
            return Err(LimitError::Memory(bytes as u64));
        }
        memory.resize(bytes, self.limits.fill);
        Ok((memory, charge))
    }
}

/// Memory that is taken as long as this lives.
#[derive(Debug)]
pub(super) struct Charge {
    in_use: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes with their charge.
struct Charged<T>(T, #[expect(dead_code, reason = "it is there to be dropped")] Arc<Charge>);

impl<T: AsRef<[u8]>> AsRef<[u8]> for Charged<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

/// Shared bytes, charged as long as anybody has them.
pub(super) fn charged(
    bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    charge: Arc<Charge>,
) -> Bytes {
    Bytes::new(Charged(bytes, charge))
}

/// The tensor, charged as long as anybody has its bytes.
pub(super) fn charged_tensor(tensor: &Tensor, charge: Charge) -> Option<Tensor> {
    struct Shared(Bytes);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let bytes = charged(Shared(tensor.bytes().clone()), Arc::new(charge));
    Tensor::new(tensor.dtype(), tensor.shape().to_vec(), bytes)
}
