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
//! Each array has its own section, so that the linker drops what no kernel reads. Code reaches
//! the arrays through the GOT, which the linker turns into direct addresses where they are near
//! enough. Beyond [`LARGE_FROM`] bytes x86-64 cannot promise that: its addresses are 32-bit
//! offsets. The arrays then go into `.lrodata`, which linkers put out of the way of everything
//! that is addressed directly.

use std::{borrow::Cow, collections::HashSet, io::Write};

use object::{
    Architecture, BinaryFormat, Endianness, FileFlags, SectionFlags, SectionKind, SymbolFlags,
    SymbolKind, SymbolScope, elf,
    write::{Object, StreamingBuffer, Symbol, SymbolSection},
};

use super::ObjectError;
use crate::target::{Architecture as TargetArchitecture, Target};

/// Total bytes from which the arrays are laid out as large data, where the architecture has that.
/// The limit of the format is 2 GiB for everything together; this leaves room for the rest.
pub const LARGE_FROM: u64 = 1_500_000_000;

/// `SHF_X86_64_LARGE` of the x86-64 psABI.
const SHF_X86_64_LARGE: u64 = 0x1000_0000;

/// One array: its bytes under a symbol.
#[derive(Debug, Clone, Copy)]
pub struct ConstantArray<'a> {
    pub symbol: &'a str,
    pub bytes: &'a [u8],
    /// At least 64, so that aligned vector loads work whatever the width.
    pub align: u64,
}

impl<'a> ConstantArray<'a> {
    /// `bytes` under `symbol`, aligned to a cache line.
    pub fn new(symbol: &'a str, bytes: &'a [u8]) -> ConstantArray<'a> {
        ConstantArray { symbol, bytes, align: 64 }
    }
}

/// Writes `arrays` as one object for `target` to `out`, which need not be buffered.
pub fn write_constants<W: Write>(
    target: &Target,
    arrays: &[ConstantArray<'_>],
    out: W,
) -> Result<(), ObjectError> {
    let total = arrays.iter().map(|array| array.bytes.len() as u64).sum();
    let layout = Layout::choose(target, total)?;
    let mut object = Object::new(BinaryFormat::Elf, layout.architecture, Endianness::Little);
    object.flags =
        FileFlags::Elf { os_abi: elf::ELFOSABI_NONE, abi_version: 0, e_flags: layout.file_flags };
    let mut seen = HashSet::new();
    for (index, array) in arrays.iter().enumerate() {
        if !seen.insert(array.symbol) {
            return Err(ObjectError::Constants(format!("two arrays are named `{}`", array.symbol)));
        }
        add_array(&mut object, &layout, index, array)?;
    }
    // The note that says that this object does not ask for an executable stack.
    object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), SectionKind::Other);

    let mut stream = StreamingBuffer::new(std::io::BufWriter::with_capacity(1 << 16, out));
    object.emit(&mut stream).map_err(|error| ObjectError::Constants(error.to_string()))?;
    stream.result().map_err(write_failed)?;
    stream.into_inner().flush().map_err(write_failed)
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
    index: usize,
    array: &ConstantArray<'a>,
) -> Result<(), ObjectError> {
    if array.symbol.is_empty() || array.symbol.contains('\0') {
        return Err(ObjectError::Constants(format!("{:?} is no symbol", array.symbol)));
    }
    if !array.align.is_power_of_two() {
        return Err(ObjectError::Constants(format!(
            "`{}` cannot be aligned to {}, which is no power of two",
            array.symbol, array.align
        )));
    }
    let name = format!("{}.t{index}", layout.prefix).into_bytes();
    let section = object.add_section(Vec::new(), name, SectionKind::ReadOnlyData);
    object.section_mut(section).flags = SectionFlags::Elf { sh_flags: layout.flags };
    object.set_section_data(section, Cow::Borrowed(array.bytes), array.align.max(64));
    object.add_symbol(Symbol {
        name: array.symbol.as_bytes().to_vec(),
        value: 0,
        size: array.bytes.len() as u64,
        kind: SymbolKind::Data,
        // Shared by the objects of one library and invisible outside: ELF's hidden visibility.
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    Ok(())
}

fn write_failed(error: std::io::Error) -> ObjectError {
    ObjectError::Constants(error.to_string())
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSection, ObjectSymbol};

    use super::*;

    fn written(arrays: &[ConstantArray<'_>]) -> Result<Vec<u8>, ObjectError> {
        let target: Target = "x86_64-linux-gnu".parse().unwrap();
        let mut out = Vec::new();
        write_constants(&target, arrays, &mut out).map(|()| out)
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
    fn wrong_names_and_alignments_are_refused() {
        let twice = [ConstantArray::new("a", &[1]), ConstantArray::new("a", &[2])];
        assert!(written(&twice).unwrap_err().to_string().contains("two arrays"));
        assert!(written(&[ConstantArray::new("", &[1])]).is_err());
        let odd = ConstantArray { symbol: "a", bytes: &[1], align: 48 };
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
