use super::*;

/// The element that a word of printed text stands for.
fn read(text: &str) -> Element<'_> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    match digits {
        "true" => Element::Bool(true),
        "false" => Element::Bool(false),
        "inf" => Element::Infinity(is_negative),
        "nan" => Element::Nan,
        _ => match digits.strip_prefix("nan(0x").and_then(|rest| rest.strip_suffix(')')) {
            Some(hex) => Element::NanBits(u64::from_str_radix(hex, 16).unwrap()),
            None => Element::Number(is_negative, digits),
        },
    }
}

fn assert_exact(dtype: DType, bytes: &[u8], count: usize) {
    let mut elements = Elements::new(dtype);
    for index in 0..count {
        let mut text = String::new();
        write(&mut text, dtype, bytes, index);
        elements.push(read(&text)).unwrap_or_else(|| panic!("{dtype}: {text}"));
    }
    assert_eq!(elements.finish(), bytes, "{dtype}");
}

#[test]
fn every_narrow_value_is_exact() {
    let bytes: Vec<u8> = (0..=255).collect();
    for dtype in DType::all().filter(|dtype| dtype.bits() <= 8) {
        assert_exact(dtype, &bytes, 256 * 8 / dtype.bits() as usize);
    }
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for dtype in [DType::F16, DType::BF16, DType::I16, DType::U16] {
        assert_exact(dtype, &bytes, 1 << 16);
    }
}

#[test]
fn wide_values_are_exact() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::new();
    for _ in 0..4096 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&(state ^ (state >> 31)).to_le_bytes());
    }
    bytes.extend_from_slice(&f64::NEG_INFINITY.to_le_bytes());
    bytes.extend_from_slice(&(-0.0f64).to_le_bytes());
    bytes.extend_from_slice(&f64::NAN.to_le_bytes());
    for dtype in [DType::F64, DType::I64, DType::U64] {
        assert_exact(dtype, &bytes, bytes.len() / 8);
    }
    for dtype in [DType::F32, DType::I32, DType::U32] {
        assert_exact(dtype, &bytes, bytes.len() / 4);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let bits = |dtype, text| to_bits(dtype, read(text));
    assert_eq!(bits(DType::I4, "7"), Some(7));
    assert_eq!(bits(DType::I4, "-8"), Some(8));
    assert_eq!(bits(DType::I4, "8"), None);
    assert_eq!(bits(DType::U8, "-1"), None);
    assert_eq!(bits(DType::U64, "18446744073709551615"), Some(u64::MAX));
    assert_eq!(bits(DType::U64, "18446744073709551616"), None);
    assert_eq!(bits(DType::I32, "1.5"), None);
    assert_eq!(bits(DType::BOOL, "true"), Some(1));
    assert_eq!(bits(DType::F32, "true"), None);
    assert_eq!(bits(DType::F8E4M3, "inf"), None);
    assert_eq!(bits(DType::F8E4M3, "1000"), None);
    assert_eq!(bits(DType::F16, "nan(0x1234)"), None);
}

#[test]
fn narrow_floats_round_to_even() {
    let bits = |dtype, text| to_bits(dtype, read(text)).unwrap();
    assert_eq!(bits(DType::F8E5M2, "1e9"), 0x7c);
    assert_eq!(bits(DType::F8E5M2, "57344"), 0x7b);
    assert_eq!(bits(DType::F8E5M2, "-0"), 0x80);
    // Halfway between 1 and 1.125, and between 1.125 and 1.25.
    assert_eq!(bits(DType::F8E4M3, "1.0625"), 0x38);
    assert_eq!(bits(DType::F8E4M3, "1.1875"), 0x3a);
}
