//! Elements that a file has as protobuf numbers instead of bytes.
//!
//! Types without a field of their own are in `int32_data` or `uint64_data`; of 16-bit and 8-bit
//! floats it is the bits that stand there, and of elements below a byte those that fill one.

use crate::{
    io::Mapping,
    onnx::{
        ElementType, TensorBytes, TensorProblem,
        proto::{Storage, TensorProto},
        wire::{Run, Varints},
    },
};

/// The elements of a tensor, which are `count` numbers in the file, as bytes.
pub(super) fn read(
    tensor: &TensorProto<'_>,
    element: ElementType,
    count: usize,
    model: &Mapping,
) -> Result<TensorBytes, TensorProblem> {
    let storage = element.storage();
    if let Some(other) = tensor.typed_data.iter().find(|run| run.storage != storage) {
        return Err(TensorProblem::WrongField { element, found: other.storage });
    }
    let wrong_count = |found| {
        let dims = tensor.dims.clone();
        TensorProblem::Count { dims, storage, expected: count, found }
    };
    let is_fixed = matches!(storage, Storage::Float | Storage::Double);
    if let ([run], true) = (&tensor.typed_data[..], is_fixed)
        && let Run::Packed(bytes) = run.run
    {
        // Packed floats are in the file just as they are needed.
        if bytes.len() != count * element.unit() {
            return Err(wrong_count(bytes.len() / element.unit()));
        }
        return Ok(TensorBytes::part_of(model, bytes));
    }

    // Counting first bounds what is allocated by what the file has.
    let found = tensor.typed_data.iter().map(|run| number_count(run.run, element)).sum();
    if found != count {
        return Err(wrong_count(found));
    }
    let mut out = Elements { element, bytes: Vec::with_capacity(count * element.unit()) };
    for run in &tensor.typed_data {
        out.append(run.run, storage)?;
    }
    Ok(TensorBytes::Owned(out.bytes))
}

/// How many numbers a run has, as long as none is broken.
fn number_count(run: Run<'_>, element: ElementType) -> usize {
    match (run, element.storage()) {
        (Run::Packed(bytes), Storage::Float | Storage::Double) => bytes.len() / element.unit(),
        (Run::Packed(bytes), Storage::Int32 | Storage::Int64 | Storage::Uint64) => {
            // The last byte of a number has its high bit clear.
            bytes.iter().filter(|&&byte| byte < 0x80).count()
        }
        (Run::Varint(_) | Run::Fixed32(_) | Run::Fixed64(_), _) => 1,
    }
}

struct Elements {
    element: ElementType,
    bytes: Vec<u8>,
}

impl Elements {
    fn append(&mut self, run: Run<'_>, storage: Storage) -> Result<(), TensorProblem> {
        let broken = TensorProblem::BrokenNumbers { storage };
        match (storage, run) {
            (Storage::Float, Run::Fixed32(bits)) => self.bytes.extend_from_slice(&bits),
            (Storage::Double, Run::Fixed64(bits)) => self.bytes.extend_from_slice(&bits),
            (Storage::Float | Storage::Double, Run::Packed(bytes)) => {
                if bytes.len() % self.element.unit() != 0 {
                    return Err(broken);
                }
                self.bytes.extend_from_slice(bytes);
            }
            (Storage::Int32 | Storage::Int64 | Storage::Uint64, Run::Varint(value)) => {
                self.push(value)?;
            }
            (Storage::Int32 | Storage::Int64 | Storage::Uint64, Run::Packed(bytes)) => {
                for value in Varints(bytes) {
                    let Ok(value) = value else { return Err(broken) };
                    self.push(value)?;
                }
            }
            _ => return Err(broken),
        }
        Ok(())
    }

    /// Appends a number that must fit its element type.
    fn push(&mut self, bits: u64) -> Result<(), TensorProblem> {
        // `int32_data` counts by its low bits, like every protobuf int32.
        let value = match self.element.storage() {
            Storage::Int32 => i64::from(bits as i32),
            Storage::Int64 | Storage::Uint64 | Storage::Float | Storage::Double => {
                bits.cast_signed()
            }
        };
        let fits = match self.element {
            ElementType::Bool => (0..=1).contains(&value),
            ElementType::Int8 => i8::try_from(value).is_ok(),
            ElementType::Int16 => i16::try_from(value).is_ok(),
            ElementType::Uint8
            | ElementType::Float8E4M3FN
            | ElementType::Float8E4M3FNUZ
            | ElementType::Float8E5M2
            | ElementType::Float8E5M2FNUZ
            | ElementType::Float8E8M0
            | ElementType::Uint4
            | ElementType::Float4E2M1
            | ElementType::Uint2 => u8::try_from(value).is_ok(),
            // Writers give the byte that such elements fill with a sign or without.
            ElementType::Int4 | ElementType::Int2 => (-128..=255).contains(&value),
            ElementType::Uint16 | ElementType::Float16 | ElementType::Bfloat16 => {
                u16::try_from(value).is_ok()
            }
            ElementType::Uint32 => u32::try_from(value).is_ok(),
            ElementType::Int32
            | ElementType::Int64
            | ElementType::Uint64
            | ElementType::Float32
            | ElementType::Float64 => true,
        };
        if !fits {
            let index = self.bytes.len() / self.element.unit();
            return Err(TensorProblem::Range { index, value, element: self.element });
        }
        self.bytes.extend_from_slice(&value.to_le_bytes()[..self.element.unit()]);
        Ok(())
    }
}
