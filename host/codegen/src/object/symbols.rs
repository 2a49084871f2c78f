//! What generated code may leave undefined, and the check of it.
//!
//! LLVM turns copy and fill loops into calls of the C library even where nobody wrote one, and
//! every C library and loader provides those four. Anything else that is still undefined is an
//! operation that should have been lowered before LLVM saw it (`exp` became `expf`); the user
//! would learn it from a failing `dlopen`, so it is refused here.

use std::collections::HashSet;

use object::{Object, ObjectKind, ObjectSymbol};

use super::ObjectError;
use super::externals::Externals;

/// The calls that LLVM adds by itself and every process can resolve.
pub const ALLOWED_UNDEFINED: [&str; 4] = ["memcpy", "memmove", "memset", "memcmp"];

/// Refuses a library or an object that needs more than [`ALLOWED_UNDEFINED`] and the functions that others define. What is
/// linked into it may need what it likes.
///
/// `library` is the text for messages, `bytes` the file.
pub fn check_undefined(
    library: &str,
    bytes: &[u8],
    externals: &Externals,
) -> Result<(), ObjectError> {
    if !externals.files.is_empty() {
        return Ok(());
    }
    let others: HashSet<&str> = externals.names.iter().map(String::as_str).collect();
    let is_allowed = |name: &str| ALLOWED_UNDEFINED.contains(&name) || others.contains(name);
    let symbols = undefined(library, bytes)?;
    let refused: Vec<String> = symbols.into_iter().filter(|name| !is_allowed(name)).collect();
    if refused.is_empty() {
        return Ok(());
    }
    Err(ObjectError::UndefinedSymbols {
        file: library.to_owned(),
        symbols: refused,
        allowed: ALLOWED_UNDEFINED.map(str::to_owned).to_vec(),
    })
}

/// Refuses a library or an object that does not define each of `exports`.
pub fn check_exports(library: &str, bytes: &[u8], exports: &[&str]) -> Result<(), ObjectError> {
    let file = parse(library, bytes)?;
    let defined: HashSet<&str> = global_symbols(&file)
        .filter(|symbol| !symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    match exports.iter().find(|name| !defined.contains(*name)) {
        None => Ok(()),
        Some(name) => Err(ObjectError::NoExport { name: (*name).to_owned() }),
    }
}

/// The undefined symbols of a library or an object, without versions, sorted.
pub fn undefined(library: &str, bytes: &[u8]) -> Result<Vec<String>, ObjectError> {
    let file = parse(library, bytes)?;
    let mut names: Vec<String> = global_symbols(&file)
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// What others see: the dynamic symbols of a library, all symbols of an object that are not its own.
fn global_symbols<'a>(file: &'a object::File<'_>) -> impl Iterator<Item = object::Symbol<'a, 'a>> {
    let symbols = match file.kind() {
        ObjectKind::Relocatable => file.symbols(),
        _ => file.dynamic_symbols(),
    };
    symbols.filter(ObjectSymbol::is_global)
}

fn parse<'data>(library: &str, bytes: &'data [u8]) -> Result<object::File<'data>, ObjectError> {
    object::File::parse(bytes).map_err(|error| ObjectError::Unreadable {
        file: library.to_owned(),
        message: error.to_string(),
    })
}
