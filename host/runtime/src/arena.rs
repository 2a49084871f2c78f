//! Memory that functions take while they run, where nobody knows before how much that is.
//!
//! ```text
//! take(bytes)       a block that was given back, or a new one      within the limit
//! give_back(block)  kept for the next that wants one
//! ```
//!
//! Blocks are used by one call at a time, on the thread of the caller; a call gives back all that it has taken, but for outputs.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::fmt;

use super::dlpack::{DataType, TensorBuffer};

/// `struct tenon_arena`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawArena {
    /// What the functions are given first.
    pub context: *mut c_void,
    /// Gives as many bytes, on a boundary of 64, or null.
    pub take: unsafe extern "C" fn(context: *mut c_void, bytes: u64) -> *mut c_void,
    /// Takes back what the other one has given.
    pub give_back: unsafe extern "C" fn(context: *mut c_void, memory: *mut c_void),
}

/// Why a call got no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Bytes that it wanted.
    pub wanted: u64,
    /// Those that it had.
    pub taken: u64,
    /// Those that it may have; none where there was no memory.
    pub limit: Option<u64>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { wanted, taken, limit } = self;
        match limit {
            Some(limit) => write!(
                f,
                "the call needs {wanted} bytes besides the {taken} that it has, and its limit is {limit}"
            ),
            None => write!(
                f,
                "there is no memory for {wanted} bytes that the call needs besides the {taken} that it has"
            ),
        }
    }
}

/// Blocks of memory for calls that take some.
#[derive(Debug, Default)]
pub struct Arena {
    limit: Option<u64>,
    /// What calls have, by its address.
    taken: HashMap<usize, TensorBuffer>,
    /// What was given back, by size and address.
    kept: BTreeMap<(usize, usize), TensorBuffer>,
    /// Bytes of both.
    in_use: u64,
    held: u64,
    /// The most that were taken at once since the call began.
    most: u64,
    /// Bytes that the call has besides.
    besides: u64,
    refused: Option<Refused>,
}

impl Arena {
    /// Bounds the bytes that a call may have.
    pub fn set_limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
    }

    /// Begins a call that has so many bytes besides what it takes.
    ///
    /// # Errors
    /// When these are too many.
    pub fn begin(&mut self, besides: u64) -> Result<(), Refused> {
        (self.besides, self.most, self.refused) = (besides, self.in_use, None);
        if self.limit.is_some_and(|limit| self.held.saturating_add(besides) > limit) {
            self.drop_kept();
        }
        match self.limit.filter(|&limit| besides > limit) {
            Some(limit) => Err(Refused { wanted: besides, taken: 0, limit: Some(limit) }),
            None => Ok(()),
        }
    }

    /// What a function takes memory by; valid while the arena stays where it is and nobody else uses it.
    pub fn table(&mut self) -> RawArena {
        RawArena { context: std::ptr::from_mut(self).cast(), take, give_back }
    }

    /// The most bytes that were taken at once since the last call began.
    pub fn most_taken(&self) -> u64 {
        self.most
    }

    /// Why the last call got no memory, if it was so.
    pub fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// The block at an address that a call has taken, which is the arena's no more.
    pub fn taken_at(&mut self, memory: *mut c_void) -> Option<TensorBuffer> {
        let block = self.taken.remove(&memory.addr())?;
        let size = block.capacity() as u64;
        (self.in_use, self.held) = (self.in_use - size, self.held - size);
        Some(block)
    }

    /// Keeps memory for those who want some.
    pub fn keep(&mut self, block: TensorBuffer) {
        let size = block.capacity();
        if size > 0 {
            self.held += size as u64;
            self.kept.insert((size, block.bytes().as_ptr().addr()), block);
        }
    }

    fn take(&mut self, bytes: u64) -> *mut c_void {
        let wanted = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        let fit = self.kept.range((wanted, 0)..).next().map(|(&key, _)| key);
        // Not all of a large one for little.
        let fit = fit.filter(|&(size, _)| size / 2 <= wanted.saturating_add(4096));
        let block = match fit.and_then(|key| self.kept.remove(&key)) {
            Some(block) => block,
            None => match self.allocate(wanted) {
                Some(block) => block,
                None => return std::ptr::null_mut(),
            },
        };
        self.in_use += block.capacity() as u64;
        self.most = self.most.max(self.in_use);
        let memory = block.bytes().as_ptr().cast_mut();
        self.taken.insert(memory.addr(), block);
        memory.cast()
    }

    /// A new block, for which what is kept may have to go.
    fn allocate(&mut self, bytes: usize) -> Option<TensorBuffer> {
        let room = self.limit.map(|limit| limit.saturating_sub(self.besides));
        let is_above =
            |held: u64| room.is_some_and(|room| held.saturating_add(bytes as u64) > room);
        if is_above(self.held) {
            self.drop_kept();
        }
        let taken = self.in_use + self.besides;
        if is_above(self.held) {
            self.refused = Some(Refused { wanted: bytes as u64, taken, limit: self.limit });
            return None;
        }
        let length = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut block = TensorBuffer::zeros(&[length], DataType::U8);
        if block.is_err() && !self.kept.is_empty() {
            self.drop_kept();
            block = TensorBuffer::zeros(&[length], DataType::U8);
        }
        match block {
            Ok(block) => {
                self.held += block.capacity() as u64;
                Some(block)
            }
            Err(_) => {
                self.refused = Some(Refused { wanted: bytes as u64, taken, limit: None });
                None
            }
        }
    }

    fn drop_kept(&mut self) {
        self.kept.clear();
        self.held = self.in_use;
    }

    fn give_back(&mut self, memory: *mut c_void) {
        if let Some(block) = self.taken.remove(&memory.addr()) {
            self.in_use -= block.capacity() as u64;
            self.kept.insert((block.capacity(), memory.addr()), block);
        }
    }
}

/// [`RawArena::take`] of an [`Arena`].
///
/// # Safety
/// `context` is an arena that nobody else uses.
unsafe extern "C" fn take(context: *mut c_void, bytes: u64) -> *mut c_void {
    // SAFETY: by contract.
    let arena = unsafe { &mut *context.cast::<Arena>() };
    arena.take(bytes)
}

/// [`RawArena::give_back`] of an [`Arena`].
///
/// # Safety
/// `context` is an arena that nobody else uses.
unsafe extern "C" fn give_back(context: *mut c_void, memory: *mut c_void) {
    // SAFETY: by contract.
    let arena = unsafe { &mut *context.cast::<Arena>() };
    arena.give_back(memory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again() {
        let mut arena = Arena::default();
        let first = arena.take(1000);
        arena.give_back(first);
        assert_eq!(arena.take(900), first);
        assert_ne!(arena.take(900), first);
        assert_eq!(arena.most_taken(), 1900);
    }

    #[test]
    fn no_more_than_the_limit_is_held() {
        let mut arena = Arena::default();
        arena.set_limit(Some(4096));
        arena.begin(96).unwrap();
        let first = arena.take(3000);
        assert!(arena.take(2000).is_null());
        let refused = Refused { wanted: 2000, taken: 3096, limit: Some(4096) };
        assert_eq!(arena.refused(), Some(refused));
        arena.give_back(first);
        assert!(!arena.take(4000).is_null(), "what was kept goes");
        assert_eq!(arena.held, 4000);
        assert!(arena.begin(5000).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut arena = Arena::default();
        assert!(arena.take(u64::MAX).is_null());
        assert_eq!(arena.refused().map(|it| it.limit), Some(None));
    }
}
