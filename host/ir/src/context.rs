//! The context: a hash-consed term table that is shared by the modules made in it.
//!
//! A pass asks for the same few terms again and again, on all threads at once. So each thread remembers what it asked
//! for last, and takes a lock for nothing but terms that are new to it.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use tenon_plugin_api::abi::publication::append;
use tenon_plugin_api::abi::read::TermTable;
use tenon_plugin_api::abi::records::{RawTerm, RawTermTable, TERM_CHUNK_LOG2, TERM_CHUNKS};
use tenon_plugin_api::ir::{Context, InBlocks, Symbol, Term, TermKind, Terms};

use super::texts::Texts;
use super::{NoOperators, OpBook};

/// A handle to a term table. Cloning it is cheap; all methods may be called from any thread.
#[derive(Clone)]
pub struct Cx(Arc<Interner>);

/// Stands on cache lines of its own: every read of a term looks at the table's length, and the count of handles, which
/// stands before it, changes all the time.
#[repr(align(128))]
struct Interner {
    table: RawTermTable,
    /// Unlike that of any other context of this process.
    number: u64,
    shards: [Shard; SHARDS],
    store: Mutex<Store>,
    operators: Arc<dyn OpBook>,
    texts: Texts,
}

/// A few times the threads that ask at once, so that two seldom meet at one lock.
const SHARDS: usize = 16;

#[repr(align(128))]
struct Shard(Mutex<HashTable<Entry>>);

/// A term in the table of a shard. Its hash stands beside it, so that a table which grows looks at no term.
struct Entry {
    hash: u32,
    id: u32,
}

/// So many of the lowest bits of a hash are kept, and the highest ones: those that a table looks at.
const LOW_BITS: u32 = 25;

/// What is kept of a hash.
fn kept(hash: u64) -> u32 {
    (hash >> 32) as u32 >> LOW_BITS << LOW_BITS | (hash as u32 & ((1 << LOW_BITS) - 1))
}

/// What is kept where a table looks for it.
fn spread(kept: u32) -> u64 {
    u64::from(kept) << 32 | u64::from(kept)
}

/// What a thread asked for last: at each place the context, the hash and the term. So many places are 12 KiB, which leave
/// a first-level cache room for the function that a pass reads, and hold the terms of one function, some hundreds.
///
/// The shard is taken from the upper half of the hash: its table looks at the lowest bits and the seven highest, which
/// then still differ within a shard.
const RECENT: usize = 512;

thread_local! {
    static RECENT_TERMS: [Cell<(u64, u64, u32)>; RECENT] =
        const { [const { Cell::new((0, 0, 0)) }; RECENT] };
}

/// The memory behind the table. Nothing in it moves or changes once its term is published.
#[derive(Default)]
struct Store {
    chunks: Vec<Vec<RawTerm>>,
    children: Blocks<Term>,
    texts: Blocks<u8>,
}

/// Slices that stay where they are, many in one piece of memory.
struct Blocks<T>(Vec<Vec<T>>);

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Blocks<T> {
    /// Each block is twice as large as the one before, up to the last of these: what is left free at its end is little
    /// beside all that was kept.
    const SIZES: [usize; 2] = [1 << 8, 1 << 18];

    /// A copy of a slice, to which nothing is written and which does not move as long as this lives.
    fn keep(&mut self, items: &[T]) -> *const T {
        let has_room = |block: &Vec<T>| block.capacity() - block.len() >= items.len();
        if !self.0.last().is_some_and(has_room) {
            let [first, largest] = Self::SIZES;
            let size = self.0.last().map_or(first, |block| largest.min(2 * block.capacity()));
            self.0.push(Vec::with_capacity(size.max(items.len())));
        }
        let block = self.0.last_mut().expect("there is a block with room");
        let start = block.len();
        // There is room, so nothing moves.
        block.extend_from_slice(items);
        block[start..].as_ptr()
    }
}

impl Cx {
    /// An empty context without operators.
    pub fn new() -> Self {
        Self::with_operators(Arc::new(NoOperators))
    }

    /// An empty context in which calls mean the operators of a book.
    pub fn with_operators(operators: Arc<dyn OpBook>) -> Self {
        static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);
        let cx = Cx(Arc::new(Interner {
            table: RawTermTable {
                stride: size_of::<RawTerm>() as u32,
                len: AtomicU32::new(0),
                chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; TERM_CHUNKS],
            },
            number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
            shards: [const { Shard(Mutex::new(HashTable::new())) }; SHARDS],
            store: Mutex::default(),
            operators,
            texts: Texts::default(),
        }));
        // Term 0 is "none".
        cx.0.append(TermKind::NONE, 0, 0, &[], "");
        cx
    }

    /// The operators.
    pub fn operators(&self) -> &Arc<dyn OpBook> {
        &self.0.operators
    }

    /// The texts that were read into it.
    pub(super) fn texts(&self) -> &Texts {
        &self.0.texts
    }

    /// The table, to hand across the border. It lives as long as any clone of this handle.
    pub fn table(&self) -> &RawTermTable {
        &self.0.table
    }

    /// Number of terms made so far.
    pub fn term_count(&self) -> u32 {
        self.0.table.len.load(Ordering::Acquire)
    }

    /// Whether two handles lead to the same table.
    pub fn is_same(&self, other: &Cx) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Cx {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Cx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cx({} terms)", self.term_count())
    }
}

impl Context for Cx {
    fn terms(&self) -> Terms<'_> {
        Terms::new(TermTable::new(&self.0.table))
    }

    fn intern(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term]) -> Term {
        debug_assert!(kind != TermKind::STR, "text is interned by `symbol`");
        let hash = match kind {
            TermKind::INT => hash_of_int(bits),
            _ => hash_of(&(kind.0, flags, bits, children)),
        };
        let terms = self.terms();
        let is_same = |&id: &u32| {
            let raw = terms.raw(Term(id));
            raw.kind == kind.0
                && raw.flags == flags
                && raw.bits == bits
                && terms.children(Term(id)) == children
        };
        self.0.find_or_append(hash, is_same, || self.0.append(kind, flags, bits, children, ""))
    }

    fn symbol(&self, text: &str) -> Symbol {
        let hash = hash_of(&text);
        let terms = self.terms();
        let is_same =
            |&id: &u32| terms.kind(Term(id)) == TermKind::STR && terms.str(Term(id)) == text;
        Symbol(
            self.0
                .find_or_append(hash, is_same, || self.0.append(TermKind::STR, 0, 0, &[], text))
                .0,
        )
    }
}

impl Interner {
    fn find_or_append(
        &self,
        hash: u64,
        is_same: impl Fn(&u32) -> bool,
        append: impl FnOnce() -> u32,
    ) -> Term {
        RECENT_TERMS.with(|recent| {
            let place = &recent[((hash >> 32) ^ hash) as usize % RECENT];
            let (number, known, id) = place.get();
            if number == self.number && known == hash && is_same(&id) {
                return Term(id);
            }
            let term = self.find_or_append_shared(hash, is_same, append);
            place.set((self.number, hash, term.0));
            term
        })
    }

    fn find_or_append_shared(
        &self,
        hash: u64,
        is_same: impl Fn(&u32) -> bool,
        append: impl FnOnce() -> u32,
    ) -> Term {
        let mut shard = lock(&self.shards[(hash >> 32) as usize % SHARDS].0);
        let kept = kept(hash);
        if let Some(known) =
            shard.find(spread(kept), |known| known.hash == kept && is_same(&known.id))
        {
            return Term(known.id);
        }
        let id = append();
        shard.insert_unique(spread(kept), Entry { hash: kept, id }, |entry| spread(entry.hash));
        Term(id)
    }

    /// Adds a term that is not there yet, and publishes it.
    ///
    /// Writers hold the lock of the store. Readers take none: what [`append`] publishes is seen with all that it leads
    /// to, its children or text among it. A number reaches another thread only after that, whatever carries it.
    fn append(&self, kind: TermKind, flags: u16, bits: u64, children: &[Term], text: &str) -> u32 {
        let store = &mut *lock(&self.store);
        let (children, len) = if kind == TermKind::STR {
            (store.texts.keep(text.as_bytes()).cast(), text.len())
        } else {
            (store.children.keep(children).cast(), children.len())
        };
        let record = RawTerm { kind: kind.0, flags, len: len as u32, bits, children };
        append(&self.table.len, &self.table.chunks, |chunk| {
            if chunk == store.chunks.len() {
                store.chunks.push(Vec::with_capacity(1 << (TERM_CHUNK_LOG2 as usize + chunk)));
            }
            // The chunk was reserved in full, so pushing never moves it.
            store.chunks[chunk].push(record);
            store.chunks[chunk].as_mut_ptr().cast()
        })
    }
}

/// Integers that follow each other, as places and offsets do, are often asked for together, and stand together.
fn hash_of_int(bits: u64) -> u64 {
    let mut hasher = InBlocks::default();
    hasher.write_u32((bits >> 32) as u32);
    hasher.write_u32(bits as u32);
    hasher.finish()
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Locks; a poisoned lock is taken as it is, because the table is consistent whenever it is released.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
