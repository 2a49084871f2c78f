//! Makes the symbols of an object its own, but for those that users see: so objects of several models link into one program.
//!
//! ```text
//! g kernel0.exp   g tenon_main   g a_run        =>     l kernel0.exp   l tenon_main   g a_run
//! ```
//!
//! Linkers have no word for that when they make an object of objects, so its table of symbols is written once more.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use object::build::elf::Builder;
use object::elf;
use object::write::StreamingBuffer;

use super::ObjectError;
use tenon_runtime::io::Mapping;

/// Makes all that the object at `path` defines its own, but for `exports`.
pub(super) fn make_own(path: &Path, exports: &[&str]) -> Result<(), ObjectError> {
    let io = |action, source| ObjectError::Io { action, path: path.to_owned(), source };
    let unreadable =
        |message: String| ObjectError::Unreadable { file: path.display().to_string(), message };
    let file = Mapping::open(path).map_err(|error| unreadable(error.to_string()))?;
    let object = Builder::read(&file[..]);
    let mut object = object.map_err(|error| unreadable(error.to_string()))?;
    let exports: HashSet<&[u8]> = exports.iter().map(|name| name.as_bytes()).collect();
    for symbol in &mut object.symbols {
        if symbol.section.is_some() && !exports.contains(&symbol.name[..]) {
            symbol.set_st_info(elf::STB_LOCAL, symbol.st_type());
            symbol.st_other = elf::STV_DEFAULT;
        }
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let own = tempfile::NamedTempFile::new_in(folder).map_err(|source| io("make", source))?;
    let mut buffer = StreamingBuffer::new(BufWriter::new(own.as_file()));
    object.write(&mut buffer).map_err(|error| unreadable(error.to_string()))?;
    let written = buffer.result().and_then(|()| buffer.into_inner().flush());
    written.map_err(|source| io("write", source))?;
    drop(file);
    // The place may have been made with rights of its own.
    let mut from = File::open(own.path()).map_err(|source| io("open", source))?;
    let mut to = File::create(path).map_err(|source| io("write", source))?;
    std::io::copy(&mut from, &mut to).map_err(|source| io("write", source))?;
    Ok(())
}
