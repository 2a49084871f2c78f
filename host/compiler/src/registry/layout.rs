//! Compares a plugin's layouts with the host's.
//!
//! Tables and records only grow, at their end, so of two versions one layout is a prefix of the other. What
//! both know must be equal; what only one knows is absent for the other.

use tenon_plugin_api::abi::layout::Field;
use tenon_plugin_api::abi::read::{readable, slice};
use tenon_plugin_api::abi::tables::Interface;

/// How the plugin's layouts differ from the host's, one line a difference. What only one side lists is no
/// difference: it is an interface that the other does not know.
pub(super) fn differences(host: &[Interface], plugin: &[Interface]) -> Vec<String> {
    let mut lines = Vec::new();
    for theirs in plugin {
        let id = readable(theirs.id);
        if let Some(ours) = host.iter().find(|ours| ours.id.as_str() == id) {
            compare(&id, slice(ours.layout), slice(theirs.layout), &mut lines);
        }
    }
    lines
}

fn compare(id: &str, host: &[Field], plugin: &[Field], lines: &mut Vec<String>) {
    for (ours, theirs) in host.iter().zip(plugin) {
        let (ours, theirs) = (Line::of(ours), Line::of(theirs));
        if ours != theirs {
            lines.push(format!("{id}: the host has {ours}, the plugin {theirs}"));
        }
    }
}

#[derive(PartialEq)]
struct Line {
    name: String,
    ty: String,
    offset: u32,
    size: u32,
}

impl Line {
    fn of(field: &Field) -> Self {
        let (name, ty) = (readable(field.name), readable(field.ty));
        Self { name, ty, offset: field.offset, size: field.size }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, ty, offset, size } = self;
        write!(f, "`{name}`: {ty} ({size} bytes at {offset})")
    }
}

#[cfg(test)]
mod tests {
    use abi_stable::std_types::{RSlice, RStr};

    use super::*;

    const SHORT: &[Field] =
        &[Field::new("size", "size_t", 0, 8), Field::new("count", "uint32_t(void)", 8, 8)];
    const LONG: &[Field] = &[SHORT[0], SHORT[1], Field::new("name", "tenon_str(uint32_t)", 16, 8)];
    const OTHER: &[Field] = &[SHORT[0], Field::new("count", "uint64_t(void)", 8, 8)];

    fn check(host: &'static [Field], plugin: &'static [Field]) -> Vec<String> {
        let table = |layout| {
            let (id, layout) = (RStr::from_str("t/1"), RSlice::from_slice(layout));
            [Interface { id, layout, table: std::ptr::null() }]
        };
        differences(&table(host), &table(plugin))
    }

    #[test]
    fn the_longer_one_may_be_on_either_side() {
        assert_eq!(check(SHORT, SHORT), [""; 0]);
        assert_eq!(check(SHORT, LONG), [""; 0]);
        assert_eq!(check(LONG, SHORT), [""; 0]);
    }

    #[test]
    fn each_difference_is_a_line_with_both_sides() {
        let line = "t/1: the host has `count`: uint32_t(void) (8 bytes at 8), \
                    the plugin `count`: uint64_t(void) (8 bytes at 8)";
        assert_eq!(check(LONG, OTHER), [line]);
        assert_eq!(check(OTHER, LONG).len(), 1);
    }

    #[test]
    fn an_interface_that_one_side_does_not_know_is_no_difference() {
        assert_eq!(differences(&[], &[]), [""; 0]);
        let (id, layout) = (RStr::from_str("new/1"), RSlice::from_slice(SHORT));
        let unknown = Interface { id, layout, table: std::ptr::null() };
        assert_eq!(differences(&[], &[unknown]), [""; 0]);
        assert_eq!(differences(&[unknown], &[]), [""; 0]);
    }
}
