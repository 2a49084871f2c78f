//! Writes large constant arrays as a relocatable object, without LLVM.
//!
//! ```text
//! [conv1.weight: 37632 bytes, fc.bias: 4000 bytes]   =>   constants.o with two sections,
//!                                                        .rodata.t0 and .rodata.t1,
//!                                                        and a hidden symbol on each
//! ```
//!
//! As LLVM constants, a few hundred megabytes of weights would take minutes and several times
//! their size in memory. Here the bytes go from where they are (a mapped file, as a rule) to the
//! output, and nothing is held but the tables around them.
//!
//! A library has them written once: its object has but [`Content::Room`] for the arrays, which the linker lays out and leaves
//! as a hole, and [`fill`] writes the bytes where the symbols came to lie. Written into the object, read and written again by the linker
//! they would cost three times as much.
//!
//! Each array has its own section. Code finds the arrays through a table of addresses, and everything else by 32-bit offsets,
//! which reach it as long as no arrays lie between. Beyond [`LARGE_FROM`] bytes they go into `.lrodata` on x86-64, which linkers put
//! out of the way of everything that is addressed directly.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fs::File,
    io::Write,
    os::unix::fs::FileExt,
};

use object::{
    Architecture, BinaryFormat, Endianness, FileFlags, Object as _, ObjectSection, ObjectSymbol,
    SectionFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf,
    write::{Object, StreamingBuffer, Symbol, SymbolSection},
};

use super::ObjectError;
use crate::target::{Architecture as TargetArchitecture, Target};

/// Total bytes from which the arrays are laid out as large data, where the architecture has that.
/// The limit of the format is 2 GiB for everything together; this leaves room for the rest.
pub const LARGE_FROM: u64 = 1_500_000_000;

/// `SHF_X86_64_LARGE` of the x86-64 psABI.
const SHF_X86_64_LARGE: u64 = 0x1000_0000;
/// `SHF_GNU_RETAIN`: the linker keeps the section though nothing refers to it.
const SHF_GNU_RETAIN: u64 = 0x20_0000;

/// One array: its bytes under a symbol, and under others.
#[derive(Debug, Clone, Copy)]
pub struct ConstantArray<'a> {
    pub symbol: &'a str,
    pub others: &'a [&'a str],
    pub bytes: &'a [u8],
    /// At least 64, so that aligned vector loads work whatever the width.
    pub align: u64,
}

impl<'a> ConstantArray<'a> {
    /// All of its symbols.
    fn symbols(&self) -> impl Iterator<Item = &'a str> {
        std::iter::once(self.symbol).chain(self.others.iter().copied())
    }

    /// `bytes` under `symbol`, aligned to a cache line.
    pub fn new(symbol: &'a str, bytes: &'a [u8]) -> ConstantArray<'a> {
        ConstantArray { symbol, others: &[], bytes, align: 64 }
    }
}

/// What an object has of its arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Their bytes.
    Bytes,
    /// Their sizes alone, for [`fill`] to write the bytes into what is linked.
    Room,
}

/// Writes `arrays` as one object for `target` to `out`, which need not be buffered.
pub fn write_constants<W: Write>(
    target: &Target,
    arrays: &[ConstantArray<'_>],
    content: Content,
    out: W,
) -> Result<(), ObjectError> {
    let total = arrays.iter().map(|array| array.bytes.len() as u64).sum();
    let layout = Layout::choose(target, total)?;
    let mut object = Object::new(BinaryFormat::Elf, layout.architecture, Endianness::Little);
    // What is retained though nothing refers to it is an extension of GNU's.
    let os_abi = match content {
        Content::Bytes => elf::ELFOSABI_NONE,
        Content::Room => elf::ELFOSABI_GNU,
    };
    object.flags = FileFlags::Elf { os_abi, abi_version: 0, e_flags: layout.file_flags };
    let mut seen = HashSet::new();
    for (index, array) in arrays.iter().enumerate() {
        if let Some(symbol) = array.symbols().find(|symbol| !seen.insert(*symbol)) {
            return Err(ObjectError::Constants(format!("two arrays are named `{symbol}`")));
        }
        add_array(&mut object, &layout, content, index, array)?;
    }
    if content == Content::Room && !arrays.is_empty() {
        // Beside a section that has bytes, those without become a part of the file.
        let name = format!("{}.room", layout.prefix).into_bytes();
        let section = object.add_section(Vec::new(), name, SectionKind::ReadOnlyData);
        let flags = layout.flags | SHF_GNU_RETAIN;
        object.section_mut(section).flags = SectionFlags::Elf { sh_flags: flags };
        object.set_section_data(section, &[0][..], 1);
    }
    // The note that says that this object does not ask for an executable stack.
    object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);

    let mut stream = StreamingBuffer::new(std::io::BufWriter::with_capacity(1 << 16, out));
    object.emit(&mut stream).map_err(|error| ObjectError::Constants(error.to_string()))?;
    stream.result().map_err(write_failed)?;
    stream.into_inner().flush().map_err(write_failed)
}

/// Writes the bytes of `arrays` into a library that was linked with [`Content::Room`] for them; those that the linker has dropped
/// are left out. `bytes` are what is in `file`, whose name in messages is `library`.
pub(super) fn fill(
    arrays: &[ConstantArray<'_>],
    library: &str,
    bytes: &[u8],
    file: &File,
) -> Result<(), ObjectError> {
    let unreadable =
        |message: String| ObjectError::Unreadable { file: library.to_owned(), message };
    let parsed = object::File::parse(bytes).map_err(|error| unreadable(error.to_string()))?;
    let by_name: HashMap<&str, &ConstantArray<'_>> =
        arrays.iter().map(|array| (array.symbol, array)).collect();
    if !arrays.is_empty() && parsed.symbols().next().is_none() {
        return Err(unreadable(
            "the linker has left no symbols, so constants have no place".into(),
        ));
    }
    for symbol in parsed.symbols() {
        let Some(array) = symbol.name().ok().and_then(|name| by_name.get(name)) else { continue };
        let section = symbol.section_index().and_then(|at| parsed.section_by_index(at).ok());
        let place = section.and_then(|section| {
            let (start, size) = section.file_range()?;
            let within = symbol.address().checked_sub(section.address())?;
            (within + array.bytes.len() as u64 <= size).then_some(start + within)
        });
        let Some(place) = place else {
            return Err(unreadable(format!("there is no room for `{}`", array.symbol)));
        };
        file.write_all_at(array.bytes, place).map_err(|source| ObjectError::Io {
            action: "write",
            path: library.into(),
            source,
        })?;
    }
    Ok(())
}

/// Where the arrays of an object go.
struct Layout {
    architecture: Architecture,
    prefix: &'static str,
    flags: u64,
    /// How code of the architecture is called, which linkers compare.
    file_flags: u32,
}

impl Layout {
    fn choose(target: &Target, total: u64) -> Result<Layout, ObjectError> {
        let alloc = u64::from(elf::SHF_ALLOC);
        let layout =
            |architecture| Layout { architecture, prefix: ".rodata", flags: alloc, file_flags: 0 };
        match target.architecture() {
            TargetArchitecture::X86_64 if total >= LARGE_FROM => Ok(Layout {
                prefix: ".lrodata",
                flags: alloc | SHF_X86_64_LARGE,
                ..layout(Architecture::X86_64)
            }),
            TargetArchitecture::X86_64 => Ok(layout(Architecture::X86_64)),
            // Addresses reach 4 GiB, on RISC-V two, and there is no large data: whatever is too far
            // is an error of the linker's.
            TargetArchitecture::Aarch64 => Ok(layout(Architecture::Aarch64)),
            TargetArchitecture::Riscv64 => Ok(Layout {
                file_flags: elf::EF_RISCV_FLOAT_ABI_DOUBLE | elf::EF_RISCV_RVC,
                ..layout(Architecture::Riscv64)
            }),
            architecture @ (TargetArchitecture::Wasm32 | TargetArchitecture::Nvptx64) => {
                Err(ObjectError::Constants(format!("{architecture} has no ELF objects")))
            }
        }
    }
}

fn add_array<'a>(
    object: &mut Object<'a>,
    layout: &Layout,
    content: Content,
    index: usize,
    array: &ConstantArray<'a>,
) -> Result<(), ObjectError> {
    if let Some(symbol) = array.symbols().find(|it| it.is_empty() || it.contains('\0')) {
        return Err(ObjectError::Constants(format!("{symbol:?} is no symbol")));
    }
    if !array.align.is_power_of_two() {
        return Err(ObjectError::Constants(format!(
            "`{}` cannot be aligned to {}, which is no power of two",
            array.symbol, array.align
        )));
    }
    let name = format!("{}.t{index}", layout.prefix).into_bytes();
    let align = array.align.max(64);
    let kind = match content {
        Content::Bytes => SectionKind::ReadOnlyData,
        Content::Room => SectionKind::UninitializedData,
    };
    let section = object.add_section(Vec::new(), name, kind);
    object.section_mut(section).flags = SectionFlags::Elf { sh_flags: layout.flags };
    match content {
        Content::Bytes => object.set_section_data(section, Cow::Borrowed(array.bytes), align),
        Content::Room => {
            object.append_section_bss(section, array.bytes.len() as u64, align);
        }
    }
    for symbol in array.symbols() {
        object.add_symbol(Symbol {
            name: symbol.as_bytes().to_vec(),
            value: 0,
            size: array.bytes.len() as u64,
            kind: SymbolKind::Data,
            // Shared by the objects of one library and invisible outside: ELF's hidden visibility.
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        });
    }
    Ok(())
}

fn write_failed(error: std::io::Error) -> ObjectError {
    ObjectError::Constants(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(arrays: &[ConstantArray<'_>]) -> Result<Vec<u8>, ObjectError> {
        let target: Target = "x86_64-linux-gnu".parse().unwrap();
        let mut out = Vec::new();
        write_constants(&target, arrays, Content::Bytes, &mut out).map(|()| out)
    }

    #[test]
    fn every_array_has_an_aligned_section_and_a_hidden_symbol() {
        let (a, b) = ([1u8; 100], [2u8; 7]);
        let bytes = written(&[ConstantArray::new("a", &a), ConstantArray::new("b", &b)]).unwrap();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        for (name, data) in [("a", &a[..]), ("b", &b[..])] {
            let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
            assert_eq!(symbol.size(), data.len() as u64);
            assert_eq!(symbol.scope(), SymbolScope::Linkage);
            let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
            assert_eq!(section.align(), 64);
            assert_eq!(section.data().unwrap(), data);
        }
    }

    #[test]
    fn an_empty_array_and_no_array_are_fine() {
        assert!(written(&[]).is_ok());
        assert!(written(&[ConstantArray::new("empty", &[])]).is_ok());
    }

    #[test]
    fn room_is_filled_where_it_is_in_the_file() {
        let target: Target = "x86_64-linux-gnu".parse().unwrap();
        let arrays = [ConstantArray::new("a", &[1u8; 100]), ConstantArray::new("b", &[2u8; 7])];
        let file = tempfile::tempfile().unwrap();
        // Linked, it has the symbols of an object, and bytes for them.
        let with_bytes = written(&arrays.map(|array| ConstantArray { bytes: &[0; 100], ..array }));
        let with_bytes = with_bytes.unwrap();
        file.write_all_at(&with_bytes, 0).unwrap();
        fill(&arrays, "k.so", &with_bytes, &file).unwrap();
        let mut filled = vec![0; with_bytes.len()];
        file.read_exact_at(&mut filled, 0).unwrap();
        let parsed = object::File::parse(filled.as_slice()).unwrap();
        let data = |name| parsed.section_by_name(name).unwrap().data().unwrap();
        assert_eq!(data(".rodata.t0"), [1; 100]);
        assert_eq!(data(".rodata.t1")[..7], [2; 7]);
        assert_eq!(data(".rodata.t1")[7..], [0; 93]);

        let mut room = Vec::new();
        write_constants(&target, &arrays, Content::Room, &mut room).unwrap();
        assert!(room.len() < with_bytes.len() + 100);
        let error = fill(&arrays, "k.so", &room, &file).unwrap_err();
        assert!(error.to_string().contains("no room for `a`"), "{error}");
    }

    #[test]
    fn wrong_names_and_alignments_are_refused() {
        let twice = [ConstantArray::new("a", &[1]), ConstantArray::new("a", &[2])];
        assert!(written(&twice).unwrap_err().to_string().contains("two arrays"));
        assert!(written(&[ConstantArray::new("", &[1])]).is_err());
        let odd = ConstantArray { align: 48, ..ConstantArray::new("a", &[1]) };
        assert!(written(&[odd]).unwrap_err().to_string().contains("48"));
    }

    #[test]
    fn much_data_goes_out_of_the_way() {
        let target: Target = "x86_64-linux-gnu".parse().unwrap();
        assert_eq!(Layout::choose(&target, LARGE_FROM - 1).unwrap().prefix, ".rodata");
        let large = Layout::choose(&target, LARGE_FROM).unwrap();
        assert_eq!(large.prefix, ".lrodata");
        assert_ne!(large.flags & SHF_X86_64_LARGE, 0);
    }
}
