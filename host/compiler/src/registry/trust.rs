//! Who may write a library, and so decide what runs here.
//!
//! The rules are those that OpenSSH's `StrictModes` has for keys, applied to a file and to every folder above
//! it: each belongs to somebody who is trusted, and nobody else may write to it. A folder that everybody may
//! write to is fine when it is sticky, as `/tmp` is: there nobody can replace what is another's. A group that
//! may write is fine when only trusted users are in it, as with a `umask` of 002 and a group for each user.
//!
//! Trusted are the superuser, the user, and the owner of the registry's file that names the folder: that file
//! says which libraries are opened, so who wrote it has decided already.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Set;

/// What happens with a library that others can write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustPolicy {
    /// It is used like any other.
    Allow,
    /// It is used, and said so.
    Warn,
    /// It is not used.
    #[default]
    Deny,
}

const SUPERUSER: u32 = 0;
const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;
const WRITABLE_BY_GROUP: u32 = 0o020;

/// What was found out of files, folders and groups.
#[derive(Default)]
pub(super) struct Trust {
    /// Why a folder and those above it are not to be trusted, by its path and the trusted users.
    folders: HashMap<(PathBuf, Vec<u32>), Option<String>>,
}

/// The users that are trusted with what a registry's file names.
pub(super) fn trusted_users(registry: &Path) -> Vec<u32> {
    let mut users = vec![SUPERUSER, rustix::process::geteuid().as_raw()];
    users.extend(fs::metadata(registry).map(|metadata| metadata.uid()));
    users.sort_unstable();
    users.dedup();
    users
}

/// Who else than the superuser and the user can write a file or folder; `None` when nobody can.
pub(crate) fn writers_of_path(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Trust::default().writers(&path, &[SUPERUSER, rustix::process::geteuid().as_raw()])
}

impl Trust {
    /// What a registry says. A file that others can write decides nothing.
    pub(super) fn policy(&mut self, said: Option<&Set<TrustPolicy>>) -> TrustPolicy {
        let Some(Set { value, place }) = said else { return TrustPolicy::default() };
        let file = Path::new(place.file());
        match self.writers(file, &trusted_users(file)) {
            None => *value,
            Some(_) => TrustPolicy::default(),
        }
    }

    /// Who else can write the file or folder at a canonical path; `None` when nobody can.
    pub(super) fn writers(&mut self, path: &Path, users: &[u32]) -> Option<String> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            // What cannot be looked at cannot be opened, and that has a message of its own.
            Err(_) => return None,
        };
        writers_of(path, &metadata, users).or_else(|| match path.parent() {
            Some(folder) => self.writers_of_folders(folder, users),
            None => None,
        })
    }

    /// The same of a folder and those above it.
    fn writers_of_folders(&mut self, folder: &Path, users: &[u32]) -> Option<String> {
        let key = (folder.to_owned(), users.to_owned());
        if let Some(known) = self.folders.get(&key) {
            return known.clone();
        }
        let mut above = folder.ancestors();
        let found = above.find_map(|folder| writers_of(folder, &fs::metadata(folder).ok()?, users));
        self.folders.insert(key, found.clone());
        found
    }
}

/// Who else than the trusted users can write one file or folder.
pub(super) fn writers_of(path: &Path, metadata: &Metadata, users: &[u32]) -> Option<String> {
    let (shown, mode) = (path.display(), metadata.mode());
    let is_sticky = metadata.is_dir() && mode & STICKY != 0;
    if !users.contains(&metadata.uid()) {
        return Some(format!("`{shown}` belongs to user {}", metadata.uid()));
    }
    if mode & WRITABLE_BY_ALL != 0 && !is_sticky {
        return Some(format!("everybody can write to `{shown}`"));
    }
    if mode & WRITABLE_BY_GROUP != 0 && !is_sticky && !has_only(metadata.gid(), users) {
        return Some(format!("group {} can write to `{shown}`", metadata.gid()));
    }
    None
}

/// Whether a group is known to have no members but these users.
fn has_only(group: u32, users: &[u32]) -> bool {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    is_group_of(group, users, &read("/etc/passwd"), &read("/etc/group"))
}

/// The same by the texts of `/etc/passwd` and `/etc/group`. A group that they do not have is kept elsewhere, so nobody knows.
fn is_group_of(group: u32, users: &[u32], passwd: &str, groups: &str) -> bool {
    let number = |field: Option<&&str>| field.and_then(|field| field.parse::<u32>().ok());
    let accounts: Vec<Vec<&str>> = passwd.lines().map(|line| line.split(':').collect()).collect();
    let is_trusted =
        |account: &Vec<&str>| number(account.get(2)).is_some_and(|user| users.contains(&user));
    let mut lines = groups.lines().map(|line| line.split(':').collect::<Vec<&str>>());
    let Some(line) = lines.find(|line| number(line.get(2)) == Some(group)) else { return false };
    let members = line.get(3).unwrap_or(&"").split(',').filter(|name| !name.is_empty());
    let mut by_name = members.map(|name| accounts.iter().find(|account| account[0] == name));
    let mut by_account = accounts.iter().filter(|account| number(account.get(3)) == Some(group));
    by_name.all(|account| account.is_some_and(is_trusted)) && by_account.all(is_trusted)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::{Trust, is_group_of, trusted_users};

    #[test]
    fn a_file_is_as_safe_as_the_folders_above_it() {
        let house = tempfile::tempdir().unwrap();
        let house = house.path().canonicalize().unwrap();
        let inner = house.join("inner");
        fs::create_dir(&inner).unwrap();
        let file = inner.join("lib.so");
        fs::write(&file, "").unwrap();
        let users = trusted_users(&file);
        let writers = |mode_of: &Path, mode: u32| {
            let before = fs::metadata(mode_of).unwrap().permissions();
            fs::set_permissions(mode_of, Permissions::from_mode(mode)).unwrap();
            let found = Trust::default().writers(&file, &users);
            fs::set_permissions(mode_of, before).unwrap();
            found
        };
        assert_eq!(writers(&file, 0o755), None, "nobody else can write");
        let all = |path: &Path| Some(format!("everybody can write to `{}`", path.display()));
        assert_eq!(writers(&file, 0o646), all(&file));
        assert_eq!(writers(&file, 0o1646), all(&file), "a sticky file is no folder");
        assert_eq!(writers(&inner, 0o707), all(&inner));
        assert_eq!(writers(&house, 0o707), all(&house));
        assert_eq!(writers(&house, 0o1777), None, "nobody can replace what is another's");
        let owner = fs::metadata(&file).unwrap().uid();
        let found = Trust::default().writers(&file, &[owner + 1]);
        assert_eq!(found, Some(format!("`{}` belongs to user {owner}", file.display())));
    }

    #[test]
    fn a_group_is_safe_when_nobody_else_is_in_it() {
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:\nbob:x:1001:1001::/:\n\
                      eve:x:1002:50::/:\n";
        let groups = "root:x:0:\nann:x:1000:\nteam:x:40:ann,bob\nstaff:x:50:\nodd:x:60:ann\n\
                      gone:x:70:nobody-knows\n";
        let is_safe = |group| is_group_of(group, &[0, 1000], passwd, groups);
        assert!(is_safe(1000) && is_safe(60) && is_safe(0));
        assert!(!is_safe(40), "bob is in it");
        assert!(!is_safe(50), "it is the group of eve's account");
        assert!(!is_safe(70), "its member has no account here");
        assert!(!is_safe(80), "it is kept elsewhere");
    }
}
