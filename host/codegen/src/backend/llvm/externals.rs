//! Gives code in this process what others define: functions of the process first, then what is linked.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_void};
use std::path::Path;

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use tenon_runtime::io::Mapping;
use tenon_runtime::library::ExportedLibrary;

use super::{LlvmError, jit::Jit};
use crate::object::externals::{Externals, FileKind};

/// Defines what the objects need and others have. Nothing is looked for where code calls nothing of others, so what it needs
/// by mistake is still found.
pub(super) fn define(jit: &mut Jit, externals: &Externals) -> Result<(), LlvmError> {
    if externals.is_empty() {
        return Ok(());
    }
    let given = externals.given.iter();
    let given: HashMap<&str, *const c_void> =
        given.map(|it| (it.name.as_str(), std::ptr::with_exposed_provenance(it.address))).collect();
    define_all(jit, |name| given.get(name).copied())?;
    let mut shared = Vec::new();
    let mut archives = Vec::new();
    let kinds = externals.kinds().map_err(refused)?;
    for (path, kind) in externals.files.iter().zip(kinds) {
        match kind {
            FileKind::Object => jit.add_object(&read(path)?)?,
            FileKind::Archive => archives.push(read(path)?),
            FileKind::Shared => {
                // SAFETY: who names a library to be linked trusts it, as whoever opens what is linked to it.
                let library = unsafe { ExportedLibrary::open(path) };
                shared.push(library.map_err(refused)?);
            }
        }
    }
    for archive in &archives {
        add_needed(jit, archive)?;
    }
    for library in shared {
        define_all(jit, |name| {
            library.symbol(name).ok().map(|address| address.as_ptr().cast_const())
        })?;
        jit.keep(Box::new(library));
    }
    define_all(jit, of_process)?;
    match jit.missing() {
        symbols if symbols.is_empty() => Ok(()),
        symbols => Err(LlvmError::NotGiven { symbols }),
    }
}

fn define_all(
    jit: &mut Jit,
    find: impl Fn(&str) -> Option<*const c_void>,
) -> Result<(), LlvmError> {
    let missing = jit.missing();
    let found: Vec<(&str, *const c_void)> =
        missing.iter().filter_map(|name| Some((name.as_str(), find(name)?))).collect();
    if found.is_empty() {
        return Ok(());
    }
    // SAFETY: what is at an address is what defines the symbol for every linker, which is all that anybody knows of it; whoever
    // gives a function says that it is what code calls, and that it stays. Libraries are kept by the JIT.
    unsafe { jit.define_all(&found) }
}

/// What the process has under a name.
fn of_process(name: &str) -> Option<*const c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address.cast_const())
}

/// Adds the members of an archive that something needs, as a linker does.
fn add_needed(jit: &mut Jit, bytes: &Mapping) -> Result<(), LlvmError> {
    let archive = ArchiveFile::parse(&bytes[..]).map_err(refused)?;
    let mut members: Vec<Vec<u8>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for member in archive.members() {
        let data = member.and_then(|member| member.data(&bytes[..])).map_err(refused)?;
        // In the archive it lies where its tables may not begin.
        let data = data.to_vec();
        let Ok(file) = object::File::parse(&data[..]) else { continue };
        let defined = file.symbols().filter(|it| it.is_global() && it.is_definition());
        for name in defined.filter_map(|symbol| symbol.name().ok()) {
            places.entry(name.to_owned()).or_insert(members.len());
        }
        members.push(data);
    }
    let mut added = HashSet::new();
    let mut needed = jit.missing();
    while let Some(name) = needed.pop() {
        let Some(&place) = places.get(&name) else { continue };
        if added.insert(place) {
            jit.add_object(&members[place])?;
            let file = object::File::parse(&members[place][..]).map_err(refused)?;
            let undefined = file.symbols().filter(ObjectSymbol::is_undefined);
            needed.extend(undefined.filter_map(|symbol| symbol.name().ok()).map(str::to_owned));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Mapping, LlvmError> {
    Mapping::open(path).map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> LlvmError {
    LlvmError::LinkedFile { message: error.to_string() }
}
