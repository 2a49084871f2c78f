//! What changes in a file.

use std::ops::Range;

use tenon_compiler::testing::Random;

/// A file with some things changed, some of them by `change`.
pub fn mangled(files: &[Vec<u8>], seed: u64, change: fn(&mut Vec<u8>, &mut Random)) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = files[random.below(files.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(24)).min(bytes.len());
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] = random.any() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            4 => {
                let other = &files[random.below(files.len())];
                let from = random.below(other.len() + 1);
                let piece = other[from..(from + 32).min(other.len())].to_vec();
                bytes.splice(at..end, piece);
            }
            5 => word(&mut bytes, &mut random),
            _ => change(&mut bytes, &mut random),
        }
    }
    bytes
}

/// A number becomes an extreme, or a word takes the place of another one.
pub fn word(bytes: &mut Vec<u8>, random: &mut Random) {
    if random.chance(50) {
        return number(bytes, random);
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.%@".contains(byte);
    let mut find = |bytes: &[u8]| {
        let at = random.below(bytes.len() + 1);
        let start = bytes[at..].iter().position(is_letter).map(|off| at + off)?;
        Some(start..start + bytes[start..].iter().take_while(|byte| is_letter(byte)).count())
    };
    if let (Some(from), Some(to)) = (find(bytes), find(bytes)) {
        let piece = bytes[from].to_vec();
        bytes.splice(to, piece);
    }
}

/// A run of digits becomes an extreme.
fn number(bytes: &mut Vec<u8>, random: &mut Random) {
    let extremes =
        ["0", "-1", "9223372036854775807", "18446744073709551616", "1e999", "4294967296"];
    let at = random.below(bytes.len() + 1);
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|off| at + off) else {
        return;
    };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + digits, random.pick(&extremes).bytes());
}

/// The header of an array changes, and its length follows.
pub fn npy_header(bytes: &mut Vec<u8>, random: &mut Random) {
    let wide = bytes.get(6).is_some_and(|&version| version > 1);
    header(bytes, 8..if wide { 12 } else { 10 }, random);
}

/// The header of a file of weights changes, and its length follows.
pub fn weights_header(bytes: &mut Vec<u8>, random: &mut Random) {
    header(bytes, 0..8, random);
}

/// A header changes whose length stands before it.
fn header(bytes: &mut Vec<u8>, length: Range<usize>, random: &mut Random) {
    let Some(said) = bytes.get(length.clone()) else { return };
    let said = little(said);
    let end = (length.end as u64).checked_add(said).filter(|&end| end <= bytes.len() as u64);
    let Some(end) = end else { return };
    let inside = length.end..end as usize;
    let mut header = bytes[inside.clone()].to_vec();
    word(&mut header, random);
    let said = (header.len() as u64).to_le_bytes();
    bytes.splice(inside, header);
    bytes.splice(length.clone(), said[..length.len()].iter().copied());
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The array of an entry changes, and what its archive says of it follows.
pub fn npz_entry(bytes: &mut Vec<u8>, random: &mut Random) {
    let starts: Vec<usize> = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, four)| four == b"PK\x03\x04")
        .map(|(at, _)| at)
        .collect();
    let Some(&start) = (!starts.is_empty()).then(|| &starts[random.below(starts.len())]) else {
        return;
    };
    let Some(head) = bytes.get(start..start + 30) else { return };
    let (stored, size) = (little(&head[8..10]) == 0, little(&head[18..22]) as usize);
    let begin = start + 30 + little(&head[26..28]) as usize + little(&head[28..30]) as usize;
    if !stored || begin.checked_add(size).is_none_or(|end| end > bytes.len()) {
        return;
    }
    // In place, as long as it was: nothing else moves.
    let mut array = bytes[begin..begin + size].to_vec();
    npy_header(&mut array, random);
    array.resize(size, 0);
    let (old, new) = (crc(&bytes[begin..begin + size]).to_le_bytes(), crc(&array).to_le_bytes());
    bytes.splice(begin..begin + size, array);
    let sums: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, four)| *four == old).map(|(at, _)| at).collect();
    sums.into_iter().for_each(|at| bytes[at..at + 4].copy_from_slice(&new));
}

/// The checksum of zip.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum: u32, _| sum >> 1 ^ (0xedb8_8320 * (sum & 1)))
    })
}

/// A field of a message in the form of protocol buffers.
struct Field {
    whole: Range<usize>,
    /// What stands before it: its number and its form.
    tag: Range<usize>,
    payload: Range<usize>,
    form: u64,
}

/// A field of a message, at any depth, changes, goes, comes twice or takes the place of another one, and the lengths of
/// messages around it follow.
pub fn field(bytes: &mut Vec<u8>, random: &mut Random) {
    let (mut around, mut inside) = (Vec::new(), 0..bytes.len());
    let (field, siblings) = loop {
        let Some(mut fields) = fields(bytes, inside).filter(|fields| !fields.is_empty()) else {
            return;
        };
        let field = fields.swap_remove(random.below(fields.len()));
        let is_message = field.form == 2
            && self::fields(bytes, field.payload.clone()).is_some_and(|inner| !inner.is_empty());
        if !is_message || random.chance(20) {
            break (field, fields);
        }
        inside = field.payload.clone();
        around.push(field);
    };
    let (own, payload) = (bytes[field.whole.clone()].to_vec(), &bytes[field.payload.clone()]);
    let mut piece = match random.below(6) {
        0 => Vec::new(),
        1 => [&own[..], &own].concat(),
        2 if !siblings.is_empty() => {
            let other = &siblings[random.below(siblings.len())];
            bytes[other.whole.clone()].to_vec()
        }
        _ if field.form == 0 => {
            let values = [
                0,
                1,
                2,
                7,
                255,
                1 << 31,
                u64::MAX,
                i64::MAX as u64,
                random.any(),
                random.any() % 32,
            ];
            [&bytes[field.tag.clone()], &varint(random.pick(&values))].concat()
        }
        _ if field.form == 2 => {
            let mut changed = payload.to_vec();
            match random.below(3) {
                0 => word(&mut changed, random),
                1 => changed.truncate(random.below(changed.len() + 1)),
                _ => changed.extend(varint(random.any() % 8)),
            }
            long(&bytes[field.tag.clone()], &changed)
        }
        _ => [&bytes[field.tag.clone()], &random.any().to_le_bytes()[..payload.len()]].concat(),
    };
    let mut at = field.whole;
    for outer in around.into_iter().rev() {
        let before = &bytes[outer.payload.start..at.start];
        let payload = [before, &piece, &bytes[at.end..outer.payload.end]].concat();
        piece = long(&bytes[outer.tag], &payload);
        at = outer.whole;
    }
    bytes.splice(at, piece);
}

/// The fields of a message, where it is one.
fn fields(bytes: &[u8], inside: Range<usize>) -> Option<Vec<Field>> {
    let (mut fields, mut at, bytes) = (Vec::new(), inside.start, &bytes[..inside.end]);
    while at < inside.end {
        let (tag, start) = read_varint(bytes, at)?;
        let (start_of, end) = match tag & 7 {
            0 => (start, read_varint(bytes, start)?.1),
            1 => (start, start + 8),
            5 => (start, start + 4),
            2 => {
                let (length, start) = read_varint(bytes, start)?;
                (start, start.checked_add(usize::try_from(length).ok()?)?)
            }
            _ => return None,
        };
        if end > inside.end || tag >> 3 == 0 {
            return None;
        }
        fields.push(Field {
            whole: at..end,
            tag: at..start,
            payload: start_of..end,
            form: tag & 7,
        });
        at = end;
    }
    Some(fields)
}

fn read_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let length = bytes[at..].iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let parts = bytes[at..at + length].iter().enumerate();
    let value = parts.fold(0, |value, (part, &byte)| value | u64::from(byte & 0x7f) << (7 * part));
    Some((value, at + length))
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field with a length.
fn long(tag: &[u8], payload: &[u8]) -> Vec<u8> {
    [tag, &varint(payload.len() as u64), payload].concat()
}
