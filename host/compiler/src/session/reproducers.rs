//! Modules with which a pass is seen to fail again. Those for which nobody named a place lie among the temporary files, and
//! old ones go when a new one comes.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

use super::ReproducerPlace;
use crate::io::{FileError, InputFiles, Outputs};
use crate::ir::Module;
use crate::passes::{Reproducer, Snapshot};
use crate::text::{TextForm, write_module_below};

/// How many there are at most.
const MOST: usize = 10;

/// Weights of so many bytes are written only where a user asked for them.
const LARGE_WEIGHTS: usize = 64 << 20;

/// Writes the module before a pass that failed, below what says how to run it; gives where, if anywhere. Among the temporary
/// files there is none with large weights.
pub fn write_reproducer(
    reproducer: &Reproducer,
    failed: &Snapshot,
    place: &ReproducerPlace,
    inputs: &InputFiles,
) -> Result<Option<PathBuf>, FileError> {
    let path = match place {
        ReproducerPlace::Nowhere => return Ok(None),
        ReproducerPlace::Temporary if bytes_of(&failed.module) > LARGE_WEIGHTS => return Ok(None),
        ReproducerPlace::Temporary => temporary(&failed.pass),
        ReproducerPlace::File(path) => path.clone(),
    };
    let outputs = Outputs::sparing(inputs.clone());
    let form = TextForm::IN_FILES.with_sources();
    write_module_below(&reproducer.to_comments(), &failed.module, &path, form, outputs)?;
    Ok(Some(path))
}

/// Bytes of all constants.
fn bytes_of(module: &Module) -> usize {
    let functions = module.iter().map(|(_, function)| function);
    functions.flat_map(|function| function.constants()).map(|constant| constant.data.len()).sum()
}

/// A place for one of a pass.
fn temporary(pass: &str) -> PathBuf {
    let folder = env::temp_dir();
    sweep(&folder, MOST - 1);
    folder.join(format!("tenon-{}-{pass}.ir", process::id()))
}

/// Removes all of this user's but the newest.
fn sweep(folder: &Path, left: usize) {
    let mut found: Vec<(SystemTime, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| is_reproducer(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let is_ours =
                metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw();
            Some((metadata.modified().ok()?, entry.path())).filter(|_| is_ours)
        })
        .collect();
    found.sort();
    let old = found.len().saturating_sub(left);
    for (_, path) in &found[..old] {
        // What cannot be removed stays.
        let _ = fs::remove_file(path);
        let _ = fs::remove_file(path.with_extension("safetensors"));
    }
}

/// Whether a file is called as `place` calls one: `tenon-123-acme.Fuse.ir`.
fn is_reproducer(name: &str) -> bool {
    let inside = name.strip_prefix("tenon-").and_then(|name| name.strip_suffix(".ir"));
    let number = inside.and_then(|inside| inside.split_once('-')).map(|(number, _)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::sweep;

    #[test]
    fn the_newest_stay() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            ["tenon-1-a.A.ir", "tenon-22-a.A.ir", "tenon-3-b.ir", "tenon-x-b.ir", "mine.ir"];
        for (age, name) in (1..).zip(names) {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        File::create(folder.path().join("tenon-22-a.A.safetensors")).unwrap();
        sweep(folder.path(), 1);
        let entries = fs::read_dir(folder.path()).unwrap().flatten();
        let mut left: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["mine.ir", "tenon-1-a.A.ir", "tenon-x-b.ir"]);
    }
}
