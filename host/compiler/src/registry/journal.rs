//! What this process does with plugins, in memory that it shares with a file: what was written there is there when the
//! process is not.
//!
//! Each process has a file, `journal/*` in the folder of the state, and a lock on it for as long as it lives. A thread
//! has an entry: what it does now, and, once the process dies, how that came ([`super::last_words`]). The next process
//! reads and removes the files that nobody holds a lock on.
//!
//! Writing an entry is a few stores, so each call of a pass is noted, not only each opening of a library.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapMut, MmapOptions};

use super::State;
use super::state::{is_forgotten, make_folder};
use crate::io::FileError;

/// Bytes of an entry, of which the first 16 say whose it is.
const ENTRY: usize = 1024;
const TEXT: usize = ENTRY - 16;

/// The journal of this process: one, since there is one of the process.
static JOURNAL: OnceLock<Journal> = OnceLock::new();

struct Journal {
    entries: &'static [Entry],
    /// Its file, where there is one. The lock goes with the process.
    file: Option<(PathBuf, File)>,
}

/// What a thread does.
#[repr(C)]
pub(super) struct Entry {
    /// The thread, as the kernel numbers them; 0 where the entry is nobody's.
    thread: AtomicI32,
    /// How the process died while the thread did this.
    death: AtomicI32,
    /// Bytes of the text; none while the thread does nothing of note.
    length: AtomicU32,
    /// Where it begins, a multiple of 8. What the thread did before, and goes on with, stands in front of it.
    start: AtomicU32,
    texts: [AtomicU64; TEXT / 8],
}

const _: () = assert!(size_of::<Entry>() == ENTRY);

/// Where a text stands in an entry.
#[derive(Clone, Copy)]
struct Place {
    start: u32,
    length: u32,
}

/// How a process died, as an entry says it: what else there is, is the signal by which the thread killed it.
pub(super) mod death {
    /// Nothing is known: it was killed, or left without a word.
    pub(in crate::registry) const SILENT: i32 = 0;
    /// The thread ended the program.
    pub(in crate::registry) const EXIT: i32 = -1;
    /// Whoever ended it, it was not this thread.
    pub(in crate::registry) const ELSEWHERE: i32 = -2;
    /// The process in which a library is tried out sent the signal.
    pub(in crate::registry) const BY_CHILD: i32 = -3;
}

/// What a process does with a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It waits for the process in which a library is opened for the first time.
    Trying,
    /// It opens a library.
    Opening,
    /// It is in a library's code.
    Running,
    /// It waits for a pass in another process.
    Waiting,
}

/// What is noted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doing {
    pub(super) act: Act,
    /// The digest of the library, where it matters.
    pub(super) sha256: String,
    /// What of it runs, such as "pass `acme.Fuse`".
    pub(super) what: String,
    /// The library.
    pub(super) file: String,
}

/// The same as a line of an entry's text, made once.
pub(super) struct Note(String);

/// What a process did when it died.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftBehind {
    pub(super) doing: Doing,
    pub(super) death: i32,
}

impl Doing {
    pub(super) fn new(act: Act, sha256: &str, what: &str, file: &Path) -> Doing {
        let (sha256, what, file) = (sha256.to_owned(), what.to_owned(), file.display().to_string());
        Doing { act, sha256, what, file }
    }

    pub(super) fn note(&self) -> Note {
        let act = match self.act {
            Act::Trying => "trying",
            Act::Opening => "opening",
            Act::Running => "running",
            Act::Waiting => "waiting",
        };
        // The path of a file may have any characters in it, so it stands last.
        Note(format!("{act}\n{}\n{}\n{}", self.sha256, self.what, self.file))
    }

    fn read(text: &str) -> Option<Doing> {
        let mut fields = text.splitn(4, '\n');
        let act = match fields.next()? {
            "trying" => Act::Trying,
            "opening" => Act::Opening,
            "running" => Act::Running,
            "waiting" => Act::Waiting,
            _ => return None,
        };
        let mut next = || fields.next().map(str::to_owned);
        Some(Doing { act, sha256: next()?, what: next()?, file: next()? })
    }
}

/// Begins the journal of this process, the first time. Where its file cannot be made, it is this process's alone.
pub(super) fn begin(state: Option<&State>) -> Result<(), FileError> {
    let mut result = Ok(());
    JOURNAL.get_or_init(|| {
        // The threads of the pool, and some that are not.
        let threads = std::thread::available_parallelism().map_or(1, usize::from) + 16;
        let file = state.map(|state| new_file(&folder(state), threads * ENTRY)).transpose();
        let (file, mapped) = match file {
            Ok(Some((path, file, mapped))) => (Some((path, file)), Some(mapped)),
            Ok(None) => (None, None),
            Err(error) => {
                result = Err(error);
                (None, None)
            }
        };
        let mapped = mapped.or_else(|| MmapMut::map_anon(threads * ENTRY).ok());
        Journal { entries: mapped.map_or(&[], entries_of), file }
    });
    result
}

/// Notes what this thread does while it does it.
pub(super) fn during<T>(note: &Note, act: impl FnOnce() -> T) -> T {
    /// What the thread did before, which it then does again.
    struct Before(&'static Entry, Place);

    impl Drop for Before {
        fn drop(&mut self) {
            self.0.go_back_to(self.1);
        }
    }

    let Ok(Some(entry)) = MINE.try_with(|mine| mine.0) else { return act() };
    let _before = Before(entry, entry.add_text(note.0.as_bytes()));
    act()
}

/// What is being done now, by all threads.
pub(super) fn at_hand() -> Vec<Doing> {
    let texts = entries().iter().map(Entry::text);
    texts.filter_map(|text| Doing::read(&String::from_utf8_lossy(&text))).collect()
}

/// All entries.
pub(super) fn entries() -> &'static [Entry] {
    JOURNAL.get().map_or(&[], |journal| journal.entries)
}

/// Removes the file: the process ends as it should.
pub(super) fn end() {
    if let Some((path, _)) = JOURNAL.get().and_then(|journal| journal.file.as_ref()) {
        // One that stays says nothing.
        let _ = fs::remove_file(path);
    }
}

thread_local! {
    /// The entry of this thread, while it lives.
    static MINE: Mine = Mine(claim());
}

struct Mine(Option<&'static Entry>);

impl Drop for Mine {
    fn drop(&mut self) {
        // A thread that ends in the midst of something called exit(), and the entry says so.
        if let Some(entry) = self.0.filter(|entry| !entry.is_busy()) {
            entry.thread.store(0, Ordering::Release);
        }
    }
}

fn claim() -> Option<&'static Entry> {
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let claim = |entry: &&Entry| {
        entry.thread.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    entries().iter().find(claim)
}

impl Entry {
    /// Whether it is the calling thread's. Like all that is asked when the process dies, it is for a signal's handler.
    pub(super) fn is_mine(&self) -> bool {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.load(Ordering::Acquire) == thread
    }

    pub(super) fn is_busy(&self) -> bool {
        self.length.load(Ordering::Acquire) > 0
    }

    pub(super) fn set_death(&self, death: i32) {
        self.death.store(death, Ordering::Relaxed);
    }

    /// A byte of the text; none behind its end.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        let length = self.length.load(Ordering::Acquire) as usize;
        let start = self.start.load(Ordering::Relaxed) as usize / 8;
        let word = || Some(self.texts.get(start + at / 8)?.load(Ordering::Relaxed).to_ne_bytes());
        if at < length { word().map(|word| word[at % 8]) } else { None }
    }

    fn text(&self) -> Vec<u8> {
        (0..).map_while(|at| self.byte(at)).collect()
    }

    /// Puts a text behind the one that there is, and gives the place of that. Where there is no room for both, the one that
    /// there is stays: it says less, and who is to blame all the same.
    fn add_text(&self, text: &[u8]) -> Place {
        let load = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let before = Place { start: load(&self.start), length: load(&self.length) };
        let start = (before.start + before.length).next_multiple_of(8);
        let room = TEXT.saturating_sub(start as usize);
        if start > 0 && text.len() > room {
            return before;
        }
        let text = &text[..text.len().min(room)];
        // Whoever reads meanwhile finds nothing, or for a moment a mixture: it is a text and no more.
        self.length.store(0, Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        for (word, bytes) in self.texts[start as usize / 8..].iter().zip(text.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
        self.length.store(text.len() as u32, Ordering::Release);
        before
    }

    fn go_back_to(&self, place: Place) {
        self.length.store(0, Ordering::Release);
        self.start.store(place.start, Ordering::Relaxed);
        self.length.store(place.length, Ordering::Release);
    }
}

fn entries_of(mapped: MmapMut) -> &'static [Entry] {
    let mapped = Box::leak(Box::new(mapped));
    let (start, count) = (mapped.as_mut_ptr().cast::<Entry>(), mapped.len() / ENTRY);
    // SAFETY: the mapping is never undone, begins on a page and is this process's own: no other reads its file while it
    // lives. An entry is made of atomics, for which any bytes are values, and its size is that of the chunks.
    unsafe { std::slice::from_raw_parts(start, count) }
}

fn folder(state: &State) -> PathBuf {
    state.folder().join("journal")
}

/// Makes a file of zeros and locks it before others look at it, which they do not while its name begins with a dot.
fn new_file(folder: &Path, size: usize) -> Result<(PathBuf, File, MmapMut), FileError> {
    let failed = |cause| FileError::Write { path: folder.to_owned(), cause };
    make_folder(folder).map_err(failed)?;
    let mut temporary = tempfile::Builder::new().prefix(".").tempfile_in(folder).map_err(failed)?;
    // Written, and not left as a hole: on a full disk a store into a hole is a fault.
    temporary.write_all(&vec![0; size]).map_err(failed)?;
    temporary.as_file().lock().map_err(failed)?;
    // SAFETY: nobody else writes to this file, which nobody else knows, or makes it shorter.
    let mapped = unsafe { MmapOptions::new().len(size).map_mut(temporary.as_file()) };
    let mapped = mapped.map_err(failed)?;
    let name = temporary.path().file_name().expect("a file has a name").to_string_lossy();
    let path = folder.join(name.trim_start_matches('.'));
    let file = temporary.persist(&path).map_err(|error| failed(error.error))?;
    Ok((path, file, mapped))
}

/// What processes did that are no more. It is told once.
pub(super) fn left_behind(state: &State) -> Vec<LeftBehind> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder(state)).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_unnamed = entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_unnamed && !is_forgotten(&path) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        let mut bytes = Vec::new();
        // What cannot be read says nothing.
        let _ = file.take(1 << 24).read_to_end(&mut bytes);
        found.extend(bytes.chunks_exact(ENTRY).filter_map(LeftBehind::read));
        // Where it stays, it is told again.
        let _ = fs::remove_file(&path);
    }
    found
}

impl LeftBehind {
    fn read(entry: &[u8]) -> Option<LeftBehind> {
        let word = |at: usize| entry[at..at + 4].try_into().expect("four bytes");
        let [length, start] = [8, 12].map(|at| u32::from_ne_bytes(word(at)) as usize);
        let text =
            entry[16..].get(start..start.saturating_add(length)).filter(|text| !text.is_empty())?;
        let doing = Doing::read(&String::from_utf8_lossy(text))?;
        Some(LeftBehind { doing, death: i32::from_ne_bytes(word(4)) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{
        Act, Doing, ENTRY, Entry, Place, death, entries_of, folder, left_behind, new_file,
    };
    use crate::registry::State;

    fn doing(act: Act) -> Doing {
        Doing::new(act, "00ff", "pass `acme.A`", Path::new("/a \n.so"))
    }

    #[test]
    fn what_a_dead_process_did_is_told_once() {
        let house = tempfile::tempdir().unwrap();
        let state = State::at(house.path().join("of/tenon"));
        assert_eq!(left_behind(&state), []);
        let (path, lock, mapped) = new_file(&folder(&state), 3 * ENTRY).unwrap();
        let entries: &[Entry] = entries_of(mapped);
        entries[1].add_text(b"running\n\npass `acme.A`\n/a.so");
        entries[1].add_text(doing(Act::Opening).note().0.as_bytes());
        entries[2].add_text(doing(Act::Running).note().0.as_bytes());
        entries[2].set_death(11);
        assert_eq!(left_behind(&state), [], "the process lives");
        // The mapping keeps the file open, and with it the lock, when the handle is dropped.
        lock.unlock().unwrap();
        let left = left_behind(&state);
        let told: Vec<_> = left.into_iter().map(|it| (it.doing, it.death)).collect();
        assert_eq!(told, [(doing(Act::Opening), death::SILENT), (doing(Act::Running), 11)]);
        assert!(!path.exists() && left_behind(&state).is_empty(), "it is told once");
        entries[1].go_back_to(Place { start: 0, length: 0 });
        assert!(!entries[1].is_busy() && entries[2].is_busy());
    }

    #[test]
    fn what_is_done_within_something_else_is_named_while_it_is() {
        let house = tempfile::tempdir().unwrap();
        let (_, _lock, mapped) = new_file(&folder(&State::at(house.path())), ENTRY).unwrap();
        let entry = &entries_of(mapped)[0];
        let nothing = entry.add_text(b"a pass of nine");
        let pass = entry.add_text(b"a rule");
        assert_eq!(entry.text(), b"a rule");
        let rule = entry.add_text(&[b'x'; ENTRY]);
        assert_eq!(entry.text(), b"a rule", "there is no room");
        entry.go_back_to(rule);
        assert_eq!(entry.text(), b"a rule");
        entry.go_back_to(pass);
        assert_eq!(entry.text(), b"a pass of nine");
        entry.go_back_to(nothing);
        assert!(!entry.is_busy());
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let house = tempfile::tempdir().unwrap();
        let state = State::at(house.path());
        let (path, _lock, mapped) = new_file(&folder(&state), ENTRY).unwrap();
        let entry = &entries_of(mapped)[0];
        entry.add_text(&[b'x'; 5000]);
        assert_eq!(entry.text(), [b'x'; ENTRY - 16]);
        assert_eq!(fs::metadata(path).unwrap().len(), ENTRY as u64);
    }
}
