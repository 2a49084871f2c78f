use super::{BrokenVarint, Field, Reader, Run, Varints, WireError};

fn fields(bytes: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
    let mut reader = Reader::new("M", bytes);
    std::iter::from_fn(|| reader.next_field().transpose()).collect()
}

fn error(bytes: &[u8]) -> String {
    fields(bytes).unwrap_err().to_string()
}

#[test]
fn reads_every_wire_type() {
    let mut bytes = vec![0x08, 0x96, 0x01]; // 1: varint 150
    bytes.extend([0x12, 2, b'h', b'i']); // 2: bytes
    bytes.extend([0x1d, 0, 0, 0x80, 0x3f]); // 3: 32 bits
    bytes.extend([0x21, 1, 0, 0, 0, 0, 0, 0, 0]); // 4: 64 bits
    let fields = fields(&bytes).unwrap();
    assert_eq!(fields.iter().map(|field| field.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(fields[0].int64(), Ok(150));
    assert_eq!(fields[1].string(), Ok("hi"));
    assert_eq!(fields[2].float(), Ok(1.0));
    assert_eq!(fields[3].run(), Run::Fixed64([1, 0, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn negative_numbers_take_ten_bytes() {
    let mut bytes = vec![0x08];
    bytes.extend([0xff; 9]);
    bytes.push(1);
    let field = fields(&bytes).unwrap()[0];
    assert_eq!((field.int64(), field.int32()), (Ok(-1), Ok(-1)));
    bytes[10] = 2;
    assert_eq!(error(&bytes), "byte 11: M has a number of more than 64 bits");
    bytes[10] = 0xff;
    assert_eq!(error(&bytes), "byte 1: M has a number of more than 64 bits");
}

#[test]
fn what_ends_early_says_where() {
    assert_eq!(error(&[0x80]), "byte 0: M ends in the middle of a field");
    assert_eq!(error(&[0x08]), "byte 1: M ends in the middle of a field");
    assert_eq!(error(&[0x1d, 0, 0]), "byte 1: M ends in the middle of a field");
    assert_eq!(error(&[0x21, 0]), "byte 1: M ends in the middle of a field");
    assert_eq!(error(&[0x12, 3, 1, 2]), "byte 2: M has a field of 3 bytes where 2 are left");
    let mut bytes = vec![0x12];
    bytes.extend([0xff; 9]);
    bytes.push(1);
    assert!(error(&bytes).contains("a field of 18446744073709551615 bytes where 0 are left"));
}

#[test]
fn groups_and_impossible_tags_are_refused() {
    for tag in [0x0b, 0x0c, 0x0e, 0x0f, 0x00, 0x02] {
        assert_eq!(
            error(&[tag, 0]),
            format!("byte 1: M has a field with the impossible tag {tag}")
        );
    }
    assert!(error(&[0x80, 0x80, 0x80, 0x80, 0x10, 0]).contains("impossible tag 4294967296"));
}

#[test]
fn a_field_of_the_wrong_kind_says_what_was_expected() {
    let bytes = [0x08, 1, 0x12, 1, 0xff];
    let fields = fields(&bytes).unwrap();
    let text = fields[0].string().unwrap_err().to_string();
    assert_eq!(text, "byte 2: field 1 of M is an integer, expected bytes");
    assert_eq!(fields[1].string().unwrap_err().to_string(), "byte 5: field 2 of M is not UTF-8");
    assert!(fields[1].floats_into(&mut Vec::new()).is_err());
    assert!(fields[1].int64s_into(&mut Vec::new()).is_err());
}

#[test]
fn repeated_numbers_may_be_packed_or_not() {
    let bytes = [0x08, 1, 0x0a, 3, 2, 0xac, 0x02];
    let mut numbers = Vec::new();
    for field in fields(&bytes).unwrap() {
        field.int64s_into(&mut numbers).unwrap();
    }
    assert_eq!(numbers, [1, 2, 300]);
    let bytes = [0x0d, 0, 0, 0x80, 0x3f, 0x0a, 4, 0, 0, 0, 0x40];
    let mut numbers = Vec::new();
    for field in fields(&bytes).unwrap() {
        field.floats_into(&mut numbers).unwrap();
    }
    assert_eq!(numbers, [1.0, 2.0]);
}

#[test]
fn packed_numbers_end_at_the_first_broken_one() {
    assert_eq!(Varints(&[1, 0x80]).collect::<Vec<_>>(), [Ok(1), Err(BrokenVarint)]);
    assert_eq!(Varints(&[0xff; 20]).collect::<Vec<_>>(), [Err(BrokenVarint)]);
}

#[test]
fn depth_is_limited_and_places_are_those_of_the_file() {
    // Each level is one byte of tag and up to three of length around the next.
    let mut bytes = Vec::new();
    for _ in 0..200 {
        let mut length = bytes.len();
        let mut outer = vec![0x0a];
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend(bytes);
        bytes = outer;
    }
    let mut reader = Reader::new("M", &bytes);
    for _ in 0..100 {
        reader = reader.next_field().unwrap().unwrap().message("M").unwrap();
    }
    assert!(reader.at() > 200);
    let field = reader.next_field().unwrap().unwrap();
    let text = field.message("M").unwrap_err().to_string();
    assert!(text.ends_with("messages are nested more than 100 deep"), "{text}");
}
