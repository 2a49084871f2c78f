//! The header of a `.npy` file: magic, version, and a Python dictionary as text.
//!
//! ```text
//! \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n
//! ```

use std::io::Read;

use super::{NpyProblem, NpyType};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy refuses headers beyond 10,000 bytes unless told otherwise.
const LONGEST: u64 = 1 << 16;
/// NumPy's own limit.
const MOST_DIMENSIONS: usize = 64;

/// What a header says.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) dtype: NpyType,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
    /// Bytes before the first element.
    pub(super) length: u64,
}

impl Header {
    /// Reads a header from a stream of `available` bytes.
    pub(super) fn read(input: &mut impl Read, available: u64) -> Result<Self, NpyProblem> {
        let mut start = [0; 8];
        if available < 10 {
            return Err(NpyProblem::Magic);
        }
        input.read_exact(&mut start)?;
        if start[..6] != MAGIC[..] {
            return Err(NpyProblem::Magic);
        }
        let (claimed, text_at) = match (start[6], start[7]) {
            (1, 0) => (u64::from(u16::from_le_bytes(read_bytes(input)?)), 10),
            (2 | 3, 0) => (u64::from(u32::from_le_bytes(read_bytes(input)?)), 12),
            (major, minor) => return Err(NpyProblem::Version(major, minor)),
        };
        let length = text_at + claimed;
        if claimed > LONGEST || length > available {
            return Err(NpyProblem::HeaderLength { claimed });
        }
        let mut text = Vec::new();
        input.take(claimed).read_to_end(&mut text)?;
        parse(&text, length)
    }
}

fn read_bytes<const N: usize>(input: &mut impl Read) -> Result<[u8; N], NpyProblem> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn parse(text: &[u8], length: u64) -> Result<Header, NpyProblem> {
    let mut cursor = Cursor { text, at: 0 };
    let (mut element, mut fortran_order, mut shape) = (None, None, None);
    cursor.expect(b'{', "'{'")?;
    while !cursor.eat(b'}') {
        let key = cursor.string("a key in quotes")?;
        cursor.expect(b':', "':'")?;
        match key {
            b"descr" if matches!(cursor.peek(), Some(b'[')) => return Err(NpyProblem::Structured),
            b"descr" => element = Some(element_type(cursor.string("an element type in quotes")?)?),
            b"fortran_order" => fortran_order = Some(cursor.boolean()?),
            b"shape" => shape = Some(cursor.tuple()?),
            _ => return Err(cursor.error("'descr', 'fortran_order' or 'shape'")),
        }
        if !cursor.eat(b',') && cursor.peek() != Some(b'}') {
            return Err(cursor.error("',' or '}'"));
        }
    }
    if cursor.peek().is_some() {
        return Err(cursor.error("nothing but spaces after the '}'"));
    }
    let (dtype, big_endian) = element.ok_or(NpyProblem::MissingKey("descr"))?;
    let fortran_order = fortran_order.ok_or(NpyProblem::MissingKey("fortran_order"))?;
    let shape = shape.ok_or(NpyProblem::MissingKey("shape"))?;
    Ok(Header { dtype, big_endian, fortran_order, shape, length })
}

/// The type and whether it is big-endian, from NumPy's code such as `<f4`.
fn element_type(code: &[u8]) -> Result<(NpyType, bool), NpyProblem> {
    let (order, kind) = match code {
        [order @ (b'<' | b'>' | b'|' | b'='), kind @ ..] => (*order, kind),
        kind => (b'=', kind),
    };
    let dtype = match kind {
        b"b1" | b"?" => NpyType::Bool,
        b"i1" => NpyType::I8,
        b"u1" => NpyType::U8,
        b"i2" => NpyType::I16,
        b"i4" => NpyType::I32,
        b"i8" => NpyType::I64,
        b"u2" => NpyType::U16,
        b"u4" => NpyType::U32,
        b"u8" => NpyType::U64,
        b"f2" => NpyType::F16,
        // Two bytes of no kind that NumPy knows: how the package ml_dtypes has it written.
        b"V2" | b"bfloat16" => NpyType::BF16,
        b"f4" => NpyType::F32,
        b"f8" => NpyType::F64,
        _ => {
            let name = String::from_utf8_lossy(code).into_owned();
            return Err(NpyProblem::ElementType(name));
        }
    };
    Ok((dtype, order == b'>'))
}

/// The code that NumPy writes for a type.
fn element_code(dtype: NpyType) -> &'static str {
    match dtype {
        NpyType::Bool => "|b1",
        NpyType::I8 => "|i1",
        NpyType::U8 => "|u1",
        NpyType::I16 => "<i2",
        NpyType::I32 => "<i4",
        NpyType::I64 => "<i8",
        NpyType::U16 => "<u2",
        NpyType::U32 => "<u4",
        NpyType::U64 => "<u8",
        NpyType::F16 => "<f2",
        NpyType::BF16 => "<V2",
        NpyType::F32 => "<f4",
        NpyType::F64 => "<f8",
    }
}

/// A version 1 header, padded so that the elements begin at a multiple of 64 bytes.
pub(super) fn write(dtype: NpyType, shape: &[usize]) -> Result<Vec<u8>, NpyProblem> {
    if shape.len() > MOST_DIMENSIONS {
        return Err(NpyProblem::Rank { rank: shape.len() });
    }
    let mut dims = String::new();
    for (index, dim) in shape.iter().enumerate() {
        // Python writes a one-tuple with a comma behind.
        let comma = if index + 1 < shape.len() { ", " } else { "" };
        dims += &format!("{dim}{comma}");
    }
    if shape.len() == 1 {
        dims.push(',');
    }
    let code = element_code(dtype);
    let text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({dims}), }}");
    let padding = 63 - (10 + text.len()) % 64;
    let length = u16::try_from(text.len() + padding + 1)
        .map_err(|_| NpyProblem::Rank { rank: shape.len() })?;
    let mut header = Vec::with_capacity(10 + usize::from(length));
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header.resize(header.len() + padding, b' ');
    header.push(b'\n');
    Ok(header)
}

/// A position in the header's text. Every reading step skips white space first.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyProblem> {
        if self.eat(byte) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn string(&mut self, expected: &'static str) -> Result<&'a [u8], NpyProblem> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else { return Err(self.error(expected)) };
        let rest = &self.text[self.at + 1..];
        let Some(length) = rest.iter().position(|&byte| byte == quote) else {
            return Err(self.error("a closing quote"));
        };
        self.at += length + 2;
        Ok(&rest[..length])
    }

    fn boolean(&mut self) -> Result<bool, NpyProblem> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<usize>, NpyProblem> {
        self.expect(b'(', "'('")?;
        let mut dims = Vec::new();
        while !self.eat(b')') {
            dims.push(self.integer()?);
            if dims.len() > MOST_DIMENSIONS {
                return Err(NpyProblem::Rank { rank: dims.len() });
            }
            if !self.eat(b',') && self.peek() != Some(b')') {
                return Err(self.error("',' or ')'"));
            }
        }
        Ok(dims)
    }

    fn integer(&mut self) -> Result<usize, NpyProblem> {
        let expected = "a dimension of at most 64 bits";
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.error(expected));
        }
        let mut value = 0usize;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(usize::from(digit - b'0')))
                .ok_or_else(|| self.error(expected))?;
            self.at += 1;
        }
        // Python 2 wrote long integers with an L behind.
        self.at += usize::from(self.text.get(self.at) == Some(&b'L'));
        Ok(value)
    }

    fn error(&self, expected: &'static str) -> NpyProblem {
        NpyProblem::HeaderSyntax { at: self.at, expected }
    }
}
