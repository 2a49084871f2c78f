//! Entries: finding them, keeping new ones, and letting old ones go.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::key::PIECE;
use super::{Cache, CacheError, Key};
use crate::io::Mapping;
use crate::registry::writers_of_path;

/// The file that says what an entry has.
const ENTRY: &str = "entry.json";
/// No such file is larger.
const LARGEST_ENTRY: u64 = 1 << 20;
/// What is unfinished so long belongs to nobody any more.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
/// What is not finished, or is to go, begins with it.
const UNFINISHED: &str = "unfinished-";

/// What an entry has.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// Files that were read besides those of the key.
    inputs: Vec<Input>,
    files: Vec<Part>,
}

#[derive(Serialize, Deserialize)]
struct Input {
    path: PathBuf,
    digest: String,
}

#[derive(Serialize, Deserialize)]
struct Part {
    name: String,
    bytes: u64,
    sum: u32,
}

/// What a cache says of a key.
#[derive(Debug)]
pub enum Lookup {
    /// There is an entry.
    Found(Kept),
    /// There is none, or other files lie where some were read.
    Missing,
    /// There was one, which is not what it was any more, and is gone.
    Damaged(String),
}

/// The files of an entry, open: they can be read even if the entry goes.
#[derive(Debug)]
pub struct Kept(Vec<(String, File)>);

impl Kept {
    /// Writes a file of the entry to a place; false where it has none of this name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, name: &str, place: &Path) -> io::Result<bool> {
        let Some((_, from)) = self.0.iter_mut().find(|(own, _)| own == name) else {
            return Ok(false);
        };
        // Of files in one file system the system copies nothing, where it can.
        io::copy(from, &mut File::create(place)?)?;
        Ok(true)
    }

    /// Whether it has a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }
}

impl Cache {
    /// The entry of a key.
    pub fn find(&self, key: &Key) -> Lookup {
        let folder = self.folder.join(key.name());
        if !folder.exists() {
            return Lookup::Missing;
        }
        match self.read(&folder) {
            Ok(Some(kept)) => {
                // It was used last now. That this cannot be written down hurts nobody.
                let _ = File::open(folder.join(ENTRY))
                    .and_then(|file| file.set_modified(SystemTime::now()));
                Lookup::Found(kept)
            }
            Ok(None) => Lookup::Missing,
            Err(why) => {
                self.remove(&folder);
                Lookup::Damaged(why)
            }
        }
    }

    /// The files of an entry; nothing where what it was made of is not there any more, and why it is not what it was.
    fn read(&self, folder: &Path) -> Result<Option<Kept>, String> {
        let mut text = Vec::new();
        let entry = File::open(folder.join(ENTRY)).map_err(|error| error.to_string())?;
        entry.take(LARGEST_ENTRY).read_to_end(&mut text).map_err(|error| error.to_string())?;
        let entry: Entry = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let is_there =
            |input: &Input| self.digest(&input.path).is_ok_and(|own| own == input.digest);
        if !entry.inputs.iter().all(is_there) {
            return Ok(None);
        }
        let mut kept = Vec::with_capacity(entry.files.len());
        for Part { name, bytes, sum } in entry.files {
            if name.contains('/') {
                return Err(format!("`{name}` is no name of a file"));
            }
            let path = folder.join(&name);
            if let Some(why) = writers_of_path(&path) {
                return Err(why);
            }
            let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let found = Mapping::open(&path).map_err(|error| error.to_string())?;
            if found.len() as u64 != bytes || sum_of(&found) != sum {
                return Err(format!("`{}` is not what was written", path.display()));
            }
            kept.push((name, file));
        }
        Ok(Some(Kept(kept)))
    }

    /// Keeps files by their names under a key; `inputs` are files that were read besides those of the key.
    ///
    /// # Errors
    /// When the folder cannot be written, or a file cannot be read.
    pub fn keep(
        &self,
        key: &Key,
        inputs: &[PathBuf],
        files: &[(&str, &Path)],
    ) -> Result<(), CacheError> {
        let failed = |cause| CacheError::Folder { folder: self.folder.clone(), cause };
        let inputs =
            inputs.iter().map(|path| Ok(Input { path: path.clone(), digest: self.digest(path)? }));
        let inputs = inputs.collect::<Result<Vec<Input>, CacheError>>()?;
        let made = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder);
        let made = made.map_err(failed)?;
        let mut entry = Entry { inputs, files: Vec::new() };
        let mut bytes = 0;
        for (name, from) in files {
            let place = made.path().join(name);
            fs::copy(from, &place).map_err(failed)?;
            fs::set_permissions(&place, Permissions::from_mode(0o600)).map_err(failed)?;
            let copied = Mapping::open(&place)?;
            let (own, sum) = (copied.len() as u64, sum_of(&copied));
            entry.files.push(Part { name: (*name).to_owned(), bytes: own, sum });
            bytes += own;
        }
        if bytes > self.most {
            return Ok(());
        }
        let text = serde_json::to_vec(&entry).map_err(|error| failed(error.into()))?;
        fs::write(made.path().join(ENTRY), text).map_err(failed)?;
        let place = self.folder.join(key.name());
        // Of another process that has made the same, or of other inputs.
        self.remove(&place);
        if fs::rename(made.path(), &place).is_ok() {
            // It is not temporary any more.
            let _ = made.keep();
        }
        self.shrink();
        self.forget();
        Ok(())
    }

    /// Lets entries go that were not used for the longest time, until the others are small enough.
    fn shrink(&self) {
        let Ok(folders) = fs::read_dir(&self.folder) else { return };
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for folder in folders.filter_map(|folder| Some(folder.ok()?.path())) {
            let is_unfinished = folder
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED));
            let of = if is_unfinished { folder.clone() } else { folder.join(ENTRY) };
            let Ok(used) = fs::metadata(of).and_then(|metadata| metadata.modified()) else {
                continue;
            };
            if !is_unfinished {
                entries.push((used, bytes_of(&folder), folder));
            } else if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_dir_all(folder);
            }
        }
        entries.sort_unstable();
        let mut all: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, folder) in entries {
            if all <= self.most {
                break;
            }
            self.remove(&folder);
            all -= bytes;
        }
    }

    /// Removes an entry: first from its place, so that nobody meets a part of it.
    fn remove(&self, folder: &Path) {
        let gone = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder);
        if let Ok(gone) = gone {
            let _ = fs::rename(folder, gone.path().join("entry"));
        }
    }
}

/// A sum by which damage is found: that of the sums of pieces.
fn sum_of(bytes: &[u8]) -> u32 {
    let pieces: Vec<[u8; 4]> =
        bytes.par_chunks(PIECE).map(|piece| crc32fast::hash(piece).to_le_bytes()).collect();
    crc32fast::hash(pieces.as_flattened())
}

fn bytes_of(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten();
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use super::super::{Cache, Key, KeyBuilder};
    use super::Lookup;

    fn key(name: &str) -> Key {
        let mut key = KeyBuilder::default();
        key.text("name", name);
        key.finish()
    }

    /// A cache below a folder, and a file beside it.
    fn cache(house: &Path) -> (Cache, PathBuf) {
        let file = house.join("made");
        fs::write(&file, [7; 1000]).unwrap();
        (Cache::open(&house.join("cache/deep")).unwrap(), file)
    }

    fn text(cache: &Cache, key: &Key, house: &Path) -> Option<Vec<u8>> {
        match cache.find(key) {
            Lookup::Found(mut kept) => {
                let place = house.join("copy");
                assert!(kept.write("binary", &place).unwrap());
                assert!(!kept.write("header", &place).unwrap() && !kept.has("header"));
                Some(fs::read(place).unwrap())
            }
            Lookup::Missing => None,
            Lookup::Damaged(why) => panic!("{why}"),
        }
    }

    #[test]
    fn what_was_kept_is_found_until_it_is_damaged() {
        let house = tempfile::tempdir().unwrap();
        let house = house.path().canonicalize().unwrap();
        let (cache, file) = cache(&house);
        assert_eq!(text(&cache, &key("a"), &house), None);
        cache.keep(&key("a"), &[], &[("binary", &file)]).unwrap();
        cache.keep(&key("a"), &[], &[("binary", &file)]).unwrap();
        assert_eq!(text(&cache, &key("a"), &house), Some(vec![7; 1000]));
        assert_eq!(text(&cache, &key("b"), &house), None);
        assert_eq!(fs::read_dir(house.join("cache/deep")).unwrap().count(), 1);
        let binary = house.join("cache/deep").join(key("a").name()).join("binary");
        let damage: [&dyn Fn(); 4] = [
            &|| fs::write(&binary, [8; 1000]).unwrap(),
            &|| fs::write(&binary, [7; 999]).unwrap(),
            &|| fs::remove_file(&binary).unwrap(),
            &|| fs::set_permissions(&binary, Permissions::from_mode(0o666)).unwrap(),
        ];
        for damage in damage {
            cache.keep(&key("a"), &[], &[("binary", &file)]).unwrap();
            damage();
            let found = cache.find(&key("a"));
            assert!(matches!(found, Lookup::Damaged(_)), "{found:?}");
            assert_eq!(text(&cache, &key("a"), &house), None);
        }
        // What is open can be read when it has gone.
        cache.keep(&key("a"), &[], &[("binary", &file)]).unwrap();
        let Lookup::Found(mut kept) = cache.find(&key("a")) else { panic!("it is there") };
        fs::remove_dir_all(house.join("cache")).unwrap();
        assert!(kept.write("binary", &house.join("copy")).unwrap());
        assert_eq!(fs::read(house.join("copy")).unwrap(), [7; 1000]);
    }

    #[test]
    fn other_inputs_are_other_entries() {
        let house = tempfile::tempdir().unwrap();
        let house = house.path().canonicalize().unwrap();
        let (cache, file) = cache(&house);
        let weights = house.join("weights");
        fs::write(&weights, "1").unwrap();
        cache.keep(&key("a"), std::slice::from_ref(&weights), &[("binary", &file)]).unwrap();
        assert!(text(&cache, &key("a"), &house).is_some());
        fs::write(&weights, "2").unwrap();
        assert_eq!(text(&cache, &key("a"), &house), None);
        fs::remove_file(&weights).unwrap();
        assert_eq!(text(&cache, &key("a"), &house), None);
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let house = tempfile::tempdir().unwrap();
        let house = house.path().canonicalize().unwrap();
        let (cache, file) = cache(&house);
        let cache = cache.with_limit(2500);
        let names = ["a", "b", "c"];
        for (at, name) in names.iter().enumerate() {
            cache.keep(&key(name), &[], &[("binary", &file)]).unwrap();
            let entry = house.join("cache/deep").join(key(name).name()).join("entry.json");
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 + at as u64);
            fs::File::open(&entry).unwrap().set_modified(time).unwrap();
            if at == 1 {
                // It was used, and is not the oldest any more.
                assert!(text(&cache, &key("a"), &house).is_some());
            }
        }
        let found = names.map(|name| text(&cache, &key(name), &house).is_some());
        assert_eq!(found, [true, false, true]);
        // What is larger than all is not kept.
        cache.clone().with_limit(999).keep(&key("d"), &[], &[("binary", &file)]).unwrap();
        assert_eq!(text(&cache, &key("d"), &house), None);
    }

    #[test]
    fn a_folder_that_others_can_write_is_no_cache() {
        let house = tempfile::tempdir().unwrap();
        let house = house.path().canonicalize().unwrap();
        let (_, _) = cache(&house);
        let folder = house.join("cache/deep");
        for (path, mode) in [(&folder, 0o707), (&house, 0o777)] {
            let before = fs::metadata(path).unwrap().permissions();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            let error = Cache::open(&folder).unwrap_err().to_string();
            fs::set_permissions(path, before).unwrap();
            assert!(error.contains("everybody can write to"), "{error}");
        }
        assert!(Cache::open(&folder).is_ok());
        let error = Cache::open(&house.join("made")).unwrap_err().to_string();
        assert!(error.contains("cannot be used"), "{error}");
    }
}
