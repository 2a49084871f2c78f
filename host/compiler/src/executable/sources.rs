//! What kernels came from: for messages, profiles, and as a part of their symbols.

use std::path::Path;

use crate::ir::{Context, Cx, NodeSource, SourcePart};

/// So many bytes of a symbol say what it came from.
const LONGEST: usize = 64;

/// The part of a kernel's symbol that says what it came from: `layer1.conv1.Conv`, `model_ir_12`. Nothing where that is not
/// known. Of several things it is the first.
pub(super) fn symbol_part(cx: &Cx, source: NodeSource) -> Option<String> {
    let (parts, _) = source.parts(cx.terms());
    let text = match *parts.first()? {
        SourcePart::Name { name, scope: "" } => name.to_owned(),
        // The scope says where; the node's own name, which one of several.
        SourcePart::Name { name, scope } => format!("{scope}/{name}"),
        SourcePart::Place(place) => {
            let text = cx.place_text(place)?;
            Path::new(&text).file_name()?.to_str()?.replace('.', "_")
        }
    };
    let mut plain = String::new();
    for c in text.chars().take(4 * LONGEST) {
        match c {
            '/' | '.' | ':' if plain.is_empty() || plain.ends_with('.') => {}
            '/' | '.' | ':' => plain.push('.'),
            c if c.is_ascii_alphanumeric() => plain.push(c),
            _ => plain.push('_'),
        }
    }
    // The end of a long name says more than its beginning.
    let kept = &plain[plain.len().saturating_sub(LONGEST)..];
    let kept = kept.trim_matches('.');
    (!kept.is_empty()).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_take_what_every_tool_takes() {
        let cx = Cx::new();
        let part = |name: &str, scope: &str| symbol_part(&cx, NodeSource::named(&cx, name, scope));
        assert_eq!(part("/layer1/conv1/Conv", "").as_deref(), Some("layer1.conv1.Conv"));
        assert_eq!(part("node_conv", "layer1.0").as_deref(), Some("layer1.0.node_conv"));
        assert_eq!(part("gpu:0//a b-c\u{e9}", "").as_deref(), Some("gpu.0.a_b_c_"));
        assert_eq!(part("///", ""), None);
        assert_eq!(part(&"x/".repeat(100), "").map(|part| part.len()), Some(63));
        let base = cx.add_text(Some("/tmp/some.where/model.ir"), "a\nb").unwrap();
        let place = NodeSource(base + 3);
        assert_eq!(symbol_part(&cx, place).as_deref(), Some("model_ir.2"));
        let both = NodeSource::union(&cx, [place, NodeSource::named(&cx, "x", "")]);
        assert_eq!(symbol_part(&cx, both).as_deref(), Some("model_ir.2"));
    }
}
