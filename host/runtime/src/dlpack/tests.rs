use super::*;

#[test]
fn a_buffer_is_aligned_zeroed_and_as_large_as_its_shape() {
    for shape in [&[][..], &[3], &[2, 5], &[0, 7]] {
        let mut buffer = TensorBuffer::zeros(shape, DataType::F32).unwrap();
        let count: i64 = shape.iter().product();
        assert_eq!(buffer.bytes().len(), 4 * count as usize);
        assert_eq!(buffer.bytes().as_ptr().addr() % TensorBuffer::ALIGN, 0);
        assert!(buffer.bytes().iter().all(|&byte| byte == 0));
        buffer.bytes_mut().fill(3);
        assert_eq!(buffer.to_vec().unwrap(), buffer.bytes());
        assert_eq!(buffer.clone().bytes(), buffer.bytes());
    }
}

#[test]
fn a_buffer_keeps_its_memory_when_it_becomes_smaller() {
    let mut buffer = TensorBuffer::zeros(&[4, 5], DataType::F32).unwrap();
    let place = buffer.bytes().as_ptr();
    for shape in [&[2, 5][..], &[0], &[20], &[4, 5]] {
        buffer.resize(shape).unwrap();
        assert_eq!(buffer.bytes().len(), 4 * shape.iter().product::<i64>() as usize);
        assert_eq!((buffer.shape(), buffer.bytes().as_ptr()), (shape, place));
    }
    buffer.resize(&[21]).unwrap();
    assert_eq!(buffer.bytes(), [0; 84]);
    assert!(buffer.resize(&[-1]).is_err());
}

#[test]
fn a_buffer_with_room_becomes_longer_where_it_is() {
    let mut buffer = TensorBuffer::with_room(&[2, 1, 3], 1, 4, DataType::U8).unwrap();
    assert_eq!((buffer.room(), buffer.bytes().len()), (Some((1, 4)), 24));
    let place = buffer.bytes().as_ptr();
    for (at, byte) in buffer.bytes_mut().iter_mut().enumerate() {
        *byte = at as u8;
    }
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 2, 12, 13, 14]);
    buffer.resize(&[2, 2, 3]).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17]);
    assert_eq!((buffer.bytes().as_ptr(), buffer.clone().to_vec()), (place, buffer.to_vec()));
    // SAFETY: it points at the tensor that `buffer` holds, which has three strides.
    let strides = unsafe {
        let argument = buffer.as_ref().as_argument().raw();
        std::slice::from_raw_parts(argument.strides, 3).to_vec()
    };
    assert_eq!(strides, [12, 3, 1]);
    buffer.resize(&[2, 0, 3]).unwrap();
    assert!(buffer.to_vec().unwrap().is_empty());
    let error = buffer.resize(&[2, 5, 3]).unwrap_err().to_string();
    assert_eq!(error, "a tensor of shape [2, 5, 3] is not one with room for 4 along axis 1");
    assert!(buffer.resize(&[1, 2, 3]).is_err() && buffer.resize(&[2, 3]).is_err());
    assert!(TensorBuffer::with_room(&[2, 5], 1, 4, DataType::U8).is_err());
    assert!(TensorBuffer::with_room(&[2, 5], 2, 4, DataType::U8).is_err());
}

#[test]
fn a_copy_with_room_has_its_elements_in_front_of_each_row() {
    let bytes = [1u8, 2, 3, 4, 5, 6];
    let copy = TensorBuffer::from_bytes_with_room(&bytes, &[2, 3, 1], 1, 5, DataType::U8);
    let mut copy = copy.unwrap();
    assert_eq!(copy.bytes(), [1, 2, 3, 0, 0, 4, 5, 6, 0, 0]);
    assert_eq!(copy.to_vec().unwrap(), bytes);
    copy.resize(&[2, 5, 1]).unwrap();
    assert_eq!(copy.shape(), [2, 5, 1]);
    let empty = TensorBuffer::from_bytes_with_room(&[], &[2, 0], 1, 4, DataType::F32).unwrap();
    assert_eq!((empty.bytes().len(), empty.room()), (32, Some((1, 4))));
    let room =
        |bytes: &[u8], most| TensorBuffer::from_bytes_with_room(bytes, &[2], 0, most, DataType::U8);
    assert!(room(&[1, 2], 1).is_err() && room(&[1], 4).is_err());
}

#[test]
fn an_argument_is_the_tensor_in_dlpack() {
    let bytes = [1u8; 24];
    let tensor = TensorRef::new(&bytes, &[2, 3], DataType::F32).unwrap();
    let argument = tensor.as_argument();
    // SAFETY: it points at the tensor that `argument` holds.
    let raw = unsafe { *argument.as_ptr() };
    assert_eq!((raw.data.cast_const().cast(), raw.ndim), (bytes.as_ptr(), 2));
    assert_eq!((raw.device, raw.dtype), (Device::CPU, DataType::F32));
    // SAFETY: `shape` has `ndim` extents.
    assert_eq!(unsafe { *raw.shape.add(1) }, 3);
    assert!(raw.strides.is_null() && raw.byte_offset == 0);
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    assert!(TensorBuffer::zeros(&[-1], DataType::F32).is_err());
    assert!(TensorBuffer::zeros(&[i64::MAX, 4], DataType::U8).is_err());
    assert!(TensorBuffer::zeros(&[i64::MAX], DataType::F32).is_err());
    // As many bytes as can be addressed are not there. Miri does not go on without them.
    if !cfg!(miri) {
        let error = TensorBuffer::zeros(&[1 << 58], DataType::F32).unwrap_err();
        assert!(error.to_string().starts_with("there is no memory for a tensor"), "{error}");
    }
    let error = TensorRef::new(&[0; 5], &[2], DataType::F32).unwrap_err();
    assert_eq!(error.to_string(), "a tensor of shape [2] has 8 bytes, not 5");
}

#[test]
fn small_elements_are_packed() {
    assert_eq!(DataType::new(DataType::INT, 4).bytes(3), Some(2));
    assert_eq!(DataType::F64.bytes(usize::MAX / 4), None);
}
