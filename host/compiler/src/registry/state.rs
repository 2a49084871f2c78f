//! What is remembered of libraries from one run to the next: small files in a folder of the user's.
//!
//! | file | what it says |
//! |---|---|
//! | `digests/DEVICE-INODE` | the digest of a file, and its size and times when it was read |
//! | `known/SHA256` | a library of this digest was opened and did no harm |
//! | `quarantine/SHA256` | one of this digest did, and which |
//! | `journal/*` | what a process does with plugins: [`super::journal`] |
//!
//! Each fact is a file of its own that is written beside its place and renamed, so that several processes need
//! no lock to agree.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::library_file::Identity;
use super::trust::{Trust, trusted_users};
use crate::io::{FileError, write_atomically};

/// The folder.
#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
}

/// A library that is not opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// Where it was found.
    pub file: String,
    /// Its digest: another build of it is another library.
    pub sha256: String,
    /// What it did.
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
struct KnownDigest {
    sha256: String,
    identity: Identity,
}

/// Clocks of files tick so seldom, at worst: a file that was written later than this may be written again without
/// another time.
const SLOWEST_CLOCK: Duration = Duration::from_secs(2);

/// Facts of one kind that are kept; beyond, the older half goes.
const MOST_FACTS: usize = 2000;

impl State {
    /// The user's folder: `$XDG_STATE_HOME/tenon`, by default `~/.local/state/tenon`. `TENON_STATE` names another one,
    /// for tests. `None` where the environment says nothing; a relative path says nothing.
    pub fn of_user() -> Option<State> {
        let absolute =
            |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let home = || absolute("HOME").map(|home| home.join(".local/state"));
        let users = || Some(absolute("XDG_STATE_HOME").or_else(home)?.join("tenon"));
        absolute("TENON_STATE").or_else(users).map(State::at)
    }

    /// The state in a folder, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> State {
        State { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Who else can write the folder.
    pub(super) fn writers(&self) -> Option<String> {
        let folder = self.folder.canonicalize().ok()?;
        Trust::default().writers(&folder, &trusted_users(Path::new("/")))
    }

    /// The digest of a file that was read before and is the same.
    pub(super) fn digest(&self, identity: &Identity) -> Option<String> {
        let known: KnownDigest = self.read("digests", &digest_name(identity))?;
        (known.identity == *identity).then_some(known.sha256)
    }

    /// Remembers the digest of a file, unless it is so new that it may change without another time.
    pub(super) fn set_digest(&self, identity: &Identity, sha256: &str) -> Result<(), FileError> {
        let newest = Duration::from_nanos(identity.modified.max(identity.changed).max(0) as u64);
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + newest);
        if age.is_ok_and(|age| age > SLOWEST_CLOCK) {
            let known = KnownDigest { sha256: sha256.to_owned(), identity: *identity };
            self.write("digests", &digest_name(identity), &known)?;
        }
        Ok(())
    }

    /// Whether a library of this digest was opened without harm.
    pub(super) fn is_known(&self, sha256: &str) -> bool {
        self.folder.join("known").join(sha256).exists()
    }

    /// Remembers that it was.
    pub(super) fn set_known(&self, sha256: &str) -> Result<(), FileError> {
        self.prune("known");
        self.prune("digests");
        self.write("known", sha256, &())
    }

    /// What is said of a library that is not to be opened.
    pub(super) fn quarantined(&self, sha256: &str) -> Option<Quarantined> {
        self.read("quarantine", sha256)
    }

    /// All that are not to be opened, in the order of their files.
    pub fn quarantine(&self) -> Vec<Quarantined> {
        let names = names(&self.folder.join("quarantine"));
        let mut all: Vec<Quarantined> =
            names.iter().filter_map(|name| self.read("quarantine", name)).collect();
        all.sort_by(|a, b| (&a.file, &a.sha256).cmp(&(&b.file, &b.sha256)));
        all
    }

    /// Remembers that a library did harm.
    pub(super) fn set_quarantined(&self, library: &Quarantined) -> Result<(), FileError> {
        self.write("quarantine", &library.sha256, library)
    }

    /// Lets a library be opened again; it is tried out before.
    pub fn release(&self, library: &Quarantined) -> Result<(), FileError> {
        self.forget("quarantine", &library.sha256)?;
        self.set_unknown(&library.sha256)
    }

    /// Forgets that a library of this digest was opened: it is tried out anew.
    pub(super) fn set_unknown(&self, sha256: &str) -> Result<(), FileError> {
        self.forget("known", sha256)
    }

    fn forget(&self, kind: &str, name: &str) -> Result<(), FileError> {
        let path = self.folder.join(kind).join(name);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => {
                Err(FileError::Write { path, cause })
            }
            _ => Ok(()),
        }
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, kind: &str, name: &str) -> Option<T> {
        toml::from_str(&fs::read_to_string(self.folder.join(kind).join(name)).ok()?).ok()
    }

    fn write(&self, kind: &str, name: &str, fact: &impl Serialize) -> Result<(), FileError> {
        let folder = self.folder.join(kind);
        let path = folder.join(name);
        let failed = |cause| FileError::Write { path: path.clone(), cause };
        make_folder(&folder).map_err(failed)?;
        let text = to_text(fact);
        write_atomically(&path, |out| out.write_all(text.as_bytes()).map_err(failed))
    }

    /// Forgets the older half of too many facts, as each costs no more than to be found out again, and removes what was
    /// never finished.
    fn prune(&self, kind: &str) {
        let folder = self.folder.join(kind);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_unnamed = entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_unnamed && is_forgotten(&entry.path()) {
                // Another process may have been faster.
                let _ = fs::remove_file(entry.path());
            }
        }
        let names = names(&folder);
        if names.len() < MOST_FACTS {
            return;
        }
        let mut by_age: Vec<(SystemTime, PathBuf)> = names
            .iter()
            .map(|name| folder.join(name))
            .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
            .collect();
        by_age.sort();
        for (_, path) in &by_age[..by_age.len() / 2] {
            // Another process may have been faster.
            let _ = fs::remove_file(path);
        }
    }
}

fn digest_name(identity: &Identity) -> String {
    format!("{:x}-{:x}", identity.device, identity.inode)
}

fn to_text(fact: &impl Serialize) -> String {
    toml::to_string(fact).unwrap_or_default()
}

/// Whether a file that is being written, and so has no name yet, has been so for longer than that takes.
pub(super) fn is_forgotten(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let age = |modified: SystemTime| modified.elapsed().unwrap_or_default();
    modified.is_ok_and(|modified| age(modified) > Duration::from_secs(60))
}

/// Makes a folder that is nobody else's business.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The files in a folder, without those that are being written.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;
    use std::time::{Duration, SystemTime};

    use super::{Quarantined, SLOWEST_CLOCK, State};
    use crate::registry::LibraryFile;

    fn state() -> (tempfile::TempDir, State) {
        let folder = tempfile::tempdir().unwrap();
        let state = State::at(folder.path().join("of/tenon"));
        (folder, state)
    }

    #[test]
    fn a_digest_is_remembered_while_the_file_is_the_same() {
        let (folder, state) = state();
        let path = folder.path().join("lib.so");
        fs::write(&path, "one").unwrap();
        let identity = LibraryFile::open(&path).unwrap().identity();
        state.set_digest(&identity, "11").unwrap();
        assert_eq!(state.digest(&identity), None, "it may change within the same tick");
        thread::sleep(SLOWEST_CLOCK + Duration::from_millis(100));
        state.set_digest(&identity, "11").unwrap();
        assert_eq!(state.digest(&identity).as_deref(), Some("11"));
        fs::write(&path, "two").unwrap();
        let identity = LibraryFile::open(&path).unwrap().identity();
        assert_eq!(state.digest(&identity), None);
    }

    #[test]
    fn what_was_never_finished_is_removed() {
        let (_folder, state) = state();
        state.set_known("11").unwrap();
        let [old, new] = ["old", "new"].map(|name| state.folder().join(format!("known/.{name}")));
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        fs::File::create(&old).unwrap().set_modified(long_ago).unwrap();
        fs::File::create(&new).unwrap();
        state.set_known("22").unwrap();
        assert!(!old.exists() && new.exists() && state.is_known("11") && state.is_known("22"));
    }

    #[test]
    fn what_is_quarantined_is_listed_and_released() {
        let (_folder, state) = state();
        assert_eq!(state.quarantine(), []);
        let library = |sha256: &str| Quarantined {
            file: "/a \"b\".so".to_owned(),
            sha256: sha256.to_owned(),
            reason: "two\nlines".to_owned(),
        };
        state.set_known("22").unwrap();
        state.set_quarantined(&library("22")).unwrap();
        state.set_quarantined(&library("11")).unwrap();
        assert_eq!(state.quarantine(), [library("11"), library("22")]);
        state.release(&library("22")).unwrap();
        assert_eq!((state.quarantined("22"), state.is_known("22")), (None, false));
        assert_eq!(state.quarantine(), [library("11")]);
    }
}
