//! Edits one of the registry's files. What it does not change stays as it was written, comments included.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use semver::Version;
use toml_edit::{DocumentMut, InlineTable, Item, Table, Value};

use super::{Config, ConfigError, read};
use crate::io::{FileError, read_text, write_atomically};

/// A file of the registry while it is edited.
pub struct Edit {
    path: PathBuf,
    document: DocumentMut,
}

impl Edit {
    /// Reads a file. One that is not there is a new one, with nothing in it but its schema.
    pub fn open(path: &Path) -> Result<Edit, ConfigError> {
        let is_missing =
            fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let text = if is_missing { "schema = 1\n".to_owned() } else { read_text(path)? };
        // A link to a file stays a link.
        Self::parse(&text, &path.canonicalize().unwrap_or_else(|_| path.to_owned()))
    }

    /// Parses the text of the file at `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Edit, ConfigError> {
        read::text(text, path)?;
        let document = text.parse().expect("both readers of TOML read the same texts");
        Ok(Edit { path: path.to_owned(), document })
    }

    /// The text as it is now.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Enables or disables a pass, by its full name.
    pub fn set_enabled(&mut self, pass: &str, enabled: bool) {
        let passes = table(self.document.as_item_mut(), "passes", Header::Hidden);
        set(table(passes, pass, Header::Shown), "enabled", enabled);
    }

    /// Fixes the file of a plugin.
    pub fn pin(&mut self, plugin: &str, version: &Version, sha256: &str) {
        let plugins = table(self.document.as_item_mut(), "plugins", Header::Hidden);
        let pins = table(plugins, "pin", Header::Hidden);
        let pin = table(pins, plugin, Header::Shown);
        set(pin, "version", format!("={version}"));
        set(pin, "sha256", sha256);
    }

    /// Writes the file, and gives what it says now.
    pub fn save(self) -> Result<Config, ConfigError> {
        let text = self.text();
        let config = read::text(&text, &self.path)?;
        let failed = |cause| FileError::Write { path: self.path.clone(), cause };
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        write_atomically(&self.path, |out| out.write_all(text.as_bytes()).map_err(failed))?;
        Ok(config)
    }
}

/// Whether a table that is made has a line of its own.
#[derive(PartialEq)]
enum Header {
    Shown,
    Hidden,
}

/// The table under `key`, made when there is none, in the manner of the table around it.
fn table<'i>(parent: &'i mut Item, key: &str, header: Header) -> &'i mut Item {
    let (is_inline, is_dotted) =
        (parent.is_inline_table(), parent.as_table().is_some_and(Table::is_dotted));
    let parent = parent.as_table_like_mut().expect("the file was read, so this is a table");
    parent.entry(key).or_insert_with(|| match is_inline {
        true => Item::Value(Value::InlineTable(InlineTable::new())),
        false => {
            let mut table = Table::new();
            table.set_implicit(header == Header::Hidden);
            table.set_dotted(is_dotted);
            Item::Table(table)
        }
    })
}

/// Sets a value, and keeps the comment behind the one that was there.
fn set(table: &mut Item, key: &str, value: impl Into<Value>) {
    let table = table.as_table_like_mut().expect("the file was read, so this is a table");
    let mut value: Value = value.into();
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Edit;

    /// The text of a file after `acme.B` was disabled and `acme.npu` pinned.
    fn edited(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.toml");
        fs::write(&path, text).unwrap();
        let mut edit = Edit::open(&path).unwrap();
        edit.set_enabled("acme.B", false);
        edit.pin("acme.npu", &"1.2.0".parse().unwrap(), &"ab".repeat(32));
        let config = edit.save().unwrap();
        assert!(!config.passes["acme.B"].enabled.as_ref().unwrap().value);
        assert_eq!(config.pins["acme.npu"].version.as_ref().unwrap().value.to_string(), "=1.2.0");
        fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn values_change_where_they_stand() {
        let text = edited(
            "schema = 1 # of the file\n\n# why\n[passes.\"acme.B\"]\nprovider   = \"x\"\n\
             enabled = true   # until 2.0\n\n[plugins.pin.\"acme.npu\"]\nversion = \"^1\" # old\n",
        );
        assert!(text.contains("schema = 1 # of the file\n\n# why\n"), "{text}");
        assert!(text.contains("provider   = \"x\"\nenabled = false   # until 2.0\n"), "{text}");
        assert!(text.contains("version = \"=1.2.0\" # old\nsha256 = \"abab"), "{text}");
    }

    #[test]
    fn tables_are_made_in_the_manner_of_the_file() {
        let text = edited("schema = 1\n");
        assert!(text.contains("\n\n[passes.\"acme.B\"]\nenabled = false\n"), "{text}");
        assert!(!text.contains("[passes]") && !text.contains("[plugins]"), "{text}");
        let text = edited("schema = 1\npasses = { \"acme.A\" = { enabled = true } }\n");
        assert!(text.contains("\"acme.B\" = { enabled = false } }\n"), "{text}");
        let text = edited("schema = 1\npasses.\"acme.A\".enabled = true\n");
        assert!(text.contains("\npasses.\"acme.B\".enabled = false\n"), "{text}");
        let text = edited(
            "schema = 1\n[passes]\n\"acme.A\".enabled = true\n[[plugins.dir]]\npath = \"x\"",
        );
        assert!(text.contains("path = \"x\""), "{text}");
    }

    #[test]
    fn a_broken_file_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.toml");
        fs::write(&path, "schema = 1\n[passes\n").unwrap();
        assert!(Edit::open(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "schema = 1\n[passes\n");
    }
}
