//! The protobuf wire format, read in place.
//!
//! A [`Reader`] walks over the fields of one message and allocates nothing: strings, bytes and
//! nested messages are borrowed from the input. It never recurses; a nested message is another
//! `Reader`, one level deeper, and the depth is limited as in protobuf's own readers. A length is
//! compared with what is left of its message before it is used. Groups, which ONNX has none of,
//! are refused.
//!
//! A field of a known number with an unexpected wire type is an error, where protobuf would take
//! it for an unknown field: in a model it means that the file is broken.

/// Messages inside messages. Protobuf's own limit.
const MAX_DEPTH: u8 = 100;

/// The fields of one message, in the order of the file.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    message: &'static str,
    rest: &'a [u8],
    /// The address of the file's first byte; positions in messages are relative to it.
    origin: usize,
    depth: u8,
}

/// One field: its number, and a value that is not interpreted yet.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    pub number: u32,
    value: Value<'a>,
    /// The message it stands in, read up to behind this field.
    reader: Reader<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

/// A file that is no sound protobuf message, or lacks what its message must have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("byte {at}: {message} ends in the middle of a field")]
    Truncated { at: usize, message: &'static str },
    #[error("byte {at}: {message} has a number of more than 64 bits")]
    Varint { at: usize, message: &'static str },
    #[error("byte {at}: {message} has a field of {length} bytes where {left} are left")]
    Length { at: usize, message: &'static str, length: u64, left: usize },
    #[error("byte {at}: {message} has a field with the impossible tag {tag}")]
    Tag { at: usize, message: &'static str, tag: u64 },
    #[error("byte {at}: field {number} of {message} is {found}, expected {expected}")]
    Kind {
        at: usize,
        message: &'static str,
        number: u32,
        found: &'static str,
        expected: &'static str,
    },
    #[error("byte {at}: field {number} of {message} is not UTF-8")]
    Utf8 { at: usize, message: &'static str, number: u32 },
    #[error("byte {at}: messages are nested more than {MAX_DEPTH} deep")]
    Depth { at: usize },
    #[error("byte {at}: {message} {problem}")]
    Content { at: usize, message: &'static str, problem: String },
}

impl<'a> Reader<'a> {
    /// Reads `bytes` as the outermost message, called `message` in errors.
    pub fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self { message, rest: bytes, origin: bytes.as_ptr().addr(), depth: 0 }
    }

    /// The next field, or `None` at the end of the message.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag_error =
            |reader: &Self, tag| WireError::Tag { at: reader.at(), message: reader.message, tag };
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| 0 < number && number < 1 << 29);
        let number = number.ok_or_else(|| tag_error(self, tag))?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.fixed()?),
            2 => {
                let length = self.varint()?;
                let bytes =
                    usize::try_from(length).ok().and_then(|n| self.rest.split_at_checked(n));
                let Some((bytes, rest)) = bytes else {
                    let (at, left) = (self.at(), self.rest.len());
                    return Err(WireError::Length { at, message: self.message, length, left });
                };
                self.rest = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Fixed32(self.fixed()?),
            _ => return Err(tag_error(self, tag)),
        };
        Ok(Some(Field { number, value, reader: *self }))
    }

    /// An error about what the message holds, placed where the reader stands.
    pub fn error(&self, problem: impl Into<String>) -> WireError {
        WireError::Content { at: self.at(), message: self.message, problem: problem.into() }
    }

    /// Where in the file the reader stands.
    pub fn at(&self) -> usize {
        self.rest.as_ptr().addr() - self.origin
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, WireError> {
        match take_varint(&mut self.rest) {
            Some(Ok(value)) => Ok(value),
            Some(Err(TooLong)) => Err(WireError::Varint { at: self.at(), message: self.message }),
            None => Err(WireError::Truncated { at: self.at(), message: self.message }),
        }
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let Some((value, rest)) = self.rest.split_first_chunk() else {
            return Err(WireError::Truncated { at: self.at(), message: self.message });
        };
        self.rest = rest;
        Ok(*value)
    }
}

impl<'a> Field<'a> {
    /// The field as bytes.
    #[inline]
    pub fn bytes(&self) -> Result<&'a [u8], WireError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.kind_error("bytes")),
        }
    }

    /// The field as text.
    #[inline]
    pub fn string(&self) -> Result<&'a str, WireError> {
        let Reader { message, .. } = self.reader;
        str::from_utf8(self.bytes()?).map_err(|_| WireError::Utf8 {
            at: self.reader.at(),
            message,
            number: self.number,
        })
    }

    /// The field as a nested message.
    #[inline]
    pub fn message(&self, message: &'static str) -> Result<Reader<'a>, WireError> {
        let Reader { origin, depth, .. } = self.reader;
        if depth == MAX_DEPTH {
            return Err(WireError::Depth { at: self.reader.at() });
        }
        Ok(Reader { message, rest: self.bytes()?, origin, depth: depth + 1 })
    }

    /// The field as an `int64`.
    #[inline]
    pub fn int64(&self) -> Result<i64, WireError> {
        match self.value {
            Value::Varint(value) => Ok(value.cast_signed()),
            _ => Err(self.kind_error("an integer")),
        }
    }

    /// The field as an `int32` or an enumeration: the low bits count, as protobuf has it.
    pub fn int32(&self) -> Result<i32, WireError> {
        Ok(self.int64()? as i32)
    }

    /// The field as a `float`.
    pub fn float(&self) -> Result<f32, WireError> {
        match self.value {
            Value::Fixed32(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(self.kind_error("a float")),
        }
    }

    /// One or many elements of a `repeated float`.
    pub fn floats_into(&self, out: &mut Vec<f32>) -> Result<(), WireError> {
        let Value::Bytes(bytes) = self.value else {
            out.push(self.float()?);
            return Ok(());
        };
        let (floats, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(self.kind_error("floats of four bytes each"));
        }
        out.extend(floats.iter().map(|&float| f32::from_le_bytes(float)));
        Ok(())
    }

    /// One or many elements of a `repeated int64`.
    pub fn int64s_into(&self, out: &mut Vec<i64>) -> Result<(), WireError> {
        let Value::Bytes(bytes) = self.value else {
            out.push(self.int64()?);
            return Ok(());
        };
        for value in Varints(bytes) {
            out.push(value.map_err(|BrokenVarint| self.kind_error("integers"))?.cast_signed());
        }
        Ok(())
    }

    /// The elements of any repeated field of numbers, not decoded.
    pub fn run(&self) -> Run<'a> {
        match self.value {
            Value::Bytes(bytes) => Run::Packed(bytes),
            Value::Varint(value) => Run::Varint(value),
            Value::Fixed32(value) => Run::Fixed32(value),
            Value::Fixed64(value) => Run::Fixed64(value),
        }
    }

    /// As [`Reader::error`], placed behind this field.
    pub fn error(&self, problem: impl Into<String>) -> WireError {
        self.reader.error(problem)
    }

    fn kind_error(&self, expected: &'static str) -> WireError {
        let found = match self.value {
            Value::Varint(_) => "an integer",
            Value::Fixed64(_) => "a 64-bit value",
            Value::Bytes(_) => "of other bytes",
            Value::Fixed32(_) => "a 32-bit value",
        };
        let Reader { message, .. } = self.reader;
        WireError::Kind { at: self.reader.at(), message, number: self.number, found, expected }
    }
}

/// Consecutive elements of a repeated field of numbers: many that are packed, or one that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run<'a> {
    Packed(&'a [u8]),
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
}

/// The numbers of a packed field of varints. Ends after the first error.
pub struct Varints<'a>(pub &'a [u8]);

/// A varint that ends early or has more than 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenVarint;

impl Iterator for Varints<'_> {
    type Item = Result<u64, BrokenVarint>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let value = take_varint(&mut self.0);
        if !matches!(value, Some(Ok(_))) {
            self.0 = &[];
        }
        Some(value.and_then(Result::ok).ok_or(BrokenVarint))
    }
}

struct TooLong;

/// Takes a number off the front; `None` when the bytes end before it does.
#[inline]
fn take_varint(rest: &mut &[u8]) -> Option<Result<u64, TooLong>> {
    if let [byte @ 0..0x80, tail @ ..] = *rest {
        *rest = tail;
        return Some(Ok(u64::from(*byte)));
    }
    let mut value = 0;
    for (index, &byte) in rest.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            // The tenth byte has room for one bit.
            let fits = index < 9 || byte <= 1;
            *rest = &rest[index + 1..];
            return Some(if fits { Ok(value) } else { Err(TooLong) });
        }
    }
    if rest.len() < 10 { None } else { Some(Err(TooLong)) }
}

#[cfg(test)]
mod tests;
