//! What a library or an object of ours says of itself, read without running anything of it.

use std::path::{Path, PathBuf};

use object::{Object, ObjectKind, ObjectSection, ObjectSymbol};

use super::functions::LIBRARY_INFO;
use super::model::ModelError;
use super::signature::LibraryInfo;
use crate::io::Mapping;

/// The section that has the signature as JSON, a C string.
pub const INFO_SECTION: &str = ".tenon.info";

/// A library or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub path: PathBuf,
    /// Whether it is to be linked into a program.
    pub is_object: bool,
    /// Its functions.
    pub info: LibraryInfo,
    /// What the names begin with that are the library's own.
    pub prefix: String,
    /// The functions that others see.
    pub symbols: Vec<String>,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Reads what a file says of itself.
pub fn describe(path: &Path) -> Result<Description, ModelError> {
    let not_ours = |reason: String| ModelError::NotALibrary { path: path.to_owned(), reason };
    let file = Mapping::open(path)?;
    let object = object::File::parse(&file[..]).map_err(|error| not_ours(error.to_string()))?;
    let section = object.section_by_name(INFO_SECTION);
    let Some(section) = section else { return Err(not_ours("it does not describe itself".into())) };
    let text = section.data().map_err(|error| not_ours(error.to_string()))?;
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut info = LibraryInfo::from_json(text)
        .map_err(|error| not_ours(format!("its metadata is broken: {error}")))?;
    let is_object = object.kind() == ObjectKind::Relocatable;
    let all = if is_object { object.symbols() } else { object.dynamic_symbols() };
    let seen = all.filter(|symbol| symbol.is_global() && symbol.is_definition());
    let names = seen.filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    let mut symbols: Vec<String> = names.collect();
    symbols.sort_unstable();
    let own = symbols.iter().filter(|name| *name != LIBRARY_INFO);
    let prefix = own.filter_map(|name| name.strip_suffix("_info")).next().unwrap_or_default();
    let (prefix, bytes) = (prefix.to_owned(), file.len() as u64);
    // A library of a version that had one function did not say it.
    for function in info.functions.iter_mut().filter(|function| function.symbol.is_empty()) {
        function.symbol.clone_from(&prefix);
    }
    Ok(Description { path: path.to_owned(), is_object, info, prefix, symbols, bytes })
}
