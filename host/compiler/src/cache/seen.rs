//! Digests of files that were digested before, so that a model of gigabytes is not read again to find out that it is the same.
//!
//! ```text
//! DIR/seen/2c26b46b…             of a path: device, inode, size, times of the file, and its digest
//! ```
//!
//! A file is the same where all of these are; who writes a file changes its times, of which nobody can set the last one. A clock that goes
//! by in steps could hide a second change right behind the first, so nothing is noted of a file that was changed just now.

use std::fs::{self, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rayon::prelude::*;

use super::{Cache, digest_of};
use crate::io::{FileError, sha256};

/// The folder of what is noted.
const SEEN: &str = "seen";
/// How long ago a file must have been changed, in seconds.
const SETTLED: i64 = 3;
/// What nobody asked for so long goes.
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Cache {
    /// The digests of files, as [`digest_of`] gives them.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn digests_of(&self, paths: &[&Path]) -> Result<Vec<String>, FileError> {
        paths.par_iter().map(|path| self.digest(path)).collect()
    }

    /// The digest of a file: what was noted of it, if it was not changed since.
    pub(super) fn digest(&self, path: &Path) -> Result<String, FileError> {
        let Ok(before) = fs::metadata(path).map(|metadata| state_of(&metadata)) else {
            return digest_of(path);
        };
        let place = self.place_of(path);
        let noted = place.as_ref().and_then(|place| fs::read_to_string(place).ok());
        if let Some((state, digest)) = noted.as_deref().and_then(|text| text.split_once('\n'))
            && state == before
            && is_digest(digest)
        {
            return Ok(digest.to_owned());
        }
        let digest = digest_of(path)?;
        if let Some(place) = place
            && let Ok(after) = fs::metadata(path)
            && state_of(&after) == before
            && is_settled(&after)
        {
            // That it cannot be noted costs time, and no more.
            let _ = self.note(&place, &format!("{before}\n{digest}"));
        }
        Ok(digest)
    }

    /// Where it is noted what a file is.
    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let path = fs::canonicalize(path).ok()?;
        Some(self.folder.join(SEEN).join(sha256(path.as_os_str().as_encoded_bytes())))
    }

    fn note(&self, place: &Path, text: &str) -> std::io::Result<()> {
        let folder = self.folder.join(SEEN);
        fs::create_dir_all(&folder)?;
        let mut made = tempfile::NamedTempFile::new_in(&folder)?;
        made.write_all(text.as_bytes())?;
        made.persist(place)?;
        Ok(())
    }

    /// Lets go what was noted long ago.
    pub(super) fn forget(&self) {
        let notes = fs::read_dir(self.folder.join(SEEN)).into_iter().flatten();
        for note in notes.filter_map(Result::ok) {
            let noted = note.metadata().and_then(|metadata| metadata.modified());
            let is_old = noted.is_ok_and(|it| it.elapsed().is_ok_and(|age| age > FORGOTTEN));
            if is_old {
                let _ = fs::remove_file(note.path());
            }
        }
    }
}

/// What is the same as long as a file is.
fn state_of(file: &Metadata) -> String {
    let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    format!("{} {} {} {times:?}", file.dev(), file.ino(), file.len())
}

/// Whether a file was changed long enough ago for its times to tell of the next change.
fn is_settled(file: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    file.ctime().max(file.mtime()) + SETTLED < now
}

fn is_digest(text: &str) -> bool {
    text.is_empty() || text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::{Cache, digest_of};
    use super::{SEEN, state_of};

    /// Has a cache say of a file what is wrong, to see whether it believes it.
    fn lie(cache: &Cache, path: &Path, state: &str) {
        let place = cache.place_of(path).unwrap();
        cache.note(&place, &format!("{state}\n{}", "a".repeat(64))).unwrap();
    }

    #[test]
    fn a_file_is_read_again_when_it_was_changed() {
        let house = tempfile::tempdir().unwrap();
        let house = house.path().canonicalize().unwrap();
        let (cache, path) = (Cache::open(&house.join("cache")).unwrap(), house.join("model"));
        fs::write(&path, "1").unwrap();
        // It is new, so nothing is noted.
        assert_eq!(cache.digest(&path).unwrap(), digest_of(&path).unwrap());
        assert!(!house.join("cache").join(SEEN).exists());
        let state = state_of(&fs::metadata(&path).unwrap());
        lie(&cache, &path, &state);
        assert_eq!(cache.digests_of(&[&path]).unwrap(), ["a".repeat(64)]);
        fs::write(&path, "2").unwrap();
        let digest = digest_of(&path).unwrap();
        assert_eq!(cache.digest(&path).unwrap(), digest);
        // Another file of the same size and time in its place.
        lie(&cache, &path, &state_of(&fs::metadata(&path).unwrap()));
        let other = house.join("other");
        fs::write(&other, "3").unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::File::open(&other).unwrap().set_modified(time).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(cache.digest(&path).unwrap(), digest_of(&path).unwrap());
        // What is noted and is no digest.
        let place = cache.place_of(&path).unwrap();
        let state = state_of(&fs::metadata(&path).unwrap());
        cache.note(&place, &format!("{state}\nno digest")).unwrap();
        assert_eq!(cache.digest(&path).unwrap(), digest_of(&path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(cache.digest(&path).is_err());
    }

    #[test]
    fn what_was_changed_long_ago_is_noted() {
        let house = tempfile::tempdir().unwrap();
        let house = house.path().canonicalize().unwrap();
        let cache = Cache::open(&house.join("cache")).unwrap();
        // The program that runs this was made before.
        let program = std::env::current_exe().unwrap();
        if !super::is_settled(&fs::metadata(&program).unwrap()) {
            std::thread::sleep(std::time::Duration::from_secs(5));
        }
        let digest = cache.digest(&program).unwrap();
        let noted = fs::read_to_string(cache.place_of(&program).unwrap()).unwrap();
        assert!(noted.ends_with(&digest), "{noted}");
        cache.forget();
        assert_eq!(cache.digest(&program).unwrap(), digest);
    }
}
