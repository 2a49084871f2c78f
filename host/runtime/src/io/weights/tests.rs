use std::{collections::HashMap, fs, path::Path};

use safetensors::{Dtype, SafeTensors};

use super::{WeightView, Weights};
use crate::io::{FileError, Mapping, Outputs, sha256};

fn write_weights(
    path: &Path,
    tensors: &[(&str, WeightView<'_>)],
    metadata: HashMap<String, String>,
) -> Result<String, FileError> {
    let mut outputs = Outputs::default();
    let digest = super::write_weights(&mut outputs, path, tensors, metadata)?;
    outputs.publish()?;
    Ok(digest)
}

fn write_two(path: &Path) {
    let a: Vec<u8> = (0..6u8).collect();
    let b: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let a = WeightView { dtype: Dtype::I8, shape: &[2, 3], data: &a };
    let b = WeightView { dtype: Dtype::F32, shape: &[2], data: &b };
    let metadata = HashMap::from([("module".to_owned(), "digits".to_owned())]);
    write_weights(path, &[("a", a), ("b", b)], metadata).unwrap();
}

#[test]
fn what_is_written_reads_back_without_copies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    write_two(&path);
    let weights = Weights::open(&path).unwrap();
    assert_eq!(weights.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    let [a, b] = ["a", "b"].map(|name| weights.get(name).unwrap().clone());
    assert_eq!(weights.metadata()["module"], "digits");
    let message = weights.get("c").unwrap_err().to_string();
    assert!(message.ends_with("no tensor `c`; there are 2 others"), "{message}");
    drop(weights);
    assert_eq!(
        (a.dtype, &a.shape[..], &a.data[..]),
        (Dtype::I8, &[2, 3][..], &[0, 1, 2, 3, 4, 5][..])
    );
    assert_eq!(b.data.range().start % 64, 0);
    assert_eq!(a.data.range().start, b.data.range().end);
}

#[test]
fn others_read_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    write_two(&path);
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("a").unwrap().shape(), [2, 3]);
}

#[test]
fn no_tensors_make_a_file_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    write_weights(&path, &[], HashMap::new()).unwrap();
    assert_eq!(Weights::open(&path).unwrap().iter().len(), 0);
}

#[test]
fn the_digest_is_that_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["w.safetensors", "other"].map(|name| folder.path().join(name));
    let tensor = |data| [("x", WeightView { dtype: Dtype::U8, shape: &[2], data })];
    let [digest, foreign] = [(&path, &[1, 2]), (&other, &[1, 3])]
        .map(|(path, data)| write_weights(path, &tensor(data), HashMap::new()).unwrap());
    assert_eq!(digest, sha256(&fs::read(&path).unwrap()));
    Weights::open_exact(&path, &digest).unwrap();
    let message = Weights::open_exact(&path, &foreign).unwrap_err().to_string();
    assert!(message.contains("other weights than those of the text"), "{message}");

    // Between two renames of a writer, or when it was ended there.
    let aside = crate::io::outputs::aside(&path, &foreign);
    fs::rename(&other, &aside).unwrap();
    assert_eq!(Weights::open_exact(&path, &foreign).unwrap().get("x").unwrap().data[..], [1, 3]);
    fs::remove_file(&path).unwrap();
    Weights::open_exact(&path, &foreign).unwrap();
    let message = Weights::open_exact(&path, &digest).unwrap_err().to_string();
    assert!(message.starts_with("cannot open"), "{message}");
}

#[test]
fn mistakes_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let message = |tensors: &[(&str, WeightView<'_>)]| {
        write_weights(&path, tensors, HashMap::new()).unwrap_err().to_string()
    };
    let tensor = WeightView { dtype: Dtype::F32, shape: &[2], data: &[0; 4] };
    let text = message(&[("x", tensor)]);
    assert!(text.ends_with("tensor `x`: shape [2] of F32 does not take 4 bytes"), "{text}");
    let tensor = WeightView { dtype: Dtype::F32, shape: &[1], data: &[0; 4] };
    assert!(message(&[("x", tensor), ("x", tensor)]).ends_with("two tensors are called `x`"));
    let half = WeightView { dtype: Dtype::F4, shape: &[2], data: &[0] };
    assert!(message(&[("x", half)]).contains("smaller than a byte"));
    assert!(!path.exists());
}

/// A file with this header and `data` bytes behind it.
fn problem(header: &str, data: usize) -> String {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    Weights::read(&Mapping::in_memory(Path::new("w"), bytes)).unwrap_err().to_string()
}

#[test]
fn headers_that_lie_are_refused() {
    let short = Weights::read(&Mapping::in_memory(Path::new("w"), vec![0; 7])).unwrap_err();
    assert_eq!(short.to_string(), "not a safetensors file: 7 bytes are too few");
    let long = Weights::read(&Mapping::in_memory(Path::new("w"), vec![0xff; 9])).unwrap_err();
    assert!(long.to_string().contains("claims 18446744073709551615 bytes, but the file has 9"));
    assert!(problem("{", 0).contains("not understood"));
    let one = r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    assert!(problem(one, 7).contains("describes 8 bytes of tensors, but there are 7"));
    assert!(problem(&one.replace("[2]", "[3]"), 8).contains("not understood"));
    assert!(problem(&one.replace("0,8", "4,12"), 12).contains("not understood"));
    assert!(problem(&one.replace("[2]", "[4294967296,4294967296]"), 8).contains("not understood"));
    // Ten tensors whose offsets reach the largest number there is.
    let piece = u64::MAX / 8;
    let mut start = 0u64;
    let tensors: Vec<String> = (0..9)
        .map(|index| {
            let end = start.saturating_add(piece);
            let (from, length) = (std::mem::replace(&mut start, end), end - start);
            let length = if index == 8 { u64::MAX - from } else { length.max(piece) };
            format!(
                r#""{index}":{{"dtype":"U8","shape":[{length}],"data_offsets":[{from},{end}]}}"#
            )
        })
        .collect();
    assert!(
        problem(&format!("{{{}}}", tensors.join(",")), 8)
            .contains("describes 18446744073709551615")
    );
    assert!(problem(&"[".repeat(100_000), 0).contains("not understood"));
}

#[test]
fn no_damage_makes_it_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    write_two(&path);
    let whole = fs::read(&path).unwrap();
    let read = |bytes: Vec<u8>| Weights::read(&Mapping::in_memory(&path, bytes));
    for length in 0..whole.len() {
        read(whole[..length].to_vec()).unwrap_err();
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            let _ = read(damaged);
        }
    }
}
