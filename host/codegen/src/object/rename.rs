//! Gives the symbols of an object other names, so that objects of one model for several processors link into one library.
//!
//! ```text
//! g tenon_main   g kernel0.exp   u tenon_constants   u memcpy   =>   g tenon_main.p1   g kernel0.exp.p1   u tenon_constants.p1   u memcpy
//! ```
//!
//! The new names stand in a copy of the table of names at the end of the file, behind the old ones, which sections may have as well.

use std::collections::HashSet;

use object::LittleEndian;
use object::elf::{FileHeader64, SHT_SYMTAB, STB_LOCAL, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use super::ObjectError;
use super::externals::Externals;
use super::symbols::ALLOWED_UNDEFINED;
use crate::backend::WEIGHTS;

/// What all code of a library has together.
const COMMON: [&str; 1] = [WEIGHTS];

/// Where a section's header says where the section begins, and how large it is.
const SECTION_OFFSET: usize = std::mem::offset_of!(SectionHeader64<LittleEndian>, sh_offset);
const SECTION_SIZE: usize = std::mem::offset_of!(SectionHeader64<LittleEndian>, sh_size);

/// The object, one of 64 bits, with a suffix behind the names that other objects see or give, but for those that every process
/// has, and those of functions that others define.
pub fn with_suffix(
    name: &str,
    object: &[u8],
    suffix: &str,
    externals: &Externals,
) -> Result<Vec<u8>, ObjectError> {
    let unreadable = |message: String| ObjectError::Unreadable { file: name.to_owned(), message };
    renamed(object, suffix, externals).map_err(|error| unreadable(error.to_string()))
}

fn renamed(object: &[u8], suffix: &str, externals: &Externals) -> object::Result<Vec<u8>> {
    let header = FileHeader64::<LittleEndian>::parse(object)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, object)?;
    let symbols = sections.symbols(endian, object, SHT_SYMTAB)?;
    let mut made = object.to_vec();
    if symbols.is_empty() {
        return Ok(made);
    }
    let names_at = symbols.string_section();
    let mut names = sections.section(names_at)?.data(endian, object)?.to_vec();
    let common: HashSet<&[u8]> = COMMON
        .into_iter()
        .chain(ALLOWED_UNDEFINED)
        .chain(externals.names.iter().map(String::as_str))
        .map(str::as_bytes)
        .collect();
    let first = sections.section(symbols.section())?.sh_offset(endian) as usize;
    for (at, symbol) in symbols.iter().enumerate() {
        let own = symbol.name(endian, symbols.strings())?;
        if symbol.st_bind() == STB_LOCAL || own.is_empty() || common.contains(own) {
            continue;
        }
        // A symbol begins with the place of its name.
        let place = first + at * size_of::<Sym64<LittleEndian>>();
        made[place..place + 4].copy_from_slice(&(names.len() as u32).to_le_bytes());
        for part in [own, suffix.as_bytes(), &[0]] {
            names.extend_from_slice(part);
        }
    }
    let headers = header.e_shoff(endian) as usize;
    let own = headers + names_at.0 * size_of::<SectionHeader64<LittleEndian>>();
    for (field, value) in [(SECTION_OFFSET, made.len()), (SECTION_SIZE, names.len())] {
        let place = own + field;
        made[place..place + 8].copy_from_slice(&(value as u64).to_le_bytes());
    }
    made.extend_from_slice(&names);
    Ok(made)
}
