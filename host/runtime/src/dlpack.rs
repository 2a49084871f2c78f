//! Tensors as DLPack describes them: the arguments of compiled functions.
//!
//! [`RawTensor`] is `DLTensor` of DLPack 1.x, to the byte. [`TensorRef`] and [`TensorMut`] are
//! what Rust hands in: contiguous, row-major, on the CPU. [`TensorBuffer`] owns memory that is
//! aligned as generated code likes it, and may have room to become longer along an axis.

use std::{
    alloc::{Layout, alloc, dealloc},
    ffi::c_void,
    fmt,
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::{NonNull, null_mut},
    slice,
};

use tenon_plugin_api::op::prefer_large_pages;

/// `DLDevice`: where a tensor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Device {
    pub device_type: i32,
    pub device_id: i32,
}

impl Device {
    /// `kDLCPU`, number 0.
    pub const CPU: Device = Device { device_type: 1, device_id: 0 };
}

/// `DLDataType`: what an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct DataType {
    /// One of the constants `INT` to `FLOAT4_E2M1FN`.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// 1, or the length of the vector that is one element.
    pub lanes: u16,
}

impl DataType {
    /// `kDLInt`.
    pub const INT: u8 = 0;
    /// `kDLUInt`.
    pub const UINT: u8 = 1;
    /// `kDLFloat`.
    pub const FLOAT: u8 = 2;
    /// `kDLBfloat`.
    pub const BFLOAT: u8 = 4;
    /// `kDLBool`.
    pub const BOOL: u8 = 6;
    /// `kDLFloat8_e4m3fn`.
    pub const FLOAT8_E4M3FN: u8 = 10;
    /// `kDLFloat8_e4m3fnuz`.
    pub const FLOAT8_E4M3FNUZ: u8 = 11;
    /// `kDLFloat8_e5m2`.
    pub const FLOAT8_E5M2: u8 = 12;
    /// `kDLFloat8_e5m2fnuz`.
    pub const FLOAT8_E5M2FNUZ: u8 = 13;
    /// `kDLFloat8_e8m0fnu`.
    pub const FLOAT8_E8M0FNU: u8 = 14;
    /// `kDLFloat4_e2m1fn`; two elements lie in a byte.
    pub const FLOAT4_E2M1FN: u8 = 17;

    pub const F32: DataType = DataType::new(DataType::FLOAT, 32);
    pub const F64: DataType = DataType::new(DataType::FLOAT, 64);
    pub const I32: DataType = DataType::new(DataType::INT, 32);
    pub const I64: DataType = DataType::new(DataType::INT, 64);
    pub const U8: DataType = DataType::new(DataType::UINT, 8);

    /// One lane of `bits` bits.
    pub const fn new(code: u8, bits: u8) -> DataType {
        DataType { code, bits, lanes: 1 }
    }

    /// Bytes of `count` elements, elements packed where they are smaller than a byte; `None` when
    /// that is more than can be counted.
    pub fn bytes(self, count: usize) -> Option<usize> {
        let bits = usize::from(self.bits) * usize::from(self.lanes);
        Some(count.checked_mul(bits)?.div_ceil(8))
    }
}

/// `DLTensor`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawTensor {
    pub data: *mut c_void,
    pub device: Device,
    pub ndim: i32,
    pub dtype: DataType,
    pub shape: *mut i64,
    /// In elements; null for contiguous and row-major.
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Device>() == 8 && size_of::<DataType>() == 4);
    assert!(size_of::<RawTensor>() == 48 && align_of::<RawTensor>() == 8);
    assert!(offset_of!(RawTensor, data) == 0);
    assert!(offset_of!(RawTensor, device) == 8);
    assert!(offset_of!(RawTensor, ndim) == 16);
    assert!(offset_of!(RawTensor, dtype) == 20);
    assert!(offset_of!(RawTensor, shape) == 24);
    assert!(offset_of!(RawTensor, strides) == 32);
    assert!(offset_of!(RawTensor, byte_offset) == 40);
};

/// Bytes and a shape that do not agree, or a shape that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    #[error(
        "a tensor of shape {shape:?} cannot be: an extent is negative or the product too large"
    )]
    Shape { shape: Vec<i64> },
    #[error("a tensor of shape {shape:?} has {expected} bytes, not {given}")]
    Length { shape: Vec<i64>, expected: usize, given: usize },
    #[error("there is no memory for a tensor of shape {shape:?}, which has {bytes} bytes")]
    Memory { shape: Vec<i64>, bytes: usize },
    #[error("a tensor of shape {shape:?} is not one with room for {room} along axis {axis}")]
    Room { shape: Vec<i64>, axis: usize, room: i64 },
}

/// A tensor in memory of somebody else's, to be read.
#[derive(Debug, Clone, Copy)]
pub struct TensorRef<'a> {
    bytes: &'a [u8],
    shape: &'a [i64],
    dtype: DataType,
    /// Where it has room along an axis.
    strides: Option<&'a [i64]>,
}

impl<'a> TensorRef<'a> {
    /// `bytes` as a tensor of `shape`, whose size they must have.
    pub fn new(
        bytes: &'a [u8],
        shape: &'a [i64],
        dtype: DataType,
    ) -> Result<TensorRef<'a>, TensorError> {
        check_length(bytes.len(), shape, dtype)?;
        Ok(TensorRef { bytes, shape, dtype, strides: None })
    }

    /// Its memory, with the room that it has.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn shape(&self) -> &'a [i64] {
        self.shape
    }

    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// For a function that reads it.
    pub fn as_argument(&self) -> Argument<'a> {
        argument(self.bytes.as_ptr().cast_mut(), self.shape, self.dtype, self.strides)
    }
}

/// A tensor in memory of somebody else's, to be written.
#[derive(Debug)]
pub struct TensorMut<'a> {
    bytes: &'a mut [u8],
    shape: &'a [i64],
    dtype: DataType,
}

impl<'a> TensorMut<'a> {
    /// `bytes` as a tensor of `shape`, whose size they must have.
    pub fn new(
        bytes: &'a mut [u8],
        shape: &'a [i64],
        dtype: DataType,
    ) -> Result<TensorMut<'a>, TensorError> {
        check_length(bytes.len(), shape, dtype)?;
        Ok(TensorMut { bytes, shape, dtype })
    }

    /// For a function that writes it.
    pub fn as_argument(&mut self) -> Argument<'_> {
        argument(self.bytes.as_mut_ptr(), self.shape, self.dtype, None)
    }
}

/// A [`RawTensor`] whose memory is borrowed for `'a`; laid out like it, so that an array of these
/// is an array of `DLTensor`.
#[derive(Debug)]
#[repr(transparent)]
pub struct Argument<'a> {
    raw: RawTensor,
    memory: PhantomData<&'a mut [u8]>,
}

impl Argument<'_> {
    /// For the call; valid while `self` is.
    pub fn as_ptr(&self) -> *const RawTensor {
        &raw const self.raw
    }

    /// What the function sees, for as long as what is borrowed is there.
    pub(super) fn raw(&self) -> RawTensor {
        self.raw
    }
}

fn argument<'a>(
    data: *mut u8,
    shape: &'a [i64],
    dtype: DataType,
    strides: Option<&'a [i64]>,
) -> Argument<'a> {
    let raw = RawTensor {
        data: data.cast(),
        device: Device::CPU,
        // `check_length` has seen to it that this fits.
        ndim: shape.len() as i32,
        dtype,
        shape: shape.as_ptr().cast_mut(),
        strides: strides.map_or(null_mut(), |strides| strides.as_ptr().cast_mut()),
        byte_offset: 0,
    };
    Argument { raw, memory: PhantomData }
}

/// A tensor that owns its memory: zeroed, aligned to [`TensorBuffer::ALIGN`].
pub struct TensorBuffer {
    data: NonNull<u8>,
    length: usize,
    /// Bytes that were allocated, of which the first `length` are the tensor's.
    capacity: usize,
    shape: Box<[i64]>,
    dtype: DataType,
    room: Option<Room>,
}

/// Room to become longer.
#[derive(Clone)]
struct Room {
    axis: usize,
    /// The most that there can be along the axis.
    most: i64,
    /// In elements, for as much.
    strides: Box<[i64]>,
}

// SAFETY: the memory is the buffer's alone and is reached through it only.
unsafe impl Send for TensorBuffer {}
// SAFETY: through `&TensorBuffer` it is only read.
unsafe impl Sync for TensorBuffer {}

impl TensorBuffer {
    /// A cache line, and the widest vector.
    pub const ALIGN: usize = 64;

    /// Zeros of `shape`.
    pub fn zeros(shape: &[i64], dtype: DataType) -> Result<TensorBuffer, TensorError> {
        let length = byte_length(shape, dtype)?;
        let data = match layout(length) {
            _ if length == 0 => dangling(),
            Some(layout) => {
                let missing = || TensorError::Memory { shape: shape.to_vec(), bytes: length };
                zeroed(layout).ok_or_else(missing)?
            }
            None => return Err(TensorError::Shape { shape: shape.to_vec() }),
        };
        Ok(TensorBuffer { data, length, capacity: length, shape: shape.into(), dtype, room: None })
    }

    /// Zeros of `shape` in memory that has room for `most` along an axis: it may become as long there without being moved.
    pub fn with_room(
        shape: &[i64],
        axis: usize,
        most: i64,
        dtype: DataType,
    ) -> Result<TensorBuffer, TensorError> {
        let no_room = || TensorError::Room { shape: shape.to_vec(), axis, room: most };
        let mut whole = shape.to_vec();
        let extent = whole.get_mut(axis).filter(|extent| **extent <= most).ok_or_else(no_room)?;
        *extent = most;
        if !dtype.bits.is_multiple_of(8) {
            return Err(no_room());
        }
        let mut buffer = TensorBuffer::zeros(&whole, dtype)?;
        let mut strides = vec![1; whole.len()];
        for axis in (1..whole.len()).rev() {
            // All but where there is nothing is below what `zeros` has counted.
            strides[axis - 1] = i64::saturating_mul(strides[axis], whole[axis]);
        }
        buffer.shape = shape.into();
        buffer.room = Some(Room { axis, most, strides: strides.into() });
        Ok(buffer)
    }

    /// A copy of `bytes`, elements one behind the other, in memory that has room for `most` along an axis.
    pub fn from_bytes_with_room(
        bytes: &[u8],
        shape: &[i64],
        axis: usize,
        most: i64,
        dtype: DataType,
    ) -> Result<TensorBuffer, TensorError> {
        check_length(bytes.len(), shape, dtype)?;
        let mut buffer = TensorBuffer::with_room(shape, axis, most, dtype)?;
        if bytes.is_empty() {
            return Ok(buffer);
        }
        let rows = shape[..axis].iter().product::<i64>() as usize;
        let (used, row) = (bytes.len() / rows, buffer.length / rows);
        for (to, from) in buffer.bytes_mut().chunks_exact_mut(row).zip(bytes.chunks_exact(used)) {
            to[..used].copy_from_slice(from);
        }
        Ok(buffer)
    }

    /// The axis along which it has room, and for how much.
    pub fn room(&self) -> Option<(usize, i64)> {
        self.room.as_ref().map(|room| (room.axis, room.most))
    }

    /// A copy of `bytes` as a tensor of `shape`.
    pub fn from_bytes(
        bytes: &[u8],
        shape: &[i64],
        dtype: DataType,
    ) -> Result<TensorBuffer, TensorError> {
        check_length(bytes.len(), shape, dtype)?;
        let mut buffer = TensorBuffer::zeros(shape, dtype)?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(buffer)
    }

    /// Bytes of its memory, as many as the tensor takes or more.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Its memory as a tensor of another shape and type, of which it has enough.
    pub(super) fn with_shape(
        mut self,
        shape: &[i64],
        dtype: DataType,
    ) -> Result<TensorBuffer, TensorError> {
        let expected = byte_length(shape, dtype)?;
        if expected > self.capacity || self.room.is_some() {
            let given = self.capacity;
            return Err(TensorError::Length { shape: shape.to_vec(), expected, given });
        }
        (self.length, self.shape, self.dtype) = (expected, shape.into(), dtype);
        Ok(self)
    }

    /// Gives it another shape. What its elements are then is not said, but for one with room, whose elements stay; memory is only
    /// asked for where it has never had as much.
    pub fn resize(&mut self, shape: &[i64]) -> Result<(), TensorError> {
        if *self.shape == *shape {
            return Ok(());
        }
        if let Some(room) = &self.room {
            let fits = |(axis, (&before, &extent)): (usize, (&i64, &i64))| match axis == room.axis {
                true => (0..=room.most).contains(&extent),
                false => before == extent,
            };
            let is_same_rank = shape.len() == self.shape.len();
            if !is_same_rank || !self.shape.iter().zip(shape).enumerate().all(fits) {
                let (axis, room) = (room.axis, room.most);
                return Err(TensorError::Room { shape: shape.to_vec(), axis, room });
            }
            self.shape = shape.into();
            return Ok(());
        }
        let length = byte_length(shape, self.dtype)?;
        if length > self.capacity {
            *self = TensorBuffer::zeros(shape, self.dtype)?;
        } else {
            (self.length, self.shape) = (length, shape.into());
        }
        Ok(())
    }

    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Its memory, with the room that it has.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `data` is `length` initialized bytes, borrowed with `self`.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.length) }
    }

    /// A copy of its elements, one behind the other.
    pub fn to_vec(&self) -> Result<Vec<u8>, TensorError> {
        let mut copy = Vec::new();
        let length = byte_length(&self.shape, self.dtype)?;
        let missing = |_| TensorError::Memory { shape: self.shape.to_vec(), bytes: length };
        copy.try_reserve_exact(length).map_err(missing)?;
        match &self.room {
            None => copy.extend_from_slice(self.bytes()),
            Some(room) if length > 0 => {
                let bytes = usize::from(self.dtype.bits / 8) * room.strides[room.axis] as usize;
                let [row, used] = [room.most, self.shape[room.axis]].map(|it| bytes * it as usize);
                self.bytes().chunks_exact(row).for_each(|row| copy.extend_from_slice(&row[..used]));
            }
            Some(_) => {}
        }
        Ok(copy)
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.data.as_ptr(), self.length) }
    }

    /// To be read.
    pub fn as_ref(&self) -> TensorRef<'_> {
        TensorRef {
            bytes: self.bytes(),
            shape: &self.shape,
            dtype: self.dtype,
            strides: self.room.as_ref().map(|room| &*room.strides),
        }
    }

    /// For a function that reads or writes it.
    pub fn as_argument(&mut self) -> Argument<'_> {
        let strides = self.room.as_ref().map(|room| &*room.strides);
        argument(self.data.as_ptr(), &self.shape, self.dtype, strides)
    }

    /// For a function that writes it, and its extents to `shape`, where those stand that it is given.
    pub fn as_argument_with<'a>(&'a mut self, shape: &'a mut [i64]) -> Argument<'a> {
        debug_assert_eq!(*self.shape, *shape);
        let strides = self.room.as_ref().map(|room| &*room.strides);
        let mut argument = argument(self.data.as_ptr(), &[], self.dtype, strides);
        (argument.raw.ndim, argument.raw.shape) = (shape.len() as i32, shape.as_mut_ptr());
        argument
    }
}

impl Clone for TensorBuffer {
    fn clone(&self) -> Self {
        let mut whole = self.shape.to_vec();
        if let Some(room) = &self.room {
            whole[room.axis] = room.most;
        }
        let copy = TensorBuffer::from_bytes(self.bytes(), &whole, self.dtype);
        let mut copy = copy.expect("a shape that was possible once is possible again");
        (copy.shape, copy.room) = (self.shape.clone(), self.room.clone());
        copy
    }
}

impl Drop for TensorBuffer {
    fn drop(&mut self) {
        if self.capacity > 0
            && let Some(layout) = layout(self.capacity)
        {
            // SAFETY: allocated in `zeros` with the layout of the same length.
            unsafe { dealloc(self.data.as_ptr(), layout) };
        }
    }
}

impl fmt::Debug for TensorBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, dtype) = (&self.shape, self.dtype);
        f.debug_struct("TensorBuffer").field("shape", shape).field("dtype", &dtype).finish()
    }
}

fn layout(length: usize) -> Option<Layout> {
    Layout::from_size_align(length, TensorBuffer::ALIGN).ok()
}

/// Zeros in large pages, where there are many and the system has such pages.
fn zeroed(layout: Layout) -> Option<NonNull<u8>> {
    // SAFETY: the layout is not empty.
    let data = NonNull::new(unsafe { alloc(layout) })?;
    // SAFETY: so many bytes were allocated, and nobody else has them yet.
    let memory = unsafe { slice::from_raw_parts_mut(data.as_ptr().cast(), layout.size()) };
    prefer_large_pages(memory);
    memory.fill(MaybeUninit::new(0u8));
    Some(data)
}

/// Where an empty buffer points: nowhere, but aligned.
fn dangling() -> NonNull<u8> {
    #[repr(align(64))]
    struct Aligned;
    const { assert!(align_of::<Aligned>() == TensorBuffer::ALIGN) };
    NonNull::<Aligned>::dangling().cast()
}

fn byte_length(shape: &[i64], dtype: DataType) -> Result<usize, TensorError> {
    let impossible = || TensorError::Shape { shape: shape.to_vec() };
    i32::try_from(shape.len()).map_err(|_| impossible())?;
    let mut count = 1usize;
    for &extent in shape {
        let extent = usize::try_from(extent).map_err(|_| impossible())?;
        count = count.checked_mul(extent).ok_or_else(impossible)?;
    }
    dtype.bytes(count).ok_or_else(impossible)
}

fn check_length(given: usize, shape: &[i64], dtype: DataType) -> Result<(), TensorError> {
    let expected = byte_length(shape, dtype)?;
    if expected == given {
        return Ok(());
    }
    Err(TensorError::Length { shape: shape.to_vec(), expected, given })
}

#[cfg(test)]
mod tests;
