//! The notes of a library: what the host looks at in a file that it does not run.

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadRef};
use tenon_plugin_api::abi::note::{NOTE_OWNER, NOTE_TYPE};

use super::Reason;

/// What the host looks at in a file.
pub(super) struct Notes {
    /// The architecture it is built for, as ELF numbers them.
    pub(super) machine: u16,
    /// The records in Tenon's notes, one a line.
    pub(super) records: String,
}

/// Bytes of notes that a library may have. Real ones have a few kilobytes.
pub(super) const MAX_NOTES: u64 = 1 << 20;

impl Notes {
    pub(super) fn read<'d>(data: impl ReadRef<'d>) -> Result<Notes, Reason> {
        match FileKind::parse(data) {
            Ok(FileKind::Elf64) => {}
            Ok(FileKind::Elf32) => return Err("it is built for a 32-bit system".into()),
            Ok(_) => return Err("it is of another system's format".into()),
            Err(_) if data.len() == Ok(0) => return Err("it is empty".into()),
            Err(_) => return Err("it does not begin as one".into()),
        }
        let wrong = |error: object::Error| error.to_string();
        let header = FileHeader64::<Endianness>::parse(data).map_err(wrong)?;
        let endian = header.endian().map_err(wrong)?;
        if header.e_type(endian) != object::elf::ET_DYN {
            return Err("it is not a shared object".into());
        }
        let size = data.len().map_err(|()| "its size is not known")?;
        let sections = u64::from(header.e_shnum(endian)) * u64::from(header.e_shentsize(endian));
        if header.e_shoff(endian).saturating_add(sections) > size {
            return Err("it is cut short: its section table is missing".into());
        }
        let mut records = String::new();
        let mut size_of_notes = 0u64;
        for segment in header.program_headers(endian, data).map_err(wrong)? {
            if segment.p_offset(endian).saturating_add(segment.p_filesz(endian)) > size {
                return Err("it is cut short: a segment ends behind the file".into());
            }
            if segment.p_type(endian) != object::elf::PT_NOTE {
                continue;
            }
            size_of_notes += segment.p_filesz(endian);
            if size_of_notes > MAX_NOTES {
                return Err(format!("its notes are larger than {MAX_NOTES} bytes").into());
            }
            records.reserve(segment.p_filesz(endian) as usize);
            let notes = segment.notes(endian, data).map_err(wrong)?;
            let Some(mut notes) = notes else { continue };
            while let Some(note) = notes.next().map_err(wrong)? {
                if note.name() == &NOTE_OWNER[..NOTE_OWNER.len() - 1]
                    && note.n_type(endian) == NOTE_TYPE
                {
                    let text =
                        std::str::from_utf8(note.desc()).map_err(|_| "a record is not UTF-8")?;
                    // A note holds one record or several, one a line.
                    records.push_str(text.trim_end_matches('\0'));
                    records.push('\n');
                }
            }
        }
        Ok(Notes { machine: header.e_machine(endian), records })
    }
}

/// What people call a machine that ELF numbers.
pub(super) fn machine_name(machine: u16) -> String {
    let name = match machine {
        object::elf::EM_X86_64 => "x86_64",
        object::elf::EM_AARCH64 => "aarch64",
        object::elf::EM_RISCV => "riscv64",
        object::elf::EM_PPC64 => "powerpc64",
        object::elf::EM_S390 => "s390x",
        object::elf::EM_LOONGARCH => "loongarch64",
        object::elf::EM_MIPS => "mips64",
        object::elf::EM_SPARCV9 => "sparc64",
        other => return format!("the ELF machine {other}"),
    };
    name.to_owned()
}

/// That of this host.
#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE_MACHINE: u16 = object::elf::EM_X86_64;
/// That of this host.
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE_MACHINE: u16 = object::elf::EM_AARCH64;
