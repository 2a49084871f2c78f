//! Finds the plugins that a configuration leads to, by manifest alone.

use std::collections::{HashMap, HashSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::ManifestError::{NoManifest, NotALibrary};
use super::trust::{Trust, trusted_users};
use super::{
    Config, Enable, Found, Manifest, ManifestError, PluginEntry, PluginState, Set, Standing,
    TrustPolicy,
};
use super::{script, sidecar};
use crate::io::FileError;

impl Found {
    /// Finds the plugins that a configuration leads to.
    pub(super) fn of(config: Config) -> Found {
        let mut plugins = Vec::new();
        let mut unusable = Vec::new();
        let mut missing = Vec::new();
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let mut trust = Trust::default();
        let policy = trust.policy(config.trust.policy.as_ref());
        for dir in &config.dirs {
            let mut paths = match files(&dir.path) {
                Ok(paths) => paths,
                Err(cause) if cause.kind() == ErrorKind::NotFound => {
                    missing.push(dir.clone());
                    continue;
                }
                Err(cause) => {
                    let error = FileError::Open { path: dir.path.clone(), cause };
                    unusable.push((dir.path.clone(), error.into()));
                    continue;
                }
            };
            paths.retain(|path| seen.insert(path.clone()));
            // A manifest takes microseconds to read, and one of many operators a tenth of a millisecond: threads are for dozens of
            // them, and no thread should be left with many.
            let manifests: Vec<Result<Manifest, ManifestError>> =
                paths.par_iter().with_min_len(8).map(|path| Manifest::read_notes(path)).collect();
            let registry = Path::new(dir.place.file());
            let users = trusted_users(registry);
            // What everybody can name is as unsafe as what everybody can write.
            let of_registry = trust.writers(registry, &users);
            let mut writers = |path: &Path| match policy {
                TrustPolicy::Allow => None,
                _ => of_registry.clone().or_else(|| trust.writers(path, &users)),
            };
            for (path, manifest) in paths.into_iter().zip(manifests) {
                let mut untrusted = writers(&path);
                let manifest = match (manifest, sidecar::path_of(&path)) {
                    // Who may write that file is known before a byte of it is read.
                    (Err(NoManifest { .. } | NotALibrary { .. }), Some(beside)) => {
                        let beside = beside.canonicalize().unwrap_or(beside);
                        untrusted = untrusted.or_else(|| writers(&beside));
                        match &untrusted {
                            Some(reason) if policy == TrustPolicy::Deny => {
                                let (path, reason) = (path.clone(), reason.clone());
                                Err(ManifestError::Untrusted { path, reason, manifest: None })
                            }
                            _ => Manifest::read(&path),
                        }
                    }
                    (manifest, _) => manifest,
                };
                if let Ok(manifest) = &manifest
                    && let Some(only) = config.only_file.get(&manifest.plugin.id)
                    && *only != path
                {
                    continue;
                }
                match (manifest, untrusted) {
                    (Ok(manifest), Some(reason)) if policy == TrustPolicy::Deny => {
                        let manifest = Some(Box::new(manifest));
                        let error =
                            ManifestError::Untrusted { path: path.clone(), reason, manifest };
                        unusable.push((path, error));
                    }
                    (Ok(manifest), untrusted) => {
                        let standing = Standing::of_plugin(&config, dir.enable, &manifest);
                        let entry = PluginEntry::new(path, manifest, dir.enable, standing);
                        plugins.push(PluginEntry { untrusted, ..entry });
                    }
                    (Err(error), _) => unusable.push((path, error)),
                }
            }
        }
        let own = config.own.iter().filter_map(|folder| files(folder).ok());
        for path in own.flatten().filter(|path| !seen.contains(path)) {
            let Ok(manifest) = Manifest::read_notes(&path) else { continue };
            let is_same = |other: &PluginEntry| other.manifest.plugin.id == manifest.plugin.id;
            if manifest.operators.is_empty() || plugins.iter().any(is_same) {
                continue;
            }
            let writers = match policy {
                TrustPolicy::Allow => None,
                _ => trust.writers(&path, &trusted_users(&path)),
            };
            match (policy, writers) {
                (TrustPolicy::Deny, Some(reason)) => {
                    let manifest = Some(Box::new(manifest));
                    let error = ManifestError::Untrusted { path: path.clone(), reason, manifest };
                    unusable.push((path, error));
                }
                (_, untrusted) => {
                    let entry = PluginEntry::new(path, manifest, Enable::All, Standing::All);
                    plugins.push(PluginEntry { is_own: true, untrusted, ..entry });
                }
            }
        }
        settle_states(&config, &mut plugins);
        Found { unusable, missing, ..Found::with(config, plugins) }
    }
}

/// Finds the plugins that pins exclude, and those of which there is more than one file. A file of less standing is no
/// other file of one that has more.
fn settle_states(config: &Config, plugins: &mut [PluginEntry]) {
    // The greatest standing of a plugin's files, and how many have it.
    let mut files: HashMap<String, (Standing, usize)> = HashMap::new();
    for entry in plugins.iter_mut() {
        let plugin = &entry.manifest.plugin;
        let pinned = config.pins.get(&plugin.id).and_then(|pin| pin.version.as_ref());
        if let Some(Set { value: range, place }) =
            pinned.filter(|range| !range.value.matches(&plugin.version))
        {
            entry.state = PluginState::PinnedAway(format!("{place} pins version {range}"));
            continue;
        }
        let (greatest, count) = files.entry(plugin.id.clone()).or_insert((Standing::Off, 0));
        if entry.standing > *greatest {
            (*greatest, *count) = (entry.standing, 0);
        }
        *count += (entry.standing == *greatest) as usize;
    }
    for entry in plugins.iter_mut().filter(|entry| entry.state == PluginState::Usable) {
        if files[&entry.manifest.plugin.id] != (entry.standing, 1) {
            entry.state = PluginState::Twice;
        }
    }
}

/// The shared libraries in a directory, and the texts with a manifest, as canonical paths in the order of their names. A link that
/// leads nowhere stands for itself.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = dir.canonicalize()?;
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&dir)? {
        let entry = entry?;
        let path = entry.path();
        let Some(extension) = path.extension() else { continue };
        if extension != "so" && !script::is_one(&path) {
            continue;
        }
        // In a canonical directory only a link's path is not canonical.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        paths.push(if is_link { path.canonicalize().unwrap_or(path) } else { path });
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}
