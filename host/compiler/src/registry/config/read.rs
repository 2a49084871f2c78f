//! Reads one file. All that is wrong with it is reported, each thing with its place and the nearest name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use semver::VersionReq;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{
    Config, ConfigError, DirConfig, Enable, PassConfig, PinConfig, PipelineConfig, PipelineContent,
    Place, Set, TrustConfig,
};
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::io::{FileError, read_text};
use crate::ir::PHASES;
use crate::registry::{OptionValue, TrustPolicy};
use crate::suggest::nearest;

/// Version of the file's layout.
const SCHEMA: &str = "1";

/// The files' own keys, in the order of their documentation.
const KEYS: &[&str] =
    &["schema", "trust", "plugins", "interpreters", "passes", "rules", "phases", "pipelines"];

pub(super) fn file(path: &Path) -> Result<Config, ConfigError> {
    let text = read_text(path)?;
    let path =
        path.canonicalize().map_err(|cause| FileError::Open { path: path.to_owned(), cause })?;
    Ok(self::text(&text, &path)?)
}

pub(super) fn text(text: &str, path: &Path) -> Result<Config, Diagnostics> {
    let source = Source::new(path.display().to_string(), text);
    let mut reader = Reader { source, lines: line_starts(text), errors: Vec::new() };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let place = reader.place(error.span().unwrap_or(0..0));
        reader.errors.push(place.error(error.message(), ""));
    }
    // What is left of a text that does not parse would only give errors that follow from the first.
    if reader.errors.is_empty() {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let config = reader.config(root.get_ref(), folder);
        if reader.errors.is_empty() {
            return Ok(Config { files: vec![path.to_owned()], ..config });
        }
    }
    // Tables are read in the order of their keys, and errors are told in the order of the text.
    reader.errors.sort_by_key(|error| error.labels.first().map(|label| label.span.start));
    Err(Diagnostics(reader.errors))
}

/// The bytes at which lines start.
fn line_starts(text: &str) -> Vec<usize> {
    let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    [0].into_iter().chain(newlines.map(|(at, _)| at + 1)).collect()
}

struct Reader {
    source: Arc<Source>,
    lines: Vec<usize>,
    errors: Vec<Diagnostic>,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Reader {
    fn place(&self, span: Range<usize>) -> Place {
        let line = self.lines.partition_point(|&start| start <= span.start);
        Place::new(&self.source, span, line)
    }

    fn config(&mut self, root: &DeTable<'_>, folder: &Path) -> Config {
        let mut config = Config::default();
        self.schema(root);
        for (key, value) in root {
            match key.get_ref().as_ref() {
                "schema" => {}
                "trust" => self.trust(value, &mut config.trust),
                "plugins" => self.plugins(value, folder, &mut config),
                "interpreters" => {
                    let read = |reader: &mut Self, name: &Spanned<String>, value: &Value<'_>| {
                        let said = reader.string(value, name.get_ref())?;
                        // A name is looked for in PATH; a path is relative to this file.
                        let place = said.place;
                        let value = match said.value.contains('/') {
                            true => folder.join(said.value).display().to_string(),
                            false => said.value,
                        };
                        Some(Set { value, place })
                    };
                    config.interpreters = self.entries(value, "interpreters", read);
                }
                "passes" => config.passes = self.entries(value, "passes", Self::pass),
                "rules" => config.rules = self.entries(value, "rules", Self::rule),
                "phases" => config.phases = self.entries(value, "phases", Self::phase),
                "pipelines" => config.pipelines = self.entries(value, "pipelines", Self::pipeline),
                _ => self.unknown_key(key, "a registry", KEYS),
            }
        }
        config
    }

    fn schema(&mut self, root: &DeTable<'_>) {
        let Some(schema) = root.get("schema") else {
            let start = self.place(0..0).error("the registry has no `schema`", "");
            return self.errors.push(start.help("begin the file with `schema = 1`"));
        };
        let number = schema.get_ref().as_integer().map(|integer| integer.as_str());
        if number != Some(SCHEMA) {
            let written = self.place(schema.span());
            let message = format!("its schema is {}, this Tenon reads {SCHEMA}", written.text());
            let help = "a newer schema needs a newer Tenon; docs/registry.md describes schema 1";
            self.errors.push(written.error(message, "").help(help));
        }
    }

    fn trust(&mut self, value: &Value<'_>, trust: &mut TrustConfig) {
        for (key, value) in self.table(value, "trust") {
            match key.get_ref().as_ref() {
                "policy" => trust.policy = self.policy(value),
                "time_limit" => trust.time_limit = self.count(value, "time_limit", "seconds"),
                "memory_limit" => trust.memory_limit = self.count(value, "memory_limit", "MiB"),
                _ => {
                    self.unknown_key(key, "`trust`", &["policy", "time_limit", "memory_limit"]);
                }
            }
        }
    }

    fn policy(&mut self, value: &Value<'_>) -> Option<Set<TrustPolicy>> {
        let Set { value: word, place } = self.string(value, "policy")?;
        let policy = match word.as_str() {
            "allow" => TrustPolicy::Allow,
            "warn" => TrustPolicy::Warn,
            "deny" => TrustPolicy::Deny,
            other => {
                let message = format!("there is no policy `{other}`");
                self.slip(value.span(), message, other, &["allow", "warn", "deny"]);
                return None;
            }
        };
        Some(Set { value: policy, place })
    }

    fn plugins(&mut self, value: &Value<'_>, folder: &Path, config: &mut Config) {
        for (key, value) in self.table(value, "plugins") {
            match key.get_ref().as_ref() {
                "dir" => {
                    for item in self.array(value, "plugins.dir") {
                        config.dirs.extend(self.dir(item, folder));
                    }
                }
                "pin" => config.pins = self.entries(value, "plugins.pin", Self::pin),
                "isolate" => {
                    let read = |reader: &mut Self, _: &Spanned<String>, value: &Value<'_>| {
                        reader.truth(value, "isolate")
                    };
                    config.isolate = self.entries(value, "plugins.isolate", read);
                }
                _ => self.unknown_key(key, "`plugins`", &["dir", "pin", "isolate"]),
            }
        }
    }

    fn dir(&mut self, item: &Value<'_>, folder: &Path) -> Option<DirConfig> {
        let (mut path, mut enable) = (None, Enable::default());
        for (key, value) in self.table(item, "a directory") {
            match key.get_ref().as_ref() {
                "path" => path = self.string(value, "path"),
                "enable" => {
                    let options = &["all", "named"];
                    match self.string(value, "enable").as_ref().map(|set| set.value.as_str()) {
                        Some("all") => enable = Enable::All,
                        Some("named") | None => {}
                        Some(other) => {
                            let message = format!("a directory enables no `{other}`");
                            self.slip(value.span(), message, other, options);
                        }
                    }
                }
                _ => self.unknown_key(key, "a directory of plugins", &["path", "enable"]),
            }
        }
        match path {
            Some(path) => {
                Some(DirConfig { path: folder.join(path.value), enable, place: path.place })
            }
            None => {
                let place = self.place(item.span());
                self.errors.push(place.error("a directory of plugins has a `path`", ""));
                None
            }
        }
    }

    fn pin(&mut self, _: &Spanned<String>, value: &Value<'_>) -> Option<PinConfig> {
        let mut pin = PinConfig::default();
        for (key, value) in self.table(value, "a pin") {
            match key.get_ref().as_ref() {
                "version" => pin.version = self.version(value),
                "sha256" => pin.sha256 = self.digest(value),
                _ => self.unknown_key(key, "a pin", &["version", "sha256"]),
            }
        }
        Some(pin)
    }

    fn pass(&mut self, name: &Spanned<String>, value: &Value<'_>) -> Option<PassConfig> {
        let mut pass = PassConfig::at(self.place(name.span()));
        for (key, value) in self.table(value, "the settings of a pass") {
            match key.get_ref().as_ref() {
                "enabled" => pass.enabled = self.truth(value, "enabled"),
                "provider" => pass.provider = self.string(value, "provider"),
                "version" => pass.version = self.version(value),
                "sha256" => pass.sha256 = self.digest(value),
                "isolate" => pass.isolate = self.truth(value, "isolate"),
                "time_limit" => pass.time_limit = self.count(value, "time_limit", "seconds"),
                "memory_limit" => pass.memory_limit = self.count(value, "memory_limit", "MiB"),
                "options" => pass.options = self.entries(value, "options", Self::option),
                _ => {
                    let known = &[
                        "enabled",
                        "provider",
                        "version",
                        "sha256",
                        "isolate",
                        "time_limit",
                        "memory_limit",
                        "options",
                    ];
                    self.unknown_key(key, "a pass", known);
                }
            }
        }
        Some(pass)
    }

    fn rule(&mut self, name: &Spanned<String>, value: &Value<'_>) -> Option<Set<String>> {
        if !name
            .get_ref()
            .split_once(':')
            .is_some_and(|(facet, key)| !facet.is_empty() && !key.is_empty())
        {
            let message = format!("`{}` names no rule", name.get_ref());
            let place = self.place(name.span());
            let help = "a rule is named by its facet and its key, as in \"gradient:acme.moments\"";
            self.errors.push(place.error(message, "").help(help));
            return None;
        }
        let mut provider = None;
        for (key, value) in self.table(value, "the settings of a rule") {
            match key.get_ref().as_ref() {
                "provider" => provider = self.string(value, "provider"),
                _ => self.unknown_key(key, "a rule", &["provider"]),
            }
        }
        provider
    }

    fn option(&mut self, name: &Spanned<String>, value: &Value<'_>) -> Option<Set<OptionValue>> {
        let place = self.place(value.span());
        match option_value(value.get_ref()) {
            Some(value) => Some(Set { value, place }),
            None => {
                let message = format!(
                    "option `{}` is a number, a truth value, a text, or a list of these",
                    name.get_ref()
                );
                self.errors.push(place.error(message, ""));
                None
            }
        }
    }

    fn phase(&mut self, name: &Spanned<String>, value: &Value<'_>) -> Option<Vec<Set<String>>> {
        self.is_phase(name.get_ref(), name.span());
        let mut passes = None;
        for (key, value) in self.table(value, "a phase") {
            match key.get_ref().as_ref() {
                "passes" => passes = Some(self.strings(value, "passes")),
                _ => self.unknown_key(key, "a phase", &["passes"]),
            }
        }
        if passes.is_none() {
            let message = format!("phase `{}` has no list `passes`", name.get_ref());
            let place = self.place(name.span());
            self.errors.push(place.error(message, ""));
        }
        passes
    }

    fn pipeline(&mut self, name: &Spanned<String>, value: &Value<'_>) -> Option<PipelineConfig> {
        let (mut phases, mut passes) = (None, None);
        for (key, value) in self.table(value, "a pipeline") {
            match key.get_ref().as_ref() {
                "phases" => {
                    let mut list = Vec::new();
                    for item in self.array(value, "phases") {
                        if let Some(phase) = self.string(item, "phases") {
                            self.is_phase(&phase.value, item.span());
                            list.push(phase);
                        }
                    }
                    phases = Some(list);
                }
                "passes" => passes = Some(self.strings(value, "passes")),
                _ => self.unknown_key(key, "a pipeline", &["phases", "passes"]),
            }
        }
        let place = self.place(name.span());
        let content = match (phases, passes) {
            (Some(phases), None) => PipelineContent::Phases(phases),
            (None, Some(passes)) => PipelineContent::Passes(passes),
            _ => {
                let name = name.get_ref();
                let message =
                    format!("pipeline `{name}` has either `phases` or `passes`, and not both");
                self.errors.push(place.error(message, ""));
                return None;
            }
        };
        Some(PipelineConfig { content, place })
    }

    fn is_phase(&mut self, name: &str, span: Range<usize>) {
        if !PHASES.contains(&name) {
            let message = format!("there is no phase `{name}`");
            self.slip(span, message, name, PHASES);
        }
    }

    /// The values of a table, each read by `read`.
    fn entries<T>(
        &mut self,
        value: &Value<'_>,
        what: &str,
        mut read: impl FnMut(&mut Self, &Spanned<String>, &Value<'_>) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let mut entries = BTreeMap::new();
        for (key, value) in self.table(value, what) {
            let name = Spanned::new(key.span(), key.get_ref().to_string());
            if let Some(entry) = read(self, &name, value) {
                entries.insert(name.into_inner(), entry);
            }
        }
        entries
    }

    fn table<'v, 't>(&mut self, value: &'v Value<'t>, what: &str) -> Entries<'v, 't> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.expected(value, what, "a table");
        }
        table.into_iter().flatten()
    }

    fn array<'v, 't>(&mut self, value: &'v Value<'t>, what: &str) -> &'v [Value<'t>] {
        match value.get_ref() {
            DeValue::Array(items) => items,
            _ => {
                self.expected(value, what, "a list");
                &[]
            }
        }
    }

    fn strings(&mut self, value: &Value<'_>, what: &str) -> Vec<Set<String>> {
        let items = self.array(value, what);
        items.iter().filter_map(|item| self.string(item, what)).collect()
    }

    fn string(&mut self, value: &Value<'_>, what: &str) -> Option<Set<String>> {
        let text = value.get_ref().as_str().map(str::to_owned);
        self.set(value, text, what, "a text in quotes")
    }

    fn truth(&mut self, value: &Value<'_>, what: &str) -> Option<Set<bool>> {
        self.set(value, value.get_ref().as_bool(), what, "`true` or `false`")
    }

    /// A number of at least one.
    fn count(&mut self, value: &Value<'_>, what: &str, unit: &str) -> Option<Set<u64>> {
        let integer = value.get_ref().as_integer();
        let count = integer
            .and_then(|integer| u64::from_str_radix(integer.as_str(), integer.radix()).ok())
            .filter(|&count| count > 0);
        self.set(value, count, what, &format!("a number of {unit}, 1 or more"))
    }

    fn version(&mut self, value: &Value<'_>) -> Option<Set<VersionReq>> {
        let text = self.string(value, "version")?;
        match VersionReq::from_str(&text.value) {
            Ok(range) => Some(Set { value: range, place: text.place }),
            Err(error) => {
                let message = format!("`{}` is no range of versions: {error}", text.value);
                let help = "write it as `^1.2`, `~1.2.3`, `=1.2.3` or `>=1.2, <1.5`";
                self.errors.push(text.place.error(message, "").help(help));
                None
            }
        }
    }

    fn digest(&mut self, value: &Value<'_>) -> Option<Set<String>> {
        let text = self.string(value, "sha256")?;
        if text.value.len() == 64 && text.value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(Set { value: text.value.to_ascii_lowercase(), place: text.place });
        }
        let message = "a SHA-256 digest has 64 hexadecimal digits";
        let help = "`sha256sum FILE` prints it, and `tenon plugins pin` writes it here";
        self.errors.push(text.place.error(message, "").help(help));
        None
    }

    fn set<T>(
        &mut self,
        value: &Value<'_>,
        read: Option<T>,
        what: &str,
        expected: &str,
    ) -> Option<Set<T>> {
        match read {
            Some(read) => Some(Set { value: read, place: self.place(value.span()) }),
            None => {
                self.expected(value, what, expected);
                None
            }
        }
    }

    fn expected(&mut self, value: &Value<'_>, what: &str, expected: &str) {
        let place = self.place(value.span());
        self.errors.push(place.error(format!("`{what}` is {expected}"), ""));
    }

    fn unknown_key(&mut self, key: &Spanned<impl AsRef<str>>, what: &str, known: &[&str]) {
        let name = key.get_ref().as_ref();
        self.slip(key.span(), format!("{what} has no `{name}`"), name, known);
    }

    /// An error about a word that is none of those there are.
    fn slip(&mut self, span: Range<usize>, message: String, word: &str, known: &[&str]) {
        let help = match nearest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        let place = self.place(span);
        self.errors.push(place.error(message, "").help(help));
    }
}

/// The entries of a table, none where a value is none.
type Entries<'v, 't> = std::iter::Flatten<std::option::IntoIter<&'v DeTable<'t>>>;

/// A number, a truth value, a text, or a list of these.
fn option_value(value: &DeValue<'_>) -> Option<OptionValue> {
    match value {
        DeValue::Array(items) => {
            let items = items.iter().map(|item| scalar(item.get_ref()));
            Some(OptionValue::List(items.collect::<Option<_>>()?))
        }
        other => scalar(other),
    }
}

fn scalar(value: &DeValue<'_>) -> Option<OptionValue> {
    match value {
        DeValue::Integer(value) => {
            i64::from_str_radix(value.as_str(), value.radix()).ok().map(OptionValue::Int)
        }
        DeValue::Float(value) => value.as_str().parse().ok().map(OptionValue::Float),
        DeValue::Boolean(value) => Some(OptionValue::Bool(*value)),
        DeValue::String(value) => Some(OptionValue::Str(value.to_string())),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
