use std::{fs, path::Path};

use super::{TensorBytes, TensorData, TensorReader};
use crate::{
    io::Mapping,
    onnx::{ElementType, proto::TensorProto, writer::Message},
};

/// A tensor `t` of this type and shape.
fn tensor(code: i64, dims: &[i64]) -> Message {
    Message::new().bytes(8, "t").int(2, code).ints(1, dims)
}

fn read(message: Message) -> Result<TensorData, String> {
    read_beside(Path::new("model.onnx"), message)
}

/// Reads a tensor as if it stood in the model at `path`.
fn read_beside(path: &Path, message: Message) -> Result<TensorData, String> {
    let mapping = Mapping::in_memory(path, message.0);
    let proto = TensorProto::decode_file(&mapping).unwrap();
    TensorReader::new(&mapping).read(&proto).map_err(|error| error.to_string())
}

fn error(message: Message) -> String {
    read(message).unwrap_err()
}

#[test]
fn raw_data_is_not_copied() {
    let data = read(tensor(1, &[3, 1]).bytes(9, [7; 12])).unwrap();
    assert_eq!((data.element, &data.dims[..]), (ElementType::Float32, &[3, 1][..]));
    let TensorBytes::Mapped(slice) = &data.bytes else { panic!("copied") };
    assert_eq!(slice[..], [7; 12]);
}

#[test]
fn packed_floats_are_not_copied() {
    let data = read(tensor(1, &[2]).floats(4, &[1.0, 2.0])).unwrap();
    assert!(matches!(data.bytes, TensorBytes::Mapped(_)));
    assert_eq!(data.bytes[..4], 1f32.to_le_bytes());
    let data = read(tensor(1, &[3]).floats(4, &[1.0, 2.0]).float(4, 3.0)).unwrap();
    assert!(matches!(data.bytes, TensorBytes::Owned(_)));
    assert_eq!(data.bytes[8..], 3f32.to_le_bytes());
    let data = read(tensor(11, &[2]).double(10, 1.5).double(10, 2.5)).unwrap();
    assert_eq!(data.bytes[8..], 2.5f64.to_le_bytes());
}

#[test]
fn numbers_take_the_width_of_their_type() {
    let bytes = |code, field, values: &[i64]| {
        read(tensor(code, &[values.len() as i64]).ints(field, values)).unwrap().bytes.to_vec()
    };
    assert_eq!(bytes(3, 5, &[-1, 127]), [0xff, 0x7f]);
    assert_eq!(bytes(2, 5, &[255]), [0xff]);
    assert_eq!(bytes(5, 5, &[-2]), [0xfe, 0xff]);
    assert_eq!(bytes(10, 5, &[0x3c00]), [0x00, 0x3c]);
    assert_eq!(bytes(16, 5, &[0x3f80]), [0x80, 0x3f]);
    assert_eq!(bytes(17, 5, &[0x38]), [0x38]);
    assert_eq!(bytes(9, 5, &[1, 0]), [1, 0]);
    assert_eq!(bytes(6, 5, &[-1]), [0xff; 4]);
    assert_eq!(bytes(7, 7, &[-1]), [0xff; 8]);
    assert_eq!(bytes(12, 11, &[1 << 31]), [0, 0, 0, 0x80]);
    assert_eq!(bytes(13, 11, &[-1]), [0xff; 8]);
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let text = |code, field, value| error(tensor(code, &[2]).ints(field, &[0, value]));
    assert_eq!(text(3, 5, 128), "tensor `t`: element 1 is 128, which int8 cannot hold");
    assert_eq!(text(9, 5, 2), "tensor `t`: element 1 is 2, which bool cannot hold");
    assert_eq!(text(10, 5, 65536), "tensor `t`: element 1 is 65536, which float16 cannot hold");
    assert_eq!(text(2, 5, -1), "tensor `t`: element 1 is -1, which uint8 cannot hold");
    assert!(text(12, 11, 1 << 32).ends_with("which uint32 cannot hold"));
}

#[test]
fn scalars_and_empty_tensors_are_tensors() {
    assert_eq!(read(tensor(7, &[]).int(7, 5)).unwrap().bytes.len(), 8);
    assert!(read(tensor(1, &[0, 3])).unwrap().bytes.is_empty());
    assert!(read(tensor(1, &[i64::MAX, i64::MAX, 0])).unwrap().bytes.is_empty());
    assert!(read(tensor(1, &[0]).int(14, 1)).unwrap().bytes.is_empty());
}

#[test]
fn booleans_are_zero_or_one() {
    assert_eq!(read(tensor(9, &[3]).bytes(9, [0, 1, 255])).unwrap().bytes[..], [0, 1, 1]);
}

#[test]
fn sizes_that_lie_are_refused() {
    let text = error(tensor(1, &[2]).bytes(9, [0; 9]));
    assert_eq!(text, "tensor `t`: shape [2] of float32 takes 8 bytes, but its raw data has 9");
    let text = error(tensor(1, &[1 << 40]));
    assert!(text.ends_with("takes 4398046511104 bytes, but its raw data has 0"), "{text}");
    let text = error(tensor(7, &[1 << 40]).int(7, 1));
    assert!(text.ends_with("has 1099511627776 elements, but there are 1 in int64_data"), "{text}");
    let text = error(tensor(1, &[3]).floats(4, &[0.0]));
    assert!(text.ends_with("has 3 elements, but there are 1 in float_data"), "{text}");
    let text = error(tensor(1, &[i64::MAX, i64::MAX]));
    assert!(text.ends_with("of float32 has more bytes than any memory"), "{text}");
    assert!(error(tensor(1, &[1 << 61])).ends_with("more bytes than any memory"));
    assert!(error(tensor(1, &[2, -3])).ends_with("dimension 1 is -3, expected 0 or more"));
}

#[test]
fn contradictions_are_refused() {
    let text = error(tensor(1, &[1]).bytes(9, [0; 4]).float(4, 0.0));
    assert!(text.ends_with("it has data both in raw_data and in numbers"), "{text}");
    let text = error(tensor(7, &[1]).float(4, 0.0));
    assert!(text.ends_with("int64 elements are in float_data, expected them in int64_data"));
    let text = error(tensor(7, &[1]).bytes(7, [0x80]));
    assert!(text.contains("has 1 elements, but there are 0"), "{text}");
    let text = error(tensor(7, &[1]).bytes(7, [0x05, 0x80]));
    assert!(text.ends_with("int64_data holds something else than numbers of its kind"), "{text}");
    let text = error(tensor(1, &[1]).int(4, 1));
    assert!(text.ends_with("float_data holds something else than numbers of its kind"), "{text}");
    let text = error(tensor(1, &[1]).bytes(4, [0; 3]).float(4, 1.0));
    assert!(text.ends_with("float_data holds something else than numbers of its kind"), "{text}");
    assert!(error(tensor(1, &[1]).message(3, Message::new())).contains("pieces of tensors"));
}

/// Of elements below a byte nothing stands behind the last one, whatever the file has there.
#[test]
fn bits_behind_the_last_element_are_cleared() {
    for (code, count, stored, read_as) in
        [(22, 3, [0x21, 0xf3], [0x21, 0x03]), (26, 5, [0xe4, 0xff], [0xe4, 0x03])]
    {
        let data = read(tensor(code, &[count]).bytes(9, stored)).unwrap();
        assert_eq!(data.bytes[..], read_as);
    }
    let data = read(tensor(22, &[3]).bytes(9, [0x21, 0x03])).unwrap();
    assert!(matches!(data.bytes, TensorBytes::Mapped(_)), "what is clear is not copied");
}

#[test]
fn other_element_types_are_named() {
    let text = error(tensor(8, &[1]).bytes(6, "x"));
    assert_eq!(text, "tensor `t`: element type string (code 8) is not supported");
    assert!(error(tensor(-5, &[1])).contains("element type unknown (code -5)"));
}

/// A float tensor of two elements in another file.
fn external(entries: &[(&str, &str)]) -> Message {
    let pair = |(key, value): &(&str, &str)| Message::new().bytes(1, key).bytes(2, value);
    entries.iter().fold(tensor(1, &[2]).int(14, 1), |tensor, entry| tensor.message(13, pair(entry)))
}

#[test]
fn external_data_is_a_slice_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.onnx");
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/w.bin"), (0..20).collect::<Vec<u8>>()).unwrap();
    let read = |entries: &[(&str, &str)]| read_beside(&model, external(entries));
    let location = ("location", "sub/w.bin");
    let data = read(&[location, ("offset", "4"), ("length", "8")]).unwrap();
    assert!(matches!(data.bytes, TensorBytes::Mapped(_)));
    assert_eq!(data.bytes[..], [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(read(&[location]).unwrap().bytes[0], 0);
    assert_eq!(read(&[("location", "./sub/w.bin"), ("offset", "12")]).unwrap().bytes[7], 19);

    let error = |entries: &[(&str, &str)]| read(entries).unwrap_err();
    let text = error(&[location, ("length", "4")]);
    assert_eq!(text, "tensor `t`: external data: the shape takes 8 bytes, but its length is 4");
    let text = error(&[location, ("offset", "16")]);
    assert!(
        text.ends_with("bytes 16 to 16+8 of `sub/w.bin` are asked for, but it has 20"),
        "{text}"
    );
    assert!(error(&[location, ("offset", "18446744073709551615")]).contains("are asked for"));
    for number in ["-1", "+1", "", "1 ", "0x8", "18446744073709551616"] {
        assert!(error(&[location, ("offset", number)]).ends_with("is not a number of bytes"));
    }
    assert!(error(&[]).ends_with("it has no location"));
    assert!(error(&[("location", "absent")]).contains("absent` cannot be found"));
    assert!(error(&[("location", "sub")]).ends_with("is a directory, expected a regular file"));
}

#[test]
fn external_data_stays_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).unwrap();
    fs::write(folder.path().join("secret"), [0; 8]).unwrap();
    let model = inside.join("model.onnx");
    let error =
        |location: &str| read_beside(&model, external(&[("location", location)])).unwrap_err();
    let absolute = folder.path().join("secret").display().to_string();
    for location in
        ["", "/etc/passwd", &absolute, "../secret", "x/../../secret", "..\\secret", "a\0"]
    {
        assert!(error(location).contains("is not a plain path inside the model's folder"));
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
        assert!(error("link").contains("the location `link` leads out of the model's folder"));
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        assert!(error("up/secret").contains("leads out of the model's folder"));
        fs::write(inside.join("real"), [0; 8]).unwrap();
        std::os::unix::fs::symlink("real", inside.join("alias")).unwrap();
        assert!(read_beside(&model, external(&[("location", "alias")])).is_ok());

        // A model and its data that are both links into one folder, as in the cache of a hub.
        let blobs = folder.path().join("blobs");
        fs::create_dir(&blobs).unwrap();
        for blob in ["model", "data"] {
            fs::write(blobs.join(blob), [0; 8]).unwrap();
        }
        std::os::unix::fs::symlink("../blobs/model", &model).unwrap();
        std::os::unix::fs::symlink("../blobs/data", inside.join("model.onnx_data")).unwrap();
        assert!(read_beside(&model, external(&[("location", "model.onnx_data")])).is_ok());
        assert!(error("link").contains("leads out of the model's folder"));
    }
}
