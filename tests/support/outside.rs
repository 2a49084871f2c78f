//! Plugins of others, built as their authors build them: with cargo, in workspaces of their own.
//!
//! All are built in one folder by one profile, so that what they depend on, the API among it, is built once. In such a
//! folder two libraries of one name take each other's place, so each package has a name of its own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

/// Where everything is built. It is kept between runs.
pub(crate) fn workshop() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("outside")
}

/// Where libraries and programs are then.
pub(crate) fn built() -> PathBuf {
    workshop().join("target/debug")
}

/// Holds off other tests, which run in processes of their own, while something is built.
pub(crate) fn locked<T>(work: impl FnOnce() -> T) -> T {
    fs::create_dir_all(workshop()).expect("a folder");
    let file = File::create(workshop().join("lock")).expect("a lock");
    file.lock().expect("the lock is free some day");
    work()
}

/// Cargo, which fetches nothing.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.env("CARGO_TARGET_DIR", workshop().join("target")).env("CARGO_NET_OFFLINE", "true");
    // Nobody debugs it, whatever the workspaces' own profiles say.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
    cargo
}
