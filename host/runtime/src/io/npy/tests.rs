use std::{fs, path::Path};

use super::{Array, ArrayView, NpyProblem, NpyType, read_npy, write_npy};

/// A `.npy` file with the given header text and data.
fn file(version: u8, text: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    let length = u32::try_from(text.len()).unwrap().to_le_bytes();
    bytes.extend(&length[..if version == 1 { 2 } else { 4 }]);
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Array, NpyProblem> {
    Array::decode(&mut &bytes[..], bytes.len() as u64)
}

fn problem(text: &str, data: &[u8]) -> String {
    decode(&file(1, text, data)).unwrap_err().to_string()
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
}

#[test]
fn reads_every_version() {
    let text = header("<f4", "False", "(2,)");
    let data: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    for version in 1..=3 {
        let array = decode(&file(version, &text, &data)).unwrap();
        assert_eq!((array.dtype, array.shape, array.data), (NpyType::F32, vec![2], data.clone()));
    }
    let message = decode(&file(4, &text, &data)).unwrap_err().to_string();
    assert!(message.starts_with("version 4.0"), "{message}");
}

#[test]
fn what_is_written_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    use NpyType::*;
    for dtype in [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64] {
        for shape in [vec![], vec![3], vec![2, 1, 4], vec![0, 5]] {
            let length = shape.iter().product::<usize>() * dtype.bytes();
            let data = (0..length).map(|at| (at % 2) as u8).collect();
            let array = Array { dtype, shape, data };
            write_npy(&path, array.view()).unwrap();
            assert_eq!(read_npy(&path).unwrap(), array);
            let elements_at = fs::read(&path).unwrap().len() - array.data.len();
            assert_eq!(elements_at % 64, 0);
        }
    }
}

#[test]
fn columns_become_rows() {
    // Column-major [[1, 2, 3], [4, 5, 6]].
    let text = header("|u1", "True", "(2, 3)");
    let array = decode(&file(1, &text, &[1, 4, 2, 5, 3, 6])).unwrap();
    assert_eq!(array.data, [1, 2, 3, 4, 5, 6]);
    let text = header(">i2", "True", "(2, 2, 2)");
    let data: Vec<u8> = (0..8i16).flat_map(i16::to_be_bytes).collect();
    let array = decode(&file(1, &text, &data)).unwrap();
    let expected: Vec<u8> =
        [0i16, 4, 2, 6, 1, 5, 3, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(array.data, expected);
}

/// As `numpy.save` writes an array of `ml_dtypes.bfloat16`, old and new.
#[test]
fn bfloat16_is_two_bytes_of_no_kind() {
    for (descr, data) in [("<V2", [0x80, 0x3f]), ("|V2", [0x80, 0x3f]), (">V2", [0x3f, 0x80])] {
        let array = decode(&file(1, &header(descr, "False", "()"), &data)).unwrap();
        assert_eq!((array.dtype, array.data), (NpyType::BF16, vec![0x80, 0x3f]));
    }
}

#[test]
fn unusual_spellings_are_read() {
    let text = "{\"shape\":(2L ,3),'fortran_order' :False,\"descr\":\"?\"}";
    let array = decode(&file(1, text, &[0, 1, 2, 0, 0, 255])).unwrap();
    assert_eq!(array.dtype, NpyType::Bool);
    assert_eq!(array.data, [0, 1, 1, 0, 0, 1]);
}

#[test]
fn sizes_that_lie_are_refused_before_memory_is_asked_for() {
    let huge = header("<f8", "False", "(1000000, 1000000, 1000)");
    assert!(problem(&huge, &[0; 8]).contains("takes 8000000000000000 bytes, but there are 8"));
    let overflow = header("<f8", "False", "(4294967296, 4294967296)");
    assert!(problem(&overflow, &[]).contains("more elements than any memory"));
    let overflow = header("<f8", "True", "(99999999999999999999, 0)");
    assert!(problem(&overflow, &[]).contains("expected a dimension of at most 64 bits"));
    // No product is formed past a 0, so this array is empty and fine.
    let empty = header("<f8", "True", "(0, 4294967296, 4294967296)");
    assert!(decode(&file(1, &empty, &[])).unwrap().data.is_empty());
    assert!(
        problem(&header("<f4", "False", "(2,)"), &[0; 9])
            .contains("takes 8 bytes, but there are 9")
    );
    let rank = format!("({})", "1,".repeat(65));
    assert!(problem(&header("<f4", "False", &rank), &[0; 4]).contains("65 dimensions"));
    let mut long = file(2, "{}", &[]);
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(decode(&long).unwrap_err().to_string().contains("the header claims 4294967295 bytes"));
}

#[test]
fn a_stream_shorter_than_announced_is_an_error() {
    let bytes = file(1, &header("|u1", "False", "(1000000,)"), &[1, 2, 3]);
    let announced = bytes.len() as u64 - 3 + 1_000_000;
    let message = Array::decode(&mut &bytes[..], announced).unwrap_err().to_string();
    assert_eq!(message, "the shape [1000000] takes 1000000 bytes, but there are 3");
}

#[test]
fn other_element_types_are_named() {
    assert!(problem(&header("<V4", "False", "()"), &[0; 4]).contains("'<V4' is not supported"));
    assert!(problem(&header("<c8", "False", "()"), &[0; 8]).contains("'<c8' is not supported"));
    assert!(problem(&header("|O", "False", "()"), &[]).contains("'|O' is not supported"));
    let fields = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}";
    assert!(problem(fields, &[0; 4]).contains("named fields"));
}

#[test]
fn broken_headers_say_where() {
    assert_eq!(decode(b"not numpy").unwrap_err().to_string(), NpyProblem::Magic.to_string());
    assert_eq!(problem("", &[]), "the header is not understood at its byte 0: expected '{'");
    assert!(problem("{'descr': '<f4'}", &[]).contains("has no 'fortran_order'"));
    assert!(problem("{'descr': '<f4", &[]).contains("byte 10: expected a closing quote"));
    assert!(problem("{'shape': (1 2)}", &[]).contains("byte 13: expected ',' or ')'"));
    assert!(problem("{'shape': (-1,)}", &[]).contains("expected a dimension"));
    assert!(problem("{'x': 1}", &[]).contains("expected 'descr', 'fortran_order' or 'shape'"));
    let trailing = header("<f4", "False", "()") + "x";
    assert!(problem(&trailing, &[0; 4]).contains("nothing but spaces"));
}

#[test]
fn data_that_does_not_fit_its_shape_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let view = ArrayView { dtype: NpyType::F32, shape: &[2], data: &[0; 4] };
    let message = write_npy(&path, view).unwrap_err().to_string();
    assert!(message.ends_with("a.npy`: the shape [2] takes 8 bytes, but there are 4"), "{message}");
    assert!(!path.exists());
}

#[test]
fn a_missing_file_is_named() {
    let message = read_npy(Path::new("no/such.npy")).unwrap_err().to_string();
    assert!(message.starts_with("cannot open `no/such.npy`"), "{message}");
}

#[test]
fn no_damage_makes_it_panic() {
    let whole = file(1, &header("<i2", "True", "(2, 3)"), &[7; 12]);
    for length in 0..whole.len() {
        decode(&whole[..length]).unwrap_err();
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            let _ = decode(&damaged);
        }
    }
}
