//! The names in the tables of a library, compared with those that its manifest lists.

use tenon_plugin_api::abi::layout::Table;
use tenon_plugin_api::abi::read::readable;
use tenon_plugin_api::abi::tables::{CodegenTable, InstrumentTable, OpTable, PassTable, RuleTable};

use super::Reason;

/// A table of things that have names.
pub(super) trait Named {
    /// How many there are, as the library says.
    fn how_many(&self) -> u32;

    /// The name of one of them.
    fn name_of(&self, index: u32) -> String;
}

/// A table whose entries `count` and `name` take anything.
macro_rules! named {
    ($($table:ty),+) => {$(
        impl Named for Table<$table> {
            fn how_many(&self) -> u32 {
                // SAFETY: the table's layout was checked; the entry takes nothing.
                unsafe { self.count()() }
            }

            fn name_of(&self, index: u32) -> String {
                // SAFETY: as above; the entry takes anything.
                readable(unsafe { self.name()(index) })
            }
        }
    )+};
}
named!(PassTable, CodegenTable, InstrumentTable, OpTable);

/// Rules have two names: facet and key.
impl Named for Table<RuleTable> {
    fn how_many(&self) -> u32 {
        // SAFETY: the table's layout was checked; the entry takes nothing.
        unsafe { self.count()() }
    }

    fn name_of(&self, index: u32) -> String {
        // SAFETY: as above; the entries take anything.
        let [facet, key] =
            unsafe { [self.facet()(index), self.key()(index)] }.map(|name| readable(name));
        format!("{facet}:{key}")
    }
}

/// The names in a table, in its order, which must be those that a manifest lists.
pub(super) fn listed_names(
    what: &str,
    listed: &[&str],
    table: Option<&impl Named>,
) -> Result<Vec<String>, Reason> {
    let names = names_in(what, listed.len(), table)?;
    let mut present: Vec<&str> = names.iter().map(String::as_str).collect();
    present.sort_unstable();
    match present == listed {
        true => Ok(names),
        false => Err(difference_in(what, listed, &present)),
    }
}

/// The names in a table that has about as many as a manifest lists: one that claims billions would be read for ever.
pub(super) fn names_in(
    what: &str,
    listed: usize,
    table: Option<&impl Named>,
) -> Result<Vec<String>, Reason> {
    const MORE: usize = 64;
    let Some(table) = table else { return Ok(Vec::new()) };
    let count = table.how_many();
    match count as usize <= listed + MORE {
        true => Ok((0..count).map(|index| table.name_of(index)).collect()),
        false => Err(format!(
            "the table of {what} says that it has {count}, the manifest lists {listed}"
        )
        .into()),
    }
}

/// What is told where they differ.
pub(super) fn difference_in(
    what: &str,
    listed: &[impl std::fmt::Debug],
    present: &[impl std::fmt::Debug],
) -> Reason {
    format!("the manifest lists the {what} {listed:?}, the table has {present:?}").into()
}
