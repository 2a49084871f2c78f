//! How the names are spelled that a manifest gives: as a pipeline's text can write them, and no longer than a line of
//! a table can hold.

use super::Manifest;
use crate::io::quoted;

/// Characters of the longest name.
const LONGEST: usize = 128;

/// What names are made of, and numbers.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+')
}

/// The first name of a manifest that is no name.
pub(super) fn misspelled(manifest: &Manifest) -> Option<String> {
    let Manifest { plugin, passes, generators, instruments, operators, rules, interpreter: _ } =
        manifest;
    let version = plugin.version.to_string();
    let own = [("the plugin's id", plugin.id.as_str()), ("the plugin's version", version.as_str())];
    let of_passes = passes.iter().flat_map(|pass| {
        let lists = [
            ("an alias", &pass.aliases),
            ("an entry of `after`", &pass.after),
            ("an entry of `before`", &pass.before),
            ("an entry of `establishes`", &pass.establishes),
            ("an entry of `destroys`", &pass.destroys),
            ("an entry of `preserves`", &pass.preserves),
            ("an entry of `asks`", &pass.asks),
        ];
        let listed = lists
            .into_iter()
            .flat_map(|(what, names)| names.iter().map(move |name| (what, name.as_str())));
        let required = pass.requires.iter().map(|it| ("a required pass", it.name.as_str()));
        let options = pass.options.iter().map(|it| ("an option", it.name.as_str()));
        let phases = [("`phase`", &pass.phase), ("`from`", &pass.from), ("`until`", &pass.until)];
        let phases = phases.into_iter().filter(|(_, name)| !name.is_empty());
        [("a pass", pass.name.as_str())]
            .into_iter()
            .chain(listed)
            .chain(required)
            .chain(options)
            .chain(phases.map(|(what, name)| (what, name.as_str())))
    });
    let generators = generators.iter().map(|it| ("a code generator", it.name.as_str()));
    let instruments = instruments.iter().map(|it| ("an instrument", it.name.as_str()));
    let of_operators = operators.iter().flat_map(|op| {
        let aliases = op.aliases().iter().map(|name| ("an alias", name.as_str()));
        [("an operator", op.name())].into_iter().chain(aliases)
    });
    let of_rules = rules.iter().flat_map(|rule| {
        let keys = rule.key.split("::").map(|name| ("a rule's key", name));
        std::iter::once(("a rule's facet", &*rule.facet)).chain(keys)
    });
    let others = generators.chain(instruments).chain(of_operators).chain(of_rules);
    misspelled_among(own.into_iter().chain(of_passes).chain(others))
}

/// The first of these that is no name, each behind what it is the name of.
pub(super) fn misspelled_among<'n>(
    mut names: impl Iterator<Item = (&'static str, &'n str)>,
) -> Option<String> {
    names.find_map(|(what, name)| {
        let wrong = wrong(name)?;
        Some(format!("{what} is called {}{wrong}", quoted(name)))
    })
}

/// What is wrong with a name, as it follows the name.
fn wrong(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some(", and a name has a letter at least".to_owned());
    }
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-' | b'+');
    if name.len() <= LONGEST && name.bytes().all(is_plain) {
        return None;
    }
    if let Some(other) = name.chars().find(|&c| !is_name_char(c)) {
        let other = quoted(&other.to_string());
        return Some(format!(
            " with {other} in it: a name has letters, digits, `_`, `.`, `-` and `+`"
        ));
    }
    let length = name.chars().nth(LONGEST).map(|_| name.chars().count())?;
    Some(format!(": it has {length} characters, and a name has {LONGEST} at most"))
}

#[cfg(test)]
mod tests {
    use super::wrong;

    #[test]
    fn a_name_is_what_a_pipeline_can_write() {
        assert_eq!(wrong("acme.Fuse_2-x+y"), None);
        assert_eq!(wrong("größe"), None);
        for name in ["", "a b", "a,b", "a{x=1}", "a(", "\u{202e}a", "a\nb", "a\u{1b}[31m"] {
            assert!(wrong(name).is_some(), "{name:?}");
        }
        assert_eq!(wrong(&"x".repeat(128)), None);
        let said = wrong(&"x".repeat(65_536)).expect("it is too long");
        assert_eq!(said, ": it has 65536 characters, and a name has 128 at most");
    }
}
