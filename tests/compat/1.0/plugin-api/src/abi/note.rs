//! The manifest: JSON records in ELF notes, written by the macros and read without running any code.
//!
//! One note a record: owner `TENON`, type [`NOTE_TYPE`], the JSON text as its descriptor. The record of
//! the plugin has the key `plugin`, the record of a pass the key `pass`.

/// Owner of the notes.
pub const NOTE_OWNER: &[u8; 6] = b"TENON\0";
/// Type of the notes.
pub const NOTE_TYPE: u32 = 0x5443_5031;
/// Version of the records' format.
pub const NOTE_FORMAT: u32 = 1;

/// One note, laid out as the linker expects it. `N` is the length of the text rounded up to 4.
#[repr(C, align(4))]
pub struct Note<const N: usize> {
    name_size: u32,
    text_size: u32,
    kind: u32,
    name: [u8; 8],
    text: [u8; N],
}

impl<const N: usize> Note<N> {
    /// A note that holds `text`.
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        assert!(padded(bytes.len()) == N);
        let mut padded = [0; N];
        let mut i = 0;
        while i < bytes.len() {
            padded[i] = bytes[i];
            i += 1;
        }
        Self {
            name_size: NOTE_OWNER.len() as u32,
            text_size: bytes.len() as u32,
            kind: NOTE_TYPE,
            name: *b"TENON\0\0\0",
            text: padded,
        }
    }
}

/// A length rounded up to the alignment of notes.
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}
