//! Shared libraries that hold a manifest and nothing else: enough for all that opens no plugin.

use object::elf;

/// A library for this machine with these records.
pub(crate) fn library(records: &[&str]) -> Vec<u8> {
    let here = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    library_for(here, records)
}

/// A library for another machine: a header, one segment of notes, no sections.
pub(crate) fn library_for(machine: u16, records: &[&str]) -> Vec<u8> {
    const HEADER: u64 = 64;
    const SEGMENT: u64 = 56;
    let notes: Vec<u8> = records.iter().flat_map(|record| note(record)).collect();
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01");
    file.resize(16, 0);
    file.extend(elf::ET_DYN.to_le_bytes());
    file.extend(machine.to_le_bytes());
    file.extend(u32::from(elf::EV_CURRENT).to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(HEADER.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(0u32.to_le_bytes());
    for half in [HEADER as u16, SEGMENT as u16, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    file.extend(elf::PT_NOTE.to_le_bytes());
    file.extend(elf::PF_R.to_le_bytes());
    let (at, size) = (HEADER + SEGMENT, notes.len() as u64);
    for word in [at, at, at, size, size, 4] {
        file.extend(word.to_le_bytes());
    }
    file.extend(notes);
    file
}

fn note(record: &str) -> Vec<u8> {
    let mut note = Vec::new();
    note.extend(6u32.to_le_bytes());
    note.extend((record.len() as u32).to_le_bytes());
    note.extend(0x5443_5031_u32.to_le_bytes());
    note.extend(b"TENON\0\0\0");
    note.extend(record.as_bytes());
    note.resize(note.len().next_multiple_of(4), 0);
    note
}
